/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, features, descriptions and options of the stand-in; its switches. */
#include "objects.h"

#include "base/half.h"

#import <Foundation/NSDebug.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

stand_in_settings stand_in;
stand_in_record stand_in_seen;
static atomic_long live_objects;

NSString *const MLModelErrorDomain = @"com.apple.CoreML";

void stand_in_reset(void)
{
    stand_in = (stand_in_settings){
        .system_major = 15, .domain = "com.apple.CoreML", .description = "The stand-in was told to fail."};
    stand_in_seen = (stand_in_record){.compute_units = -1};
}

long stand_in_live_objects(void)
{
    return atomic_load(&live_objects);
}

long stand_in_all_objects(void)
{
    long sum = 0;
    GSDebugAllocationActive(YES);
    Class *classes = GSDebugAllocationClassList();
    for (Class *class = classes; *class; class ++) sum += GSDebugAllocationCount(*class);
    NSZoneFree(NSDefaultMallocZone(), classes);
    return sum;
}

NSError *stand_in_error(NSString *domain, NSInteger code, NSString *description)
{
    NSMutableDictionary *facts = [NSMutableDictionary dictionary];
    [facts setObject:description forKey:NSLocalizedDescriptionKey];
    if (stand_in.underlying) {
        NSDictionary *inner = [NSDictionary dictionaryWithObject:@"a cause below" forKey:NSLocalizedDescriptionKey];
        [facts setObject:[NSError errorWithDomain:@"com.apple.espresso" code:-7 userInfo:inner]
                  forKey:NSUnderlyingErrorKey];
    }
    return [NSError errorWithDomain:domain code:code userInfo:facts];
}

/* GNUstep gives an exception a reason when it has none; on macOS it stays without one. */
@interface StandInException : NSException
@end

@implementation StandInException
- (NSString *)reason
{
    return stand_in.description ? [super reason] : nil;
}
@end

bool stand_in_goes_on(stand_in_failure failure, NSError **error)
{
    NSString *text = stand_in.description ? [NSString stringWithUTF8String:stand_in.description] : nil;
    if (failure == STAND_IN_EXCEPTION)
        @throw [StandInException exceptionWithName:@"StandInException" reason:text userInfo:nil];
    if (failure == STAND_IN_STRING) @throw @"text";
    if (failure == STAND_IN_ERROR && error && text)
        *error = stand_in_error([NSString stringWithUTF8String:stand_in.domain], stand_in.code, text);
    return failure == STAND_IN_WORKS;
}

@implementation StandInObject
- (id)init
{
    self = [super init];
    atomic_fetch_add(&live_objects, 1);
    return self;
}

- (void)dealloc
{
    atomic_fetch_sub(&live_objects, 1);
    [super dealloc];
}
@end

/* A category that comes later replaces the method of the class, which is wanted here. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wobjc-protocol-method-implementation"
@implementation NSProcessInfo (StandIn)
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version
{
    if (version.majorVersion != stand_in.system_major) return version.majorVersion < stand_in.system_major;
    return version.minorVersion <= stand_in.system_minor;
}

- (NSString *)operatingSystemVersionString
{
    return [NSString stringWithFormat:@"Version %d.%d (Build 1A1)", stand_in.system_major, stand_in.system_minor];
}
@end
#pragma clang diagnostic pop

/* In place of GNUstep's, which looks into the user's home. */
NSArray *NSSearchPathForDirectoriesInDomains(NSSearchPathDirectory directory, NSSearchPathDomainMask domains,
                                             BOOL expandTilde)
{
    (void)domains, (void)expandTilde;
    if (directory != NSCachesDirectory || !stand_in.caches) return [NSArray array];
    return [NSArray arrayWithObject:[NSString stringWithUTF8String:stand_in.caches]];
}

/* ------------------------------------------------------------------ arrays */

static NSInteger bytes_of(MLMultiArrayDataType type)
{
    return type == MLMultiArrayDataTypeFloat16 ? 2 : type == MLMultiArrayDataTypeDouble ? 8 : 4;
}

@implementation MLMultiArray
- (id)initWithDataPointer:(void *)dataPointer
                    shape:(NSArray *)shape
                 dataType:(MLMultiArrayDataType)dataType
                  strides:(NSArray *)strides
              deallocator:(void (^)(void *bytes))deallocator
                    error:(NSError **)error
{
    self = [super init];
    if (!stand_in_goes_on(stand_in.array, error)) {
        deallocator(dataPointer);
        [self release];
        return nil;
    }
    stand_in_seen.wrapped++;
    _shape = [shape copy];
    _dataType = dataType;
    if (stand_in.move_arrays) {
        deallocator(dataPointer);
        [self takeMemoryWithPadding:3];
        return self;
    }
    _bytes = dataPointer;
    _strides = [strides copy];
    _deallocator = Block_copy(deallocator);
    return self;
}

- (void)dealloc
{
    if (_deallocator) {
        _deallocator(_bytes);
        Block_release(_deallocator);
    }
    [_shape release];
    [_strides release];
    [super dealloc];
}

- (NSArray *)shape
{
    return _shape;
}

- (NSArray *)strides
{
    if (stand_in.short_strides) return [_strides subarrayWithRange:NSMakeRange(1, 3)];
    if (!stand_in.stride) return _strides;
    NSMutableArray *changed = [NSMutableArray arrayWithArray:_strides];
    [changed replaceObjectAtIndex:1 withObject:[NSNumber numberWithLongLong:stand_in.stride]];
    return changed;
}

- (MLMultiArrayDataType)dataType
{
    return _dataType;
}

- (NSInteger)size
{
    NSInteger last = 0;
    for (NSUInteger axis = 0; axis < [_shape count]; axis++)
        last += ([[_shape objectAtIndex:axis] integerValue] - 1) * [[_strides objectAtIndex:axis] integerValue];
    return (last + 1) * bytes_of(_dataType);
}

- (void)getBytesWithHandler:(void (^)(const void *bytes, NSInteger size))handler
{
    handler(_bytes, [self size] - (NSInteger)stand_in.missing_read);
}

- (void)getMutableBytesWithHandler:(void (^)(void *mutableBytes, NSInteger size, NSArray<NSNumber *> *strides))handler
{
    handler(_bytes, [self size] - (NSInteger)stand_in.missing_write, [self strides]);
}
@end

@implementation MLMultiArray (StandIn)
+ (id)arrayOfShape:(NSArray *)shape dataType:(MLMultiArrayDataType)dataType padding:(NSInteger)padding
{
    MLMultiArray *array = [[[self alloc] init] autorelease];
    array->_shape = [shape copy];
    array->_dataType = dataType;
    [array takeMemoryWithPadding:padding];
    return array;
}

- (void)takeMemoryWithPadding:(NSInteger)padding
{
    NSInteger stride = stand_in.move_arrays ? 2 : 1;
    NSMutableArray *strides = [[NSMutableArray alloc] init];
    for (NSNumber *dimension in [_shape reverseObjectEnumerator]) {
        [strides insertObject:[NSNumber numberWithInteger:stride] atIndex:0];
        stride *= [dimension integerValue] + ([strides count] == 1 ? padding : 0);
    }
    _strides = strides;
    _bytes = malloc((size_t)(stride * bytes_of(_dataType)));
    memset(_bytes, 0xFF, (size_t)(stride * bytes_of(_dataType)));
    _deallocator = Block_copy(^(void *block) {
      free(block);
    });
}

/* The place of element number `index` in C order. */
- (unsigned char *)element:(NSInteger)index
{
    NSInteger offset = 0;
    for (NSUInteger axis = [_shape count]; axis-- > 0;) {
        NSInteger dimension = [[_shape objectAtIndex:axis] integerValue];
        offset += index % dimension * [[_strides objectAtIndex:axis] integerValue];
        index /= dimension;
    }
    return _bytes + offset * bytes_of(_dataType);
}

- (NSInteger)elements
{
    NSInteger elements = 1;
    for (NSNumber *dimension in _shape) elements *= [dimension integerValue];
    return elements;
}

- (void)getValues:(float *)values
{
    for (NSInteger at = 0; at < [self elements]; at++) {
        uint16_t half;
        memcpy(&half, [self element:at], sizeof half);
        if (_dataType == MLMultiArrayDataTypeFloat16)
            values[at] = laya_half_to_float(half);
        else
            memcpy(&values[at], [self element:at], sizeof values[at]);
    }
}

- (void)setValues:(const float *)values
{
    for (NSInteger at = 0; at < [self elements]; at++) {
        uint16_t half = laya_float_to_half(values[at]);
        if (_dataType == MLMultiArrayDataTypeFloat16)
            memcpy([self element:at], &half, sizeof half);
        else
            memcpy([self element:at], &values[at], sizeof values[at]);
    }
}
@end

/* ------------------------------------------------------------------ features */

@implementation MLFeatureValue
+ (id)featureValueWithMultiArray:(MLMultiArray *)array
{
    MLFeatureValue *value = [[[self alloc] init] autorelease];
    value->_array = [array retain];
    return value;
}

- (void)dealloc
{
    [_array release];
    [super dealloc];
}

- (MLMultiArray *)multiArrayValue
{
    return _array;
}
@end

@implementation MLDictionaryFeatureProvider
- (id)initWithDictionary:(NSDictionary *)dictionary error:(NSError **)error
{
    self = [self initWithValues:dictionary];
    if (stand_in_goes_on(stand_in.provider, error)) return self;
    [self release];
    return nil;
}

- (void)dealloc
{
    [_values release];
    [super dealloc];
}

- (MLFeatureValue *)featureValueForName:(NSString *)name
{
    return [_values objectForKey:name];
}
@end

@implementation MLDictionaryFeatureProvider (StandIn)
- (id)initWithValues:(NSDictionary *)values
{
    self = [super init];
    _values = [values copy];
    return self;
}
@end

@implementation MLMultiArrayConstraint
- (id)initWithFeature:(const stand_in_feature *)feature
{
    self = [super init];
    NSMutableArray *shape = [[NSMutableArray alloc] init];
    for (int axis = 0; axis < 4 && !stand_in.open_shapes; axis++)
        [shape addObject:[NSNumber numberWithInt:(int)feature->shape[axis]]];
    _shape = shape;
    _dataType = feature->half ? MLMultiArrayDataTypeFloat16 : MLMultiArrayDataTypeFloat32;
    if (stand_in.declared_type) _dataType = (MLMultiArrayDataType)stand_in.declared_type;
    return self;
}

- (void)dealloc
{
    [_shape release];
    [super dealloc];
}

- (NSArray *)shape
{
    return _shape;
}

- (MLMultiArrayDataType)dataType
{
    return _dataType;
}
@end

@implementation MLFeatureDescription
- (id)initWithFeature:(const stand_in_feature *)feature
{
    self = [super init];
    if (!stand_in.no_arrays) _constraint = [[MLMultiArrayConstraint alloc] initWithFeature:feature];
    return self;
}

- (void)dealloc
{
    [_constraint release];
    [super dealloc];
}

- (MLMultiArrayConstraint *)multiArrayConstraint
{
    return _constraint;
}
@end

static NSDictionary *describe(stand_in_network *network, bool outputs)
{
    NSMutableDictionary *features = [[NSMutableDictionary alloc] init];
    for (size_t at = 0; at < stand_in_network_features(network, outputs); at++) {
        stand_in_feature feature = stand_in_network_feature(network, outputs, at);
        MLFeatureDescription *description = [[MLFeatureDescription alloc] initWithFeature:&feature];
        [features setObject:description forKey:[NSString stringWithUTF8String:feature.name]];
        [description release];
    }
    return features;
}

@implementation MLModelDescription
- (void)dealloc
{
    [_inputs release];
    [_outputs release];
    [super dealloc];
}

- (NSDictionary *)inputDescriptionsByName
{
    return _inputs;
}

- (NSDictionary *)outputDescriptionsByName
{
    return _outputs;
}
@end

@implementation MLModelDescription (StandIn)
- (id)initWithNetwork:(stand_in_network *)network
{
    self = [super init];
    _inputs = describe(network, false);
    _outputs = describe(network, true);
    return self;
}
@end

/* ------------------------------------------------------------------ options */

@implementation MLModelConfiguration
- (MLComputeUnits)computeUnits
{
    return _computeUnits;
}

- (void)setComputeUnits:(MLComputeUnits)computeUnits
{
    _computeUnits = computeUnits;
}
@end

@implementation MLPredictionOptions
- (void)dealloc
{
    [_outputBackings release];
    [super dealloc];
}

- (NSDictionary *)outputBackings
{
    return _outputBackings;
}

- (void)setOutputBackings:(NSDictionary *)outputBackings
{
    [_outputBackings autorelease];
    _outputBackings = [outputBackings copy];
}
@end
