/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every single allocation of every call is made to fail, one after the other. Each time the call must give
 * LAYA_ERROR_MEMORY (or succeed, where the library can do without), lose no block, and work afterwards.
 */
#include "support.h"

#include "predict/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE "{\"text\": \"I was billed twice <mask> \\n\", \"n\": [1.5]}"
#define QUESTIONS                                                                                                    \
    "{\"c\": {\"type\": \"choice\", \"instructions\": {\"a\": 1}, \"criteria\": {\"x\": [1], \"y\": null, \"z\": "   \
    "\"e\\u0301\"}, "                                                                                                \
    "\"option_order\": [2, 0, 1]}, \"s\": {\"type\": \"score\", \"instructions\": \"?\", \"criteria\": [\"a\", "     \
    "2]}, "                                                                                                          \
    "\"n\": {\"type\": \"noul\", \"instructions\": \"Is it?\", \"labels\": {\"false\": \"no\", \"true\": \"yes\"}}}"

static test_memory memory;

static laya_model *open_model(size_t fail_at, laya_status *status, laya_error *error)
{
    char path[TEST_PATH_SIZE];
    laya_model *model;
    laya_model_options options;
    laya_model_options_init(&options);
    options.allocator = memory.hooks;
    options.lang_temperatures = "{\"de\": {\"temperature\": [1, 2, \"3\"]}, \"fr\": null}";
    test_memory_arm(&memory, fail_at);
    *status = laya_model_open(test_path(path, TEST_TINY), &options, &model, error);
    return model;
}

static laya_context *open_context(const laya_model *model, unsigned threads)
{
    laya_context *context;
    laya_context_options options;
    laya_context_options_init(&options);
    options.threads = threads;
    test_memory_arm(&memory, 0);
    assert_int_equal(laya_context_open(model, &options, &context, NULL), LAYA_OK);
    context->arena.poison = true;
    return context;
}

/* What a failed call must look like. */
static void assert_failed(laya_status status, const laya_error *error)
{
    assert_int_equal(status, LAYA_ERROR_MEMORY);
    assert_int_equal(error->status, LAYA_ERROR_MEMORY);
    assert_contains(error->message, "out of memory");
}

static void opening_a_model(void **state)
{
    (void)state;
    size_t failures = 0;
    for (;; failures++) {
        laya_status status;
        laya_error error;
        test_memory_init(&memory);
        laya_model *model = open_model(failures + 1, &status, &error);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_OK);
            laya_model_close(model);
            assert_int_equal(memory.live, 0);
            break;
        }
        assert_failed(status, &error);
        assert_null(model);
        assert_int_equal(memory.live, 0);
    }
    assert_true(failures > 30);
}

/* A checkpoint whose temperatures change (the warning's text is built in memory too) and that fails late. */
static void failing_while_failing(void **state)
{
    (void)state;
    char *directory = test_make_checkpoint();
    test_edit_file(directory, "tokenizer/tokenizer_config.json", "\"pad_token\"", "\"pad\"");
    size_t failures = 0;
    for (;; failures++) {
        laya_model *model;
        laya_error error;
        laya_model_options options;
        test_memory_init(&memory);
        laya_model_options_init(&options);
        options.allocator = memory.hooks;
        test_memory_arm(&memory, failures + 1);
        laya_status status = laya_model_open(directory, &options, &model, &error);
        assert_null(model);
        assert_int_equal(memory.live, 0);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_ERROR_FORMAT);
            break;
        }
        assert_failed(status, &error);
    }
    assert_true(failures > 30);
    test_remove_checkpoint(directory);
}

static void opening_a_context(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        laya_status status;
        laya_error error;
        test_memory_init(&memory);
        laya_model *model = open_model(0, &status, &error);
        size_t live = memory.live, failures = 0;
        for (;; failures++) {
            laya_context *context;
            laya_context_options options;
            laya_context_options_init(&options);
            options.threads = threads;
            test_memory_arm(&memory, failures + 1);
            status = laya_context_open(model, &options, &context, &error);
            if (!memory.failed) {
                assert_int_equal(status, LAYA_OK);
                laya_context_close(context);
                assert_int_equal(memory.live, live);
                break;
            }
            assert_failed(status, &error);
            assert_null(context);
            assert_int_equal(memory.live, live);
        }
        assert_true(failures >= 2);
        laya_model_close(model);
        assert_int_equal(memory.live, 0);
    }
}

typedef laya_status (*call)(laya_context *context, char **text);

static laya_status call_predict(laya_context *context, char **text)
{
    const char *result;
    size_t size;
    laya_predict_options options;
    laya_predict_options_init(&options);
    options.flags = LAYA_PREDICT_RAW | LAYA_PREDICT_STATE_TOKEN_COUNTS | LAYA_PREDICT_PRETTY;
    options.min_confidence = "{\"noul:2\": 0.5}";
    laya_status status = laya_predict(context, STATE, strlen(STATE), QUESTIONS, strlen(QUESTIONS), &options, &result,
                                      &size);
    if (status != LAYA_OK) {
        assert_null(result);
        assert_int_equal(size, 0);
        return status;
    }
    *text = strdup(result);
    assert_non_null(*text);
    return status;
}

static laya_status call_decide(laya_context *context, char **text)
{
    static const char *const labels[] = {"a", "b", "c"}, *const levels[] = {"low", "high"};
    static const laya_question questions[] = {
        {.id = "c",
         .type = LAYA_CHOICE,
         .instructions = "Which?",
         .count = 3,
         .labels = labels,
         .descriptions = labels},
        {.id = "s", .type = LAYA_SCORE, .instructions = "How?", .count = 2, .descriptions = levels},
        {.id = "n", .type = LAYA_NOUL, .instructions = "Is it?"}};
    laya_state state = {.text = "a text <mask>", .size = 13};
    laya_result result;
    laya_status status = laya_decide(context, &state, questions, 3, NULL, &result);
    if (status != LAYA_OK) {
        assert_null(result.answers);
        return status;
    }
    *text = malloc(400);
    assert_non_null(*text);
    snprintf(*text, 400, "%a %a %a %a", (double)result.answers[0].probabilities[2], result.answers[1].score,
             result.answers[2].logits[0], result.answers[2].act_probability);
    return status;
}

static laya_status call_bad_question(laya_context *context, char **text)
{
    static const char questions[] =
        "{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {\"x\": [1]}}}";
    const char *result;
    laya_status status = laya_predict(context, STATE, strlen(STATE), questions, strlen(questions), NULL, &result,
                                      NULL);
    if (status != LAYA_ERROR_INPUT) return status;
    *text = strdup(laya_context_error(context)->message);
    assert_non_null(*text);
    return LAYA_OK;
}

/* `warm`: the context answered before, so that its arena and its result have memory. */
static void fail_everywhere(call run, bool warm, size_t least)
{
    laya_status status;
    laya_error error;
    test_memory_init(&memory);
    laya_model *model = open_model(0, &status, &error);
    size_t model_live = memory.live, failures = 0;
    char *expected = NULL, *found;
    laya_context *context = open_context(model, 1);
    assert_int_equal(run(context, &expected), LAYA_OK);
    laya_context_close(context);
    context = open_context(model, 1);
    for (;; failures++) {
        if (!warm) {
            laya_context_close(context);
            assert_int_equal(memory.live, model_live);
            context = open_context(model, 1);
        }
        size_t live = memory.live;
        test_memory_arm(&memory, failures + 1);
        found = NULL;
        status = run(context, &found);
        bool failed = memory.failed;
        test_memory_arm(&memory, 0);
        if (status == LAYA_OK) {
            assert_string_equal(found, expected); /* no failure, or one that does not matter */
            free(found);
        } else {
            assert_true(failed);
            assert_failed(status, laya_context_error(context));
        }
        /* only the arena and the result keep memory between calls */
        assert_true(memory.live <= live + 8);
        found = NULL;
        assert_int_equal(run(context, &found), LAYA_OK);
        assert_string_equal(found, expected);
        free(found);
        if (!failed) break;
    }
    assert_true(failures >= least);
    laya_context_close(context);
    assert_int_equal(memory.live, model_live);
    laya_model_close(model);
    assert_int_equal(memory.live, 0);
    free(expected);
}

static void predicting(void **state)
{
    (void)state;
    fail_everywhere(call_predict, false, 20);
    fail_everywhere(call_predict, true, 20);
}

static void deciding(void **state)
{
    (void)state;
    fail_everywhere(call_decide, false, 10);
    fail_everywhere(call_decide, true, 10);
}

static void refusing_a_question(void **state)
{
    (void)state;
    fail_everywhere(call_bad_question, false, 4);
}

static void describing(void **state)
{
    (void)state;
    laya_status status;
    laya_error error;
    test_memory_init(&memory);
    laya_model *model = open_model(0, &status, &error);
    size_t live = memory.live, failures = 0;
    for (;; failures++) {
        char *json;
        test_memory_arm(&memory, failures + 1);
        status = laya_model_describe(model, 1, &json, &error);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_OK);
            laya_model_release(model, json);
            assert_int_equal(memory.live, live);
            break;
        }
        assert_failed(status, &error);
        assert_null(json);
        assert_int_equal(memory.live, live);
    }
    assert_true(failures >= 6); /* five paths and the text */
    laya_model_close(model);
    assert_int_equal(memory.live, 0);
}

static void tokenizing(void **state)
{
    (void)state;
    static const char *const files[] = {TEST_DEMO "/tokenizer/tokenizer.json", TEST_TINY "/tokenizer/tokenizer.json"};
    static const char text[] =
        "Hello  <mask> world[MASK], e\xcc\x81 \xe6\x88\x91 \xf0\x9f\x91\x8d 42\n\n<eos> unbelievable";
    for (size_t i = 0; i < 2; i++) {
        char path[TEST_PATH_SIZE];
        laya_tokenizer *tokenizer;
        laya_error error;
        laya_status status;
        size_t failures = 0;
        test_memory_init(&memory);
        for (;; failures++) {
            test_memory_arm(&memory, failures + 1);
            status = laya_tokenizer_open(test_path(path, files[i]), &memory.hooks, &tokenizer, &error);
            if (!memory.failed) break;
            assert_failed(status, &error);
            assert_null(tokenizer);
            assert_int_equal(memory.live, 0);
        }
        assert_int_equal(status, LAYA_OK);
        assert_true(failures > 5);
        uint32_t *expected, *ids;
        size_t expected_count, count, live = memory.live;
        test_memory_arm(&memory, 0);
        assert_int_equal(laya_tokenizer_encode(tokenizer, text, sizeof text - 1, &expected, &expected_count, &error),
                         LAYA_OK);
        for (failures = 0;; failures++) {
            test_memory_arm(&memory, failures + 1);
            status = laya_tokenizer_encode(tokenizer, text, sizeof text - 1, &ids, &count, &error);
            if (!memory.failed) break;
            assert_failed(status, &error);
            assert_null(ids);
            assert_int_equal(count, 0);
            assert_int_equal(memory.live, live + 1);
        }
        assert_int_equal(status, LAYA_OK);
        assert_true(failures >= 2);
        assert_int_equal(count, expected_count);
        assert_memory_equal(ids, expected, count * sizeof *ids);
        laya_tokenizer_release(tokenizer, ids);
        laya_tokenizer_release(tokenizer, expected);
        laya_tokenizer_close(tokenizer);
        assert_int_equal(memory.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_model),   cmocka_unit_test(failing_while_failing),
        cmocka_unit_test(opening_a_context), cmocka_unit_test(predicting),
        cmocka_unit_test(deciding),          cmocka_unit_test(refusing_a_question),
        cmocka_unit_test(describing),        cmocka_unit_test(tokenizing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
