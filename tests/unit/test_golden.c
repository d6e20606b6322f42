/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole path, from state and questions to the result, against what PyTorch recorded in fp32 with the same
 * two checkpoints (tests/golden/laya-demo, tests/golden/laya-tiny-random; made by tools/demo-model/golden.py):
 * rendered texts, token ids, markers and usage equal, logits within a tolerance, rounded results equal.
 */
#include "support.h"

#include "golden_files.h"
#include "model/model.h"
#include "text/prompt.h"

#include <math.h>

#define MAX_TOKENS 2048
/* Longest row of the cases that are also computed, in float64: sanitizers make that slow. */
#define MAX_DOUBLE_ROW (TEST_SANITIZED ? 80 : MAX_TOKENS)

typedef struct suite {
    const char *model;   /* from the source directory */
    const char *goldens; /* likewise */
    double logits;       /* largest difference of an option logit */
    double actions;      /* largest difference of an action logit, relative to max(1, |x|) */
} suite;

static const suite demo = {TEST_DEMO, "tests/golden/laya-demo", 2e-5, 1e-4};
static const suite tiny = {TEST_TINY, "tests/golden/laya-tiny-random", 2e-4, 1e-4};

/*
 * Values that lie on a rounding edge: `exact` is the number that the recorded logits give in float64. A difference of
 * 1e-7 in a logit decides the fourth decimal, so either neighbour is right here, and only here.
 */
static const struct {
    const char *path; /* case/answers/question/field */
    double exact;
} rounding_edges[] = {
    {"score_sizes/answers/eleven/confidence", 0.004749978168509972},
    {"twenty_options/answers/wide/probabilities/topic_12", 0.05294994825814037},
    {"twenty_options/answers/wide/probabilities/topic_19", 0.0530500161319391},
};

typedef struct worst {
    double logits;
    double actions;
    size_t rows;
} worst;

static double number_of(laya_json_value value)
{
    double number = NAN;
    assert_true(laya_json_to_double(value, &number));
    return number;
}

static void check_text(laya_json_value expected, laya_span got, const char *where)
{
    size_t size;
    const char *text = laya_json_text(expected, &size);
    if (!golden_same(expected, got))
        fail_msg("%s: expected \"%.*s\", got \"%.*s\"", where, (int)size, text, (int)got.size, got.text);
}

/* Returns how many there are. */
static size_t check_ids(laya_json_value expected, const uint32_t *ids, size_t count, const char *where)
{
    uint32_t wanted[MAX_TOKENS] = {0};
    size_t size = golden_uints(expected, wanted, MAX_TOKENS);
    if (size != count) fail_msg("%s: expected %zu entries, got %zu", where, size, count);
    for (size_t at = 0; at < count; at++) {
        if (wanted[at] != ids[at]) fail_msg("%s: entry %zu: expected %u, got %u", where, at, wanted[at], ids[at]);
    }
    return size;
}

/* ------------------------------------------------------------------ texts, ids, markers */

/* Returns the tokens of the longest row. */
static size_t check_rows(const laya_model *model, laya_json_value json, const char *name)
{
    size_t longest = 0;
    laya_arena arena;
    laya_error error = {0};
    laya_buffer text;
    laya_arena_init(&arena, NULL);
    laya_buffer_init(&text, NULL);
    const laya_prompt prompt = {model->tokenizer, &model->specials, model->config.max_len, model->config.head_max_len,
                                &arena};
    laya_json_value state = laya_json_get(json, "state");
    laya_span state_text = golden_state(state, &text);
    check_text(laya_json_get(json, "serialized_state"), state_text, name);
    laya_tokens tokens;
    assert_int_equal(laya_prompt_tokens(&prompt, state_text, &tokens, &error), LAYA_OK);

    laya_json_iterator rows = laya_json_first(laya_json_get(json, "rows"));
    laya_json_iterator questions = laya_json_first(laya_json_get(json, "questions"));
    for (; laya_json_present(rows.value); laya_json_next(&rows), laya_json_next(&questions)) {
        laya_query query;
        laya_prompt_row row;
        if (laya_query_from_json(&query, questions.key, questions.value, &arena, &error) != LAYA_OK)
            fail_msg("%s: %s", name, error.message);
        if (laya_prompt_build(&prompt, &query, tokens, laya_json_typeof(state) == LAYA_JSON_ARRAY, &row, &error))
            fail_msg("%s: %s", name, error.message);
        check_text(laya_json_get(rows.value, "qid"), query.id, name);
        laya_json_value options = laya_json_get(rows.value, "options");
        assert_int_equal(laya_json_size(options), query.count);
        laya_json_iterator option = laya_json_first(options);
        for (uint32_t at = 0; at < query.count; at++, laya_json_next(&option))
            check_text(option.value, query.options[at], name);
        size_t count = check_ids(laya_json_get(rows.value, "input_ids"), row.ids, row.count, name);
        if (count > longest) longest = count;
        check_ids(laya_json_get(rows.value, "markers"), row.markers, query.count, name);
        uint32_t share = 0;
        laya_json_to_uint32(laya_json_get(rows.value, "tokens_per_option"), &share); /* null: not cut */
        assert_int_equal(share, row.tokens_per_option);
    }
    laya_buffer_close(&text);
    laya_arena_close(&arena);
    return longest;
}

/* ------------------------------------------------------------------ results */

/* Whether a value is one of the neighbours of a listed rounding edge. */
static bool is_edge(const char *path, laya_json_value value)
{
    for (size_t at = 0; at < sizeof rounding_edges / sizeof *rounding_edges; at++) {
        if (strcmp(rounding_edges[at].path, path) == 0)
            return fabs(number_of(value) - rounding_edges[at].exact) < 0.501e-4;
    }
    return false;
}

/* Equal trees, members in the same order; our "raw" member is not in the recordings. */
static void check_equal(laya_json_value expected, laya_json_value got, const char *path)
{
    laya_buffer a, b;
    char inner[512];
    laya_json_type type = laya_json_typeof(expected);
    if (type == LAYA_JSON_OBJECT) {
        size_t members = laya_json_size(got) - laya_json_present(laya_json_get(got, "raw"));
        if (laya_json_size(expected) != members) fail_msg("%s: other members", path);
        laya_json_iterator mine = laya_json_first(got);
        for (laya_json_iterator it = laya_json_first(expected); laya_json_present(it.value);
             laya_json_next(&it), laya_json_next(&mine)) {
            size_t size, other;
            const char *key = laya_json_text(it.key, &size), *own = laya_json_text(mine.key, &other);
            snprintf(inner, sizeof inner, "%.300s/%.*s", path, size > 100 ? 100 : (int)size, key);
            if (size != other || memcmp(key, own, size) != 0) fail_msg("%s: found %.*s", inner, (int)other, own);
            check_equal(it.value, mine.value, inner);
        }
        return;
    }
    laya_buffer_init(&a, NULL);
    laya_buffer_init(&b, NULL);
    laya_json_write_python(&a, expected);
    laya_json_write_python(&b, got);
    if (strcmp(a.data, b.data) != 0) {
        if (type != LAYA_JSON_FLOAT || !is_edge(path, got)) fail_msg("%s: expected %s, got %s", path, a.data, b.data);
        print_message("rounding edge: %s: expected %s, got %s\n", path, a.data, b.data);
    }
    laya_buffer_close(&a);
    laya_buffer_close(&b);
}

static void compare_numbers(laya_json_value expected, laya_json_value got, bool relative, double limit,
                            double *largest, const char *where)
{
    assert_int_equal(laya_json_size(expected), laya_json_size(got));
    laya_json_iterator mine = laya_json_first(got);
    for (laya_json_iterator it = laya_json_first(expected); laya_json_present(it.value);
         laya_json_next(&it), laya_json_next(&mine)) {
        double a = number_of(it.value), b = number_of(mine.value), gap = fabs(a - b);
        if (relative) gap /= fmax(1.0, fabs(a));
        if (!(gap <= limit)) fail_msg("%s: expected %.9g, got %.9g (difference %.3g)", where, a, b, gap);
        if (gap > *largest) *largest = gap;
    }
}

static void check_result(laya_context *context, const suite *s, laya_json_value json, const char *name, worst *w)
{
    laya_buffer state, questions;
    laya_predict_options options;
    laya_json result;
    laya_error error = {0};
    const char *text;
    size_t size;
    laya_buffer_init(&state, NULL);
    laya_buffer_init(&questions, NULL);
    laya_json_write_python(&state, laya_json_get(json, "state"));
    laya_json_write_python(&questions, laya_json_get(json, "questions"));
    laya_predict_options_init(&options);
    options.flags = LAYA_PREDICT_RAW | LAYA_PREDICT_STATE_TOKEN_COUNTS;
    if (laya_predict(context, state.data, state.size, questions.data, questions.size, &options, &text, &size) !=
        LAYA_OK)
        fail_msg("%s: %s", name, laya_context_error(context)->message);
    assert_int_equal(laya_json_parse(&result, text, size, NULL, &error), LAYA_OK);
    laya_json_value root = laya_json_root(&result), answers = laya_json_get(root, "answers");
    laya_json_iterator mine = laya_json_first(answers);
    for (laya_json_iterator it = laya_json_first(laya_json_get(json, "rows")); laya_json_present(it.value);
         laya_json_next(&it), laya_json_next(&mine)) {
        laya_json_value raw = laya_json_get(mine.value, "raw");
        compare_numbers(laya_json_get(it.value, "logits"), laya_json_get(raw, "logits"), false, s->logits, &w->logits,
                        name);
        compare_numbers(laya_json_get(it.value, "act_logits"), laya_json_get(raw, "action_logits"), true, s->actions,
                        &w->actions, name);
        w->rows++;
    }
    check_equal(laya_json_get(json, "result"), root, name);
    laya_json_close(&result);
    laya_buffer_close(&state);
    laya_buffer_close(&questions);
}

static void run_suite(const suite *s, laya_precision precision)
{
    char folder[TEST_PATH_SIZE];
    laya_model *model = test_open_model(s->model);
    laya_context *context;
    laya_context_options options;
    laya_error error = {0};
    golden_list list;
    worst w = {0};
    size_t longest = precision == LAYA_PRECISION_DOUBLE ? MAX_DOUBLE_ROW : MAX_TOKENS;
    laya_context_options_init(&options);
    options.precision = precision;
    options.threads = 2;
    if (laya_context_open(model, &options, &context, &error) != LAYA_OK) fail_msg("%s", error.message);
    golden_find(&list, test_path(folder, s->goldens));
    for (size_t at = 0; at < list.count; at++) {
        golden_document golden;
        laya_json_value json = golden_open(&golden, folder, list.names[at]);
        if (check_rows(model, json, list.names[at]) <= longest) check_result(context, s, json, list.names[at], &w);
        golden_close(&golden);
    }
    print_message(
        "%s, %s: %zu cases, %zu rows; largest difference of logits %.3g, of action logits %.3g (relative)\n",
        s->model, precision == LAYA_PRECISION_DOUBLE ? "float64" : "float32", list.count, w.rows, w.logits,
        w.actions);
    assert_int_equal(list.count, s == &demo ? 40 : 24);
    laya_context_close(context);
    laya_model_close(model);
}

static void demo_float(void **unused)
{
    (void)unused;
    run_suite(&demo, LAYA_PRECISION_FLOAT);
}

static void demo_double(void **unused)
{
    (void)unused;
    run_suite(&demo, LAYA_PRECISION_DOUBLE);
}

static void tiny_float(void **unused)
{
    (void)unused;
    run_suite(&tiny, LAYA_PRECISION_FLOAT);
}

static void tiny_double(void **unused)
{
    (void)unused;
    run_suite(&tiny, LAYA_PRECISION_DOUBLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(demo_float), cmocka_unit_test(demo_double),
                                       cmocka_unit_test(tiny_float), cmocka_unit_test(tiny_double)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
