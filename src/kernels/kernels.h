/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops of the engine: one table of functions and block sizes per instruction set.
 *
 * Kernels allocate nothing, start no threads and keep no state. Pointers need no alignment unless stated. A value's
 * bits depend only on the numbers that go into it: not on its place in a block, nor on how many rows are computed
 * together.
 */
#ifndef LAYA_KERNELS_KERNELS_H
#define LAYA_KERNELS_KERNELS_H

#include "base/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a processor can do; also the bits of the mask that tests pass. */
enum { LAYA_CPU_AVX2 = 1u << 0, LAYA_CPU_FMA = 1u << 1, LAYA_CPU_F16C = 1u << 2, LAYA_CPU_ALL = 0x7fffffff };

#define LAYA_KERNEL_MAX_MR 8u  /* rows of a tile, at most */
#define LAYA_KERNEL_MAX_NR 16u /* columns of a tile, at most; every table's nr divides it */
/*
 * Values of K that are summed before the sum is added to C. The same in every table: it fixes the order of summation,
 * and a packed panel of KC x NR floats (16 KiB) stays in the first-level cache.
 */
#define LAYA_KERNEL_KC 256u

typedef struct laya_kernels {
    const char *name;            /* "portable", "avx2" */
    const char *instruction_set; /* for humans: "C11", "AVX2 + FMA + F16C" */
    uint32_t cpu;                /* LAYA_CPU_* bits that it needs */
    uint32_t mr;                 /* rows of a tile */
    uint32_t nr;                 /* columns of a tile */

    /* Widen `count` values in the file's byte order, exactly. */
    void (*widen)(const unsigned char *data, laya_dtype dtype, size_t count, float *out);

    /*
     * Widen `rows` <= nr rows of a row-major matrix, `depth` values each, into a panel:
     * panel[k * nr + j] = row j, value k; zero for rows <= j < nr. `data` is in the file's byte order; `stride`
     * counts values.
     */
    void (*pack_rows)(const unsigned char *data, laya_dtype dtype, size_t stride, size_t rows, size_t depth,
                      float *panel);

    /* The same for float rows in memory. */
    void (*pack_floats)(const float *values, size_t stride, size_t rows, size_t depth, float *panel);

    /* The same from columns: panel[k * nr + j] = values[k * stride + j] for j < cols <= nr, else zero. */
    void (*pack_cols)(const float *values, size_t stride, size_t depth, size_t cols, float *panel);

    /*
     * c[i][j] = (add ? c[i][j] : 0) + sum over k < depth, in order, of a[i][k] * panel[k * nr + j], for i < rows <=
     * mr and all j < nr. The sum starts from zero and is added to c at its end.
     */
    void (*tile)(size_t rows, size_t depth, const float *a, size_t a_stride, const float *panel, float *c,
                 size_t c_stride, bool add);

    /* x = softmax(scale * x), the maximum subtracted; exp to 2 units in the last place. count >= 1. */
    void (*softmax)(float *x, size_t count, float scale);

    /* x[i] = exp(x[i] - top[i]), x[i] <= top[i]; sums[i] += x[i]. As exact as softmax. */
    void (*exp_columns)(float *x, const float *top, float *sums, size_t count);

    /* Round each value to the nearest fp16, ties to even; beyond 65504 infinity. */
    void (*round_half)(float *values, size_t count);

    /*
     * out = GELU(in) * gate, or GELU(in) where gate is NULL; GELU with erf, error below 1e-7 of max(1, |GELU|). out
     * may be in.
     */
    void (*gelu)(const float *in, const float *gate, float *out, size_t count);
} laya_kernels;

/* CPU features found and not masked out. */
uint32_t laya_cpu_features(uint32_t mask);

/* The best table that the processor AND the mask allow; LAYA_CPU_ALL for no restriction, 0 for the portable one. */
const laya_kernels *laya_kernels_select(uint32_t mask);

/* Every table of this build, runnable here or not: index 0, 1, ...; NULL at the end. */
const laya_kernels *laya_kernels_at(size_t index);

extern const laya_kernels laya_kernels_portable;
#if defined(LAYA_HAVE_X86)
extern const laya_kernels laya_kernels_avx2;
#endif

#endif
