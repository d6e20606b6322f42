/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core ML in Objective-C with manual retain and release: compiling, loading, predicting, the compute plan.
 *
 * Everything that Core ML makes during a call is autoreleased into the pool of that call (guard). NSProcessInfo is
 * asked for the version of macOS, in place of @available, so that the tests can play older systems; newer classes are
 * linked weakly. docs/COREML.md describes the whole.
 */
#include "macos/coreml_bridge.h"

#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/json.h"
#include "base/staging.h"

#import <CoreML/CoreML.h>
#import <Foundation/Foundation.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The versions are checked at run time, see above; compileModelAtURL:error: is deprecated for its asynchronous form,
   which compiles the same. */
#pragma clang diagnostic ignored "-Wunguarded-availability"
#pragma clang diagnostic ignored "-Wunguarded-availability-new"
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

enum { RANK = 4 };

struct laya_coreml {
    laya_allocator allocator;
    NSString *package;
    NSURL *compiled; /* NAME.mlmodelc */
    MLModelConfiguration *configuration;
    MLModel *model;
    NSMutableDictionary *arrays; /* input and output arrays by the name of the feature, made on first use */
    double compile_seconds, load_seconds;
};

/* What macOS 12.3 has: MLMultiArray's getBytesWithHandler:. */
enum { OLDEST_MAJOR = 12, OLDEST_MINOR = 3 };

static bool system_is_at_least(NSInteger major, NSInteger minor)
{
    NSOperatingSystemVersion version = {major, minor, 0};
    return [[NSProcessInfo processInfo] isOperatingSystemAtLeastVersion:version];
}

static double now(void)
{
    struct timespec time;
    return clock_gettime(CLOCK_MONOTONIC, &time) == 0 ? (double)time.tv_sec + 1e-9 * (double)time.tv_nsec : 0;
}

/* ------------------------------------------------------------------ errors */

static const char *text_of(NSString *text)
{
    return text ? [text UTF8String] : "none";
}

/* The number behind "error code: " in a description; 0: none. */
static long code_in(NSString *description)
{
    static const char mark[] = "error code: ";
    const char *found = strstr(text_of(description), mark);
    return found ? strtol(found + sizeof mark - 1, NULL, 10) : 0;
}

/* What is known about an error beyond its description; "": nothing. */
static const char *meaning_of(NSError *reason)
{
    static const struct {
        long code;
        bool in_text; /* the code stands in the description; else it is NSError's, of Core ML's domain */
        const char *meaning;
    } known[] = {
        {-14, true,
         ". Not documented by Apple; seen where the Neural Engine's compiler refuses a program or runs out of "
         "memory: try a shorter length, the lean graph or other compute units"},
        {-4, true,
         ". Not documented by Apple; seen where loading a program for the Neural Engine fails: try other compute "
         "units, or remove the compiled model and compile it again"},
        {MLModelErrorFeatureType, false, ". An input has another type or shape than the model declares"},
        {MLModelErrorIO, false, ". A file could not be read or written"},
    };
    long in_text = code_in([reason localizedDescription]);
    bool own = [[reason domain] isEqualToString:MLModelErrorDomain];
    for (size_t at = 0; at < sizeof known / sizeof known[0]; at++) {
        if (known[at].in_text ? known[at].code == in_text : own && known[at].code == [reason code])
            return known[at].meaning;
    }
    return "";
}

/* `action` names what Core ML did not do, such as "load it". */
static laya_status fail_for(NSError *reason, NSString *package, const char *action, laya_error *error)
{
    if (!reason) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: Core ML could not %s and gave no reason", text_of(package),
                         action);
    }
    NSError *cause = [[reason userInfo] objectForKey:NSUnderlyingErrorKey];
    NSString *under = @"";
    if (cause) {
        under = [NSString stringWithFormat:@"; under it %@ %ld: %@", [cause domain], (long)[cause code],
                                           [cause localizedDescription]];
    }
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s: Core ML could not %s: %s (%s %ld%s)%s", text_of(package), action,
                     text_of([reason localizedDescription]), text_of([reason domain]), (long)[reason code],
                     text_of(under), meaning_of(reason));
}

/* Do the work with an autorelease pool of its own; what is thrown becomes an error. */
static laya_status guard(NSString *package, laya_error *error, laya_status (^work)(void))
{
    laya_status status = LAYA_OK;
    @autoreleasepool {
        @try {
            status = work();
        } @catch (NSException *exception) {
            status = laya_fail(error, LAYA_ERROR_FORMAT, "%s: Core ML raised %s: %s", text_of(package),
                               text_of([exception name]), text_of([exception reason]));
        } @catch (...) {
            status = laya_fail(error, LAYA_ERROR_FORMAT, "%s: Core ML threw something that is no NSException",
                               text_of(package));
        }
    }
    return status;
}

/* ------------------------------------------------------------------ compiling and loading */

/* Move the contents of one directory into another. */
static laya_status move_contents(NSString *from, const laya_staging *to, laya_error *error)
{
    NSFileManager *files = [NSFileManager defaultManager];
    NSString *folder = [NSString stringWithUTF8String:to->directory];
    NSError *reason = nil;
    NSArray *names = [files contentsOfDirectoryAtPath:from error:&reason];
    BOOL moved = names != nil;
    for (NSString *name in names) {
        moved = moved && [files moveItemAtPath:[from stringByAppendingPathComponent:name]
                                        toPath:[folder stringByAppendingPathComponent:name]
                                         error:&reason];
    }
    if (moved) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_IO, "%s: the compiled model cannot be moved there: %s", to->directory,
                     text_of([reason localizedDescription]));
}

/* Compile into Core ML's temporary directory and move the result to `target`, over a staging directory beside it. */
static laya_status compile(const laya_coreml *model, const char *target, laya_staging *staging, laya_error *error)
{
    NSError *reason = nil;
    NSURL *made = [MLModel compileModelAtURL:[NSURL fileURLWithPath:model->package isDirectory:YES] error:&reason];
    if (!made) return fail_for(reason, model->package, "compile it", error);
    laya_status status = laya_staging_open(staging, target, &model->allocator, error);
    if (status == LAYA_OK) status = move_contents([made path], staging, error);
    if (status == LAYA_OK) status = laya_staging_commit(staging, error);
    [[NSFileManager defaultManager] removeItemAtPath:[made path] error:NULL];
    if (status == LAYA_OK || !laya_path_is_directory(target)) return status;
    laya_error_clear(error); /* another process compiled the same package meanwhile: its result serves */
    return LAYA_OK;
}

static laya_status compile_once(laya_coreml *model, const char *target, laya_error *error)
{
    if (laya_path_is_directory(target)) return LAYA_OK;
    double begun = now();
    laya_staging staging = {.allocator = model->allocator, .lock = -1};
    laya_staging *place = &staging;
    laya_status status = guard(model->package, error, ^laya_status {
      return compile(model, target, place, error);
    });
    laya_staging_discard(&staging);
    model->compile_seconds = now() - begun;
    return status;
}

static laya_status load(laya_coreml *model, const char *compiled, laya_compute_units units, laya_error *error)
{
    static const MLComputeUnits native[] = {MLComputeUnitsCPUOnly, MLComputeUnitsCPUAndGPU, MLComputeUnitsAll,
                                            MLComputeUnitsCPUAndNeuralEngine};
    double begun = now();
    model->arrays = [[NSMutableDictionary alloc] init];
    model->compiled = [[NSURL fileURLWithPath:[NSString stringWithUTF8String:compiled] isDirectory:YES] retain];
    model->configuration = [[MLModelConfiguration alloc] init];
    [model->configuration setComputeUnits:native[units]];
    NSError *reason = nil;
    model->model = [[MLModel modelWithContentsOfURL:model->compiled configuration:model->configuration
                                              error:&reason] retain];
    model->load_seconds = now() - begun;
    if (model->model) return LAYA_OK;
    return fail_for(reason, [model->compiled path], "load it", error);
}

/* The folder of compiled models that a caller did not name. */
static NSString *default_cache(void)
{
    NSArray *folders = NSSearchPathForDirectoriesInDomains(NSCachesDirectory, NSUserDomainMask, YES);
    return [[folders firstObject] stringByAppendingPathComponent:@"laya"];
}

static laya_status open_model(laya_coreml *model, const char *sha256, laya_compute_units units,
                              const char *cache_directory, laya_error *error)
{
    NSString *cache = cache_directory ? [NSString stringWithUTF8String:cache_directory] : default_cache();
    const char *target = [[cache stringByAppendingPathComponent:[NSString stringWithFormat:@"%s.mlmodelc", sha256]]
        UTF8String];
    if (!target) return laya_fail(error, LAYA_ERROR_IO, "there is no folder for compiled models; name one");
    LAYA_TRY(compile_once(model, target, error));
    return load(model, target, units, error);
}

static laya_status check_system(laya_compute_units units, laya_error *error)
{
    if (!laya_coreml_available()) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "Core ML needs macOS %d.%d or newer; use the interpreter",
                         OLDEST_MAJOR, OLDEST_MINOR);
    }
    if (units == LAYA_UNITS_CPU_NE && !system_is_at_least(13, 0)) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "compute units CPU_AND_NE need macOS 13 or newer; use ALL, CPU_AND_GPU or CPU_ONLY");
    }
    return LAYA_OK;
}

bool laya_coreml_available(void)
{
    @autoreleasepool {
        return system_is_at_least(OLDEST_MAJOR, OLDEST_MINOR);
    }
}

laya_status laya_coreml_open(const char *package, const char *package_sha256, laya_compute_units units,
                             const char *cache_directory, const laya_allocator *allocator, laya_coreml **model,
                             laya_error *error)
{
    laya_allocator hooks = laya_allocator_or_default(allocator);
    *model = NULL;
    laya_error_clear(error);
    if (!laya_path_is_directory(package))
        return laya_fail(error, LAYA_ERROR_IO, "%s: expected the directory of a package", package);
    laya_coreml *opened = laya_alloc_zero(&hooks, 1, sizeof *opened);
    if (!opened) return laya_fail_memory(error, sizeof *opened);
    opened->allocator = hooks;
    opened->package = [[NSString alloc] initWithUTF8String:package];
    laya_status status = guard(opened->package, error, ^laya_status {
      LAYA_TRY(check_system(units, error));
      return open_model(opened, package_sha256, units, cache_directory, error);
    });
    if (status == LAYA_OK)
        *model = opened;
    else
        laya_coreml_close(opened);
    return status;
}

void laya_coreml_close(laya_coreml *model)
{
    if (!model) return;
    @autoreleasepool {
        [model->arrays release];
        [model->model release];
        [model->configuration release];
        [model->compiled release];
        [model->package release];
    }
    laya_allocator hooks = model->allocator;
    laya_release(&hooks, model);
}

/* ------------------------------------------------------------------ arrays */

/* Bytes of an element; 0: a type that is not for us. */
static size_t element_size(MLMultiArrayDataType type)
{
    if (type == MLMultiArrayDataTypeFloat16) return 2;
    return type == MLMultiArrayDataTypeFloat32 ? 4 : 0;
}

static NSArray *numbers(const int64_t values[RANK])
{
    NSMutableArray *array = [NSMutableArray arrayWithCapacity:RANK];
    for (int axis = 0; axis < RANK; axis++) [array addObject:[NSNumber numberWithLongLong:values[axis]]];
    return array;
}

/* A C-order array in page-aligned memory, as Core ML's header advises. The memory may outlive the model, and the
   allocator with it, where Core ML keeps a reference: hence the system's own. */
static laya_status make_array(const laya_coreml *model, const laya_coreml_tensor *tensor, MLMultiArrayDataType type,
                              MLMultiArray **array, laya_error *error)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = element_size(type);
    int64_t strides[RANK], stride = 1;
    for (int axis = RANK - 1; axis >= 0; axis--) {
        if (!laya_mul_size(size, (size_t)tensor->shape[axis], &size)) return laya_fail_memory(error, 0);
        strides[axis] = stride;
        stride *= tensor->shape[axis];
    }
    void *memory = NULL;
    if (posix_memalign(&memory, page, size) != 0) return laya_fail_memory(error, size);
    NSError *reason = nil;
    /* Whether a refused array has called the deallocator is not documented. A block that is lost is better than one
       that is released twice. */
    *array = [[[MLMultiArray alloc] initWithDataPointer:memory
                                                  shape:numbers(tensor->shape)
                                               dataType:type
                                                strides:numbers(strides)
                                            deallocator:^(void *bytes) {
                                              free(bytes);
                                            }
                                                  error:&reason] autorelease];
    return *array ? LAYA_OK : fail_for(reason, model->package, "make an array", error);
}

/* The array of an input, or the one that is offered for an output: of the model's type, used again in each call. */
static laya_status find_array(laya_coreml *model, NSDictionary *features, const char *kind,
                              const laya_coreml_tensor *tensor, MLMultiArray **array, laya_error *error)
{
    NSString *name = [NSString stringWithUTF8String:tensor->name];
    NSArray *shape = numbers(tensor->shape);
    MLMultiArrayConstraint *constraint = [[features objectForKey:name] multiArrayConstraint];
    if (!constraint) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: the model has no multi-array %s \"%s\"",
                         text_of(model->package), kind, tensor->name);
    }
    NSArray *declared = [constraint shape]; /* empty where the model leaves it open */
    if ([declared count] > 0 && ![declared isEqualToArray:shape]) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: %s \"%s\" has the shape [%s], expected [%s]",
                         text_of(model->package), kind, tensor->name,
                         text_of([declared componentsJoinedByString:@", "]),
                         text_of([shape componentsJoinedByString:@", "]));
    }
    if (element_size([constraint dataType]) == 0) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: %s \"%s\" has the element type 0x%lx, expected Float16 or Float32",
                         text_of(model->package), kind, tensor->name, (unsigned long)[constraint dataType]);
    }
    *array = [model->arrays objectForKey:name];
    if (*array && [[*array shape] isEqualToArray:shape]) return LAYA_OK;
    LAYA_TRY(make_array(model, tensor, [constraint dataType], array, error));
    [model->arrays setObject:*array forKey:name];
    return LAYA_OK;
}

/* Where the elements of an array lie. */
typedef struct layout {
    size_t element; /* bytes */
    size_t shape[RANK], strides[RANK];
} layout;

/* False when an element would lie outside the bytes of the array. */
static bool find_layout(layout *place, const laya_coreml_tensor *tensor, MLMultiArrayDataType type, NSArray *strides,
                        NSInteger bytes)
{
    size_t last = 0, reach;
    if ([strides count] != RANK) return false;
    place->element = element_size(type);
    for (unsigned axis = 0; axis < RANK; axis++) {
        long long stride = [[strides objectAtIndex:axis] longLongValue];
        place->shape[axis] = (size_t)tensor->shape[axis];
        place->strides[axis] = (size_t)stride;
        if (stride < 0 || tensor->shape[axis] < 1 ||
            !laya_mul_size(place->shape[axis] - 1, place->strides[axis], &reach) ||
            !laya_add_size(last, reach, &last))
            return false;
    }
    return laya_mul_size(last, place->element, &reach) && laya_add_size(reach, place->element, &reach) &&
           bytes >= 0 && reach <= (size_t)bytes;
}

/* Rows of the last axis, and the element that the row of this number in C order begins with. */
static size_t row_count(const layout *place)
{
    return place->shape[0] * place->shape[1] * place->shape[2];
}

static size_t row_start(const layout *place, size_t row)
{
    size_t c = row % place->shape[2], b = row / place->shape[2] % place->shape[1];
    size_t a = row / place->shape[2] / place->shape[1];
    return a * place->strides[0] + b * place->strides[1] + c * place->strides[2];
}

static void write_values(unsigned char *bytes, const layout *place, const float *values)
{
    for (size_t row = 0; row < row_count(place); row++) {
        unsigned char *at = bytes + row_start(place, row) * place->element;
        for (size_t d = 0; d < place->shape[3]; d++, values++, at += place->strides[3] * place->element) {
            if (place->element == sizeof(float)) {
                memcpy(at, values, sizeof *values);
                continue;
            }
            uint16_t half = laya_float_to_half(*values);
            memcpy(at, &half, sizeof half);
        }
    }
}

static void read_values(const unsigned char *bytes, const layout *place, float *values)
{
    for (size_t row = 0; row < row_count(place); row++) {
        const unsigned char *at = bytes + row_start(place, row) * place->element;
        for (size_t d = 0; d < place->shape[3]; d++, values++, at += place->strides[3] * place->element) {
            if (place->element == sizeof(float)) {
                memcpy(values, at, sizeof *values);
                continue;
            }
            uint16_t half;
            memcpy(&half, at, sizeof half);
            *values = laya_half_to_float(half);
        }
    }
}

/* ------------------------------------------------------------------ prediction */

static laya_status fail_access(const laya_coreml *model, const char *name, laya_error *error)
{
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s: the bytes of \"%s\" do not hold its shape and strides",
                     text_of(model->package), name);
}

static laya_status write_input(laya_coreml *model, NSDictionary *features, const laya_coreml_tensor *tensor,
                               NSMutableDictionary *values, laya_error *error)
{
    MLMultiArray *array = nil;
    LAYA_TRY(find_array(model, features, "input", tensor, &array, error));
    __block bool done = false;
    [array getMutableBytesWithHandler:^(void *bytes, NSInteger size, NSArray<NSNumber *> *strides) {
      layout place;
      done = find_layout(&place, tensor, [array dataType], strides, size);
      if (done) write_values(bytes, &place, tensor->values);
    }];
    if (!done) return fail_access(model, tensor->name, error);
    [values setObject:[MLFeatureValue featureValueWithMultiArray:array]
               forKey:[NSString stringWithUTF8String:tensor->name]];
    return LAYA_OK;
}

/* Read from what Core ML returned. That is the array that was offered when it used that, else one of its own, with
   strides of its own; nothing here depends on which. */
static laya_status read_output(laya_coreml *model, id<MLFeatureProvider> results, const laya_coreml_tensor *tensor,
                               laya_error *error)
{
    MLMultiArray *array = [[results featureValueForName:[NSString stringWithUTF8String:tensor->name]]
        multiArrayValue];
    if (!array) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: the prediction has no output \"%s\"", text_of(model->package),
                         tensor->name);
    }
    NSArray *shape = numbers(tensor->shape);
    if (element_size([array dataType]) == 0 || ![[array shape] isEqualToArray:shape]) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: the prediction's \"%s\" has the shape [%s] and type 0x%lx, expected [%s] of Float16 or "
                         "Float32",
                         text_of(model->package), tensor->name,
                         text_of([[array shape] componentsJoinedByString:@", "]), (unsigned long)[array dataType],
                         text_of([shape componentsJoinedByString:@", "]));
    }
    __block bool done = false;
    [array getBytesWithHandler:^(const void *bytes, NSInteger size) {
      layout place;
      done = find_layout(&place, tensor, [array dataType], [array strides], size);
      if (done) read_values(bytes, &place, tensor->values);
    }];
    return done ? LAYA_OK : fail_access(model, tensor->name, error);
}

static laya_status predict(laya_coreml *model, const laya_coreml_tensor *inputs, size_t input_count,
                           const laya_coreml_tensor *outputs, size_t output_count, laya_error *error)
{
    MLModelDescription *description = [model->model modelDescription];
    NSMutableDictionary *values = [NSMutableDictionary dictionary], *backings = [NSMutableDictionary dictionary];
    for (size_t at = 0; at < input_count; at++)
        LAYA_TRY(write_input(model, [description inputDescriptionsByName], &inputs[at], values, error));
    for (size_t at = 0; at < output_count; at++) {
        MLMultiArray *array = nil;
        LAYA_TRY(find_array(model, [description outputDescriptionsByName], "output", &outputs[at], &array, error));
        [backings setObject:array forKey:[NSString stringWithUTF8String:outputs[at].name]];
    }
    NSError *reason = nil;
    MLDictionaryFeatureProvider *provider = [[[MLDictionaryFeatureProvider alloc] initWithDictionary:values
                                                                                               error:&reason]
        autorelease];
    if (!provider) return fail_for(reason, model->package, "take the inputs", error);
    MLPredictionOptions *options = [[[MLPredictionOptions alloc] init] autorelease];
    [options setOutputBackings:backings];
    id<MLFeatureProvider> results = [model->model predictionFromFeatures:provider options:options error:&reason];
    if (!results) return fail_for(reason, model->package, "predict", error);
    for (size_t at = 0; at < output_count; at++) LAYA_TRY(read_output(model, results, &outputs[at], error));
    return LAYA_OK;
}

laya_status laya_coreml_run(laya_coreml *model, const laya_coreml_tensor *inputs, size_t input_count,
                            laya_coreml_tensor *outputs, size_t output_count, laya_error *error)
{
    laya_error_clear(error);
    return guard(model->package, error, ^laya_status {
      return predict(model, inputs, input_count, outputs, output_count, error);
    });
}

/* ------------------------------------------------------------------ compute plan */

typedef enum device { ON_CPU, ON_GPU, ON_NEURAL_ENGINE, ON_OTHER, ON_NONE, DEVICES } device;
static const char *const device_names[DEVICES] = {"cpu", "gpu", "neural_engine", "other", "none"};

typedef struct totals {
    uint64_t constants;
    uint64_t preferred[DEVICES]; /* operations that are no constants, by preferred device */
    double cost[DEVICES];
} totals;

static device device_of(id object)
{
    if (!object) return ON_NONE;
    if ([object isKindOfClass:[MLCPUComputeDevice class]]) return ON_CPU;
    if ([object isKindOfClass:[MLGPUComputeDevice class]]) return ON_GPU;
    return [object isKindOfClass:[MLNeuralEngineComputeDevice class]] ? ON_NEURAL_ENGINE : ON_OTHER;
}

/* "ios16.conv" is conv. */
static NSString *type_of(MLModelStructureProgramOperation *operation)
{
    return [[[operation operatorName] componentsSeparatedByString:@"."] lastObject];
}

static bool is_constant(MLModelStructureProgramOperation *operation)
{
    NSString *type = type_of(operation);
    return [type isEqualToString:@"const"] || [type hasPrefix:@"constexpr_"];
}

/* Wait for the plan of the compiled model: a package that is not compiled can end the process. */
static laya_status load_plan(const laya_coreml *model, MLComputePlan **plan, laya_error *error)
{
    enum { WAITING, DONE };
    NSConditionLock *lock = [[[NSConditionLock alloc] initWithCondition:WAITING] autorelease];
    __block MLComputePlan *loaded = nil;
    __block NSError *reason = nil;
    [MLComputePlan loadContentsOfURL:model->compiled
                       configuration:model->configuration
                   completionHandler:^(MLComputePlan *result, NSError *failure) {
                     [lock lock];
                     loaded = [result retain];
                     reason = [failure retain];
                     [lock unlockWithCondition:DONE];
                   }];
    [lock lockWhenCondition:DONE];
    [lock unlock];
    [loaded autorelease];
    [reason autorelease];
    *plan = loaded;
    return loaded ? LAYA_OK : fail_for(reason, [model->compiled path], "plan it", error);
}

/* The operations of a block and of the blocks inside them, in order. */
static NSArray *all_operations(MLModelStructureProgramBlock *block)
{
    NSMutableArray *operations = [NSMutableArray array];
    NSMutableArray *stack = [NSMutableArray arrayWithObject:[[block operations] objectEnumerator]];
    while ([stack count] > 0) {
        MLModelStructureProgramOperation *operation = [[stack lastObject] nextObject];
        if (!operation) {
            [stack removeLastObject];
            continue;
        }
        [operations addObject:operation];
        for (MLModelStructureProgramBlock *inner in [[operation blocks] reverseObjectEnumerator])
            [stack addObject:[[inner operations] objectEnumerator]];
    }
    return operations;
}

static totals count(MLComputePlan *plan, NSArray *operations)
{
    totals sums = {0};
    for (MLModelStructureProgramOperation *operation in operations) {
        device preferred = device_of(
            [[plan computeDeviceUsageForMLProgramOperation:operation] preferredComputeDevice]);
        if (is_constant(operation)) {
            sums.constants++;
        } else {
            sums.preferred[preferred]++;
            sums.cost[preferred] += [[plan estimatedCostOfMLProgramOperation:operation] weight];
        }
    }
    return sums;
}

static void put_text(laya_json_writer *w, const char *key, NSString *text)
{
    laya_json_name(w, key);
    if (text)
        laya_json_put_string(w, [text UTF8String], strlen([text UTF8String]));
    else
        laya_json_put_raw(w, "null");
}

static void put_operation(laya_json_writer *w, MLComputePlan *plan, MLModelStructureProgramOperation *operation)
{
    MLComputePlanDeviceUsage *usage = [plan computeDeviceUsageForMLProgramOperation:operation];
    MLComputePlanCost *cost = [plan estimatedCostOfMLProgramOperation:operation];
    laya_json_begin(w, '{');
    put_text(w, "name", [[[operation outputs] firstObject] name]);
    put_text(w, "type", type_of(operation));
    laya_json_member_string(w, "preferred", device_names[device_of([usage preferredComputeDevice])]);
    laya_json_name(w, "supported");
    laya_json_begin(w, '[');
    for (id supported in [usage supportedComputeDevices]) {
        const char *name = device_names[device_of(supported)];
        laya_json_put_string(w, name, strlen(name));
    }
    laya_json_end(w, ']');
    laya_json_name(w, "cost");
    if (cost)
        laya_json_put_repr(w, [cost weight]);
    else
        laya_json_put_raw(w, "null");
    laya_json_end(w, '}');
}

/* The devices of this machine: kind, and what is known beyond that. */
static void put_devices(laya_json_writer *w)
{
    laya_json_name(w, "devices");
    laya_json_begin(w, '[');
    for (id object in MLAllComputeDevices()) {
        device kind = device_of(object);
        laya_json_begin(w, '{');
        laya_json_member_string(w, "kind", device_names[kind]);
        if (kind == ON_GPU) put_text(w, "name", [(id)[object metalDevice] valueForKey:@"name"]);
        if (kind == ON_NEURAL_ENGINE) laya_json_member_uint(w, "cores", (uint64_t)[object totalCoreCount]);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
}

static void put_totals(laya_json_writer *w, const totals *sums)
{
    uint64_t operations = 0;
    for (device at = ON_CPU; at < DEVICES; at++) operations += sums->preferred[at];
    laya_json_member_uint(w, "operation_count", operations);
    laya_json_member_uint(w, "constant_count", sums->constants);
    laya_json_name(w, "preferred_count");
    laya_json_begin(w, '{');
    for (device at = ON_CPU; at < DEVICES; at++) laya_json_member_uint(w, device_names[at], sums->preferred[at]);
    laya_json_end(w, '}');
    laya_json_name(w, "cost_sum");
    laya_json_begin(w, '{');
    for (device at = ON_CPU; at < DEVICES; at++) {
        laya_json_name(w, device_names[at]);
        laya_json_put_repr(w, sums->cost[at]);
    }
    laya_json_end(w, '}');
}

static void put_seconds(laya_json_writer *w, const char *key, double seconds)
{
    laya_json_name(w, key);
    laya_json_put_repr(w, seconds);
}

static void put_plan(laya_buffer *out, const laya_coreml *model, MLComputePlan *plan, NSArray *operations)
{
    static const char *const units[] = {"CPU_ONLY", "CPU_AND_GPU", "ALL", "CPU_AND_NE"};
    totals sums = count(plan, operations);
    laya_json_writer w;
    laya_json_writer_init(&w, out, true);
    laya_json_begin(&w, '{');
    laya_json_member_string(&w, "class", "planned by Core ML");
    laya_json_member_string(&w, "compute_units", units[[model->configuration computeUnits]]);
    put_text(&w, "system", [[NSProcessInfo processInfo] operatingSystemVersionString]);
    put_devices(&w);
    put_totals(&w, &sums);
    put_seconds(&w, "compile_seconds", model->compile_seconds);
    put_seconds(&w, "load_seconds", model->load_seconds);
    laya_json_name(&w, "operations");
    laya_json_begin(&w, '[');
    for (MLModelStructureProgramOperation *operation in operations) put_operation(&w, plan, operation);
    laya_json_end(&w, ']');
    laya_json_end(&w, '}');
}

static laya_status describe_plan(const laya_coreml *model, laya_buffer *out, laya_error *error)
{
    if (!system_is_at_least(14, 4))
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "a compute plan needs macOS 14.4 or newer");
    MLComputePlan *plan = nil;
    LAYA_TRY(load_plan(model, &plan, error));
    MLModelStructureProgram *program = [[plan modelStructure] program];
    MLModelStructureProgramFunction *function = [[program functions] objectForKey:@"main"];
    if (!function) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: the plan shows %s", text_of([model->compiled path]),
                         program ? "no function \"main\"" : "no ML program");
    }
    put_plan(out, model, plan, all_operations([function block]));
    return out->failed ? laya_fail_memory(error, 0) : LAYA_OK;
}

laya_status laya_coreml_plan(laya_coreml *model, char **json, laya_error *error)
{
    laya_buffer out, *text = &out;
    laya_error_clear(error);
    laya_buffer_init(&out, &model->allocator);
    laya_status status = guard(model->package, error, ^laya_status {
      return describe_plan(model, text, error);
    });
    if (status != LAYA_OK) laya_buffer_close(&out);
    *json = status == LAYA_OK ? out.data : NULL;
    return status;
}
