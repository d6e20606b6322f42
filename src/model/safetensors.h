/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of safetensors files: header checked in full, data left in the mapping. */
#ifndef LAYA_MODEL_SAFETENSORS_H
#define LAYA_MODEL_SAFETENSORS_H

#include "base/dtype.h"
#include "base/file.h"
#include "base/memory.h"
#include "laya/base.h"

/* A row-major matrix or vector in the mapping. Its address has no alignment to rely on. */
typedef struct laya_tensor {
    const unsigned char *data; /* NULL: the model has no such tensor */
    laya_dtype dtype;
    uint32_t rows; /* 1 for a vector */
    uint32_t cols;
} laya_tensor;

typedef struct laya_tensor_entry {
    const char *name; /* UTF-8, NUL-terminated */
    laya_tensor tensor;
    uint32_t rank; /* 1 or 2 */
} laya_tensor_entry;

typedef struct laya_safetensors {
    laya_allocator allocator;
    laya_tensor_entry *entries; /* sorted by name */
    uint32_t count;
    char *names;
} laya_safetensors;

/*
 * Read the header of a whole file in memory, which must outlive the result. Checked: header length, JSON,
 * dtype (F16, BF16, F32), shape (rank 1 or 2, no zero), offsets against shape and dtype, order, overlaps, gaps and
 * the end of the file. Errors: FORMAT (message names the tensor), UNSUPPORTED (another dtype), MEMORY.
 */
laya_status laya_safetensors_read(laya_safetensors *tensors, const unsigned char *data, size_t size,
                                  const laya_allocator *allocator, laya_error *error);
void laya_safetensors_close(laya_safetensors *tensors);
const laya_tensor_entry *laya_safetensors_find(const laya_safetensors *tensors, const char *name);

/* Widen `count` values that begin at value index `at` of the tensor, exactly. */
void laya_tensor_widen(const laya_tensor *tensor, size_t at, size_t count, float *out);

#endif
