/* SPDX-License-Identifier: Apache-2.0 */
/* layac palettize as users run it: summary, options, exit codes, gates, signals; the screen end to end. */
#include "bundles.h"
#include "process.h"
#include "support.h"
#include "tree.h"

#include "base/file.h"
#include "base/json.h"
#include "laya/palette.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH 96u
#define LENGTH_TEXT "96"

/* Two short cases, and one of more tokens than the package takes. */
static const char fixture_text[] =
    "{\"format\": \"laya-fixture\", \"version\": 1, \"cases\": ["
    "{\"name\": \"short\", \"state\": \"Please refund the order.\", \"questions\": {"
    "\"refund\": {\"type\": \"noul\", \"instructions\": \"Is a refund asked for?\"},"
    "\"team\": {\"type\": \"choice\", \"instructions\": \"Which team?\", \"criteria\": {\"billing\": null, \"tech\": "
    "null}}}},"
    "{\"name\": \"empty\", \"state\": \"\", \"questions\": {\"anger\": {\"type\": \"score\", \"instructions\": \"How "
    "angry?\", \"criteria\": [\"calm\", \"angry\"]}}},"
    "{\"name\": \"longer\", \"state\": \"The parcel arrived on Monday, but the box was open and two of the five "
    "items "
    "were missing. I wrote to you on Tuesday and again on Thursday and had no answer. The parcel arrived on Monday, "
    "but "
    "the box was open and two of the five items were missing. I wrote to you on Tuesday and again on Thursday and "
    "had no "
    "answer.\", \"questions\": {\"refund\": {\"type\": \"noul\", \"instructions\": \"Is a refund asked for?\"}}}]}\n";

static char shelter[TEST_PATH_SIZE]; /* of all tests: packages, fixture, reference */
static char folder[TEST_PATH_SIZE];  /* of one test: what layac writes */
static char output[TEST_PATH_SIZE];  /* in it */
static char parent[TEST_PATH_SIZE], fixture[TEST_PATH_SIZE], reference[TEST_PATH_SIZE];

static int make_shelter(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE];
    test_make_folder(shelter);
    unsetenv("LAYA_MODEL");
    test_path(model, TEST_DEMO);
    test_export(model, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, LENGTH, false, test_join(parent, shelter, "body96"));
    test_write_file(test_join(fixture, shelter, "fixture.json"), fixture_text, sizeof fixture_text - 1);
    test_join(reference, shelter, "reference.json");
    test_outcome o = test_run_layac(
        shelter, 0, TEST_LIST("reference", "--model", model, "--fixture", fixture, "--output", reference));
    test_outcome_close(&o);
    return 0;
}

static int remove_shelter(void **state)
{
    (void)state;
    test_remove_tree(shelter);
    return 0;
}

static int make_folder(void **state)
{
    (void)state;
    test_make_folder(folder);
    test_join(output, folder, "palette");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_remove_tree(folder);
    return 0;
}

#define PALETTIZE(CODE, ...) test_run_layac(shelter, CODE, TEST_LIST("palettize", "--package", parent, __VA_ARGS__))
#define FAILS(CODE, REASON, ...) test_layac_fails(shelter, CODE, REASON, TEST_LIST("palettize", __VA_ARGS__))

static void expect_nothing(void)
{
    char *tree = test_list_tree(folder);
    assert_string_equal(tree, "");
    free(tree);
}

/* ------------------------------------------------------------------ looking at JSON */

typedef struct document {
    char *text;
    laya_json doc;
    laya_json_value root;
} document;

/* Takes the text over. */
static document parse(char *text)
{
    document d = {.text = text};
    laya_error error;
    if (laya_json_parse(&d.doc, text, strlen(text), NULL, &error) != LAYA_OK) fail_msg("%s: %s", error.message, text);
    return d;
}

/* The root of a document that does not move any more. */
static laya_json_value root_of(document *d)
{
    return d->root = laya_json_root(&d->doc);
}

static document read_json(const char *directory, const char *name)
{
    char path[TEST_PATH_SIZE];
    return parse(test_read_file(test_join(path, directory, name), NULL));
}

static document take_output(test_outcome *o)
{
    document d = parse(o->out);
    o->out = NULL;
    test_outcome_close(o);
    return d;
}

static void close_document(document *d)
{
    laya_json_close(&d->doc);
    free(d->text);
}

static laya_json_value get(laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    if (!laya_json_present(value)) fail_msg("no member %s", name);
    return value;
}

static double number(laya_json_value object, const char *name)
{
    double value;
    if (!laya_json_to_double(get(object, name), &value)) fail_msg("%s is no number", name);
    return value;
}

static bool is_true(laya_json_value object, const char *name)
{
    laya_json_type type = laya_json_typeof(get(object, name));
    assert_true(type == LAYA_JSON_TRUE || type == LAYA_JSON_FALSE);
    return type == LAYA_JSON_TRUE;
}

static bool is_null(laya_json_value object, const char *name)
{
    return laya_json_is_null(get(object, name));
}

/* Both members have the same JSON text. */
static void expect_same(laya_json_value a, const char *name, laya_json_value b, const char *other)
{
    laya_buffer texts[2];
    for (size_t at = 0; at < 2; at++) laya_buffer_init(&texts[at], NULL);
    laya_json_write_python(&texts[0], get(a, name));
    laya_json_write_python(&texts[1], get(b, other));
    assert_string_equal(texts[0].data, texts[1].data);
    for (size_t at = 0; at < 2; at++) laya_buffer_close(&texts[at]);
}

static void expect_text(laya_json_value object, const char *name, const char *text)
{
    if (!laya_json_equals(get(object, name), text)) fail_msg("%s is not \"%s\"", name, text);
}

/* Bytes of the files of the package. */
static double package_bytes(laya_json_value manifest)
{
    static const char prefix[] = "model.mlpackage/";
    double sum = 0;
    laya_json_iterator it = laya_json_first(get(manifest, "files"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        size_t size;
        const char *path = laya_json_text(it.key, &size);
        if (size > sizeof prefix && memcmp(path, prefix, sizeof prefix - 1) == 0) sum += number(it.value, "bytes");
    }
    return sum;
}

/* ------------------------------------------------------------------ a palette */

static void expect_verified(const char *bundle)
{
    test_outcome o = test_run_layac(shelter, 0, TEST_LIST("inspect", "--verify", bundle));
    test_outcome_close(&o);
}

/* The error of all weights together, from those of each. */
static void expect_relative_error(laya_json_value summary, laya_json_value palette)
{
    double sse = 0, energy = 0;
    laya_json_iterator it = laya_json_first(get(palette, "weights"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        assert_true(number(it.value, "sse") > 0);
        sse += number(it.value, "sse");
        energy += number(it.value, "sse") / number(it.value, "relative_error");
    }
    double relative = number(summary, "relative_error");
    assert_true(fabs(relative - sse / energy) <= 1e-12 * relative);
}

static void test_summary(void **state)
{
    (void)state;
    static const char *const keys[] = {"output",        "package",        "package_sha256", "parent_package_sha256",
                                       "mode",          "bits",           "group_size",     "form",
                                       "opset",         "weights",        "skipped",        "weight_bytes",
                                       "package_bytes", "relative_error", "seconds",        "gate"};
    char package[TEST_PATH_SIZE];
    test_outcome o = PALETTIZE(0, "--bits", "6", "--mode", "uniform", "--group-size", "32", "--output", output);
    assert_string_equal(o.err, "");
    document summary = take_output(&o), written = read_json(output, "manifest.json"),
             before = read_json(parent, "manifest.json");
    laya_json_value s = root_of(&summary), m = root_of(&written), p = root_of(&before), palette = get(m, "palette");
    laya_json_iterator it = laya_json_first(s);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++, laya_json_next(&it))
        assert_true(laya_json_present(it.value) && laya_json_equals(it.key, keys[i]));
    assert_false(laya_json_present(it.value));
    expect_text(s, "output", output);
    expect_text(s, "package", test_join(package, output, "model.mlpackage"));
    expect_same(s, "package_sha256", m, "package_sha256");
    expect_same(s, "parent_package_sha256", p, "package_sha256");
    expect_same(s, "opset", m, "opset");
    expect_same(s, "seconds", palette, "seconds");
    expect_text(s, "mode", "uniform");
    expect_text(s, "form", "CoreML8");
    assert_true(number(s, "bits") == 6 && number(s, "group_size") == 32);
    assert_true(number(s, "weights") == (double)laya_json_size(get(palette, "weights")));
    assert_true(number(s, "weights") > 0 && number(s, "skipped") == 0);
    assert_true(number(get(s, "package_bytes"), "before") == package_bytes(p));
    assert_true(number(get(s, "package_bytes"), "after") == package_bytes(m));
    assert_true(number(get(s, "weight_bytes"), "after") * 2 < number(get(s, "weight_bytes"), "before"));
    assert_true(is_null(s, "gate"));
    expect_relative_error(s, palette);
    close_document(&summary);
    close_document(&written);
    close_document(&before);
    expect_verified(output);
}

/* One table for each weight: no newer opset. */
static void test_per_tensor(void **state)
{
    (void)state;
    test_outcome o = PALETTIZE(0, "--bits", "4", "--group-size", "tensor", "--output", output);
    document summary = take_output(&o), before = read_json(parent, "manifest.json");
    laya_json_value s = root_of(&summary);
    expect_text(s, "mode", "kmeans");
    expect_text(s, "form", "CoreML6");
    expect_same(s, "opset", root_of(&before), "opset");
    assert_true(is_null(s, "group_size"));
    close_document(&summary);
    close_document(&before);
    expect_verified(output);
}

static void test_same_bytes(void **state)
{
    (void)state;
    static const char *const workers[] = {"1", "3"};
    document summaries[2];
    for (size_t i = 0; i < 2; i++) {
        char bundle[TEST_PATH_SIZE];
        test_outcome o = PALETTIZE(0, "--bits", "6", "--workers", workers[i], "--output",
                                   test_join(bundle, folder, workers[i]));
        summaries[i] = take_output(&o);
        root_of(&summaries[i]);
    }
    expect_same(summaries[0].root, "package_sha256", summaries[1].root, "package_sha256");
    for (size_t i = 0; i < 2; i++) close_document(&summaries[i]);
}

/* The study's commands, with the paths of this test (study.md, S90). */
static void test_study_commands(void **state)
{
    (void)state;
    static const char *const bits[] = {"8", "6", "4"};
    char package[TEST_PATH_SIZE], child[TEST_PATH_SIZE], report[TEST_PATH_SIZE];
    test_join(package, parent, "model.mlpackage");
    test_outcome o = test_run_layac(shelter, 0,
                                    TEST_LIST("palettize", "--package", package, "--bits", "8", "--mode", "uniform",
                                              "--group-size", "32", "--output",
                                              test_join(output, folder, "body96-w8")));
    test_outcome_close(&o);
    o = test_run_layac(shelter, 0,
                       TEST_LIST("validate", "--package", test_join(child, output, "model.mlpackage"), "--length",
                                 LENGTH_TEXT, "--reference", reference, "--repeats", "2", "--output",
                                 test_join(report, folder, "validation96-w8.json")));
    test_outcome_close(&o);
    setenv("VECLIB_MAXIMUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "body96-w%skm", bits[i]);
        o = test_run_layac(shelter, 0,
                           TEST_LIST("palettize", "--package", package, "--bits", bits[i], "--mode", "kmeans",
                                     "--group-size", "32", "--workers", "8", "--output",
                                     test_join(output, folder, name)));
        document summary = take_output(&o);
        assert_true(number(root_of(&summary), "bits") == bits[i][0] - '0');
        close_document(&summary);
    }
    unsetenv("VECLIB_MAXIMUM_THREADS");
    unsetenv("OPENBLAS_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
}

/* ------------------------------------------------------------------ gated palettes */

static void expect_gate(bool passed, laya_json_value summary)
{
    document manifest = read_json(output, "manifest.json");
    laya_json_value palette = get(root_of(&manifest), "palette"), gate = get(summary, "gate");
    assert_int_equal(is_true(gate, "passed"), passed);
    expect_same(summary, "gate", palette, "gate");
    assert_int_equal(laya_json_typeof(get(palette, "gate")), LAYA_JSON_OBJECT);
    assert_true(number(gate, "evaluated_questions") == 3 && number(gate, "unvalidated_questions") == 1);
    close_document(&manifest);
}

static void test_weighted(void **state)
{
    (void)state;
    test_outcome o = PALETTIZE(0, "--bits", "8", "--mode", "weighted", "--fixture", fixture, "--reference", reference,
                               "--output", output);
    document summary = take_output(&o);
    expect_text(root_of(&summary), "mode", "weighted");
    expect_gate(true, summary.root);
    close_document(&summary);
}

/* Two values for each weight are too few. The bundle is there and says so, and so does the exit code. */
static void test_failing_gate(void **state)
{
    (void)state;
    test_outcome o = PALETTIZE(7, "--bits", "1", "--mode", "weighted", "--fixture", fixture, "--output", output);
    document summary = take_output(&o);
    root_of(&summary);
    expect_gate(false, summary.root);
    close_document(&summary);
    expect_verified(output);
}

static void test_target_error(void **state)
{
    (void)state;
    test_outcome o = PALETTIZE(0, "--target-error", "0.01", "--mode", "kmeans", "--fixture", fixture, "--reference",
                               reference, "--output", output);
    document summary = take_output(&o), manifest = read_json(output, "manifest.json");
    laya_json_value palette = get(root_of(&manifest), "palette");
    expect_text(root_of(&summary), "bits", "per weight");
    expect_gate(true, summary.root);
    assert_true(number(get(summary.root, "gate"), "probability_error") <= 0.01);
    assert_true(number(palette, "target_error") == 0.01);
    close_document(&summary);
    close_document(&manifest);
}

/* ------------------------------------------------------------------ refusals */

static void test_usage(void **state)
{
    (void)state;
    FAILS(2, "palettize: no package", "--bits", "8", "--output", output);
    FAILS(2, "palettize: no output", "--package", parent, "--bits", "8");
    FAILS(2, "palettize: no output", "--package", parent, "--bits", "8", "--output", "");
    FAILS(2, "unexpected argument 'x'", "--package", parent, "--bits", "8", "--output", output, "x");
    FAILS(2, "palettize: no bits; use --bits N", "--package", parent, "--output", output);
    FAILS(2, "--bits: expected 1, 2, 3, 4, 6 or 8, got '5'", "--package", parent, "--bits", "5", "--output", output);
    FAILS(2, "--bits: expected", "--package", parent, "--bits", "", "--output", output);
    FAILS(2, "--mode: expected uniform, kmeans, unique or weighted, got 'linear'", "--package", parent, "--mode",
          "linear", "--output", output);
    FAILS(2, "--group-size: expected a whole number from 1", "--package", parent, "--bits", "8", "--group-size", "0",
          "--output", output);
    FAILS(2, "--group-size: expected a number of output channels or tensor, got 'all'", "--package", parent, "--bits",
          "8", "--group-size", "all", "--output", output);
    FAILS(2, "--workers: expected a whole number from 1 to 1024", "--package", parent, "--bits", "8", "--workers",
          "0", "--output", output);
    FAILS(2, "--target-error: expected a probability error, above 0 and below 1, got '0'", "--package", parent,
          "--target-error", "0", "--output", output);
    FAILS(2, "--target-error", "--package", parent, "--target-error", "1", "--output", output);
    FAILS(2, "--target-error", "--package", parent, "--target-error", "nan", "--output", output);
    FAILS(2, "--target-error chooses the bits; leave out --bits", "--package", parent, "--target-error", "0.02",
          "--bits", "8", "--output", output);
    FAILS(2, "--mode unique chooses the bits; leave out --bits", "--package", parent, "--mode", "unique", "--bits",
          "8", "--output", output);
    FAILS(2, "--mode unique loses nothing; leave out --target-error", "--package", parent, "--mode", "unique",
          "--target-error", "0.02", "--output", output);
    expect_nothing();
}

/* Options that would have no effect. */
static void test_unused_options(void **state)
{
    (void)state;
    static const char *const screen_only[][2] = {{"--repeats", "2"},
                                                 {"--backend", "interpreter"},
                                                 {"--compute-units", "cpu"},
                                                 {"--numerics", "fp32"},
                                                 {"--cache", "folder"}};
    static const char *const gated_only[] = {"--fixture", "--reference", "--model"};
    for (size_t i = 0; i < sizeof screen_only / sizeof *screen_only; i++) {
        char reason[64];
        snprintf(reason, sizeof reason, "palettize: %s goes with --screen\n", screen_only[i][0]);
        FAILS(2, reason, "--package", parent, "--bits", "8", "--output", output, screen_only[i][0],
              screen_only[i][1]);
    }
    FAILS(2, "palettize: --table goes with --screen", "--package", parent, "--bits", "8", "--output", output,
          "--table");
    for (size_t i = 0; i < sizeof gated_only / sizeof *gated_only; i++) {
        char reason[96];
        snprintf(reason, sizeof reason, "%s goes with --mode weighted, --target-error or --screen", gated_only[i]);
        FAILS(2, reason, "--package", parent, "--bits", "8", "--output", output, gated_only[i], fixture);
    }
    expect_nothing();
}

static void test_screen_usage(void **state)
{
    (void)state;
    static const char *const chosen[][2] = {
        {"--bits", "8"}, {"--mode", "kmeans"}, {"--group-size", "32"}, {"--target-error", "0.02"}};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        char reason[96];
        snprintf(reason, sizeof reason, "--screen makes its own variants; leave out %s\n", chosen[i][0]);
        FAILS(2, reason, "--package", parent, "--screen", chosen[i][0], chosen[i][1]);
    }
    FAILS(2, "palettize: no package", "--screen");
    FAILS(2, "--output names nothing", "--package", parent, "--screen", "--output", "");
    FAILS(2, "--repeats: expected", "--package", parent, "--screen", "--repeats", "0");
    FAILS(2, "--backend native runs no package", "--package", parent, "--screen", "--backend", "native");
    FAILS(2, "--numerics: expected fp16", "--package", parent, "--screen", "--numerics", "fp8");
    FAILS(2, "--compute-units goes with --backend coreml", "--package", parent, "--screen", "--compute-units", "cpu");
    expect_nothing();
}

static void test_refusals(void **state)
{
    (void)state;
    char child[TEST_PATH_SIZE], small[TEST_PATH_SIZE], model[TEST_PATH_SIZE];
    FAILS(5, "nowhere", "--package", "nowhere", "--bits", "8", "--output", output);
    FAILS(5, "nowhere", "--package", parent, "--bits", "8", "--mode", "weighted", "--fixture", "nowhere", "--output",
          output);
    FAILS(5, "nowhere", "--package", parent, "--target-error", "0.02", "--reference", "nowhere", "--fixture", fixture,
          "--output", output);
    FAILS(4, "5", "--package", parent, "--bits", "8", "--group-size", "5", "--output", output);
    test_outcome o = PALETTIZE(4, "--mode", "unique", "--output", output); /* weights of fp16, all with many values */
    assert_string_equal(o.out, "");
    assert_contains(o.err, "every convolution weight has more than 256 distinct values");
    test_outcome_close(&o);
    expect_nothing();
    o = PALETTIZE(0, "--bits", "2", "--output", test_join(child, folder, "child"));
    test_outcome_close(&o);
    FAILS(4, "palett", "--package", child, "--bits", "2", "--output", output);
    FAILS(4, "palett", "--package", child, "--screen", "--fixture", fixture, "--reference", reference);
    test_remove_tree(child);
    o = test_run_layac(shelter, 0,
                       TEST_LIST("export", "--model", test_path(model, TEST_DEMO), "--kind", "mlp", "--output",
                                 test_join(small, folder, "mlp")));
    test_outcome_close(&o);
    FAILS(4, "body", "--package", small, "--bits", "8", "--mode", "weighted", "--fixture", fixture, "--output",
          output);
    FAILS(4, "body", "--package", small, "--screen", "--fixture", fixture);
    test_remove_tree(small);
    expect_nothing();
}

static void test_existing_output(void **state)
{
    (void)state;
    test_write_file(output, "mine", 4);
    FAILS(5, "exists already", "--package", parent, "--bits", "8", "--output", output);
    FAILS(5, "exists already", "--package", parent, "--screen", "--output", output, "--fixture", fixture);
    char *text = test_read_file(output, NULL);
    assert_string_equal(text, "mine");
    free(text);
    char *tree = test_list_tree(folder);
    assert_string_equal(tree, "palette\n");
    free(tree);
}

/* Whether anything is in the folder; what is in there may come and go meanwhile. */
static bool is_empty(void)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    bool empty = true;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    closedir(directory);
    return empty;
}

/* Interrupt it as soon as a staging or temporary directory is there: nothing is left. */
static void interrupt(const char *const *arguments)
{
    test_child child = test_start_layac(shelter, arguments);
    while (is_empty()) continue;
    assert_int_equal(kill(child.pid, SIGINT), 0);
    test_outcome o = test_wait(&child);
    assert_int_equal(o.signal, SIGINT);
    assert_string_equal(o.out, "");
    test_outcome_close(&o);
    if (access(output, F_OK) == 0) test_remove_tree(output); /* the signal came after the last look */
    expect_nothing();
}

static void test_signals(void **state)
{
    (void)state;
    setenv("TMPDIR", folder, 1);
    interrupt(TEST_LIST("palettize", "--package", parent, "--bits", "8", "--output", output));
    interrupt(TEST_LIST("palettize", "--package", parent, "--bits", "8", "--mode", "weighted", "--fixture", fixture,
                        "--output", output));
    interrupt(TEST_LIST("palettize", "--package", parent, "--screen", "--fixture", fixture, "--output", output));
    interrupt(TEST_LIST("palettize", "--package", parent, "--screen", "--fixture", fixture));
    unsetenv("TMPDIR");
}

/* ------------------------------------------------------------------ the screen */

#define VARIANTS 12

static const struct {
    const char *name, *mode;
    double bits, group_size; /* 0: null */
} expected[VARIANTS] = {{"w8-uniform-g32", "uniform", 8, 32},   {"w8-uniform-g4", "uniform", 8, 4},
                        {"w8-kmeans-g32", "kmeans", 8, 32},     {"w6-kmeans-g32", "kmeans", 6, 32},
                        {"w4-kmeans-g32", "kmeans", 4, 32},     {"w8-uniform-tensor", "uniform", 8, 0},
                        {"w8-kmeans-tensor", "kmeans", 8, 0},   {"w6-kmeans-tensor", "kmeans", 6, 0},
                        {"w4-kmeans-tensor", "kmeans", 4, 0},   {"w8-weighted-g32", "weighted", 8, 32},
                        {"w6-weighted-g32", "weighted", 6, 32}, {"w4-weighted-g32", "weighted", 4, 32}};

/* What was written for a variant agrees with its row. */
static void expect_files(const char *screen, laya_json_value row)
{
    size_t size;
    char directory[TEST_PATH_SIZE], name[64], file[96];
    const char *text = laya_json_text(get(row, "name"), &size);
    snprintf(name, sizeof name, "%.*s", (int)size, text);
    snprintf(file, sizeof file, "%s.validation.json", name);
    document manifest = read_json(test_join(directory, screen, name), "manifest.json"),
             validation = read_json(screen, file);
    laya_json_value m = root_of(&manifest), v = root_of(&validation), palette = get(m, "palette"),
                    gate = get(row, "gate");
    expect_same(row, "package_sha256", m, "package_sha256");
    expect_same(row, "package_sha256", get(v, "package"), "package_sha256");
    expect_text(get(v, "package"), "directory", directory);
    expect_same(row, "mode", palette, "mode");
    expect_same(row, "bits", palette, "bits");
    expect_same(row, "group_size", palette, "group_size");
    assert_true(number(row, "weights") == (double)laya_json_size(get(palette, "weights")));
    assert_true(number(get(row, "package_bytes"), "after") == package_bytes(m));
    expect_same(get(row, "weight_bytes"), "after", palette, "weight_bytes_after");
    expect_relative_error(row, palette);
    assert_int_equal(is_true(gate, "passed"), is_true(v, "passed"));
    assert_int_equal(is_true(gate, "passed"), is_true(get(palette, "gate"), "passed"));
    expect_same(gate, "probability_error", get(get(v, "worst"), "probability_error"), "value");
    expect_same(gate, "action_logit_error", get(get(v, "worst"), "action_logit_error"), "value");
    expect_same(gate, "argmax_changes", get(get(v, "gates"), "argmax"), "failures");
    expect_same(gate, "evaluated", get(v, "counts"), "evaluated");
    close_document(&manifest);
    close_document(&validation);
}

/* The study's figures, as its table has them. */
static void expect_study(laya_json_value report)
{
    laya_json_value study = get(report, "study"), w8 = get(study, "w8-kmeans-g32"), w4 = get(study, "w4-kmeans-g32");
    assert_int_equal(laya_json_size(study), 5);
    assert_true(number(get(study, "w8-uniform-g32"), "probability_error") == 0.023612);
    assert_true(number(get(study, "w8-uniform-g4"), "probability_error") == 0.033858);
    assert_true(is_null(get(study, "w8-uniform-g4"), "seconds"));
    assert_true(is_true(w8, "passed") && number(w8, "probability_error") == 0.014393);
    assert_true(number(w8, "action_logit_error") == 16.24 && number(w8, "seconds") == 186.5);
    assert_true(!is_true(w4, "passed") && number(w4, "probability_error") == 0.200221);
    assert_true(number(w4, "action_logit_error") == 605.3 && number(w4, "seconds") == 23.9);
    assert_true(number(get(study, "w6-kmeans-g32"), "probability_error") == 0.052243);
    size_t size;
    const char *note = laya_json_text(get(report, "study_note"), &size);
    assert_non_null(strstr(note, "not comparable"));
}

static void expect_row(laya_json_value row, size_t at)
{
    expect_text(row, "name", expected[at].name);
    expect_text(row, "mode", expected[at].mode);
    expect_text(row, "status", "made");
    assert_true(number(row, "bits") == expected[at].bits);
    if (expected[at].group_size > 0)
        assert_true(number(row, "group_size") == expected[at].group_size);
    else
        assert_true(is_null(row, "group_size"));
    assert_int_equal(is_null(row, "weighted_relative_error"), strcmp(expected[at].mode, "weighted") != 0);
}

/* Figures that must be ordered, whatever the weights: optima, and finer tables. */
static void expect_order(const double error[VARIANTS])
{
    enum { U8G32, U8G4, K8, K6, K4, U8T, K8T, K6T, K4T, W8, W6, W4 };
    assert_true(K8 == 2 && K4T == 8 && W4 == 11);
    assert_true(error[K8] < error[K6] && error[K6] < error[K4]);
    assert_true(error[K8] < error[U8G32] && error[K8T] < error[U8T]);
    assert_true(error[K8] < error[K8T] && error[K6] < error[K6T] && error[K4] < error[K4T]);
    assert_true(error[K8] < error[W8] && error[K6] < error[W6] && error[K4] < error[W4]);
    assert_true(error[U8G4] < error[U8T]);
}

static void expect_reference(const char *screen, laya_json_value report)
{
    char path[TEST_PATH_SIZE], hash[65];
    size_t size;
    laya_error error;
    expect_text(get(report, "reference"), "file", test_join(path, screen, "reference.json"));
    expect_text(get(report, "reference"), "recorded", "for this run");
    char *text = test_read_file(path, &size);
    assert_int_equal(laya_sha256(text, size, hash, &error), LAYA_OK);
    expect_text(get(report, "reference"), "sha256", hash);
    free(text);
    document validation = read_json(screen, "w4-kmeans-tensor.validation.json");
    expect_same(get(root_of(&validation), "reference"), "file", get(report, "reference"), "file");
    expect_same(validation.root, "package", validation.root, "package");
    close_document(&validation);
    document first = read_json(screen, "parent.validation.json");
    expect_same(get(root_of(&first), "package"), "package_sha256", get(report, "package"), "package_sha256");
    assert_int_equal(is_true(first.root, "passed"), is_true(get(get(report, "parent"), "gate"), "passed"));
    close_document(&first);
}

/* A variant of the screen is what the command makes. */
static void expect_same_package(laya_json_value row)
{
    char other[TEST_PATH_SIZE];
    test_outcome o = PALETTIZE(0, "--bits", "8", "--output", test_join(other, folder, "other"));
    document summary = take_output(&o);
    expect_same(root_of(&summary), "package_sha256", row, "package_sha256");
    close_document(&summary);
}

static void test_screen(void **state)
{
    (void)state;
    double errors[VARIANTS];
    setenv("TMPDIR", folder, 1);
    test_outcome o = PALETTIZE(0, "--screen", "--fixture", fixture, "--output", output);
    unsetenv("TMPDIR");
    assert_string_equal(o.err, "");
    char path[TEST_PATH_SIZE], *written = test_read_file(test_join(path, output, "screen.json"), NULL);
    assert_string_equal(o.out, written);
    free(written);
    document report = take_output(&o);
    laya_json_value r = root_of(&report), row;
    expect_text(r, "format", "laya-screen");
    expect_text(r, "class", "executed by the interpreter");
    expect_text(r, "executor", "interpreter fp16");
    assert_true(is_true(r, "passed") && is_true(get(get(r, "parent"), "gate"), "passed"));
    assert_true(number(get(r, "energy"), "cases") == 3 && number(get(r, "energy"), "questions") == 4);
    laya_json_iterator it = laya_json_first(get(r, "variants"));
    for (size_t at = 0; at < VARIANTS; at++, laya_json_next(&it)) {
        row = it.value;
        expect_row(row, at);
        expect_files(output, row);
        errors[at] = number(row, "relative_error");
        if (at == 2) expect_same_package(row);
    }
    assert_false(laya_json_present(it.value));
    expect_order(errors);
    expect_study(r);
    expect_reference(output, r);
    close_document(&report);
    test_join(path, folder, "other");
    test_remove_tree(path);
    test_remove_tree(output);
    expect_nothing(); /* nor anything temporary */
}

/* A checkpoint whose feed-forward blocks have 144 output channels, which 32 does not divide. */
static void make_other_parent(char path[TEST_PATH_SIZE])
{
    char tokenizer[TEST_PATH_SIZE], checkpoint[TEST_PATH_SIZE];
    test_path(tokenizer, TEST_DEMO "/tokenizer");
    test_child child = test_start(
        LAYA_BINARY_DIR "/tests/laya-make-checkpoint", shelter, 0,
        TEST_LIST("1,64,72,4096,1", tokenizer, test_join(checkpoint, shelter, "other-model")));
    test_outcome o = test_wait(&child);
    if (o.code != 0) fail_msg("%s", o.err);
    test_outcome_close(&o);
    test_export(checkpoint, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, LENGTH, false, test_join(path, shelter, "other"));
}

/* A screen of the small bundle, which is made where it is not there. */
static laya_screen_options small_screen(char other[TEST_PATH_SIZE])
{
    laya_screen_options options;
    test_join(other, shelter, "other");
    if (access(other, F_OK) != 0) make_other_parent(other);
    laya_screen_options_init(&options);
    options.fixture = fixture;
    options.workers = 1;
    return options;
}

/* A table for people; variants that cannot be made have a line of their own, and the exit code tells. */
static void test_table(void **state)
{
    (void)state;
    char other[TEST_PATH_SIZE];
    small_screen(other);
    setenv("TMPDIR", folder, 1);
    test_outcome o = test_run_layac(shelter, 7,
                                    TEST_LIST("palettize", "--package", other, "--screen", "--fixture", fixture,
                                              "--table", "--repeats", "2", "--numerics", "fp32"));
    unsetenv("TMPDIR");
    for (size_t at = 0; at < VARIANTS; at++) {
        const char *line = strstr(o.out, expected[at].name);
        assert_non_null(line);
        char *text = strndup(line, strcspn(line, "\n"));
        if (expected[at].group_size == 32) {
            assert_contains(text, "NOT MADE: ");
            assert_contains(text, "144");
        } else {
            bool fails = test_contains(text, "  fails: ");
            text[strcspn(text, "|")] = '\0'; /* the study's columns */
            assert_contains(text, fails ? "  FAIL" : "  pass");
        }
        free(text);
    }
    assert_contains(o.out, "executed by the interpreter (interpreter fp32)");
    assert_contains(o.out, "0.033858");
    assert_contains(o.out, "not comparable");
    assert_contains(o.out, "\nW8 ");
    test_outcome_close(&o);
    expect_nothing();
}

/* ------------------------------------------------------------------ the call */

static void expect_argument(const laya_screen_options *options, const char *package, const char *directory,
                            const char *reason)
{
    laya_report *report = NULL;
    laya_error error;
    assert_int_equal(laya_screen(package, options, directory, &report, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, reason);
    assert_null(report);
}

static void test_arguments(void **state)
{
    (void)state;
    char other[TEST_PATH_SIZE];
    laya_error error;
    laya_screen_options good = small_screen(other), bad = good;
    expect_argument(NULL, other, output, "options must not be NULL");
    expect_argument(&good, NULL, output, "package must not be NULL");
    expect_argument(&good, other, "", "output must name a new directory");
    assert_int_equal(laya_screen(other, &good, output, NULL, &error), LAYA_ERROR_ARGUMENT);
    bad.size--;
    expect_argument(&bad, other, output, "options.size");
    bad = good;
    bad.repeats = 0;
    expect_argument(&bad, other, output, "repeats must be at least 1");
    bad = good;
    bad.fixture = NULL;
    expect_argument(&bad, other, output, "fixture must not be NULL");
    bad = good;
    bad.workers = 1025;
    expect_argument(&bad, other, output, "workers: expected at most 1024, found 1025");
    expect_nothing();
}

typedef struct watch {
    unsigned reports, requests;
    unsigned stop_at; /* the request that is answered with yes; 0: none */
    uint64_t done, total;
    bool orderly;
} watch;

static void see_progress(void *user, uint64_t done, uint64_t total)
{
    watch *w = user;
    w->orderly = w->orderly && done >= w->done && done <= total && (w->total == 0 || w->total == total);
    w->done = done;
    w->total = total;
    w->reports++;
}

static int see_request(void *user)
{
    watch *w = user;
    w->requests++;
    return w->stop_at && w->requests >= w->stop_at;
}

static laya_status watched_screen(watch *w, laya_error *error)
{
    char other[TEST_PATH_SIZE];
    laya_report *report;
    laya_screen_options options = small_screen(other);
    *w = (watch){.stop_at = w->stop_at, .orderly = true};
    options.progress = (laya_progress){w, see_progress};
    options.interrupt = (laya_interrupt){w, see_request};
    laya_status status = laya_screen(other, &options, output, &report, error);
    assert_int_equal(report != NULL, status == LAYA_OK);
    laya_report_close(report);
    assert_true(w->orderly);
    return status;
}

/* Progress runs to its end; wherever it is stopped, nothing is left. */
static void test_progress_and_stop(void **state)
{
    (void)state;
    laya_error error;
    watch w = {0};
    setenv("TMPDIR", folder, 1);
    assert_int_equal(watched_screen(&w, &error), LAYA_OK);
    assert_true(w.done == w.total && w.reports >= 24 && w.reports <= 200);
    test_remove_tree(output);
    const unsigned requests = w.requests;
    assert_true(requests > 40);
    for (unsigned at = 1; at <= 6; at++) {
        w.stop_at = 1 + (requests - 1) * (at - 1) / 5;
        assert_int_equal(watched_screen(&w, &error), LAYA_ERROR_STOPPED);
        expect_nothing();
    }
    unsetenv("TMPDIR");
}

/* Allocations that fail, here and there: MEMORY, and nothing is left. */
static void test_memory_fails(void **state)
{
    (void)state;
    char other[TEST_PATH_SIZE];
    test_memory memory;
    laya_report *report;
    laya_error error;
    laya_bundle_options bundle;
    laya_screen_options options = small_screen(other);
    test_memory_init(&memory);
    laya_bundle_options_init(&bundle);
    bundle.allocator = memory.hooks;
    options.bundle = &bundle;
    setenv("TMPDIR", folder, 1);
    test_memory_arm(&memory, 0);
    assert_int_equal(laya_screen(other, &options, NULL, &report, &error), LAYA_OK);
    laya_report_close(report);
    assert_int_equal(memory.live, 0);
    const size_t made = memory.made;
    enum { POINTS = 12 };
    for (size_t at = 0; at < POINTS; at++) {
        test_memory_arm(&memory, 1 + (made - 1) * at / (POINTS - 1));
        assert_int_equal(laya_screen(other, &options, at % 2 ? output : NULL, &report, &error), LAYA_ERROR_MEMORY);
        assert_true(memory.failed && memory.live == 0 && !report);
        expect_nothing();
    }
    unsetenv("TMPDIR");
}

static void test_help(void **state)
{
    (void)state;
    test_outcome o = test_run_layac(shelter, 0, TEST_LIST("help", "palettize"));
    assert_contains(o.out, "usage: layac palettize ");
    assert_string_equal(o.err, "");
    test_outcome_close(&o);
    o = test_run_layac(shelter, 0, TEST_LIST("help"));
    assert_contains(o.out, "layac palettize ");
    test_outcome_close(&o);
}

int main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_summary),           TEST(test_per_tensor),   TEST(test_same_bytes),   TEST(test_study_commands),
        TEST(test_weighted),          TEST(test_failing_gate), TEST(test_target_error), TEST(test_usage),
        TEST(test_unused_options),    TEST(test_screen_usage), TEST(test_refusals),     TEST(test_existing_output),
        TEST(test_signals),           TEST(test_screen),       TEST(test_table),        TEST(test_arguments),
        TEST(test_progress_and_stop), TEST(test_memory_fails), TEST(test_help),
    };
    return cmocka_run_group_tests(tests, make_shelter, remove_shelter);
}
