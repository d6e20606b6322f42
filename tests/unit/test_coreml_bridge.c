/* SPDX-License-Identifier: Apache-2.0 */
/* The Core ML bridge against the stand-in of tests/coreml-stand-in: every path, with every way to fail. */
#include "support.h"
#include "tree.h"

#include "base/json.h"
#include "macos/coreml_bridge.h"
#include "network.h"
#include "stand_in.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A digest as the caller would give it; nobody compares it with the package. */
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char bundles[TEST_PATH_SIZE]; /* of all tests: the bundles "fp16", "fp32" and "long" */
static char folder[TEST_PATH_SIZE];  /* of one test */
static laya_error error;
static long living_before; /* what a test that failed left does not count */

/* ------------------------------------------------------------------ set-up */

static void export_bundle(const laya_model *model, const char *name, laya_package_precision precision,
                          uint32_t length)
{
    char path[TEST_PATH_SIZE];
    laya_export_options options;
    laya_export_options_init(&options);
    options.graph = LAYA_GRAPH_LEAN;
    options.precision = precision;
    options.length = length;
    options.markers = 4;
    if (laya_model_export(model, &options, test_join(path, bundles, name), &error) != LAYA_OK)
        fail_msg("%s", error.message);
}

static int export_bundles(void **state)
{
    (void)state;
    test_make_folder(bundles);
    laya_model *model = test_open_model(TEST_DEMO);
    export_bundle(model, "fp16", LAYA_PACKAGE_FP16, 16);
    export_bundle(model, "fp32", LAYA_PACKAGE_FP32, 16);
    export_bundle(model, "long", LAYA_PACKAGE_FP16, 64);
    laya_model_close(model);
    return 0;
}

static int remove_bundles(void **state)
{
    (void)state;
    test_remove_tree(bundles);
    return 0;
}

/* The defaults; compiled models are made in the folder of the test too, from where the bridge takes them away. */
static void reset(void)
{
    stand_in_reset();
    stand_in.temporary = folder;
}

static int begin(void **state)
{
    (void)state;
    test_make_folder(folder);
    reset();
    living_before = stand_in_live_objects();
    return 0;
}

enum { PATIENCE = 5000 };

/* Wait until a count is this value or less; the thread that delivered a plan needs a moment to end. */
static bool comes_down(long (*count)(void), long most, int moments)
{
    const struct timespec moment = {0, 1000000};
    for (int wait = 0; wait < moments && count() > most; wait++) nanosleep(&moment, NULL);
    return count() <= most;
}

/* Every object of the framework is released, whatever happened. */
static int end(void **state)
{
    (void)state;
    test_remove_tree(folder);
    return comes_down(stand_in_live_objects, living_before, PATIENCE) ? 0 : -1;
}

static const char *package_path(char path[TEST_PATH_SIZE], const char *precision)
{
    char bundle[TEST_PATH_SIZE];
    return test_join(path, test_join(bundle, bundles, precision), "model.mlpackage");
}

static laya_status try_open(const char *precision, laya_compute_units units, laya_coreml **model)
{
    char package[TEST_PATH_SIZE];
    return laya_coreml_open(package_path(package, precision), DIGEST, units, folder, NULL, model, &error);
}

static laya_coreml *open_model(const char *precision)
{
    laya_coreml *model;
    if (try_open(precision, LAYA_UNITS_CPU_NE, &model) != LAYA_OK) fail_msg("%s", error.message);
    assert_string_equal(error.message, "");
    return model;
}

/* Opening fails with this status and these words. */
static void refuses_open(laya_status status, const char *words)
{
    laya_coreml *model = (laya_coreml *)1;
    assert_int_equal(try_open("fp16", LAYA_UNITS_CPU_NE, &model), status);
    assert_null(model);
    assert_int_equal(error.status, status);
    assert_contains(error.message, words);
}

/* ------------------------------------------------------------------ tensors of a package */

enum { MOST = 8 };

typedef struct call {
    stand_in_network *direct; /* the interpreter on the same package */
    laya_coreml_tensor inputs[MOST], outputs[MOST];
    size_t input_count, output_count;
} call;

static size_t elements(const laya_coreml_tensor *tensor)
{
    return (size_t)(tensor->shape[0] * tensor->shape[1] * tensor->shape[2] * tensor->shape[3]);
}

static size_t make_tensors(stand_in_network *network, bool outputs, laya_coreml_tensor tensors[MOST])
{
    size_t count = stand_in_network_features(network, outputs);
    assert_true(count > 0 && count <= MOST);
    for (size_t at = 0; at < count; at++) {
        stand_in_feature feature = stand_in_network_feature(network, outputs, at);
        tensors[at].name = feature.name;
        memcpy(tensors[at].shape, feature.shape, sizeof feature.shape);
        tensors[at].values = calloc(elements(&tensors[at]), sizeof(float));
        assert_non_null(tensors[at].values);
    }
    return count;
}

/* Inputs between -1 and 1, not all of which fp16 can hold, differ with the seed. */
static void fill_inputs(call *c, uint32_t seed)
{
    for (size_t at = 0; at < c->input_count; at++) {
        for (size_t i = 0; i < elements(&c->inputs[at]); i++) {
            seed = seed * 1664525u + 1013904223u;
            c->inputs[at].values[i] = (float)(seed >> 8) * 0x1p-23f - 1;
        }
    }
}

static void begin_call(call *c, const char *precision)
{
    char path[TEST_PATH_SIZE], message[1024];
    *c = (call){.direct = stand_in_network_open(test_join(path, bundles, precision), message)};
    if (!c->direct) fail_msg("%s", message);
    c->input_count = make_tensors(c->direct, false, c->inputs);
    c->output_count = make_tensors(c->direct, true, c->outputs);
    assert_int_equal(c->input_count, 5);
    assert_int_equal(c->output_count, 2);
    fill_inputs(c, 1);
}

static void end_call(call *c)
{
    for (size_t at = 0; at < c->input_count; at++) free(c->inputs[at].values);
    for (size_t at = 0; at < c->output_count; at++) free(c->outputs[at].values);
    stand_in_network_close(c->direct);
}

static laya_status run(laya_coreml *model, call *c)
{
    return laya_coreml_run(model, c->inputs, c->input_count, c->outputs, c->output_count, &error);
}

/* The bridge's outputs are those of the interpreter, bit for bit. */
static void runs_as_interpreter(laya_coreml *model, call *c)
{
    char message[1024];
    for (size_t at = 0; at < c->output_count; at++)
        memset(c->outputs[at].values, 0xFF, elements(&c->outputs[at]) * sizeof(float));
    if (run(model, c) != LAYA_OK) fail_msg("%s", error.message);
    assert_string_equal(error.message, "");
    for (size_t at = 0; at < c->input_count; at++) {
        memcpy(stand_in_network_feature(c->direct, false, at).values, c->inputs[at].values,
               elements(&c->inputs[at]) * sizeof(float));
    }
    assert_true(stand_in_network_run(c->direct, message));
    for (size_t at = 0; at < c->output_count; at++) {
        const float *expected = stand_in_network_feature(c->direct, true, at).values;
        assert_memory_equal(c->outputs[at].values, expected, elements(&c->outputs[at]) * sizeof(float));
        assert_true(isfinite(expected[0]) && expected[0] != expected[1]);
    }
}

/* A prediction fails with FORMAT, or `status`, and these words. */
static void refuses_run_with(laya_coreml *model, call *c, laya_status status, const char *words)
{
    assert_int_equal(run(model, c), status);
    assert_int_equal(error.status, status);
    assert_contains(error.message, words);
}

static void refuses_run(laya_coreml *model, call *c, const char *words)
{
    refuses_run_with(model, c, LAYA_ERROR_FORMAT, words);
}

/* ------------------------------------------------------------------ opening */

/* Loading took a moment, and so did compiling, or it was not done. */
static void check_seconds(const char *plan, bool compiled)
{
    laya_json doc;
    double compiling, loading;
    if (laya_json_parse(&doc, plan, strlen(plan), NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_true(laya_json_to_double(laya_json_get(laya_json_root(&doc), "compile_seconds"), &compiling));
    assert_true(laya_json_to_double(laya_json_get(laya_json_root(&doc), "load_seconds"), &loading));
    assert_true(compiled ? compiling > 0 : compiling == 0);
    assert_true(loading > 0);
    laya_json_close(&doc);
}

static void plan_tells_seconds(laya_coreml *model, bool compiled)
{
    char *json;
    if (laya_coreml_plan(model, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    check_seconds(json, compiled);
    free(json);
}

static void test_compiles_once(void **state)
{
    (void)state;
    laya_coreml *model = open_model("fp16");
    plan_tells_seconds(model, true);
    laya_coreml_close(model);
    assert_int_equal(stand_in_seen.compilations, 1);
    char *tree = test_list_tree(folder);
    static const char expected[] = DIGEST ".mlmodelc/\n" DIGEST ".mlmodelc/model.mlpackage/\n";
    assert_int_equal(strncmp(tree, expected, sizeof expected - 1), 0);
    assert_null(strstr(tree, "partial"));
    free(tree);

    model = open_model("fp16");
    plan_tells_seconds(model, false);
    laya_coreml_close(model);
    assert_int_equal(stand_in_seen.compilations, 1);
    assert_int_equal(stand_in_seen.loads, 2);
    laya_coreml_close(NULL);
}

static laya_coreml *rival;

static void open_rival(void)
{
    stand_in.compiled = NULL;
    rival = open_model("fp16");
}

/* Another process finishes the same compilation first: its result is used. */
static void test_rival(void **state)
{
    (void)state;
    stand_in.compiled = open_rival;
    laya_coreml *model = open_model("fp16");
    assert_int_equal(stand_in_seen.compilations, 2);
    call c;
    begin_call(&c, "fp16");
    runs_as_interpreter(model, &c);
    runs_as_interpreter(rival, &c);
    end_call(&c);
    laya_coreml_close(model);
    laya_coreml_close(rival);
}

static void test_default_cache(void **state)
{
    (void)state;
    char package[TEST_PATH_SIZE], caches[TEST_PATH_SIZE];
    laya_coreml *model;
    package_path(package, "fp16");
    assert_int_equal(laya_coreml_open(package, DIGEST, LAYA_UNITS_ALL, NULL, NULL, &model, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "there is no folder for compiled models; name one");
    stand_in.caches = test_join(caches, folder, "Caches");
    if (laya_coreml_open(package, DIGEST, LAYA_UNITS_ALL, NULL, NULL, &model, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    laya_coreml_close(model);
    char *tree = test_list_tree(folder);
    assert_contains(tree, "Caches/laya/" DIGEST ".mlmodelc/model.mlpackage/Manifest.json");
    free(tree);
}

static void test_compute_units(void **state)
{
    (void)state;
    static const laya_compute_units units[] = {LAYA_UNITS_CPU, LAYA_UNITS_CPU_GPU, LAYA_UNITS_ALL, LAYA_UNITS_CPU_NE};
    for (size_t at = 0; at < sizeof units / sizeof units[0]; at++) {
        laya_coreml *model;
        assert_int_equal(try_open("fp16", units[at], &model), LAYA_OK);
        /* MLComputeUnits: CPUOnly 0, CPUAndGPU 1, All 2, CPUAndNeuralEngine 3 */
        assert_int_equal(stand_in_seen.compute_units, at);
        laya_coreml_close(model);
    }
}

static void test_old_systems(void **state)
{
    (void)state;
    laya_coreml *model;
    assert_true(laya_coreml_available());
    stand_in.system_major = 12, stand_in.system_minor = 2;
    assert_false(laya_coreml_available());
    refuses_open(LAYA_ERROR_UNSUPPORTED, "Core ML needs macOS 12.3 or newer");
    stand_in.system_minor = 3;
    assert_true(laya_coreml_available());
    refuses_open(LAYA_ERROR_UNSUPPORTED, "compute units CPU_AND_NE need macOS 13 or newer");
    assert_int_equal(stand_in_seen.compilations, 0);
    assert_int_equal(try_open("fp16", LAYA_UNITS_ALL, &model), LAYA_OK);
    laya_coreml_close(model);
}

static void test_files(void **state)
{
    (void)state;
    char package[TEST_PATH_SIZE], cache[TEST_PATH_SIZE];
    laya_coreml *model;
    assert_int_equal(
        laya_coreml_open("/nowhere/model.mlpackage", DIGEST, LAYA_UNITS_CPU, folder, NULL, &model, &error),
        LAYA_ERROR_IO);
    assert_contains(error.message, "/nowhere/model.mlpackage: expected the directory of a package");

    test_write_file(test_join(cache, folder, "file"), "x", 1);
    assert_int_equal(
        laya_coreml_open(package_path(package, "fp16"), DIGEST, LAYA_UNITS_CPU, cache, NULL, &model, &error),
        LAYA_ERROR_IO);
    assert_contains(error.message, "file: expected a directory");
    assert_int_equal(
        laya_coreml_open(package_path(package, "fp16"), DIGEST, LAYA_UNITS_CPU, "\xff", NULL, &model, &error),
        LAYA_ERROR_IO);
    assert_contains(error.message, "there is no folder for compiled models");

    stand_in.vanishes = true;
    refuses_open(LAYA_ERROR_IO, "the compiled model cannot be moved there: ");
    char *tree = test_list_tree(folder);
    assert_string_equal(tree, "file\n");
    free(tree);
}

/* A compiled model that no longer loads. */
static void test_damaged_cache(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    test_join(path, folder, DIGEST ".mlmodelc");
    assert_int_equal(mkdir(path, 0755), 0);
    refuses_open(LAYA_ERROR_FORMAT, DIGEST ".mlmodelc: Core ML could not load it: ");
    assert_contains(error.message, "(com.apple.CoreML 3). A file could not be read or written");
}

/* ------------------------------------------------------------------ failures of the framework */

static void test_compile_failures(void **state)
{
    (void)state;
    stand_in.compile = STAND_IN_ERROR;
    stand_in.code = 42;
    refuses_open(LAYA_ERROR_FORMAT,
                 "fp16/model.mlpackage: Core ML could not compile it: The stand-in was told to fail. "
                 "(com.apple.CoreML 42)");
    stand_in.compile = STAND_IN_NOTHING;
    refuses_open(LAYA_ERROR_FORMAT, "model.mlpackage: Core ML could not compile it and gave no reason");
    stand_in.compile = STAND_IN_EXCEPTION;
    refuses_open(LAYA_ERROR_FORMAT,
                 "model.mlpackage: Core ML raised StandInException: The stand-in was told to fail.");
    stand_in.compile = STAND_IN_STRING;
    refuses_open(LAYA_ERROR_FORMAT, "model.mlpackage: Core ML threw something that is no NSException");
    char *tree = test_list_tree(folder);
    assert_string_equal(tree, "");
    free(tree);
}

static void test_load_failures(void **state)
{
    (void)state;
    stand_in.load = STAND_IN_ERROR;
    stand_in.description =
        "Failed to build the model execution plan using a model architecture file 'model.mil' with "
        "error code: -14.";
    refuses_open(LAYA_ERROR_FORMAT,
                 "with error code: -14. (com.apple.CoreML 0). Not documented by Apple; seen where the "
                 "Neural Engine's compiler refuses a program");
    stand_in.description = "error code: -4.";
    refuses_open(LAYA_ERROR_FORMAT, "seen where loading a program for the Neural Engine fails");
    stand_in.description = "error code: -41.";
    refuses_open(LAYA_ERROR_FORMAT, "could not load it: error code: -41. (com.apple.CoreML 0)");
    assert_null(strstr(error.message, "Not documented"));
    stand_in.domain = "another", stand_in.code = 3, stand_in.underlying = true;
    refuses_open(LAYA_ERROR_FORMAT, "(another 3; under it com.apple.espresso -7: a cause below)");
    assert_null(strstr(error.message, "A file could not"));
    stand_in.load = STAND_IN_EXCEPTION, stand_in.description = NULL;
    refuses_open(LAYA_ERROR_FORMAT, "Core ML raised StandInException: none");
}

static void test_predict_failures(void **state)
{
    (void)state;
    call c;
    begin_call(&c, "fp16");
    laya_coreml *model = open_model("fp16");
    stand_in.array = STAND_IN_ERROR;
    refuses_run(model, &c, "Core ML could not make an array: The stand-in was told to fail.");
    stand_in.array = STAND_IN_WORKS, stand_in.provider = STAND_IN_ERROR;
    refuses_run(model, &c, "Core ML could not take the inputs: ");
    stand_in.provider = STAND_IN_WORKS, stand_in.predict = STAND_IN_ERROR;
    stand_in.code = 1;
    refuses_run(model, &c,
                "Core ML could not predict: The stand-in was told to fail. (com.apple.CoreML 1). An input has "
                "another type or shape than the model declares");
    stand_in.predict = STAND_IN_NOTHING;
    refuses_run(model, &c, "Core ML could not predict and gave no reason");
    stand_in.predict = STAND_IN_EXCEPTION;
    refuses_run(model, &c, "Core ML raised StandInException");
    stand_in.predict = STAND_IN_STRING;
    refuses_run(model, &c, "Core ML threw something");
    c.input_count--;
    stand_in.predict = STAND_IN_WORKS;
    refuses_run(model, &c, "is required but not specified.");
    c.input_count++;
    runs_as_interpreter(model, &c);
    laya_coreml_close(model);
    end_call(&c);
}

/* ------------------------------------------------------------------ predictions */

/* Several calls in both element types, with and without backings, rows of outputs as they are and padded. */
static void test_predicts(void **state)
{
    (void)state;
    static const char *const precisions[] = {"fp16", "fp32"};
    for (size_t at = 0; at < 2; at++) {
        char cache[TEST_PATH_SIZE], package[TEST_PATH_SIZE];
        call c;
        laya_coreml *model;
        begin_call(&c, precisions[at]);
        reset();
        assert_int_equal(laya_coreml_open(package_path(package, precisions[at]), DIGEST, LAYA_UNITS_CPU_NE,
                                          test_join(cache, folder, precisions[at]), NULL, &model, &error),
                         LAYA_OK);
        runs_as_interpreter(model, &c);
        long living = stand_in_live_objects();
        fill_inputs(&c, 2);
        runs_as_interpreter(model, &c);
        assert_int_equal(stand_in_live_objects(), living); /* nothing stays */
        assert_int_equal(stand_in_seen.wrapped, 7);        /* five inputs, two outputs, used again */
        assert_int_equal(stand_in_seen.backings_used, 4);
        stand_in.ignore_backings = true;
        fill_inputs(&c, 3);
        runs_as_interpreter(model, &c);
        stand_in.padding = 24;
        fill_inputs(&c, 4);
        runs_as_interpreter(model, &c);
        assert_int_equal(stand_in_seen.backings_used, 4);
        assert_int_equal(stand_in_seen.backings_ignored, 4);
        assert_int_equal(stand_in_live_objects(), living);
        laya_coreml_close(model);
        end_call(&c);
    }
}

/* Arrays whose memory Core ML has laid out anew, inputs and backings alike. */
static void test_foreign_layout(void **state)
{
    (void)state;
    call c;
    begin_call(&c, "fp16");
    stand_in.move_arrays = true;
    laya_coreml *model = open_model("fp16");
    runs_as_interpreter(model, &c);
    fill_inputs(&c, 2);
    runs_as_interpreter(model, &c);
    assert_int_equal(stand_in_seen.backings_used, 4);
    laya_coreml_close(model);
    end_call(&c);
}

static void test_features_checked(void **state)
{
    (void)state;
    call c;
    begin_call(&c, "fp16");
    laya_coreml *model = open_model("fp16");
    laya_coreml_tensor kept = c.inputs[1];
    c.inputs[1].name = "elsewhere";
    refuses_run(model, &c, "model.mlpackage: the model has no multi-array input \"elsewhere\"");
    c.inputs[1] = kept;
    c.inputs[1].shape[3]++;
    refuses_run(model, &c, "input \"full_mask\" has the shape [1, 16, 1, 16], expected [1, 16, 1, 17]");
    c.inputs[1] = kept;
    kept = c.outputs[0];
    c.outputs[0].name = "embeddings"; /* an input */
    refuses_run(model, &c, "the model has no multi-array output \"embeddings\"");
    c.outputs[0] = kept;
    runs_as_interpreter(model, &c);
    laya_coreml_close(model);

    stand_in.declared_type = 0x20020;
    model = open_model("fp16");
    refuses_run(model, &c, "input \"embeddings\" has the element type 0x20020, expected Float16 or Float32");
    laya_coreml_close(model);
    stand_in.declared_type = 0, stand_in.no_arrays = true;
    model = open_model("fp16");
    refuses_run(model, &c, "the model has no multi-array input \"embeddings\"");
    laya_coreml_close(model);
    end_call(&c);
}

/* The model leaves its shapes open: those of the call count, also when they change. */
static void test_open_shapes(void **state)
{
    (void)state;
    call c;
    begin_call(&c, "fp16");
    stand_in.open_shapes = true;
    laya_coreml *model = open_model("fp16");
    runs_as_interpreter(model, &c);
    laya_coreml_tensor kept = c.inputs[0];
    c.inputs[0].shape[3] = 8;
    refuses_run(model, &c, "Feature embeddings is required but not specified.");
    c.inputs[0].shape[3] = 0;
    refuses_run(model, &c, "the bytes of \"embeddings\" do not hold its shape and strides");
    c.inputs[0].shape[0] = c.inputs[0].shape[3] = INT64_MAX;
    refuses_run_with(model, &c, LAYA_ERROR_MEMORY, "out of memory");
    c.inputs[0].shape[0] = c.inputs[0].shape[1] = 1, c.inputs[0].shape[3] = INT64_MAX / 4;
    if (!TEST_SANITIZED)
        refuses_run_with(model, &c, LAYA_ERROR_MEMORY, "could not allocate 4611686018427387902 bytes");
    c.inputs[0] = kept;
    runs_as_interpreter(model, &c);
    laya_coreml_close(model);
    end_call(&c);
}

static void test_outputs_checked(void **state)
{
    (void)state;
    call c;
    begin_call(&c, "fp16");
    laya_coreml *model = open_model("fp16");
    stand_in.lose_outputs = true;
    refuses_run(model, &c, "the prediction has no output \"option_logits\"");
    stand_in.lose_outputs = false, stand_in.swap_axes = true;
    refuses_run(model, &c,
                "the prediction's \"option_logits\" has the shape [4, 1, 1, 1] and type 0x10010, expected "
                "[1, 1, 1, 4] of Float16 or Float32");
    stand_in.swap_axes = false, stand_in.output_type = 0x10040;
    refuses_run(model, &c, "has the shape [1, 1, 1, 4] and type 0x10040");
    stand_in.output_type = 0, stand_in.missing_read = 1;
    refuses_run(model, &c, "the bytes of \"option_logits\" do not hold its shape and strides");
    stand_in.missing_read = 100000;
    refuses_run(model, &c, "the bytes of \"option_logits\" do not hold");
    stand_in.missing_read = 0, stand_in.missing_write = 1;
    refuses_run(model, &c, "the bytes of \"embeddings\" do not hold its shape and strides");
    stand_in.missing_write = 0, stand_in.short_strides = true;
    refuses_run(model, &c, "the bytes of \"embeddings\" do not hold");
    stand_in.short_strides = false;
    static const long long strides[] = {-1, 17, INT64_MAX / 8, INT64_MAX / 63, INT64_MAX};
    for (size_t at = 0; at < sizeof strides / sizeof strides[0]; at++) {
        stand_in.stride = strides[at];
        refuses_run(model, &c, "the bytes of \"embeddings\" do not hold");
    }
    stand_in.stride = 0;
    runs_as_interpreter(model, &c);
    laya_coreml_close(model);
    end_call(&c);
}

/* ------------------------------------------------------------------ whole answers */

static laya_bundle *open_bundle(const char *path, laya_backend backend, laya_compute_units units)
{
    laya_bundle *bundle;
    laya_bundle_options options;
    laya_bundle_options_init(&options);
    options.backend = backend;
    options.units = units;
    options.cache_directory = folder;
    options.threads = 1;
    if (laya_bundle_open(path, &options, &bundle, &error) != LAYA_OK) fail_msg("%s", error.message);
    return bundle;
}

/* The answers of the bundle "long" through a backend. Release with free(). */
static char *answers(laya_backend backend, const char **executor)
{
    static const char state[] = "\"I was charged twice, please refund me.\"";
    static const char questions[] = "{\"refund\": {\"type\": \"noul\", \"instructions\": \"Is a refund asked for?\"},"
                                    " \"team\": {\"type\": \"choice\", \"instructions\": \"Who answers?\","
                                    " \"criteria\": [\"billing\", \"technical\", \"sales\"]}}";
    char path[TEST_PATH_SIZE];
    const char *result;
    size_t size;
    laya_bundle *bundle = open_bundle(test_join(path, bundles, "long"), backend, LAYA_UNITS_CPU_NE);
    laya_context *context;
    laya_context_options context_options;
    laya_context_options_init(&context_options);
    context_options.threads = 1;
    context_options.bundle = bundle;
    assert_int_equal(laya_context_open(laya_bundle_model(bundle), &context_options, &context, &error), LAYA_OK);
    laya_predict_options raw;
    laya_predict_options_init(&raw);
    raw.flags = LAYA_PREDICT_RAW;
    laya_status status = laya_predict(context, state, sizeof state - 1, questions, sizeof questions - 1, &raw,
                                      &result, &size);
    if (status != LAYA_OK) fail_msg("%s", laya_context_error(context)->message);
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, result, size + 1);
    *executor = laya_bundle_executor(bundle);
    laya_context_close(context);
    laya_bundle_close(bundle);
    return copy;
}

/* Text without the name of the executor, which alone may differ. */
static void remove_name(char *text, const char *name)
{
    char *found;
    size_t size = strlen(name);
    assert_non_null(strstr(text, name));
    while ((found = strstr(text, name)) != NULL) memmove(found, found + size, strlen(found + size) + 1);
}

static void test_bundle(void **state)
{
    (void)state;
    const char *executors[2];
    char *interpreter = answers(LAYA_BACKEND_INTERPRETER, &executors[0]);
    assert_int_equal(stand_in_seen.predictions, 0);
    char *coreml = answers(LAYA_BACKEND_COREML, &executors[1]);
    assert_int_equal(stand_in_seen.predictions, 2);
    assert_string_equal(executors[1], "Core ML CPU_AND_NE");
    remove_name(interpreter, executors[0]);
    remove_name(coreml, executors[1]);
    assert_string_equal(coreml, interpreter);
    free(interpreter);
    free(coreml);
}

/* ------------------------------------------------------------------ plan */

static const stand_in_operation operations[] = {
    {0, false, "const", "weight", NULL, "", -1},
    {0, false, "ios16.constexpr_lut_to_dense", "palette", NULL, "", -1},
    {0, false, "ios16.conv", "q", "neural_engine", "cpu,gpu,neural_engine", 0.5},
    {0, false, "ios17.cond", "choice", "cpu", "cpu", 0.0625},
    {1, false, "ios16.gelu", "then", "gpu", "cpu,gpu", 0.125},
    {1, false, "const", "inner", NULL, "", -1},
    {1, true, "ios16.relu", "else", "", "", -1},
    {0, false, "ios16.linear", "out \"1\"", NULL, "", -1},
    {0, false, "ios16.softmax", NULL, "other", "cpu,other", 0.25},
    {0, false, "ios16.add", "sum", "neural_engine", "cpu,neural_engine", 0.03125},
};

/* Seven operations that are no constants: 2 on the Neural Engine (0.5 + 0.03125), 1 each on CPU, GPU and a device of
   another kind, 2 without one. */
static const char expected_head[] = "{\n"
                                    "  \"class\": \"planned by Core ML\",\n"
                                    "  \"compute_units\": \"CPU_AND_NE\",\n"
                                    "  \"system\": \"Version 15.0 (Build 1A1)\",\n"
                                    "  \"devices\": [\n"
                                    "    {\n"
                                    "      \"kind\": \"cpu\"\n"
                                    "    },\n"
                                    "    {\n"
                                    "      \"kind\": \"gpu\",\n"
                                    "      \"name\": \"Stand-in GPU\"\n"
                                    "    },\n"
                                    "    {\n"
                                    "      \"kind\": \"neural_engine\",\n"
                                    "      \"cores\": 16\n"
                                    "    }\n"
                                    "  ],\n"
                                    "  \"operation_count\": 7,\n"
                                    "  \"constant_count\": 3,\n"
                                    "  \"preferred_count\": {\n"
                                    "    \"cpu\": 1,\n"
                                    "    \"gpu\": 1,\n"
                                    "    \"neural_engine\": 2,\n"
                                    "    \"other\": 1,\n"
                                    "    \"none\": 2\n"
                                    "  },\n"
                                    "  \"cost_sum\": {\n"
                                    "    \"cpu\": 0.0625,\n"
                                    "    \"gpu\": 0.125,\n"
                                    "    \"neural_engine\": 0.53125,\n"
                                    "    \"other\": 0.25,\n"
                                    "    \"none\": 0.0\n"
                                    "  },\n"
                                    "  \"compile_seconds\": ";

/* The operations in the order of the program, those of a block behind the operation that has it. */
static const char *const expected_operations[][5] = {
    {"\"weight\"", "const", "none", "[]", "null"},
    {"\"palette\"", "constexpr_lut_to_dense", "none", "[]", "null"},
    {"\"q\"", "conv", "neural_engine", "[\"cpu\", \"gpu\", \"neural_engine\"]", "0.5"},
    {"\"choice\"", "cond", "cpu", "[\"cpu\"]", "0.0625"},
    {"\"then\"", "gelu", "gpu", "[\"cpu\", \"gpu\"]", "0.125"},
    {"\"inner\"", "const", "none", "[]", "null"},
    {"\"else\"", "relu", "none", "[]", "null"},
    {"\"out \\\"1\\\"\"", "linear", "none", "[]", "null"},
    {"null", "softmax", "other", "[\"cpu\", \"other\"]", "0.25"},
    {"\"sum\"", "add", "neural_engine", "[\"cpu\", \"neural_engine\"]", "0.03125"},
};

static void check_operations(const char *text)
{
    laya_json doc;
    laya_buffer out;
    laya_buffer_init(&out, NULL);
    if (laya_json_parse(&doc, text, strlen(text), NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    size_t at = 0;
    laya_json_iterator it = laya_json_first(laya_json_get(laya_json_root(&doc), "operations"));
    for (; laya_json_present(it.value); laya_json_next(&it), at++) {
        assert_true(at < sizeof expected_operations / sizeof expected_operations[0]);
        const char *const *expected = expected_operations[at];
        char line[256];
        snprintf(line, sizeof line,
                 "{\"name\": %s, \"type\": \"%s\", \"preferred\": \"%s\", \"supported\": %s, \"cost\": %s}",
                 expected[0], expected[1], expected[2], expected[3], expected[4]);
        laya_buffer_clear(&out);
        laya_json_write_python(&out, it.value);
        assert_string_equal(out.data, line);
    }
    assert_int_equal(at, sizeof expected_operations / sizeof expected_operations[0]);
    laya_buffer_close(&out);
    laya_json_close(&doc);
}

static void test_plan(void **state)
{
    (void)state;
    char *json;
    laya_coreml *model = open_model("fp16");
    stand_in.operations = operations;
    stand_in.operation_count = sizeof operations / sizeof operations[0];
    if (laya_coreml_plan(model, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (strncmp(json, expected_head, sizeof expected_head - 1) != 0) assert_string_equal(json, expected_head);
    check_operations(json);
    free(json);
    laya_coreml_close(model);
}

/* A member of the member `object` of a plan. */
static uint32_t plan_count(const laya_json *plan, const char *object, const char *member)
{
    uint32_t count;
    laya_json_value value = laya_json_get(laya_json_root(plan), object);
    assert_true(laya_json_to_uint32(member ? laya_json_get(value, member) : value, &count));
    return count;
}

/* The plan of a bundle's package, through the public interface. */
static void test_bundle_plan(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], *json;
    laya_json plan;
    stand_in.operations = operations;
    stand_in.operation_count = sizeof operations / sizeof operations[0];
    laya_bundle *bundle = open_bundle(test_join(path, bundles, "fp16"), LAYA_BACKEND_COREML, LAYA_UNITS_ALL);
    if (laya_bundle_plan(bundle, 0, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (laya_json_parse(&plan, json, strlen(json), NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_true(laya_json_equals(laya_json_get(laya_json_root(&plan), "class"), "planned by Core ML"));
    assert_true(laya_json_equals(laya_json_get(laya_json_root(&plan), "compute_units"), "ALL"));
    assert_int_equal(plan_count(&plan, "operation_count", NULL), 7);
    assert_int_equal(plan_count(&plan, "constant_count", NULL), 3);
    assert_int_equal(plan_count(&plan, "preferred_count", "neural_engine"), 2);
    assert_int_equal(plan_count(&plan, "preferred_count", "none"), 2);
    laya_json_close(&plan);
    check_seconds(json, true);
    check_operations(json);
    laya_bundle_release(bundle, json);
    stand_in.plan = STAND_IN_ERROR;
    assert_int_equal(laya_bundle_plan(bundle, 0, &json, &error), LAYA_ERROR_FORMAT);
    assert_null(json);
    assert_contains(error.message, "Core ML could not plan it");
    laya_bundle_close(bundle);
}

static void refuses_plan(laya_coreml *model, laya_status status, const char *words)
{
    char *json = (char *)1;
    assert_int_equal(laya_coreml_plan(model, &json, &error), status);
    assert_null(json);
    assert_contains(error.message, words);
}

static void test_plan_failures(void **state)
{
    (void)state;
    laya_coreml *model = open_model("fp16");
    stand_in.system_major = 14, stand_in.system_minor = 3;
    refuses_plan(model, LAYA_ERROR_UNSUPPORTED, "a compute plan needs macOS 14.4 or newer");
    stand_in.system_minor = 4, stand_in.plan = STAND_IN_ERROR;
    refuses_plan(model, LAYA_ERROR_FORMAT,
                 DIGEST ".mlmodelc: Core ML could not plan it: The stand-in was told to fail.");
    stand_in.plan = STAND_IN_NOTHING;
    refuses_plan(model, LAYA_ERROR_FORMAT, "Core ML could not plan it and gave no reason");
    stand_in.plan = STAND_IN_EXCEPTION;
    refuses_plan(model, LAYA_ERROR_FORMAT, "Core ML raised StandInException");
    stand_in.plan = STAND_IN_WORKS, stand_in.no_program = true;
    refuses_plan(model, LAYA_ERROR_FORMAT, DIGEST ".mlmodelc: the plan shows no ML program");
    stand_in.no_program = false, stand_in.no_main = true;
    refuses_plan(model, LAYA_ERROR_FORMAT, "the plan shows no function \"main\"");
    laya_coreml_close(model);
}

/* ------------------------------------------------------------------ memory */

static void open_and_use(void)
{
    char *json;
    call c;
    begin_call(&c, "fp16");
    laya_coreml *model = open_model("fp16");
    runs_as_interpreter(model, &c);
    assert_int_equal(laya_coreml_plan(model, &json, &error), LAYA_OK);
    free(json);
    stand_in.predict = stand_in.plan = STAND_IN_ERROR;
    refuses_run(model, &c, "told to fail");
    refuses_plan(model, LAYA_ERROR_FORMAT, "told to fail");
    stand_in.predict = stand_in.plan = STAND_IN_WORKS;
    laya_coreml_close(model);
    end_call(&c);
}

/* Strings, dictionaries and the like too: whatever is retained is released. */
static void test_leaves_no_objects(void **state)
{
    (void)state;
    stand_in.operations = operations;
    stand_in.operation_count = sizeof operations / sizeof operations[0];
    (void)stand_in_all_objects();
    for (int warm = 0; warm < 3; warm++) open_and_use();
    assert_true(comes_down(stand_in_live_objects, living_before, PATIENCE));
    (void)comes_down(stand_in_all_objects, 0, 200); /* less where nothing stays of the first rounds */
    long before = stand_in_all_objects();
    for (int again = 0; again < 20; again++) open_and_use();
    assert_true(comes_down(stand_in_all_objects, before, PATIENCE));
}

/* Every allocation of opening and planning fails once. */
static void test_memory_failures(void **state)
{
    (void)state;
    test_memory memory;
    test_memory_init(&memory);
    char package[TEST_PATH_SIZE];
    stand_in.operations = operations;
    stand_in.operation_count = sizeof operations / sizeof operations[0];
    for (size_t fail_at = 1;; fail_at++) {
        laya_coreml *model;
        char cache[TEST_PATH_SIZE], name[32], *json = NULL;
        snprintf(name, sizeof name, "%zu", fail_at);
        test_memory_arm(&memory, fail_at);
        laya_status status = laya_coreml_open(package_path(package, "fp16"), DIGEST, LAYA_UNITS_CPU_NE,
                                              test_join(cache, folder, name), &memory.hooks, &model, &error);
        if (status == LAYA_OK) status = laya_coreml_plan(model, &json, &error);
        assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        if (json) memory.hooks.release(memory.hooks.user, json);
        laya_coreml_close(model);
        assert_int_equal(memory.live, 0);
        if (!memory.failed) break;
        assert_true(fail_at < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_compiles_once, begin, end),
        cmocka_unit_test_setup_teardown(test_rival, begin, end),
        cmocka_unit_test_setup_teardown(test_default_cache, begin, end),
        cmocka_unit_test_setup_teardown(test_compute_units, begin, end),
        cmocka_unit_test_setup_teardown(test_old_systems, begin, end),
        cmocka_unit_test_setup_teardown(test_files, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged_cache, begin, end),
        cmocka_unit_test_setup_teardown(test_compile_failures, begin, end),
        cmocka_unit_test_setup_teardown(test_load_failures, begin, end),
        cmocka_unit_test_setup_teardown(test_predict_failures, begin, end),
        cmocka_unit_test_setup_teardown(test_predicts, begin, end),
        cmocka_unit_test_setup_teardown(test_foreign_layout, begin, end),
        cmocka_unit_test_setup_teardown(test_features_checked, begin, end),
        cmocka_unit_test_setup_teardown(test_open_shapes, begin, end),
        cmocka_unit_test_setup_teardown(test_outputs_checked, begin, end),
        cmocka_unit_test_setup_teardown(test_bundle, begin, end),
        cmocka_unit_test_setup_teardown(test_plan, begin, end),
        cmocka_unit_test_setup_teardown(test_bundle_plan, begin, end),
        cmocka_unit_test_setup_teardown(test_plan_failures, begin, end),
        cmocka_unit_test_setup_teardown(test_leaves_no_objects, begin, end),
        cmocka_unit_test_setup_teardown(test_memory_failures, begin, end),
    };
    return cmocka_run_group_tests(tests, export_bundles, remove_bundles);
}
