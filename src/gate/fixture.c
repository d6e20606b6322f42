/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fixture.h"

#include "base/error.h"
#include "gate/fields.h"

#include <stdio.h>
#include <string.h>

static laya_status check_questions(const laya_fields *fields, const char *where, laya_json_value questions)
{
    if (laya_json_size(questions) == 0)
        return laya_field_fail(fields, where, "questions", "an object with at least one question", questions);
    for (laya_json_iterator it = laya_json_first(questions); laya_json_present(it.value); laya_json_next(&it)) {
        size_t size;
        const char *id = laya_json_text(it.key, &size);
        if (memchr(id, '\0', size))
            return laya_field_fail(fields, where, "questions", "names without NUL characters", questions);
    }
    return LAYA_OK;
}

laya_status laya_fixture_case_read(laya_fixture_case *out, laya_json_value object, const char *where,
                                   laya_arena *arena, laya_error *error)
{
    const laya_fields fields = {arena, error};
    laya_json_value state = laya_json_get(object, "state"), questions;
    LAYA_TRY(laya_field_text(&fields, where, object, "name", &out->name));
    if (!*out->name)
        return laya_field_fail(&fields, where, "name", "a name that is not empty", laya_json_get(object, "name"));
    if (laya_json_is_null(state))
        return laya_field_fail(&fields, where, "state", "a JSON value other than null", state);
    LAYA_TRY(laya_field(&fields, where, object, "questions", LAYA_JSON_OBJECT, &questions));
    LAYA_TRY(check_questions(&fields, where, questions));
    out->count = laya_json_size(questions);
    LAYA_TRY(laya_copy_json(&fields, state, &out->state, &out->state_size));
    return laya_copy_json(&fields, questions, &out->questions, &out->questions_size);
}

laya_status laya_fixture_check_name(const laya_fixture_case *input, laya_json_value before, size_t count,
                                    const char *where, laya_error *error)
{
    laya_json_iterator it = laya_json_first(before);
    for (size_t at = 0; at < count; at++, laya_json_next(&it)) {
        if (laya_json_equals(laya_json_get(it.value, "name"), input->name))
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "%s.name: '%s' is the name of an earlier case; each needs its own", where, input->name);
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ whole files */

static laya_status read_cases(laya_fixture *fixture, laya_json_value root, laya_error *error)
{
    const laya_fields fields = {&fixture->arena, error};
    laya_json_value list;
    LAYA_TRY(laya_field(&fields, "", root, "cases", LAYA_JSON_ARRAY, &list));
    size_t count = laya_json_size(list), at = 0;
    if (count == 0 || count > LAYA_FIXTURE_MAX_CASES)
        return laya_fail(error, LAYA_ERROR_FORMAT, "cases: expected 1 to %u cases, found %zu", LAYA_FIXTURE_MAX_CASES,
                         count);
    laya_fixture_case *cases = laya_arena_alloc(&fixture->arena, count, sizeof *cases);
    if (!cases) return laya_fail_memory(error, count * sizeof *cases);
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), at++) {
        char where[LAYA_WHERE_SIZE];
        snprintf(where, sizeof where, "cases[%zu]", at);
        LAYA_TRY(laya_fixture_case_read(&cases[at], it.value, where, &fixture->arena, error));
        LAYA_TRY(laya_fixture_check_name(&cases[at], list, at, where, error));
        fixture->questions += cases[at].count;
    }
    fixture->cases = cases;
    fixture->count = count;
    return LAYA_OK;
}

laya_status laya_fixture_parse(laya_fixture *fixture, const char *text, size_t size, const laya_allocator *allocator,
                               laya_error *error)
{
    laya_json doc;
    *fixture = (laya_fixture){0};
    laya_arena_init(&fixture->arena, allocator);
    LAYA_TRY(laya_document_parse(&doc, fixture->sha256, text, size, LAYA_FIXTURE_FORMAT, allocator, error));
    laya_status status = read_cases(fixture, laya_json_root(&doc), error);
    laya_json_close(&doc);
    if (status != LAYA_OK) laya_fixture_close(fixture);
    return status;
}

laya_status laya_fixture_open(laya_fixture *fixture, const char *path, const laya_allocator *allocator,
                              laya_error *error)
{
    laya_file file;
    *fixture = (laya_fixture){0};
    LAYA_TRY(laya_file_map(&file, path, error));
    const char *text = file.data ? (const char *)file.data : "";
    laya_status status = laya_fixture_parse(fixture, text, file.size, allocator, error);
    if (status != LAYA_OK) laya_error_prefix(error, "%s: ", path);
    laya_file_unmap(&file);
    return status;
}

void laya_fixture_close(laya_fixture *fixture)
{
    laya_arena_close(&fixture->arena);
    *fixture = (laya_fixture){.arena = fixture->arena};
}
