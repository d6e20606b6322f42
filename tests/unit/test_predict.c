/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface of contexts: both doors, options, flags, errors, repeated and concurrent use. */
#include "support.h"

#include "base/json.h"
#include "predict/context.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static laya_model *demo;
static laya_context *context;

static int open_demo(void **state)
{
    (void)state;
    demo = test_open_model(TEST_DEMO);
    context = test_open_context(demo, 1);
    return 0;
}

static int close_demo(void **state)
{
    (void)state;
    laya_context_close(context);
    laya_model_close(demo);
    return 0;
}

#define STATE                                                                                                        \
    "\"Hi, I was billed twice for March, invoice 4411. Please refund the duplicate today or we cancel our plan.\""
#define QUESTIONS                                                                                                    \
    "{\"department\": {\"type\": \"choice\", \"instructions\": \"Which department should handle this?\", "           \
    "\"criteria\": {\"billing\": \"invoices, payments, refunds\", \"technical\": \"bugs, outages, errors\", "        \
    "\"sales\": \"pricing, new contracts\", \"other\": \"everything else\"}}, "                                      \
    "\"urgency\": {\"type\": \"score\", \"instructions\": \"How urgent is this request?\", \"criteria\": "           \
    "[\"not urgent\", \"soon\", \"critical deadline or blocking issue\"]}, "                                         \
    "\"churn_risk\": {\"type\": \"noul\", \"instructions\": \"Does the user threaten to cancel or leave?\"}}"

static const char *predict(laya_context *on, const char *state, const char *questions,
                           const laya_predict_options *options)
{
    const char *result;
    size_t size;
    if (laya_predict(on, state, strlen(state), questions, strlen(questions), options, &result, &size) != LAYA_OK)
        fail_msg("%s", laya_context_error(on)->message);
    assert_int_equal(strlen(result), size);
    assert_int_equal(laya_context_error(on)->status, LAYA_OK);
    assert_string_equal(laya_context_error(on)->message, "");
    return result;
}

static void expect_error(const char *state, const char *questions, const laya_predict_options *options,
                         laya_status status, const char *message)
{
    const char *result = "untouched";
    size_t size = 99;
    assert_int_equal(laya_predict(context, state, state ? strlen(state) : 0, questions,
                                  questions ? strlen(questions) : 0, options, &result, &size),
                     status);
    assert_null(result);
    assert_int_equal(size, 0);
    assert_int_equal(laya_context_error(context)->status, status);
    assert_contains(laya_context_error(context)->message, message);
}

static laya_predict_options options_with(unsigned flags)
{
    laya_predict_options options;
    laya_predict_options_init(&options);
    options.flags = flags;
    return options;
}

/* A document and a path of keys into it. */
static void parse(laya_json *doc, const char *text)
{
    laya_error error;
    if (laya_json_parse(doc, text, strlen(text), NULL, &error) != LAYA_OK) fail_msg("%s: %s", error.message, text);
}

static laya_json_value at(const laya_json *doc, const char *a, const char *b, const char *c, const char *d)
{
    laya_json_value value = laya_json_root(doc);
    const char *const keys[4] = {a, b, c, d};
    for (int i = 0; i < 4 && keys[i]; i++) value = laya_json_get(value, keys[i]);
    return value;
}

static double number(laya_json_value value)
{
    double result = NAN;
    assert_true(laya_json_to_double(value, &result));
    assert_true(isfinite(result));
    return result;
}

static laya_json_value element(laya_json_value list, size_t index)
{
    laya_json_iterator it = laya_json_first(list);
    while (index-- > 0) laya_json_next(&it);
    return it.value;
}

/* ------------------------------------------------------------------ doors */

static const char *const labels[] = {"billing", "technical", "sales", "other"};
static const char *const descriptions[] = {"invoices, payments, refunds", "bugs, outages, errors",
                                           "pricing, new contracts", "everything else"};
static const char *const levels[] = {"not urgent", "soon", "critical deadline or blocking issue"};
static const laya_question structs[3] = {
    {.id = "department",
     .type = LAYA_CHOICE,
     .instructions = "Which department should handle this?",
     .count = 4,
     .labels = labels,
     .descriptions = descriptions},
    {.id = "urgency",
     .type = LAYA_SCORE,
     .instructions = "How urgent is this request?",
     .count = 3,
     .descriptions = levels},
    {.id = "churn_risk", .type = LAYA_NOUL, .instructions = "Does the user threaten to cancel or leave?"},
};

static laya_state plain_state(void)
{
    static const char text[] = STATE;
    return (laya_state){.text = text + 1, .size = sizeof text - 3};
}

static void both_doors_give_the_same_numbers(void **state)
{
    (void)state;
    laya_json doc;
    laya_result result;
    laya_predict_options options = options_with(LAYA_PREDICT_RAW | LAYA_PREDICT_STATE_TOKEN_COUNTS);
    options.min_confidence = "0.6";
    parse(&doc, predict(context, STATE, QUESTIONS, &options));
    laya_context *other = test_open_context(demo, 2);
    laya_state text = plain_state();
    assert_int_equal(laya_decide(other, &text, structs, 3, &options, &result), LAYA_OK);
    assert_int_equal(result.count, 3);
    assert_true(number(at(&doc, "usage", "input_tokens", NULL, NULL)) == (double)result.input_tokens);
    assert_true(number(at(&doc, "usage", "state_tokens", NULL, NULL)) == result.state_tokens);
    for (size_t q = 0; q < 3; q++) {
        const laya_answer *answer = &result.answers[q];
        laya_json_value json = at(&doc, "answers", structs[q].id, NULL, NULL);
        laya_json_value raw = laya_json_get(json, "raw"), logits = laya_json_get(raw, "logits");
        assert_int_equal(answer->type, structs[q].type);
        assert_int_equal(laya_json_size(logits), answer->count);
        for (size_t i = 0; i < answer->count; i++)
            assert_true((float)number(element(logits, i)) == (float)answer->logits[i]);
        assert_int_equal(laya_json_size(laya_json_get(raw, "action_logits")), answer->action_count);
        for (size_t i = 0; i < answer->action_count; i++)
            assert_true((float)number(element(laya_json_get(raw, "action_logits"), i)) ==
                        (float)answer->action_logits[i]);
        assert_true(number(laya_json_get(raw, "temperature")) == answer->temperature);
        assert_true(number(laya_json_get(raw, "input_tokens")) == answer->input_tokens);
        assert_true(fabs(number(laya_json_get(json, "confidence")) - answer->confidence) <= 0.5001e-4);
        assert_true(fabs(number(laya_json_get(json, "answer_confidence")) - answer->answer_confidence) <= 0.5001e-4);
        assert_true(fabs(number(at(&doc, "answers", structs[q].id, "action", "act_probability")) -
                         answer->act_probability) <= 0.5001e-4);
        assert_true(number(laya_json_get(json, "abstention_threshold")) == 0.6);
        bool low = laya_json_equals(laya_json_get(json, "abstention"), "abstained");
        assert_int_equal(answer->abstention, low ? LAYA_GATE_ABSTAINED : LAYA_GATE_PASSED);
        assert_int_equal(laya_json_present(laya_json_get(json, "low_confidence")), low);
        double sum = 0;
        for (size_t i = 0; i < answer->count; i++) sum += (double)answer->probabilities[i];
        assert_true(fabs(sum - 1) < 1e-6);
    }
    /* the recorded float32 answer of the reference implementation */
    assert_true(laya_json_equals(at(&doc, "answers", "department", "choice", NULL), "billing"));
    assert_true(fabs(number(at(&doc, "answers", "department", "probabilities", "billing")) - 0.9411) < 2.5e-4);
    assert_true(fabs(number(at(&doc, "answers", "urgency", "score", NULL)) - 1.284) < 2.5e-4);
    assert_true(fabs(number(at(&doc, "answers", "churn_risk", "noul", NULL)) - 0.8238) < 2.5e-4);
    assert_true(laya_json_equals(at(&doc, "answers", "urgency", "abstention", NULL), "abstained")); /* 0.5378 */
    assert_int_equal(result.answers[0].best, 0);
    assert_true(result.answers[0].score == 0);
    laya_json_close(&doc);
    laya_context_close(other);
}

/* keep_end of the struct door is what a list is for the JSON door. */
static void lists_keep_their_end(void **state)
{
    (void)state;
    char list[4096] = "[", plain[4096];
    for (int i = 0; i < 60; i++) sprintf(list + strlen(list), "%s\"turn number %d\"", i ? ", " : "", i);
    strcat(list, "]");
    strcpy(plain, list);
    laya_predict_options options = options_with(LAYA_PREDICT_RAW);
    options.max_len = 96;
    laya_json doc;
    laya_result result;
    parse(&doc, predict(context, list, QUESTIONS, &options));
    double end = number(element(at(&doc, "answers", "churn_risk", "raw", "logits"), 0));
    assert_int_equal(laya_json_typeof(at(&doc, "usage", "truncated", NULL, NULL)), LAYA_JSON_TRUE);
    laya_json_close(&doc);
    laya_state text = {.text = plain, .size = strlen(plain), .keep_end = 1};
    assert_int_equal(laya_decide(context, &text, structs, 3, &options, &result), LAYA_OK);
    assert_true((float)result.answers[2].logits[0] == (float)end);
    assert_true(result.answers[2].state_tokens_dropped > 0);
    assert_true(result.state_tokens_dropped >= result.answers[2].state_tokens_dropped);
    text.keep_end = 0;
    assert_int_equal(laya_decide(context, &text, structs, 3, &options, &result), LAYA_OK);
    assert_true(result.answers[2].logits[0] != end);
}

/* ------------------------------------------------------------------ results */

static void layout_of_a_result(void **state)
{
    (void)state;
    static const char noul[] = "{\"a\": {\"type\": \"noul\", \"instructions\": \"x\"}}";
    char start[200];
    const char *result = predict(context, "\"\"", noul, NULL);
    snprintf(start, sizeof start, "{\"model\":\"laya-rl-agent\",\"answers\":{\"a\":{\"type\":\"noul\",\"noul\":0.");
    assert_memory_equal(result, start, strlen(start));
    assert_contains(result, ",\"action\":{\"act_probability\":0.");
    assert_contains(result, "}},\"usage\":{\"input_tokens\":");
    assert_contains(result, ",\"output_tokens\":0,\"truncated\":false,\"truncated_questions\":[]}}");
    assert_false(test_contains(result, "state_tokens"));
    assert_false(test_contains(result, "raw"));
    assert_false(test_contains(result, "abstention"));
    assert_false(test_contains(result, "\"options\""));
    laya_predict_options options = options_with(LAYA_PREDICT_STATE_TOKEN_COUNTS);
    assert_contains(predict(context, "\"\"", noul, &options),
                    ",\"output_tokens\":0,\"state_tokens\":0,\"state_tokens_dropped\":0,\"truncated\":false");
    assert_string_equal(
        predict(context, "\"x\"", "{}", NULL),
        "{\"model\":\"laya-rl-agent\",\"answers\":{},\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}");
    assert_string_equal(
        predict(context, "\"x\"", "{}", &options),
        "{\"model\":\"laya-rl-agent\",\"answers\":{},\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}");
    laya_result empty;
    laya_state text = {0};
    assert_int_equal(laya_decide(context, &text, NULL, 0, NULL, &empty), LAYA_OK);
    assert_int_equal(empty.count, 0);
    assert_int_equal(empty.input_tokens, 0);
}

static void pretty_is_the_same_document(void **state)
{
    (void)state;
    laya_json compact, pretty;
    laya_buffer first, second;
    laya_buffer_init(&first, NULL);
    laya_buffer_init(&second, NULL);
    char *copy = strdup(predict(context, STATE, QUESTIONS, NULL));
    assert_non_null(copy);
    parse(&compact, copy);
    laya_predict_options options = options_with(LAYA_PREDICT_PRETTY);
    const char *indented = predict(context, STATE, QUESTIONS, &options);
    assert_contains(indented, "{\n  \"model\": \"laya-rl-agent\",\n  \"answers\": {\n    \"department\": {\n");
    parse(&pretty, indented);
    laya_json_write_python(&first, laya_json_root(&compact));
    laya_json_write_python(&second, laya_json_root(&pretty));
    assert_string_equal(first.data, second.data);
    laya_json_close(&compact);
    laya_json_close(&pretty);
    laya_buffer_close(&first);
    laya_buffer_close(&second);
    free(copy);
}

static void truncation_is_reported(void **state)
{
    (void)state;
    laya_json doc;
    laya_predict_options options = options_with(LAYA_PREDICT_STATE_TOKEN_COUNTS | LAYA_PREDICT_RAW);
    options.max_len = 50; /* churn_risk's head is shorter than department's */
    options.head_max_len = 40;
    parse(&doc, predict(context, STATE, QUESTIONS, &options));
    double tokens = number(at(&doc, "usage", "state_tokens", NULL, NULL)), most = 0;
    assert_true(tokens == 27);
    laya_json_value named = at(&doc, "usage", "truncated_questions", NULL, NULL);
    assert_int_equal(laya_json_typeof(at(&doc, "usage", "truncated", NULL, NULL)), LAYA_JSON_TRUE);
    assert_int_equal(laya_json_size(named), 3);
    assert_true(laya_json_equals(element(named, 0), "department"));
    assert_true(laya_json_equals(element(named, 2), "churn_risk"));
    laya_result result;
    laya_state text = plain_state();
    assert_int_equal(laya_decide(context, &text, structs, 3, &options, &result), LAYA_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(result.answers[i].input_tokens, 50);
        if (result.answers[i].state_tokens_dropped > most) most = result.answers[i].state_tokens_dropped;
    }
    assert_true(most == number(at(&doc, "usage", "state_tokens_dropped", NULL, NULL)));
    assert_true(number(at(&doc, "usage", "input_tokens", NULL, NULL)) == 150);
    laya_json_close(&doc);
}

/* Options that are equal after the cut are named in usage. */
static void collisions_are_reported(void **state)
{
    (void)state;
    static const char questions[] =
        "{\"same\": {\"type\": \"choice\", \"instructions\": \"Which one of them?\", \"criteria\": [\"the same "
        "beginning of a "
        "text: one\", \"the same beginning of a text: two\", \"the same beginning of a text: three\", \"another "
        "text\"]}, "
        "\"differ\": {\"type\": \"choice\", \"instructions\": \"Which?\", \"criteria\": [\"a\", \"b\"]}}";
    laya_predict_options options = options_with(0);
    options.head_max_len = 24;
    const char *result = predict(context, "\"x\"", questions, &options);
    assert_contains(result, ",\"options\":{\"same\":{\"total\":4,\"distinct\":2,\"tokens_per_option\":4}}}}");
    result = predict(context, "\"x\"",
                     "{\"q\": {\"type\": \"score\", \"instructions\": \"?\", \"criteria\": [\"a\", \"b\"]}}", NULL);
    assert_false(test_contains(result, "tokens_per_option"));
}

/* Ids and labels come back byte for byte, NaN of a state does not (F88, F89). */
static void unusual_texts(void **state)
{
    (void)state;
    static const char questions[] =
        "{\"__proto__\": {\"type\": \"noul\", \"instructions\": \"a\\u0000b\", \"x\": 1}, "
        "\"\xf0\x9f\x91\x8d \\\"\\\\\\u0000\\n\xe2\x80\xa8\": {\"type\": \"choice\", \"instructions\": \"\", "
        "\"criteria\": "
        "[\"\\u0001\", true, 1.5, \"\"]}, \"\": {\"type\": \"score\", \"instructions\": \"\", \"criteria\": [\"\"]}}";
    const char *result = predict(context, "[NaN, -Infinity, {\"a\": 1e999, \"a\": \"\\u0000\"}]", questions, NULL);
    assert_contains(result, "\"answers\":{\"__proto__\":{\"type\":\"noul\"");
    assert_contains(result, "\"\xf0\x9f\x91\x8d \\\"\\\\\\u0000\\n\xe2\x80\xa8\":{\"type\":\"choice\",\"choice\":\"");
    assert_contains(result, "\"probabilities\":{\"\\u0001\":");
    assert_contains(result, ",\"True\":");
    assert_contains(result, ",\"1.5\":");
    assert_contains(result,
                    "\"\":{\"type\":\"score\",\"score\":0.0,\"legend\":{\"0\":\"\"},\"probabilities\":{\"0\":1.0},"
                    "\"confidence\":1.0,\"answer_confidence\":1.0");
    assert_false(test_contains(result, "NaN"));
    assert_false(test_contains(result, "Infinity"));
}

/* Empty and blank inputs give numbers (F25), one option gives certainty (F5). */
static void empty_inputs(void **state)
{
    (void)state;
    static const char *const states[] = {"\"\"", "\" \\n\\t \"", "{}", "[]", "0", "false"};
    static const char questions[] =
        "{\"c\": {\"type\": \"choice\", \"instructions\": \"\", \"criteria\": [\"\"]}, "
        "\"s\": {\"type\": \"score\", \"instructions\": {}, \"criteria\": [\"\", \" \"]}, "
        "\"n\": {\"type\": \"noul\", \"instructions\": []}}";
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        laya_json doc;
        parse(&doc, predict(context, states[i], questions, NULL));
        assert_true(number(at(&doc, "answers", "c", "probabilities", "")) == 1);
        assert_true(number(at(&doc, "answers", "c", "confidence", NULL)) == 1);
        assert_true(number(at(&doc, "answers", "c", "answer_confidence", NULL)) == 1);
        assert_true(number(at(&doc, "answers", "s", "score", NULL)) <= 1);
        double truth = number(at(&doc, "answers", "n", "noul", NULL));
        assert_true(truth >= 0 && truth <= 1);
        laya_json_close(&doc);
    }
}

/* Slot s shows option order[s]: the row of the reordered question, with probabilities in the order given. */
static void option_order(void **state)
{
    (void)state;
    static const char ordered[] =
        "{\"q\": {\"type\": \"choice\", \"instructions\": \"Which?\", \"criteria\": {\"billing\": "
        "\"invoices\", \"technical\": \"bugs\", \"sales\": \"prices\"}, \"option_order\": [2, 0, 1]}}";
    static const char moved[] =
        "{\"q\": {\"type\": \"choice\", \"instructions\": \"Which?\", \"criteria\": {\"sales\": "
        "\"prices\", \"billing\": \"invoices\", \"technical\": \"bugs\"}}}";
    laya_json first, second;
    laya_predict_options options = options_with(LAYA_PREDICT_RAW);
    char *copy = strdup(predict(context, STATE, ordered, &options));
    assert_non_null(copy);
    parse(&first, copy);
    parse(&second, predict(context, STATE, moved, &options));
    static const char *const names[] = {"billing", "technical", "sales"};
    static const size_t place[] = {1, 2, 0};
    laya_json_iterator it = laya_json_first(at(&first, "answers", "q", "probabilities", NULL));
    for (size_t i = 0; i < 3; i++, laya_json_next(&it)) {
        assert_true(laya_json_equals(it.key, names[i]));
        assert_true(number(it.value) == number(at(&second, "answers", "q", "probabilities", names[i])));
        assert_true(number(element(at(&first, "answers", "q", "raw", "logits"), i)) ==
                    number(element(at(&second, "answers", "q", "raw", "logits"), place[i])));
    }
    assert_true(laya_json_equals(at(&first, "answers", "q", "choice", NULL), "billing"));
    assert_true(laya_json_equals(at(&second, "answers", "q", "choice", NULL), "billing"));
    laya_json_close(&first);
    laya_json_close(&second);
    free(copy);
}

/* ------------------------------------------------------------------ errors */

static void errors_leave_the_context_usable(void **state)
{
    (void)state;
    char *good = strdup(predict(context, STATE, QUESTIONS, NULL));
    assert_non_null(good);
    laya_predict_options options = options_with(0);
    expect_error("null", QUESTIONS, NULL, LAYA_ERROR_INPUT, "state must not be None; pass a string, dict, or list");
    expect_error("", QUESTIONS, NULL, LAYA_ERROR_INPUT, "state: line 1, column 1");
    expect_error(NULL, QUESTIONS, NULL, LAYA_ERROR_INPUT, "state: line 1, column 1");
    expect_error("\"x", QUESTIONS, NULL, LAYA_ERROR_INPUT, "state: line 1, column 1: this string does not end");
    expect_error("\"\xff\"", QUESTIONS, NULL, LAYA_ERROR_INPUT, "state: line 1, column 2: invalid UTF-8");
    expect_error("\"\"", NULL, NULL, LAYA_ERROR_INPUT, "questions: line 1, column 1");
    expect_error("\"\"", "{", NULL, LAYA_ERROR_INPUT, "questions: line 1, column 2");
    expect_error("\"\"", "[]", NULL, LAYA_ERROR_INPUT,
                 "questions must be a dict of question id -> definition, got list");
    expect_error("\"\"", "null", NULL, LAYA_ERROR_INPUT,
                 "questions must be a dict of question id -> definition, got NoneType");
    expect_error("\"\"", "{\"q\": 1}", NULL, LAYA_ERROR_INPUT, "question 'q': definition must be a dict, got int");
    options.max_len = 5;
    expect_error(
        "\"\"", QUESTIONS, &options, LAYA_ERROR_INPUT,
        "question 'department': only 0 of its 4 option markers fit in max_len=5 with head_max_len=192 spent");
    options = options_with(0);
    options.max_len = 1025;
    expect_error("\"\"", QUESTIONS, &options, LAYA_ERROR_ARGUMENT, "max_len=1025 is longer than the 1024 positions");
    options = options_with(8);
    expect_error("\"\"", QUESTIONS, &options, LAYA_ERROR_ARGUMENT, "unknown flags 0x8");
    options = options_with(0);
    options.size = 3;
    expect_error("\"\"", QUESTIONS, &options, LAYA_ERROR_ARGUMENT, "size is 3");
    options = options_with(0);
    options.min_confidence = "1.5";
    expect_error("\"\"", QUESTIONS, &options, LAYA_ERROR_INPUT,
                 "min_confidence must be a float in [0.0, 1.0], got 1.5");
    expect_error("\"\"", "{}", &options, LAYA_ERROR_INPUT, "min_confidence"); /* also without questions */
    predict(context, "\"\"", "{}", NULL); /* clears the error, though it computes nothing */
    expect_error("null", QUESTIONS, NULL, LAYA_ERROR_INPUT, "state");
    assert_string_equal(predict(context, STATE, QUESTIONS, NULL), good);

    size_t size = 5;
    const char *result;
    assert_int_equal(laya_predict(NULL, "1", 1, "{}", 2, NULL, &result, &size), LAYA_ERROR_ARGUMENT);
    assert_null(result);
    assert_int_equal(size, 0);
    assert_int_equal(laya_predict(context, "1", 1, "{}", 2, NULL, NULL, NULL), LAYA_ERROR_ARGUMENT);
    assert_contains(laya_context_error(context)->message, "result must not be NULL");
    assert_int_equal(laya_predict(context, "1", 1, "{}", 2, NULL, &result, NULL), LAYA_OK);
    assert_string_equal(predict(context, STATE, QUESTIONS, NULL), good);
    free(good);
}

static void errors_of_decide(void **state)
{
    (void)state;
    laya_result result;
    laya_state text = plain_state(), bad = {.text = "a\xff", .size = 2}, missing = {.text = NULL, .size = 1};
    laya_question broken = structs[1];
    broken.descriptions = NULL;
    laya_predict_options options = options_with(16);
    assert_int_equal(laya_decide(NULL, &text, structs, 3, NULL, &result), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_decide(context, &text, structs, 3, NULL, NULL), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_decide(context, NULL, structs, 3, NULL, &result), LAYA_ERROR_ARGUMENT);
    assert_contains(laya_context_error(context)->message, "state must not be NULL");
    assert_int_equal(laya_decide(context, &missing, structs, 3, NULL, &result), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_decide(context, &text, NULL, 3, NULL, &result), LAYA_ERROR_ARGUMENT);
    assert_contains(laya_context_error(context)->message, "questions must not be NULL");
    assert_int_equal(laya_decide(context, &bad, structs, 3, NULL, &result), LAYA_ERROR_INPUT);
    assert_contains(laya_context_error(context)->message, "state: invalid UTF-8 at byte 1");
    assert_int_equal(laya_decide(context, &text, &broken, 1, NULL, &result), LAYA_ERROR_INPUT);
    assert_contains(laya_context_error(context)->message, "question 'urgency': score level 0 is null");
    assert_int_equal(laya_decide(context, &text, structs, 3, &options, &result), LAYA_ERROR_ARGUMENT);
    assert_int_equal(result.count, 0);
    assert_null(result.answers);
    assert_int_equal(laya_decide(context, &text, structs, 3, NULL, &result), LAYA_OK);
    assert_int_equal(result.count, 3);
}

static void errors_of_contexts(void **state)
{
    (void)state;
    laya_context *opened = (laya_context *)&opened;
    laya_context_options options;
    laya_error error;
    assert_int_equal(laya_context_open(NULL, NULL, &opened, &error), LAYA_ERROR_ARGUMENT);
    assert_null(opened);
    assert_int_equal(laya_context_open(demo, NULL, NULL, &error), LAYA_ERROR_ARGUMENT);
    laya_context_options_init(&options);
    options.threads = 1025;
    assert_int_equal(laya_context_open(demo, &options, &opened, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "1025 threads");
    laya_context_options_init(&options);
    options.precision = (laya_precision)2;
    assert_int_equal(laya_context_open(demo, &options, &opened, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "precision 2");
    laya_context_options_init(&options);
    options.size--;
    assert_int_equal(laya_context_open(demo, &options, &opened, NULL), LAYA_ERROR_ARGUMENT);
    assert_null(opened);
    laya_context_close(NULL);
    assert_int_equal(laya_context_open(demo, NULL, &opened, &error), LAYA_OK);
    assert_int_equal(error.status, LAYA_OK);
    laya_context_close(opened);
}

/* ------------------------------------------------------------------ repeated and concurrent use */

/* The arena is poisoned: a value from an earlier call, or none, would show (F28). */
static void repeated_calls_are_equal(void **state)
{
    (void)state;
    static const char other[] =
        "{\"x\": {\"type\": \"choice\", \"instructions\": \"?\", \"criteria\": [\"a\", \"b\", \"c\", \"d\", \"e\", "
        "\"f\", \"g\"]}}";
    laya_predict_options options = options_with(LAYA_PREDICT_RAW);
    char *first = strdup(predict(context, STATE, QUESTIONS, &options));
    char *second = strdup(predict(context, "[1, 2, 3]", other, &options));
    assert_non_null(first);
    assert_non_null(second);
    size_t used = 0;
    for (int round = 0; round < 3; round++) {
        assert_string_equal(predict(context, STATE, QUESTIONS, &options), first);
        assert_string_equal(predict(context, "[1, 2, 3]", other, &options), second);
        size_t now = laya_arena_save(&context->arena).used;
        if (round > 0) assert_int_equal(now, used); /* a call begins with an empty arena (F30) */
        used = now;
    }
    free(first);
    free(second);
}

typedef struct caller {
    laya_context *context;
    const char *questions;
    char *results[4];
    bool failed;
} caller;

static void *call_repeatedly(void *argument)
{
    caller *c = argument;
    laya_predict_options options = options_with(LAYA_PREDICT_RAW);
    for (int round = 0; round < 4; round++) {
        const char *result;
        if (laya_predict(c->context, STATE, strlen(STATE), c->questions, strlen(c->questions), &options, &result,
                         NULL) != LAYA_OK)
            c->failed = true;
        else
            c->results[round] = strdup(result);
    }
    return NULL;
}

static void two_contexts_at_once(void **state)
{
    (void)state;
    static const char other[] = "{\"x\": {\"type\": \"noul\", \"instructions\": \"Is it about money?\"}}";
    laya_predict_options options = options_with(LAYA_PREDICT_RAW);
    caller callers[2] = {{.context = test_open_context(demo, 1), .questions = QUESTIONS},
                         {.context = test_open_context(demo, 2), .questions = other}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_repeatedly, &callers[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_false(callers[i].failed);
        const char *expected = predict(context, STATE, callers[i].questions, &options);
        for (int round = 0; round < 4; round++) {
            assert_string_equal(callers[i].results[round], expected);
            free(callers[i].results[round]);
        }
        laya_context_close(callers[i].context);
    }
}

typedef struct progress_log {
    pthread_t caller;
    unsigned calls;
    uint64_t done, total;
    bool wrong;
} progress_log;

static void log_progress(void *user, uint64_t done, uint64_t total)
{
    progress_log *log = user;
    bool first = log->calls++ == 0;
    if (!pthread_equal(pthread_self(), log->caller)) log->wrong = true;
    if (done > total || total == 0 || (!first && (total != log->total || done < log->done))) log->wrong = true;
    log->done = done;
    log->total = total;
}

/* Reports rise to the total, on the calling thread, and change no answer. */
static void progress_is_reported(void **state)
{
    (void)state;
    for (int precision = 0; precision < 2; precision++) {
        progress_log log = {.caller = pthread_self()};
        laya_context *watched, *plain;
        laya_context_options options;
        laya_context_options_init(&options);
        options.threads = 2;
        options.precision = (laya_precision)precision;
        assert_int_equal(laya_context_open(demo, &options, &plain, NULL), LAYA_OK);
        options.progress = (laya_progress){&log, log_progress};
        assert_int_equal(laya_context_open(demo, &options, &watched, NULL), LAYA_OK);
        static const char questions[] = "{\"a\": {\"type\": \"noul\", \"instructions\": \"?\"}, "
                                        "\"b\": {\"type\": \"noul\", \"instructions\": \"!\"}}";
        const char *result = predict(watched, "\"x\"", questions, NULL);
        assert_true(log.calls >= 2);
        assert_false(log.wrong);
        assert_true(log.done == log.total);
        assert_string_equal(result, predict(plain, "\"x\"", questions, NULL));
        laya_context_close(watched);
        laya_context_close(plain);
    }
}

/* float64 is another path through the network: close, not equal. */
static void double_precision(void **state)
{
    (void)state;
    laya_context *oracle;
    laya_context_options options;
    laya_context_options_init(&options);
    options.threads = 1;
    options.precision = LAYA_PRECISION_DOUBLE;
    assert_int_equal(laya_context_open(demo, &options, &oracle, NULL), LAYA_OK);
    laya_result result;
    laya_state text = {.text = "short", .size = 5};
    assert_int_equal(laya_decide(oracle, &text, structs + 2, 1, NULL, &result), LAYA_OK);
    double exact[2] = {result.answers[0].logits[0], result.answers[0].logits[1]};
    laya_context_close(oracle);
    assert_int_equal(laya_decide(context, &text, structs + 2, 1, NULL, &result), LAYA_OK);
    for (int i = 0; i < 2; i++) assert_true(fabs(result.answers[0].logits[i] - exact[i]) < 1e-3);
    assert_true(result.answers[0].logits[0] != exact[0] || result.answers[0].logits[1] != exact[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_doors_give_the_same_numbers),
        cmocka_unit_test(lists_keep_their_end),
        cmocka_unit_test(layout_of_a_result),
        cmocka_unit_test(pretty_is_the_same_document),
        cmocka_unit_test(truncation_is_reported),
        cmocka_unit_test(collisions_are_reported),
        cmocka_unit_test(unusual_texts),
        cmocka_unit_test(empty_inputs),
        cmocka_unit_test(option_order),
        cmocka_unit_test(errors_leave_the_context_usable),
        cmocka_unit_test(errors_of_decide),
        cmocka_unit_test(errors_of_contexts),
        cmocka_unit_test(repeated_calls_are_equal),
        cmocka_unit_test(two_contexts_at_once),
        cmocka_unit_test(progress_is_reported),
        cmocka_unit_test(double_precision),
    };
    return cmocka_run_group_tests(tests, open_demo, close_demo);
}
