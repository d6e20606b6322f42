/* SPDX-License-Identifier: Apache-2.0 */
/* layac inspect, run as users run it, on packages whose model file is written byte by byte. */
#include "mil_run.h"
#include "tree.h"

#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* relu on fp16 [1, 4, 1, 8], input x, output y, specification 7, opset CoreML6. */
static const unsigned char golden[204] = {
    0x08, 0x07, 0x12, 0x26, 0x0a, 0x11, 0x0a, 0x01, 0x78, 0x1a, 0x0c, 0x2a, 0x0a, 0x0a, 0x04, 0x01, 0x04, 0x01, 0x08,
    0x10, 0x90, 0x80, 0x04, 0x52, 0x11, 0x0a, 0x01, 0x79, 0x1a, 0x0c, 0x2a, 0x0a, 0x0a, 0x04, 0x01, 0x04, 0x01, 0x08,
    0x10, 0x90, 0x80, 0x04, 0xb2, 0x1f, 0x9e, 0x01, 0x08, 0x01, 0x12, 0x99, 0x01, 0x0a, 0x04, 0x6d, 0x61, 0x69, 0x6e,
    0x12, 0x90, 0x01, 0x0a, 0x23, 0x0a, 0x01, 0x78, 0x12, 0x1e, 0x0a, 0x1c, 0x08, 0x0a, 0x10, 0x04, 0x1a, 0x04, 0x0a,
    0x02, 0x08, 0x01, 0x1a, 0x04, 0x0a, 0x02, 0x08, 0x04, 0x1a, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x1a, 0x04, 0x0a, 0x02,
    0x08, 0x08, 0x12, 0x07, 0x43, 0x6f, 0x72, 0x65, 0x4d, 0x4c, 0x36, 0x1a, 0x60, 0x0a, 0x07, 0x43, 0x6f, 0x72, 0x65,
    0x4d, 0x4c, 0x36, 0x12, 0x55, 0x12, 0x01, 0x79, 0x1a, 0x50, 0x0a, 0x04, 0x72, 0x65, 0x6c, 0x75, 0x12, 0x0a, 0x0a,
    0x01, 0x78, 0x12, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0x78, 0x1a, 0x23, 0x0a, 0x01, 0x79, 0x12, 0x1e, 0x0a, 0x1c, 0x08,
    0x0a, 0x10, 0x04, 0x1a, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x1a, 0x04, 0x0a, 0x02, 0x08, 0x04, 0x1a, 0x04, 0x0a, 0x02,
    0x08, 0x01, 0x1a, 0x04, 0x0a, 0x02, 0x08, 0x08, 0x2a, 0x17, 0x0a, 0x04, 0x6e, 0x61, 0x6d, 0x65, 0x12, 0x0f, 0x12,
    0x04, 0x0a, 0x02, 0x08, 0x02, 0x1a, 0x07, 0x0a, 0x05, 0x22, 0x03, 0x0a, 0x01, 0x79};

static const char manifest[] =
    "{\"fileFormatVersion\": \"1.0.0\", \"itemInfoEntries\": {\"00000000-0000-0000-0000-000000000001\": {\"author\": "
    "\"com.apple.CoreML\", \"description\": \"CoreML Model Specification\", \"name\": \"model.mlmodel\", \"path\": "
    "\"com.apple.CoreML/model.mlmodel\"}}, \"rootModelIdentifier\": \"00000000-0000-0000-0000-000000000001\"}";

/* ------------------------------------------------------------------ a folder with packages */

static char folder[TEST_PATH_SIZE];

/* golden, the same with the op type "tanh", with names that hold control characters, cut short */
static const char *const packages[] = {"golden.mlpackage", "tanh.mlpackage", "escape.mlpackage", "cut.mlpackage"};

static void write_package(const char *name, const unsigned char *model, size_t size)
{
    static const char *const folders[] = {"", "Data", "Data/com.apple.CoreML"};
    char package[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    test_join(package, folder, name);
    for (size_t i = 0; i < 3; i++) assert_int_equal(mkdir(test_join(path, package, folders[i]), 0700), 0);
    test_write_file(test_join(path, package, "Manifest.json"), manifest, sizeof manifest - 1);
    test_write_file(test_join(path, package, "Data/com.apple.CoreML/model.mlmodel"), model, size);
}

/* Replace a text of the golden bytes wherever it stands. */
static void replace(unsigned char *model, const char *from, const char *to)
{
    size_t size = strlen(from), replaced = 0;
    for (size_t at = 0; at + size <= sizeof golden; at++) {
        if (memcmp(golden + at, from, size) != 0) continue;
        memcpy(model + at, to, size);
        replaced++;
    }
    assert_true(replaced > 0);
}

static int make_folder(void **state)
{
    (void)state;
    unsigned char model[sizeof golden];
    test_make_folder(folder);
    write_package(packages[0], golden, sizeof golden);
    memcpy(model, golden, sizeof golden);
    replace(model, "relu", "tanh");
    write_package(packages[1], model, sizeof golden);
    memcpy(model, golden, sizeof golden);
    replace(model, "\x0a\x01y", "\x0a\x01\x1b");
    replace(model, "\x12\x01y", "\x12\x01\x1b");
    replace(model, "relu",
            "a\xc2\x9b"
            "b"); /* U+009B */
    write_package(packages[2], model, sizeof golden);
    write_package(packages[3], golden, sizeof golden - 1);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_remove_tree(folder);
    return 0;
}

/* ------------------------------------------------------------------ running the command */

typedef struct outcome {
    int code;
    char *out, *err;
} outcome;

static void redirect(const char *path, int descriptor)
{
    int opened = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (opened < 0 || dup2(opened, descriptor) < 0) _exit(99);
    close(opened);
}

/* layac inspect with NULL-terminated arguments in the folder; standard output goes to `to`. Release with end(). */
static outcome run_to(const char *to, const char *const *arguments)
{
    char out[TEST_PATH_SIZE], err[TEST_PATH_SIZE];
    const char *named = getenv("LAYA_LAYAC");
    const char *program = named && *named ? named : LAYA_BINARY_DIR "/bin/layac";
    char *copies[16] = {strdup(program), strdup("inspect")};
    size_t count = 2;
    for (; arguments[count - 2]; count++) {
        assert_true(count < 15);
        copies[count] = strdup(arguments[count - 2]);
    }
    test_write_file(test_join(out, folder, "out"), NULL, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (chdir(folder) != 0) _exit(99);
        redirect(to ? to : out, STDOUT_FILENO);
        redirect(test_join(err, folder, "err"), STDERR_FILENO);
        execvp(program, copies);
        _exit(98);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    for (size_t i = 0; i < count; i++) free(copies[i]);
    if (!WIFEXITED(status)) fail_msg("layac died of signal %d", WTERMSIG(status));
    outcome result = {.code = WEXITSTATUS(status)};
    result.out = test_read_file(out, NULL);
    result.err = test_read_file(test_join(err, folder, "err"), NULL);
    return result;
}

#define RUN(...) run_to(NULL, (const char *const[]){__VA_ARGS__, NULL})

static void end(outcome o)
{
    free(o.out);
    free(o.err);
}

static void expect_failure(outcome o, int code, const char *reason)
{
    if (o.code != code) fail_msg("exit code %d instead of %d: %s", o.code, code, o.err);
    assert_string_equal(o.out, "");
    assert_contains(o.err, reason);
    end(o);
}

/* The output is a JSON document, then a newline, and holds the text. */
static void expect_json(outcome o, int code, const char *text)
{
    laya_json doc;
    laya_error error;
    if (o.code != code) fail_msg("exit code %d instead of %d: %s%s", o.code, code, o.err, o.out);
    assert_string_equal(o.err, "");
    if (laya_json_parse(&doc, o.out, strlen(o.out), NULL, &error) != LAYA_OK)
        fail_msg("%s: %s", error.message, o.out);
    laya_json_close(&doc);
    assert_int_equal(o.out[strlen(o.out) - 1], '\n');
    assert_contains(o.out, text);
    end(o);
}

/* ------------------------------------------------------------------ tests */

static void usage_errors(void **state)
{
    (void)state;
    static const char *const cases[][6] = {
        /* reason, arguments */
        {"no package", NULL},
        {"unexpected argument 'b'", "a", "b"},
        {"--diff needs two packages", "--diff", "a"},
        {"unexpected argument 'c'", "--diff", "a", "b", "c"},
        {"usage: layac inspect", "--nonsense"},
        {"give --tree or --json, not both", "--tree", "--json", "a"},
        {"give --verify or --diff, not both", "--verify", "--diff", "a", "b"},
        {"--ops and --tree do not go with", "--verify", "--ops", "a"},
        {"--ops and --tree do not go with", "--diff", "--tree", "a", "b"},
        {"do not go with --plan", "--plan", "--ops", "a"},
        {"do not go with --plan", "--plan", "--tree", "a"},
        {"do not go with --plan", "--plan", "--verify", "a"},
        {"do not go with --plan", "--plan", "--diff", "a", "b"},
        {"do not go with --palettes", "--palettes", "--ops", "a"},
        {"do not go with --palettes", "--palettes", "--verify", "a"},
        {"do not go with --palettes", "--palettes", "--diff", "a", "b"},
        {"do not go with --palettes", "--palettes", "--plan", "a"},
        {"--parent goes with --palettes", "--parent", "b", "a"},
        {"no package", "--palettes"},
        {"unexpected argument 'b'", "--palettes", "a", "b"},
        {"no package", "--plan"},
        {"unexpected argument 'b'", "--plan", "a", "b"},
        {"--compute-units goes with --plan", "--compute-units", "all", "a"},
        {"--model goes with --plan", "--verify", "--model", "m", "a"},
        {"--compute-units: expected cpu, cpu_gpu, cpu_ne or all, got 'ane'", "--plan", "--compute-units", "ane"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failure(run_to(NULL, cases[i] + 1), 2, cases[i][0]);
    outcome help = RUN("--help");
    assert_int_equal(help.code, 0);
    assert_contains(help.out, "usage: layac inspect [--ops] [--tree | --json] PACKAGE");
    end(help);
}

static void file_errors(void **state)
{
    (void)state;
    expect_failure(RUN("none.mlpackage"), 5, "none.mlpackage: cannot be opened: no such file or directory");
    expect_failure(RUN("--diff", packages[0], "none.mlpackage"), 5, "none.mlpackage: cannot be opened");
    expect_failure(RUN("--verify", "none.mlpackage"), 5, "none.mlpackage");
    expect_failure(RUN("--plan", "none.mlpackage"), 5, "none.mlpackage: not found");
    expect_failure(RUN("--plan", packages[0]), 4, "name the directory that layac export wrote");
    expect_failure(RUN("out"), 4, "out: ");
    expect_failure(RUN(packages[3]), 4, "model.mlmodel");
    expect_failure(RUN("--diff", packages[0], packages[3]), 4, "model.mlmodel");
    outcome full = run_to("/dev/full", (const char *const[]){packages[0], NULL});
    assert_int_equal(full.code, 1);
    assert_contains(full.err, "standard output cannot be written");
    end(full);
}

static void golden_package(void **state)
{
    (void)state;
    static const char expected[] =
        "{\n"
        "  \"package\": \"golden.mlpackage\",\n"
        "  \"specification_version\": 7,\n"
        "  \"functions\": [\n"
        "    {\n"
        "      \"name\": \"main\",\n"
        "      \"opset\": \"CoreML6\",\n"
        "      \"inputs\": [\n"
        "        {\"name\":\"x\",\"kind\":\"multiArray\",\"dtype\":\"fp16\",\"shape\":[1,4,1,8]}\n"
        "      ],\n"
        "      \"outputs\": [\n"
        "        {\"name\":\"y\",\"kind\":\"multiArray\",\"dtype\":\"fp16\",\"shape\":[1,4,1,8]}\n"
        "      ],\n"
        "      \"states\": [],\n"
        "      \"operations\": {\n"
        "        \"non_constant\": 1,\n"
        "        \"const\": 0,\n"
        "        \"constexpr\": 0,\n"
        "        \"kinds\": {\n"
        "          \"relu\": 1\n"
        "        }\n"
        "      },\n"
        "      \"listing\": [\n"
        "        {\"type\":\"relu\",\"name\":\"y\",\"inputs\":{\"x\":\"x\"},\"outputs\":[{\"name\":\"y\",\"type\":"
        "\"fp16 [1, 4, 1, 8]\"}]}\n"
        "      ]\n"
        "    }\n"
        "  ],\n"
        "  \"constants\": {\n"
        "    \"count\": 0,\n"
        "    \"bytes\": 0,\n"
        "    \"in_model\": {\"count\":0,\"bytes\":0},\n"
        "    \"in_weight_file\": {\"count\":0,\"bytes\":0},\n"
        "    \"distinct_blobs\": {\"count\":0,\"bytes\":0},\n"
        "    \"largest\": []\n"
        "  },\n"
        "  \"palettes\": {\n"
        "    \"count\": 0,\n"
        "    \"bits\": {},\n"
        "    \"index_bytes\": 0,\n"
        "    \"table_bytes\": 0,\n"
        "    \"stored_bytes\": 0,\n"
        "    \"dense_bytes\": 0,\n"
        "    \"ratio\": null,\n"
        "    \"weights\": []\n"
        "  },\n"
        "  \"files\": [\n"
        "    {\"path\":\"Manifest.json\",\"bytes\":%zu},\n"
        "    {\"path\":\"Data/com.apple.CoreML/model.mlmodel\",\"bytes\":204}\n"
        "  ],\n"
        "  \"metadata\": {}\n"
        "}\n";
    char text[4096];
    snprintf(text, sizeof text, expected, sizeof manifest - 1);
    outcome o = RUN("--ops", packages[0]);
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, text);
    assert_string_equal(o.err, "");
    end(o);
    expect_json(RUN("--json", packages[0]), 0, "\"relu\": 1");
}

static void tree(void **state)
{
    (void)state;
    static const char expected[] = "golden.mlpackage\n"
                                   "  specification version 7\n"
                                   "  function main, CoreML6\n"
                                   "    inputs\n"
                                   "      x  fp16 [1, 4, 1, 8]\n"
                                   "    outputs\n"
                                   "      y  fp16 [1, 4, 1, 8]\n"
                                   "    operations  1, const 0, constexpr 0\n"
                                   "           1  relu\n"
                                   "    listing\n"
                                   "      y: fp16 [1, 4, 1, 8] = relu(x=x)\n"
                                   "  constants  0, 0 bytes\n"
                                   "    in the model  0, 0 bytes\n"
                                   "    in the weight file  0, 0 bytes\n"
                                   "    distinct blobs  0, 0 bytes\n"
                                   "  files\n"
                                   "    Manifest.json  %zu bytes\n"
                                   "    Data/com.apple.CoreML/model.mlmodel  204 bytes\n";
    char text[1024];
    snprintf(text, sizeof text, expected, sizeof manifest - 1);
    outcome o = RUN("--tree", "--ops", packages[0]);
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, text);
    end(o);
}

/* Names of a foreign package do not steer the terminal. */
static void control_characters(void **state)
{
    (void)state;
    outcome o = RUN("--tree", "--ops", packages[2]);
    if (o.code != 0) fail_msg("%s", o.err);
    assert_null(strchr(o.out, 0x1b));
    assert_null(strstr(o.out, "\xc2\x9b"));
    assert_contains(o.out, "         1  a b\n");
    assert_contains(o.out, "       : fp16 [1, 4, 1, 8] = a b(x=x)\n");
    end(o);
    expect_json(RUN(packages[2]), 0, "{\"name\":\"\\u001b\",");
}

static void differences(void **state)
{
    (void)state;
    expect_json(RUN("--diff", packages[0], packages[0]), 0, "\"equal\": true");
    expect_json(RUN("--diff", packages[0], packages[1]), 7,
                "{\n  \"a\": \"golden.mlpackage\",\n  \"b\": \"tanh.mlpackage\",\n  \"equal\": false,\n"
                "  \"difference_count\": 1,\n  \"differences\": [\n"
                "    {\"where\":{\"a\":\"operation 0, relu y\",\"b\":\"operation 0, tanh y\"},\"what\":\"type of the "
                "operation\",\"a\":\"relu\",\"b\":\"tanh\"}\n  ]\n}\n");
}

static void verification(void **state)
{
    (void)state;
    expect_json(RUN("--verify", packages[0]), 0, "{");
    expect_json(RUN("--verify", packages[2]), 7, "{"); /* its names are not legal */
}

/* ------------------------------------------------------------------ palettes */

static void save(laya_mil_program *program, const char *name)
{
    char path[TEST_PATH_SIZE];
    laya_package_files files;
    laya_error error;
    if (laya_package_write(program, test_join(path, folder, name), NULL, &files, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    laya_mil_program_close(program);
}

/* w: 1 2 3 4 5 5 -1 -2 of two tables with eight entries; in dense.mlpackage its sixth value is 4. */
static void write_palettes(void)
{
    static const unsigned char indices[] = {0x88, 0xf6, 0x23};
    static const double table[16] = {1, 2, 3, 4, 0, 0, 0, 0, -1, -2, 0, 0, 0, 0, 0, 5},
                        weight[8] = {1, 2, 3, 4, 5, 4, -1, -2};
    laya_mil_type type = laya_mil_tensor4(LAYA_MIL_FP16, 4, 2, 1, 1), lut = type, index = type;
    unsigned char bytes[32];
    laya_mil_program program;
    test_begin_program(&program);
    laya_mil_op *op = test_append_op(&program, "constexpr_lut_to_dense", "w", type);
    index.dtype = LAYA_MIL_UINT3;
    test_bind_constant(&program, test_add_input(&program, op, "indices"), index, indices);
    lut = (laya_mil_type){.kind = LAYA_MIL_TENSOR, .dtype = LAYA_MIL_FP16, .rank = 6, .dims = {2, 1, 1, 1, 8, 1}};
    test_encode(&lut, table, bytes);
    test_bind_constant(&program, test_add_input(&program, op, "lut"), lut, bytes);
    save(&program, "model.mlpackage");
    test_begin_program(&program);
    op = test_append_op(&program, "const", "w", type);
    test_encode(&type, weight, bytes);
    test_add_attribute(&program, op, "val", test_make_constant(&program, type, bytes));
    save(&program, "dense.mlpackage");
}

static void palettes(void **state)
{
    (void)state;
    static const char record[] = "{\"format\": \"laya-ane-research\", \"package\": \"model.mlpackage\", \"palette\": "
                                 "{\"mode\": \"kmeans\", \"weights\": [{\"name\": \"w\", \"sse\": 0.5}]}}";
    static const char line[] = "    w  fp16 [4, 2, 1, 1], 3 bits, form of CoreML8, 2 groups of 2 along axis 0, 3 to "
                               "4 of 8 entries used, 9 not "
                               "referenced, 3 + 32 bytes for 16\n";
    char path[TEST_PATH_SIZE];
    write_palettes();
    expect_json(RUN("model.mlpackage"), 0, "\"ratio\": 0.4571,\n");
    expect_json(RUN("--palettes", "model.mlpackage"), 0,
                "          {\"used\":3,\"values\":[-1.0,-2.0,0.0,0.0,0.0,0.0,0.0,5.0]}\n");
    expect_json(RUN("--palettes", "--parent", "dense.mlpackage", "model.mlpackage"), 0,
                "\"computed\": {\"sse\":1.0,\"relative_error\":0.013157894736842105,\"largest_error\":1.0},\n");
    outcome o = RUN("--tree", "model.mlpackage");
    assert_int_equal(o.code, 0);
    assert_contains(o.out, "  palettes  1 (3 bits: 1), 35 bytes for 16, ratio 0.4571\n");
    assert_contains(o.out, line);
    end(o);
    o = RUN("--palettes", "--tree", "--parent", "dense.mlpackage", "model.mlpackage");
    assert_int_equal(o.code, 0);
    char expected[2048];
    snprintf(expected, sizeof expected,
             "model.mlpackage\n"
             "  computed  parent dense.mlpackage, sse 1.0, relative error 0.013157894736842105, largest error 1.0\n"
             "  palettes  1 (3 bits: 1), 35 bytes for 16, ratio 0.4571\n%s"
             "      computed  sse 1.0, relative error 0.013157894736842105, largest error 1.0\n"
             "      table 0, 4 used: 1.0 2.0 3.0 4.0 0.0 0.0 0.0 0.0\n"
             "      table 1, 3 used: -1.0 -2.0 0.0 0.0 0.0 0.0 0.0 5.0\n",
             line);
    assert_string_equal(o.out, expected);
    end(o);
    test_write_file(test_join(path, folder, "manifest.json"), record, sizeof record - 1);
    expect_json(RUN("--palettes", "model.mlpackage"), 0,
                "\"recorded\": {\"sse\":0.5,\"relative_error\":null,\"largest_error\":null},\n");
    o = RUN("--palettes", "--tree", ".");
    assert_contains(o.out, "  recorded  mode kmeans, parent package sha256 ?\n");
    assert_contains(o.out, "      recorded  sse 0.5, relative error ?, largest error ?\n");
    end(o);
    expect_failure(RUN("--palettes", "--parent", packages[0], "model.mlpackage"), 4,
                   "golden.mlpackage: 'w': not found; name the package that the palettes were made from");
    expect_failure(RUN("--palettes", "--parent", "none", "model.mlpackage"), 5, "none: cannot be opened");
    o = RUN("--palettes", "--tree", packages[0]);
    assert_string_equal(o.out, "golden.mlpackage\n  palettes  0, 0 bytes for 0\n");
    end(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(palettes),     cmocka_unit_test(usage_errors),
        cmocka_unit_test(file_errors),  cmocka_unit_test(golden_package),
        cmocka_unit_test(tree),         cmocka_unit_test(differences),
        cmocka_unit_test(verification), cmocka_unit_test(control_characters),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
