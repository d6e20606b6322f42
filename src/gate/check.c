/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/check.h"

#include "base/error.h"
#include "predict/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ comparing documents */

/* Whether two values are the same text, whatever their order in the document. Members keep their order. */
static bool same_value(laya_json_value a, laya_json_value b)
{
    if (!laya_json_present(a) || !laya_json_present(b)) return laya_json_present(a) == laya_json_present(b);
    const laya_json_node *x = &a.doc->nodes[a.at], *y = &b.doc->nodes[b.at];
    uint32_t count = x->end - a.at;
    if (y->end - b.at != count) return false;
    for (uint32_t at = 0; at < count; at++, x++, y++) {
        if (x->type != y->type || x->size != y->size) return false;
        bool text = x->type == LAYA_JSON_STRING || x->type == LAYA_JSON_INTEGER || x->type == LAYA_JSON_FLOAT;
        if (text && memcmp(x->text, y->text, x->size) != 0) return false;
    }
    return true;
}

static void skip_raw(laya_json_iterator *it)
{
    if (laya_json_present(it->value) && laya_json_equals(it->key, "raw")) laya_json_next(it);
}

static bool same_answer(laya_json_value a, laya_json_value b)
{
    laya_json_iterator x = laya_json_first(a), y = laya_json_first(b);
    for (;; laya_json_next(&x), laya_json_next(&y)) {
        skip_raw(&x);
        skip_raw(&y);
        if (!laya_json_present(x.value) || !laya_json_present(y.value))
            return laya_json_present(x.value) == laya_json_present(y.value);
        if (!same_value(x.key, y.key) || !same_value(x.value, y.value)) return false;
    }
}

bool laya_same_published(const laya_json *a, const laya_json *b)
{
    laya_json_value x = laya_json_root(a), y = laya_json_root(b);
    if (!same_value(laya_json_get(x, "usage"), laya_json_get(y, "usage"))) return false;
    laya_json_iterator p = laya_json_first(laya_json_get(x, "answers"));
    laya_json_iterator q = laya_json_first(laya_json_get(y, "answers"));
    for (; laya_json_present(p.value) && laya_json_present(q.value); laya_json_next(&p), laya_json_next(&q)) {
        if (!same_value(p.key, q.key) || !same_answer(p.value, q.value)) return false;
    }
    return laya_json_present(p.value) == laya_json_present(q.value);
}

/* The same members with the same values, in any order. */
static bool same_usage(laya_json_value a, laya_json_value b)
{
    if (laya_json_size(a) != laya_json_size(b)) return false;
    for (laya_json_iterator it = laya_json_first(a); laya_json_present(it.value); laya_json_next(&it)) {
        bool found = false;
        for (laya_json_iterator other = laya_json_first(b); laya_json_present(other.value); laya_json_next(&other))
            found = found || (same_value(it.key, other.key) && same_value(it.value, other.value));
        if (!found) return false;
    }
    return true;
}

/* ------------------------------------------------------------------ numbers */

static double larger(double worst, double value)
{
    if (isnan(value)) return INFINITY;
    return value > worst ? value : worst;
}

static double largest_difference(const double *a, const double *b, size_t count)
{
    double worst = 0;
    for (size_t at = 0; at < count; at++) worst = larger(worst, fabs(a[at] - b[at]));
    return worst;
}

/* The first maximum, and its distance to the next value; infinite for one value. */
static double margin_of(const double *values, size_t count, size_t *best)
{
    double second = -INFINITY;
    *best = 0;
    for (size_t at = 1; at < count; at++) {
        if (values[at] > values[*best]) *best = at;
    }
    for (size_t at = 0; at < count; at++) {
        if (at != *best && values[at] > second) second = values[at];
    }
    return values[*best] - second;
}

/* Calibrated as the answers are: float32 values, as doubles. NULL when there is no memory. */
static double *probabilities_of(const double *logits, size_t count, double temperature, laya_arena *arena)
{
    float *narrow = laya_arena_alloc(arena, count, sizeof *narrow);
    double *wide = laya_arena_alloc(arena, count, sizeof *wide);
    if (!narrow || !wide) return NULL;
    laya_softmax(logits, count, temperature, narrow);
    for (size_t at = 0; at < count; at++) wide[at] = (double)narrow[at];
    return wide;
}

/* ------------------------------------------------------------------ reading an answer */

typedef struct raw_answer {
    double *logits, *action_logits, temperature;
    uint32_t tokens;
    bool finite;
} raw_answer;

/* False when it is no array of `count` numbers. */
static bool read_numbers(laya_json_value array, size_t count, double *numbers, bool *finite)
{
    if (laya_json_typeof(array) != LAYA_JSON_ARRAY || laya_json_size(array) != count) return false;
    size_t at = 0;
    for (laya_json_iterator it = laya_json_first(array); laya_json_present(it.value); laya_json_next(&it), at++) {
        if (!laya_json_to_double(it.value, &numbers[at])) return false;
        if (!isfinite(numbers[at])) *finite = false;
    }
    return true;
}

/* Every number below a value. */
static bool numbers_finite(laya_json_value value)
{
    const laya_json_node *nodes = value.doc->nodes;
    for (uint32_t at = value.at; at < nodes[value.at].end; at++) {
        double number;
        if (laya_json_to_double((laya_json_value){value.doc, at}, &number) && !isfinite(number)) return false;
    }
    return true;
}

/* Returns false with the failure set, or NULL memory in `logits`. */
static bool read_raw(laya_case_check *check, const laya_reference_item *item, laya_json_value answer, raw_answer *raw)
{
    laya_json_value from = laya_json_get(answer, "raw");
    raw->finite = true;
    bool complete = read_numbers(laya_json_get(from, "logits"), item->options, raw->logits, &raw->finite) &&
                    read_numbers(laya_json_get(from, "action_logits"), item->actions, raw->action_logits,
                                 &raw->finite) &&
                    laya_json_to_double(laya_json_get(from, "temperature"), &raw->temperature) &&
                    laya_json_to_uint32(laya_json_get(from, "input_tokens"), &raw->tokens);
    if (complete && raw->temperature > 0) {
        raw->finite = raw->finite && numbers_finite(answer);
        return true;
    }
    snprintf(check->failure, sizeof check->failure,
             "the answer to '%s' is missing, or has not %u logits, %u action logits, a temperature and a token count",
             item->id, item->options, item->actions);
    return false;
}

/* ------------------------------------------------------------------ one question */

static double published_difference(laya_json_value expected, laya_json_value found)
{
    double a, b;
    if (!laya_json_to_double(expected, &a)) return 0; /* the reference does not have it */
    return laya_json_to_double(found, &b) ? fabs(a - b) : INFINITY;
}

static double published_action_error(laya_json_value expected, laya_json_value found)
{
    return published_difference(laya_json_get(laya_json_get(expected, "action"), "act_probability"),
                                laya_json_get(laya_json_get(found, "action"), "act_probability"));
}

/* Rounded probabilities, and the truth of a statement: what users see. */
static double published_error(laya_json_value expected, laya_json_value found)
{
    double worst = larger(0, published_difference(laya_json_get(expected, "noul"), laya_json_get(found, "noul")));
    laya_json_iterator it = laya_json_first(laya_json_get(expected, "probabilities"));
    laya_json_iterator other = laya_json_first(laya_json_get(found, "probabilities"));
    for (; laya_json_present(it.value); laya_json_next(&it), laya_json_next(&other))
        worst = larger(worst, same_value(it.key, other.key) ? published_difference(it.value, other.value) : INFINITY);
    return worst;
}

static bool same_label(laya_json_value expected, laya_json_value found)
{
    laya_json_value label = laya_json_get(expected, "choice");
    return !laya_json_present(label) || same_value(label, laya_json_get(found, "choice"));
}

/* Decision, margins, probabilities. */
static laya_status compare_options(laya_question_check *q, const raw_answer *raw, laya_arena *arena,
                                   laya_error *error)
{
    const laya_reference_item *item = q->item;
    size_t best, unused;
    double *expected = probabilities_of(item->logits, item->options, raw->temperature, arena);
    double *found = probabilities_of(raw->logits, item->options, raw->temperature, arena);
    if (!expected || !found) return laya_fail_memory(error, item->options * sizeof *found);
    q->temperature = raw->temperature;
    q->logit_error = larger(q->logit_error, largest_difference(item->logits, raw->logits, item->options));
    q->probability_error = larger(q->probability_error, largest_difference(expected, found, item->options));
    q->margin = margin_of(expected, item->options, &q->reference_best);
    q->near_tie = q->margin < LAYA_GATE_NEAR_TIE;
    q->logit_margin = margin_of(item->logits, item->options, &unused);
    q->certified = 2 * q->logit_error < q->logit_margin;
    (void)margin_of(found, item->options, &best);
    if (q->decided) q->best = best;
    q->decided = q->decided && isfinite(q->logit_error) && best == q->reference_best;
    return LAYA_OK;
}

static laya_status compare_action(laya_question_check *q, const raw_answer *raw, laya_arena *arena, laya_error *error)
{
    const laya_reference_item *item = q->item;
    if (item->actions == 0) return LAYA_OK;
    double *expected = probabilities_of(item->action_logits, item->actions, 1, arena);
    double *found = probabilities_of(raw->action_logits, item->actions, 1, arena);
    if (!expected || !found) return laya_fail_memory(error, item->actions * sizeof *found);
    q->action_probability_error = larger(q->action_probability_error, fabs(expected[0] - found[0]));
    q->action_logit_error = larger(q->action_logit_error,
                                   largest_difference(item->action_logits, raw->action_logits, item->actions));
    return LAYA_OK;
}

static laya_status check_question(laya_case_check *check, laya_question_check *q, laya_json_value expected,
                                  laya_json_value found, laya_arena *arena, laya_error *error)
{
    raw_answer raw = {.logits = laya_arena_alloc(arena, q->item->options, sizeof *raw.logits),
                      .action_logits = laya_arena_alloc(arena, q->item->actions, sizeof *raw.action_logits)};
    if (!raw.logits || !raw.action_logits) return laya_fail_memory(error, 0);
    if (!read_raw(check, q->item, found, &raw)) return LAYA_OK;
    LAYA_TRY(compare_options(q, &raw, arena, error));
    LAYA_TRY(compare_action(q, &raw, arena, error));
    q->published_error = larger(q->published_error, published_error(expected, found));
    q->published_action_error = larger(q->published_action_error, published_action_error(expected, found));
    q->decided = q->decided && same_label(expected, found);
    q->finite = q->finite && raw.finite;
    q->tokens = q->tokens && raw.tokens == q->item->count;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ one case */

void laya_case_check_init(laya_case_check *check, const laya_reference_case *reference,
                          laya_question_check *questions, uint32_t length, uint32_t markers)
{
    *check = (laya_case_check){.reference = reference, .questions = questions, .usage = true, .stable = true};
    for (size_t at = 0; at < reference->input.count; at++) {
        const laya_reference_item *item = &reference->items[at];
        questions[at] = (laya_question_check){.item = item, .decided = true, .finite = true, .tokens = true};
        if (item->count > check->needed_length) check->needed_length = item->count;
        if (item->options > check->needed_markers) check->needed_markers = item->options;
    }
    check->evaluated = check->needed_length <= length && check->needed_markers <= markers;
}

laya_status laya_case_check_answer(laya_case_check *check, const laya_json *answer, laya_arena *arena,
                                   laya_error *error)
{
    const laya_reference_case *reference = check->reference;
    laya_json_value root = laya_json_root(answer), answers = laya_json_get(root, "answers");
    check->usage = check->usage && same_usage(reference->usage, laya_json_get(root, "usage"));
    for (size_t at = 0; at < reference->input.count && !check->failure[0]; at++) {
        laya_question_check *q = &check->questions[at];
        LAYA_TRY(check_question(check, q, laya_json_get(reference->answers, q->item->id),
                                laya_json_get(answers, q->item->id), arena, error));
    }
    return LAYA_OK;
}

bool laya_probabilities_passed(const laya_question_check *q)
{
    return q->probability_error <= LAYA_GATE_PROBABILITY &&
           q->published_error <= LAYA_GATE_PROBABILITY + LAYA_GATE_PUBLISHED;
}

bool laya_action_passed(const laya_question_check *q)
{
    return q->action_probability_error <= LAYA_GATE_PROBABILITY &&
           q->published_action_error <= LAYA_GATE_PROBABILITY + LAYA_GATE_PUBLISHED;
}

bool laya_question_passed(const laya_question_check *q)
{
    return q->decided && q->finite && q->tokens && laya_probabilities_passed(q) && laya_action_passed(q);
}

bool laya_case_passed(const laya_case_check *check)
{
    if (!check->evaluated || check->repeats == 0 || check->failure[0] || !check->usage || !check->stable)
        return false;
    for (size_t at = 0; at < check->reference->input.count; at++) {
        if (!laya_question_passed(&check->questions[at])) return false;
    }
    return true;
}
