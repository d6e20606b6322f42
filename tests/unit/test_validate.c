/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gates of a validation against a hand-written reference. Answers come from a fake source, so that every gate can
 * fail alone; expected numbers are worked out by hand (the comments show how).
 */
#include "support.h"
#include "tree.h"

#include "gate/html.h"
#include "gate/validate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHTS "9d628fd971b700382ac6f65920a86f149777b2e748e0c955fb3b19695aa8f204"
#define FIXTURE "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* softmax(2, 1, 0): e^2 + e + 1 = 11.107338; 7.389056, 2.718282 and 1 over it. softmax(1, 0) = 1 / (1 + 1 / e). */
#define P2 "0.6652"
#define P1 "0.2447"
#define P0 "0.09"
#define SIGMOID 0.7310585786

/* Case "fits" with three questions, "long" of 20 tokens, "wide" with four options. */
static const char reference_text[] =
    "{\"format\": \"laya-reference\", \"version\": 1, \"class\": \"native fp32 engine\", \"fixture_sha256\": "
    "\"" FIXTURE "\", \"models\": {\"tiny\": {\"source_weights_sha256\": \"" WEIGHTS "\", \"cases\": [\n"
    "{\"name\": \"fits\", \"state\": \"s\", \"questions\": {"
    "\"team\": {\"type\": \"choice\", \"criteria\": {\"a\": null, \"b\": null, \"c\": null}},"
    "\"true\": {\"type\": \"noul\", \"instructions\": \"i\"},"
    "\"tie\": {\"type\": \"choice\", \"criteria\": {\"x\": null, \"y\": null}}},"
    " \"items\": [{\"id\": \"team\", \"ids\": [1, 2, 3, 4, 5], \"markers\": [1, 2, 3], \"qtype\": 0},"
    " {\"id\": \"true\", \"ids\": [1, 2, 3, 4, 5, 6], \"markers\": [1, 2], \"qtype\": 2},"
    " {\"id\": \"tie\", \"ids\": [1, 2, 3, 4], \"markers\": [1, 2], \"qtype\": 0}],"
    " \"logits\": [[2.0, 1.0, 0.0], [0.0, 1.0], [0.01, 0.0]],"
    " \"action_logits\": [[0.5, -0.5], [0.5, -0.5], [0.5, -0.5]],"
    " \"result\": {\"answers\": {"
    "\"team\": {\"type\": \"choice\", \"choice\": \"a\", \"probabilities\": {\"a\": " P2 ", \"b\": " P1 ", \"c\": " P0
    "}, \"action\": {\"act_probability\": 0.7311}},"
    "\"true\": {\"type\": \"noul\", \"noul\": 0.7311, \"action\": {\"act_probability\": 0.7311}},"
    "\"tie\": {\"type\": \"choice\", \"choice\": \"x\", \"probabilities\": {\"x\": 0.5025, \"y\": 0.4975}, "
    "\"action\": "
    "{\"act_probability\": 0.7311}}},"
    " \"usage\": {\"input_tokens\": 15, \"output_tokens\": 0, \"truncated\": false, \"truncated_questions\": []}}},\n"
    "{\"name\": \"long\", \"state\": \"s\", \"questions\": {\"q\": {\"type\": \"noul\", \"instructions\": \"i\"}},"
    " \"items\": [{\"id\": \"q\", \"ids\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20], \"markers\": [1, "
    "2], "
    "\"qtype\": 2}], \"logits\": [[0.0, 1.0]], \"action_logits\": [[0.5, -0.5]], \"result\": {\"answers\": {\"q\": "
    "{}}, "
    "\"usage\": {\"input_tokens\": 20}}},\n"
    "{\"name\": \"wide\", \"state\": \"s\", \"questions\": {\"q\": {\"type\": \"choice\", \"criteria\": {\"a\": "
    "null, "
    "\"b\": null, \"c\": null, \"d\": null}}},"
    " \"items\": [{\"id\": \"q\", \"ids\": [1, 2, 3, 4, 5], \"markers\": [1, 2, 3, 4], \"qtype\": 0}],"
    " \"logits\": [[0.0, 1.0, 2.0, 3.0]], \"action_logits\": [[0.5, -0.5]], \"result\": {\"answers\": {\"q\": {}}, "
    "\"usage\": {\"input_tokens\": 5}}}]}}}\n";

/* ------------------------------------------------------------------ a source that answers what a test says */

typedef struct change {
    const char *from, *to; /* the first occurrence of `from` in the reference's answer is replaced */
    unsigned call;         /* from this call on, counted from 1 */
} change;

typedef struct fake {
    change changes[4];
    size_t change_count;
    unsigned calls;
    laya_status status; /* LAYA_OK: an answer */
    char text[4096];
} fake;

static const char answer_text[] =
    "{\"model\": \"laya-rl-agent\", \"answers\": {"
    "\"team\": {\"type\": \"choice\", \"choice\": \"a\", \"probabilities\": {\"a\": " P2 ", \"b\": " P1 ", \"c\": " P0
    "}, \"confidence\": 0.3, \"action\": {\"act_probability\": 0.7311}, \"raw\": {\"logits\": [2.0, 1.0, 0.0], "
    "\"action_logits\": [0.5, -0.5], \"temperature\": 1.0, \"input_tokens\": 5}},"
    "\"true\": {\"type\": \"noul\", \"noul\": 0.7311, \"confidence\": 0.7311, \"action\": {\"act_probability\": "
    "0.7311},"
    " \"raw\": {\"logits\": [0.0, 1.0], \"action_logits\": [0.5, -0.5], \"temperature\": 1.0, \"input_tokens\": 6}},"
    "\"tie\": {\"type\": \"choice\", \"choice\": \"x\", \"probabilities\": {\"x\": 0.5025, \"y\": 0.4975}, "
    "\"confidence\": 0.0, \"action\": {\"act_probability\": 0.7311}, \"raw\": {\"logits\": [0.01, 0.0], "
    "\"action_logits\": [0.5, -0.5], \"temperature\": 1.0, \"input_tokens\": 4}}},"
    "\"usage\": {\"input_tokens\": 15, \"output_tokens\": 0, \"truncated\": false, \"truncated_questions\": []}}";

static void apply(char *text, size_t room, const change *c)
{
    char *place = strstr(text, c->from);
    assert_non_null(place);
    size_t from = strlen(c->from), to = strlen(c->to), rest = strlen(place + from) + 1;
    assert_true((size_t)(place - text) + to + rest <= room);
    memmove(place + to, place + from, rest);
    memcpy(place, c->to, to);
}

static laya_status fake_predict(void *user, const laya_fixture_case *input, const laya_predict_options *options,
                                const char **result, size_t *size, laya_error *error)
{
    fake *f = user;
    assert_string_equal(input->name, "fits"); /* the others do not fit */
    assert_true((options->flags & LAYA_PREDICT_RAW) != 0);
    f->calls++;
    if (f->status != LAYA_OK) {
        *error = (laya_error){.status = f->status, .message = "an output is not finite"};
        return f->status;
    }
    memcpy(f->text, answer_text, sizeof answer_text);
    for (size_t at = 0; at < f->change_count; at++) {
        if (f->calls >= f->changes[at].call) apply(f->text, sizeof f->text, &f->changes[at]);
    }
    *result = f->text;
    *size = strlen(f->text);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ running */

static char folder[TEST_PATH_SIZE];
static laya_reference reference;

static int open_reference(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    laya_error error;
    test_make_folder(folder);
    test_write_file(test_join(path, folder, "reference.json"), reference_text, sizeof reference_text - 1);
    if (laya_reference_open(&reference, path, NULL, &error) != LAYA_OK) {
        print_error("%s\n", error.message);
        return -1;
    }
    return 0;
}

static int close_reference(void **state)
{
    (void)state;
    laya_reference_close(&reference);
    test_remove_tree(folder);
    return 0;
}

typedef struct outcome {
    laya_status status;
    laya_error error;
    laya_report *report;
    laya_json doc;
} outcome;

static outcome run(fake *f, uint32_t length, uint32_t repeats)
{
    laya_validation v = {.reference = &reference,
                         .model = laya_reference_find(&reference, WEIGHTS),
                         .reference_path = "reference.json",
                         .package = {.directory = "bundle",
                                     .package_sha256 = FIXTURE,
                                     .weights_sha256 = WEIGHTS,
                                     .graph = "lean",
                                     .precision = "fp16",
                                     .length = length,
                                     .markers = 3,
                                     .operations = 7},
                         .executor = "interpreter fp16",
                         .class = "executed by the interpreter",
                         .repeats = repeats};
    const laya_source source = {.user = f, .predict = fake_predict};
    outcome o = {0};
    assert_non_null(v.model);
    laya_arena_init(&v.arena, NULL);
    o.status = laya_validation_run(&v, &source, &o.error);
    if (o.status == LAYA_OK) o.status = laya_validation_report(&v, &o.report, &o.error);
    laya_arena_close(&v.arena);
    if (o.status != LAYA_OK) return o;
    size_t size;
    const char *text = laya_report_json(o.report, &size);
    if (laya_json_parse(&o.doc, text, size, NULL, &o.error) != LAYA_OK) fail_msg("%s: %s", o.error.message, text);
    return o;
}

static void end(outcome *o)
{
    laya_json_close(&o->doc);
    laya_report_close(o->report);
}

/* ------------------------------------------------------------------ looking */

static laya_json_value at(laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    if (!laya_json_present(value)) fail_msg("no member %s", name);
    return value;
}

static laya_json_value element(laya_json_value array, size_t index)
{
    laya_json_iterator it = laya_json_first(array);
    for (size_t i = 0; i < index && laya_json_present(it.value); i++) laya_json_next(&it);
    if (!laya_json_present(it.value)) fail_msg("no element %zu", index);
    return it.value;
}

static laya_json_value answer(const outcome *o, size_t index)
{
    return element(at(element(at(laya_json_root(&o->doc), "cases"), 0), "answers"), index);
}

static void expect_number(laya_json_value object, const char *name, double expected, double tolerance)
{
    double number;
    if (!laya_json_to_double(at(object, name), &number) || fabs(number - expected) > tolerance)
        fail_msg("%s is not %.9g", name, expected);
}

static void expect_bool(laya_json_value object, const char *name, bool expected)
{
    if (laya_json_typeof(at(object, name)) != (expected ? LAYA_JSON_TRUE : LAYA_JSON_FALSE))
        fail_msg("%s is not %s", name, expected ? "true" : "false");
}

/* Exactly this gate failed, so often; NULL: none did. */
static void expect_gate(const outcome *o, const char *name, uint32_t failures)
{
    if (o->status != LAYA_OK) fail_msg("%s", o->error.message);
    laya_json_value root = laya_json_root(&o->doc);
    expect_bool(root, "passed", !name);
    assert_int_equal(laya_report_passed(o->report), !name);
    laya_json_iterator it = laya_json_first(at(root, "gates"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        if (laya_json_typeof(it.value) != LAYA_JSON_OBJECT) continue;
        size_t size;
        const char *gate = laya_json_text(it.key, &size);
        uint32_t found;
        bool named = name && laya_json_equals(it.key, name);
        assert_true(laya_json_to_uint32(at(it.value, "failures"), &found));
        if (found != (named ? failures : 0)) fail_msg("gate %.*s: %u failures", (int)size, gate, found);
        expect_bool(it.value, "passed", !named);
    }
}

#define ONE(FROM, TO)                                                                                                \
    {                                                                                                                \
        .changes = {{(FROM), (TO), 1}}, .change_count = 1                                                            \
    }

/* ------------------------------------------------------------------ tests */

static void test_equal_answers(void **state)
{
    (void)state;
    fake f = {0};
    outcome o = run(&f, 6, 5);
    expect_gate(&o, NULL, 0);
    assert_int_equal(f.calls, 5);
    laya_json_value root = laya_json_root(&o.doc), counts = at(root, "counts"), first = answer(&o, 0);
    assert_true(laya_json_equals(at(root, "format"), "laya-validation"));
    assert_true(laya_json_equals(at(root, "class"), "executed by the interpreter"));
    assert_true(laya_json_equals(at(root, "executor"), "interpreter fp16"));
    assert_true(laya_json_equals(at(root, "placement"), "not_measured"));
    assert_true(laya_json_equals(at(root, "timings"), "not_measured"));
    assert_true(laya_json_equals(at(at(root, "package"), "package_sha256"), FIXTURE));
    assert_true(laya_json_equals(at(at(root, "reference"), "source_weights_sha256"), WEIGHTS));
    assert_true(laya_json_equals(at(at(root, "reference"), "class"), "native fp32 engine"));
    assert_true(laya_json_present(laya_json_get(at(root, "source_files_sha256"), "runtime")));
    expect_number(root, "repeats", 5, 0);
    expect_number(counts, "questions", 5, 0);
    expect_number(counts, "evaluated", 3, 0);
    expect_number(counts, "unvalidated", 2, 0);
    expect_number(counts, "unvalidated_cases", 2, 0);
    expect_number(counts, "near_ties", 1, 0);
    expect_number(counts, "certified", 3, 0);
    expect_number(first, "reference_margin", 0.665241 - 0.244728, 1e-6);
    expect_number(first, "reference_logit_margin", 1, 0);
    expect_number(first, "probability_error", 0, 0);
    expect_number(first, "tokens", 5, 0);
    expect_bool(first, "near_tie", false);
    end(&o);
}

/* Skipped is not passed: the reason, and what would be needed. */
static void test_unvalidated(void **state)
{
    (void)state;
    fake f = {0};
    outcome o = run(&f, 6, 1);
    laya_json_value cases = at(laya_json_root(&o.doc), "cases"), longer = element(cases, 1),
                    wider = element(cases, 2);
    assert_true(laya_json_equals(at(longer, "status"), "unvalidated"));
    assert_true(laya_json_equals(at(longer, "reason"), "a row of 20 tokens does not fit a package of 6"));
    expect_number(longer, "needed_length", 20, 0);
    assert_false(laya_json_present(laya_json_get(longer, "passed")));
    assert_true(laya_json_equals(at(wider, "status"), "unvalidated"));
    assert_true(laya_json_equals(at(wider, "reason"), "4 options do not fit a package of 3 marker slots"));
    expect_number(wider, "needed_markers", 4, 0);
    end(&o);
}

static void test_nothing_evaluated(void **state)
{
    (void)state;
    fake f = {0};
    outcome o = run(&f, 4, 1);
    expect_gate(&o, "evaluated", 1);
    assert_int_equal(f.calls, 0);
    end(&o);
}

static void test_argmax(void **state)
{
    (void)state;
    /* 0.5025 and 0.4975 change places: an error of 0.005 only. */
    fake f = {.changes = {{"[0.01, 0.0]", "[0.0, 0.01]", 1}, {"\"choice\": \"x\"", "\"choice\": \"y\"", 1}},
              .change_count = 2};
    outcome o = run(&f, 6, 2);
    expect_gate(&o, "argmax", 1);
    laya_json_value tie = element(at(laya_json_root(&o.doc), "near_ties"), 0);
    assert_true(laya_json_equals(at(tie, "question"), "tie"));
    expect_number(tie, "margin", 0.005, 1e-6);
    expect_bool(tie, "argmax_equal", false);
    expect_number(answer(&o, 2), "reference_argmax", 0, 0);
    expect_number(answer(&o, 2), "argmax", 1, 0);
    expect_number(answer(&o, 2), "logit_error", 0.01, 1e-12);
    expect_bool(answer(&o, 2), "certified", false);
    end(&o);
    /* The label that is published counts, whatever the logits say; and so does one repeat of many. */
    fake label = ONE("\"choice\": \"a\"", "\"choice\": \"b\"");
    o = run(&label, 6, 1);
    expect_gate(&o, "argmax", 1);
    end(&o);
}

/* 0.7310586 + 0.0201 is the sigmoid of 1.104801, + 0.0199 of 1.103731. */
static void test_probability(void **state)
{
    (void)state;
    fake above = ONE("\"logits\": [0.0, 1.0]", "\"logits\": [0.0, 1.104801]");
    outcome o = run(&above, 6, 1);
    expect_gate(&o, "probability", 1);
    expect_number(answer(&o, 1), "probability_error", 0.0201, 1e-6);
    expect_bool(answer(&o, 1), "certified", true); /* 2 * 0.1048 < 1 */
    expect_number(answer(&o, 1), "probability_bound", 0.104801 / 2, 1e-9);
    end(&o);
    fake below = ONE("\"logits\": [0.0, 1.0]", "\"logits\": [0.0, 1.103731]");
    o = run(&below, 6, 1);
    expect_gate(&o, NULL, 0);
    expect_number(answer(&o, 1), "probability_error", 0.0199, 1e-6);
    laya_json_value worst = at(at(laya_json_root(&o.doc), "worst"), "probability_error");
    assert_true(laya_json_equals(at(worst, "case"), "fits"));
    assert_true(laya_json_equals(at(worst, "question"), "true"));
    end(&o);
}

/* Values as published: each is rounded to four decimals, so that 0.0201 apart is still allowed. */
static void test_published_probability(void **state)
{
    (void)state;
    fake above = ONE("\"noul\": 0.7311", "\"noul\": 0.7513");
    outcome o = run(&above, 6, 1);
    expect_gate(&o, "probability", 1);
    end(&o);
    fake below = ONE("\"noul\": 0.7311", "\"noul\": 0.7512");
    o = run(&below, 6, 1);
    expect_gate(&o, NULL, 0);
    end(&o);
    fake option = ONE("\"c\": " P0, "\"c\": 0.1102");
    o = run(&option, 6, 1);
    expect_gate(&o, "probability", 1);
    end(&o);
}

static void test_action_probability(void **state)
{
    (void)state;
    fake above = ONE("\"action_logits\": [0.5, -0.5]", "\"action_logits\": [0.604801, -0.5]");
    outcome o = run(&above, 6, 1);
    expect_gate(&o, "action_probability", 1);
    expect_number(answer(&o, 0), "action_probability_error", 0.0201, 1e-6);
    expect_number(answer(&o, 0), "action_logit_error", 0.104801, 1e-9);
    end(&o);
    fake below = ONE("\"action_logits\": [0.5, -0.5]", "\"action_logits\": [0.603731, -0.5]");
    o = run(&below, 6, 1);
    expect_gate(&o, NULL, 0);
    end(&o);
    fake published = ONE("\"act_probability\": 0.7311", "\"act_probability\": 0.7109");
    o = run(&published, 6, 1);
    expect_gate(&o, "action_probability", 1);
    end(&o);
}

/* Saturated: both logits move by 3, the probability does not. */
static void test_action_logits_beside(void **state)
{
    (void)state;
    fake f = ONE("\"action_logits\": [0.5, -0.5]", "\"action_logits\": [3.5, 2.5]");
    outcome o = run(&f, 6, 1);
    expect_gate(&o, NULL, 0);
    expect_number(answer(&o, 0), "action_probability_error", 0, 1e-7);
    expect_number(answer(&o, 0), "action_logit_error", 3, 0);
    end(&o);
}

static void test_usage(void **state)
{
    (void)state;
    fake total = ONE("\"usage\": {\"input_tokens\": 15", "\"usage\": {\"input_tokens\": 16");
    outcome o = run(&total, 6, 1);
    expect_gate(&o, "usage", 1);
    expect_bool(element(at(laya_json_root(&o.doc), "cases"), 0), "usage_equal", false);
    end(&o);
    fake more = ONE("\"truncated\": false", "\"truncated\": false, \"options\": {}");
    o = run(&more, 6, 1);
    expect_gate(&o, "usage", 1);
    end(&o);
    fake row = ONE("\"input_tokens\": 5", "\"input_tokens\": 4");
    o = run(&row, 6, 1);
    expect_gate(&o, "usage", 1);
    end(&o);
    fake order = ONE("{\"input_tokens\": 15, \"output_tokens\": 0,", "{\"output_tokens\": 0, \"input_tokens\": 15,");
    o = run(&order, 6, 1);
    expect_gate(&o, NULL, 0);
    end(&o);
}

static void test_finite(void **state)
{
    (void)state;
    fake published = ONE("\"confidence\": 0.3", "\"confidence\": NaN");
    outcome o = run(&published, 6, 1);
    expect_gate(&o, "finite", 1);
    end(&o);
    /* A logit that is no number: no decision, no error that could be within a limit. */
    fake logit = ONE("\"logits\": [0.0, 1.0]", "\"logits\": [0.0, NaN]");
    o = run(&logit, 6, 1);
    laya_json_value gates = at(laya_json_root(&o.doc), "gates");
    static const char *const failed[] = {"finite", "argmax", "probability"};
    for (size_t i = 0; i < 3; i++) expect_bool(at(gates, failed[i]), "passed", false);
    assert_int_equal(laya_json_typeof(at(answer(&o, 1), "probability_error")), LAYA_JSON_NULL);
    end(&o);
}

static void test_stable(void **state)
{
    (void)state;
    fake f = {.changes = {{"\"confidence\": 0.3", "\"confidence\": 0.3001", 4}}, .change_count = 1};
    outcome o = run(&f, 6, 4);
    expect_gate(&o, "stable", 1);
    end(&o);
    f.calls = 0;
    o = run(&f, 6, 3); /* the fourth call is not made */
    expect_gate(&o, NULL, 0);
    end(&o);
}

/* Bits that are not published may move; their errors count all the same, the largest of all repeats. */
static void test_raw_differences(void **state)
{
    (void)state;
    fake f = {.changes = {{"[2.0, 1.0, 0.0]", "[2.0, 1.0, 0.001]", 2}}, .change_count = 1};
    outcome o = run(&f, 6, 3);
    expect_gate(&o, NULL, 0);
    expect_number(answer(&o, 0), "logit_error", 0.001, 1e-12);
    end(&o);
    fake late = {.changes = {{"\"logits\": [0.0, 1.0]", "\"logits\": [0.0, 1.2]", 3}}, .change_count = 1};
    o = run(&late, 6, 3);
    expect_gate(&o, "probability", 1);
    end(&o);
}

static void test_refusals(void **state)
{
    (void)state;
    fake f = {.status = LAYA_ERROR_FORMAT};
    outcome o = run(&f, 6, 3);
    expect_gate(&o, "answered", 1);
    laya_json_value found = element(at(laya_json_root(&o.doc), "cases"), 0);
    assert_true(laya_json_equals(at(found, "failure"), "an output is not finite"));
    expect_bool(found, "passed", false);
    assert_int_equal(f.calls, 1);
    end(&o);
    fake missing = ONE("\"temperature\": 1.0, ", "");
    o = run(&missing, 6, 1);
    expect_gate(&o, "answered", 1);
    end(&o);
    fake count = ONE("\"logits\": [0.0, 1.0]", "\"logits\": [0.0]");
    o = run(&count, 6, 1);
    expect_gate(&o, "answered", 1);
    end(&o);
    /* What is no fault of the package ends the run. */
    fake memory = {.status = LAYA_ERROR_MEMORY};
    o = run(&memory, 6, 1);
    assert_int_equal(o.status, LAYA_ERROR_MEMORY);
    assert_null(o.report);
}

/* ------------------------------------------------------------------ the page */

/* Tags are closed in order, and no '&' or '<' stands alone. */
static void expect_well_formed(const char *text)
{
    char names[64][16] = {{0}};
    size_t depth = 0;
    assert_int_equal(strncmp(text, "<!DOCTYPE html>\n", 16), 0);
    for (const char *p = text + 16; *p; p++) {
        if (*p == '&') {
            size_t size = strcspn(p, ";");
            assert_true(size <= 5 && p[size] == ';');
        }
        if (*p != '<') continue;
        const char *close = strchr(p, '>');
        assert_non_null(close);
        bool ends = p[1] == '/', alone = close[-1] == '/';
        size_t size = strcspn(p + 1 + ends, " />\n");
        assert_true(size > 0 && size < sizeof *names);
        if (ends) {
            assert_true(depth > 0 && strncmp(names[depth - 1], p + 2, size) == 0 && names[depth - 1][size] == '\0');
            depth--;
        } else if (!alone) {
            assert_true(depth < 64);
            memcpy(names[depth], p + 1, size);
            names[depth++][size] = '\0';
        }
        p = close;
    }
    assert_int_equal(depth, 0);
}

static void test_page(void **state)
{
    (void)state;
    fake f = ONE("\"logits\": [0.0, 1.0]", "\"logits\": [0.0, 1.2]");
    outcome o = run(&f, 6, 1);
    laya_buffer page;
    laya_error error;
    size_t size;
    const char *json = laya_report_json(o.report, &size);
    laya_buffer_init(&page, NULL);
    assert_int_equal(laya_report_html(&page, json, size, &error), LAYA_OK);
    expect_well_formed(page.data);
    assert_contains(page.data, "<span class=\"bad\">failed</span>");
    assert_contains(page.data, "3 questions evaluated, 2 unvalidated");
    assert_contains(page.data, "<svg xmlns=");
    assert_contains(page.data, "unvalidated: a row of 20 tokens does not fit a package of 6");
    size_t dots = 0;
    for (const char *p = page.data; (p = strstr(p, "<circle ")) != NULL; p++) dots++;
    assert_int_equal(dots, 3);
    assert_null(strstr(page.data, "<script"));
    assert_null(strstr(page.data, "href="));
    assert_null(strstr(page.data, "src="));
    laya_buffer_close(&page);
    end(&o);
    static const char hostile[] = "{\"passed\": true, \"cases\": [{\"name\": \"<b>&\\\"\\u0001\", \"status\": "
                                  "\"unvalidated\", \"reason\": \"]]>\"}]}";
    laya_buffer_init(&page, NULL);
    assert_int_equal(laya_report_html(&page, hostile, sizeof hostile - 1, &error), LAYA_OK);
    expect_well_formed(page.data);
    assert_contains(page.data, "<h3>&lt;b&gt;&amp;&quot; </h3>");
    laya_buffer_close(&page);
}

/* ------------------------------------------------------------------ memory, arguments */

static void test_memory_failures(void **state)
{
    (void)state;
    test_memory memory;
    test_memory_init(&memory);
    const laya_source source = {.predict = fake_predict};
    for (size_t fail_at = 1;; fail_at++) {
        fake f = {0};
        laya_source from = source;
        laya_report *report = NULL;
        laya_error error;
        laya_validation v = {.reference = &reference,
                             .model = laya_reference_find(&reference, WEIGHTS),
                             .package = {.package_sha256 = FIXTURE,
                                         .weights_sha256 = WEIGHTS,
                                         .graph = "lean",
                                         .precision = "fp16",
                                         .length = 6,
                                         .markers = 3},
                             .executor = "e",
                             .class = "c",
                             .repeats = 2};
        from.user = &f;
        test_memory_arm(&memory, fail_at);
        laya_arena_init(&v.arena, &memory.hooks);
        laya_status status = laya_validation_run(&v, &from, &error);
        if (status == LAYA_OK) status = laya_validation_report(&v, &report, &error);
        laya_arena_close(&v.arena);
        laya_report_close(report);
        assert_int_equal(memory.live, 0);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_OK);
            break;
        }
        assert_int_equal(status, LAYA_ERROR_MEMORY);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    laya_validate_options options;
    laya_report *report;
    laya_error error;
    laya_validate_options_init(&options);
    assert_int_equal(options.repeats, 100);
    assert_int_equal(laya_validate(NULL, &options, &report, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_validate("x", NULL, &report, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_validate("x", &options, NULL, &error), LAYA_ERROR_ARGUMENT);
    options.repeats = 0;
    assert_int_equal(laya_validate("x", &options, &report, &error), LAYA_ERROR_ARGUMENT);
    options.size = 3;
    assert_int_equal(laya_validate("x", &options, &report, &error), LAYA_ERROR_ARGUMENT);
    assert_null(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal_answers),
                                       cmocka_unit_test(test_unvalidated),
                                       cmocka_unit_test(test_nothing_evaluated),
                                       cmocka_unit_test(test_argmax),
                                       cmocka_unit_test(test_probability),
                                       cmocka_unit_test(test_published_probability),
                                       cmocka_unit_test(test_action_probability),
                                       cmocka_unit_test(test_action_logits_beside),
                                       cmocka_unit_test(test_usage),
                                       cmocka_unit_test(test_finite),
                                       cmocka_unit_test(test_stable),
                                       cmocka_unit_test(test_raw_differences),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_page),
                                       cmocka_unit_test(test_memory_failures),
                                       cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, open_reference, close_reference);
}
