/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as Python reads and writes it.
 *
 * The reader follows CPython's json.loads: NaN, Infinity and -Infinity are numbers, integers have any
 * size, a duplicate key keeps its first position and its last value. Numbers keep their source text, so
 * that nothing is lost. The writer follows json.dumps(value, ensure_ascii=False): it makes the text that
 * the model was trained on.
 *
 * A document is one array of nodes in document order. Children of a container follow it directly; `end`
 * of a node is the index just past its subtree, so that the next sibling of node i is node i.end. An
 * object's members alternate key (a string node) and value.
 */
#ifndef LAYA_BASE_JSON_H
#define LAYA_BASE_JSON_H

#include "base/memory.h"
#include "laya/base.h"

#include <stdbool.h>

#define LAYA_JSON_MAX_DEPTH 512         /* containers inside each other */
#define LAYA_JSON_MAX_NODES 0x1FFFFFFFu /* values and keys of a document; also the mask of a node's `end` */

typedef enum laya_json_type {
    LAYA_JSON_NULL,
    LAYA_JSON_FALSE,
    LAYA_JSON_TRUE,
    LAYA_JSON_INTEGER, /* text: optional '-', digits */
    LAYA_JSON_FLOAT,   /* text: with fraction or exponent, or NaN, Infinity, -Infinity */
    LAYA_JSON_STRING,  /* text: decoded UTF-8, may hold NUL */
    LAYA_JSON_ARRAY,   /* count elements */
    LAYA_JSON_OBJECT   /* count members */
} laya_json_type;

/* Sixteen bytes: a tokenizer's file has millions of these. */
typedef struct laya_json_node {
    const char *text;  /* strings and numbers; not NUL-terminated */
    uint32_t size;     /* bytes of text, or number of elements or members */
    unsigned end : 29; /* index just past this node's subtree */
    unsigned type : 3; /* laya_json_type */
} laya_json_node;

typedef struct laya_json {
    laya_allocator allocator;
    laya_json_node *nodes;
    uint32_t count;
    char *strings; /* decoded texts of strings with escapes */
} laya_json;

/* A value inside a document. doc NULL means "absent". */
typedef struct laya_json_value {
    const laya_json *doc;
    uint32_t at;
} laya_json_value;

/*
 * Parse a whole text (below 4 GiB, at most LAYA_JSON_MAX_NODES values). The text must outlive the document: strings
 * without escapes point into it.
 * Errors: INPUT with line, column and what was expected; invalid UTF-8, lone surrogates and nesting
 * beyond LAYA_JSON_MAX_DEPTH are errors too. MEMORY.
 */
laya_status laya_json_parse(laya_json *doc, const char *text, size_t size, const laya_allocator *allocator,
                            laya_error *error);
void laya_json_close(laya_json *doc);

laya_json_value laya_json_root(const laya_json *doc);
bool laya_json_present(laya_json_value value);
/* The type; NULL for an absent value. */
laya_json_type laya_json_typeof(laya_json_value value);
/* Whether a value is null or absent. */
bool laya_json_is_null(laya_json_value value);
/* Python's name of the type: "str", "int", "float", "bool", "list", "dict", "NoneType". */
const char *laya_json_type_name(laya_json_value value);
/* Text of a string or number node. */
const char *laya_json_text(laya_json_value value, size_t *size);
/* Elements of an array, members of an object, else 0. */
size_t laya_json_size(laya_json_value value);
/* True for a string that equals the NUL-terminated text. */
bool laya_json_equals(laya_json_value value, const char *text);

/* Member of an object by key; absent when there is none or `object` is no object. */
laya_json_value laya_json_get(laya_json_value object, const char *key);

/* Walk a container: for (it = laya_json_first(c); laya_json_present(it.value); laya_json_next(&it)) */
typedef struct laya_json_iterator {
    laya_json_value key;   /* absent in arrays */
    laya_json_value value; /* absent at the end */
    uint32_t end;
} laya_json_iterator;
laya_json_iterator laya_json_first(laya_json_value container);
void laya_json_next(laya_json_iterator *it);

/* Numbers. False when the value is no number of that kind or does not fit. Booleans are not numbers here. */
bool laya_json_to_uint32(laya_json_value value, uint32_t *number); /* an integer, 0 .. 2^32 - 1 */
bool laya_json_to_double(laya_json_value value, double *number);   /* integer or float; huge becomes infinite */

/* Append json.dumps(value, ensure_ascii=False). */
void laya_json_write_python(laya_buffer *out, laya_json_value value);
/* Append Python's repr(value), as error messages show it. */
void laya_json_write_repr(laya_buffer *out, laya_json_value value);
/* Append Python's repr of a str. Characters that repr would escape above U+00FF stay literal. */
void laya_json_write_string_repr(laya_buffer *out, const char *text, size_t size);
/* Append a string literal with quotes and escapes in the same format. */
void laya_json_write_string(laya_buffer *out, const char *text, size_t size);

/* ------------------------------------------------------------------ writing documents
 * Containers and members in order; commas, indentation and escapes are the writer's work. Compact form
 * has no spaces; pretty form indents by two.
 */
#define LAYA_JSON_WRITER_DEPTH 16

typedef struct laya_json_writer {
    laya_buffer *out;
    bool pretty;
    bool after_key;
    unsigned depth;
    bool filled[LAYA_JSON_WRITER_DEPTH + 1]; /* the container at this depth has an element */
} laya_json_writer;

void laya_json_writer_init(laya_json_writer *writer, laya_buffer *out, bool pretty);
void laya_json_begin(laya_json_writer *writer, char bracket); /* '{' or '[' */
void laya_json_end(laya_json_writer *writer, char bracket);   /* '}' or ']' */
void laya_json_key(laya_json_writer *writer, const char *key, size_t size);
void laya_json_name(laya_json_writer *writer, const char *key); /* the same for a NUL-terminated key */
void laya_json_put_string(laya_json_writer *writer, const char *text, size_t size);
void laya_json_put_raw(laya_json_writer *writer, const char *text); /* a number, true, false or null */
void laya_json_put_bool(laya_json_writer *writer, bool value);
void laya_json_put_uint(laya_json_writer *writer, uint64_t value);
void laya_json_put_repr(laya_json_writer *writer, double value);   /* all digits */
void laya_json_put_round4(laya_json_writer *writer, double value); /* four decimals */
void laya_json_put_double(laya_json_writer *writer, double value); /* all digits; null where it is not finite */
void laya_json_put_value(laya_json_writer *writer, laya_json_value value); /* of a document, on one line */
/* Key and value at once; the key is NUL-terminated. */
void laya_json_member_string(laya_json_writer *writer, const char *key, const char *text);
/* A path; null where it is NULL or not UTF-8: a path is bytes, JSON is text. */
void laya_json_member_path(laya_json_writer *writer, const char *key, const char *path);
void laya_json_member_uint(laya_json_writer *writer, const char *key, uint64_t value);
void laya_json_member_round4(laya_json_writer *writer, const char *key, double value);
void laya_json_member_double(laya_json_writer *writer, const char *key, double value);
void laya_json_member_bool(laya_json_writer *writer, const char *key, bool value);

#endif
