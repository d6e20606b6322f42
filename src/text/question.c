/* SPDX-License-Identifier: Apache-2.0 */
#include "text/question.h"

#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const laya_span noul_defaults[2] = {
    {"no, the statement does not hold", sizeof "no, the statement does not hold" - 1},
    {"yes, the statement holds", sizeof "yes, the statement holds" - 1},
};
static const laya_span noul_labels[2] = {{"false", 5}, {"true", 4}};

const char *laya_question_type_name(laya_question_type type)
{
    static const char *const names[] = {"choice", "score", "noul"};
    return names[type];
}

/* ------------------------------------------------------------------ small helpers */

typedef struct renderer {
    laya_arena *arena;
    laya_span id;
    laya_buffer scratch;
    laya_error *error;
} renderer;

static laya_span span_of(const char *text)
{
    return (laya_span){text, strlen(text)};
}

static bool same_span(laya_span a, laya_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.text, b.text, a.size) == 0);
}

/* The scratch buffer's text, copied to the arena. */
static laya_status take(renderer *r, laya_span *span)
{
    char *copy = r->scratch.failed ? NULL : laya_arena_copy(r->arena, r->scratch.data, r->scratch.size);
    if (!copy) return laya_fail_memory(r->error, r->scratch.size);
    *span = (laya_span){copy, r->scratch.size};
    laya_buffer_clear(&r->scratch);
    return LAYA_OK;
}

static void *never(void *user, size_t size)
{
    (void)user;
    (void)size;
    return NULL;
}

static void nothing(void *user, void *block)
{
    (void)user;
    (void)block;
}

laya_status laya_fail_question(laya_error *error, laya_span id, const char *message)
{
    /* A buffer that cannot grow: a very long id is cut, and no memory is needed to report an error. */
    char name[384] = "";
    laya_buffer out = {.allocator = {NULL, never, nothing}, .data = name, .capacity = sizeof name};
    laya_json_write_string_repr(&out, id.text, id.size);
    return laya_fail(error, LAYA_ERROR_INPUT, "question %s%s: %s", name, out.failed ? "...'" : "", message);
}

static laya_status fail(renderer *r, const char *message)
{
    return laya_fail_question(r->error, r->id, message);
}

/* before + repr(value) + after */
static laya_status fail_value(renderer *r, const char *before, laya_json_value value, const char *after)
{
    laya_buffer *out = &r->scratch;
    laya_buffer_clear(out);
    laya_buffer_puts(out, before);
    if (laya_json_present(value))
        laya_json_write_repr(out, value);
    else
        laya_buffer_puts(out, "None");
    laya_buffer_puts(out, after);
    if (out->failed) return laya_fail_memory(r->error, 0);
    return fail(r, out->data);
}

/* Python's str.isspace without the characters that no one types: White_Space and U+001C..U+001F. */
static bool is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
           code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Python's str.strip. */
static laya_span strip(laya_span span)
{
    size_t start = span.size, end = 0;
    for (size_t at = 0; at < span.size;) {
        size_t first = at;
        if (is_space(laya_utf8_next(span.text, &at))) continue;
        if (start == span.size) start = first;
        end = at;
    }
    if (end == 0) return (laya_span){"", 0};
    return (laya_span){span.text + start, end - start};
}

static bool is_empty_description(laya_json_value value)
{
    return laya_json_is_null(value) || laya_json_equals(value, "");
}

/* A string as it is, anything else as Python's JSON text. */
static laya_status text_of(renderer *r, laya_json_value value, laya_span *span)
{
    if (laya_json_typeof(value) == LAYA_JSON_STRING) {
        span->text = laya_json_text(value, &span->size);
        return LAYA_OK;
    }
    laya_json_write_python(&r->scratch, value);
    return take(r, span);
}

/* "first: second" */
static laya_status joined(renderer *r, laya_span first, laya_span second, laya_span *span)
{
    laya_buffer_append(&r->scratch, first.text, first.size);
    laya_buffer_puts(&r->scratch, ": ");
    laya_buffer_append(&r->scratch, second.text, second.size);
    return take(r, span);
}

static laya_status level_text(renderer *r, uint32_t level, laya_span description, laya_span *span)
{
    laya_buffer_printf(&r->scratch, "level %u: ", level);
    laya_buffer_append(&r->scratch, description.text, description.size);
    return take(r, span);
}

static laya_status head_text(renderer *r, laya_question_type type, laya_span instructions, laya_span *span)
{
    laya_buffer_printf(&r->scratch, "%s question: ", laya_question_type_name(type));
    laya_buffer_append(&r->scratch, instructions.text, instructions.size);
    return take(r, span);
}

static laya_status new_spans(renderer *r, size_t count, laya_span **spans)
{
    *spans = laya_arena_alloc(r->arena, count, sizeof **spans);
    if (!*spans) return laya_fail_memory(r->error, count * sizeof **spans);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ choice labels */

typedef struct ranked {
    laya_span text;
    uint32_t index;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    size_t common = a->text.size < b->text.size ? a->text.size : b->text.size;
    int order = common ? memcmp(a->text.text, b->text.text, common) : 0;
    if (order) return order;
    if (a->text.size != b->text.size) return a->text.size < b->text.size ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The first text that an earlier one equals: *later repeats *earlier. *later = count when there is none. */
static laya_status find_repeat(renderer *r, const laya_span *texts, uint32_t count, uint32_t *later,
                               uint32_t *earlier)
{
    ranked *sorted = laya_arena_alloc(r->arena, count, sizeof *sorted);
    if (!sorted) return laya_fail_memory(r->error, count * sizeof *sorted);
    for (uint32_t i = 0; i < count; i++) sorted[i] = (ranked){texts[i], i};
    qsort(sorted, count, sizeof *sorted, compare_ranked);
    *later = count;
    for (uint32_t first = 0, next = 1; next < count; next++) {
        if (!same_span(sorted[first].text, sorted[next].text)) {
            first = next;
        } else if (sorted[next].index < *later) {
            *later = sorted[next].index;
            *earlier = sorted[first].index;
        }
    }
    return LAYA_OK;
}

/* What Python compares a label by: 1, 1.0 and True are one key. */
static laya_status key_text(renderer *r, laya_json_value label, laya_span *key)
{
    laya_json_type type = laya_json_typeof(label);
    double number;
    if (type == LAYA_JSON_TRUE || type == LAYA_JSON_FALSE) {
        laya_buffer_putc(&r->scratch, type == LAYA_JSON_TRUE ? '1' : '0');
    } else if (type == LAYA_JSON_FLOAT && laya_json_to_double(label, &number) && number == floor(number) &&
               fabs(number) < 0x1p53) {
        laya_buffer_printf(&r->scratch, "%lld", (long long)number);
    } else if (type == LAYA_JSON_STRING) {
        size_t size;
        const char *text = laya_json_text(label, &size);
        laya_buffer_putc(&r->scratch, '"'); /* "1" is another key than 1 and True */
        laya_buffer_append(&r->scratch, text, size);
    } else {
        laya_json_write_repr(&r->scratch, label);
    }
    return take(r, key);
}

static laya_status check_labels(renderer *r, laya_json_value criteria, const laya_span *keys, const laya_span *labels,
                                uint32_t count)
{
    uint32_t later, earlier = 0;
    LAYA_TRY(find_repeat(r, keys, count, &later, &earlier));
    if (later == count) LAYA_TRY(find_repeat(r, labels, count, &later, &earlier));
    if (later == count) return LAYA_OK;
    laya_json_iterator it = laya_json_first(criteria);
    for (uint32_t at = 0; at < later; at++) laya_json_next(&it);
    char before[64], after[160];
    snprintf(before, sizeof before, "choice label %u (", later);
    snprintf(after, sizeof after,
             ") repeats label %u; the labels are the answer keys, so every option needs its own "
             "(1, 1.0 and True are one key)",
             earlier);
    return fail_value(r, before, it.value, after);
}

static laya_status choice_label(renderer *r, laya_json_value label, uint32_t at, laya_span *text)
{
    char before[160];
    laya_json_type type = laya_json_typeof(label);
    if (type == LAYA_JSON_NULL) {
        snprintf(before, sizeof before, "choice label %u is null; give every option a label", at);
        return fail(r, before);
    }
    if (type == LAYA_JSON_ARRAY || type == LAYA_JSON_OBJECT) {
        snprintf(before, sizeof before,
                 "choice label %u is a %s; a label is rendered as option text and used as the answer key, so it must "
                 "be a scalar (a string, number or bool), got ",
                 at, laya_json_type_name(label));
        return fail_value(r, before, label, "");
    }
    if (type == LAYA_JSON_STRING) return text_of(r, label, text);
    laya_json_write_repr(&r->scratch, label); /* str() of a number or bool is its repr */
    return take(r, text);
}

static laya_status choice_from_json(renderer *r, laya_query *query, laya_json_value criteria)
{
    laya_json_type kind = laya_json_typeof(criteria);
    if (kind != LAYA_JSON_OBJECT && kind != LAYA_JSON_ARRAY)
        return fail(r, "a choice question takes 'criteria' as a dict of label -> description, or a list of labels");
    uint32_t count = (uint32_t)laya_json_size(criteria), at = 0;
    if (count == 0) return fail(r, "a choice question needs at least one criterion");
    laya_span *options, *labels, *keys;
    LAYA_TRY(new_spans(r, count, &options));
    LAYA_TRY(new_spans(r, count, &labels));
    LAYA_TRY(new_spans(r, count, &keys));
    for (laya_json_iterator it = laya_json_first(criteria); laya_json_present(it.value); laya_json_next(&it), at++) {
        if (kind == LAYA_JSON_ARRAY) {
            LAYA_TRY(choice_label(r, it.value, at, &labels[at]));
            LAYA_TRY(key_text(r, it.value, &keys[at]));
            options[at] = labels[at];
        } else {
            laya_span description;
            LAYA_TRY(text_of(r, it.key, &labels[at]));
            options[at] = labels[at];
            if (is_empty_description(it.value)) continue;
            LAYA_TRY(text_of(r, it.value, &description));
            LAYA_TRY(joined(r, labels[at], description, &options[at]));
        }
    }
    if (kind == LAYA_JSON_ARRAY) LAYA_TRY(check_labels(r, criteria, keys, labels, count));
    query->count = count;
    query->options = options;
    query->labels = labels;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ score, noul */

static laya_status score_from_json(renderer *r, laya_query *query, laya_json_value criteria)
{
    if (laya_json_typeof(criteria) != LAYA_JSON_ARRAY)
        return fail(r, "a score question takes 'criteria' as a list of level descriptions, index 0 first");
    uint32_t count = (uint32_t)laya_json_size(criteria), at = 0;
    if (count == 0) return fail(r, "a score question needs at least one level");
    laya_span *options, *legend;
    LAYA_TRY(new_spans(r, count, &options));
    LAYA_TRY(new_spans(r, count, &legend));
    for (laya_json_iterator it = laya_json_first(criteria); laya_json_present(it.value); laya_json_next(&it), at++) {
        if (laya_json_is_null(it.value)) {
            char message[96];
            snprintf(message, sizeof message, "score level %u is null; give every level a description, index 0 first",
                     at);
            return fail(r, message);
        }
        LAYA_TRY(text_of(r, it.value, &legend[at]));
        LAYA_TRY(level_text(r, at, legend[at], &options[at]));
    }
    query->count = count;
    query->options = options;
    query->legend = legend;
    return LAYA_OK;
}

/* 1 for "true", 0 for "false" in any letter case, -1 for another key. */
static int truth_of(laya_span key)
{
    char lower[6];
    if (key.size != 4 && key.size != 5) return -1;
    for (size_t at = 0; at < key.size; at++) {
        char c = key.text[at];
        lower[at] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    if (key.size == 4 && memcmp(lower, "true", 4) == 0) return 1;
    if (key.size == 5 && memcmp(lower, "false", 5) == 0) return 0;
    return -1;
}

static laya_status fail_noul_keys(renderer *r, laya_json_value criteria)
{
    laya_buffer *out = &r->scratch;
    laya_buffer_clear(out);
    laya_buffer_puts(out,
                     "a noul question takes 'criteria' keyed only 'true'/'false' (either or both, and omitted is "
                     "fine), got [");
    bool first = true;
    for (laya_json_iterator it = laya_json_first(criteria); laya_json_present(it.value); laya_json_next(&it)) {
        if (!first) laya_buffer_puts(out, ", ");
        laya_json_write_repr(out, it.key);
        first = false;
    }
    laya_buffer_puts(out, "]. Those keys are the option texts the model reads");
    if (out->failed) return laya_fail_memory(r->error, 0);
    return fail(r, out->data);
}

static laya_status noul_labels_from_json(renderer *r, laya_json_value labels, laya_span names[2])
{
    static const char message[] = "noul labels must map exactly 'false' and 'true' to distinct non-empty strings";
    if (laya_json_typeof(labels) != LAYA_JSON_OBJECT || laya_json_size(labels) != 2) return fail(r, message);
    for (int side = 0; side < 2; side++) {
        laya_json_value label = laya_json_get(labels, noul_labels[side].text);
        if (laya_json_typeof(label) != LAYA_JSON_STRING) return fail(r, message);
        laya_span text;
        text.text = laya_json_text(label, &text.size);
        names[side] = strip(text);
        if (names[side].size == 0) return fail(r, message);
    }
    if (same_span(names[0], names[1])) return fail(r, message);
    return LAYA_OK;
}

static laya_status noul_options(renderer *r, laya_query *query, const laya_span names[2], const laya_span texts[2])
{
    laya_span *options;
    LAYA_TRY(new_spans(r, 2, &options));
    for (int side = 0; side < 2; side++) LAYA_TRY(joined(r, names[side], texts[side], &options[side]));
    query->count = 2;
    query->options = options;
    return LAYA_OK;
}

static laya_status noul_from_json(renderer *r, laya_query *query, laya_json_value criteria, laya_json_value labels)
{
    laya_span names[2] = {noul_labels[0], noul_labels[1]};
    laya_span texts[2] = {noul_defaults[0], noul_defaults[1]};
    if (!laya_json_is_null(criteria)) {
        if (laya_json_typeof(criteria) != LAYA_JSON_OBJECT)
            return fail(r, "a noul question takes 'criteria' as a dict with optional 'true'/'false' descriptions, or "
                           "omits it");
        for (laya_json_iterator it = laya_json_first(criteria); laya_json_present(it.value); laya_json_next(&it)) {
            laya_span key;
            key.text = laya_json_text(it.key, &key.size);
            int side = truth_of(key);
            if (side < 0) return fail_noul_keys(r, criteria);
            if (!is_empty_description(it.value)) LAYA_TRY(text_of(r, it.value, &texts[side]));
        }
    }
    if (!laya_json_is_null(labels)) LAYA_TRY(noul_labels_from_json(r, labels, names));
    return noul_options(r, query, names, texts);
}

/* ------------------------------------------------------------------ whole questions */

static laya_status order_from_json(renderer *r, laya_query *query, laya_json_value given)
{
    char before[128];
    snprintf(before, sizeof before,
             "'option_order' must be a permutation of range(%u) -- one slot per option, each option once -- got ",
             query->count);
    if (laya_json_typeof(given) != LAYA_JSON_ARRAY || laya_json_size(given) != query->count)
        return fail_value(r, before, given, "");
    uint32_t *order = laya_arena_alloc(r->arena, query->count, sizeof *order);
    bool *seen = laya_arena_alloc(r->arena, query->count, sizeof *seen);
    if (!order || !seen) return laya_fail_memory(r->error, 0);
    memset(seen, 0, query->count * sizeof *seen);
    uint32_t slot = 0;
    for (laya_json_iterator it = laya_json_first(given); laya_json_present(it.value); laya_json_next(&it)) {
        uint32_t option;
        if (!laya_json_to_uint32(it.value, &option) || option >= query->count || seen[option])
            return fail_value(r, before, given, "");
        seen[option] = true;
        order[slot++] = option;
    }
    query->order = order;
    return LAYA_OK;
}

static laya_status instructions_from_json(renderer *r, laya_query *query, laya_json_value instructions)
{
    laya_json_type type = laya_json_typeof(instructions);
    if (type == LAYA_JSON_NULL) return fail(r, "no 'instructions'; add the text the model should answer");
    if (type != LAYA_JSON_STRING && type != LAYA_JSON_OBJECT && type != LAYA_JSON_ARRAY) {
        char message[96];
        snprintf(message, sizeof message, "'instructions' must be a string, dict, or list, got %s",
                 laya_json_type_name(instructions));
        return fail(r, message);
    }
    laya_span text;
    LAYA_TRY(text_of(r, instructions, &text));
    return head_text(r, query->type, text, &query->head);
}

static laya_status from_json(renderer *r, laya_query *query, laya_json_value definition)
{
    if (laya_json_typeof(definition) != LAYA_JSON_OBJECT) {
        char message[96];
        snprintf(message, sizeof message, "definition must be a dict, got %s", laya_json_type_name(definition));
        return fail(r, message);
    }
    laya_json_value type = laya_json_get(definition, "type");
    laya_json_value criteria = laya_json_get(definition, "criteria");
    laya_json_value labels = laya_json_get(definition, "labels");
    laya_json_value order = laya_json_get(definition, "option_order");
    if (laya_json_equals(type, "choice"))
        query->type = LAYA_CHOICE;
    else if (laya_json_equals(type, "score"))
        query->type = LAYA_SCORE;
    else if (laya_json_equals(type, "noul"))
        query->type = LAYA_NOUL;
    else
        return fail_value(r, "unknown type ", type, "; use one of ['choice', 'noul', 'score']");
    LAYA_TRY(instructions_from_json(r, query, laya_json_get(definition, "instructions")));
    if (query->type != LAYA_NOUL && !laya_json_is_null(labels))
        return fail(r, "'labels' is only supported for noul questions");
    switch (query->type) {
    case LAYA_CHOICE: LAYA_TRY(choice_from_json(r, query, criteria)); break;
    case LAYA_SCORE: LAYA_TRY(score_from_json(r, query, criteria)); break;
    case LAYA_NOUL: LAYA_TRY(noul_from_json(r, query, criteria, labels)); break;
    }
    if (laya_json_is_null(order)) return LAYA_OK;
    return order_from_json(r, query, order);
}

laya_status laya_query_from_json(laya_query *query, laya_json_value id, laya_json_value definition, laya_arena *arena,
                                 laya_error *error)
{
    *query = (laya_query){0};
    query->id.text = laya_json_text(id, &query->id.size);
    renderer r = {.arena = arena, .id = query->id, .error = error};
    laya_buffer_init(&r.scratch, &arena->allocator);
    laya_status status = from_json(&r, query, definition);
    laya_buffer_close(&r.scratch);
    return status;
}

/* ------------------------------------------------------------------ questions as structs */

static laya_status check_utf8(renderer *r, const char *text, const char *what)
{
    if (laya_utf8_valid(text, strlen(text)) == strlen(text)) return LAYA_OK;
    char message[96];
    snprintf(message, sizeof message, "the %s is not valid UTF-8", what);
    return fail(r, message);
}

static laya_status choice_from_struct(renderer *r, laya_query *query, const laya_question *question)
{
    if (question->count == 0) return fail(r, "a choice question needs at least one criterion");
    if (!question->labels) return fail(r, "a choice question needs labels");
    uint32_t count = query->count = (uint32_t)question->count;
    laya_span *options, *labels;
    LAYA_TRY(new_spans(r, count, &options));
    LAYA_TRY(new_spans(r, count, &labels));
    for (uint32_t at = 0; at < count; at++) {
        char message[96];
        const char *description = question->descriptions ? question->descriptions[at] : NULL;
        if (!question->labels[at]) {
            snprintf(message, sizeof message, "choice label %u is null; give every option a label", at);
            return fail(r, message);
        }
        LAYA_TRY(check_utf8(r, question->labels[at], "text of a label"));
        options[at] = labels[at] = span_of(question->labels[at]);
        if (!description || !*description) continue;
        LAYA_TRY(check_utf8(r, description, "description of an option"));
        LAYA_TRY(joined(r, labels[at], span_of(description), &options[at]));
    }
    uint32_t later, earlier = 0;
    LAYA_TRY(find_repeat(r, labels, count, &later, &earlier));
    if (later < count) {
        char message[160];
        snprintf(message, sizeof message,
                 "choice label %u repeats label %u; the labels are the answer keys, so every option needs its own",
                 later, earlier);
        return fail(r, message);
    }
    query->options = options;
    query->labels = labels;
    return LAYA_OK;
}

static laya_status score_from_struct(renderer *r, laya_query *query, const laya_question *question)
{
    if (question->count == 0) return fail(r, "a score question needs at least one level");
    if (question->labels) return fail(r, "'labels' is only supported for noul questions");
    uint32_t count = query->count = (uint32_t)question->count;
    laya_span *options, *legend;
    LAYA_TRY(new_spans(r, count, &options));
    LAYA_TRY(new_spans(r, count, &legend));
    for (uint32_t at = 0; at < count; at++) {
        const char *description = question->descriptions ? question->descriptions[at] : NULL;
        if (!description) {
            char message[96];
            snprintf(message, sizeof message, "score level %u is null; give every level a description, index 0 first",
                     at);
            return fail(r, message);
        }
        LAYA_TRY(check_utf8(r, description, "description of a level"));
        legend[at] = span_of(description);
        LAYA_TRY(level_text(r, at, legend[at], &options[at]));
    }
    query->options = options;
    query->legend = legend;
    return LAYA_OK;
}

static laya_status noul_from_struct(renderer *r, laya_query *query, const laya_question *question)
{
    laya_span names[2] = {noul_labels[0], noul_labels[1]};
    laya_span texts[2] = {noul_defaults[0], noul_defaults[1]};
    if (question->count != 0 && question->count != 2)
        return fail(r, "a noul question has two options or the defaults");
    for (int side = 0; side < 2 && question->count == 2; side++) {
        const char *description = question->descriptions ? question->descriptions[side] : NULL;
        const char *label = question->labels ? question->labels[side] : NULL;
        if (description && *description) {
            LAYA_TRY(check_utf8(r, description, "description of an option"));
            texts[side] = span_of(description);
        }
        if (!question->labels) continue;
        if (label) LAYA_TRY(check_utf8(r, label, "text of a label"));
        names[side] = label ? strip(span_of(label)) : (laya_span){"", 0};
    }
    if (names[0].size == 0 || names[1].size == 0 || same_span(names[0], names[1]))
        return fail(r, "noul labels must map exactly 'false' and 'true' to distinct non-empty strings");
    return noul_options(r, query, names, texts);
}

static laya_status from_struct(renderer *r, laya_query *query, const laya_question *question)
{
    if (question->count > UINT32_MAX / 2) return fail(r, "too many options");
    if (!question->instructions) return fail(r, "no 'instructions'; add the text the model should answer");
    LAYA_TRY(check_utf8(r, question->instructions, "instructions text"));
    query->type = question->type;
    switch (question->type) {
    case LAYA_CHOICE: LAYA_TRY(choice_from_struct(r, query, question)); break;
    case LAYA_SCORE: LAYA_TRY(score_from_struct(r, query, question)); break;
    case LAYA_NOUL: LAYA_TRY(noul_from_struct(r, query, question)); break;
    default: return fail(r, "unknown type; use one of LAYA_CHOICE, LAYA_SCORE, LAYA_NOUL");
    }
    return head_text(r, query->type, span_of(question->instructions), &query->head);
}

laya_status laya_query_from_struct(laya_query *query, const laya_question *question, laya_arena *arena,
                                   laya_error *error)
{
    *query = (laya_query){0};
    if (!question->id) return laya_fail(error, LAYA_ERROR_ARGUMENT, "a question needs an id");
    if (laya_utf8_valid(question->id, strlen(question->id)) != strlen(question->id))
        return laya_fail(error, LAYA_ERROR_INPUT, "the id of a question is not valid UTF-8");
    query->id = span_of(question->id);
    renderer r = {.arena = arena, .id = query->id, .error = error};
    laya_buffer_init(&r.scratch, &arena->allocator);
    laya_status status = from_struct(&r, query, question);
    laya_buffer_close(&r.scratch);
    return status;
}
