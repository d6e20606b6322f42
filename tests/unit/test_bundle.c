/* SPDX-License-Identifier: Apache-2.0 */
/* laya_bundle_open: what a path may name, manifests, hashes of every file, interfaces; what is refused and how. */
#include "bundles.h"

#include "runtime/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL_FILE "model.mlpackage/Data/com.apple.CoreML/model.mlmodel"
#define WEIGHT_FILE "model.mlpackage/Data/com.apple.CoreML/weights/weight.bin"
#define PACKAGE_MANIFEST "model.mlpackage/Manifest.json"

static char shelter[TEST_PATH_SIZE];    /* of all tests */
static char checkpoint[TEST_PATH_SIZE]; /* a copy of the tiny one */
static char reference[TEST_PATH_SIZE];  /* bundle of 64 tokens by reference to it */
static char alone[TEST_PATH_SIZE];      /* the same, standalone */

static laya_status open_at(const char *path, const char *model, laya_bundle **bundle, laya_error *error)
{
    laya_bundle_options options;
    laya_bundle_options_init(&options);
    options.model_directory = model;
    options.threads = 2;
    return laya_bundle_open(path, &options, bundle, error);
}

static void expect_open(const char *path, const char *model)
{
    laya_bundle *bundle;
    laya_error error;
    if (open_at(path, model, &bundle, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(error.status, LAYA_OK);
    laya_bundle_close(bundle);
}

/* The message holds both texts. */
static void expect_refusal(const char *path, const char *model, laya_status status, const char *what,
                           const char *reason)
{
    laya_bundle *bundle;
    laya_error error;
    laya_status found = open_at(path, model, &bundle, &error);
    if (found != status) fail_msg("status %d instead of %d: %s", (int)found, (int)status, error.message);
    assert_null(bundle);
    assert_int_equal(error.status, status);
    assert_contains(error.message, what);
    assert_contains(error.message, reason);
}

/* ------------------------------------------------------------------ fixtures */

static int make_shelter(void **state)
{
    (void)state;
    char source[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    test_make_folder(shelter);
    test_copy_checkpoint(test_path(source, TEST_TINY), test_join(checkpoint, shelter, "checkpoint"));
    test_export(checkpoint, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 64, false,
                test_join(reference, shelter, "reference"));
    test_export(checkpoint, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 64, true, test_join(alone, shelter, "alone"));
    assert_int_equal(mkdir(test_join(path, shelter, "several"), 0700), 0);
    return 0;
}

static int remove_shelter(void **state)
{
    (void)state;
    test_remove_tree(shelter);
    return 0;
}

/* Move a directory of the shelter. */
static void move(const char *from, const char *to)
{
    char a[TEST_PATH_SIZE], b[TEST_PATH_SIZE];
    assert_int_equal(rename(test_join(a, shelter, from), test_join(b, shelter, to)), 0);
}

/* ------------------------------------------------------------------ what is opened */

static void facts(void **state)
{
    (void)state;
    laya_bundle *bundle;
    laya_error error;
    laya_bucket_info info;
    char hash[65];
    size_t size;
    char path[TEST_PATH_SIZE];
    assert_int_equal(open_at(reference, NULL, &bundle, &error), LAYA_OK);
    assert_int_equal(laya_bundle_buckets(bundle), 1);
    assert_int_equal(laya_bundle_bucket(bundle, 0, &info), 1);
    assert_string_equal(info.directory, reference);
    assert_string_equal(info.graph, "lean");
    assert_string_equal(info.precision, "fp16");
    assert_int_equal(info.length, 64);
    assert_int_equal(info.markers, 32);
    assert_int_equal(strlen(info.package_sha256), 64);
    char *weights = test_read_file(test_join(path, checkpoint, "model.safetensors"), &size);
    assert_int_equal(laya_sha256(weights, size, hash, NULL), LAYA_OK);
    free(weights);
    assert_string_equal(info.weights_sha256, hash);
    assert_true(info.operations > 100 && info.operations < 400);
    assert_int_equal(laya_bundle_bucket(bundle, 1, &info), 0);
    assert_null(info.directory);
    assert_string_equal(laya_bundle_executor(bundle), "interpreter fp16");
    laya_model_info model;
    laya_model_get_info(laya_bundle_model(bundle), &model);
    assert_int_equal(model.hidden_size, 128);
    laya_bundle_close(bundle);
    laya_bundle_close(NULL);
}

static void no_plan(void **state)
{
    (void)state;
    laya_error error;
    laya_bundle *bundle = test_open_bundle(reference, LAYA_NUMERICS_FP16, 1);
    char *json = (char *)1;
    assert_int_equal(laya_bundle_plan(bundle, 0, &json, &error), LAYA_ERROR_UNSUPPORTED);
    assert_null(json);
    assert_contains(error.message, "the interpreter has no compute plan; open the bundle with the Core ML backend");
    assert_int_equal(laya_bundle_plan(bundle, 1, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "expected an index below 1, found 1");
    assert_int_equal(laya_bundle_plan(NULL, 0, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_bundle_plan(bundle, 0, NULL, &error), LAYA_ERROR_ARGUMENT);
    laya_bundle_release(bundle, NULL);
    laya_bundle_release(NULL, NULL);
    laya_bundle_close(bundle);
}

static void executor_names(void **state)
{
    (void)state;
    static const char *const names[] = {"interpreter fp16", "interpreter fp16-strict", "interpreter fp32"};
    for (unsigned numerics = 0; numerics < 3; numerics++) {
        laya_bundle *bundle = test_open_bundle(reference, (laya_numerics)numerics, 1);
        assert_string_equal(laya_bundle_executor(bundle), names[numerics]);
        laya_bundle_close(bundle);
    }
}

/* The export's directory, with and without a slash, and its package. */
static void paths_of_one(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    expect_open(reference, NULL);
    expect_open(test_join(path, reference, ""), NULL);
    expect_open(test_join(path, reference, "model.mlpackage"), NULL);
    expect_open(test_join(path, reference, "model.mlpackage/"), NULL);
    char *here = getcwd(NULL, 0);
    assert_non_null(here);
    assert_int_equal(chdir(reference), 0);
    expect_open(".", NULL);
    expect_open("model.mlpackage", NULL);
    assert_int_equal(chdir(here), 0);
    free(here);
}

static void paths_of_nothing(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    expect_refusal(test_join(path, shelter, "absent"), NULL, LAYA_ERROR_IO, path, "not found");
    expect_refusal(test_join(path, reference, "manifest.json"), NULL, LAYA_ERROR_FORMAT, path, "found a file");
    expect_refusal(checkpoint, NULL, LAYA_ERROR_FORMAT, checkpoint, "neither a bundle");
    assert_int_equal(mkdir(test_join(path, shelter, "bare.mlpackage"), 0700), 0);
    expect_refusal(path, NULL, LAYA_ERROR_FORMAT, path, "no bundle has a package of this name");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkdir(test_join(path, shelter, "model.mlpackage"), 0700), 0);
    expect_refusal(path, NULL, LAYA_ERROR_FORMAT, path, "no manifest.json beside the package");
    assert_int_equal(rmdir(path), 0);
}

static void wrong_calls(void **state)
{
    (void)state;
    laya_bundle *bundle = NULL;
    laya_error error;
    laya_bundle_options options;
    assert_int_equal(laya_bundle_open(reference, NULL, NULL, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_bundle_open(NULL, NULL, &bundle, &error), LAYA_ERROR_ARGUMENT);
    laya_bundle_options_init(&options);
    assert_int_equal(options.units, LAYA_UNITS_CPU_NE);
    options.size--;
    assert_int_equal(laya_bundle_open(reference, &options, &bundle, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "laya_bundle_options_init");
    laya_bundle_options_init(&options);
    options.backend = (laya_backend)7;
    assert_int_equal(laya_bundle_open(reference, &options, &bundle, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "unknown backend 7");
    laya_bundle_options_init(&options);
    options.numerics = (laya_numerics)7;
    assert_int_equal(laya_bundle_open(reference, &options, &bundle, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "unknown numerics 7");
    laya_bundle_options_init(&options);
    options.units = (laya_compute_units)7;
    assert_int_equal(laya_bundle_open(reference, &options, &bundle, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "unknown compute units 7");
    laya_bundle_options_init(&options);
    options.threads = 100000;
    assert_int_equal(laya_bundle_open(reference, &options, &bundle, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "100000 threads");
    assert_null(bundle);
}

static void core_ml_elsewhere(void **state)
{
    (void)state;
#if !defined(__APPLE__)
    laya_bundle *bundle;
    laya_error error;
    laya_bundle_options options;
    laya_bundle_options_init(&options);
    options.backend = LAYA_BACKEND_COREML;
    assert_int_equal(laya_bundle_open(reference, &options, &bundle, &error), LAYA_ERROR_UNSUPPORTED);
    assert_contains(error.message, "Core ML needs macOS; use --backend interpreter");
    assert_null(bundle);
#endif
}

/* ------------------------------------------------------------------ several */

/* Buckets are sorted by length, whatever their names. Probes are left out. */
static void several(void **state)
{
    (void)state;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    laya_bundle *bundle;
    laya_error error;
    laya_bucket_info info;
    test_join(folder, shelter, "several");
    test_export(checkpoint, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 96, false, test_join(path, folder, "a"));
    test_export(checkpoint, LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16, 32, true, test_join(path, folder, "b"));
    move("reference", "several/c");
    test_write_file(test_join(path, folder, "note.txt"), "x", 1);
    assert_int_equal(open_at(folder, NULL, &bundle, &error), LAYA_OK);
    assert_int_equal(laya_bundle_buckets(bundle), 3);
    static const uint32_t lengths[] = {32, 64, 96};
    for (size_t at = 0; at < 3; at++) {
        assert_int_equal(laya_bundle_bucket(bundle, at, &info), 1);
        assert_int_equal(info.length, lengths[at]);
    }
    static const uint32_t chosen[][3] = {{1, 2, 32},   {32, 32, 32}, {33, 2, 64},
                                         {64, 32, 64}, {65, 1, 96},  {96, 32, 96}};
    for (size_t at = 0; at < sizeof chosen / sizeof *chosen; at++)
        assert_int_equal(laya_bundle_choose(bundle, chosen[at][0], chosen[at][1])->shape.length, chosen[at][2]);
    assert_null(laya_bundle_choose(bundle, 97, 1));
    assert_null(laya_bundle_choose(bundle, 10, 33));
    laya_bundle_close(bundle);
    move("several/c", "reference");
}

static void export_kind(laya_export_kind kind, const char *output)
{
    laya_model *model;
    laya_export_options options;
    laya_error error;
    laya_export_options_init(&options);
    options.kind = kind;
    options.length = 32;
    assert_int_equal(laya_model_open(checkpoint, NULL, &model, &error), LAYA_OK);
    if (laya_model_export(model, &options, output, &error) != LAYA_OK) fail_msg("%s", error.message);
    laya_model_close(model);
}

static void probes(void **state)
{
    (void)state;
    char folder[TEST_PATH_SIZE], layer[TEST_PATH_SIZE], mlp[TEST_PATH_SIZE];
    assert_int_equal(mkdir(test_join(folder, shelter, "probes"), 0700), 0);
    export_kind(LAYA_EXPORT_LAYER, test_join(layer, folder, "layer"));
    export_kind(LAYA_EXPORT_MLP, test_join(mlp, folder, "mlp"));
    expect_refusal(layer, NULL, LAYA_ERROR_UNSUPPORTED, layer, "kind layer answers no questions");
    expect_refusal(mlp, NULL, LAYA_ERROR_UNSUPPORTED, mlp, "kind mlp answers no questions");
    expect_refusal(folder, NULL, LAYA_ERROR_UNSUPPORTED, folder, "holds no bundle of kind body");
    move("reference", "probes/body");
    expect_open(folder, NULL);
    move("probes/body", "reference");
    test_remove_tree(folder);
}

static void two_of_a_length(void **state)
{
    (void)state;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    assert_int_equal(mkdir(test_join(folder, shelter, "twice"), 0700), 0);
    test_export(checkpoint, LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16, 64, false, test_join(path, folder, "other"));
    move("reference", "twice/one");
    expect_refusal(folder, NULL, LAYA_ERROR_FORMAT, "twice/one and", "two packages of 64 tokens and 32 options");
    move("twice/one", "reference");
    test_remove_tree(folder);
}

static void two_checkpoints(void **state)
{
    (void)state;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE], demo[TEST_PATH_SIZE];
    assert_int_equal(mkdir(test_join(folder, shelter, "mixed"), 0700), 0);
    test_export(test_path(demo, TEST_DEMO), LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 96, false,
                test_join(path, folder, "demo"));
    move("reference", "mixed/tiny");
    expect_refusal(folder, NULL, LAYA_ERROR_FORMAT, "mixed/demo: expected the checkpoint of",
                   "keep bundles of one checkpoint in a directory");
    move("mixed/tiny", "reference");
    test_remove_tree(folder);
}

/* ------------------------------------------------------------------ the checkpoint */

static void where_the_checkpoint_is(void **state)
{
    (void)state;
    char moved[TEST_PATH_SIZE], demo[TEST_PATH_SIZE];
    move("checkpoint", "moved");
    test_join(moved, shelter, "moved");
    expect_refusal(reference, NULL, LAYA_ERROR_IO, checkpoint, "name its directory with --model DIR");
    expect_open(reference, moved);
    expect_open(alone, NULL);
    expect_refusal(reference, test_path(demo, TEST_DEMO), LAYA_ERROR_FORMAT, TEST_DEMO "/model.safetensors",
                   "belongs to another checkpoint");
    expect_refusal(alone, demo, LAYA_ERROR_FORMAT, TEST_DEMO "/model.safetensors", "belongs to another checkpoint");
    move("moved", "checkpoint");
    expect_open(alone, checkpoint);
}

static void no_path_of_the_checkpoint(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], from[TEST_PATH_SIZE + 32];
    char *before = test_read_file(test_join(path, reference, "manifest.json"), NULL);
    snprintf(from, sizeof from, "\"directory\": \"%s\"", checkpoint);
    test_edit_file(reference, "manifest.json", from, "\"directory\": null");
    expect_refusal(reference, NULL, LAYA_ERROR_FORMAT, reference, "does not say where the checkpoint is");
    expect_open(reference, checkpoint);
    test_write_file(path, before, strlen(before));
    free(before);
}

/* ------------------------------------------------------------------ hashes */

static void expect_changed(const char *bundle, const char *directory, const char *name)
{
    char path[TEST_PATH_SIZE];
    test_flip_byte(test_join(path, directory, name));
    expect_refusal(bundle, NULL, LAYA_ERROR_FORMAT, path, ": expected SHA-256 ");
    test_flip_byte(path);
}

static void changed_files(void **state)
{
    (void)state;
    static const char *const package[] = {MODEL_FILE, WEIGHT_FILE, PACKAGE_MANIFEST};
    static const char *const host[] = {"rl_agent_config.json", "encoder/config.json", "tokenizer/tokenizer.json",
                                       "tokenizer/tokenizer_config.json"};
    for (size_t at = 0; at < 3; at++) {
        expect_changed(reference, reference, package[at]);
        expect_changed(alone, alone, package[at]);
    }
    for (size_t at = 0; at < 4; at++) {
        expect_changed(reference, checkpoint, host[at]);
        expect_changed(alone, alone, host[at]);
    }
    expect_changed(reference, checkpoint, "model.safetensors");
    expect_changed(alone, alone, "host_weights.safetensors");
    expect_open(reference, NULL);
    expect_open(alone, NULL);
}

static void cut_and_missing_files(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], away[TEST_PATH_SIZE];
    size_t size;
    char *data = test_read_file(test_join(path, reference, WEIGHT_FILE), &size);
    test_write_file(path, data, size - 1);
    expect_refusal(reference, NULL, LAYA_ERROR_FORMAT, path, "the file was changed or cut");
    test_write_file(path, data, size);
    free(data);
    test_join(away, shelter, "away");
    assert_int_equal(rename(path, away), 0);
    expect_refusal(reference, NULL, LAYA_ERROR_IO, path, "");
    assert_int_equal(rename(away, path), 0);
    test_join(path, alone, "host_weights.safetensors");
    assert_int_equal(rename(path, away), 0);
    expect_refusal(alone, NULL, LAYA_ERROR_IO, path, "");
    assert_int_equal(rename(away, path), 0);
}

/* ------------------------------------------------------------------ manifest.json */

/* An edit of a bundle's manifest is refused with this message. */
static void expect_edit_refused(const char *bundle, const char *from, const char *to, laya_status status,
                                const char *reason)
{
    char path[TEST_PATH_SIZE];
    char *before = test_read_file(test_join(path, bundle, "manifest.json"), NULL);
    test_edit_file(bundle, "manifest.json", from, to);
    expect_refusal(bundle, NULL, status, bundle, reason);
    test_write_file(path, before, strlen(before));
    free(before);
}

static void manifest_fields(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        laya_status status;
        const char *reason;
    } edits[] = {
        {"\"format\": \"laya-ane-research\"", "\"format\": \"other\"", LAYA_ERROR_FORMAT,
         "manifest.json: format: expected 'laya-ane-research', found 'other'"},
        {"\"format\"", "\"shape_of\"", LAYA_ERROR_FORMAT, "format: expected 'laya-ane-research', found nothing"},
        {"\"version\": 1", "\"version\": 2", LAYA_ERROR_UNSUPPORTED,
         "version: this build reads version 1, found '2'"},
        {"\"kind\": \"body\"", "\"kind\": \"head\"", LAYA_ERROR_FORMAT,
         "kind: expected body, layer or mlp, found 'head'"},
        {"\"kind\": \"body\"", "\"kind\": null", LAYA_ERROR_FORMAT,
         "kind: expected body, layer or mlp, found NoneType"},
        {"\"graph\": \"lean\"", "\"graph\": \"fast\"", LAYA_ERROR_FORMAT, "graph: expected per-head or lean"},
        {"\"precision\": \"fp16\"", "\"precision\": \"int8\"", LAYA_ERROR_FORMAT, "precision: expected fp16 or fp32"},
        {"\"batch\": 1", "\"batch\": 2", LAYA_ERROR_FORMAT, "batch: expected a number from 1 to 1, found '2'"},
        {"\"length\": 64", "\"length\": 8", LAYA_ERROR_FORMAT, "length: expected a number from 16 to"},
        {"\"length\": 64", "\"length\": \"64\"", LAYA_ERROR_FORMAT, "length: expected a number from 16 to"},
        {"\"options\": 32", "\"options\": 256", LAYA_ERROR_FORMAT, "options: expected a number from 2 to 255"},
        {"\"package\": \"model.mlpackage\"", "\"package\": \"../x.mlpackage\"", LAYA_ERROR_FORMAT,
         "package: expected 'model.mlpackage'"},
        {"\"package_sha256\": \"", "\"package_sha256\": \"x", LAYA_ERROR_FORMAT,
         "package_sha256: expected a SHA-256"},
        {"\"weights_sha256\": \"", "\"weights_sha256\": \"x", LAYA_ERROR_FORMAT,
         "weights_sha256: expected a SHA-256"},
        {"\"directory\": \"", "\"directory\": [], \"x\": \"", LAYA_ERROR_FORMAT, "source.directory: expected a path"},
        {"\"by\": \"reference\"", "\"by\": \"rumour\"", LAYA_ERROR_FORMAT, "by: expected reference or standalone"},
        {"\"by\": \"reference\"", "\"by\": \"standalone\"", LAYA_ERROR_FORMAT,
         "files: 'host_weights.safetensors' is missing"},
        {"\"" MODEL_FILE "\"", "\"../model.mlmodel\"", LAYA_ERROR_FORMAT,
         "files: '../model.mlmodel' is no file of such a bundle"},
        {"\"files\": {", "\"files\": [], \"others\": {", LAYA_ERROR_FORMAT, "files: expected an object, found list"},
        {"\"bytes\": ", "\"bytes\": -", LAYA_ERROR_FORMAT, "expected its size in \"bytes\""},
        {"\"total\": ", "\"total\": -", LAYA_ERROR_FORMAT, "total: expected a number from 1"},
        {"{", "[", LAYA_ERROR_FORMAT, "manifest.json: "},
        /* what the hashes do not cover, the package itself tells */
        {"\"length\": 64", "\"length\": 96", LAYA_ERROR_FORMAT,
         "input 'embeddings': expected fp16 [1, 128, 1, 96], found fp16 [1, 128, 1, 64]"},
        {"\"length\": 64", "\"length\": 1024", LAYA_ERROR_FORMAT, "expected a length of at most 512"},
        {"\"options\": 32", "\"options\": 31", LAYA_ERROR_FORMAT,
         "input 'marker_map': expected fp16 [1, 64, 1, 31], found fp16 [1, 64, 1, 32]"},
        {"\"precision\": \"fp16\"", "\"precision\": \"fp32\"", LAYA_ERROR_FORMAT,
         "input 'embeddings': expected fp32 [1, 128, 1, 64], found fp16 [1, 128, 1, 64]"},
    };
    for (size_t at = 0; at < sizeof edits / sizeof *edits; at++)
        expect_edit_refused(reference, edits[at].from, edits[at].to, edits[at].status, edits[at].reason);
    expect_edit_refused(alone, "\"by\": \"standalone\"", "\"by\": \"reference\"", LAYA_ERROR_FORMAT,
                        "is no file of such a bundle");
}

/* The first digit of a hash is another one. */
static void change_hash(const char *bundle, const char *member, const char *reason)
{
    char path[TEST_PATH_SIZE];
    char *before = test_read_file(test_join(path, bundle, "manifest.json"), NULL), *changed = strdup(before);
    assert_non_null(changed);
    char *hit = strstr(changed, member);
    assert_non_null(hit);
    hit += strlen(member);
    *hit = *hit == '0' ? '1' : '0';
    test_write_file(path, changed, strlen(changed));
    expect_refusal(bundle, NULL, LAYA_ERROR_FORMAT, "expected", reason);
    test_write_file(path, before, strlen(before));
    free(changed);
    free(before);
}

static void manifest_hashes(void **state)
{
    (void)state;
    static const char *const sources[][2] = {
        {"\"weights_sha256\": \"", "/model.safetensors: expected SHA-256 "},
        {"\"config_sha256\": \"", "/rl_agent_config.json: expected SHA-256 "},
        {"\"encoder_config_sha256\": \"", "/encoder/config.json: expected SHA-256 "},
        {"\"tokenizer_sha256\": \"", "/tokenizer.json: expected SHA-256 "},
        {"\"tokenizer_config_sha256\": \"", "/tokenizer_config.json: expected SHA-256 "}};
    for (size_t at = 0; at < 5; at++) change_hash(reference, sources[at][0], sources[at][1]);
    for (size_t at = 1; at < 5; at++) change_hash(alone, sources[at][0], "as in 'source', found ");
    change_hash(reference, "\"package_sha256\": \"", "package_sha256: expected ");
    change_hash(reference, "\"" MODEL_FILE "\": {\n      \"sha256\": \"", "the digest of the package's files");
}

/* ------------------------------------------------------------------ memory */

/* Opening, with each allocation failing in turn: MEMORY, nothing lost. */
static void failing_allocations(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at += fail_at < 300 ? 1 : 37, failures++) {
        test_memory memory;
        laya_bundle *bundle;
        laya_error error;
        laya_bundle_options options;
        test_memory_init(&memory);
        laya_bundle_options_init(&options);
        options.allocator = memory.hooks;
        options.threads = 1;
        test_memory_arm(&memory, fail_at);
        laya_status status = laya_bundle_open(failures % 2 ? alone : reference, &options, &bundle, &error);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_OK);
            laya_bundle_close(bundle);
            assert_int_equal(memory.live, 0);
            break;
        }
        if (status != LAYA_ERROR_MEMORY) fail_msg("allocation %zu: %d %s", fail_at, (int)status, error.message);
        assert_null(bundle);
        assert_contains(error.message, "out of memory");
        assert_int_equal(memory.live, 0);
    }
    assert_true(failures > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts),
        cmocka_unit_test(executor_names),
        cmocka_unit_test(no_plan),
        cmocka_unit_test(paths_of_one),
        cmocka_unit_test(paths_of_nothing),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(core_ml_elsewhere),
        cmocka_unit_test(several),
        cmocka_unit_test(probes),
        cmocka_unit_test(two_of_a_length),
        cmocka_unit_test(two_checkpoints),
        cmocka_unit_test(where_the_checkpoint_is),
        cmocka_unit_test(no_path_of_the_checkpoint),
        cmocka_unit_test(changed_files),
        cmocka_unit_test(cut_and_missing_files),
        cmocka_unit_test(manifest_fields),
        cmocka_unit_test(manifest_hashes),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_shelter, remove_shelter);
}
