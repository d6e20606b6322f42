/* SPDX-License-Identifier: Apache-2.0 */
/* The .mlpackage directory: what the writer makes, byte for byte, and what the reader takes and refuses. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include "support.h"

#include "coreml/encode.h"
#include "coreml/manifest.h"
#include "coreml/package.h"
#include "mil/builder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "Manifest.json"
#define DATA "Data"
#define FOLDER "Data/com.apple.CoreML"
#define MODEL FOLDER "/model.mlmodel"
#define WEIGHTS FOLDER "/weights"
#define WEIGHT_FILE WEIGHTS "/weight.bin"

/* ------------------------------------------------------------------ directories */

static char *make_directory(void)
{
    const char *temporary = getenv("TMPDIR");
    char *path = malloc(TEST_PATH_SIZE);
    assert_non_null(path);
    snprintf(path, TEST_PATH_SIZE, "%s/laya-package-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

static void remove_tree(const char *path)
{
    assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void remove_directory(char *path)
{
    remove_tree(path);
    free(path);
}

static const char *in(char out[TEST_PATH_SIZE], const char *directory, const char *name)
{
    int size = snprintf(out, TEST_PATH_SIZE, "%s/%s", directory, name);
    assert_true(size > 0 && size < TEST_PATH_SIZE);
    return out;
}

static void make_folder(const char *directory, const char *name)
{
    char path[TEST_PATH_SIZE];
    assert_int_equal(mkdir(in(path, directory, name), 0755), 0);
}

static void move(const char *directory, const char *from, const char *to)
{
    char old[TEST_PATH_SIZE], new[TEST_PATH_SIZE];
    assert_int_equal(rename(in(old, directory, from), in(new, directory, to)), 0);
}

/* Kind, mode and size of an entry, links not followed; the test fails when it is not there. */
static struct stat facts_of(const char *directory, const char *name)
{
    char path[TEST_PATH_SIZE];
    struct stat facts;
    if (lstat(in(path, directory, name), &facts) != 0) fail_msg("%s is missing", path);
    return facts;
}

static void assert_no_entry(const char *directory, const char *name)
{
    char path[TEST_PATH_SIZE];
    struct stat facts;
    assert_int_equal(lstat(in(path, directory, name), &facts), -1);
}

static size_t counted;

static int count_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)path, (void)facts, (void)kind, (void)place;
    counted++;
    return 0;
}

/* Files and folders of a tree, itself included. */
static size_t count_tree(const char *path)
{
    counted = 0;
    assert_int_equal(nftw(path, count_entry, 16, FTW_PHYS), 0);
    return counted;
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    char path[TEST_PATH_SIZE];
    size_t a_size, b_size;
    char *a_data = test_read_file(in(path, a, name), &a_size);
    char *b_data = test_read_file(in(path, b, name), &b_size);
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a_data, b_data, a_size);
    free(a_data);
    free(b_data);
}

/* ------------------------------------------------------------------ programs */

/* The model that coremltools writes for y = relu(x), fp16 [1, 4, 1, 8], opset CoreML6. */
static const char golden_hex[] =
    "080712260a110a01781a0c2a0a0a04010401081090800452110a01791a0c2a0a0a040104010810908004b21f9e01"
    "08011299010a046d61696e1290010a230a0178121e0a1c080a10041a040a0208011a040a0208041a040a0208011a"
    "040a0208081207436f72654d4c361a600a07436f72654d4c3612551201791a500a0472656c75120a0a017812050a"
    "030a01781a230a0179121e0a1c080a10041a040a0208011a040a0208041a040a0208011a040a0208082a170a046e"
    "616d65120f12040a0208021a070a0522030a0179";
enum { GOLDEN_SIZE = (sizeof golden_hex - 1) / 2 };

static void read_hex(const char *hex, unsigned char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; hex[2 * i]; i++)
        out[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) * 16 +
                                 (strchr(digits, hex[2 * i + 1]) - digits));
}

static const uint16_t weight_values[16] = {0x3c00, 0xc000, 0x3800, 0x0001, 0x7bff, 0x8000, 0x4248, 0x3555,
                                           0xb555, 0x2e66, 0x0400, 0xfbff, 0x3c01, 0x3bff, 0x5640, 0xd640};
static const uint16_t bias_values[4] = {0x0000, 0x3c00, 0xbc00, 0x2666};
static const float table_values[10] = {0, 1, -1, 0.5F, 0.1F, 1e30F, 1e-30F, 3, 4, 5};

/* y = relu(conv(conv(x, weight, bias), second)), second equal to weight, and a table that nothing uses. */
static void build(laya_mil_program *program, const laya_allocator *allocator)
{
    laya_error error = {LAYA_OK, ""};
    laya_mil_builder builder;
    laya_mil_type matrix = laya_mil_tensor4(LAYA_MIL_FP16, 4, 4, 1, 1);
    laya_mil_program_init(program, allocator);
    laya_mil_begin(&builder, program, LAYA_MIL_COREML6, &error);
    laya_mil_value *x = laya_mil_input(&builder, "x", laya_mil_tensor4(LAYA_MIL_FP16, 1, 4, 1, 8));
    laya_mil_value *weight = laya_mil_const(&builder, "weight", matrix, weight_values);
    laya_mil_value *bias = laya_mil_const(&builder, "bias", laya_mil_vector(LAYA_MIL_FP16, 4), bias_values);
    laya_mil_value *second = laya_mil_const(&builder, "second", matrix, weight_values);
    laya_mil_const(&builder, "table", laya_mil_vector(LAYA_MIL_FP32, 10), table_values);
    laya_mil_value *inner = laya_mil_conv(&builder, "inner", x, weight, bias);
    laya_mil_value *outer = laya_mil_conv(&builder, "outer", inner, second, NULL);
    laya_mil_output(&builder, laya_mil_relu(&builder, "y", outer));
    laya_mil_metadata_add(&builder, "laya.kind", "test");
    if (laya_mil_finish(&builder) != LAYA_OK) fail_msg("%s", error.message);
}

static const laya_mil_constant *find_constant(const laya_mil_program *program, const char *name)
{
    for (const laya_mil_op *op = program->functions[0].body.first; op; op = op->next) {
        if (strcmp(op->type, "const") == 0 && strcmp(op->outputs[0]->name, name) == 0)
            return op->outputs[0]->constant;
    }
    fail_msg("no constant %s", name);
    return NULL;
}

static void write_package(laya_mil_program *program, const char *directory, laya_package_files *files)
{
    laya_error error = {LAYA_OK, ""};
    if (laya_package_write(program, directory, NULL, files, &error) != LAYA_OK) fail_msg("%s", error.message);
}

/* A package of the built program in a new directory's "test.mlpackage". */
static char *make_package(char package[TEST_PATH_SIZE])
{
    char *directory = make_directory();
    laya_mil_program program;
    laya_package_files files;
    build(&program, NULL);
    write_package(&program, in(package, directory, "test.mlpackage"), &files);
    laya_mil_program_close(&program);
    return directory;
}

static laya_package *open_package(const char *path)
{
    laya_package *package;
    laya_error error = {LAYA_OK, ""};
    if (laya_package_open(path, NULL, &package, &error) != LAYA_OK) fail_msg("%s", error.message);
    return package;
}

static void expect_refused(const char *path, laya_status status, const char *text)
{
    laya_package *package = (laya_package *)(uintptr_t)1;
    laya_error error = {LAYA_OK, ""};
    laya_status got = laya_package_open(path, NULL, &package, &error);
    if (got != status || error.status != status || !test_contains(error.message, text)) {
        fail_msg("%s\nexpected %s with \"%s\", got %s: %s", path, laya_status_name(status), text,
                 laya_status_name(got), error.message);
    }
    assert_null(package);
    assert_int_equal(laya_package_open(path, NULL, &package, NULL), status);
}

/* ------------------------------------------------------------------ the writer */

#define ITEM(identifier, description, name, path)                                                                    \
    "        \"" identifier "\": {\n"                                                                                \
    "            \"author\": \"com.apple.CoreML\",\n"                                                                \
    "            \"description\": \"" description "\",\n"                                                            \
    "            \"name\": \"" name "\",\n"                                                                          \
    "            \"path\": \"" path "\"\n"                                                                           \
    "        }"
#define MODEL_ITEM(identifier)                                                                                       \
    ITEM(identifier, "CoreML Model Specification", "model.mlmodel", "com.apple.CoreML/model.mlmodel")
#define WEIGHTS_ITEM(identifier) ITEM(identifier, "CoreML Model Weights", "weights", "com.apple.CoreML/weights")
#define MANIFEST_TEXT(items, root)                                                                                   \
    "{\n    \"fileFormatVersion\": \"1.0.0\",\n    \"itemInfoEntries\": {\n" items "\n    },\n"                      \
    "    \"rootModelIdentifier\": \"" root "\"\n}\n"

static void expect_manifest(char model_digit, char weights_digit, const char *expected)
{
    char model[65], weights[65];
    laya_buffer text;
    laya_buffer_init(&text, NULL);
    memset(model, model_digit, 64);
    memset(weights, weights_digit, 64);
    model[64] = weights[64] = '\0';
    assert_int_equal(laya_package_manifest_write(&text, model, weights_digit ? weights : NULL, NULL), LAYA_OK);
    assert_string_equal(text.data, expected);
    laya_buffer_close(&text);
}

/* Identifiers: Python's hashlib and uuid. The entries are in the order of their identifiers. */
static void test_manifest_text(void **unused)
{
    (void)unused;
    expect_manifest('2', '2',
                    MANIFEST_TEXT(MODEL_ITEM("0ABE326D-B720-8AFE-A382-6B998062F3DD") ",\n" WEIGHTS_ITEM(
                                      "DB19C0D9-B84D-811A-89FC-FEF6ED302EFF"),
                                  "0ABE326D-B720-8AFE-A382-6B998062F3DD"));
    expect_manifest('a', 'a',
                    MANIFEST_TEXT(WEIGHTS_ITEM("84DCE541-D8A1-8021-93B5-FB75DB9E9ED2") ",\n" MODEL_ITEM(
                                      "F29A30BD-CBAF-8FAC-BE54-A8B984327FCC"),
                                  "F29A30BD-CBAF-8FAC-BE54-A8B984327FCC"));
    expect_manifest(
        'e', '\0',
        MANIFEST_TEXT(MODEL_ITEM("31929F0F-8F8D-8699-846A-39B35890CD98"), "31929F0F-8F8D-8699-846A-39B35890CD98"));
}

/* A package without weights: every byte is known. Hashes: Python's hashlib. */
static void test_golden_package(void **unused)
{
    (void)unused;
    static const char manifest[] = MANIFEST_TEXT(MODEL_ITEM("95A13FBB-8724-83B9-99A6-1CEC3DB72BFC"),
                                                 "95A13FBB-8724-83B9-99A6-1CEC3DB72BFC");
    unsigned char golden[GOLDEN_SIZE];
    char package[TEST_PATH_SIZE], path[TEST_PATH_SIZE], digest[65], *directory = make_directory();
    laya_mil_program program;
    laya_package_files files;
    laya_error error = {LAYA_OK, ""};
    read_hex(golden_hex, golden);
    laya_mil_program_init(&program, NULL);
    assert_int_equal(laya_model_decode(&program, golden, sizeof golden, NULL, 0, &error), LAYA_OK);
    write_package(&program, in(package, directory, "relu.mlpackage"), &files);
    laya_mil_program_close(&program);

    size_t size;
    char *data = test_read_file(in(path, package, MODEL), &size);
    assert_int_equal(size, sizeof golden);
    assert_memory_equal(data, golden, size);
    free(data);
    data = test_read_file(in(path, package, MANIFEST), &size);
    assert_string_equal(data, manifest);
    free(data);
    assert_no_entry(package, WEIGHTS);
    assert_int_equal(count_tree(package), 5); /* itself, Data, Data/com.apple.CoreML and two files */

    assert_string_equal(files.model.sha256, "65f8cb31eb3b00a79baba51e16fead097febc8ddb9d8e65d7d4e087e3af8dc37");
    assert_int_equal(files.model.size, GOLDEN_SIZE);
    assert_string_equal(files.manifest.sha256, "d457099c7b23fb07a042cbfb59d3abce5d11dd8adaa59ebf8f6ac83528d86679");
    assert_int_equal(files.manifest.size, sizeof manifest - 1);
    assert_int_equal(files.weights.size, 0);
    assert_int_equal(laya_package_digest(&files, digest, &error), LAYA_OK);
    assert_string_equal(digest, "c45c6348822c8d60f36844cf6a2cace1c62d479791c3b7862ec9c63faa1cb79f");

    laya_package *opened = open_package(package);
    assert_string_equal(opened->path, package);
    assert_string_equal(opened->model_path, in(path, package, MODEL));
    assert_null(opened->weights_path);
    assert_int_equal(opened->program.functions[0].body.op_count, 1);
    laya_package_close(opened);
    remove_directory(directory);
}

/* Three files. The hash: Python's hashlib over the three lines. */
static void test_digest(void **unused)
{
    (void)unused;
    laya_package_files files = {{1, ""}, {2, ""}, {3, ""}};
    char digest[65];
    memset(files.manifest.sha256, 'c', 64);
    memset(files.model.sha256, 'a', 64);
    memset(files.weights.sha256, '1', 64);
    assert_int_equal(laya_package_digest(&files, digest, NULL), LAYA_OK);
    assert_string_equal(digest, "a940e311efb396b87f7f7090936ef37d7c2e1f09ab444bce8b80287a7bdaaf86");
}

static void assert_values(const laya_package *package, const char *name, bool in_file, uint64_t offset,
                          const void *values, size_t size)
{
    const laya_mil_constant *constant = find_constant(&package->program, name);
    assert_int_equal(constant->in_file, in_file);
    if (in_file) assert_int_equal(constant->offset, offset);
    assert_int_equal(constant->size, size);
    assert_memory_equal(constant->bytes, values, size);
}

/* Values as they stand in memory: the tests run on little-endian machines. */
static void test_round_trip(void **unused)
{
    (void)unused;
    char package[TEST_PATH_SIZE], path[TEST_PATH_SIZE], text[LAYA_MIL_TYPE_TEXT], *directory = make_package(package);
    laya_package *opened = open_package(package);
    assert_string_equal(opened->weights_path, in(path, package, WEIGHT_FILE));
    const laya_mil_program *program = &opened->program;
    assert_int_equal(program->specification_version, 7);
    assert_int_equal(program->function_count, 1);
    assert_string_equal(program->functions[0].opset_name, "CoreML6");
    assert_string_equal(laya_mil_type_text(&program->functions[0].inputs[0]->type, text), "fp16 [1, 4, 1, 8]");
    assert_int_equal(program->interface_count, 1);
    assert_string_equal(program->interfaces[0].inputs[0].name, "x");
    assert_string_equal(program->interfaces[0].outputs[0].name, "y");
    assert_string_equal(program->metadata[0].key, "laya.kind");
    assert_string_equal(program->metadata[0].text, "test");
    const laya_mil_op *last = program->functions[0].body.last;
    assert_string_equal(last->type, "relu");
    assert_string_equal(laya_mil_find_argument(last, "x")->bindings[0].value->op->type, "conv");

    /* weight and second are one record; bias is too small for the file */
    assert_values(opened, "weight", true, 64, weight_values, sizeof weight_values);
    assert_values(opened, "second", true, 64, weight_values, sizeof weight_values);
    assert_values(opened, "bias", false, 0, bias_values, sizeof bias_values);
    assert_values(opened, "table", true, 192, table_values, sizeof table_values);
    laya_package_close(opened);
    remove_directory(directory);
}

static void test_layout(void **unused)
{
    (void)unused;
    static const char *const folders[] = {".", DATA, FOLDER, WEIGHTS};
    static const char *const names[] = {MANIFEST, MODEL, WEIGHT_FILE};
    static const unsigned char start[80] = {2, 0, 0, 0, 2, [64] = 0xef, 0xbe, 0xad, 0xde, 1, 0, 0, 0, 32};
    mode_t mask = umask(022);
    char package[TEST_PATH_SIZE], path[TEST_PATH_SIZE], *directory = make_package(package);
    umask(mask);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(facts_of(package, folders[i]).st_mode, S_IFDIR | 0755);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(facts_of(package, names[i]).st_mode, S_IFREG | 0644);
    assert_int_equal(count_tree(package), 7);

    size_t size;
    char *data = test_read_file(in(path, package, WEIGHT_FILE), &size);
    assert_int_equal(size, 256 + 40); /* header, record and 32 bytes, record at 192 and 40 bytes */
    assert_memory_equal(data, start, sizeof start);
    assert_memory_equal(data + 128, weight_values, sizeof weight_values);
    assert_memory_equal(data + 256, table_values, sizeof table_values);
    free(data);
    remove_directory(directory);
}

static void test_same_bytes(void **unused)
{
    (void)unused;
    char first[TEST_PATH_SIZE], second[TEST_PATH_SIZE];
    char *first_directory = make_package(first), *second_directory = make_package(second);
    assert_same_file(first, second, MANIFEST);
    assert_same_file(first, second, MODEL);
    assert_same_file(first, second, WEIGHT_FILE);

    /* What was read is written again to the same bytes. */
    char third[TEST_PATH_SIZE];
    laya_package_files files;
    laya_package *opened = open_package(first);
    write_package(&opened->program, in(third, first_directory, "third.mlpackage"), &files);
    laya_package_close(opened);
    assert_same_file(first, third, MANIFEST);
    assert_same_file(first, third, MODEL);
    assert_same_file(first, third, WEIGHT_FILE);
    remove_directory(first_directory);
    remove_directory(second_directory);
}

static void expect_not_written(laya_mil_program *program, const char *path, laya_status status, const char *text)
{
    laya_package_files files;
    laya_error error = {LAYA_OK, ""};
    assert_int_equal(laya_package_write(program, path, NULL, &files, &error), status);
    assert_int_equal(error.status, status);
    assert_contains(error.message, text);
}

static void test_write_refused(void **unused)
{
    (void)unused;
    char path[TEST_PATH_SIZE], *directory = make_directory();
    laya_mil_program program;
    build(&program, NULL);
    expect_not_written(&program, directory, LAYA_ERROR_IO, "exists already");
    assert_int_equal(count_tree(directory), 1);
    test_write_file(in(path, directory, "file"), "x", 1);
    expect_not_written(&program, path, LAYA_ERROR_IO, "exists already");
    expect_not_written(&program, in(path, directory, "missing/a.mlpackage"), LAYA_ERROR_IO, "no such file");
    laya_mil_program_close(&program);

    laya_mil_program_init(&program, NULL);
    expect_not_written(&program, in(path, directory, "empty"), LAYA_ERROR_FORMAT, "no function");
    assert_no_entry(directory, "empty");
    laya_mil_program_close(&program);
    remove_directory(directory);
}

typedef struct meter_log {
    uint64_t bytes;
    unsigned calls, stop_at; /* the call that stops the work, counted from 1; 0: none */
} meter_log;

static laya_status count_bytes(void *user, uint64_t bytes, laya_error *error)
{
    meter_log *log = user;
    log->bytes += bytes;
    if (++log->calls == log->stop_at) return laya_fail(error, LAYA_ERROR_STOPPED, "stopped");
    return LAYA_OK;
}

static void test_meter(void **unused)
{
    (void)unused;
    char path[TEST_PATH_SIZE], *directory = make_directory();
    meter_log log = {0};
    unsigned calls = 0;
    for (unsigned stop_at = 0; stop_at <= calls; stop_at++) {
        laya_mil_program program;
        laya_package_files files;
        laya_error error = {LAYA_OK, ""};
        laya_meter meter = {&log, count_bytes};
        log = (meter_log){.stop_at = stop_at};
        build(&program, NULL);
        laya_status status = laya_package_write(&program, in(path, directory, "a.mlpackage"), &meter, &files, &error);
        assert_int_equal(status, stop_at ? LAYA_ERROR_STOPPED : LAYA_OK);
        assert_int_equal(error.status, status);
        laya_mil_program_close(&program);
        remove_tree(path);
        if (stop_at) continue;
        calls = log.calls;
        assert_true(calls >= 3);
        /* the three constants of the weight file are read twice; the other files are told as they are written */
        assert_int_equal(log.bytes, 2 * (32 + 32 + 40) + files.model.size + files.manifest.size);
    }
    remove_directory(directory);
}

/* ------------------------------------------------------------------ which directory is opened */

static void test_not_a_package(void **unused)
{
    (void)unused;
    char path[TEST_PATH_SIZE], *directory = make_directory();
    laya_error error;
    laya_package *package;
    expect_refused(in(path, directory, "none.mlpackage"), LAYA_ERROR_IO, "no such file or directory");
    expect_refused(directory, LAYA_ERROR_FORMAT, "neither a Core ML package (no Manifest.json) nor a bundle");
    test_write_file(in(path, directory, "plain.mlpackage"), "x", 1);
    expect_refused(path, LAYA_ERROR_FORMAT, "expected a .mlpackage directory or a bundle, found a file");
    test_write_file(in(path, directory, "old.mlmodel"), "x", 1);
    expect_refused(path, LAYA_ERROR_UNSUPPORTED, "pass the .mlpackage directory");
    make_folder(directory, "some.mlmodelc");
    expect_refused(in(path, directory, "some.mlmodelc"), LAYA_ERROR_UNSUPPORTED, "a compiled model cannot be read");
    expect_refused(in(path, directory, "some.mlmodelc//"), LAYA_ERROR_UNSUPPORTED, "a compiled model cannot be read");
    make_folder(directory, "compiled");
    test_write_file(in(path, directory, "compiled/coremldata.bin"), "x", 1);
    expect_refused(in(path, directory, "compiled"), LAYA_ERROR_UNSUPPORTED, "that it was compiled from");

    assert_int_equal(laya_package_open(NULL, NULL, &package, &error), LAYA_ERROR_ARGUMENT);
    assert_null(package);
    assert_int_equal(laya_package_open(directory, NULL, NULL, &error), LAYA_ERROR_ARGUMENT);
    laya_package_close(NULL);
    remove_directory(directory);
}

static void test_bundle(void **unused)
{
    (void)unused;
    char package[TEST_PATH_SIZE], path[TEST_PATH_SIZE], *directory = make_package(package);
    move(directory, "test.mlpackage", "model.mlpackage");
    test_write_file(in(path, directory, "manifest.json"), "{}", 2);
    laya_package *opened = open_package(directory);
    assert_string_equal(opened->path, in(path, directory, "model.mlpackage"));
    laya_package_close(opened);
    opened = open_package(in(path, directory, "model.mlpackage/"));
    assert_non_null(opened->weights_path);
    laya_package_close(opened);
    remove_directory(directory);
}

/* ------------------------------------------------------------------ manifests */

#define A "11111111-2222-3333-4444-555555555555"
#define B "66666666-7777-8888-9999-aaaaaaaaaaaa"
#define ENTRY(identifier, path, name, author)                                                                        \
    "\"" identifier "\":{\"path\":\"" path "\",\"name\":\"" name "\",\"author\":\"" author "\",\"description\":"     \
    "\"\"}"
#define DOCUMENT(version, entries, root)                                                                             \
    "{\"fileFormatVersion\":" version ",\"itemInfoEntries\":" entries ",\"rootModelIdentifier\":" root "}"
#define APPLE_MODEL ENTRY(A, "com.apple.CoreML/model.mlmodel", "model.mlmodel", "com.apple.CoreML")
#define APPLE_WEIGHTS ENTRY(B, "com.apple.CoreML/weights", "weights", "com.apple.CoreML")
#define WITH(entries) DOCUMENT("\"1.0.0\"", "{" entries "}", "\"" A "\"")

static void change_manifest(const char *package, const char *text)
{
    char path[TEST_PATH_SIZE];
    test_write_file(in(path, package, MANIFEST), text, strlen(text));
}

/* The package opens, its weights are read from the file of that name. */
static void expect_weights(const char *package, const char *file)
{
    char path[TEST_PATH_SIZE];
    laya_package *opened = open_package(package);
    assert_string_equal(opened->weights_path, in(path, package, file));
    assert_values(opened, "weight", true, 64, weight_values, sizeof weight_values);
    laya_package_close(opened);
}

static void test_other_writers(void **unused)
{
    (void)unused;
    char package[TEST_PATH_SIZE], *directory = make_package(package);
    change_manifest(package, WITH(APPLE_MODEL "," APPLE_WEIGHTS));
    expect_weights(package, WEIGHT_FILE);
    change_manifest(package, DOCUMENT("\"0.9.7\"", "{" APPLE_MODEL "," APPLE_WEIGHTS "}", "\"" A "\",\"more\":[1]"));
    expect_weights(package, WEIGHT_FILE);
    /* the weight file itself as an item */
    change_manifest(package, WITH(APPLE_MODEL "," ENTRY(B, "com.apple.CoreML/weights/weight.bin", "w", "someone")));
    expect_weights(package, WEIGHT_FILE);

    /* ONNX Runtime */
    move(package, FOLDER, DATA "/com.microsoft.OnnxRuntime");
    change_manifest(
        package, WITH(ENTRY(B, "com.microsoft.OnnxRuntime/weights", "weights", "com.microsoft.OnnxRuntime") "," ENTRY(
                     A, "com.microsoft.OnnxRuntime/model.mlmodel", "model.mlmodel", "com.microsoft.OnnxRuntime")));
    expect_weights(package, DATA "/com.microsoft.OnnxRuntime/weights/weight.bin");

    /* Chromium */
    move(package, DATA "/com.microsoft.OnnxRuntime/model.mlmodel", DATA "/model.mlmodel");
    move(package, DATA "/com.microsoft.OnnxRuntime/weights", DATA "/weights");
    move(package, DATA "/weights/weight.bin", DATA "/weights/weights.bin");
    change_manifest(package, WITH(ENTRY(A, "model.mlmodel", "model.mlmodel",
                                        "Chromium") "," ENTRY(B, "weights", "weights", "Chromium")));
    expect_weights(package, DATA "/weights/weights.bin");

    /* Apple's names come before other folders with a weight file. */
    make_folder(package, DATA "/other");
    char path[TEST_PATH_SIZE];
    test_write_file(in(path, package, DATA "/other/weight.bin"), "x", 1);
    change_manifest(package,
                    WITH(ENTRY(A, "model.mlmodel", "model.mlmodel", "Chromium") "," ENTRY(
                        "C", "other", "weights", "Chromium") "," ENTRY(B, "weights", "weights", "com.apple.CoreML")));
    expect_weights(package, DATA "/weights/weights.bin");
    remove_directory(directory);
}

static void test_manifest_rules(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        laya_status status;
        const char *message;
    } cases[] = {
        {"", LAYA_ERROR_FORMAT, "not valid JSON: line 1"},
        {"{\"a\": 1,", LAYA_ERROR_FORMAT, "not valid JSON: line 1"},
        {"[]", LAYA_ERROR_FORMAT, "expected a JSON object, found list"},
        {"{}", LAYA_ERROR_FORMAT, "'fileFormatVersion' must be a string such as \"1.0.0\", found nothing"},
        {DOCUMENT("1", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_FORMAT, "found int"},
        {DOCUMENT("\"1.0\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_FORMAT,
         "'fileFormatVersion' must be three integers such as \"1.0.0\", found \"1.0\""},
        {DOCUMENT("\"1.0.0.0\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_FORMAT, "found \"1.0.0.0\""},
        {DOCUMENT("\"1..0\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_FORMAT, "found \"1..0\""},
        {DOCUMENT("\"1.0.\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_FORMAT, "found \"1.0.\""},
        {DOCUMENT("\"1.0.x\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_FORMAT, "found \"1.0.x\""},
        {DOCUMENT("\"1.0.0000000000\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_FORMAT, "three integers"},
        {DOCUMENT("\"1.0.1\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_UNSUPPORTED,
         "'fileFormatVersion' is \"1.0.1\"; versions up to \"1.0.0\" are supported"},
        {DOCUMENT("\"1.1.0\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_UNSUPPORTED, "is \"1.1.0\""},
        {DOCUMENT("\"2.0.0\"", "{" APPLE_MODEL "}", "\"" A "\""), LAYA_ERROR_UNSUPPORTED, "is \"2.0.0\""},
        {DOCUMENT("\"1.0.0\"", "[]", "\"" A "\""), LAYA_ERROR_FORMAT,
         "'itemInfoEntries' must be an object, found list"},
        {"{\"fileFormatVersion\":\"1.0.0\",\"rootModelIdentifier\":\"\"}", LAYA_ERROR_FORMAT,
         "'itemInfoEntries' must be an object, found nothing"},
        {"{\"fileFormatVersion\":\"1.0.0\",\"itemInfoEntries\":{" APPLE_MODEL "}}", LAYA_ERROR_FORMAT,
         "'rootModelIdentifier' must be a string, found nothing"},
        {DOCUMENT("\"1.0.0\"", "{" APPLE_MODEL "}", "null"), LAYA_ERROR_FORMAT, "found NoneType"},
        {DOCUMENT("\"1.0.0\"", "{" APPLE_MODEL "}", "\"" B "\""), LAYA_ERROR_FORMAT,
         "'rootModelIdentifier' is '" B "', which 'itemInfoEntries' does not have"},
        {DOCUMENT("\"1.0.0\"", "{}", "\"" A "\""), LAYA_ERROR_FORMAT, "which 'itemInfoEntries' does not have"},
        {WITH("\"" A "\":\"x\""), LAYA_ERROR_FORMAT, "item '" A "' must be an object, found str"},
        {WITH("\"" A "\":{\"name\":\"\",\"author\":\"\",\"description\":\"\"}"), LAYA_ERROR_FORMAT,
         "item '" A "': 'path' must be a string, found nothing"},
        {WITH("\"" A "\":{\"path\":\"p\",\"author\":\"\",\"description\":\"\"}"), LAYA_ERROR_FORMAT,
         "'name' must be a string, found nothing"},
        {WITH("\"" A "\":{\"path\":\"p\",\"name\":\"\",\"author\":2,\"description\":\"\"}"), LAYA_ERROR_FORMAT,
         "'author' must be a string, found int"},
        {WITH("\"" A "\":{\"path\":\"p\",\"name\":\"\",\"author\":\"\"}"), LAYA_ERROR_FORMAT,
         "'description' must be a string, found nothing"},
        {WITH(ENTRY(A, "", "m", "")), LAYA_ERROR_FORMAT, "'path' must be relative to Data/ and stay below it"},
        {WITH(ENTRY(A, "/etc/passwd", "m", "")), LAYA_ERROR_FORMAT, "found \"/etc/passwd\""},
        {WITH(ENTRY(A, "..", "m", "")), LAYA_ERROR_FORMAT, "found \"..\""},
        {WITH(ENTRY(A, "../x", "m", "")), LAYA_ERROR_FORMAT, "found \"../x\""},
        {WITH(ENTRY(A, "a/../x", "m", "")), LAYA_ERROR_FORMAT, "found \"a/../x\""},
        {WITH(ENTRY(A, "a/..", "m", "")), LAYA_ERROR_FORMAT, "found \"a/..\""},
        {WITH(ENTRY(A, "a\\u0000b", "m", "")), LAYA_ERROR_FORMAT, "stay below it"},
        {WITH(APPLE_MODEL "," ENTRY(B, "com.apple.CoreML/absent", "weights", "")), LAYA_ERROR_IO,
         "com.apple.CoreML/absent: Manifest.json names it, but it cannot be opened: no such file or directory"},
        {WITH(ENTRY(A, "com.apple.CoreML/..model", "m", "")), LAYA_ERROR_IO, "..model: Manifest.json names it"},
        {WITH(ENTRY(A, "com.apple.CoreML", "m", "")), LAYA_ERROR_FORMAT,
         "Data/com.apple.CoreML: expected a regular file"},
    };
    char package[TEST_PATH_SIZE], *directory = make_package(package);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_manifest(package, cases[i].text);
        expect_refused(package, cases[i].status, cases[i].message);
        expect_refused(package, cases[i].status, package);
    }
    remove_directory(directory);
}

/* ------------------------------------------------------------------ files */

/* Replace an entry by a link to what it was. */
static void make_link(const char *package, const char *name)
{
    char path[TEST_PATH_SIZE], target[TEST_PATH_SIZE];
    in(target, package, "real");
    move(package, name, "real");
    assert_int_equal(symlink(target, in(path, package, name)), 0);
}

static void undo_link(const char *package, const char *name)
{
    char path[TEST_PATH_SIZE];
    assert_int_equal(unlink(in(path, package, name)), 0);
    move(package, "real", name);
}

static void test_links(void **unused)
{
    (void)unused;
    static const char *const refused[] = {MODEL, WEIGHT_FILE, WEIGHTS, FOLDER, DATA};
    char package[TEST_PATH_SIZE], path[TEST_PATH_SIZE], message[TEST_PATH_SIZE + 128];
    char *directory = make_package(package);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        make_link(package, refused[i]);
        snprintf(message, sizeof message,
                 "%s: a symbolic link, which Core ML does not follow; put a copy of the real file there",
                 in(path, package, refused[i]));
        expect_refused(package, LAYA_ERROR_FORMAT, message);
        undo_link(package, refused[i]);
    }
    make_link(package, MANIFEST);
    laya_package_close(open_package(package));
    undo_link(package, MANIFEST);
    assert_int_equal(symlink(package, in(path, directory, "link.mlpackage")), 0);
    laya_package_close(open_package(path));
    remove_directory(directory);
}

static void test_damaged_files(void **unused)
{
    (void)unused;
    char package[TEST_PATH_SIZE], path[TEST_PATH_SIZE], *directory = make_package(package);
    size_t size;
    char *weights = test_read_file(in(path, package, WEIGHT_FILE), &size);
    test_write_file(path, weights, size - 1);
    expect_refused(package, LAYA_ERROR_FORMAT, MODEL);
    test_write_file(path, weights, 0);
    expect_refused(package, LAYA_ERROR_FORMAT, MODEL);
    assert_int_equal(unlink(path), 0);
    expect_refused(package, LAYA_ERROR_FORMAT, MODEL);
    make_folder(package, WEIGHT_FILE);
    expect_refused(package, LAYA_ERROR_FORMAT, WEIGHT_FILE ": expected a regular file");
    free(weights);

    test_write_file(in(path, package, MODEL), "\xff", 1);
    assert_int_equal(rmdir(in(path, package, WEIGHT_FILE)), 0);
    expect_refused(package, LAYA_ERROR_FORMAT, MODEL ": ");
    assert_int_equal(unlink(in(path, package, MODEL)), 0);
    expect_refused(package, LAYA_ERROR_IO, MODEL ": Manifest.json names it");
    assert_int_equal(unlink(in(path, package, MANIFEST)), 0);
    make_folder(package, MANIFEST);
    expect_refused(package, LAYA_ERROR_IO, MANIFEST ": expected a regular file");
    remove_directory(directory);
}

/* ------------------------------------------------------------------ memory */

static void test_memory_of_open(void **unused)
{
    (void)unused;
    char package[TEST_PATH_SIZE], *directory = make_package(package);
    size_t fail_at = 0;
    for (bool failed = true; failed; failed = failed && fail_at < 100000) {
        test_memory memory;
        laya_package *opened;
        laya_error error = {LAYA_OK, ""};
        test_memory_init(&memory);
        test_memory_arm(&memory, ++fail_at);
        laya_status status = laya_package_open(package, &memory.hooks, &opened, &error);
        failed = memory.failed;
        assert_int_equal(status, failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        assert_int_equal(error.status, status);
        assert_int_equal(opened == NULL, failed);
        laya_package_close(opened);
        assert_int_equal(memory.live, 0);
    }
    assert_true(fail_at > 10);
    remove_directory(directory);
}

static void test_memory_of_write(void **unused)
{
    (void)unused;
    char path[TEST_PATH_SIZE], *directory = make_directory();
    size_t fail_at = 0;
    for (bool failed = true; failed; failed = failed && fail_at < 100000) {
        test_memory memory;
        laya_mil_program program;
        laya_package_files files;
        laya_error error = {LAYA_OK, ""};
        test_memory_init(&memory);
        build(&program, &memory.hooks);
        test_memory_arm(&memory, ++fail_at);
        laya_status status = laya_package_write(&program, in(path, directory, "a.mlpackage"), NULL, &files, &error);
        failed = memory.failed;
        assert_int_equal(status, failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        assert_int_equal(error.status, status);
        laya_mil_program_close(&program);
        assert_int_equal(memory.live, 0);
        remove_tree(path);
    }
    assert_true(fail_at > 10);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest_text),  cmocka_unit_test(test_golden_package),
        cmocka_unit_test(test_digest),         cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),         cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_write_refused),  cmocka_unit_test(test_meter),
        cmocka_unit_test(test_not_a_package),  cmocka_unit_test(test_bundle),
        cmocka_unit_test(test_other_writers),  cmocka_unit_test(test_manifest_rules),
        cmocka_unit_test(test_links),          cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_memory_of_open), cmocka_unit_test(test_memory_of_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
