/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element by element: the loops. Those of plain arithmetic have no branches and no calls, so that compilers make vector
 * code of them. Integers wrap around, as NumPy's do.
 */
#include "interpreter/elementwise.h"
#include "kernels/vector_math.h"

#include <math.h>
#include <string.h>

typedef const float *const_float;
typedef const int32_t *const_int32_t;
typedef float *restrict only_float;
typedef int32_t *restrict only_int32_t;

/* out[i] = expression of x and y, the elements of two operands */
#define BINARY(name, in_type, out_type, expression)                                                                  \
    void name(const laya_row *row)                                                                                   \
    {                                                                                                                \
        const_##in_type first = row->in[0], second = row->in[1];                                                     \
        only_##out_type out = row->out;                                                                              \
        size_t count = row->count;                                                                                   \
        if (row->step[0] && row->step[1]) {                                                                          \
            for (size_t i = 0; i < count; i++) {                                                                     \
                in_type x = first[i], y = second[i];                                                                 \
                out[i] = (expression);                                                                               \
            }                                                                                                        \
        } else if (row->step[0]) {                                                                                   \
            in_type y = second[0];                                                                                   \
            for (size_t i = 0; i < count; i++) {                                                                     \
                in_type x = first[i];                                                                                \
                out[i] = (expression);                                                                               \
            }                                                                                                        \
        } else {                                                                                                     \
            in_type x = first[0];                                                                                    \
            size_t step = row->step[1];                                                                              \
            for (size_t i = 0; i < count; i++) {                                                                     \
                in_type y = second[i * step];                                                                        \
                out[i] = (expression);                                                                               \
            }                                                                                                        \
        }                                                                                                            \
    }

/* out[i] = expression of x, the elements of one operand, and the parameters a and b */
#define UNARY(name, in_type, out_type, expression)                                                                   \
    void name(const laya_row *row)                                                                                   \
    {                                                                                                                \
        const_##in_type in = row->in[0];                                                                             \
        only_##out_type out = row->out;                                                                              \
        const float a = row->a, b = row->b;                                                                          \
        (void)a;                                                                                                     \
        (void)b;                                                                                                     \
        for (size_t i = 0; i < row->count; i++) {                                                                    \
            in_type x = in[i];                                                                                       \
            out[i] = (expression);                                                                                   \
        }                                                                                                            \
    }

/* ------------------------------------------------------------------ integers */

static inline int32_t wrap(uint32_t value)
{
    int32_t result;
    memcpy(&result, &value, sizeof result);
    return result;
}

static inline int32_t divide(int32_t x, int32_t y)
{
    return y == 0 ? 0 : wrap((uint32_t)((int64_t)x / y));
}

static inline int32_t floor_divide(int32_t x, int32_t y)
{
    if (y == 0) return 0;
    int64_t quotient = (int64_t)x / y;
    bool below = (int64_t)x % y != 0 && (x < 0) != (y < 0);
    return wrap((uint32_t)(quotient - below));
}

static inline int32_t modulo(int32_t x, int32_t y)
{
    if (y == 0) return 0;
    int64_t rest = (int64_t)x % y;
    return (int32_t)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

/* A negative exponent gives the power's reciprocal, cut: 0 unless x is 1 or -1. */
static inline int32_t power(int32_t x, int32_t y)
{
    uint32_t result = 1, base = (uint32_t)x;
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    for (uint32_t left = (uint32_t)y; left > 0; left >>= 1) {
        if (left & 1u) result *= base;
        base *= base;
    }
    return wrap(result);
}

BINARY(laya_add_integers, int32_t, int32_t, wrap((uint32_t)x + (uint32_t)y))
BINARY(laya_sub_integers, int32_t, int32_t, wrap((uint32_t)x - (uint32_t)y))
BINARY(laya_mul_integers, int32_t, int32_t, wrap((uint32_t)x *(uint32_t)y))
BINARY(laya_real_div_integers, int32_t, int32_t, divide(x, y))
BINARY(laya_floor_div_integers, int32_t, int32_t, floor_divide(x, y))
BINARY(laya_mod_integers, int32_t, int32_t, modulo(x, y))
BINARY(laya_maximum_integers, int32_t, int32_t, x > y ? x : y)
BINARY(laya_minimum_integers, int32_t, int32_t, x < y ? x : y)
BINARY(laya_pow_integers, int32_t, int32_t, power(x, y))
BINARY(laya_equal_integers, int32_t, int32_t, x == y)
BINARY(laya_not_equal_integers, int32_t, int32_t, x != y)
BINARY(laya_greater_integers, int32_t, int32_t, x > y)
BINARY(laya_greater_equal_integers, int32_t, int32_t, x >= y)
BINARY(laya_less_integers, int32_t, int32_t, x < y)
BINARY(laya_less_equal_integers, int32_t, int32_t, x <= y)
BINARY(laya_logical_and, int32_t, int32_t, x &&y)
BINARY(laya_logical_or, int32_t, int32_t, x || y)
BINARY(laya_logical_xor, int32_t, int32_t, (x != 0) != (y != 0))
UNARY(laya_logical_not, int32_t, int32_t, x == 0)
UNARY(laya_exp2_integers, int32_t, int32_t, x<0 || x> 31 ? 0 : wrap(1u << x))
UNARY(laya_square_integers, int32_t, int32_t, wrap((uint32_t)x *(uint32_t)x))
UNARY(laya_abs_integers, int32_t, int32_t, x < 0 ? wrap(0u - (uint32_t)x) : x)
UNARY(laya_sign_integers, int32_t, int32_t, (x > 0) - (x < 0))

/* ------------------------------------------------------------------ arithmetic */

/* As NumPy's: the rest has the sign of the divisor, and the quotient is whole and fits the rest. */
static inline float float_modulo(float x, float y)
{
    float rest = fmodf(x, y);
    if (rest == 0.0f) return copysignf(0.0f, y);
    return (rest < 0.0f) != (y < 0.0f) ? rest + y : rest;
}

static inline float float_floor_divide(float x, float y)
{
    if (y == 0.0f) return x / y;
    float quotient = (x - float_modulo(x, y)) / y;
    if (quotient == 0.0f) return copysignf(0.0f, x / y);
    float whole = floorf(quotient);
    return quotient - whole > 0.5f ? whole + 1.0f : whole;
}

BINARY(laya_add_floats, float, float, x + y)
BINARY(laya_sub_floats, float, float, x - y)
BINARY(laya_mul_floats, float, float, x *y)
BINARY(laya_real_div_floats, float, float, x / y)
BINARY(laya_floor_div_floats, float, float, float_floor_divide(x, y))
BINARY(laya_mod_floats, float, float, float_modulo(x, y))
BINARY(laya_maximum_floats, float, float, x > y || x != x ? x : y)
BINARY(laya_minimum_floats, float, float, x < y || x != x ? x : y)
BINARY(laya_pow_floats, float, float, powf(x, y))
BINARY(laya_equal_floats, float, int32_t, x == y)
BINARY(laya_not_equal_floats, float, int32_t, x != y)
BINARY(laya_greater_floats, float, int32_t, x > y)
BINARY(laya_greater_equal_floats, float, int32_t, x >= y)
BINARY(laya_less_floats, float, int32_t, x < y)
BINARY(laya_less_equal_floats, float, int32_t, x <= y)

/* ------------------------------------------------------------------ functions */

static inline float magnitude(float x)
{
    return laya_float_of_bits(laya_bits_of_float(x) & 0x7fffffffu);
}

/* 1 / (1 + exp(-x)); 0 below -87 */
static inline float sigmoid(float x)
{
    float e = laya_exp_below_zero(-magnitude(x));
    return laya_choose(x < 0.0f, e, 1.0f) / (1.0f + e);
}

#define GELU_TANH_TWICE_ROOT 0x1.988453p+0f /* 2 sqrt(2 / pi) */
#define GELU_TANH_CUBE 0.044715f
#define GELU_SIGMOID_FACTOR 1.702f

/* 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
static inline float gelu_tanh(float x)
{
    return x * sigmoid(GELU_TANH_TWICE_ROOT * (x + GELU_TANH_CUBE * x * x * x));
}

UNARY(laya_relu, float, float, x < 0.0f ? 0.0f : x)
UNARY(laya_relu6, float, float, x<0.0f ? 0.0f : x> 6.0f ? 6.0f : x)
UNARY(laya_leaky_relu, float, float, x < 0.0f ? a * x : x)
UNARY(laya_silu, float, float, x *sigmoid(x))
UNARY(laya_sigmoid, float, float, sigmoid(x))
UNARY(laya_softplus, float, float, (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))))
UNARY(laya_softsign, float, float, x / (1.0f + magnitude(x)))
UNARY(laya_tanh, float, float, tanhf(x))
UNARY(laya_erf, float, float, erff(x))
UNARY(laya_exp, float, float, expf(x))
UNARY(laya_exp2_floats, float, float, exp2f(x))
UNARY(laya_log, float, float, logf(x + a))
UNARY(laya_sqrt, float, float, sqrtf(x))
UNARY(laya_rsqrt, float, float, 1.0f / sqrtf(x + a))
UNARY(laya_inverse, float, float, 1.0f / (x + a))
UNARY(laya_square_floats, float, float, x *x)
UNARY(laya_abs_floats, float, float, magnitude(x))
UNARY(laya_sign_floats, float, float, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x)
UNARY(laya_sin, float, float, sinf(x))
UNARY(laya_cos, float, float, cosf(x))
UNARY(laya_tan, float, float, tanf(x))
UNARY(laya_ceil, float, float, ceilf(x))
UNARY(laya_floor, float, float, floorf(x))
UNARY(laya_round, float, float, rintf(x))
UNARY(laya_clip, float, float, x<a ? a : x> b ? b : x)
UNARY(laya_gelu_tanh, float, float, gelu_tanh(x))
UNARY(laya_gelu_sigmoid, float, float, x *sigmoid(GELU_SIGMOID_FACTOR *x))

void laya_gelu_exact(const laya_row *row)
{
    row->kernels->gelu(row->in[0], NULL, row->out, row->count);
}

/* ------------------------------------------------------------------ cast, select */

static inline int32_t to_integer(float x)
{
    if (x >= 0x1p31f) return INT32_MAX;
    if (x <= -0x1p31f) return INT32_MIN;
    return x == x ? (int32_t)x : 0;
}

UNARY(laya_floats_to_integers, float, int32_t, to_integer(x))
UNARY(laya_floats_to_bools, float, int32_t, x != 0.0f)
UNARY(laya_integers_to_floats, int32_t, float, (float)x)
UNARY(laya_integers_to_bools, int32_t, int32_t, x != 0)

void laya_copy_floats(const laya_row *row)
{
    memcpy(row->out, row->in[0], row->count * sizeof(float));
}

void laya_copy_integers(const laya_row *row)
{
    memcpy(row->out, row->in[0], row->count * sizeof(int32_t));
}

void laya_cut_integers(int32_t *integers, size_t count, laya_mil_dtype dtype)
{
    unsigned bits = laya_mil_dtype_bits(dtype);
    bool has_sign = dtype == LAYA_MIL_INT8 || dtype == LAYA_MIL_INT16;
    if (dtype == LAYA_MIL_BOOL || bits >= 32) return;
    uint32_t mask = (1u << bits) - 1u, sign = has_sign ? 1u << (bits - 1u) : 0u;
    for (size_t i = 0; i < count; i++) integers[i] = wrap((((uint32_t)integers[i] & mask) ^ sign) - sign);
}

#define SELECT(name, type)                                                                                           \
    void name(const laya_row *row)                                                                                   \
    {                                                                                                                \
        const int32_t *condition = row->in[0];                                                                       \
        const_##type yes = row->in[1], no = row->in[2];                                                              \
        only_##type out = row->out;                                                                                  \
        for (size_t i = 0; i < row->count; i++)                                                                      \
            out[i] = condition[i * row->step[0]] ? yes[i * row->step[1]] : no[i * row->step[2]];                     \
    }

SELECT(laya_select_floats, float)
SELECT(laya_select_integers, int32_t)
