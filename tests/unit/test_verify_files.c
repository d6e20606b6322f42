/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier on packages on disk: the weight file, the report, what was read back, the hashes of a bundle. */
#include "mil_program.h"
#include "tree.h"

#include "base/json.h"
#include "mil/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKAGE "model.mlpackage"
#define WEIGHTS PACKAGE "/" LAYA_PACKAGE_WEIGHTS

/* weight at 64, gamma and beta after it: a record of 64 bytes and 8,192, 128 and 128 bytes */
#define WEIGHT_DATA 128
#define WEIGHT_BYTES 8192
#define GAMMA_RECORD 8320
#define FILE_BYTES 8704

/* A folder with the package of the good program. */
static void make_bundle(char folder[TEST_PATH_SIZE])
{
    char path[TEST_PATH_SIZE];
    laya_mil_program program;
    laya_package_files files;
    laya_error error;
    test_make_folder(folder);
    test_build_program(&program, NULL);
    if (laya_package_write(&program, test_join(path, folder, PACKAGE), NULL, &files, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    assert_int_equal(files.weights.size, FILE_BYTES);
    laya_mil_program_close(&program);
}

static laya_package *open_in(const char *folder, const laya_allocator *allocator)
{
    char path[TEST_PATH_SIZE];
    laya_package *package;
    laya_error error;
    if (laya_package_open(test_join(path, folder, PACKAGE), allocator, &package, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    return package;
}

/* Overwrite bytes of a file. */
static void patch(const char *folder, const char *name, long at, const void *bytes, size_t size)
{
    char path[TEST_PATH_SIZE];
    FILE *file = fopen(test_join(path, folder, name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* This finding, and `others` more. */
static void expect(const laya_package *package, bool error, unsigned check, const char *text, uint32_t others)
{
    laya_verdict verdict;
    test_check_package(package, &verdict);
    if (!test_has_finding(&verdict, error, check, text) || verdict.finding_count != 1 + others) {
        test_print_findings(&verdict);
        fail_msg("expected \"%s\" and %u others", text, others);
    }
    laya_verdict_close(&verdict);
}

/* ------------------------------------------------------------------ weight file */

static void test_values_in_file(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE];
    static const unsigned char nan[2] = {0x00, 0x7e};
    make_bundle(folder);
    patch(folder, WEIGHTS, WEIGHT_DATA + WEIGHT_BYTES - 2, nan, 2);
    laya_package *package = open_in(folder, NULL);
    expect(package, true, 5, "constant 'weight' (fp16 [64, 64, 1, 1]): element 4095 is NaN", 0);
    laya_package_close(package);
    test_remove_tree(folder);
}

static void test_blob_count(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE];
    static const unsigned char less = 2, more = 4;
    make_bundle(folder);
    patch(folder, WEIGHTS, 0, &more, 1);
    laya_package *package = open_in(folder, NULL);
    expect(package, true, 3, "weight file: the header counts 4 blobs, the file holds 3", 0);
    laya_package_close(package);
    patch(folder, WEIGHTS, 0, &less, 1);
    package = open_in(folder, NULL);
    expect(package, true, 3, "after the 2 blobs that the header counts", 0);
    laya_package_close(package);
    test_remove_tree(folder);
}

static laya_mil_constant *constant_of(laya_package *package, const char *name)
{
    return (laya_mil_constant *)(uintptr_t)test_find_value(&package->program, name)->constant;
}

static void test_references(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE];
    make_bundle(folder);
    laya_package *package = open_in(folder, NULL);
    laya_mil_constant *gamma = constant_of(package, "gamma");
    assert_true(gamma->in_file);
    assert_int_equal(gamma->offset, GAMMA_RECORD);

    gamma->in_file = false;
    expect(package, false, 3, "weight file: 1 of 3 blobs (128 bytes) belong to no constant", 0);
    gamma->in_file = true;
    gamma->offset = 128;
    expect(package, true, 3, "constant 'gamma': no record of the weight file begins at its offset 128", 1);
    gamma->offset = FILE_BYTES;
    expect(package, true, 3, "constant 'gamma': no record of the weight file begins at its offset 8704", 1);
    gamma->offset = 64;
    expect(package, true, 3, "constant 'gamma' (fp16 [64]): its record in the weight file holds 8192 bytes of fp16",
           1);
    gamma->offset = GAMMA_RECORD;
    gamma->type.dtype = LAYA_MIL_BF16;
    expect(package, true, 3, "constant 'gamma' (bf16 [64]): its record in the weight file holds 128 bytes of fp16",
           1);
    gamma->type.dtype = LAYA_MIL_FP16;
    laya_verdict verdict;
    test_check_package(package, &verdict);
    assert_int_equal(verdict.finding_count, 0);
    laya_verdict_close(&verdict);
    laya_package_close(package);
    test_remove_tree(folder);
}

/* A weight file in memory with one blob of this type code, size and padding. */
static void make_blob(unsigned char file[256], unsigned char code, uint32_t size, unsigned char padding)
{
    memset(file, 0, 256);
    file[0] = 1;
    file[4] = 2;
    memcpy(file + 64, "\xef\xbe\xad\xde", 4);
    file[68] = code;
    for (int i = 0; i < 4; i++) file[72 + i] = (unsigned char)(size >> 8 * i);
    file[80] = 128;
    file[88] = padding;
}

/* The good program and one more constant, at 64 of the file. */
static void add_file_constant(laya_mil_program *program, laya_mil_dtype dtype, int64_t count,
                              const unsigned char *file)
{
    laya_mil_type type = laya_mil_vector(dtype, count);
    laya_mil_constant *constant = test_take(program, sizeof *constant);
    *constant = (laya_mil_constant){.type = type, .in_file = true, .offset = 64, .bytes = file + 128};
    assert_true(laya_mil_type_size(&type, &constant->size));
    test_add_attribute(program, test_append_op(program, "const", "stored", type), "val", constant);
}

static void test_padding(void **unused)
{
    (void)unused;
    unsigned char file[256];
    laya_mil_program program;
    test_build_program(&program, NULL);
    make_blob(file, 11, 3, 4); /* uint4, 5 elements in 3 bytes */
    laya_package package = test_in_memory(&program);
    package.weight_file = (laya_file){file, 131};
    add_file_constant(&package.program, LAYA_MIL_UINT4, 6, file);
    expect(&package, true, 3,
           "constant 'stored' (uint4 [6]): its record in the weight file holds 3 bytes of uint4, 4", 0);
    make_blob(file, 11, 3, 0);
    laya_verdict verdict;
    test_check_package(&package, &verdict);
    assert_int_equal(verdict.finding_count, 0);
    laya_verdict_close(&verdict);
    laya_mil_program_close(&package.program);
}

/* Only the record of such a file is read, so that the data need not exist. */
static void test_large_file(void **unused)
{
    (void)unused;
    unsigned char file[256];
    laya_mil_program program;
    test_build_program(&program, NULL);
    laya_package package = test_in_memory(&program);
    make_blob(file, 3, 0x80000000u - 128, 0);
    package.weight_file = (laya_file){file, 0x80000000u};
    add_file_constant(&package.program, LAYA_MIL_UINT8, 0x80000000 - 128, file);
    expect(&package, true, 3, "weight file: 2147483648 bytes; Core ML was seen to refuse files of 2 GiB and more", 0);
    laya_mil_program_close(&package.program);

    test_build_program(&program, NULL);
    package.program = program;
    make_blob(file, 3, 0x7fffffffu - 128, 0);
    package.weight_file.size = 0x7fffffffu;
    add_file_constant(&package.program, LAYA_MIL_UINT8, 0x7fffffff - 128, file);
    laya_verdict verdict;
    test_check_package(&package, &verdict);
    assert_int_equal(verdict.finding_count, 0);
    laya_verdict_close(&verdict);
    laya_mil_program_close(&package.program);
}

static void test_no_weight_file(void **unused)
{
    (void)unused;
    laya_mil_program program;
    test_build_program(&program, NULL);
    laya_package package = test_in_memory(&program);
    package.weights_path = (char *)"weight.bin";
    expect(&package, true, 3, "weight file: empty", 0);
    laya_mil_program_close(&program);
}

/* ------------------------------------------------------------------ report */

static const char report[] = "{\n"
                             "  \"package\": \"%s/model.mlpackage\",\n"
                             "  \"passed\": false,\n"
                             "  \"errors\": 1,\n"
                             "  \"warnings\": 1,\n"
                             "  \"checks\": [\n"
                             "    {\n"
                             "      \"check\": 1,\n"
                             "      \"name\": \"names and order\",\n"
                             "      \"errors\": 0,\n"
                             "      \"warnings\": 0\n"
                             "    },\n"
                             "    {\n"
                             "      \"check\": 2,\n"
                             "      \"name\": \"interface\",\n"
                             "      \"errors\": 0,\n"
                             "      \"warnings\": 0\n"
                             "    },\n"
                             "    {\n"
                             "      \"check\": 3,\n"
                             "      \"name\": \"types and stored constants\",\n"
                             "      \"errors\": 0,\n"
                             "      \"warnings\": 0\n"
                             "    },\n"
                             "    {\n"
                             "      \"check\": 4,\n"
                             "      \"name\": \"parameters\",\n"
                             "      \"errors\": 0,\n"
                             "      \"warnings\": 1\n"
                             "    },\n"
                             "    {\n"
                             "      \"check\": 5,\n"
                             "      \"name\": \"values and limits\",\n"
                             "      \"errors\": 1,\n"
                             "      \"warnings\": 0\n"
                             "    },\n"
                             "    {\n"
                             "      \"check\": 6,\n"
                             "      \"name\": \"hashes of the bundle\",\n"
                             "      \"errors\": 0,\n"
                             "      \"warnings\": 0\n"
                             "    }\n"
                             "  ],\n"
                             "  \"operations\": {\n"
                             "    \"checked\": 8,\n"
                             "    \"unknown\": 1\n"
                             "  },\n"
                             "  \"constants\": {\n"
                             "    \"count\": %u,\n"
                             "    \"bytes\": %llu\n"
                             "  },\n"
                             "  \"bundle\": false,\n"
                             "  \"files\": {\n"
                             "    \"model_bytes\": %zu,\n"
                             "    \"weight_bytes\": 8704,\n"
                             "    \"hashed\": 0\n"
                             "  },\n"
                             "  \"findings\": [\n"
                             "    {\n"
                             "      \"severity\": \"warning\",\n"
                             "      \"check\": 4,\n"
                             "      \"text\": \"operation frobnicate is not known here: 1 of it not checked (first "
                             "other)\"\n"
                             "    },\n"
                             "    {\n"
                             "      \"severity\": \"error\",\n"
                             "      \"check\": 5,\n"
                             "      \"text\": \"constant 'weight' (fp16 [64, 64, 1, 1]): element 0 is infinite; all "
                             "values must be finite (masks: -1e4)\"\n"
                             "    }\n"
                             "  ]\n"
                             "}";

static void test_report(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE], expected[TEST_PATH_SIZE + sizeof report], *json;
    static const unsigned char infinity[2] = {0x00, 0xfc};
    int passed = 7;
    laya_error error;
    make_bundle(folder);
    laya_package *package = open_in(folder, NULL);
    assert_int_equal(laya_package_verify(package, &passed, &json, &error), LAYA_OK);
    assert_int_equal(passed, 1);
    assert_contains(json, "\"passed\": true,\n  \"errors\": 0,\n  \"warnings\": 0,");
    assert_contains(json, "\"findings\": []\n}");
    laya_package_release(package, json);
    laya_package_close(package);

    patch(folder, WEIGHTS, WEIGHT_DATA, infinity, 2);
    package = open_in(folder, NULL);
    test_append_unary(&package->program, "frobnicate", "other", "y");
    laya_verdict verdict;
    test_check_package(package, &verdict);
    snprintf(expected, sizeof expected, report, folder, verdict.constants, (unsigned long long)verdict.constant_bytes,
             package->model_file.size);
    laya_verdict_close(&verdict);
    assert_int_equal(laya_package_verify(package, &passed, &json, &error), LAYA_OK);
    assert_string_equal(json, expected);
    assert_int_equal(passed, 0);
    laya_package_release(package, json);
    laya_package_close(package);
    test_remove_tree(folder);
}

static void test_arguments(void **unused)
{
    (void)unused;
    laya_mil_program program;
    test_build_program(&program, NULL);
    laya_package package = test_in_memory(&program);
    laya_error error;
    char *json = (char *)"old";
    int passed = 7;
    assert_int_equal(laya_package_verify(NULL, &passed, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(passed, 0);
    assert_null(json);
    assert_int_equal(laya_package_verify(&package, NULL, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_package_verify(&package, &passed, NULL, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "laya_package_verify");
    laya_mil_program_close(&program);
}

/* Of many findings 200 are kept, no more than half of them warnings; all are counted. */
static void test_many_findings(void **unused)
{
    (void)unused;
    laya_mil_program program;
    test_build_program(&program, NULL);
    laya_package package = test_in_memory(&program);
    char(*names)[16] = test_take(&package.program, sizeof(char[300][16]));
    for (int at = 0; at < 150; at++) {
        snprintf(names[at], sizeof names[at], "column_%d", at);
        test_add_function_input(&package.program, names[at], laya_mil_vector(LAYA_MIL_FP16, 1));
    }
    for (int at = 150; at < 300; at++) {
        snprintf(names[at], sizeof names[at], "%d", at);
        test_append_unary(&package.program, "relu", names[at], "y");
    }
    laya_verdict verdict;
    test_check_package(&package, &verdict);
    assert_int_equal(verdict.finding_count, LAYA_MAX_FINDINGS);
    assert_int_equal(verdict.warnings, 150);
    assert_int_equal(verdict.errors, 2 * 150); /* the names of values and of operations */
    uint32_t errors = 0;
    for (uint32_t at = 0; at < verdict.finding_count; at++) errors += verdict.findings[at].error;
    assert_int_equal(errors, LAYA_MAX_FINDINGS / 2);
    laya_verdict_close(&verdict);
    laya_mil_program_close(&package.program);
}

/* ------------------------------------------------------------------ what was read back */

#define ROWS 1024
#define ROW_BYTES 1024

typedef struct table {
    unsigned char bytes[ROWS][ROW_BYTES];
    uint64_t most; /* rows of one read */
    unsigned forgotten;
    bool fail;
} table;

static laya_status read_rows(const void *user, uint64_t first, uint64_t count, unsigned char *out, laya_error *error)
{
    table *t = (table *)(uintptr_t)user;
    assert_true(first + count <= ROWS);
    if (t->fail) {
        if (error) error->status = LAYA_ERROR_FORMAT;
        return LAYA_ERROR_FORMAT;
    }
    if (count > t->most) t->most = count;
    memcpy(out, t->bytes[first], count * ROW_BYTES);
    return LAYA_OK;
}

static void forget_rows(const void *user)
{
    ((table *)(uintptr_t)user)->forgotten++;
}

/* A program with a constant of 1 MiB from the table. */
static void build_from_table(laya_mil_program *program, table *t)
{
    laya_mil_builder b;
    laya_error error;
    laya_mil_source source = {t, read_rows, forget_rows};
    laya_mil_type type = {LAYA_MIL_TENSOR, LAYA_MIL_FP32, 2, {ROWS, ROW_BYTES / 4}};
    laya_mil_program_init(program, NULL);
    laya_mil_begin(&b, program, LAYA_MIL_COREML7, &error);
    laya_mil_value *x = laya_mil_input(&b, "x", type);
    laya_mil_output(&b, laya_mil_add(&b, "y", x, laya_mil_const_source(&b, "table", type, &source)));
    assert_int_equal(laya_mil_finish(&b), LAYA_OK);
}

static laya_status count_bytes(void *user, uint64_t bytes, laya_error *error)
{
    (void)error;
    *(uint64_t *)user += bytes;
    return LAYA_OK;
}

static laya_status stop(void *user, uint64_t bytes, laya_error *error)
{
    (void)user, (void)bytes;
    if (error) error->status = LAYA_ERROR_STOPPED;
    return LAYA_ERROR_STOPPED;
}

static void test_match_source(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    laya_mil_program program;
    laya_package_files files;
    laya_error error;
    table *t = calloc(1, sizeof *t);
    assert_non_null(t);
    for (size_t at = 0; at < ROWS; at++) memset(t->bytes[at], (int)(at % 61), ROW_BYTES);
    build_from_table(&program, t);
    test_make_folder(folder);
    assert_int_equal(laya_package_write(&program, test_join(path, folder, PACKAGE), NULL, &files, &error), LAYA_OK);
    laya_package *package = open_in(folder, NULL);
    uint64_t bytes = 0;
    laya_meter meter = {&bytes, count_bytes}, stopping = {NULL, stop};
    t->most = t->forgotten = 0;
    assert_int_equal(laya_package_match(&program, &package->program, &meter, &error), LAYA_OK);
    assert_true(bytes >= (uint64_t)ROWS * ROW_BYTES);
    assert_true(t->most > 0 && t->most * ROW_BYTES <= 256 * 1024);
    assert_int_equal(t->forgotten, 1);
    assert_int_equal(laya_package_match(&program, &package->program, NULL, NULL), LAYA_OK);
    assert_int_equal(laya_package_match(&program, &package->program, &stopping, &error), LAYA_ERROR_STOPPED);
    t->bytes[ROWS - 1][ROW_BYTES - 1] ^= 1;
    assert_int_equal(laya_package_match(&program, &package->program, NULL, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "constant 'table': what was read back differs from what was written");
    t->fail = true;
    assert_int_equal(laya_package_match(&program, &package->program, NULL, &error), LAYA_ERROR_FORMAT);
    laya_package_close(package);
    laya_mil_program_close(&program);
    test_remove_tree(folder);
    free(t);
}

/* How the program that was read differs from the one that was written, and the message. */
typedef struct difference {
    void (*make)(laya_mil_program *read);
    const char *text;
} difference;

static void other_byte(laya_mil_program *program)
{
    laya_mil_constant *constant = (laya_mil_constant *)(uintptr_t)test_find_value(program, "weight")->constant;
    unsigned char *copy = test_take(program, WEIGHT_BYTES);
    memcpy(copy, constant->bytes, WEIGHT_BYTES);
    copy[WEIGHT_BYTES - 1] ^= 0x80;
    constant->bytes = copy;
}

static void other_type(laya_mil_program *program)
{
    test_replace_constant(program, "gamma", laya_mil_vector(LAYA_MIL_FP16, 63), NULL);
}

static void other_text(laya_mil_program *program)
{
    const char **strings = test_take(program, sizeof *strings);
    *strings = "TANH_APPROXIMATION";
    laya_mil_op *mode = test_find_input(program, "y", "mode")->bindings[0].value->op;
    ((laya_mil_constant *)(uintptr_t)mode->attributes[0].value)->strings = strings;
}

static void no_bytes(laya_mil_program *program)
{
    ((laya_mil_constant *)(uintptr_t)test_find_value(program, "gamma")->constant)->bytes = NULL;
}

static void no_value(laya_mil_program *program)
{
    test_find_op(program, "gamma")->attribute_count = 0;
}

static void no_operation(laya_mil_program *program)
{
    test_rename(program, test_find_value(program, "soft"), "hard");
}

static void other_operation(laya_mil_program *program)
{
    test_find_op(program, "second")->type = "tanh";
}

static void more_operations(laya_mil_program *program)
{
    test_append_unary(program, "relu", "more", "y");
}

static void other_function(laya_mil_program *program)
{
    test_main_function(program)->name = "other";
}

static void test_match_differences(void **unused)
{
    (void)unused;
    static const difference differences[] = {
        {other_byte, "constant 'weight': what was read back differs"},
        {other_type, "constant 'gamma': written as fp16 [64], read back as fp16 [63]"},
        {other_text, "another text was read back"},
        {no_bytes, "constant 'gamma': no bytes of type fp16 [64] were read back"},
        {no_value, "operation 'gamma': its constant 'val' was not read back"},
        {no_operation, "operation 'soft' (softmax) was written, but not read back"},
        {other_operation, "operation 'second' (relu) was written, but not read back"},
        {more_operations, "operations were written"},
        {other_function, "function 'main' was written, but not read back"},
    };
    laya_mil_program written, read;
    laya_error error;
    test_build_program(&written, NULL);
    for (size_t at = 0; at < sizeof differences / sizeof *differences; at++) {
        test_build_program(&read, NULL);
        assert_int_equal(laya_package_match(&written, &read, NULL, &error), LAYA_OK);
        differences[at].make(&read);
        assert_int_equal(laya_package_match(&written, &read, NULL, &error), LAYA_ERROR_FORMAT);
        assert_contains(error.message, differences[at].text);
        laya_mil_program_close(&read);
    }
    laya_mil_program_close(&written);
}

/* Constants bound in place are compared too. */
static void test_match_in_place(void **unused)
{
    (void)unused;
    laya_mil_program programs[2];
    laya_error error;
    for (int32_t at = 0; at < 2; at++) {
        test_build_program(&programs[at], NULL);
        test_bind_constant(&programs[at], test_find_input(&programs[at], "soft", "axis"),
                           laya_mil_scalar(LAYA_MIL_INT32), &at);
    }
    assert_int_equal(laya_package_match(&programs[0], &programs[1], NULL, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "constant 'soft': what was read back differs");
    test_remove_input(&programs[1], "soft", "axis");
    assert_int_equal(laya_package_match(&programs[0], &programs[1], NULL, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "operation 'soft': its constant 'axis' was not read back");
    for (int at = 0; at < 2; at++) laya_mil_program_close(&programs[at]);
}

/* ------------------------------------------------------------------ bundle */

#define HOST "host_weights.safetensors"

/* The text of a manifest: %s as in fill_manifest. */
static const char manifest[] =
    "{\"format\": \"laya-ane-research\", \"version\": 1, \"package\": \"model.mlpackage\",\n"
    " \"package_sha256\": \"%s\", \"files\": {\n"
    "  \"host_weights.safetensors\": {\"sha256\": "
    "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\", \"bytes\": 3},\n"
    "  \"model.mlpackage/Data/com.apple.CoreML/model.mlmodel\": {\"sha256\": \"%s\", \"bytes\": %llu},\n"
    "  \"model.mlpackage/Data/com.apple.CoreML/weights/weight.bin\": {\"sha256\": \"%s\", \"bytes\": %llu},\n"
    "  \"model.mlpackage/Manifest.json\": {\"sha256\": \"%s\", \"bytes\": %llu}}}\n";

/* A bundle: the package, host weights "abc" (whose SHA-256 is that of FIPS 180's example), and the manifest. */
static void make_whole_bundle(char folder[TEST_PATH_SIZE])
{
    static const char *const names[3] = {LAYA_PACKAGE_MODEL, LAYA_PACKAGE_WEIGHTS, LAYA_PACKAGE_MANIFEST};
    char path[TEST_PATH_SIZE], hex[3][65], lines[512] = "", digest[65], text[sizeof manifest + 512];
    unsigned long long sizes[3];
    laya_error error;
    make_bundle(folder);
    test_write_file(test_join(path, folder, HOST), "abc", 3);
    for (int at = 0; at < 3; at++) {
        size_t size;
        char inside[256];
        snprintf(inside, sizeof inside, PACKAGE "/%s", names[at]);
        char *data = test_read_file(test_join(path, folder, inside), &size);
        assert_int_equal(laya_sha256(data, size, hex[at], &error), LAYA_OK);
        free(data);
        sizes[at] = size;
        size_t used = strlen(lines);
        snprintf(lines + used, sizeof lines - used, "%s  %s\n", hex[at], names[at]);
    }
    assert_int_equal(laya_sha256(lines, strlen(lines), digest, &error), LAYA_OK);
    int length = snprintf(text, sizeof text, manifest, digest, hex[0], sizes[0], hex[1], sizes[1], hex[2], sizes[2]);
    test_write_file(test_join(path, folder, "manifest.json"), text, (size_t)length);
}

/* Verify a package; the report holds each of these texts (NULL: none). */
static void expect_report(const char *path, int expected, const char *first, const char *second)
{
    laya_package *package;
    laya_error error;
    char *json;
    int passed;
    if (laya_package_open(path, NULL, &package, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (laya_package_verify(package, &passed, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (first) assert_contains(json, first);
    if (second) assert_contains(json, second);
    assert_int_equal(passed, expected);
    laya_package_release(package, json);
    laya_package_close(package);
}

static void test_bundle_good(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE], before[TEST_PATH_SIZE];
    make_whole_bundle(folder);
    expect_report(folder, 1, "\"bundle\": true", "\"hashed\": 4");
    expect_report(test_join(path, folder, PACKAGE), 1, "\"bundle\": true", "\"warnings\": 0");
    expect_report(test_join(path, folder, PACKAGE "//"), 1, "\"bundle\": true", NULL);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    expect_report(PACKAGE, 1, "\"bundle\": true", NULL);
    expect_report(".", 1, "\"bundle\": true", NULL);
    assert_int_equal(chdir(PACKAGE), 0);
    expect_report(".", 1, "\"bundle\": true", NULL);
    assert_int_equal(chdir(before), 0);

    /* Another package in the same folder is none of the manifest's. */
    char other[TEST_PATH_SIZE];
    assert_int_equal(rename(test_join(path, folder, PACKAGE), test_join(other, folder, "other.mlpackage")), 0);
    expect_report(other, 1, "\"bundle\": false", "\"hashed\": 0");
    test_remove_tree(folder);
}

typedef struct edit {
    const char *from, *to; /* in manifest.json */
    int passed;
    const char *first, *second; /* in the report */
} edit;

static const edit edits[] = {
    {"ba78", "ca78", 0, "'host_weights.safetensors' has SHA-256 ba7816bf8f01cfea", "\"errors\": 1,"},
    {"\"sha256\": \"ba7816", "\"sha\": \"ba7816", 0, "'host_weights.safetensors' has SHA-256 ba7816bf8f01cfea", NULL},
    {"\"bytes\": 3}", "\"bytes\": 4}", 0, "'host_weights.safetensors' has 3 bytes, manifest.json says 4", NULL},
    {"\"bytes\": 3}", "\"bytes\": null}", 0, "'host_weights.safetensors' has 3 bytes, manifest.json says -1", NULL},
    {"\"bytes\": 8704", "\"bytes\": 8705", 0, "weight.bin' has 8704 bytes, manifest.json says 8705", NULL},
    {"host_weights", "host_heights", 0, "lists a file that cannot be read: ", "no such file or directory"},
    {"\"host_", "\"../host_", 0, "lists '../host_weights.safetensors'; expected a path relative", NULL},
    {"\"host_", "\"a/../../host_", 0, "lists 'a/../../host_weights.safetensors'; expected a path relative", NULL},
    {"\"host_", "\"/host_", 0, "lists '/host_weights.safetensors'; expected a path relative", NULL},
    {"\"host_weights.safetensors\"", "\"\"", 0, "lists ''; expected a path relative", NULL},
    {"\"host_weights.safetensors\"", "\"host\\u0000\"", 0, "lists 'host'; expected a path relative", NULL},
    {"\"package_sha256\": \"", "\"package_sha256\": \"0", 0, "not 'package_sha256' of manifest.json", NULL},
    {"package_sha256", "package_md5", 0, "not 'package_sha256' of manifest.json", NULL},
    {"model.mlpackage/Manifest.json", "./model.mlpackage/Manifest.json", 0,
     "manifest.json does not list the package's 'Manifest.json'", "not 'package_sha256'"},
    {"\"files\"", "\"hashes\"", 1, "manifest.json has no object 'files'", "\"bundle\": true"},
    {"\"files\": {", "\"files\": 1, \"x\": {", 1, "manifest.json has no object 'files'", "\"bundle\": true"},
    {"\"files\"", "files", 1, "is not valid JSON (", "\"bundle\": false"},
    {"laya-ane-research", "something-else", 1, "\"bundle\": false", "\"warnings\": 0"},
    {"\"package\": \"model.mlpackage\"", "\"package\": 1", 1, "\"bundle\": false", NULL},
};

static void test_bundle_edits(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    make_whole_bundle(folder);
    size_t size;
    char *original = test_read_file(test_join(path, folder, "manifest.json"), &size);
    for (size_t at = 0; at < sizeof edits / sizeof *edits; at++) {
        test_write_file(path, original, size);
        test_edit_file(folder, "manifest.json", edits[at].from, edits[at].to);
        expect_report(folder, edits[at].passed, edits[at].first, edits[at].second);
    }
    test_write_file(path, "[]", 2);
    expect_report(folder, 1, "\"bundle\": false", "\"warnings\": 0");
    test_write_file(path, "", 0);
    expect_report(folder, 1, "is not valid JSON", "\"bundle\": false");
    free(original);
    test_remove_tree(folder);
}

static void test_changed_file(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    static const unsigned char byte = 1; /* of a value of beta: still finite */
    make_whole_bundle(folder);
    patch(folder, WEIGHTS, FILE_BYTES - 2, &byte, 1);
    expect_report(folder, 0, "weight.bin' has SHA-256 ", "\"errors\": 2,"); /* the package's digest too */
    assert_int_equal(unlink(test_join(path, folder, "manifest.json")), 0);
    expect_report(folder, 1, "\"bundle\": false", NULL);
    assert_int_equal(symlink(".", path), 0); /* a directory: it cannot be read */
    laya_package *package = open_in(folder, NULL);
    laya_error error;
    char *json;
    int passed;
    assert_int_equal(laya_package_verify(package, &passed, &json, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "manifest.json: expected a regular file");
    assert_null(json);
    laya_package_close(package);
    assert_int_equal(unlink(path), 0);
    test_remove_tree(folder);
}

/* ------------------------------------------------------------------ memory */

static void test_memory_of_verify(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE];
    test_memory memory;
    make_whole_bundle(folder);
    test_edit_file(folder, "manifest.json", "ba78", "ca78");
    test_memory_init(&memory);
    laya_package *package = open_in(folder, &memory.hooks);
    test_append_unary(&package->program, "frobnicate", "other", "y");
    size_t live = memory.live;
    for (size_t at = 1;; at++) {
        char *json;
        int passed;
        laya_error error;
        test_memory_arm(&memory, at);
        laya_status status = laya_package_verify(package, &passed, &json, &error);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_OK);
            assert_contains(json, "\"errors\": 1,");
            laya_package_release(package, json);
            break;
        }
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(error.status, LAYA_ERROR_MEMORY);
        assert_null(json);
        assert_int_equal(passed, 0);
        assert_int_equal(memory.live, live);
    }
    assert_int_equal(memory.live, live);
    laya_package_close(package);
    assert_int_equal(memory.live, 0);
    test_remove_tree(folder);
}

static void test_memory_of_match(void **unused)
{
    (void)unused;
    char folder[TEST_PATH_SIZE];
    test_memory memory;
    laya_mil_program program;
    laya_error error;
    make_bundle(folder);
    test_memory_init(&memory);
    laya_package *package = open_in(folder, &memory.hooks);
    test_build_program(&program, NULL);
    size_t live = memory.live;
    for (size_t at = 1;; at++) {
        test_memory_arm(&memory, at);
        laya_status status = laya_package_match(&program, &package->program, NULL, &error);
        assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        assert_int_equal(memory.live, live);
        if (!memory.failed) break;
    }
    laya_mil_program_close(&program);
    laya_package_close(package);
    test_remove_tree(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_in_file),
        cmocka_unit_test(test_blob_count),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_large_file),
        cmocka_unit_test(test_no_weight_file),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_many_findings),
        cmocka_unit_test(test_match_source),
        cmocka_unit_test(test_match_differences),
        cmocka_unit_test(test_match_in_place),
        cmocka_unit_test(test_bundle_good),
        cmocka_unit_test(test_bundle_edits),
        cmocka_unit_test(test_changed_file),
        cmocka_unit_test(test_memory_of_verify),
        cmocka_unit_test(test_memory_of_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
