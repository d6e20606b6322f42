/* SPDX-License-Identifier: Apache-2.0 */
/* Palettized bundles: what changes and what does not, what the manifest says of it, what is refused. */
#include "palettes.h"

#include "interpreter/step.h"
#include "runtime/bundle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 32u
#define WEIGHTS 25u /* 4 encoder layers of 4, 2 head layers of 4, the scorer's first */
#define WEIGHT_BIN "model.mlpackage/" LAYA_PACKAGE_WEIGHTS

static char folder[TEST_PATH_SIZE], parent[TEST_PATH_SIZE], output[TEST_PATH_SIZE];

static int make_parent(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE];
    test_make_folder(folder);
    test_join(parent, folder, "parent");
    test_join(output, folder, "output");
    test_export(test_path(model, TEST_DEMO), LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, LENGTH, true, parent);
    return 0;
}

static int remove_parent(void **state)
{
    (void)state;
    test_remove_tree(folder);
    return 0;
}

/* ------------------------------------------------------------------ making */

static laya_palettize_options options_of(laya_palette_mode mode, uint32_t bits, uint32_t group_size)
{
    laya_palettize_options options;
    laya_palettize_options_init(&options);
    options.mode = mode;
    options.bits = bits;
    options.group_size = group_size;
    options.workers = 2;
    return options;
}

static void make_from(const char *from, laya_palette_mode mode, uint32_t bits, uint32_t group_size)
{
    laya_error error;
    laya_palettize_options options = options_of(mode, bits, group_size);
    if (laya_palettize(from, &options, output, &error) != LAYA_OK) fail_msg("%s", error.message);
}

static void make(laya_palette_mode mode, uint32_t bits, uint32_t group_size)
{
    make_from(parent, mode, bits, group_size);
}

/* It fails, says `part`, and leaves nothing. */
static void refuse_from(const char *from, const laya_palettize_options *options, laya_status status, const char *part)
{
    laya_error error;
    char *before = test_list_tree(folder);
    assert_int_equal(laya_palettize(from, options, output, &error), status);
    if (!strstr(error.message, part)) fail_msg("'%s' does not say '%s'", error.message, part);
    char *after = test_list_tree(folder);
    assert_string_equal(after, before);
    free(before);
    free(after);
}

/* ------------------------------------------------------------------ what changes */

static const laya_mil_value *find_value(const laya_package *package, const char *name)
{
    for (const laya_mil_op *op = package->program.functions[0].body.first; op; op = op->next) {
        for (uint32_t at = 0; at < op->output_count; at++) {
            if (strcmp(op->outputs[at]->name, name) == 0) return op->outputs[at];
        }
    }
    fail_msg("no value %s", name);
    return NULL;
}

static double half_at(const unsigned char *bytes, uint64_t at)
{
    unsigned bits = bytes[2 * at] | (unsigned)bytes[2 * at + 1] << 8;
    int exponent = (int)(bits >> 10 & 31), mantissa = (int)(bits & 1023);
    double value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return bits & 0x8000 ? -value : value;
}

typedef struct counts {
    uint32_t same, palettes;
    double sse, energy, largest;
} counts;

static void compare_constant(const laya_mil_value *before, const laya_mil_value *after, laya_mil_opset opset,
                             counts *found)
{
    const laya_mil_constant *constant = before->constant;
    if (after->constant) {
        assert_int_equal(after->constant->size, constant->size);
        if (constant->bytes) assert_memory_equal(after->constant->bytes, constant->bytes, constant->size);
        found->same++;
        return;
    }
    const laya_allocator allocator = laya_allocator_or_default(NULL);
    unsigned char *bytes;
    uint64_t size;
    laya_error error;
    assert_string_equal(after->op->type, "constexpr_lut_to_dense");
    assert_int_equal(laya_constexpr_expand(after->op, opset, &allocator, &bytes, &size, &error), LAYA_OK);
    assert_int_equal(size, constant->size);
    for (uint64_t at = 0; at < size / 2; at++) {
        double value = half_at(constant->bytes, at), difference = value - half_at(bytes, at);
        found->sse += difference * difference;
        found->energy += value * value;
        if (fabs(difference) > found->largest) found->largest = fabs(difference);
    }
    found->palettes++;
    laya_release(&allocator, bytes);
}

/* Every constant of the parent is the same, or a palette whose errors are summed. */
static counts compare_constants(const char *child)
{
    counts found = {0};
    laya_package *before = test_open_package(parent), *after = test_open_package(child);
    const laya_mil_opset opset = after->program.functions[0].opset;
    for (const laya_mil_op *op = before->program.functions[0].body.first; op; op = op->next) {
        if (op->output_count == 1 && op->outputs[0]->constant)
            compare_constant(op->outputs[0], find_value(after, op->outputs[0]->name), opset, &found);
    }
    laya_package_close(before);
    laya_package_close(after);
    return found;
}

typedef struct document {
    char *text;
    laya_json doc;
} document;

static document read_manifest(const char *bundle)
{
    char path[TEST_PATH_SIZE];
    laya_error error;
    document d;
    d.text = test_read_file(test_join(path, bundle, LAYA_BUNDLE_MANIFEST), NULL);
    assert_int_equal(laya_json_parse(&d.doc, d.text, strlen(d.text), NULL, &error), LAYA_OK);
    return d;
}

static void close_document(document *d)
{
    laya_json_close(&d->doc);
    free(d->text);
}

static double number(laya_json_value object, const char *name)
{
    double value;
    if (!laya_json_to_double(laya_json_get(object, name), &value)) fail_msg("%s is no number", name);
    return value;
}

/* Sums over the weights that the manifest lists. */
static void test_figures(void **state)
{
    (void)state;
    make(LAYA_PALETTE_KMEANS, 4, 32);
    counts found = compare_constants(output);
    document d = read_manifest(output);
    laya_json_value palette = laya_json_get(laya_json_root(&d.doc), "palette"),
                    weights = laya_json_get(palette, "weights");
    double sse = 0, largest = 0, before = 0, after = 0;
    for (laya_json_iterator it = laya_json_first(weights); laya_json_present(it.value); laya_json_next(&it)) {
        sse += number(it.value, "sse");
        if (number(it.value, "largest_error") > largest) largest = number(it.value, "largest_error");
        before += number(it.value, "bytes_before");
        after += number(it.value, "bytes_after");
    }
    assert_int_equal(laya_json_size(weights), WEIGHTS);
    assert_int_equal(found.palettes, WEIGHTS);
    assert_true(found.same > WEIGHTS); /* norms, biases, RoPE, parameters */
    assert_true(fabs(sse - found.sse) <= 1e-9 * found.sse && found.sse > 0);
    assert_true(largest == found.largest);
    double relative = number(palette, "relative_error");
    assert_true(fabs(relative - found.sse / found.energy) <= 1e-9 * relative);
    /* 4 bits an element, and 16 entries of two bytes for 32 channels of 192 or 256 inputs, or of 768 */
    assert_true(number(palette, "weight_bytes_before") == before && number(palette, "weight_bytes_after") == after);
    assert_true(after > before / 4 && after < before / 4 * 1.02);
    assert_true(laya_json_equals(laya_json_get(palette, "gate"), "not_measured"));
    /* The time is that of this bundle, not the parent's. */
    assert_true(number(laya_json_root(&d.doc), "conversion_seconds") == number(palette, "seconds"));
    close_document(&d);
    test_remove_tree(output);
}

static void expect_form(laya_palette_mode mode, uint32_t bits, uint32_t group_size, int version, const char *palette)
{
    make(mode, bits, group_size);
    laya_package *package = test_open_package(output);
    assert_int_equal(package->program.specification_version, version);
    assert_int_equal((int)package->program.functions[0].opset, version);
    laya_package_close(package);
    laya_bundle *bundle = test_open_bundle(output, LAYA_NUMERICS_FP16, 2);
    laya_bucket_info child, before;
    assert_true(laya_bundle_bucket(bundle, 0, &child));
    assert_string_equal(child.palette, palette);
    laya_bundle *first = test_open_bundle(parent, LAYA_NUMERICS_FP16, 2);
    assert_true(laya_bundle_bucket(first, 0, &before));
    assert_null(before.palette);
    assert_int_equal(child.operations, before.operations); /* what expands constants does not run */
    assert_string_equal(bundle->buckets[0].manifest.parent_sha256, before.package_sha256);
    laya_bundle_close(first);
    laya_bundle_close(bundle);
    test_remove_tree(output);
}

/* The opset is raised where the form needs it. CoreML6 is specification version 7, CoreML8 is 9. */
static void test_forms(void **state)
{
    (void)state;
    expect_form(LAYA_PALETTE_KMEANS, 4, 0, 7, "kmeans, 4 bits, per tensor");
    expect_form(LAYA_PALETTE_UNIFORM, 1, 0, 7, "uniform, 1 bit, per tensor");
    expect_form(LAYA_PALETTE_KMEANS, 3, 0, 9, "kmeans, 3 bits, per tensor");
    expect_form(LAYA_PALETTE_UNIFORM, 8, 4, 9, "uniform, 8 bits, groups of 4");
}

static void test_float32(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE], wide[TEST_PATH_SIZE];
    test_join(wide, folder, "wide");
    test_export(test_path(model, TEST_DEMO), LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP32, LENGTH, false, wide);
    make_from(wide, LAYA_PALETTE_KMEANS, 8, 0);
    laya_package *package = test_open_package(output);
    assert_int_equal(package->program.specification_version, 7); /* from CoreML5, which has no palettes */
    laya_package_close(package);
    laya_bundle_close(test_open_bundle(output, LAYA_NUMERICS_FP32, 2));
    test_remove_tree(output);
    test_remove_tree(wide);
}

/* Files of the host are the parent's; the bundle answers by itself. */
static void test_standalone(void **state)
{
    (void)state;
    static const char *const files[] = {LAYA_BUNDLE_HOST_WEIGHTS, "rl_agent_config.json", "encoder/config.json",
                                        "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"};
    static const char question[] = "{\"refund\": {\"type\": \"noul\", \"instructions\": \"Is a refund wanted?\"}}";
    char path[TEST_PATH_SIZE];
    const char *result;
    make(LAYA_PALETTE_KMEANS, 8, 32);
    for (size_t at = 0; at < sizeof files / sizeof *files; at++) {
        size_t sizes[2];
        char *before = test_read_file(test_join(path, parent, files[at]), &sizes[0]);
        char *after = test_read_file(test_join(path, output, files[at]), &sizes[1]);
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(before, after, sizes[0]);
        free(before);
        free(after);
    }
    laya_bundle *bundle = test_open_bundle(output, LAYA_NUMERICS_FP16, 2);
    laya_context *context = test_bundle_context(bundle, false);
    assert_int_equal(laya_predict(context, "\"x\"", 3, question, sizeof question - 1, NULL, &result, NULL), LAYA_OK);
    assert_non_null(strstr(result, "\"refund\""));
    laya_context_close(context);
    laya_bundle_close(bundle);
    test_remove_tree(output);
}

static void test_workers(void **state)
{
    (void)state;
    static const char *const files[] = {"model.mlpackage/" LAYA_PACKAGE_MODEL, WEIGHT_BIN,
                                        "model.mlpackage/" LAYA_PACKAGE_MANIFEST};
    static const unsigned workers[] = {1, 2, 3, 8};
    char *first[3] = {NULL}, path[TEST_PATH_SIZE];
    size_t sizes[3];
    for (size_t at = 0; at < 4; at++) {
        laya_error error;
        laya_palettize_options options = options_of(LAYA_PALETTE_KMEANS, 6, 32);
        options.workers = workers[at];
        assert_int_equal(laya_palettize(parent, &options, output, &error), LAYA_OK);
        for (size_t file = 0; file < 3; file++) {
            size_t size;
            char *data = test_read_file(test_join(path, output, files[file]), &size);
            if (at > 0) {
                assert_int_equal(size, sizes[file]);
                assert_memory_equal(data, first[file], size);
                free(data);
            } else {
                first[file] = data;
                sizes[file] = size;
            }
        }
        test_remove_tree(output);
    }
    for (size_t file = 0; file < 3; file++) free(first[file]);
}

/* ------------------------------------------------------------------ what is refused */

static void test_refused(void **state)
{
    (void)state;
    char child[TEST_PATH_SIZE], weights[TEST_PATH_SIZE];
    laya_palettize_options options = options_of(LAYA_PALETTE_KMEANS, 2, 0);
    laya_error error;
    assert_int_equal(laya_palettize(parent, &options, test_join(child, folder, "child"), &error), LAYA_OK);
    refuse_from(child, &options, LAYA_ERROR_UNSUPPORTED, "kmeans, 2 bits, per tensor");
    options.group_size = 5;
    refuse_from(parent, &options, LAYA_ERROR_FORMAT, "groups of 5 do not divide");
    options.group_size = 32;
    test_flip_byte(test_join(weights, parent, WEIGHT_BIN));
    refuse_from(parent, &options, LAYA_ERROR_FORMAT, "weight.bin");
    test_flip_byte(weights);
    options.mode = LAYA_PALETTE_UNIQUE;
    refuse_from(parent, &options, LAYA_ERROR_UNSUPPORTED, "256 distinct values");
    options.mode = LAYA_PALETTE_KMEANS;
    options.bits = 5;
    refuse_from(parent, &options, LAYA_ERROR_ARGUMENT, "bits");
    options.bits = 2;
    assert_int_equal(laya_palettize(parent, &options, child, &error), LAYA_ERROR_IO);
    assert_non_null(strstr(error.message, "exists already"));
    test_remove_tree(child);
}

static void put_nan(unsigned char *weight, uint64_t size)
{
    (void)size;
    weight[2000] = 1;
    weight[2001] = 0x7e;
}

/* Seven values from 1 to 7, all of them in every output channel. */
static void put_seven_values(unsigned char *weight, uint64_t size)
{
    static const unsigned char high[] = {0x3c, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47};
    for (uint64_t at = 0; at < size; at += 2) {
        weight[at] = 0;
        weight[at + 1] = high[at / 2 % 7];
    }
}

/* Change a weight of a package, whose manifest stays right about the files. */
static void change_weight(const char *bundle, const char *name, void (*change)(unsigned char *weight, uint64_t size))
{
    char path[TEST_PATH_SIZE], hash[2][65], digest[2][65];
    uint64_t size;
    laya_error error;
    laya_package_files files = {0};
    test_join(path, bundle, WEIGHT_BIN);
    laya_package *package = test_open_package(bundle);
    const laya_mil_constant *weight = find_value(package, name)->constant;
    const size_t place = (size_t)(weight->bytes - package->weight_file.data), weight_size = (size_t)weight->size;
    laya_package_close(package);
    assert_int_equal(laya_hash_file(path, hash[0], &size, NULL, &error), LAYA_OK);
    char *data = test_read_file(path, NULL);
    change((unsigned char *)data + place, weight_size);
    test_write_file(path, data, (size_t)size);
    free(data);
    assert_int_equal(laya_hash_file(path, hash[1], &size, NULL, &error), LAYA_OK);
    document d = read_manifest(bundle);
    laya_json_value root = laya_json_root(&d.doc), listed = laya_json_get(root, "files");
    static const char *const names[] = {LAYA_PACKAGE_MODEL, LAYA_PACKAGE_WEIGHTS, LAYA_PACKAGE_MANIFEST};
    laya_written *const places[] = {&files.model, &files.weights, &files.manifest};
    for (size_t at = 0; at < 3; at++) {
        size_t length;
        char key[256];
        snprintf(key, sizeof key, "model.mlpackage/%s", names[at]);
        laya_json_value file = laya_json_get(listed, key);
        memcpy(places[at]->sha256, laya_json_text(laya_json_get(file, "sha256"), &length), 64);
        places[at]->size = (uint64_t)number(file, "bytes");
    }
    close_document(&d);
    assert_int_equal(laya_package_digest(&files, digest[0], &error), LAYA_OK);
    memcpy(files.weights.sha256, hash[1], 64);
    assert_int_equal(laya_package_digest(&files, digest[1], &error), LAYA_OK);
    test_edit_file(bundle, LAYA_BUNDLE_MANIFEST, hash[0], hash[1]);
    test_edit_file(bundle, LAYA_BUNDLE_MANIFEST, digest[0], digest[1]);
}

static void test_not_finite(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE], bad[TEST_PATH_SIZE];
    test_join(bad, folder, "bad");
    test_export(test_path(model, TEST_DEMO), LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, LENGTH, false, bad);
    change_weight(bad, "layers_1_mlp_out_weight", put_nan);
    laya_palettize_options options = options_of(LAYA_PALETTE_KMEANS, 4, 32);
    refuse_from(bad, &options, LAYA_ERROR_FORMAT, "layers_1_mlp_out_weight");
    refuse_from(bad, &options, LAYA_ERROR_FORMAT, "nan");
    test_remove_tree(bad);
}

typedef struct warnings {
    unsigned count;
    bool named; /* one of them names a weight that stays as it is */
    bool wrong; /* or the one that has a table */
} warnings;

static void see_warning(void *user, laya_log_level level, const char *message)
{
    warnings *seen = user;
    if (level != LAYA_LOG_WARNING) return;
    seen->count++;
    seen->named |= strncmp(message, "scorer_in_weight: ", 18) == 0;
    seen->wrong |= strncmp(message, "layers_1_attn_out_weight: ", 26) == 0;
}

/* Of 25 weights one has few values: it gets them as its table, in 4 bits where the form has no 3. The others stay. */
static void expect_unique(const char *few, uint32_t group_size, uint32_t bits, const char *text)
{
    warnings seen = {0};
    laya_error error;
    laya_palettize_options options = options_of(LAYA_PALETTE_UNIQUE, 0, group_size);
    options.logger = (laya_logger){&seen, see_warning};
    if (laya_palettize(few, &options, output, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(seen.count, WEIGHTS - 1);
    assert_true(seen.named && !seen.wrong);
    document d = read_manifest(output);
    laya_json_value palette = laya_json_get(laya_json_root(&d.doc), "palette");
    laya_json_value weights = laya_json_get(palette, "weights"), skipped = laya_json_get(palette, "skipped");
    laya_json_value weight = laya_json_first(weights).value;
    assert_int_equal(laya_json_size(weights), 1);
    assert_int_equal(laya_json_size(skipped), WEIGHTS - 1);
    assert_true(laya_json_equals(laya_json_get(weight, "name"), "layers_1_attn_out_weight"));
    assert_true(number(weight, "bits") == bits && number(weight, "sse") == 0);
    assert_true(laya_json_equals(laya_json_get(palette, "bits"), "per weight"));
    close_document(&d);
    laya_bundle *bundle = test_open_bundle(output, LAYA_NUMERICS_FP16, 2);
    laya_bucket_info info;
    assert_true(laya_bundle_bucket(bundle, 0, &info));
    assert_string_equal(info.palette, text);
    laya_bundle_close(bundle);
    test_remove_tree(output);
}

static void test_unique(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE], few[TEST_PATH_SIZE];
    test_join(few, folder, "few");
    test_export(test_path(model, TEST_DEMO), LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, LENGTH, false, few);
    change_weight(few, "layers_1_attn_out_weight", put_seven_values);
    expect_unique(few, 0, 4, "unique, bits per weight, per tensor");
    expect_unique(few, 32, 3, "unique, bits per weight, groups of 32");
    test_remove_tree(few);
}

/* Parts of a body answer no questions, but have weights. The bundle is named by its package. */
static void expect_part(const laya_model *model, laya_export_kind kind, uint32_t weights)
{
    char part[TEST_PATH_SIZE], package[TEST_PATH_SIZE];
    laya_error error;
    laya_export_options options;
    laya_export_options_init(&options);
    options.kind = kind;
    options.layer = 1;
    options.length = LENGTH;
    if (laya_model_export(model, &options, test_join(part, folder, "part"), &error) != LAYA_OK)
        fail_msg("%s", error.message);
    make_from(test_join(package, part, "model.mlpackage"), LAYA_PALETTE_KMEANS, 4, 32);
    document before = read_manifest(part), after = read_manifest(output);
    laya_json_value old = laya_json_root(&before.doc), new = laya_json_root(&after.doc);
    assert_int_equal(laya_json_size(laya_json_get(laya_json_get(new, "palette"), "weights")), weights);
    assert_true(number(laya_json_get(new, "operations"), "total") ==
                number(laya_json_get(old, "operations"), "total"));
    assert_true(number(laya_json_get(new, "operations"), "constexpr") == weights);
    assert_true(number(new, "layer") == 1);
    close_document(&before);
    close_document(&after);
    laya_palettize_options weighted = options_of(LAYA_PALETTE_WEIGHTED, 4, 32);
    weighted.fixture = "questions.json";
    test_remove_tree(output);
    refuse_from(part, &weighted, LAYA_ERROR_UNSUPPORTED, "answers no questions");
    test_remove_tree(part);
}

static void test_parts(void **state)
{
    (void)state;
    laya_model *model = test_open_model(TEST_DEMO);
    expect_part(model, LAYA_EXPORT_LAYER, 4);
    expect_part(model, LAYA_EXPORT_MLP, 2);
    laya_model_close(model);
}

/* A manifest that is wrong about its palettes opens no bundle. */
static void test_manifest_reader(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } cases[] = {{"\"mode\": \"kmeans\"", "\"mode\": \"median\"", "mode"},
                 {"\"bits\": 4,", "\"bits\": 9,", "bits"},
                 {"\"bits\": 4,", "\"bits\": null,", "bits"},
                 {"\"group_size\": 32", "\"group_size\": 0", "group_size"},
                 {"\"parent_package_sha256\": \"", "\"parent_package_sha256\": \"x", "parent_package_sha256"},
                 {"\"palette\": {", "\"palette\": 1, \"other\": {", "palette"}};
    make(LAYA_PALETTE_KMEANS, 4, 32);
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        laya_bundle *bundle;
        laya_error error;
        test_edit_file(output, LAYA_BUNDLE_MANIFEST, cases[at].from, cases[at].to);
        assert_int_equal(laya_bundle_open(output, NULL, &bundle, &error), LAYA_ERROR_FORMAT);
        if (!strstr(error.message, cases[at].part)) fail_msg("'%s': no '%s'", error.message, cases[at].part);
        test_edit_file(output, LAYA_BUNDLE_MANIFEST, cases[at].to, cases[at].from);
    }
    laya_bundle_close(test_open_bundle(output, LAYA_NUMERICS_FP16, 1));
    test_remove_tree(output);
}

/* One allocation after the other fails, in growing strides: an error, nothing left on disk or in memory. */
static void test_failing_memory(void **state)
{
    (void)state;
    test_memory memory;
    bool failed = true;
    for (size_t at = 1; failed; at += 1 + at / (TEST_SANITIZED ? 3 : 8)) {
        laya_palettize_options options = options_of(LAYA_PALETTE_KMEANS, 2, 0);
        laya_error error;
        test_memory_init(&memory);
        options.allocator = memory.hooks;
        options.workers = 1;
        test_memory_arm(&memory, at);
        laya_status status = laya_palettize(parent, &options, output, &error);
        failed = memory.failed;
        assert_int_equal(status, failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        assert_int_equal(memory.live, 0);
        if (!failed) test_remove_tree(output);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),         cmocka_unit_test(test_forms),         cmocka_unit_test(test_float32),
        cmocka_unit_test(test_standalone),      cmocka_unit_test(test_workers),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_finite),      cmocka_unit_test(test_unique),        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_manifest_reader), cmocka_unit_test(test_failing_memory)};
    return cmocka_run_group_tests(tests, make_parent, remove_parent);
}
