/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A MIL program in memory: functions of operations in static single assignment form, as a package holds them.
 *
 * The builder (mil/builder.h) and the package reader (coreml/decode.h) make programs, the package writer, the
 * verifier and the inspector take them. Everything but the bytes of constants lies in the program's arena. A program
 * that was read may be wrong in every way that the types below allow: undefined names, wrong types, unknown
 * operations. The verifier finds that; other code must not rely on more than what is stated here.
 */
#ifndef LAYA_MIL_PROGRAM_H
#define LAYA_MIL_PROGRAM_H

#include "base/memory.h"
#include "mil/type.h"

typedef struct laya_mil_op laya_mil_op;

/*
 * Bytes that are made when they are needed, so that a graph over a mapped checkpoint holds no second copy of its
 * weights. Rows are the first dimension of the constant's type; a row is whole bytes.
 */
typedef struct laya_mil_source {
    const void *user;
    /* Rows first .. first + count - 1 in the constant's type, little-endian. Errors: FORMAT (a value that does not
       fit into the type), with a message that names the tensor. */
    laya_status (*read)(const void *user, uint64_t first, uint64_t count, unsigned char *out, laya_error *error);
    /* The rows were read for now: pages of a mapping may be given back. NULL: nothing to do. */
    void (*forget)(const void *user);
} laya_mil_source;

typedef struct laya_mil_constant {
    laya_mil_type type;            /* kind TENSOR for all that follows; of other kinds only the type is known */
    bool in_file;                  /* read: its bytes lie in the weight file */
    uint64_t offset;               /* of its metadata record in the weight file, where in_file */
    const unsigned char *bytes;    /* little-endian, C order, sub-byte types packed; bool: 0 or 1 a byte */
    uint64_t size;                 /* of bytes: laya_mil_type_size(type) */
    const char *const *strings;    /* STRING: the elements, NUL-terminated UTF-8; bytes is NULL then */
    uint32_t string_count;         /* scalar: 1 */
    const laya_mil_source *source; /* built over a checkpoint: in place of bytes */
} laya_mil_constant;

typedef struct laya_mil_value {
    const char *name; /* NUL-terminated */
    laya_mil_type type;
    laya_mil_op *op;                   /* that makes it; NULL: an input of the function or of a nested block */
    const laya_mil_constant *constant; /* "val" of a const operation; else NULL */
} laya_mil_value;

/* What a parameter is bound to. */
typedef struct laya_mil_binding {
    const char *name;                  /* of a value; NULL: bound to `constant` in place */
    laya_mil_value *value;             /* that the name means here; NULL: nothing of that name comes before */
    const laya_mil_constant *constant; /* NULL where name is set */
} laya_mil_binding;

typedef struct laya_mil_argument {
    const char *name; /* of the parameter */
    laya_mil_binding *bindings;
    uint32_t count; /* 1, or more for variadic parameters (values of concat, einsum) */
} laya_mil_argument;

typedef struct laya_mil_attribute {
    const char *name;
    const laya_mil_constant *value;
} laya_mil_attribute;

/* Operations in the order of a block. */
typedef struct laya_mil_block {
    laya_mil_value **inputs; /* of nested blocks; the main block of a function sees the function's inputs */
    uint32_t input_count;
    laya_mil_op *first, *last;
    uint32_t op_count;
    laya_mil_binding *outputs;
    uint32_t output_count;
} laya_mil_block;

struct laya_mil_op {
    laya_mil_op *next;
    const char *type; /* "conv", "const", … */
    const char *name; /* attribute "name"; NULL: none */
    laya_mil_argument *inputs;
    uint32_t input_count;
    laya_mil_value **outputs;
    uint32_t output_count;
    laya_mil_attribute *attributes; /* without "name"; "val" of const, parameters of iOS16 constexpr operations */
    uint32_t attribute_count;
    laya_mil_block *blocks; /* nested: cond, while_loop */
    uint32_t block_count;
};

typedef struct laya_mil_function {
    const char *name;
    const char *opset_name; /* as written; "CoreML6" */
    laya_mil_opset opset;   /* 0: a name that is not known here */
    laya_mil_value **inputs;
    uint32_t input_count;
    laya_mil_block body;             /* the block_specializations entry whose key is the opset, else the first */
    uint32_t specialization_count;   /* entries of block_specializations */
    const char *specialization_name; /* key of the entry that is `body` */
} laya_mil_function;

/* An input, output or state as the model's description declares it. */
typedef struct laya_mil_feature {
    const char *name;
    const char *kind;   /* "multiArray"; "image", "dictionary", … are not looked into */
    laya_mil_type type; /* of multiArray and state; dims unknown (rank 0) where the shape is left empty */
    bool flexible;      /* enumerated shapes or a shape range */
    bool optional;
} laya_mil_feature;

/* The description of one function (of the model itself where it has one function). */
typedef struct laya_mil_interface {
    const char *name; /* of the function; "main" for the model's own */
    laya_mil_feature *inputs, *outputs, *states;
    uint32_t input_count, output_count, state_count;
} laya_mil_interface;

typedef struct laya_mil_metadata {
    const char *key; /* userDefined, or "shortDescription", "versionString", "author", "license" */
    const char *text;
} laya_mil_metadata;

typedef struct laya_mil_program {
    laya_arena arena;
    int32_t specification_version;
    int64_t version; /* of the program: 1 */
    laya_mil_function *functions;
    uint32_t function_count;
    laya_mil_interface *interfaces;
    uint32_t interface_count;
    const char *default_function; /* NULL: not given */
    laya_mil_metadata *metadata;  /* shortDescription … first, then userDefined in the order of the file */
    uint32_t metadata_count;
} laya_mil_program;

void laya_mil_program_init(laya_mil_program *program, const laya_allocator *allocator);
void laya_mil_program_close(laya_mil_program *program);

/* The first argument of that name; NULL when there is none. */
const laya_mil_argument *laya_mil_find_argument(const laya_mil_op *op, const char *name);
/* The attribute of that name; NULL when there is none. */
const laya_mil_constant *laya_mil_find_attribute(const laya_mil_op *op, const char *name);
/* The constant that a binding is bound to, in place or by the name of a const operation; NULL: none. */
const laya_mil_constant *laya_mil_bound_constant(const laya_mil_binding *binding);
/* Its type: of the value, or of the constant; NULL when the name is not defined. */
const laya_mil_type *laya_mil_bound_type(const laya_mil_binding *binding);
/* const, or an operation that expands a compressed constant (constexpr_…). */
bool laya_mil_is_const(const laya_mil_op *op);
bool laya_mil_is_constexpr(const laya_mil_op *op);

/* ------------------------------------------------------------------ names */

/* A legal identifier ([A-Za-z_][A-Za-z0-9_@]*) that is no keyword of MIL. */
bool laya_mil_name_is_legal(const char *name);

/* A table from names to pointers; open addressing. Names are not copied. */
typedef struct laya_mil_names {
    laya_allocator allocator;
    const char **keys;
    void **items;
    size_t capacity, count;
} laya_mil_names;

void laya_mil_names_init(laya_mil_names *names, const laya_allocator *allocator);
void laya_mil_names_close(laya_mil_names *names);
/* Set name to item, over an older item; `older` (may be NULL) receives that one or NULL. False: out of memory. */
bool laya_mil_names_put(laya_mil_names *names, const char *name, void *item, void **older);
void *laya_mil_names_get(const laya_mil_names *names, const char *name);

#endif
