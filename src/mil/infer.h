/* SPDX-License-Identifier: Apache-2.0 */
/* What the type inference of single operations shares; included by mil/operations.c and mil/infer_*.c only. */
#ifndef LAYA_MIL_INFER_H
#define LAYA_MIL_INFER_H

#include "base/error.h"
#include "mil/operations.h"

/* An operation whose parameters were checked against its form. */
struct laya_mil_inference {
    const laya_mil_op *op;
    const laya_mil_operation *operation;
    laya_mil_opset opset;
    laya_error *error;
};

/* Tables of forms, each ended by type NULL. */
extern const laya_mil_operation laya_mil_constant_operations[];
extern const laya_mil_operation laya_mil_elementwise_operations[];
extern const laya_mil_operation laya_mil_linear_operations[];
extern const laya_mil_operation laya_mil_norm_operations[];
extern const laya_mil_operation laya_mil_shape_operations[];
extern const laya_mil_operation laya_mil_slice_operations[];

/* One row of such a table: type, first and last opset, inference, parameters. */
#define LAYA_MIL_FORM(type_, since_, until_, infer_, ...)                                                            \
    {                                                                                                                \
        .type = (type_), .since = LAYA_MIL_COREML##since_, .until = LAYA_MIL_COREML##until_, .infer = (infer_),      \
        .parameters = {                                                                                              \
            __VA_ARGS__                                                                                              \
        }                                                                                                            \
    }

/* Sets of dtypes. */
#define LAYA_MIL_DTYPE_BIT(dtype) (UINT64_C(1) << (dtype))
#define LAYA_MIL_INT32S LAYA_MIL_DTYPE_BIT(LAYA_MIL_INT32)
#define LAYA_MIL_BOOLS LAYA_MIL_DTYPE_BIT(LAYA_MIL_BOOL)
#define LAYA_MIL_STRINGS LAYA_MIL_DTYPE_BIT(LAYA_MIL_STRING)
#define LAYA_MIL_FLOATS (LAYA_MIL_DTYPE_BIT(LAYA_MIL_FP16) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_FP32))
#define LAYA_MIL_BYTES (LAYA_MIL_DTYPE_BIT(LAYA_MIL_INT8) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT8))
#define LAYA_MIL_WORDS (LAYA_MIL_DTYPE_BIT(LAYA_MIL_INT16) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT16))
#define LAYA_MIL_NUMBERS (LAYA_MIL_FLOATS | LAYA_MIL_INT32S)
#define LAYA_MIL_NUMBERS_OR_BOOLS (LAYA_MIL_NUMBERS | LAYA_MIL_BOOLS)
#define LAYA_MIL_ALL_NUMBERS (LAYA_MIL_NUMBERS | LAYA_MIL_BYTES | LAYA_MIL_WORDS)
#define LAYA_MIL_ALL_NUMBERS_OR_BOOLS (LAYA_MIL_ALL_NUMBERS | LAYA_MIL_BOOLS)
#define LAYA_MIL_INDEXES                                                                                             \
    (LAYA_MIL_INT32S | LAYA_MIL_DTYPE_BIT(LAYA_MIL_INT16) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_INT8)) /* CoreML7 */

/* ------------------------------------------------------------------ parameters */

/* The type of a parameter (of its first binding); NULL when it is left out. */
const laya_mil_type *laya_mil_parameter_type(const laya_mil_inference *in, const char *name);
/* The constant that it is bound to; NULL when it is left out or no constant. */
const laya_mil_constant *laya_mil_parameter_constant(const laya_mil_inference *in, const char *name);

/* Made by a constexpr operation: a constant whose values are not at hand. */
bool laya_mil_is_expanded(const laya_mil_binding *binding);

/* A list parameter: axes, begin, pad, … */
#define LAYA_MIL_MAX_INTEGERS (2 * LAYA_MIL_MAX_RANK)
typedef struct laya_mil_integers {
    bool given;   /* the parameter is there */
    bool known;   /* its values are at hand: it is a constant */
    size_t count; /* of values, where given */
    int64_t values[LAYA_MIL_MAX_INTEGERS];
} laya_mil_integers;

/* A vector. Errors: another rank, too long, constant bytes that cannot be read, an unknown length. */
laya_status laya_mil_get_integers(const laya_mil_inference *in, const char *name, laya_mil_integers *out);
/* The same where the count must be this one when the parameter is given. */
laya_status laya_mil_get_counted(const laya_mil_inference *in, const char *name, size_t count,
                                 laya_mil_integers *out);
/* A scalar constant, integer or bool; `fallback` when it is left out. */
laya_status laya_mil_get_integer(const laya_mil_inference *in, const char *name, int64_t fallback, int64_t *out);
/* A scalar string constant; `fallback` when it is left out. */
laya_status laya_mil_get_text(const laya_mil_inference *in, const char *name, const char *fallback, const char **out);
/* A scalar axis of `rank` axes, -rank … rank - 1, as 0 … rank - 1. */
laya_status laya_mil_get_axis(const laya_mil_inference *in, const char *name, uint32_t rank, int64_t fallback,
                              uint32_t *axis);
/* A list of different axes: chosen[rank]; `given` tells whether the parameter is there. */
laya_status laya_mil_get_axes(const laya_mil_inference *in, const char *name, uint32_t rank, bool *chosen,
                              bool *given);
/* An element of an integer or bool constant; false when there is none such. */
bool laya_mil_constant_integer(const laya_mil_constant *constant, uint64_t index, int64_t *out);

/* ------------------------------------------------------------------ shapes */

/* The parameter's rank is first … last. */
laya_status laya_mil_check_rank(const laya_mil_inference *in, const char *name, uint32_t first, uint32_t last);
/* The parameter is a scalar, or left out. */
laya_status laya_mil_check_scalar(const laya_mil_inference *in, const char *name);
/* The parameter has these dimensions, or is left out. Unknown ones fit any. */
laya_status laya_mil_check_dims(const laya_mil_inference *in, const char *name, uint32_t rank, const int64_t *dims);
/* Equal, or one of them unknown. */
bool laya_mil_dims_agree(int64_t a, int64_t b);
/* Put a dimension at `at` <= rank. Errors: a rank beyond LAYA_MIL_MAX_RANK. */
laya_status laya_mil_insert_dim(const laya_mil_inference *in, laya_mil_type *type, uint32_t at, int64_t size);
void laya_mil_remove_dim(laya_mil_type *type, uint32_t at);
/* The shape to which two parameters are broadcast, as NumPy does, into out->rank and out->dims. */
laya_status laya_mil_broadcast(const laya_mil_inference *in, const laya_mil_type *a, const laya_mil_type *b,
                               laya_mil_type *out);

/* The output is x: same type. */
laya_status laya_mil_infer_same(const laya_mil_inference *in, laya_mil_type *outputs);

#endif
