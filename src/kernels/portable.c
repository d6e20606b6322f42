/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels in plain C11. Loops have constant bounds and no branches, so that compilers make vector code of
 * whatever instruction set is the target's baseline.
 */
#include "kernels/kernels.h"
#include "kernels/vector_math.h"

#include <string.h>

#define MR 4
#define NR 8
#define LANES 8 /* partial sums of the softmax denominator */

/* ------------------------------------------------------------------ packing */

static void pack_rows(const unsigned char *data, laya_dtype dtype, size_t stride, size_t rows, size_t depth,
                      float *panel)
{
    enum { CHUNK = 128 }; /* widened in one loop, then scattered */
    float chunk[CHUNK];
    size_t size = laya_dtype_size(dtype);
    for (size_t j = 0; j < rows; j++) {
        for (size_t k = 0; k < depth; k += CHUNK) {
            size_t count = depth - k < CHUNK ? depth - k : CHUNK;
            laya_widen(data + (j * stride + k) * size, dtype, count, chunk);
            float *out = panel + k * NR + j;
            for (size_t i = 0; i < count; i++) out[i * NR] = chunk[i];
        }
    }
    for (size_t j = rows; j < NR; j++) {
        for (size_t k = 0; k < depth; k++) panel[k * NR + j] = 0;
    }
}

static void pack_floats(const float *values, size_t stride, size_t rows, size_t depth, float *panel)
{
    for (size_t j = 0; j < NR; j++) {
        if (j < rows) {
            for (size_t k = 0; k < depth; k++) panel[k * NR + j] = values[j * stride + k];
        } else {
            for (size_t k = 0; k < depth; k++) panel[k * NR + j] = 0;
        }
    }
}

static void pack_cols(const float *values, size_t stride, size_t depth, size_t cols, float *panel)
{
    for (size_t k = 0; k < depth; k++) {
        memcpy(panel + k * NR, values + k * stride, cols * sizeof *panel);
        for (size_t j = cols; j < NR; j++) panel[k * NR + j] = 0;
    }
}

/* ------------------------------------------------------------------ product */

/*
 * Four steps of k per round: the sums then stay in registers through most of the arithmetic even where a compiler
 * keeps the array itself in memory.
 */
static void tile(size_t rows, size_t depth, const float *restrict a, size_t a_stride, const float *restrict panel,
                 float *restrict c, size_t c_stride, bool add)
{
    float sums[MR][NR];
    for (size_t i = 0; i < MR; i++) {
        for (size_t j = 0; j < NR; j++) sums[i][j] = 0;
    }
    size_t k = 0;
    for (; k + 4 <= depth; k += 4) {
        const float *b = panel + k * NR;
        for (size_t i = 0; i < rows; i++) {
            const float *row = a + i * a_stride + k;
            float a0 = row[0], a1 = row[1], a2 = row[2], a3 = row[3];
            for (size_t j = 0; j < NR; j++) {
                float sum = sums[i][j];
                sum += a0 * b[j];
                sum += a1 * b[NR + j];
                sum += a2 * b[2 * NR + j];
                sum += a3 * b[3 * NR + j];
                sums[i][j] = sum;
            }
        }
    }
    for (; k < depth; k++) {
        for (size_t i = 0; i < rows; i++) {
            float value = a[i * a_stride + k];
            for (size_t j = 0; j < NR; j++) sums[i][j] += value * panel[k * NR + j];
        }
    }
    for (size_t i = 0; i < rows; i++) {
        float *out = c + i * c_stride;
        if (add) {
            for (size_t j = 0; j < NR; j++) out[j] += sums[i][j];
        } else {
            for (size_t j = 0; j < NR; j++) out[j] = sums[i][j];
        }
    }
}

/* ------------------------------------------------------------------ softmax, GELU */

static void softmax(float *x, size_t count, float scale)
{
    float top = x[0] * scale;
    for (size_t i = 0; i < count; i++) {
        x[i] *= scale;
        top = x[i] > top ? x[i] : top;
    }
    float sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            x[i + lane] = laya_exp_below_zero(x[i + lane] - top);
            sums[lane] += x[i + lane];
        }
    }
    for (; i < count; i++) {
        x[i] = laya_exp_below_zero(x[i] - top);
        sums[i % LANES] += x[i];
    }
    float sum = 0;
    for (size_t lane = 0; lane < LANES; lane++) sum += sums[lane];
    float factor = 1.0f / sum;
    for (i = 0; i < count; i++) x[i] *= factor;
}

static void exp_columns(float *x, const float *top, float *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float power = laya_exp_below_zero(x[i] - top[i]);
        x[i] = power;
        sums[i] += power;
    }
}

static void round_half(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) values[i] = laya_round_to_half(values[i]);
}

static void gelu(const float *in, const float *gate, float *out, size_t count)
{
    if (gate) {
        for (size_t i = 0; i < count; i++) out[i] = laya_gelu_erf(in[i]) * gate[i];
    } else {
        for (size_t i = 0; i < count; i++) out[i] = laya_gelu_erf(in[i]);
    }
}

const laya_kernels laya_kernels_portable = {
    .name = "portable",
    .instruction_set = "C11",
    .cpu = 0,
    .mr = MR,
    .nr = NR,
    .widen = laya_widen,
    .pack_rows = pack_rows,
    .pack_floats = pack_floats,
    .pack_cols = pack_cols,
    .tile = tile,
    .softmax = softmax,
    .exp_columns = exp_columns,
    .round_half = round_half,
    .gelu = gelu,
};
