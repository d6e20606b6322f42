/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, tensor types and opsets of MIL, Core ML's intermediate language. */
#ifndef LAYA_MIL_TYPE_H
#define LAYA_MIL_TYPE_H

#include "laya/base.h"

#include <stdbool.h>

/* The values are those of MILSpec.DataType. */
typedef enum laya_mil_dtype {
    LAYA_MIL_NO_DTYPE = 0,
    LAYA_MIL_BOOL = 1,
    LAYA_MIL_STRING = 2,
    LAYA_MIL_FP16 = 10,
    LAYA_MIL_FP32 = 11,
    LAYA_MIL_FP64 = 12,
    LAYA_MIL_BF16 = 13,
    LAYA_MIL_INT8 = 21,
    LAYA_MIL_INT16 = 22,
    LAYA_MIL_INT32 = 23,
    LAYA_MIL_INT64 = 24,
    LAYA_MIL_INT4 = 25,
    LAYA_MIL_UINT8 = 31,
    LAYA_MIL_UINT16 = 32,
    LAYA_MIL_UINT32 = 33,
    LAYA_MIL_UINT64 = 34,
    LAYA_MIL_UINT4 = 35,
    LAYA_MIL_UINT2 = 36,
    LAYA_MIL_UINT1 = 37,
    LAYA_MIL_UINT6 = 38,
    LAYA_MIL_UINT3 = 39,
    LAYA_MIL_FLOAT8E4M3FN = 40,
    LAYA_MIL_FLOAT8E5M2 = 41
} laya_mil_dtype;

/* "fp16", "int32", "string" …; "unknown" for other values. Static storage. */
const char *laya_mil_dtype_name(laya_mil_dtype dtype);
/* Bits of one element in packed form; bool counts 8. 0: string, or not a known type. */
unsigned laya_mil_dtype_bits(laya_mil_dtype dtype);
/* The code of the same type in weight.bin (MIL Blob Storage v2); 0: a blob cannot have this type. */
uint32_t laya_mil_blob_dtype(laya_mil_dtype dtype);

/* Opsets by the specification version that they need. */
typedef enum laya_mil_opset {
    LAYA_MIL_COREML5 = 6, /* iOS 15, macOS 12 */
    LAYA_MIL_COREML6 = 7, /* iOS 16, macOS 13: fp16 inputs and outputs */
    LAYA_MIL_COREML7 = 8, /* iOS 17, macOS 14 */
    LAYA_MIL_COREML8 = 9, /* iOS 18, macOS 15 */
    LAYA_MIL_COREML9 = 10 /* iOS 26, macOS 26 */
} laya_mil_opset;

/* "CoreML5" … "CoreML9"; NULL for other values. */
const char *laya_mil_opset_name(laya_mil_opset opset);
/* False when the text names no opset that is known here. */
bool laya_mil_opset_parse(const char *name, laya_mil_opset *opset);

#define LAYA_MIL_MAX_RANK 8
#define LAYA_MIL_UNKNOWN (-1) /* a dimension that is not fixed */

typedef enum laya_mil_kind {
    LAYA_MIL_TENSOR,
    LAYA_MIL_STATE, /* of the tensor that dtype and dims describe */
    LAYA_MIL_LIST,  /* of lists, tuples and dictionaries only the kind is known */
    LAYA_MIL_TUPLE,
    LAYA_MIL_DICTIONARY
} laya_mil_kind;

typedef struct laya_mil_type {
    laya_mil_kind kind;
    laya_mil_dtype dtype;
    uint32_t rank; /* 0: a scalar */
    int64_t dims[LAYA_MIL_MAX_RANK];
} laya_mil_type;

laya_mil_type laya_mil_scalar(laya_mil_dtype dtype);
laya_mil_type laya_mil_vector(laya_mil_dtype dtype, int64_t size);
/* [a, b, c, d], the form of everything that should run on the Neural Engine */
laya_mil_type laya_mil_tensor4(laya_mil_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d);

bool laya_mil_type_equal(const laya_mil_type *a, const laya_mil_type *b);
/* Number of elements; false when a dimension is unknown or negative, or the product does not fit. */
bool laya_mil_type_count(const laya_mil_type *type, uint64_t *count);
/* Bytes of a constant of this type, ceil(elements * bits / 8); false where that has no meaning or does not fit. */
bool laya_mil_type_size(const laya_mil_type *type, uint64_t *size);

#define LAYA_MIL_TYPE_TEXT 224
/* "fp16 [1, 768, 1, 96]", "string", "state fp16 [1, 8]", "list"; "?" for an unknown dimension. Returns `text`. */
const char *laya_mil_type_text(const laya_mil_type *type, char text[LAYA_MIL_TYPE_TEXT]);

#endif
