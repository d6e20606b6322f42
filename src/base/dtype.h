/* SPDX-License-Identifier: Apache-2.0 */
/* The types in which weights are stored. */
#ifndef LAYA_BASE_DTYPE_H
#define LAYA_BASE_DTYPE_H

#include <stddef.h>

typedef enum laya_dtype { LAYA_F16, LAYA_BF16, LAYA_F32 } laya_dtype;

/* Bytes of one value: 2 or 4. */
size_t laya_dtype_size(laya_dtype dtype);
/* "F16", "BF16", "F32" */
const char *laya_dtype_name(laya_dtype dtype);
/* Widen `count` little-endian values, exactly. `in` has no alignment to rely on. */
void laya_widen(const unsigned char *in, laya_dtype dtype, size_t count, float *out);

#endif
