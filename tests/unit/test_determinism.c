/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bits for any number of threads, alone or among other questions, after many repeats, after other work, and
 * with memory that holds NaN everywhere nothing was written.
 */
#include "support.h"

#include "predict/context.h"

#include <stdio.h>
#include <string.h>

#define QUESTIONS 20
#define LONG_QUESTIONS 5 /* that are asked about the long text */
#define REPEATS (TEST_SANITIZED ? 100 : 1000)
#define OTHER_WORK (REPEATS / 10) /* all questions once in so many repeats */

static const char state_text[] =
    "Hi, I was billed twice for March, invoice 4411. Please refund the duplicate today or we cancel our plan. "
    "The export also failed on Monday and nobody answered my second message about it.";

/* Long enough that a call needs several groups of rows. */
static char long_text[2400];

static const char *const teams[] = {"billing", "technical", "sales", "other", "shipping", "legal", "security"};
static const char *const levels[] = {"not urgent", "soon", "critical deadline or blocking issue"};

typedef struct fixture {
    laya_model *model;
    laya_question questions[QUESTIONS];
    char ids[QUESTIONS][8];
    char instructions[QUESTIONS][64];
} fixture;

/* Everything of an answer that the network and the calibration decide. */
typedef struct bits {
    size_t count, actions;
    double logits[8], action_logits[8];
    float probabilities[8];
    double numbers[4];
} bits;

static bits bits_of(const laya_answer *answer)
{
    bits b;
    memset(&b, 0, sizeof b); /* padding too: bits are compared as bytes */
    assert_true(answer->count <= 8 && answer->action_count <= 8);
    b.count = answer->count;
    b.actions = answer->action_count;
    memcpy(b.logits, answer->logits, answer->count * sizeof *b.logits);
    memcpy(b.action_logits, answer->action_logits, answer->action_count * sizeof *b.action_logits);
    memcpy(b.probabilities, answer->probabilities, answer->count * sizeof *b.probabilities);
    b.numbers[0] = answer->score;
    b.numbers[1] = answer->confidence;
    b.numbers[2] = answer->answer_confidence;
    b.numbers[3] = answer->act_probability;
    return b;
}

static void open_model(fixture *f, const char *folder)
{
    f->model = test_open_model(folder);
    for (size_t at = 0; at < QUESTIONS; at++) {
        laya_question *q = &f->questions[at];
        snprintf(f->ids[at], sizeof f->ids[at], "q%zu", at);
        snprintf(f->instructions[at], sizeof f->instructions[at], "Question %zu: what is this message about?", at);
        *q = (laya_question){.id = f->ids[at], .instructions = f->instructions[at]};
        if (at % 3 == 0) {
            q->type = LAYA_CHOICE;
            q->count = 1 + at % 7;
            q->labels = teams;
        } else if (at % 3 == 1) {
            q->type = LAYA_SCORE;
            q->count = 3;
            q->descriptions = levels;
        } else {
            q->type = LAYA_NOUL;
        }
    }
}

static int setup(void **state)
{
    static fixture fixtures[2];
    open_model(&fixtures[0], TEST_DEMO);
    open_model(&fixtures[1], TEST_TINY);
    for (size_t at = 0; at + 1 < sizeof long_text; at++) long_text[at] = (char)('a' + (at * 7 + at / 13) % 26);
    for (size_t at = 5; at + 1 < sizeof long_text; at += 6) long_text[at] = ' ';
    *state = fixtures;
    return 0;
}

static int teardown(void **state)
{
    fixture *fixtures = *state;
    laya_model_close(fixtures[0].model);
    laya_model_close(fixtures[1].model);
    return 0;
}

/* Memory as users have it: only poisoned_memory poisons it. */
static laya_context *open_context(const fixture *f, unsigned threads)
{
    laya_context *context = test_open_context(f->model, threads);
    context->arena.poison = false;
    return context;
}

static void decide(laya_context *context, const char *text, const laya_question *questions, size_t count, bits *out)
{
    laya_result result;
    const laya_state state = {text, strlen(text), 0};
    if (laya_decide(context, &state, questions, count, NULL, &result) != LAYA_OK)
        fail_msg("%s", laya_context_error(context)->message);
    assert_int_equal(result.count, count);
    for (size_t at = 0; at < count; at++) out[at] = bits_of(&result.answers[at]);
}

/* What one thread answers to all questions at once: the bits that every other way must give. */
static void expected_bits(const fixture *f, const char *text, size_t count, bits *out)
{
    laya_context *context = open_context(f, 1);
    decide(context, text, f->questions, count, out);
    laya_context_close(context);
}

static void any_number_of_threads(void **state)
{
    static const unsigned threads[] = {1, 2, 3, 8};
    const fixture *fixtures = *state;
    bits expected[QUESTIONS], got[QUESTIONS];
    for (size_t model = 0; model < 2; model++) {
        for (int text = 0; text < 2; text++) {
            const char *words = text ? long_text : state_text;
            size_t count = text ? LONG_QUESTIONS : QUESTIONS;
            expected_bits(&fixtures[model], words, count, expected);
            for (size_t at = 0; at < sizeof threads / sizeof *threads; at++) {
                laya_context *context = open_context(&fixtures[model], threads[at]);
                decide(context, words, fixtures[model].questions, count, got);
                assert_memory_equal(expected, got, count * sizeof *got);
                laya_context_close(context);
            }
        }
    }
}

static void alone_or_among_others(void **state)
{
    const fixture *fixtures = *state;
    bits expected[QUESTIONS], got[QUESTIONS];
    for (size_t model = 0; model < 2; model++) {
        const fixture *f = &fixtures[model];
        laya_context *context = open_context(f, 2);
        expected_bits(f, state_text, QUESTIONS, expected);
        for (size_t at = 0; at < QUESTIONS; at++) {
            decide(context, state_text, &f->questions[at], 1, got);
            assert_memory_equal(&expected[at], got, sizeof *got);
        }
        for (size_t first = 0; first + 5 <= QUESTIONS; first += 3) {
            decide(context, state_text, &f->questions[first], 5, got);
            assert_memory_equal(&expected[first], got, 5 * sizeof *got);
        }
        laya_context_close(context);
    }
}

static void repeat(const fixture *f, int times)
{
    bits expected[2], got[2], other[QUESTIONS];
    laya_context *context = open_context(f, 2);
    decide(context, "Please refund me.", &f->questions[1], 2, expected);
    for (int at = 0; at < times; at++) {
        if (at % OTHER_WORK == OTHER_WORK / 2) decide(context, state_text, f->questions, QUESTIONS, other);
        decide(context, "Please refund me.", &f->questions[1], 2, got);
        assert_memory_equal(expected, got, sizeof expected);
    }
    laya_context_close(context);
}

static void many_repeats(void **state)
{
    const fixture *fixtures = *state;
    repeat(&fixtures[0], REPEATS / 10);
    repeat(&fixtures[1], REPEATS);
}

static void poisoned_memory(void **state)
{
    const fixture *fixtures = *state;
    bits expected[QUESTIONS], got[QUESTIONS];
    for (size_t model = 0; model < 2; model++) {
        laya_context *context = open_context(&fixtures[model], 2);
        expected_bits(&fixtures[model], long_text, LONG_QUESTIONS, expected);
        context->arena.poison = true;
        for (int repeat = 0; repeat < 3; repeat++) {
            decide(context, long_text, fixtures[model].questions, LONG_QUESTIONS, got);
            assert_memory_equal(expected, got, LONG_QUESTIONS * sizeof *got);
        }
        laya_context_close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_of_threads),
                                       cmocka_unit_test(alone_or_among_others), cmocka_unit_test(many_repeats),
                                       cmocka_unit_test(poisoned_memory)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
