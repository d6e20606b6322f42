/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp and GELU in float32 as straight-line arithmetic, so that compilers turn loops over them into vector code. The
 * vector kernels use the same constants.
 */
#ifndef LAYA_KERNELS_VECTOR_MATH_H
#define LAYA_KERNELS_VECTOR_MATH_H

#include "base/half.h"

/* condition ? a : b by bits: a branch would keep compilers from making vector code, since comparisons may trap. */
static inline float laya_choose(int condition, float a, float b)
{
    uint32_t mask = 0u - (uint32_t)condition;
    return laya_float_of_bits((laya_bits_of_float(a) & mask) | (laya_bits_of_float(b) & ~mask));
}

/*
 * exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor series to r^7 (remainder below 6e-9),
 * 2^n by the exponent bits. Adding 1.5 * 2^23 rounds to a whole number, which then stands in the low bits. ln 2 is
 * split so that n times its first part is exact. Below EXP_LOW the result is 0; a NaN stays a NaN.
 */
#define LAYA_EXP_LOW (-87.0f)
#define LAYA_EXP_LOG2E 0x1.715476p+0f
#define LAYA_EXP_ROUND 0x1.8p+23f
#define LAYA_EXP_LN2_HIGH 0x1.62e4p-1f
#define LAYA_EXP_LN2_LOW 0x1.7f7d1cp-20f

static inline float laya_exp_below_zero(float x)
{
    float bounded = laya_choose(x < LAYA_EXP_LOW, LAYA_EXP_LOW, x);
    float shifted = bounded * LAYA_EXP_LOG2E + LAYA_EXP_ROUND;
    float n = shifted - LAYA_EXP_ROUND;
    float r = (bounded - n * LAYA_EXP_LN2_HIGH) - n * LAYA_EXP_LN2_LOW;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t power = (laya_bits_of_float(shifted) - laya_bits_of_float(LAYA_EXP_ROUND) + 127u) << 23;
    float result = p * laya_float_of_bits(power);
    return laya_choose(x < LAYA_EXP_LOW, 0.0f, result);
}

/*
 * GELU(x) = max(x, 0) - |x| / 2 * erfc(z), z = |x| / sqrt(2). erfc(z) = exp(-z q(z)) with a polynomial q of degree
 * 10, fitted to -ln(erfc(z)) / z on [0, 4.5] by weighted least squares for the smallest absolute error of the
 * product: 3.2e-11 in exact arithmetic, 4e-8 in float32. Above z = 4.5 the second term is below 7e-10 and taken as 0.
 */
#define LAYA_GELU_LIMIT 4.5f
#define LAYA_GELU_SQRT_HALF 0x1.6a09e6p-1f
#define LAYA_GELU_TERMS 11
#define LAYA_GELU_Q0 0x1.20dd74p+0f
#define LAYA_GELU_Q1 0x1.45f330p-1f
#define LAYA_GELU_Q2 0x1.a4ea6ap-4f
#define LAYA_GELU_Q3 (-0x1.38b2f2p-6f)
#define LAYA_GELU_Q4 (-0x1.50727cp-12f)
#define LAYA_GELU_Q5 0x1.ee86e2p-10f
#define LAYA_GELU_Q6 (-0x1.a8f52ap-11f)
#define LAYA_GELU_Q7 0x1.a868e6p-13f
#define LAYA_GELU_Q8 (-0x1.0b015ep-15f)
#define LAYA_GELU_Q9 0x1.86857ep-19f
#define LAYA_GELU_Q10 (-0x1.f64af0p-24f)

static inline float laya_gelu_erf(float x)
{
    float size = laya_float_of_bits(laya_bits_of_float(x) & 0x7fffffffu);
    float z = size * LAYA_GELU_SQRT_HALF;
    float bounded = laya_choose(z > LAYA_GELU_LIMIT, LAYA_GELU_LIMIT, z);
    float q = LAYA_GELU_Q10;
    q = q * bounded + LAYA_GELU_Q9;
    q = q * bounded + LAYA_GELU_Q8;
    q = q * bounded + LAYA_GELU_Q7;
    q = q * bounded + LAYA_GELU_Q6;
    q = q * bounded + LAYA_GELU_Q5;
    q = q * bounded + LAYA_GELU_Q4;
    q = q * bounded + LAYA_GELU_Q3;
    q = q * bounded + LAYA_GELU_Q2;
    q = q * bounded + LAYA_GELU_Q1;
    q = q * bounded + LAYA_GELU_Q0;
    float tail = size * 0.5f * laya_exp_below_zero(-(q * bounded));
    float positive = laya_choose(x < 0.0f, 0.0f, x);
    return positive - laya_choose(z > LAYA_GELU_LIMIT, 0.0f, tail);
}

#endif
