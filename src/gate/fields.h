/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON files, read strictly. `where` is the object's place in the file, such as "cases[3]"; messages name it. */
#ifndef LAYA_GATE_FIELDS_H
#define LAYA_GATE_FIELDS_H

#include "base/file.h"
#include "base/json.h"

#define LAYA_WHERE_SIZE 192 /* of a place, cut where it is longer */

typedef struct laya_fields {
    laya_arena *arena; /* owns what is read */
    laya_error *error;
} laya_fields;

/* FORMAT: "WHERE.NAME: expected WHAT, found TYPE". */
laya_status laya_field_fail(const laya_fields *fields, const char *where, const char *name, const char *what,
                            laya_json_value found);
/* A member that has this type. */
laya_status laya_field(const laya_fields *fields, const char *where, laya_json_value object, const char *name,
                       laya_json_type type, laya_json_value *value);
/* A string, NUL-terminated; one that holds a NUL is refused. */
laya_status laya_field_text(const laya_fields *fields, const char *where, laya_json_value object, const char *name,
                            const char **text);
/* 64 lower-case hex digits. */
laya_status laya_field_sha256(const laya_fields *fields, const char *where, laya_json_value object, const char *name,
                              const char **hex);
/* A copy of a string value, NUL-terminated, that holds no NUL itself; false in `whole` when it does. */
laya_status laya_copy_text(const laya_fields *fields, laya_json_value string, const char **text, bool *whole);
/* The JSON text of a value, NUL-terminated. */
laya_status laya_copy_json(const laya_fields *fields, laya_json_value value, const char **text, size_t *size);

/*
 * Hash and parse a text whose root is an object with "format": `format` and "version": 1. The document points into the
 * text. Errors: FORMAT, MEMORY.
 */
laya_status laya_document_parse(laya_json *doc, char sha256[65], const char *text, size_t size, const char *format,
                                const laya_allocator *allocator, laya_error *error);

#endif
