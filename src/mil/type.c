/* SPDX-License-Identifier: Apache-2.0 */
#include "mil/type.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    laya_mil_dtype dtype;
    const char *name;
    unsigned bits;
    uint32_t blob; /* code in weight.bin */
} dtypes[] = {{LAYA_MIL_BOOL, "bool", 8, 0},
              {LAYA_MIL_STRING, "string", 0, 0},
              {LAYA_MIL_FP16, "fp16", 16, 1},
              {LAYA_MIL_FP32, "fp32", 32, 2},
              {LAYA_MIL_FP64, "fp64", 64, 0},
              {LAYA_MIL_BF16, "bf16", 16, 5},
              {LAYA_MIL_INT8, "int8", 8, 4},
              {LAYA_MIL_INT16, "int16", 16, 6},
              {LAYA_MIL_INT32, "int32", 32, 14},
              {LAYA_MIL_INT64, "int64", 64, 0},
              {LAYA_MIL_INT4, "int4", 4, 8},
              {LAYA_MIL_UINT8, "uint8", 8, 3},
              {LAYA_MIL_UINT16, "uint16", 16, 7},
              {LAYA_MIL_UINT32, "uint32", 32, 15},
              {LAYA_MIL_UINT64, "uint64", 64, 0},
              {LAYA_MIL_UINT4, "uint4", 4, 11},
              {LAYA_MIL_UINT2, "uint2", 2, 10},
              {LAYA_MIL_UINT1, "uint1", 1, 9},
              {LAYA_MIL_UINT6, "uint6", 6, 13},
              {LAYA_MIL_UINT3, "uint3", 3, 12},
              {LAYA_MIL_FLOAT8E4M3FN, "fp8e4m3fn", 8, 16},
              {LAYA_MIL_FLOAT8E5M2, "fp8e5m2", 8, 17}};

static size_t find_dtype(laya_mil_dtype dtype)
{
    size_t at = 0;
    while (at < sizeof dtypes / sizeof *dtypes && dtypes[at].dtype != dtype) at++;
    return at;
}

const char *laya_mil_dtype_name(laya_mil_dtype dtype)
{
    size_t at = find_dtype(dtype);
    return at < sizeof dtypes / sizeof *dtypes ? dtypes[at].name : "unknown";
}

unsigned laya_mil_dtype_bits(laya_mil_dtype dtype)
{
    size_t at = find_dtype(dtype);
    return at < sizeof dtypes / sizeof *dtypes ? dtypes[at].bits : 0;
}

uint32_t laya_mil_blob_dtype(laya_mil_dtype dtype)
{
    size_t at = find_dtype(dtype);
    return at < sizeof dtypes / sizeof *dtypes ? dtypes[at].blob : 0;
}

/* ------------------------------------------------------------------ opsets */

static const char *const opsets[] = {"CoreML5", "CoreML6", "CoreML7", "CoreML8", "CoreML9"};

const char *laya_mil_opset_name(laya_mil_opset opset)
{
    return opset >= LAYA_MIL_COREML5 && opset <= LAYA_MIL_COREML9 ? opsets[opset - LAYA_MIL_COREML5] : NULL;
}

bool laya_mil_opset_parse(const char *name, laya_mil_opset *opset)
{
    for (unsigned at = 0; at < sizeof opsets / sizeof *opsets; at++) {
        if (strcmp(name, opsets[at]) == 0) {
            *opset = (laya_mil_opset)(LAYA_MIL_COREML5 + at);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ types */

laya_mil_type laya_mil_scalar(laya_mil_dtype dtype)
{
    return (laya_mil_type){.kind = LAYA_MIL_TENSOR, .dtype = dtype};
}

laya_mil_type laya_mil_vector(laya_mil_dtype dtype, int64_t size)
{
    return (laya_mil_type){.kind = LAYA_MIL_TENSOR, .dtype = dtype, .rank = 1, .dims = {size}};
}

laya_mil_type laya_mil_tensor4(laya_mil_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (laya_mil_type){.kind = LAYA_MIL_TENSOR, .dtype = dtype, .rank = 4, .dims = {a, b, c, d}};
}

bool laya_mil_type_equal(const laya_mil_type *a, const laya_mil_type *b)
{
    if (a->kind != b->kind) return false;
    if (a->kind != LAYA_MIL_TENSOR && a->kind != LAYA_MIL_STATE) return true;
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (uint32_t axis = 0; axis < a->rank; axis++) {
        if (a->dims[axis] != b->dims[axis]) return false;
    }
    return true;
}

bool laya_mil_type_count(const laya_mil_type *type, uint64_t *count)
{
    *count = 1;
    bool empty = false;
    for (uint32_t axis = 0; axis < type->rank; axis++) {
        if (type->dims[axis] < 0) return false;
        uint64_t size = (uint64_t)type->dims[axis];
        if (size == 0) {
            empty = true;
        } else if (*count > UINT64_MAX / size) {
            return false;
        } else {
            *count *= size;
        }
    }
    if (empty) *count = 0;
    return true;
}

bool laya_mil_type_size(const laya_mil_type *type, uint64_t *size)
{
    uint64_t count, bits = laya_mil_dtype_bits(type->dtype);
    *size = 0;
    if (type->kind != LAYA_MIL_TENSOR || bits == 0) return false;
    if (!laya_mil_type_count(type, &count) || count > (UINT64_MAX - 7) / bits) return false;
    *size = (count * bits + 7) / 8;
    return true;
}

const char *laya_mil_type_text(const laya_mil_type *type, char text[LAYA_MIL_TYPE_TEXT])
{
    static const char *const kinds[] = {"", "state ", "list", "tuple", "dictionary"};
    bool tensor = type->kind == LAYA_MIL_TENSOR || type->kind == LAYA_MIL_STATE;
    size_t used = (size_t)snprintf(text, LAYA_MIL_TYPE_TEXT, "%s%s", kinds[type->kind],
                                   tensor ? laya_mil_dtype_name(type->dtype) : "");
    if (!tensor || type->rank == 0) return text;
    for (uint32_t axis = 0; axis < type->rank; axis++) {
        const char *before = axis ? ", " : " [";
        if (type->dims[axis] == LAYA_MIL_UNKNOWN)
            used += (size_t)snprintf(text + used, LAYA_MIL_TYPE_TEXT - used, "%s?", before);
        else
            used += (size_t)snprintf(text + used, LAYA_MIL_TYPE_TEXT - used, "%s%" PRId64, before, type->dims[axis]);
    }
    snprintf(text + used, LAYA_MIL_TYPE_TEXT - used, "]");
    return text;
}
