/* SPDX-License-Identifier: Apache-2.0 */
/* layac validate and layac benchmark as users run them: gates end to end, exit codes, files, kills. */
#include "bundles.h"
#include "process.h"
#include "support.h"
#include "tree.h"

#include "base/json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Two short cases, and one of more tokens than a package of 48 takes. */
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
    "were missing. I wrote to you on Tuesday and again on Thursday and had no answer.\", \"questions\": {\"refund\": "
    "{\"type\": \"noul\", \"instructions\": \"Is a refund asked for?\"}}}]}\n";

static char shelter[TEST_PATH_SIZE]; /* of all tests: packages, fixture, reference */
static char folder[TEST_PATH_SIZE];  /* of one test: what layac writes */
static char lean[TEST_PATH_SIZE], per_head[TEST_PATH_SIZE], both[TEST_PATH_SIZE], fixture[TEST_PATH_SIZE];
static char reference[TEST_PATH_SIZE], report[TEST_PATH_SIZE];

static int make_shelter(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    test_make_folder(shelter);
    unsetenv("LAYA_MODEL");
    test_path(model, TEST_DEMO);
    test_join(both, shelter, "both");
    test_export(model, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 96, false, test_join(lean, shelter, "lean"));
    test_export(model, LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16, 96, false, test_join(per_head, shelter, "per-head"));
    test_export(model, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 48, false, test_join(path, both, "48"));
    test_export(model, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 32, false, test_join(path, both, "32"));
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
    test_join(report, folder, "report.json");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_remove_tree(folder);
    return 0;
}

#define LAYAC(CODE, ...) test_run_layac(shelter, CODE, TEST_LIST(__VA_ARGS__))
#define FAILS(CODE, REASON, ...) test_layac_fails(shelter, CODE, REASON, TEST_LIST(__VA_ARGS__))

static void expect_nothing(void)
{
    char *tree = test_list_tree(folder);
    assert_string_equal(tree, "");
    free(tree);
}

/* ------------------------------------------------------------------ looking at JSON */

typedef struct document {
    char *owned; /* the text, where it is a file's */
    laya_json doc;
    laya_json_value root;
} document;

/* The text must outlive the document. */
static void open_document(document *d, const char *text)
{
    laya_error error;
    d->owned = NULL;
    if (laya_json_parse(&d->doc, text, strlen(text), NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    d->root = laya_json_root(&d->doc);
}

static void open_report(document *d)
{
    char *text = test_read_file(report, NULL);
    open_document(d, text);
    d->owned = text;
}

static void close_document(document *d)
{
    laya_json_close(&d->doc);
    free(d->owned);
}

static uint32_t count_of(laya_json_value object, const char *name)
{
    uint32_t number;
    if (!laya_json_to_uint32(laya_json_get(object, name), &number)) fail_msg("no count %s", name);
    return number;
}

static bool is_true(laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    return laya_json_present(value) && laya_json_typeof(value) == LAYA_JSON_TRUE;
}

/* ------------------------------------------------------------------ validate */

/* The whole fixture, reference recorded on the way; sanitizers are too slow for it. */
static void validate_demo(const char *package)
{
    const char *cases = fixture;
    char installed[TEST_PATH_SIZE];
    if (!TEST_SANITIZED) cases = test_path(installed, "fixtures/questions.json");
    test_outcome o = LAYAC(0, "validate", "--package", package, "--fixture", cases, "--repeats", "1", "--output",
                           report);
    document summary, written;
    open_document(&summary, o.out);
    open_report(&written);
    assert_true(is_true(summary.root, "passed") && is_true(written.root, "passed"));
    uint32_t evaluated = count_of(summary.root, "evaluated"), unvalidated = count_of(summary.root, "unvalidated");
    assert_true(evaluated > 0);
    if (!TEST_SANITIZED) {
        assert_int_equal(evaluated + unvalidated, 63);
        assert_true(unvalidated >= 4); /* long and twenty_options at least */
        assert_contains(o.err, "long                       3  unvalidated: a row of ");
    }
    assert_contains(o.err, "  passed\n");
    assert_true(laya_json_equals(laya_json_get(summary.root, "executor"), "interpreter fp16"));
    assert_true(
        laya_json_equals(laya_json_get(laya_json_get(written.root, "reference"), "recorded"), "for this run"));
    close_document(&summary);
    close_document(&written);
    test_outcome_close(&o);
}

static void test_lean_passes(void **state)
{
    (void)state;
    validate_demo(lean);
}

static void test_per_head_passes(void **state)
{
    (void)state;
    validate_demo(per_head);
}

static void test_reference_file(void **state)
{
    (void)state;
    char page[TEST_PATH_SIZE];
    test_outcome o = LAYAC(0, "validate", "--package", both, "--length", "48", "--reference", reference, "--repeats",
                           "3", "--output", report, "--html", test_join(page, folder, "report.html"));
    document written;
    open_report(&written);
    laya_json_value counts = laya_json_get(written.root, "counts");
    assert_int_equal(count_of(counts, "evaluated"), 3);
    assert_int_equal(count_of(counts, "unvalidated"), 1);
    assert_int_equal(count_of(laya_json_get(written.root, "package"), "length"), 48);
    assert_true(laya_json_equals(laya_json_get(laya_json_get(written.root, "reference"), "file"), reference));
    close_document(&written);
    test_outcome_close(&o);
    char *html = test_read_file(page, NULL);
    assert_contains(html, "<span class=\"ok\">passed</span>");
    free(html);
}

/* A reference that says something else: the report is written, and says so. */
static void test_failing_gate(void **state)
{
    (void)state;
    char changed[TEST_PATH_SIZE];
    char *text = test_read_file(reference, NULL), *logits = strstr(text, "\"logits\":[[");
    assert_non_null(logits);
    memcpy(logits + strlen("\"logits\":[["), "99", 2); /* the first digits of the first logit */
    char *dot = logits + strlen("\"logits\":[[");
    for (char *p = dot + 2; *p != ','; p++) *p = p[0] == '.' ? '.' : '0';
    test_write_file(test_join(changed, folder, "changed.json"), text, strlen(text));
    free(text);
    test_outcome o = LAYAC(7, "validate", "--package", lean, "--reference", changed, "--repeats", "1", "--output",
                           report);
    document summary, written;
    open_document(&summary, o.out);
    open_report(&written);
    assert_false(is_true(summary.root, "passed"));
    assert_false(is_true(written.root, "passed"));
    assert_contains(o.err, "FAILED");
    close_document(&summary);
    close_document(&written);
    test_outcome_close(&o);
}

static void test_other_weights(void **state)
{
    (void)state;
    char changed[TEST_PATH_SIZE];
    char *text = test_read_file(reference, NULL), *hash = strstr(text, "\"source_weights_sha256\":\"");
    assert_non_null(hash);
    hash += strlen("\"source_weights_sha256\":\"");
    *hash = *hash == '0' ? '1' : '0';
    test_write_file(test_join(changed, shelter, "changed.json"), text, strlen(text));
    free(text);
    FAILS(4, "record a reference of that checkpoint", "validate", "--package", lean, "--reference", changed,
          "--output", report);
    expect_nothing();
}

/* A bundle that stands alone answers, but has no checkpoint to record a reference from. */
static void test_standalone(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE], copy[TEST_PATH_SIZE], bundle[TEST_PATH_SIZE];
    test_copy_checkpoint(test_path(model, TEST_DEMO), test_join(copy, shelter, "copy"));
    test_export(copy, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 48, true, test_join(bundle, shelter, "standalone"));
    test_remove_tree(copy);
    FAILS(4, "a reference cannot be recorded, name one instead", "validate", "--package", bundle, "--fixture",
          fixture, "--output", report);
    test_outcome o = LAYAC(0, "validate", "--package", bundle, "--reference", reference, "--repeats", "1", "--output",
                           report);
    test_outcome_close(&o);
}

static void test_existing_files(void **state)
{
    (void)state;
    char page[TEST_PATH_SIZE];
    test_write_file(report, "mine", 4);
    FAILS(5, "exists already", "validate", "--package", lean, "--reference", reference, "--output", report);
    FAILS(5, "exists already", "benchmark", "--package", lean, "--output", report);
    char *text = test_read_file(report, NULL);
    assert_string_equal(text, "mine");
    free(text);
    unlink(report);
    test_write_file(test_join(page, folder, "page"), "mine", 4);
    FAILS(5, "exists already", "validate", "--package", lean, "--reference", reference, "--output", report, "--html",
          page);
    assert_int_not_equal(access(report, F_OK), 0);
}

/* Whenever a kill lands, there is no report; an interrupt leaves nothing at all. */
static void test_ended_midway(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGKILL};
    for (size_t at = 0; at < 2; at++) {
        const struct timespec pause = {.tv_nsec = 300000000};
        test_child child = test_start_layac(shelter,
                                            TEST_LIST("validate", "--package", lean, "--reference", reference,
                                                      "--repeats", "1000000", "--output", report));
        nanosleep(&pause, NULL);
        assert_int_equal(kill(child.pid, signals[at]), 0);
        test_outcome o = test_wait(&child);
        assert_int_equal(o.signal, signals[at]);
        assert_string_equal(o.out, "");
        assert_int_not_equal(access(report, F_OK), 0);
        if (signals[at] == SIGINT) expect_nothing();
        test_outcome_close(&o);
    }
}

static void test_validate_usage(void **state)
{
    (void)state;
    FAILS(2, "no package", "validate", "--output", report);
    FAILS(2, "no output", "validate", "--package", lean);
    FAILS(2, "unexpected argument 'x'", "validate", "--package", lean, "--output", report, "x");
    FAILS(2, "--backend native runs no package", "validate", "--backend", "native", "--output", report);
    FAILS(2, "exclude each other", "validate", "--package", lean, "--output", report, "--reference", reference,
          "--fixture", fixture);
    FAILS(2, "--repeats", "validate", "--package", lean, "--output", report, "--repeats", "0");
    FAILS(2, "there are packages of 32, 48 tokens; choose one length", "validate", "--package", both, "--reference",
          reference, "--output", report);
    FAILS(2, "no package of 64 tokens", "validate", "--package", both, "--length", "64", "--reference", reference,
          "--output", report);
    FAILS(5, "nowhere", "validate", "--package", "nowhere", "--reference", reference, "--output", report);
    FAILS(5, "nowhere", "validate", "--package", lean, "--reference", "nowhere", "--output", report);
    expect_nothing();
}

/* ------------------------------------------------------------------ benchmark */

static void test_benchmark(void **state)
{
    (void)state;
    test_outcome o = LAYAC(0, "benchmark", "--package", both, "--length", "48", "--calls", "2", "--warmups", "0",
                           "--cycles", "1", "--numerics", "fp32", "--output", report, "--compare", "native");
    document summary, written;
    open_document(&summary, o.out);
    open_report(&written);
    assert_string_equal(o.err, "");
    assert_true(is_true(summary.root, "outputs_stable"));
    assert_true(laya_json_equals(laya_json_get(summary.root, "class"), "timed on this CPU"));
    assert_true(laya_json_equals(laya_json_get(summary.root, "executor"), "interpreter fp32"));
    assert_int_equal(laya_json_size(laya_json_get(summary.root, "comparison")), 2);
    assert_int_equal(count_of(laya_json_get(written.root, "complete"), "calls"), 2);
    assert_int_equal(count_of(laya_json_get(written.root, "body"), "calls"), 30);
    close_document(&summary);
    close_document(&written);
    test_outcome_close(&o);
}

static void test_benchmark_usage(void **state)
{
    (void)state;
    FAILS(2, "no package", "benchmark", "--output", report);
    FAILS(2, "no output", "benchmark", "--package", lean);
    FAILS(2, "unexpected argument 'x'", "benchmark", "--package", lean, "--output", report, "x");
    FAILS(2, "--calls", "benchmark", "--package", lean, "--output", report, "--calls", "0");
    FAILS(2, "--block-seconds", "benchmark", "--package", lean, "--output", report, "--block-seconds", "0");
    FAILS(2, "--idle-seconds", "benchmark", "--package", lean, "--output", report, "--idle-seconds", "nan");
    FAILS(5, "nowhere", "benchmark", "--package", lean, "--output", report, "--compare", "nowhere");
    /* A request of more tokens than the package takes is not cut. */
    FAILS(3, "the longest package takes 32", "benchmark", "--package", both, "--length", "32", "--output", report);
    expect_nothing();
}

static void test_help(void **state)
{
    (void)state;
    static const char *const names[] = {"validate", "benchmark"};
    for (size_t at = 0; at < 2; at++) {
        test_outcome o = LAYAC(0, "help", names[at]);
        assert_contains(o.out, "usage: layac ");
        assert_contains(o.out, names[at]);
        assert_string_equal(o.err, "");
        test_outcome_close(&o);
    }
}

int main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_lean_passes),    TEST(test_per_head_passes), TEST(test_reference_file),  TEST(test_failing_gate),
        TEST(test_other_weights),  TEST(test_standalone),      TEST(test_existing_files),  TEST(test_ended_midway),
        TEST(test_validate_usage), TEST(test_benchmark),       TEST(test_benchmark_usage), TEST(test_help)};
    return cmocka_run_group_tests(tests, make_shelter, remove_shelter);
}
