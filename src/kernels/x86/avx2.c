/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for AVX2 with FMA and F16C; this file alone is compiled with -mavx2 -mfma -mf16c. A tile is 6 rows by
 * 16 columns: 12 sums, two vectors of the panel and one broadcast value fill 15 of the 16 registers.
 */
#include "kernels/kernels.h"
#include "kernels/vector_math.h"

#include <immintrin.h>
#include <string.h>

#define MR 6
#define NR 16

/* ------------------------------------------------------------------ packing */

/* 8 values from value index 0 of `data`, widened exactly. */
static inline __m256 load8(const unsigned char *data, laya_dtype dtype)
{
    if (dtype == LAYA_F16) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)data));
    if (dtype == LAYA_BF16) {
        __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)data);
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    }
    return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)data));
}

/* The other types are as fast in plain C. */
static void widen(const unsigned char *data, laya_dtype dtype, size_t count, float *out)
{
    size_t i = 0;
    if (dtype == LAYA_F16) {
        for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, load8(data + 2 * i, LAYA_F16));
    }
    laya_widen(data + i * laya_dtype_size(dtype), dtype, count - i, out + i);
}

/* Eight rows of eight values become eight columns of the panel: out[k * NR + j] = row j, value k. */
static inline void transpose8(__m256 r[8], float *out)
{
    __m256 a0 = _mm256_unpacklo_ps(r[0], r[1]), a1 = _mm256_unpackhi_ps(r[0], r[1]);
    __m256 a2 = _mm256_unpacklo_ps(r[2], r[3]), a3 = _mm256_unpackhi_ps(r[2], r[3]);
    __m256 a4 = _mm256_unpacklo_ps(r[4], r[5]), a5 = _mm256_unpackhi_ps(r[4], r[5]);
    __m256 a6 = _mm256_unpacklo_ps(r[6], r[7]), a7 = _mm256_unpackhi_ps(r[6], r[7]);
    __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
    __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
    __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
    __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
    _mm256_storeu_ps(out + 0 * NR, _mm256_permute2f128_ps(b0, b4, 0x20));
    _mm256_storeu_ps(out + 1 * NR, _mm256_permute2f128_ps(b1, b5, 0x20));
    _mm256_storeu_ps(out + 2 * NR, _mm256_permute2f128_ps(b2, b6, 0x20));
    _mm256_storeu_ps(out + 3 * NR, _mm256_permute2f128_ps(b3, b7, 0x20));
    _mm256_storeu_ps(out + 4 * NR, _mm256_permute2f128_ps(b0, b4, 0x31));
    _mm256_storeu_ps(out + 5 * NR, _mm256_permute2f128_ps(b1, b5, 0x31));
    _mm256_storeu_ps(out + 6 * NR, _mm256_permute2f128_ps(b2, b6, 0x31));
    _mm256_storeu_ps(out + 7 * NR, _mm256_permute2f128_ps(b3, b7, 0x31));
}

/* Up to eight rows into the panel's columns 0 .. 7 of `panel`. */
static inline void pack8(const unsigned char *data, laya_dtype dtype, size_t row_bytes, size_t rows, size_t depth,
                         float *panel)
{
    size_t size = laya_dtype_size(dtype), k = 0;
    for (; k + 8 <= depth; k += 8) {
        __m256 r[8];
        for (size_t j = 0; j < 8; j++) {
            r[j] = j < rows ? load8(data + j * row_bytes + k * size, dtype) : _mm256_setzero_ps();
        }
        transpose8(r, panel + k * NR);
    }
    for (; k < depth; k++) {
        for (size_t j = 0; j < 8; j++) {
            float value = 0;
            if (j < rows) laya_widen(data + j * row_bytes + k * size, dtype, 1, &value);
            panel[k * NR + j] = value;
        }
    }
}

static void pack_rows(const unsigned char *data, laya_dtype dtype, size_t stride, size_t rows, size_t depth,
                      float *panel)
{
    size_t row_bytes = stride * laya_dtype_size(dtype);
    for (size_t half = 0; half < NR; half += 8) {
        size_t count = rows > half ? (rows - half < 8 ? rows - half : 8) : 0;
        const unsigned char *from = data + (count ? half * row_bytes : 0);
        switch (dtype) { /* a constant type in each copy of the loop */
        case LAYA_F16: pack8(from, LAYA_F16, row_bytes, count, depth, panel + half); break;
        case LAYA_BF16: pack8(from, LAYA_BF16, row_bytes, count, depth, panel + half); break;
        case LAYA_F32: pack8(from, LAYA_F32, row_bytes, count, depth, panel + half); break;
        }
    }
}

static void pack_floats(const float *values, size_t stride, size_t rows, size_t depth, float *panel)
{
    pack_rows((const unsigned char *)values, LAYA_F32, stride, rows, depth,
              panel); /* x86 has the file's byte order */
}

static void pack_cols(const float *values, size_t stride, size_t depth, size_t cols, float *panel)
{
    if (cols == NR) {
        for (size_t k = 0; k < depth; k++) {
            _mm256_storeu_ps(panel + k * NR, _mm256_loadu_ps(values + k * stride));
            _mm256_storeu_ps(panel + k * NR + 8, _mm256_loadu_ps(values + k * stride + 8));
        }
        return;
    }
    for (size_t k = 0; k < depth; k++) {
        memcpy(panel + k * NR, values + k * stride, cols * sizeof *panel);
        for (size_t j = cols; j < NR; j++) panel[k * NR + j] = 0;
    }
}

/* ------------------------------------------------------------------ product */

static inline void store_row(float *c, __m256 low, __m256 high, bool add)
{
    if (add) {
        low = _mm256_add_ps(_mm256_loadu_ps(c), low);
        high = _mm256_add_ps(_mm256_loadu_ps(c + 8), high);
    }
    _mm256_storeu_ps(c, low);
    _mm256_storeu_ps(c + 8, high);
}

/* The whole tile. Named sums, because compilers keep an array of them in memory. */
static void tile_full(size_t depth, const float *a, size_t a_stride, const float *panel, float *c, size_t c_stride,
                      bool add)
{
    const float *a3 = a + 3 * a_stride;
    __m256 l0 = _mm256_setzero_ps(), h0 = l0, l1 = l0, h1 = l0, l2 = l0, h2 = l0;
    __m256 l3 = l0, h3 = l0, l4 = l0, h4 = l0, l5 = l0, h5 = l0;
    for (size_t k = 0; k < depth; k++, a++, a3++, panel += NR) {
        __m256 low = _mm256_loadu_ps(panel), high = _mm256_loadu_ps(panel + 8), value;
        value = _mm256_broadcast_ss(a);
        l0 = _mm256_fmadd_ps(value, low, l0);
        h0 = _mm256_fmadd_ps(value, high, h0);
        value = _mm256_broadcast_ss(a + a_stride);
        l1 = _mm256_fmadd_ps(value, low, l1);
        h1 = _mm256_fmadd_ps(value, high, h1);
        value = _mm256_broadcast_ss(a + 2 * a_stride);
        l2 = _mm256_fmadd_ps(value, low, l2);
        h2 = _mm256_fmadd_ps(value, high, h2);
        value = _mm256_broadcast_ss(a3);
        l3 = _mm256_fmadd_ps(value, low, l3);
        h3 = _mm256_fmadd_ps(value, high, h3);
        value = _mm256_broadcast_ss(a3 + a_stride);
        l4 = _mm256_fmadd_ps(value, low, l4);
        h4 = _mm256_fmadd_ps(value, high, h4);
        value = _mm256_broadcast_ss(a3 + 2 * a_stride);
        l5 = _mm256_fmadd_ps(value, low, l5);
        h5 = _mm256_fmadd_ps(value, high, h5);
    }
    store_row(c, l0, h0, add);
    store_row(c + c_stride, l1, h1, add);
    store_row(c + 2 * c_stride, l2, h2, add);
    store_row(c + 3 * c_stride, l3, h3, add);
    store_row(c + 4 * c_stride, l4, h4, add);
    store_row(c + 5 * c_stride, l5, h5, add);
}

/* Two rows, or one of them twice: the rows that do not fill a tile. */
static void tile_pair(size_t depth, const float *a0, const float *a1, const float *panel, float *c0, float *c1,
                      bool add)
{
    __m256 l0 = _mm256_setzero_ps(), h0 = l0, l1 = l0, h1 = l0;
    for (size_t k = 0; k < depth; k++, panel += NR) {
        __m256 low = _mm256_loadu_ps(panel), high = _mm256_loadu_ps(panel + 8), value;
        value = _mm256_broadcast_ss(a0 + k);
        l0 = _mm256_fmadd_ps(value, low, l0);
        h0 = _mm256_fmadd_ps(value, high, h0);
        value = _mm256_broadcast_ss(a1 + k);
        l1 = _mm256_fmadd_ps(value, low, l1);
        h1 = _mm256_fmadd_ps(value, high, h1);
    }
    store_row(c0, l0, h0, add);
    if (c1 != c0) store_row(c1, l1, h1, add);
}

static void tile(size_t rows, size_t depth, const float *a, size_t a_stride, const float *panel, float *c,
                 size_t c_stride, bool add)
{
    if (rows == MR) {
        tile_full(depth, a, a_stride, panel, c, c_stride, add);
        return;
    }
    for (size_t i = 0; i < rows; i += 2) {
        size_t next = i + 1 < rows ? i + 1 : i;
        tile_pair(depth, a + i * a_stride, a + next * a_stride, panel, c + i * c_stride, c + next * c_stride, add);
    }
}

/* ------------------------------------------------------------------ softmax, GELU */

/* laya_exp_below_zero on eight values, with fused operations. */
static inline __m256 exp8(__m256 x)
{
    __m256 limit = _mm256_set1_ps(LAYA_EXP_LOW), one = _mm256_set1_ps(1.0f);
    __m256 dropped = _mm256_cmp_ps(x, limit, _CMP_LT_OQ);
    __m256 bounded = _mm256_max_ps(limit, x); /* the second operand where x is a NaN */
    __m256 shifted = _mm256_fmadd_ps(bounded, _mm256_set1_ps(LAYA_EXP_LOG2E), _mm256_set1_ps(LAYA_EXP_ROUND));
    __m256 n = _mm256_sub_ps(shifted, _mm256_set1_ps(LAYA_EXP_ROUND));
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LAYA_EXP_LN2_HIGH), bounded);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LAYA_EXP_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(1.0f / 5040);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(p, r, one);
    p = _mm256_fmadd_ps(p, r, one);
    __m256i power = _mm256_sub_epi32(_mm256_castps_si256(shifted),
                                     _mm256_castps_si256(_mm256_set1_ps(LAYA_EXP_ROUND)));
    power = _mm256_slli_epi32(_mm256_add_epi32(power, _mm256_set1_epi32(127)), 23);
    return _mm256_andnot_ps(dropped, _mm256_mul_ps(p, _mm256_castsi256_ps(power)));
}

/* laya_gelu_erf on eight values. */
static inline __m256 gelu8(__m256 x)
{
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    __m256 z = _mm256_mul_ps(size, _mm256_set1_ps(LAYA_GELU_SQRT_HALF));
    __m256 limit = _mm256_set1_ps(LAYA_GELU_LIMIT);
    __m256 dropped = _mm256_cmp_ps(z, limit, _CMP_GT_OQ);
    __m256 bounded = _mm256_min_ps(limit, z); /* the second operand where z is a NaN */
    static const float terms[LAYA_GELU_TERMS] = {LAYA_GELU_Q0, LAYA_GELU_Q1, LAYA_GELU_Q2, LAYA_GELU_Q3,
                                                 LAYA_GELU_Q4, LAYA_GELU_Q5, LAYA_GELU_Q6, LAYA_GELU_Q7,
                                                 LAYA_GELU_Q8, LAYA_GELU_Q9, LAYA_GELU_Q10};
    __m256 q = _mm256_set1_ps(terms[LAYA_GELU_TERMS - 1]);
    for (int i = LAYA_GELU_TERMS - 2; i >= 0; i--) q = _mm256_fmadd_ps(q, bounded, _mm256_set1_ps(terms[i]));
    __m256 exponent = _mm256_xor_ps(_mm256_set1_ps(-0.0f), _mm256_mul_ps(q, bounded));
    __m256 tail = _mm256_mul_ps(_mm256_mul_ps(size, _mm256_set1_ps(0.5f)), exp8(exponent));
    __m256 negative = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
    return _mm256_sub_ps(_mm256_andnot_ps(negative, x), _mm256_andnot_ps(dropped, tail));
}

/* The first `count` < 8 values, then `fill`. */
static inline __m256 load_part(const float *values, size_t count, float fill)
{
    float full[8] = {fill, fill, fill, fill, fill, fill, fill, fill};
    memcpy(full, values, count * sizeof *full);
    return _mm256_loadu_ps(full);
}

static inline void store_part(float *out, size_t count, __m256 values)
{
    float full[8];
    _mm256_storeu_ps(full, values);
    memcpy(out, full, count * sizeof *full);
}

static inline float sum8(__m256 v)
{
    float lanes[8];
    _mm256_storeu_ps(lanes, v);
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static void softmax(float *x, size_t count, float scale)
{
    size_t whole = count & ~(size_t)7, rest = count - whole;
    __m256 factor = _mm256_set1_ps(scale);
    __m256 top8 = _mm256_set1_ps(x[0] * scale);
    for (size_t i = 0; i < whole; i += 8) {
        __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
        _mm256_storeu_ps(x + i, scaled);
        top8 = _mm256_max_ps(scaled, top8);
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, top8);
    float top = lanes[0];
    for (int i = 1; i < 8; i++) top = lanes[i] > top ? lanes[i] : top;
    for (size_t i = whole; i < count; i++) {
        x[i] *= scale;
        top = x[i] > top ? x[i] : top;
    }
    __m256 tops = _mm256_set1_ps(top), sums = _mm256_setzero_ps();
    for (size_t i = 0; i < whole; i += 8) {
        __m256 power = exp8(_mm256_sub_ps(_mm256_loadu_ps(x + i), tops));
        _mm256_storeu_ps(x + i, power);
        sums = _mm256_add_ps(sums, power);
    }
    if (rest) {
        __m256 power = exp8(_mm256_sub_ps(load_part(x + whole, rest, -__builtin_inff()), tops));
        store_part(x + whole, rest, power);
        sums = _mm256_add_ps(sums, power);
    }
    float inverse = 1.0f / sum8(sums);
    for (size_t i = 0; i < whole; i += 8) {
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(inverse)));
    }
    for (size_t i = whole; i < count; i++) x[i] *= inverse;
}

static void exp_columns(float *x, const float *top, float *sums, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 power = exp8(_mm256_sub_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(top + i)));
        _mm256_storeu_ps(x + i, power);
        _mm256_storeu_ps(sums + i, _mm256_add_ps(_mm256_loadu_ps(sums + i), power));
    }
    if (i < count) {
        __m256 power = exp8(_mm256_sub_ps(load_part(x + i, count - i, 0), load_part(top + i, count - i, 0)));
        store_part(x + i, count - i, power);
        store_part(sums + i, count - i, _mm256_add_ps(load_part(sums + i, count - i, 0), power));
    }
}

/* A NaN becomes the one NaN that the portable code makes. */
static void round_half(float *values, size_t count)
{
    const __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    const __m256 sign = _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN));
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 value = _mm256_loadu_ps(values + i);
        __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
        __m256 rounded = _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        rounded = _mm256_blendv_ps(rounded, _mm256_or_ps(quiet, _mm256_and_ps(sign, value)), nan);
        _mm256_storeu_ps(values + i, rounded);
    }
    for (; i < count; i++) values[i] = laya_round_to_half(values[i]);
}

static void gelu(const float *in, const float *gate, float *out, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 value = gelu8(_mm256_loadu_ps(in + i));
        _mm256_storeu_ps(out + i, gate ? _mm256_mul_ps(value, _mm256_loadu_ps(gate + i)) : value);
    }
    if (i < count) {
        __m256 value = gelu8(load_part(in + i, count - i, 0));
        store_part(out + i, count - i, gate ? _mm256_mul_ps(value, load_part(gate + i, count - i, 0)) : value);
    }
}

const laya_kernels laya_kernels_avx2 = {
    .name = "avx2",
    .instruction_set = "AVX2 + FMA + F16C",
    .cpu = LAYA_CPU_AVX2 | LAYA_CPU_FMA | LAYA_CPU_F16C,
    .mr = MR,
    .nr = NR,
    .widen = widen,
    .pack_rows = pack_rows,
    .pack_floats = pack_floats,
    .pack_cols = pack_cols,
    .tile = tile,
    .softmax = softmax,
    .exp_columns = exp_columns,
    .round_half = round_half,
    .gelu = gelu,
};
