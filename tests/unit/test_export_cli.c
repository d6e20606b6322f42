/* SPDX-License-Identifier: Apache-2.0 */
/* layac export as users run it: output, exit codes, signals, kills, limits. */
#include "process.h"
#include "support.h"
#include "tree.h"

#include "base/json.h"
#include "laya/coreml.h"
#include "model/engine.h"
#include "model/model.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char shelter[TEST_PATH_SIZE]; /* of all tests: its standard output and error, a larger checkpoint */

static const char *at(char path[TEST_PATH_SIZE], const char *name)
{
    return test_join(path, test_folder, name);
}

/* ------------------------------------------------------------------ running */

static test_outcome run(const char *path, rlim_t file_limit, const char *const *arguments)
{
    test_child child = test_start(path, shelter, file_limit, arguments);
    return test_wait(&child);
}

#define EXPORT(...) run(test_layac(), 0, TEST_LIST("export", __VA_ARGS__))

static void expect_success(test_outcome o)
{
    if (o.code != 0) fail_msg("exit code %d (signal %d): %s", o.code, o.signal, o.err);
    test_outcome_close(&o);
}

static void expect_nothing(void)
{
    char *tree = test_list_tree(test_folder);
    assert_string_equal(tree, "");
    free(tree);
}

/* A bundle that passes the verifier, its files' hashes included. */
static void expect_verified(const char *bundle)
{
    laya_package *package;
    laya_error error;
    int passed;
    char *json;
    if (laya_package_open(bundle, NULL, &package, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (laya_package_verify(package, &passed, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (!passed) fail_msg("%s", json);
    laya_package_release(package, json);
    laya_package_close(package);
}

/* ------------------------------------------------------------------ fixtures */

/* A checkpoint whose export takes some tenths of a second, so that signals land inside. */
static void make_checkpoint(char path[TEST_PATH_SIZE])
{
    char tokenizer[TEST_PATH_SIZE];
    test_join(path, shelter, "checkpoint");
    if (access(path, F_OK) == 0) return;
    test_path(tokenizer, TEST_DEMO "/tokenizer");
    expect_success(run(LAYA_BINARY_DIR "/tests/laya-make-checkpoint", 0,
                       TEST_LIST("--outliers", "12,384,576,4096,2", tokenizer, path)));
}

static int make_shelter(void **state)
{
    (void)state;
    test_make_folder(shelter);
    unsetenv("LAYA_MODEL");
    return 0;
}

static int remove_shelter(void **state)
{
    (void)state;
    test_remove_tree(shelter);
    return 0;
}

/* ------------------------------------------------------------------ results */

static void expect_number(laya_json_value object, const char *key, uint32_t expected)
{
    uint32_t number;
    if (!laya_json_to_uint32(laya_json_get(object, key), &number) || number != expected)
        fail_msg("%s is not %u", key, expected);
}

static void test_summary(void **state)
{
    (void)state;
    static const char *const keys[] = {"output", "package", "package_sha256", "kind",      "graph", "precision",
                                       "length", "markers", "operations",     "constants", "bytes", "seconds"};
    char output[TEST_PATH_SIZE], package[TEST_PATH_SIZE];
    laya_json doc;
    laya_error error;
    test_outcome o = EXPORT("--output", at(output, "bundle"), "--length", "32", "--markers", "8", "--graph", "lean");
    if (o.code != 0) fail_msg("exit code %d: %s", o.code, o.err);
    assert_contains(o.err, "built-in demo model");
    if (laya_json_parse(&doc, o.out, strlen(o.out), NULL, &error) != LAYA_OK)
        fail_msg("%s: %s", error.message, o.out);
    laya_json_value root = laya_json_root(&doc);
    laya_json_iterator it = laya_json_first(root);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++, laya_json_next(&it))
        assert_true(laya_json_present(it.value) && laya_json_equals(it.key, keys[i]));
    assert_false(laya_json_present(it.value));
    assert_true(laya_json_equals(laya_json_get(root, "output"), output));
    assert_true(laya_json_equals(laya_json_get(root, "package"), test_join(package, output, "model.mlpackage")));
    assert_true(laya_json_equals(laya_json_get(root, "kind"), "body"));
    assert_true(laya_json_equals(laya_json_get(root, "graph"), "lean"));
    assert_true(laya_json_equals(laya_json_get(root, "precision"), "fp16"));
    expect_number(root, "length", 32);
    expect_number(root, "markers", 8);
    laya_json_close(&doc);
    test_outcome_close(&o);
    expect_verified(output);
}

/* The hashes of manifest.json, checked by another program. */
static void test_hashes_by_another_program(void **state)
{
    (void)state;
    static const char script[] =
        "cd \"$1\" && command -v sha256sum >/dev/null || exit 77\n"
        "sed -n '/^  \"files\"/,/^  }/p' manifest.json |\n"
        "sed -n 's/^    \"\\(.*\\)\": {$/\\1/p; s/^      \"sha256\": \"\\(.*\\)\",$/\\1/p' |\n"
        "{ while read -r file && read -r hash; do echo \"$hash  $file\"; done; } >../sums\n"
        "test \"$(wc -l <../sums)\" -eq 8 && sha256sum -c ../sums\n"
        "grep -q \"$(sha256sum \"$2/model.safetensors\" | cut -d ' ' -f 1)\" manifest.json\n";
    char output[TEST_PATH_SIZE], model[TEST_PATH_SIZE];
    test_path(model, TEST_DEMO);
    expect_success(EXPORT("--model", model, "--standalone", "--output", at(output, "bundle")));
    test_outcome o = run("/bin/sh", 0, TEST_LIST("-ec", script, "sh", output, model));
    if (o.code != 0 && o.code != 77) fail_msg("%s%s", o.out, o.err);
    if (o.code == 0) assert_contains(o.out, "host_weights.safetensors: OK");
    test_outcome_close(&o);
}

static void test_probe_and_small_kinds(void **state)
{
    (void)state;
    static const char *const kinds[] = {"layer", "mlp"};
    char model[TEST_PATH_SIZE], output[TEST_PATH_SIZE], other[TEST_PATH_SIZE];
    test_path(model, TEST_DEMO);
    for (size_t i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "other-%s", kinds[i]);
        test_outcome o = run(test_layac(), 0,
                             TEST_LIST("probe", "--source", model, "--kind", kinds[i], "--layer", "1", "--output",
                                       at(output, kinds[i]), "--precision", "fp32"));
        assert_contains(o.out, "\"markers\": null");
        assert_string_equal(o.err, "");
        expect_success(o);
        expect_verified(output);
        expect_success(EXPORT("--model", model, "--kind", kinds[i], "--layer", "1", "--output", at(other, name),
                              "--precision", "fp32"));
        test_same_bundle(output, other);
    }
}

/* Threads, time zone and locale leave no trace. */
static void test_same_bytes(void **state)
{
    (void)state;
    static const char *const settings[][3] = {
        {"1", "UTC", "C"}, {"2", "Pacific/Kiritimati", "de_DE.UTF-8"}, {"8", "America/St_Johns", "tr_TR.UTF-8"}};
    char first[TEST_PATH_SIZE], other[TEST_PATH_SIZE], model[TEST_PATH_SIZE];
    test_path(model, TEST_DEMO);
    at(first, "0");
    for (size_t i = 0; i < 3; i++) {
        char name[2] = {(char)('0' + i), '\0'};
        setenv("TZ", settings[i][1], 1);
        setenv("LC_ALL", settings[i][2], 1);
        expect_success(EXPORT("--model", model, "--threads", settings[i][0], "--output", at(other, name)));
        if (i > 0) test_same_bundle(first, other);
    }
    unsetenv("TZ");
    unsetenv("LC_ALL");
}

/* ------------------------------------------------------------------ refusals */

static void test_usage(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE], model[TEST_PATH_SIZE];
    test_path(model, TEST_DEMO);
    at(output, "bundle");
    test_outcome o = EXPORT("--help");
    assert_contains(o.out, "layac probe");
    expect_success(o);
    test_expect_failure(EXPORT("--model", model), 2, "export: no output");
    test_expect_failure(run(test_layac(), 0, TEST_LIST("probe", "--output", "")), 2, "probe: no output");
    test_expect_failure(EXPORT("--output", output, "more"), 2, "unexpected argument 'more'");
    test_expect_failure(EXPORT("--output", output, "--kind", "head"), 2, "--kind: expected body, layer or mlp");
    test_expect_failure(EXPORT("--output", output, "--graph", "fat"), 2, "--graph: expected per-head or lean");
    test_expect_failure(EXPORT("--output", output, "--precision", "int8"), 2, "--precision: expected fp16 or fp32");
    test_expect_failure(EXPORT("--output", output, "--threads", "0"), 2, "--threads");
    test_expect_failure(EXPORT("--output", output, "--length", "-96"), 2, "--length");
    test_expect_failure(EXPORT("--model", model, "--output", output, "--length", "15"), 2,
                        "length: expected 16 to 1024");
    test_expect_failure(EXPORT("--model", model, "--output", output, "--length", "1025"), 2, "found 1025");
    test_expect_failure(EXPORT("--model", model, "--output", output, "--markers", "256"), 2,
                        "markers: expected 2 to 255");
    test_expect_failure(EXPORT("--model", model, "--output", output, "--kind", "mlp", "--layer", "4"), 2,
                        "expected 0 to 3");
    test_expect_failure(EXPORT("--model", model, "--output", output, "--weights-sha256", "abc"), 2, "weights_sha256");
    o = EXPORT("--no-such-option");
    assert_int_equal(o.code, 2);
    assert_string_equal(o.out, "");
    test_outcome_close(&o);
    expect_nothing();
}

/* Change the last letter of a tensor's name: it is missing then, and an unknown one is there. */
static void rename_tensor(const char *directory, const char *name)
{
    char path[TEST_PATH_SIZE];
    size_t size;
    char *data = test_read_file(test_join(path, directory, "model.safetensors"), &size);
    char *hit = strstr(data + 8, name); /* the header's length comes first and holds NUL bytes */
    assert_non_null(hit);
    hit[strlen(name) - 1]++;
    test_change_file(directory, "model.safetensors", data, size);
    free(data);
}

static void test_bad_checkpoints(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE], missing[TEST_PATH_SIZE], model[TEST_PATH_SIZE];
    char *directory = test_make_checkpoint();
    rename_tensor(directory, "type_emb.weight");
    at(output, "bundle");
    test_expect_failure(EXPORT("--model", directory, "--output", output), 4, "type_emb.weight");
    test_expect_failure(EXPORT("--model", at(missing, "none"), "--output", output), 5, "not found");
    test_expect_failure(EXPORT("--model", test_path(model, TEST_DEMO), "--output", output, "--weights-sha256",
                               "0000000000000000000000000000000000000000000000000000000000000000"),
                        4, "model.safetensors: expected SHA-256 0000");
    expect_nothing();
    test_remove_checkpoint(directory);
}

static void test_outputs(void **state)
{
    (void)state;
    char output[TEST_PATH_SIZE], model[TEST_PATH_SIZE];
    test_path(model, TEST_DEMO);
    expect_success(EXPORT("--model", model, "--output", at(output, "bundle")));
    char *before = test_list_tree(test_folder);
    test_expect_failure(EXPORT("--model", model, "--output", output), 5, "bundle: exists already");
    char *after = test_list_tree(test_folder);
    assert_string_equal(before, after);
    free(before);
    free(after);
#if defined(__linux__)
    test_expect_failure(EXPORT("--model", model, "--output", "/proc/bundle"), 5, "/proc");
#endif
}

/* No file may be larger than the limit, as on a full disk: the weight file does not fit, then not even the model. */
static void test_no_space(void **state)
{
    (void)state;
    static const rlim_t limits[] = {1000000, 4096};
    char output[TEST_PATH_SIZE], model[TEST_PATH_SIZE];
    test_path(model, TEST_DEMO);
    at(output, "bundle");
    for (size_t i = 0; i < 2; i++) {
        for (unsigned threads = 1; threads <= 2; threads++) {
            test_expect_failure(
                run(test_layac(), limits[i],
                    TEST_LIST("export", "--model", model, "--output", output, "--threads", threads == 1 ? "1" : "2")),
                5, "weight.bin");
            expect_nothing();
        }
    }
}

/* ------------------------------------------------------------------ signals */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_for(double duration)
{
    struct timespec left = {(time_t)duration, (long)((duration - (double)(time_t)duration) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

/* The output is absent, or complete; anything else in the folder is a staging directory. Says whether it is there. */
static bool whole_or_absent(const char *output)
{
    if (access(output, F_OK) != 0) return false;
    expect_verified(output);
    return true;
}

/* Killed at ten instants, the last ones near the end. Only when it happens depends on the machine's speed. */
static void test_kills(void **state)
{
    (void)state;
    enum { KILLS = 10 };
    char checkpoint[TEST_PATH_SIZE], output[TEST_PATH_SIZE], whole[TEST_PATH_SIZE];
    unsigned random = 12345, killed = 0;
    make_checkpoint(checkpoint);
    double begin = seconds();
    expect_success(EXPORT("--model", checkpoint, "--output", at(whole, "whole")));
    double duration = seconds() - begin;
    at(output, "bundle");
    for (unsigned i = 0; i < KILLS; i++) {
        random = random * 1103515245u + 12345u;
        double part = ((double)i + (double)(random >> 16 & 0x7FFF) / 32768.0) / KILLS;
        test_child c = test_start_layac(shelter, TEST_LIST("export", "--model", checkpoint, "--output", output));
        sleep_for(duration * part);
        kill(c.pid, SIGKILL);
        test_outcome o = test_wait(&c);
        assert_true(o.signal == SIGKILL || o.code == 0);
        killed += o.signal == SIGKILL;
        bool there = whole_or_absent(output);
        if (o.code == 0) assert_true(there);
        if (there) test_remove_tree(output);
        test_outcome_close(&o);
    }
    assert_true(killed > 0);
    /* The next export removes what they left behind. */
    expect_success(EXPORT("--model", checkpoint, "--output", output));
    test_same_bundle(output, whole);
    test_remove_tree(output);
    test_remove_tree(whole);
    expect_nothing();
}

/* Interrupted: it cleans up and ends as the signal has it, whenever that comes after the start. */
static void test_signals(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char checkpoint[TEST_PATH_SIZE], output[TEST_PATH_SIZE];
    make_checkpoint(checkpoint);
    at(output, "bundle");
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        test_child c = test_start_layac(
            shelter, TEST_LIST("export", "--model", checkpoint, "--output", output, "--threads", "1"));
        char *tree = test_list_tree(test_folder);
        while (!*tree) { /* until the staging directory is there */
            free(tree);
            tree = test_list_tree(test_folder);
        }
        free(tree);
        kill(c.pid, signals[i]);
        test_outcome o = test_wait(&c);
        assert_int_equal(o.signal, signals[i]);
        assert_string_equal(o.out, "");
        if (whole_or_absent(output)) test_remove_tree(output);
        expect_nothing();
        test_outcome_close(&o);
    }
}

/* ------------------------------------------------------------------ the checkpoint with outliers */

/* The residual stream after each layer. */
typedef struct residuals {
    unsigned layers, large; /* layers seen, and those where the first token has a value above 1e4 */
    double first, others;   /* largest magnitude of the first token, of the others */
} residuals;

static void see_layer(void *user, const char *name, const double *values, size_t rows, size_t cols)
{
    residuals *r = user;
    double first = 0, others = 0;
    if (strncmp(name, "encoder.layer.", 14) != 0) return;
    for (size_t i = 0; i < rows * cols; i++) {
        double *largest = i < cols ? &first : &others;
        assert_true(isfinite(values[i]));
        if (fabs(values[i]) > *largest) *largest = fabs(values[i]);
    }
    r->layers++;
    r->large += first > 1e4;
    r->first = fmax(r->first, first);
    r->others = fmax(r->others, others);
}

/* What laya-make-checkpoint --outliers promises. */
static void test_outliers(void **state)
{
    (void)state;
    enum { TOKENS = 48 };
    const uint32_t markers[] = {4, 8};
    char checkpoint[TEST_PATH_SIZE];
    uint32_t ids[TOKENS];
    double logits[2], actions[2];
    residuals r = {0};
    laya_model *model;
    laya_pool *pool;
    laya_arena arena;
    laya_error error;
    make_checkpoint(checkpoint);
    if (laya_model_open(checkpoint, NULL, &model, &error) != LAYA_OK) fail_msg("%s", error.message);
    for (uint32_t i = 0; i < TOKENS; i++) ids[i] = 100 + 61 * i;
    ids[0] = model->specials.cls;
    laya_row row = {
        .ids = ids, .count = TOKENS, .markers = markers, .options = 2, .logits = logits, .action_logits = actions};
    const laya_network network = {.config = &model->config, .weights = &model->weights};
    const laya_trace trace = {&r, see_layer};
    laya_arena_init(&arena, NULL);
    assert_int_equal(laya_pool_open(1, NULL, &pool, &error), LAYA_OK);
    if (laya_engine_run(&network, &row, 1, pool, &arena, &trace, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(r.layers, 12);
    assert_int_equal(r.large, 6); /* from the middle layer on */
    assert_true(r.first < 65504); /* half precision can hold it */
    assert_true(r.others < 100);
    assert_true(fmax(fabs(actions[0]), fabs(actions[1])) > 200);
    laya_pool_close(pool);
    laya_arena_close(&arena);
    laya_model_close(model);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup_folder, test_teardown_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_summary),
        TEST(test_hashes_by_another_program),
        TEST(test_probe_and_small_kinds),
        TEST(test_same_bytes),
        TEST(test_usage),
        TEST(test_bad_checkpoints),
        TEST(test_outputs),
        TEST(test_no_space),
        TEST(test_kills),
        TEST(test_signals),
        TEST(test_outliers),
    };
    return cmocka_run_group_tests(tests, make_shelter, remove_shelter);
}
