/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded cases, everything around the network: state and question texts are rendered again, and the answers are
 * computed again from the recorded logits, to the last digit of every number.
 *
 * tests/golden/upstream comes from upstream's Python with the published weights; tests/golden/laya-demo and
 * laya-tiny-random from our own PyTorch implementation. Token ids need the tokenizers: test_golden has them for our
 * checkpoints, laya-upstream-rows for upstream's (docs/TESTING.md).
 */
#include "support.h"

#include "base/number.h"
#include "golden_files.h"
#include "model/calibration.h"
#include "predict/answer.h"
#include "predict/result_json.h"
#include "text/question.h"

typedef struct checkpoint {
    char folder[TEST_PATH_SIZE];
    laya_calibration calibration;
    const char *mask; /* text that the prompt replaces by a space */
    uint32_t sep;     /* id; 0 in sets whose usage is not derived here */
    unsigned differences;
    unsigned rows;
    unsigned numbers;
} checkpoint;

/* ------------------------------------------------------------------ comparing JSON */

/* `before` is the last string that was equal, most often the key. */
static void complain(checkpoint *set, const char *where, laya_json_value before, laya_json_value got,
                     laya_json_value want)
{
    laya_buffer text;
    laya_buffer_init(&text, NULL);
    laya_buffer_printf(&text, "%s, after ", where);
    laya_json_write_python(&text, before);
    laya_buffer_puts(&text, ": got ");
    laya_json_write_python(&text, got);
    laya_buffer_puts(&text, ", expected ");
    laya_json_write_python(&text, want);
    print_error("%s\n", text.failed ? where : text.data);
    laya_buffer_close(&text);
    set->differences++;
}

/*
 * Same members in the same order, same number texts. Documents are arrays of nodes in document order, so that equal values
 * are equal runs of nodes; keys are string nodes.
 */
static void compare(checkpoint *set, const char *where, laya_json_value got, laya_json_value want)
{
    if (!laya_json_present(got) || !laya_json_present(want)) {
        complain(set, where, want, got, want);
        return;
    }
    const laya_json_node *a = got.doc->nodes + got.at, *b = want.doc->nodes + want.at;
    laya_json_value before = {0};
    for (uint32_t at = 0; at < b->end - want.at; at++) {
        const laya_json_node *x = a + at, *y = b + at;
        laya_json_value inner_got = {got.doc, got.at + at}, inner_want = {want.doc, want.at + at};
        bool same = x->type == y->type && x->size == y->size;
        if (y->type == LAYA_JSON_INTEGER || y->type == LAYA_JSON_FLOAT || y->type == LAYA_JSON_STRING)
            same = same && (y->size == 0 || memcmp(x->text, y->text, y->size) == 0);
        if (!same) {
            complain(set, where, before, inner_got, inner_want);
            return;
        }
        if (y->type == LAYA_JSON_STRING) before = inner_want;
        if (y->type == LAYA_JSON_INTEGER || y->type == LAYA_JSON_FLOAT) set->numbers++;
    }
}

static void expect_text(checkpoint *set, const char *where, laya_span got, laya_json_value want)
{
    if (golden_same(want, got)) return;
    print_error("%s: got '%.*s'\n", where, (int)got.size, got.text);
    set->differences++;
}

/* ------------------------------------------------------------------ one row */

/* head_text was recorded with the mask text already replaced, options were not. */
static laya_span without_mask(laya_span text, const char *mask, laya_buffer *out)
{
    size_t size = strlen(mask);
    laya_buffer_clear(out);
    for (size_t at = 0; at < text.size;) {
        bool hit = text.size - at >= size && memcmp(text.text + at, mask, size) == 0;
        laya_buffer_putc(out, hit ? ' ' : text.text[at]);
        at += hit ? size : 1;
    }
    return (laya_span){out->data, out->size};
}

static void check_texts(checkpoint *set, const char *where, const laya_query *query, laya_json_value row)
{
    laya_buffer scratch;
    laya_buffer_init(&scratch, NULL);
    expect_text(set, where, query->id, laya_json_get(row, "qid"));
    expect_text(set, where, without_mask(query->head, set->mask, &scratch), laya_json_get(row, "head_text"));
    laya_buffer_close(&scratch);
    laya_json_value options = laya_json_get(row, "options");
    assert_int_equal(laya_json_size(options), query->count);
    laya_json_iterator it = laya_json_first(options);
    for (uint32_t at = 0; at < query->count; at++, laya_json_next(&it))
        expect_text(set, where, query->options[at], it.value);
}

/*
 * Numbers of a list. In upstream's files each is a float32 in all its digits, which is asserted; our own files have nine
 * digits, which stand for the nearest float32.
 */
static double *numbers_of(laya_arena *arena, laya_json_value list, bool all_digits, size_t *count)
{
    *count = laya_json_size(list);
    double *values = laya_arena_alloc(arena, *count, sizeof *values);
    assert_non_null(values);
    assert_int_equal(golden_doubles(list, values, *count), *count);
    for (size_t at = 0; at < *count; at++) {
        double value = values[at];
        values[at] = (double)(float)value;
        if (all_digits) assert_true(values[at] == value);
    }
    return values;
}

static void compute(checkpoint *set, const laya_query *query, laya_json_value row, laya_arena *arena,
                    laya_answer *answer)
{
    bool upstream = set->sep != 0;
    *answer = (laya_answer){.type = query->type, .distinct_options = query->count};
    answer->logits = numbers_of(arena, laya_json_get(row, "logits"), upstream, &answer->count);
    answer->action_logits = numbers_of(arena, laya_json_get(row, "act_logits"), upstream, &answer->action_count);
    assert_int_equal(answer->count, query->count);
    size_t count = answer->count > answer->action_count ? answer->count : answer->action_count;
    float *probabilities = laya_arena_alloc(arena, answer->count, sizeof *probabilities);
    float *scratch = laya_arena_alloc(arena, count, sizeof *scratch);
    assert_non_null(probabilities);
    assert_non_null(scratch);
    answer->temperature = laya_temperature_of(laya_calibration_for(&set->calibration, NULL), answer->type,
                                              answer->count);
    laya_softmax(answer->logits, answer->count, answer->temperature, probabilities);
    answer->probabilities = probabilities;
    laya_answer_compute(answer, scratch);
}

static uint32_t *ids_of(laya_arena *arena, laya_json_value list, uint32_t *count)
{
    *count = (uint32_t)laya_json_size(list);
    uint32_t *ids = laya_arena_alloc(arena, *count, sizeof *ids);
    assert_non_null(ids);
    assert_int_equal(golden_uints(list, ids, *count), *count);
    return ids;
}

/* Whether the block at marker a has the ids of the one at b; blocks end at the next marker or at `end`. */
static bool same_block(const uint32_t *ids, const uint32_t *markers, uint32_t count, uint32_t end, uint32_t a,
                       uint32_t b)
{
    uint32_t a_end = a + 1 < count ? markers[a + 1] : end, b_end = b + 1 < count ? markers[b + 1] : end;
    uint32_t size = a_end - markers[a];
    return size == b_end - markers[b] && memcmp(ids + markers[a], ids + markers[b], size * sizeof *ids) == 0;
}

/*
 * The usage numbers of an upstream row from its ids: no text of those cases spells a separator, so the state is
 * what lies between the second and the third.
 */
static void derive_usage(checkpoint *set, laya_json_value row, laya_json_value usage, laya_arena *arena,
                         laya_answer *answer, uint32_t *state_kept)
{
    uint32_t count, options, seps[3] = {0}, found = 0;
    laya_json_value list = laya_json_get(row, "input_ids");
    if (!laya_json_present(list)) { /* long_state, second row: only the length is on file */
        answer->input_tokens = golden_uint(row, "input_ids_length");
        answer->state_tokens_dropped = golden_uint(usage, "state_tokens_dropped");
        return;
    }
    uint32_t *ids = ids_of(arena, list, &count);
    uint32_t *markers = ids_of(arena, laya_json_get(row, "markers"), &options);
    assert_int_equal(options, answer->count);
    for (uint32_t at = 0; at < count; at++) {
        if (ids[at] != set->sep) continue;
        assert_true(found < 3);
        seps[found++] = at;
    }
    assert_int_equal(found, 3);
    assert_int_equal(seps[2], count - 1);
    *state_kept = seps[2] - seps[1] - 1;
    answer->input_tokens = count;
    answer->distinct_options = 0;
    for (uint32_t at = 0; at < options; at++) {
        bool fresh = true;
        for (uint32_t other = 0; other < at; other++) {
            if (same_block(ids, markers, options, seps[1], at, other)) fresh = false;
        }
        answer->distinct_options += fresh;
    }
    if (count == 1024) /* the longest row of both checkpoints: the state was cut */
        answer->state_tokens_dropped = golden_uint(usage, "state_tokens") - *state_kept;
}

/* ------------------------------------------------------------------ one case */

static void compare_result(checkpoint *set, const char *name, const laya_query *queries, const laya_result *result,
                           laya_json_value want)
{
    laya_buffer out;
    laya_json doc;
    laya_buffer_init(&out, NULL);
    laya_result_write(&out, queries, result, NULL, LAYA_PREDICT_STATE_TOKEN_COUNTS);
    assert_false(out.failed);
    assert_int_equal(laya_json_parse(&doc, out.data, out.size, NULL, NULL), LAYA_OK);
    laya_json_value got = laya_json_root(&doc);
    compare(set, name, laya_json_get(got, "model"), laya_json_get(want, "model"));
    compare(set, name, laya_json_get(got, "answers"), laya_json_get(want, "answers"));
    if (set->sep) {
        compare(set, name, laya_json_get(got, "usage"), laya_json_get(want, "usage"));
        size_t others = laya_json_present(laya_json_get(want, "shortlist")) ? 1 : 0;
        assert_int_equal(laya_json_size(want), laya_json_size(got) + others);
    }
    laya_json_close(&doc);
    laya_buffer_close(&out);
}

static void check_case(checkpoint *set, const char *name)
{
    golden_document document;
    laya_arena arena;
    laya_buffer scratch;
    laya_error error;
    laya_arena_init(&arena, NULL);
    laya_buffer_init(&scratch, NULL);
    laya_json_value root = golden_open(&document, set->folder, name);
    expect_text(set, name, golden_state(laya_json_get(root, "state"), &scratch),
                laya_json_get(root, "serialized_state"));

    laya_json_value questions = golden_questions(root), want = laya_json_get(root, "result");
    laya_json_value usage = laya_json_get(want, "usage"), rows = laya_json_get(root, "rows");
    laya_result result = {.count = laya_json_size(questions)};
    assert_int_equal(laya_json_size(rows), result.count);
    laya_query *queries = laya_arena_alloc(&arena, result.count, sizeof *queries);
    laya_answer *answers = laya_arena_alloc(&arena, result.count, sizeof *answers);
    assert_non_null(queries);
    assert_non_null(answers);
    result.answers = answers;
    laya_json_iterator question = laya_json_first(questions), row = laya_json_first(rows);
    for (size_t at = 0; at < result.count; at++, laya_json_next(&question), laya_json_next(&row)) {
        uint32_t kept = 0;
        if (laya_query_from_json(&queries[at], question.key, question.value, &arena, &error) != LAYA_OK)
            fail_msg("%s: %s", name, error.message);
        check_texts(set, name, &queries[at], row.value);
        compute(set, &queries[at], row.value, &arena, &answers[at]);
        if (set->sep) derive_usage(set, row.value, usage, &arena, &answers[at], &kept);
        result.input_tokens += answers[at].input_tokens;
        if (answers[at].state_tokens_dropped > result.state_tokens_dropped)
            result.state_tokens_dropped = answers[at].state_tokens_dropped;
        if (at == 0) result.state_tokens = kept + answers[at].state_tokens_dropped;
        set->rows++;
    }
    compare_result(set, name, queries, &result, want);
    golden_close(&document);
    laya_buffer_close(&scratch);
    laya_arena_close(&arena);
}

static void check_all(checkpoint *set, size_t cases)
{
    golden_list list;
    golden_find(&list, set->folder);
    assert_int_equal(list.count, cases);
    for (size_t at = 0; at < list.count; at++) check_case(set, list.names[at]);
    print_message("%zu cases, %u rows, %u numbers compared, %u differences\n", list.count, set->rows, set->numbers,
                  set->differences);
    laya_calibration_close(&set->calibration);
    assert_int_equal(set->differences, 0);
}

/* ------------------------------------------------------------------ upstream's cases */

static void read_calibration(checkpoint *set, laya_json_value agent)
{
    laya_error error;
    if (laya_calibration_read(&set->calibration, agent, (laya_json_value){0}, NULL, NULL, &error) != LAYA_OK)
        fail_msg("%s", error.message);
}

/* meta.json also has the temperatures that upstream used, after clamping. */
static void check_temperatures(const laya_calibration *calibration, laya_json_value meta)
{
    double number;
    unsigned type = 0;
    const laya_temperatures *base = laya_calibration_for(calibration, NULL);
    laya_json_iterator it = laya_json_first(laya_json_get(meta, "temperature"));
    for (; laya_json_present(it.value); laya_json_next(&it), type++) {
        assert_true(laya_json_to_double(it.value, &number));
        assert_true(number == base->by_type[type]);
    }
    assert_int_equal(type, 3);
    size_t found = 0;
    laya_json_value buckets = laya_json_get(meta, "temperature_by_options");
    for (type = 0; type < 3; type++) {
        for (unsigned bucket = 0; bucket < LAYA_BUCKETS; bucket++) {
            laya_json_value value = laya_json_get(buckets, laya_bucket_name((laya_question_type)type, bucket));
            if (!laya_json_present(value)) continue;
            assert_true(laya_json_to_double(value, &number));
            assert_true(number == base->by_bucket[type][bucket]);
            found++;
        }
    }
    assert_int_equal(found, laya_json_size(buckets));
}

static void check_upstream(const char *folder, const char *mask, size_t cases)
{
    checkpoint set = {.mask = mask};
    golden_document document;
    laya_json_value meta = golden_open(&document, test_path(set.folder, folder), "meta");
    set.sep = golden_uint(laya_json_get(meta, "special_tokens"), "sep_id");
    assert_true(laya_json_equals(laya_json_get(laya_json_get(meta, "special_tokens"), "mask_token"), mask));
    read_calibration(&set, laya_json_get(meta, "config"));
    check_temperatures(&set.calibration, meta);
    golden_close(&document);
    check_all(&set, cases);
}

static void upstream_multilingual(void **state)
{
    (void)state;
    check_upstream("tests/golden/upstream/multilingual", "<mask>", 16);
}

static void upstream_typed_decisions(void **state)
{
    (void)state;
    check_upstream("tests/golden/upstream/typed-decisions", "[MASK]", 14);
}

/* The published English checkpoint has no cases, only its configuration. */
static void upstream_english_temperatures(void **state)
{
    (void)state;
    checkpoint set = {0};
    golden_document document;
    laya_json_value meta = golden_open(&document, test_path(set.folder, "tests/golden/upstream/english"), "meta");
    read_calibration(&set, laya_json_get(meta, "config"));
    check_temperatures(&set.calibration, meta);
    laya_calibration_close(&set.calibration);
    golden_close(&document);
}

/* Doubles by their bits, and how Python writes them. */
static void upstream_repr(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    golden_document document;
    laya_json_value list = golden_open(&document, test_path(path, "tests/golden/upstream/multilingual"),
                                       "repr_probe");
    assert_int_equal(laya_json_size(list), 40);
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it)) {
        char bits_text[17] = "", text[LAYA_NUMBER_SIZE];
        size_t size;
        const char *hex = laya_json_text(laya_json_get(it.value, "bits"), &size);
        assert_int_equal(size, 16);
        memcpy(bits_text, hex, size);
        uint64_t bits = strtoull(bits_text, NULL, 16);
        double value;
        memcpy(&value, &bits, sizeof value);
        laya_format_repr(text, value);
        if (!laya_json_equals(laya_json_get(it.value, "repr"), text)) fail_msg("%s: got %s", bits_text, text);
    }
    golden_close(&document);
}

/* ------------------------------------------------------------------ our own cases */

static void check_own(const char *folder, const char *checkpoint_folder, const char *mask, size_t cases)
{
    checkpoint set = {.mask = mask};
    golden_document document;
    read_calibration(&set, golden_open(&document, test_path(set.folder, checkpoint_folder), "rl_agent_config"));
    golden_close(&document);
    test_path(set.folder, folder);
    check_all(&set, cases);
}

static void demo(void **state)
{
    (void)state;
    check_own("tests/golden/laya-demo", TEST_DEMO, "<mask>", 40);
}

static void tiny(void **state)
{
    (void)state;
    check_own("tests/golden/laya-tiny-random", TEST_TINY, "[MASK]", 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(upstream_multilingual),
                                       cmocka_unit_test(upstream_typed_decisions),
                                       cmocka_unit_test(upstream_english_temperatures),
                                       cmocka_unit_test(upstream_repr),
                                       cmocka_unit_test(demo),
                                       cmocka_unit_test(tiny)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
