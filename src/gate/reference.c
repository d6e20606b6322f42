/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/reference.h"

#include "base/error.h"
#include "gate/fields.h"
#include "text/question.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The parts of one case while it is read. */
typedef struct case_parts {
    laya_json_value questions, items, logits, action_logits;
} case_parts;

/* ------------------------------------------------------------------ lists of numbers */

/* A list of at least one integer below `limit`. */
static laya_status read_integers(const laya_fields *fields, const char *where, laya_json_value item, const char *name,
                                 uint32_t limit, const uint32_t **numbers, uint32_t *count)
{
    laya_json_value list;
    LAYA_TRY(laya_field(fields, where, item, name, LAYA_JSON_ARRAY, &list));
    *count = (uint32_t)laya_json_size(list); /* fewer than a document's nodes */
    if (*count == 0) return laya_field_fail(fields, where, name, "at least one number", list);
    uint32_t *values = laya_arena_alloc(fields->arena, *count, sizeof *values);
    if (!values) return laya_fail_memory(fields->error, *count * sizeof *values);
    size_t at = 0;
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), at++) {
        if (!laya_json_to_uint32(it.value, &values[at]) || values[at] >= limit)
            return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s.%s[%zu]: expected an integer below %u", where,
                             name, at, limit);
    }
    *numbers = values;
    return LAYA_OK;
}

/* `count` finite numbers. */
static laya_status read_numbers(const laya_fields *fields, const char *where, const char *name, laya_json_value list,
                                size_t count, const double **numbers)
{
    if (laya_json_typeof(list) != LAYA_JSON_ARRAY || laya_json_size(list) != count)
        return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s: %s: expected a list of %zu numbers, found %s of %zu",
                         where, name, count, laya_json_type_name(list), laya_json_size(list));
    double *values = laya_arena_alloc(fields->arena, count, sizeof *values);
    if (!values) return laya_fail_memory(fields->error, count * sizeof *values);
    size_t at = 0;
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), at++) {
        if (!laya_json_to_double(it.value, &values[at]) || !isfinite(values[at]))
            return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s: %s[%zu]: expected a finite number", where, name,
                             at);
    }
    *numbers = values;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ items */

static laya_status read_type(const laya_fields *fields, const char *where, laya_json_value item,
                             laya_json_value question, laya_question_type *type)
{
    uint32_t number;
    laya_json_value found = laya_json_get(item, "qtype");
    if (!laya_json_to_uint32(found, &number) || number > LAYA_NOUL)
        return laya_field_fail(fields, where, "qtype", "0 (choice), 1 (score) or 2 (noul)", found);
    *type = (laya_question_type)number;
    if (laya_json_equals(laya_json_get(question, "type"), laya_question_type_name(*type))) return LAYA_OK;
    return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s.qtype: %u (%s) is not the type of the question", where,
                     number, laya_question_type_name(*type));
}

static laya_status read_markers(const laya_fields *fields, const char *where, laya_json_value item,
                                laya_reference_item *out)
{
    LAYA_TRY(read_integers(fields, where, item, "markers", out->count, &out->markers, &out->options));
    for (uint32_t at = 1; at < out->options; at++) {
        if (out->markers[at - 1] < out->markers[at]) continue;
        return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s.markers[%u]: expected more than %u, found %u", where,
                         at, out->markers[at - 1], out->markers[at]);
    }
    return LAYA_OK;
}

static laya_status read_item(const laya_fields *fields, const char *where, laya_json_value item, laya_json_value id,
                             laya_json_value question, laya_reference_item *out)
{
    LAYA_TRY(laya_field_text(fields, where, item, "id", &out->id));
    if (!laya_json_equals(id, out->id))
        return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s.id: '%s' is not the question at this place", where,
                         out->id);
    LAYA_TRY(read_integers(fields, where, item, "ids", UINT32_MAX, &out->ids, &out->count));
    LAYA_TRY(read_markers(fields, where, item, out));
    return read_type(fields, where, item, question, &out->type);
}

/* The logits of item `at`: the next elements of both lists. */
static laya_status read_logits(const laya_fields *fields, const char *where, laya_json_value logits,
                               laya_json_value action_logits, laya_reference_item *item)
{
    item->actions = (uint32_t)laya_json_size(action_logits);
    if (item->actions == 0)
        return laya_field_fail(fields, where, "action_logits", "at least one number", action_logits);
    LAYA_TRY(read_numbers(fields, where, "logits", logits, item->options, &item->logits));
    return read_numbers(fields, where, "action_logits", action_logits, item->actions, &item->action_logits);
}

static laya_status read_items(const laya_fields *fields, const char *where, const case_parts *parts, size_t count,
                              laya_reference_item *items)
{
    laya_json_iterator question = laya_json_first(parts->questions), item = laya_json_first(parts->items);
    laya_json_iterator logits = laya_json_first(parts->logits), action = laya_json_first(parts->action_logits);
    for (size_t at = 0; at < count; at++) {
        char place[LAYA_WHERE_SIZE];
        snprintf(place, sizeof place, "%.150s.items[%zu]", where, at);
        LAYA_TRY(read_item(fields, place, item.value, question.key, question.value, &items[at]));
        LAYA_TRY(read_logits(fields, place, logits.value, action.value, &items[at]));
        if (items[at].actions != items[0].actions)
            return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s: %u action logits, but %u in the first item",
                             place, items[at].actions, items[0].actions);
        laya_json_next(&question), laya_json_next(&item), laya_json_next(&logits), laya_json_next(&action);
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ results */

static laya_status read_answers(const laya_fields *fields, const char *where, laya_json_value result,
                                laya_reference_case *out)
{
    LAYA_TRY(laya_field(fields, where, result, "answers", LAYA_JSON_OBJECT, &out->answers));
    if (laya_json_size(out->answers) != out->input.count)
        return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s.answers: expected %zu answers, found %zu", where,
                         out->input.count, laya_json_size(out->answers));
    size_t at = 0;
    for (laya_json_iterator it = laya_json_first(out->answers); laya_json_present(it.value);
         laya_json_next(&it), at++) {
        if (laya_json_equals(it.key, out->items[at].id) && laya_json_typeof(it.value) == LAYA_JSON_OBJECT) continue;
        return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s.answers: expected the object '%s' at place %zu", where,
                         out->items[at].id, at);
    }
    return LAYA_OK;
}

static laya_status read_usage(const laya_fields *fields, const char *where, laya_json_value result,
                              laya_reference_case *out)
{
    uint32_t tokens;
    uint64_t sum = 0;
    LAYA_TRY(laya_field(fields, where, result, "usage", LAYA_JSON_OBJECT, &out->usage));
    for (size_t at = 0; at < out->input.count; at++) sum += out->items[at].count;
    laya_json_value found = laya_json_get(out->usage, "input_tokens");
    if (laya_json_to_uint32(found, &tokens) && tokens == sum) return LAYA_OK;
    return laya_field_fail(fields, where, "usage.input_tokens", "the sum of the lengths of the rows", found);
}

/* ------------------------------------------------------------------ cases and models */

/* A list with an element for each question. */
static laya_status read_list(const laya_fields *fields, const char *where, laya_json_value object, const char *name,
                             size_t count, laya_json_value *list)
{
    LAYA_TRY(laya_field(fields, where, object, name, LAYA_JSON_ARRAY, list));
    if (laya_json_size(*list) == count) return LAYA_OK;
    return laya_fail(fields->error, LAYA_ERROR_FORMAT,
                     "%s.%s: expected one element for each of %zu questions, found %zu", where, name, count,
                     laya_json_size(*list));
}

static laya_status read_case(const laya_fields *fields, const char *where, laya_json_value object,
                             laya_reference_case *out)
{
    case_parts parts = {.questions = laya_json_get(object, "questions")};
    char place[LAYA_WHERE_SIZE];
    laya_json_value result;
    LAYA_TRY(laya_fixture_case_read(&out->input, object, where, fields->arena, fields->error));
    size_t count = out->input.count;
    LAYA_TRY(read_list(fields, where, object, "items", count, &parts.items));
    LAYA_TRY(read_list(fields, where, object, "logits", count, &parts.logits));
    LAYA_TRY(read_list(fields, where, object, "action_logits", count, &parts.action_logits));
    laya_reference_item *items = laya_arena_alloc(fields->arena, count, sizeof *items);
    if (!items) return laya_fail_memory(fields->error, count * sizeof *items);
    LAYA_TRY(read_items(fields, where, &parts, count, items));
    out->items = items;
    LAYA_TRY(laya_field(fields, where, object, "result", LAYA_JSON_OBJECT, &result));
    snprintf(place, sizeof place, "%.150s.result", where);
    LAYA_TRY(read_answers(fields, place, result, out));
    return read_usage(fields, place, result, out);
}

static laya_status read_cases(const laya_fields *fields, const char *where, laya_json_value list,
                              laya_reference_model *out)
{
    size_t count = laya_json_size(list), at = 0;
    if (count == 0 || count > LAYA_FIXTURE_MAX_CASES)
        return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s.cases: expected 1 to %u cases, found %zu", where,
                         LAYA_FIXTURE_MAX_CASES, count);
    laya_reference_case *cases = laya_arena_alloc(fields->arena, count, sizeof *cases);
    if (!cases) return laya_fail_memory(fields->error, count * sizeof *cases);
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), at++) {
        char place[LAYA_WHERE_SIZE];
        snprintf(place, sizeof place, "%s.cases[%zu]", where, at);
        LAYA_TRY(read_case(fields, place, it.value, &cases[at]));
        LAYA_TRY(laya_fixture_check_name(&cases[at].input, list, at, place, fields->error));
        out->questions += cases[at].input.count;
    }
    out->cases = cases;
    out->count = count;
    return LAYA_OK;
}

static laya_status read_model(const laya_fields *fields, laya_json_value name, laya_json_value object,
                              laya_reference_model *out)
{
    char where[LAYA_WHERE_SIZE / 2];
    bool whole;
    laya_json_value cases;
    *out = (laya_reference_model){.config_sha256 = ""};
    LAYA_TRY(laya_copy_text(fields, name, &out->name, &whole));
    snprintf(where, sizeof where, "models.%.60s", out->name);
    if (!whole)
        return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s: expected a name without NUL characters", where);
    LAYA_TRY(laya_field_sha256(fields, where, object, "source_weights_sha256", &out->weights_sha256));
    if (laya_json_present(laya_json_get(object, "source_config_sha256")))
        LAYA_TRY(laya_field_sha256(fields, where, object, "source_config_sha256", &out->config_sha256));
    LAYA_TRY(laya_field(fields, where, object, "cases", LAYA_JSON_ARRAY, &cases));
    return read_cases(fields, where, cases, out);
}

/* ------------------------------------------------------------------ whole files */

static laya_status read_class(const laya_fields *fields, laya_json_value root, laya_reference *reference)
{
    laya_json_value found = laya_json_get(root, "class");
    if (laya_json_equals(found, LAYA_REFERENCE_NATIVE))
        reference->class = LAYA_REFERENCE_NATIVE;
    else if (laya_json_equals(found, LAYA_REFERENCE_UPSTREAM))
        reference->class = LAYA_REFERENCE_UPSTREAM;
    else
        return laya_field_fail(fields, "", "class",
                               "\"" LAYA_REFERENCE_NATIVE "\" or \"" LAYA_REFERENCE_UPSTREAM "\"", found);
    return LAYA_OK;
}

static laya_status read_root(laya_reference *reference, laya_json_value root, laya_error *error)
{
    const laya_fields fields = {&reference->arena, error};
    laya_json_value list;
    LAYA_TRY(read_class(&fields, root, reference));
    LAYA_TRY(laya_field_sha256(&fields, "", root, "fixture_sha256", &reference->fixture_sha256));
    LAYA_TRY(laya_field(&fields, "", root, "models", LAYA_JSON_OBJECT, &list));
    size_t count = laya_json_size(list), at = 0;
    if (count == 0) return laya_fail(error, LAYA_ERROR_FORMAT, "models: expected at least one model, found none");
    laya_reference_model *models = laya_arena_alloc(&reference->arena, count, sizeof *models);
    if (!models) return laya_fail_memory(error, count * sizeof *models);
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it))
        LAYA_TRY(read_model(&fields, it.key, it.value, &models[at++]));
    reference->models = models;
    reference->count = count;
    return LAYA_OK;
}

laya_status laya_reference_parse(laya_reference *reference, const char *text, size_t size,
                                 const laya_allocator *allocator, laya_error *error)
{
    *reference = (laya_reference){0};
    laya_arena_init(&reference->arena, allocator);
    LAYA_TRY(
        laya_document_parse(&reference->doc, reference->sha256, text, size, LAYA_REFERENCE_FORMAT, allocator, error));
    laya_status status = read_root(reference, laya_json_root(&reference->doc), error);
    if (status != LAYA_OK) laya_reference_close(reference);
    return status;
}

laya_status laya_reference_open(laya_reference *reference, const char *path, const laya_allocator *allocator,
                                laya_error *error)
{
    laya_file file;
    *reference = (laya_reference){0};
    LAYA_TRY(laya_file_map(&file, path, error));
    const char *text = file.data ? (const char *)file.data : "";
    laya_status status = laya_reference_parse(reference, text, file.size, allocator, error);
    reference->file = file;
    if (status == LAYA_OK) return LAYA_OK;
    laya_error_prefix(error, "%s: ", path);
    laya_reference_close(reference);
    return status;
}

void laya_reference_close(laya_reference *reference)
{
    laya_json_close(&reference->doc);
    laya_file_unmap(&reference->file);
    laya_arena_close(&reference->arena);
    *reference = (laya_reference){.arena = reference->arena};
}

const laya_reference_model *laya_reference_find(const laya_reference *reference, const char *weights_sha256)
{
    for (size_t at = 0; at < reference->count; at++) {
        if (strcmp(reference->models[at].weights_sha256, weights_sha256) == 0) return &reference->models[at];
    }
    return NULL;
}
