/* SPDX-License-Identifier: Apache-2.0 */
/* laya_model_export: the files of a bundle, its manifest, refusals, failures that must leave nothing behind. */
#include "support.h"
#include "tree.h"

#include "base/file.h"
#include "base/json.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL_FILE "model.mlpackage/Data/com.apple.CoreML/model.mlmodel"
#define WEIGHT_FILE "model.mlpackage/Data/com.apple.CoreML/weights/weight.bin"
#define PACKAGE_MANIFEST "model.mlpackage/Manifest.json"
#define PACKAGE_TREE                                                                                                 \
    "model.mlpackage/\nmodel.mlpackage/Data/\nmodel.mlpackage/Data/com.apple.CoreML/\n" MODEL_FILE                   \
    "\nmodel.mlpackage/Data/com.apple.CoreML/weights/\n" WEIGHT_FILE "\n" PACKAGE_MANIFEST "\n"

/* sha256sum models/laya-demo/... */
#define DEMO_WEIGHTS_SHA256 "54fd41a74a341f2e84cb5fd45a3b0c82aad4906b875680913935fc1c1d186e56"

static laya_model *demo;

static int open_demo(void **state)
{
    (void)state;
    demo = test_open_model(TEST_DEMO);
    return 0;
}

static int close_demo(void **state)
{
    (void)state;
    laya_model_close(demo);
    return 0;
}

static const char *at(char path[TEST_PATH_SIZE], const char *name)
{
    return test_join(path, test_folder, name);
}

static void export_to(const char *output, const laya_export_options *options)
{
    laya_error error;
    if (laya_model_export(demo, options, output, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(error.status, LAYA_OK);
}

/* The folder of the test holds nothing. */
static void expect_nothing(void)
{
    char *tree = test_list_tree(test_folder);
    assert_string_equal(tree, "");
    free(tree);
}

static void expect_refusal(const laya_model *model, const laya_export_options *options, const char *output,
                           laya_status status, const char *reason)
{
    laya_error error;
    assert_int_equal(laya_model_export(model, options, output, &error), status);
    assert_int_equal(error.status, status);
    assert_contains(error.message, reason);
}

/* ------------------------------------------------------------------ manifest.json */

typedef struct manifest {
    char *text;
    laya_json doc;
    laya_json_value root;
} manifest;

static void read_manifest(manifest *m, const char *bundle)
{
    char path[TEST_PATH_SIZE];
    laya_error error;
    size_t size;
    m->text = test_read_file(test_join(path, bundle, "manifest.json"), &size);
    if (laya_json_parse(&m->doc, m->text, size, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    m->root = laya_json_root(&m->doc);
}

static void free_manifest(manifest *m)
{
    laya_json_close(&m->doc);
    free(m->text);
}

/* The value at a path of keys, "a|b|c". */
static laya_json_value find(const manifest *m, const char *path)
{
    char key[128];
    laya_json_value value = m->root;
    for (const char *start = path; *start;) {
        size_t size = strcspn(start, "|");
        assert_true(size < sizeof key);
        memcpy(key, start, size);
        key[size] = '\0';
        value = laya_json_get(value, key);
        if (!laya_json_present(value)) fail_msg("manifest.json has no %s", path);
        start += size + (start[size] == '|');
    }
    return value;
}

static void expect_text(const manifest *m, const char *path, const char *text)
{
    size_t size;
    const char *found = laya_json_text(find(m, path), &size);
    if (!laya_json_equals(find(m, path), text)) fail_msg("%s: %.*s instead of %s", path, (int)size, found, text);
}

static uint32_t number(const manifest *m, const char *path)
{
    uint32_t value;
    if (!laya_json_to_uint32(find(m, path), &value)) fail_msg("%s: no number", path);
    return value;
}

/* SHA-256 of a file of a directory; `size` may be NULL. */
static void hash_of(const char *directory, const char *name, char hex[65], size_t *size)
{
    char path[TEST_PATH_SIZE];
    size_t bytes;
    char *data = test_read_file(test_join(path, directory, name), &bytes);
    assert_int_equal(laya_sha256(data, bytes, hex, NULL), LAYA_OK);
    free(data);
    if (size) *size = bytes;
}

/* "files" lists the given files in order, with the hashes and sizes that they have. */
static void expect_files(const manifest *m, const char *bundle, const char *const *names, size_t count)
{
    laya_json_iterator it = laya_json_first(find(m, "files"));
    for (size_t i = 0; i < count; i++, laya_json_next(&it)) {
        char hex[65];
        size_t size;
        uint32_t bytes;
        assert_true(laya_json_present(it.value));
        if (!laya_json_equals(it.key, names[i])) fail_msg("file %zu is not %s", i, names[i]);
        hash_of(bundle, names[i], hex, &size);
        assert_true(laya_json_equals(laya_json_get(it.value, "sha256"), hex));
        assert_true(laya_json_to_uint32(laya_json_get(it.value, "bytes"), &bytes));
        assert_int_equal(bytes, size);
    }
    assert_false(laya_json_present(it.value));
}

static void expect_sources(const manifest *m)
{
    static const char *const files[][2] = {{"source|weights_sha256", "model.safetensors"},
                                           {"source|config_sha256", "rl_agent_config.json"},
                                           {"source|encoder_config_sha256", "encoder/config.json"},
                                           {"source|tokenizer_sha256", "tokenizer/tokenizer.json"},
                                           {"source|tokenizer_config_sha256", "tokenizer/tokenizer_config.json"}};
    char path[TEST_PATH_SIZE], hex[65];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        hash_of(test_path(path, TEST_DEMO), files[i][1], hex, NULL);
        expect_text(m, files[i][0], hex);
    }
    expect_text(m, "source|weights_sha256", DEMO_WEIGHTS_SHA256);
    char *real = realpath(test_path(path, TEST_DEMO), NULL);
    assert_non_null(real);
    expect_text(m, "source|directory", real);
    free(real);
}

static void expect_keys(const manifest *m, const char *const *keys, size_t count)
{
    laya_json_iterator it = laya_json_first(m->root);
    for (size_t i = 0; i < count; i++, laya_json_next(&it)) {
        if (!laya_json_present(it.value) || !laya_json_equals(it.key, keys[i]))
            fail_msg("key %zu is not %s", i, keys[i]);
    }
    assert_false(laya_json_present(it.value));
}

/* The digest over the lines of "<hash>  <path>" of the package's files, sorted, as shasum and sort would make it. */
static void expect_package_digest(const manifest *m, const char *bundle)
{
    static const char *const names[] = {"Data/com.apple.CoreML/model.mlmodel",
                                        "Data/com.apple.CoreML/weights/weight.bin", "Manifest.json"};
    char path[TEST_PATH_SIZE], lines[1024], hex[65];
    size_t size = 0;
    for (size_t i = 0; i < 3; i++) {
        hash_of(test_join(path, bundle, "model.mlpackage"), names[i], hex, NULL);
        size += (size_t)snprintf(lines + size, sizeof lines - size, "%s  %s\n", hex, names[i]);
    }
    assert_int_equal(laya_sha256(lines, size, hex, NULL), LAYA_OK);
    expect_text(m, "package_sha256", hex);
}

static void expect_operations(const manifest *m)
{
    uint32_t sum = 0, count;
    laya_json_iterator it = laya_json_first(find(m, "operations|by_kind"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        assert_false(laya_json_equals(it.key, "const"));
        assert_true(laya_json_to_uint32(it.value, &count));
        sum += count;
    }
    assert_int_equal(number(m, "operations|total"), sum);
    assert_true(number(m, "operations|constants") > 0);
    /* 4 encoder layers (3 norms but the first has one less, 4 + 1 convolutions counted below) and 2 head layers: norms
       are embedding, 4 * 2 - 1, final, 2 * 2 and scorer. */
    assert_int_equal(number(m, "operations|by_kind|layer_norm"), 1 + 7 + 1 + 4 + 1);
    /* convolutions: 4 in each encoder layer, 4 in each head layer, 2 of the scorer */
    assert_int_equal(number(m, "operations|by_kind|conv"), 4 * 4 + 2 * 4 + 2);
}

static bool is_hex(laya_json_value value)
{
    size_t size;
    const char *text = laya_json_text(value, &size);
    if (laya_json_typeof(value) != LAYA_JSON_STRING || size != 64) return false;
    for (size_t i = 0; i < size; i++) {
        if (!strchr("0123456789abcdef", text[i])) return false;
    }
    return true;
}

static void test_reference_bundle(void **state)
{
    (void)state;
    static const char *const keys[] = {"format",
                                       "version",
                                       "kind",
                                       "graph",
                                       "precision",
                                       "shape",
                                       "layer",
                                       "opset",
                                       "specification_version",
                                       "package",
                                       "package_sha256",
                                       "source",
                                       "files",
                                       "host",
                                       "operations",
                                       "tool",
                                       "source_files_sha256",
                                       "placement",
                                       "numerical_check",
                                       "timings",
                                       "conversion_seconds"};
    static const char *const files[] = {MODEL_FILE, WEIGHT_FILE, PACKAGE_MANIFEST};
    char bundle[TEST_PATH_SIZE];
    manifest m;
    export_to(at(bundle, "a/b/bundle"), NULL); /* parents are made */
    char *tree = test_list_tree(bundle);
    assert_string_equal(tree, "manifest.json\n" PACKAGE_TREE);
    free(tree);
    read_manifest(&m, bundle);
    expect_keys(&m, keys, sizeof keys / sizeof *keys);
    expect_text(&m, "format", "laya-ane-research");
    assert_int_equal(number(&m, "version"), 1);
    expect_text(&m, "kind", "body");
    expect_text(&m, "graph", "per-head");
    expect_text(&m, "precision", "fp16");
    assert_int_equal(number(&m, "shape|batch"), 1);
    assert_int_equal(number(&m, "shape|length"), 96);
    assert_int_equal(number(&m, "shape|options"), 32);
    assert_true(laya_json_is_null(find(&m, "layer")));
    assert_int_equal(number(&m, "specification_version"), 7);
    expect_text(&m, "opset", "CoreML6");
    expect_text(&m, "package", "model.mlpackage");
    expect_text(&m, "tool|name", "laya.c");
    expect_text(&m, "tool|version", laya_version());
    expect_text(&m, "placement", "not_measured");
    expect_text(&m, "numerical_check", "not_measured");
    expect_text(&m, "timings", "not_measured");
    assert_true(is_hex(find(&m, "source_files_sha256|exporter")));
    assert_true(is_hex(find(&m, "source_files_sha256|runtime")));
    expect_sources(&m);
    expect_files(&m, bundle, files, 3);
    expect_package_digest(&m, bundle);
    expect_operations(&m);
    expect_text(&m, "host|by", "reference");
    expect_text(&m, "host|file", "model.safetensors");
    assert_int_equal(laya_json_size(find(&m, "host|tensors")), 6);
    free_manifest(&m);
}

static void test_small_kinds(void **state)
{
    (void)state;
    static const struct {
        laya_export_kind kind;
        const char *name;
    } kinds[] = {{LAYA_EXPORT_LAYER, "layer"}, {LAYA_EXPORT_MLP, "mlp"}};
    for (size_t i = 0; i < 2; i++) {
        char bundle[TEST_PATH_SIZE];
        manifest m;
        laya_export_options options;
        laya_export_options_init(&options);
        options.kind = kinds[i].kind;
        options.layer = 3;
        options.length = 16;
        options.graph = LAYA_GRAPH_LEAN;
        options.precision = LAYA_PACKAGE_FP32;
        export_to(at(bundle, kinds[i].name), &options);
        read_manifest(&m, bundle);
        expect_text(&m, "kind", kinds[i].name);
        expect_text(&m, "graph", "lean");
        expect_text(&m, "precision", "fp32");
        assert_int_equal(number(&m, "layer"), 3);
        assert_int_equal(number(&m, "shape|length"), 16);
        assert_true(laya_json_is_null(find(&m, "shape|options")));
        free_manifest(&m);
    }
}

/* ------------------------------------------------------------------ standalone */

static void expect_copy(const char *bundle, const char *name)
{
    char source[TEST_PATH_SIZE], demo_path[TEST_PATH_SIZE], copy[TEST_PATH_SIZE];
    size_t source_size, copy_size;
    char *expected = test_read_file(test_join(source, test_path(demo_path, TEST_DEMO), name), &source_size);
    char *found = test_read_file(test_join(copy, bundle, name), &copy_size);
    assert_int_equal(copy_size, source_size);
    assert_memory_equal(found, expected, source_size);
    free(expected);
    free(found);
}

static void expect_host_weights(const char *bundle)
{
    static const char *const names[] = {"act_head.0.bias",
                                        "act_head.0.weight",
                                        "act_head.2.bias",
                                        "act_head.2.weight",
                                        "encoder.embeddings.tok_embeddings.weight",
                                        "type_emb.weight"};
    char path[TEST_PATH_SIZE];
    size_t size, bytes = 0;
    laya_safetensors tensors;
    laya_error error;
    char *data = test_read_file(test_join(path, bundle, "host_weights.safetensors"), &size);
    if (laya_safetensors_read(&tensors, (const unsigned char *)data, size, NULL, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    assert_int_equal(tensors.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const laya_tensor_entry *found = &tensors.entries[i]; /* sorted by name */
        const laya_tensor_entry *expected = laya_safetensors_find(&demo->tensors, names[i]);
        assert_string_equal(found->name, names[i]);
        assert_int_equal(found->rank, expected->rank);
        assert_int_equal(found->tensor.rows, expected->tensor.rows);
        assert_int_equal(found->tensor.cols, expected->tensor.cols);
        assert_int_equal(found->tensor.dtype, expected->tensor.dtype);
        size_t tensor_bytes = (size_t)expected->tensor.rows * expected->tensor.cols * 2; /* all are fp16 */
        assert_memory_equal(found->tensor.data, expected->tensor.data, tensor_bytes);
        bytes += tensor_bytes;
    }
    assert_int_equal((size - bytes) % 8, 0); /* where the data begin */
    assert_contains(data + 8, "{\"act_head.0.bias\":{\"dtype\":\"F16\",\"shape\":[256],\"data_offsets\":[0,512]},");
    laya_safetensors_close(&tensors);
    free(data);
}

static void test_standalone_bundle(void **state)
{
    (void)state;
    static const char *const files[] = {"encoder/config.json",
                                        "host_weights.safetensors",
                                        MODEL_FILE,
                                        WEIGHT_FILE,
                                        PACKAGE_MANIFEST,
                                        "rl_agent_config.json",
                                        "tokenizer/tokenizer.json",
                                        "tokenizer/tokenizer_config.json"};
    char bundle[TEST_PATH_SIZE];
    manifest m;
    laya_export_options options;
    laya_export_options_init(&options);
    options.standalone = 1;
    options.graph = LAYA_GRAPH_LEAN;
    options.weights_sha256 = DEMO_WEIGHTS_SHA256;
    export_to(at(bundle, "bundle"), &options);
    char *tree = test_list_tree(bundle);
    assert_string_equal(tree, "encoder/\nencoder/config.json\nhost_weights.safetensors\nmanifest.json\n" PACKAGE_TREE
                              "rl_agent_config.json\ntokenizer/\ntokenizer/tokenizer.json\n"
                              "tokenizer/tokenizer_config.json\n");
    free(tree);
    read_manifest(&m, bundle);
    expect_files(&m, bundle, files, sizeof files / sizeof *files);
    expect_sources(&m);
    expect_text(&m, "host|by", "standalone");
    expect_text(&m, "host|file", "host_weights.safetensors");
    expect_text(&m, "host|tensors|encoder.embeddings.tok_embeddings.weight|dtype", "F16");
    free_manifest(&m);
    expect_host_weights(bundle);
    expect_copy(bundle, "rl_agent_config.json");
    expect_copy(bundle, "encoder/config.json");
    expect_copy(bundle, "tokenizer/tokenizer.json");
    expect_copy(bundle, "tokenizer/tokenizer_config.json");
}

/* ------------------------------------------------------------------ the same bytes */

static void test_same_bytes(void **state)
{
    (void)state;
    static const unsigned threads[] = {1, 2, 8, 0, 1};
    char first[TEST_PATH_SIZE], other[TEST_PATH_SIZE];
    laya_export_options options;
    laya_export_options_init(&options);
    options.standalone = 1;
    at(first, "0");
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        char name[2] = {(char)('0' + i), '\0'};
        options.threads = threads[i];
        export_to(at(other, name), &options);
        if (i > 0) test_same_bundle(first, other);
    }
}

/* ------------------------------------------------------------------ refusals */

static void test_arguments(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE];
    laya_export_options options;
    laya_export_options_init(&options);
    at(output, "bundle");
    expect_refusal(NULL, &options, output, LAYA_ERROR_ARGUMENT, "model must not be NULL");
    expect_refusal(demo, &options, NULL, LAYA_ERROR_ARGUMENT, "output");
    expect_refusal(demo, &options, "", LAYA_ERROR_ARGUMENT, "output");
    assert_int_equal(laya_model_export(demo, &options, NULL, NULL), LAYA_ERROR_ARGUMENT);
    options.size = 8;
    expect_refusal(demo, &options, output, LAYA_ERROR_ARGUMENT, "laya_export_options_init");
    expect_nothing();
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        uint32_t length, markers, layer;
        laya_export_kind kind;
        const char *reason; /* NULL: allowed */
    } cases[] = {
        {15, 32, 0, LAYA_EXPORT_BODY, "length: expected 16 to 1024"},
        {1025, 32, 0, LAYA_EXPORT_BODY, "found 1025"},
        {0, 32, 0, LAYA_EXPORT_BODY, "length"},
        {96, 0, 0, LAYA_EXPORT_BODY, "markers: expected 2 to 255"},
        {96, 1, 0, LAYA_EXPORT_BODY, "markers"},
        {96, 256, 0, LAYA_EXPORT_BODY, "found 256"},
        {96, 32, 4, LAYA_EXPORT_LAYER, "layer: expected 0 to 3"},
        {96, 32, UINT32_MAX, LAYA_EXPORT_MLP, "layer"},
        {96, 32, 0, (laya_export_kind)3, "kind"},
        {16, 2, 0, LAYA_EXPORT_BODY, NULL},
        {17, 255, 99, LAYA_EXPORT_BODY, NULL},
        {1024, 32, 0, LAYA_EXPORT_BODY, NULL},
        {96, 32, 3, LAYA_EXPORT_LAYER, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char output[TEST_PATH_SIZE];
        laya_export_options options;
        laya_export_options_init(&options);
        options.length = cases[i].length;
        options.markers = cases[i].markers;
        options.layer = cases[i].layer;
        options.kind = cases[i].kind;
        options.graph = LAYA_GRAPH_LEAN;
        at(output, "bundle");
        if (cases[i].reason) {
            expect_refusal(demo, &options, output, LAYA_ERROR_ARGUMENT, cases[i].reason);
            expect_nothing();
        } else {
            export_to(output, &options);
            test_remove_tree(output);
        }
    }
}

static void test_existing_output(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE], target[TEST_PATH_SIZE];
    assert_int_equal(mkdir(at(output, "directory"), 0700), 0);
    expect_refusal(demo, NULL, output, LAYA_ERROR_IO, "exists already");
    test_write_file(at(output, "file"), "text", 4);
    expect_refusal(demo, NULL, output, LAYA_ERROR_IO, "exists already");
    assert_int_equal(symlink(at(target, "missing"), at(output, "link")), 0);
    expect_refusal(demo, NULL, output, LAYA_ERROR_IO, "exists already");
    expect_refusal(demo, NULL, at(output, "file/bundle"), LAYA_ERROR_IO, "");
    char *tree = test_list_tree(test_folder);
    assert_string_equal(tree, "directory/\nfile\nlink\n");
    free(tree);
}

static void test_read_only_output(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE];
#if defined(__linux__)
    expect_refusal(demo, NULL, "/proc/laya/bundle", LAYA_ERROR_IO, "/proc/laya");
#endif
    if (geteuid() != 0) { /* root may write everywhere */
        assert_int_equal(chmod(test_folder, 0500), 0);
        expect_refusal(demo, NULL, at(output, "bundle"), LAYA_ERROR_IO, "permission denied");
        assert_int_equal(chmod(test_folder, 0700), 0);
    }
    expect_nothing();
}

static void test_other_weights(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE];
    laya_export_options options;
    laya_export_options_init(&options);
    at(output, "bundle");
    for (unsigned threads = 1; threads <= 2; threads++) {
        options.threads = threads;
        options.weights_sha256 = "54fd41a74a341f2e84cb5fd45a3b0c82aad4906b875680913935fc1c1d186e57";
        expect_refusal(
            demo, &options, output, LAYA_ERROR_FORMAT,
            "model.safetensors: expected SHA-256 "
            "54fd41a74a341f2e84cb5fd45a3b0c82aad4906b875680913935fc1c1d186e57, found " DEMO_WEIGHTS_SHA256);
        expect_nothing();
    }
    options.weights_sha256 = "54fd41a7";
    expect_refusal(demo, &options, output, LAYA_ERROR_ARGUMENT, "weights_sha256: expected 64");
    expect_nothing();
}

/* The checkpoint loses a file, or gets another one, after it was opened. */
static void test_changed_checkpoint(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE];
    laya_model *model;
    laya_error error;
    char *directory = test_make_checkpoint();
    if (laya_model_open(directory, NULL, &model, &error) != LAYA_OK) fail_msg("%s", error.message);
    at(output, "bundle");
    test_change_file(directory, "encoder/config.json", NULL, 0);
    expect_refusal(model, NULL, output, LAYA_ERROR_IO, "encoder/config.json");
    test_change_file(directory, "model.safetensors", "other", 5);
    expect_refusal(model, NULL, output, LAYA_ERROR_FORMAT, "found 5");
    expect_nothing();
    laya_model_close(model);
    test_remove_checkpoint(directory);
}

/* A weight that is no number would make every answer NaN. */
static void test_not_finite_weight(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    laya_model *model;
    laya_error error;
    size_t size;
    char *directory = test_make_checkpoint();
    char *data = test_read_file(test_path(path, TEST_DEMO "/model.safetensors"), &size);
    size_t offset = (size_t)(demo->weights.encoder[2].mlp_out.data - demo->weight_file.data) + 2 * 777;
    data[offset] = 0x00;
    data[offset + 1] = 0x7E;
    test_change_file(directory, "model.safetensors", data, size);
    free(data);
    if (laya_model_open(directory, NULL, &model, &error) != LAYA_OK) fail_msg("%s", error.message);
    expect_refusal(model, NULL, at(output, "bundle"), LAYA_ERROR_FORMAT, "layers");
    expect_nothing();
    laya_model_close(model);
    test_remove_checkpoint(directory);
}

/* ------------------------------------------------------------------ progress, interrupt, memory */

typedef struct watch {
    unsigned polls, stop_at;
    unsigned reports;
    uint64_t done, total;
} watch;

static int poll_watch(void *user)
{
    watch *w = user;
    return ++w->polls == w->stop_at;
}

static void see_progress(void *user, uint64_t done, uint64_t total)
{
    watch *w = user;
    assert_true(total > 0 && done >= w->done && done <= total);
    assert_true(w->reports == 0 || total == w->total);
    w->reports++;
    w->done = done;
    w->total = total;
}

/* One thread: polls have a fixed order. */
static unsigned stop_at(unsigned poll, laya_status expected)
{
    char output[TEST_PATH_SIZE];
    watch w = {.stop_at = poll};
    laya_export_options options;
    laya_error error;
    laya_export_options_init(&options);
    options.standalone = 1;
    options.threads = 1;
    options.interrupt = (laya_interrupt){&w, poll_watch};
    laya_status status = laya_model_export(demo, &options, at(output, "bundle"), &error);
    assert_int_equal(status, expected);
    if (status == LAYA_OK) {
        test_remove_tree(output);
    } else {
        assert_contains(error.message, "interrupted");
        expect_nothing();
    }
    return w.polls;
}

static void test_interrupt(void **state)
{
    (void)state;
    unsigned polls = stop_at(0, LAYA_OK);
    assert_true(polls >= 20); /* some dozens of times a call */
    for (unsigned poll = 1; poll <= polls; poll += 1 + poll / 4)
        assert_int_equal(stop_at(poll, LAYA_ERROR_STOPPED), poll);
    stop_at(polls, LAYA_ERROR_STOPPED);
}

static void test_progress(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE];
    for (unsigned threads = 1; threads <= 2; threads++) {
        watch w = {0};
        laya_export_options options;
        laya_export_options_init(&options);
        options.threads = threads;
        options.standalone = (int)threads - 1;
        options.progress = (laya_progress){&w, see_progress};
        export_to(at(output, "bundle"), &options);
        assert_true(w.reports > 0 && w.reports < 200);
        if (threads == 1) assert_true(w.reports >= 10);
        assert_true(w.done == w.total);
        test_remove_tree(output);
    }
}

/* Wherever memory runs out: one error, nothing left, nothing lost. */
static void test_out_of_memory(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    laya_model *model;
    laya_model_options model_options;
    laya_export_options options;
    laya_error error;
    test_memory memory;
    test_memory_init(&memory);
    laya_model_options_init(&model_options);
    model_options.allocator = memory.hooks;
    assert_int_equal(laya_model_open(test_path(path, TEST_DEMO), &model_options, &model, &error), LAYA_OK);
    laya_export_options_init(&options);
    options.graph = LAYA_GRAPH_LEAN;
    options.standalone = 1;
    options.threads = 1;
    at(output, "bundle");
    size_t live = memory.live;
    laya_status status = LAYA_ERROR_MEMORY;
    for (size_t fail_at = 1; status != LAYA_OK; fail_at += 1 + fail_at / (TEST_SANITIZED ? 8 : 32)) {
        test_memory_arm(&memory, fail_at);
        status = laya_model_export(model, &options, output, &error);
        assert_int_equal(memory.live, live);
        if (status == LAYA_OK && !memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_contains(error.message, "out of memory");
        expect_nothing();
    }
    laya_model_close(model);
    assert_int_equal(memory.live, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup_folder, test_teardown_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_reference_bundle),   TEST(test_small_kinds),       TEST(test_standalone_bundle),
        TEST(test_same_bytes),         TEST(test_arguments),         TEST(test_limits),
        TEST(test_existing_output),    TEST(test_read_only_output),  TEST(test_other_weights),
        TEST(test_changed_checkpoint), TEST(test_not_finite_weight), TEST(test_interrupt),
        TEST(test_progress),           TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, open_demo, close_demo);
}
