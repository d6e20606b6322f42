/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fields.h"

#include "base/error.h"

#include <string.h>

laya_status laya_field_fail(const laya_fields *fields, const char *where, const char *name, const char *what,
                            laya_json_value found)
{
    return laya_fail(fields->error, LAYA_ERROR_FORMAT, "%s%s%s: expected %s, found %s", where, *where ? "." : "",
                     name, what, laya_json_present(found) ? laya_json_type_name(found) : "nothing");
}

laya_status laya_field(const laya_fields *fields, const char *where, laya_json_value object, const char *name,
                       laya_json_type type, laya_json_value *value)
{
    *value = laya_json_get(object, name);
    if (laya_json_present(*value) && laya_json_typeof(*value) == type) return LAYA_OK;
    const char *what = type == LAYA_JSON_STRING   ? "a string"
                       : type == LAYA_JSON_ARRAY  ? "a list"
                       : type == LAYA_JSON_OBJECT ? "an object"
                                                  : "an integer";
    return laya_field_fail(fields, where, name, what, *value);
}

laya_status laya_copy_text(const laya_fields *fields, laya_json_value string, const char **text, bool *whole)
{
    size_t size;
    const char *found = laya_json_text(string, &size);
    *whole = memchr(found, '\0', size) == NULL;
    *text = laya_arena_copy(fields->arena, found, size);
    return *text ? LAYA_OK : laya_fail_memory(fields->error, size + 1);
}

laya_status laya_field_text(const laya_fields *fields, const char *where, laya_json_value object, const char *name,
                            const char **text)
{
    laya_json_value value;
    bool whole;
    LAYA_TRY(laya_field(fields, where, object, name, LAYA_JSON_STRING, &value));
    LAYA_TRY(laya_copy_text(fields, value, text, &whole));
    return whole ? LAYA_OK : laya_field_fail(fields, where, name, "a string without NUL characters", value);
}

laya_status laya_field_sha256(const laya_fields *fields, const char *where, laya_json_value object, const char *name,
                              const char **hex)
{
    LAYA_TRY(laya_field_text(fields, where, object, name, hex));
    if (strlen(*hex) == 64 && strspn(*hex, "0123456789abcdef") == 64) return LAYA_OK;
    return laya_field_fail(fields, where, name, "a SHA-256 of 64 lower-case hex digits", laya_json_get(object, name));
}

laya_status laya_copy_json(const laya_fields *fields, laya_json_value value, const char **text, size_t *size)
{
    laya_buffer buffer;
    laya_buffer_init(&buffer, &fields->arena->allocator);
    laya_json_write_python(&buffer, value);
    *size = buffer.size;
    *text = buffer.failed ? NULL : laya_arena_copy(fields->arena, buffer.data, buffer.size);
    laya_buffer_close(&buffer);
    return *text ? LAYA_OK : laya_fail_memory(fields->error, *size);
}

/* ------------------------------------------------------------------ files */

static laya_status check_root(laya_json_value root, const char *format, laya_error *error)
{
    uint32_t version;
    laya_json_value found = laya_json_get(root, "version");
    if (!laya_json_equals(laya_json_get(root, "format"), format))
        return laya_fail(error, LAYA_ERROR_FORMAT, "expected an object with \"format\": \"%s\"; this is another file",
                         format);
    if (laya_json_to_uint32(found, &version) && version == 1) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "version: expected 1; this file is of another version of the format");
}

laya_status laya_document_parse(laya_json *doc, char sha256[65], const char *text, size_t size, const char *format,
                                const laya_allocator *allocator, laya_error *error)
{
    *doc = (laya_json){0};
    laya_status status = laya_sha256(text, size, sha256, error);
    if (status == LAYA_OK) status = laya_json_parse(doc, text, size, allocator, error);
    if (status == LAYA_OK) status = check_root(laya_json_root(doc), format, error);
    if (status == LAYA_OK) return LAYA_OK;
    if (status == LAYA_ERROR_INPUT) { /* the text is no JSON: here that is a malformed file */
        status = LAYA_ERROR_FORMAT;
        if (error) error->status = status;
    }
    laya_json_close(doc);
    return status;
}
