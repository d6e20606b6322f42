/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a program by typed calls. Each call adds one operation, infers and checks its output type, states every
 * parameter that has a default, and returns the output.
 *
 * After a failure (memory, a type that does not fit) the builder keeps the first error and every later call returns
 * NULL; values that are NULL are accepted, so that graph code checks once, with laya_mil_finish.
 *
 * Names: a label in the current scope, "layers_3_attn" + "scores" gives "layers_3_attn_scores". Labels are legal
 * identifiers. A name that exists already is made unique by "_2", "_3" …. Outputs of operations with several outputs
 * are name_0, name_1, …. Parameters are shared const operations, named by what they say: "perm_0_3_2_1".
 */
#ifndef LAYA_MIL_BUILDER_H
#define LAYA_MIL_BUILDER_H

#include "base/error.h"
#include "mil/operations.h"
#include "mil/program.h"

#define LAYA_MIL_SCOPE_SIZE 128

typedef struct laya_mil_builder {
    laya_mil_program *program;
    laya_mil_function *function;
    laya_mil_names names;      /* of the function's values */
    laya_mil_names parameters; /* shared const operations by name */
    char scope[LAYA_MIL_SCOPE_SIZE];
    laya_status status;
    laya_error *error;
} laya_mil_builder;

/* Begin a program with the one function "main". `program` is initialised and empty; `error` may be NULL. */
void laya_mil_begin(laya_mil_builder *builder, laya_mil_program *program, laya_mil_opset opset, laya_error *error);
/* The first error, else LAYA_OK. Also makes the model's interface from the function's inputs and outputs, and
   releases what the builder owns; to be called in any case. */
laya_status laya_mil_finish(laya_mil_builder *builder);

/* Enter a scope, printf style; the return value is given to laya_mil_leave. */
size_t laya_mil_enter(laya_mil_builder *builder, const char *format, ...) LAYA_PRINTF(2, 3);
void laya_mil_leave(laya_mil_builder *builder, size_t scope);

/* ------------------------------------------------------------------ inputs, outputs, constants */

laya_mil_value *laya_mil_input(laya_mil_builder *builder, const char *name, laya_mil_type type);
/* Make a value an output of the function, under the name that it has. */
void laya_mil_output(laya_mil_builder *builder, laya_mil_value *value);
/* A constant of these bytes (little-endian, C order), which are copied. */
laya_mil_value *laya_mil_const(laya_mil_builder *builder, const char *label, laya_mil_type type, const void *bytes);
/* A constant from a source, which is copied; what source.user points to must outlive the program. */
laya_mil_value *laya_mil_const_source(laya_mil_builder *builder, const char *label, laya_mil_type type,
                                      const laya_mil_source *source);
/* An arena copy of bytes (of a source's user data, say); NULL after a failure. */
void *laya_mil_copy(laya_mil_builder *builder, const void *bytes, size_t size);
/* Add key and text to the metadata (userDefined). */
void laya_mil_metadata_add(laya_mil_builder *builder, const char *key, const char *text);

/* ------------------------------------------------------------------ operations */

/* 1x1 convolution, stride 1. weight [out, in, 1, 1]; bias [out] or NULL: none. */
laya_mil_value *laya_mil_conv(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *weight,
                              laya_mil_value *bias);
/* Over one axis. gamma and beta both or none (NULL). */
laya_mil_value *laya_mil_layer_norm(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis,
                                    laya_mil_value *gamma, laya_mil_value *beta, double epsilon);
/* gamma * (x - mean) / sqrt(variance + epsilon) + beta, a value per channel (axis 1). */
laya_mil_value *laya_mil_batch_norm(laya_mil_builder *builder, const char *label, laya_mil_value *x,
                                    laya_mil_value *mean, laya_mil_value *variance, laya_mil_value *gamma,
                                    laya_mil_value *beta, double epsilon);
/* "nchw,nwhu->nchu": out[n, c, h, u] = sum over w of x[n, c, h, w] * y[n, w, h, u] */
laya_mil_value *laya_mil_einsum(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y);
laya_mil_value *laya_mil_softmax(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis);
/* perm[rank of x] */
laya_mil_value *laya_mil_transpose(laya_mil_builder *builder, const char *label, laya_mil_value *x,
                                   const int32_t *perm);
laya_mil_value *laya_mil_reshape(laya_mil_builder *builder, const char *label, laya_mil_value *x, uint32_t rank,
                                 const int32_t *shape);
/* Equal parts: outputs[parts]. All NULL after a failure. */
void laya_mil_split(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis, uint32_t parts,
                    laya_mil_value **outputs);
/* Parts of the given sizes: outputs[parts]. */
void laya_mil_split_sizes(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis,
                          uint32_t parts, const int32_t *sizes, laya_mil_value **outputs);
laya_mil_value *laya_mil_concat(laya_mil_builder *builder, const char *label, laya_mil_value *const *values,
                                uint32_t count, int32_t axis);
/* x[begin .. end - 1] on every axis */
laya_mil_value *laya_mil_slice(laya_mil_builder *builder, const char *label, laya_mil_value *x, const int32_t *begin,
                               const int32_t *end);
laya_mil_value *laya_mil_add(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y);
laya_mil_value *laya_mil_sub(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y);
laya_mil_value *laya_mil_mul(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y);
laya_mil_value *laya_mil_relu(laya_mil_builder *builder, const char *label, laya_mil_value *x);
/* The exact form, 0.5 x (1 + erf(x / sqrt 2)) */
laya_mil_value *laya_mil_gelu(laya_mil_builder *builder, const char *label, laya_mil_value *x);

#endif
