/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter's elementwise operations, reductions and norms against values worked out by hand, and rounding to
 * fp16 against the scalar conversion.
 */
#include "mil_run.h"

#include "base/half.h"

#include <math.h>

/* ------------------------------------------------------------------ arithmetic */

static void test_float_arithmetic(void **state)
{
    (void)state;
    const test_operand x = F32("x", 4, 7, -7, 7.5, -0.0), y = F32("y", 4, 2, 2, -2, 3);
    EXPECT(COMPUTE("add", FP32, x, y), 0, 9, -5, 5.5, 3);
    EXPECT(COMPUTE("sub", FP32, x, y), 0, 5, -9, 9.5, -3);
    EXPECT(COMPUTE("mul", FP32, x, y), 0, 14, -14, -15, 0);
    EXPECT(COMPUTE("real_div", FP32, x, y), 0, 3.5, -3.5, -3.75, 0);
    EXPECT(COMPUTE("floor_div", FP32, x, y), 0, 3, -4, -4, 0);
    EXPECT(COMPUTE("mod", FP32, x, y), 0, 1, 1, -0.5, 0);
    EXPECT(COMPUTE("maximum", FP32, x, y), 0, 7, 2, 7.5, 3);
    EXPECT(COMPUTE("minimum", FP32, x, y), 0, 2, -7, -2, 0);
    EXPECT(COMPUTE("pow", FP32, F32("x", 3, 2, 9, 2), F32("y", 3, 10, 0.5, -1)), 1, 1024, 3, 0.5);
    EXPECT(COMPUTE("maximum", FP32, F32("x", 2, NAN, 1), F32("y", 2, 1, NAN)), 0, NAN, NAN);
    EXPECT(COMPUTE("minimum", FP32, F32("x", 2, NAN, 1), F32("y", 2, 1, NAN)), 0, NAN, NAN);
    EXPECT(COMPUTE("real_div", FP32, F32("x", 3, 1, -1, 0), F32("y", 3, 0, 0, 0)), 0, INFINITY, -INFINITY, NAN);
}

static void test_integer_arithmetic(void **state)
{
    (void)state;
    const test_operand x = I32("x", 5, 7, -7, 7, -7, 2147483647), y = I32("y", 5, 2, 2, -2, 0, 1);
    EXPECT(COMPUTE("add", FP16, x, y), 0, 9, -5, 5, -7, -2147483648.0);
    EXPECT(COMPUTE("sub", FP16, x, y), 0, 5, -9, 9, -7, 2147483646);
    EXPECT(COMPUTE("mul", FP16, x, y), 0, 14, -14, -14, 0, 2147483647);
    EXPECT(COMPUTE("real_div", FP16, x, y), 0, 3, -3, -3, 0, 2147483647);
    EXPECT(COMPUTE("floor_div", FP16, x, y), 0, 3, -4, -4, 0, 2147483647);
    EXPECT(COMPUTE("mod", FP16, x, y), 0, 1, 1, -1, 0, 0);
    EXPECT(COMPUTE("maximum", FP16, x, y), 0, 7, 2, 7, 0, 2147483647);
    EXPECT(COMPUTE("minimum", FP16, x, y), 0, 2, -7, -2, -7, 1);
    EXPECT(COMPUTE("pow", FP16, I32("x", 4, 3, -2, 2, -1), I32("y", 4, 4, 3, -1, -3)), 0, 81, -8, 0, -1);
    EXPECT(COMPUTE("real_div", FP16, I32("x", 1, INT32_MIN), I32("y", 1, -1)), 0, INT32_MIN);
    EXPECT(COMPUTE("exp2", FP16, I32("x", 4, -1, 0, 10, 40)), 0, 0, 1, 1024, 0);
    EXPECT(COMPUTE("square", FP16, I32("x", 2, -3, 5)), 0, 9, 25);
    EXPECT(COMPUTE("abs", FP16, I32("x", 3, -3, 0, 5)), 0, 3, 0, 5);
    EXPECT(COMPUTE("sign", FP16, I32("x", 3, -3, 0, 5)), 0, -1, 0, 1);
}

static void test_comparisons(void **state)
{
    (void)state;
    const test_operand x = F32("x", 4, 1, 2, 3, NAN), y = F32("y", 4, 2, 2, 2, 2);
    EXPECT(COMPUTE("equal", FP32, x, y), 0, 0, 1, 0, 0);
    EXPECT(COMPUTE("not_equal", FP32, x, y), 0, 1, 0, 1, 1);
    EXPECT(COMPUTE("greater", FP32, x, y), 0, 0, 0, 1, 0);
    EXPECT(COMPUTE("greater_equal", FP32, x, y), 0, 0, 1, 1, 0);
    EXPECT(COMPUTE("less", FP32, x, y), 0, 1, 0, 0, 0);
    EXPECT(COMPUTE("less_equal", FP32, x, y), 0, 1, 1, 0, 0);
    const test_operand i = I32("x", 3, 1, 2, 3), j = I32("y", 3, 2, 2, 2);
    EXPECT(COMPUTE("equal", FP32, i, j), 0, 0, 1, 0);
    EXPECT(COMPUTE("not_equal", FP32, i, j), 0, 1, 0, 1);
    EXPECT(COMPUTE("greater", FP32, i, j), 0, 0, 0, 1);
    EXPECT(COMPUTE("greater_equal", FP32, i, j), 0, 0, 1, 1);
    EXPECT(COMPUTE("less", FP32, i, j), 0, 1, 0, 0);
    EXPECT(COMPUTE("less_equal", FP32, i, j), 0, 1, 1, 0);
    const test_operand a = BOOLS("x", 4, 0, 0, 1, 1), b = BOOLS("y", 4, 0, 1, 0, 1);
    EXPECT(COMPUTE("logical_and", FP32, a, b), 0, 0, 0, 0, 1);
    EXPECT(COMPUTE("logical_or", FP32, a, b), 0, 0, 1, 1, 1);
    EXPECT(COMPUTE("logical_xor", FP32, a, b), 0, 0, 1, 1, 0);
    EXPECT(COMPUTE("logical_not", FP32, a), 0, 1, 1, 0, 0);
}

/* ------------------------------------------------------------------ functions of one operand */

static void test_simple_functions(void **state)
{
    (void)state;
    const test_operand x = F32("x", 5, -2.5, -0.5, 0, 1.5, 7);
    EXPECT(COMPUTE("relu", FP32, x), 0, 0, 0, 0, 1.5, 7);
    EXPECT(COMPUTE("relu6", FP32, x), 0, 0, 0, 0, 1.5, 6);
    EXPECT(COMPUTE("leaky_relu", FP32, x, SCALAR("alpha", LAYA_MIL_FP32, 0.25)), 0, -0.625, -0.125, 0, 1.5, 7);
    EXPECT(COMPUTE("square", FP32, x), 0, 6.25, 0.25, 0, 2.25, 49);
    EXPECT(COMPUTE("abs", FP32, x), 0, 2.5, 0.5, 0, 1.5, 7);
    EXPECT(COMPUTE("sign", FP32, x), 0, -1, -1, 0, 1, 1);
    EXPECT(COMPUTE("ceil", FP32, x), 0, -2, 0, 0, 2, 7);
    EXPECT(COMPUTE("floor", FP32, x), 0, -3, -1, 0, 1, 7);
    EXPECT(COMPUTE("round", FP32, x), 0, -2, 0, 0, 2, 7);
    EXPECT(COMPUTE("softsign", FP32, F32("x", 2, -3, 1)), 0, -0.75, 0.5);
    EXPECT(COMPUTE("clip", FP32, x, SCALAR("alpha", LAYA_MIL_FP32, -1), SCALAR("beta", LAYA_MIL_FP32, 1)), 0, -1,
           -0.5, 0, 1, 1);
    EXPECT(COMPUTE("sqrt", FP32, F32("x", 3, 0, 2.25, 9)), 0, 0, 1.5, 3);
    EXPECT(COMPUTE("rsqrt", FP32, F32("x", 2, 3, 15), SCALAR("epsilon", LAYA_MIL_FP32, 1)), 0, 0.5, 0.25);
    EXPECT(COMPUTE("inverse", FP32, F32("x", 2, 3, -2), SCALAR("epsilon", LAYA_MIL_FP32, 1)), 0, 0.25, -1);
    /* The default 1e-12 is 0 in fp16, 1e-4 is 0x068e there: 1 / 0x068e = 9998.5 or so, in fp16 10000 */
    EXPECT(COMPUTE("rsqrt", FP16, VECTOR("x", LAYA_MIL_FP16, 1, 0)), 0, INFINITY);
    EXPECT(COMPUTE("rsqrt", FP32, VECTOR("x", LAYA_MIL_FP16, 1, 0)), 0, INFINITY);
    EXPECT(COMPUTE("rsqrt", FP32, F32("x", 1, 0)), 1, 1e6);
    EXPECT(COMPUTE("inverse", FP16, VECTOR("x", LAYA_MIL_FP16, 1, 0)), 0, 10000);
    EXPECT(COMPUTE("inverse", FP32, F32("x", 1, 0)), 1, 10000);
    EXPECT(COMPUTE("exp2", FP32, F32("x", 3, -1, 0.5, 3)), 2, 0.5, 1.4142135623730951, 8);
}

/* In float64, to 10 digits. */
static void test_transcendental_functions(void **state)
{
    (void)state;
    const test_operand x = F32("x", 4, -3, -0.5, 0.75, 4);
    EXPECT(COMPUTE("exp", FP32, x), 2, 0.04978706837, 0.6065306597, 2.117000017, 54.59815003);
    EXPECT(COMPUTE("log", FP32, F32("x", 2, 0.5, 10)), 2, -0.6931471806, 2.302585093);
    EXPECT(COMPUTE("log", FP32, F32("x", 1, 0.5), SCALAR("epsilon", LAYA_MIL_FP32, 0.5)), 0, 0);
    EXPECT(COMPUTE("erf", FP32, x), 2, -0.9999779095, -0.5204998778, 0.7111556337, 0.9999999846);
    EXPECT(COMPUTE("tanh", FP32, x), 2, -0.9950547537, -0.4621171573, 0.6351489524, 0.9993292997);
    EXPECT(COMPUTE("sigmoid", FP32, x), 3, 0.04742587318, 0.3775406688, 0.679178699, 0.9820137900);
    EXPECT(COMPUTE("silu", FP32, x), 3, -0.1422776195, -0.1887703344, 0.5093840243, 3.92805516);
    EXPECT(COMPUTE("softplus", FP32, x), 2, 0.04858735157, 0.474076984, 1.136871006, 4.01814993);
    EXPECT(COMPUTE("sin", FP32, x), 2, -0.1411200081, -0.4794255386, 0.6816387600, -0.7568024953);
    EXPECT(COMPUTE("cos", FP32, x), 2, -0.9899924966, 0.8775825619, 0.7316888689, -0.6536436209);
    EXPECT(COMPUTE("tan", FP32, x), 2, 0.1425465431, -0.5463024898, 0.9315964599, 1.157821282);
    EXPECT(COMPUTE("sigmoid", FP32, F32("x", 3, -INFINITY, INFINITY, NAN)), 0, 0, 1, NAN);
}

/* gelu(-3) = -0.0040496941, gelu(0.75) = 0.58003; the negative tail is good to 1e-7 */
static void test_gelu(void **state)
{
    (void)state;
    const test_operand x = F32("x", 2, -0.5, 0.75);
    EXPECT(COMPUTE("gelu", FP32, x), 4, -0.1542687694, 0.5800294857);
    EXPECT(COMPUTE("gelu", FP32, x, TEXT("mode", "EXACT")), 4, -0.1542687694, 0.5800294857);
    EXPECT(COMPUTE("gelu", FP32, x, TEXT("mode", "TANH_APPROXIMATION")), 4, -0.1542859902, 0.5799605552);
    EXPECT(COMPUTE("gelu", FP32, x, TEXT("mode", "SIGMOID_APPROXIMATION")), 4, -0.1496115634, 0.5863900575);
}

static void test_cast(void **state)
{
    (void)state;
    const test_operand x = F32("x", 6, -2.75, -0.5, 0, 300.5, 1e20, NAN);
    EXPECT(COMPUTE("cast", FP16, x, TEXT("dtype", "int32")), 0, -2, 0, 0, 300, INT32_MAX, 0);
    EXPECT(COMPUTE("cast", FP16, x, TEXT("dtype", "bool")), 0, 1, 1, 0, 1, 1, 1);
    EXPECT(COMPUTE("cast", FP16, x, TEXT("dtype", "fp16")), 0, -2.75, -0.5, 0, 300.5, INFINITY, NAN);
    EXPECT(COMPUTE("cast", FP32, F32("x", 1, 0.1), TEXT("dtype", "fp16")), 0, 0.1f);
    EXPECT(COMPUTE("cast", FP16, F32("x", 1, 0.1), TEXT("dtype", "fp16")), 0, 0.0999755859375);
    EXPECT(COMPUTE("cast", FP16, F32("x", 1, 0.1), TEXT("dtype", "fp32")), 0, 0.1f);
    const test_operand i = I32("x", 4, -1, 0, 2049, 70000);
    EXPECT(COMPUTE("cast", FP16, i, TEXT("dtype", "fp16")), 0, -1, 0, 2048, INFINITY);
    EXPECT(COMPUTE("cast", FP16, i, TEXT("dtype", "fp32")), 0, -1, 0, 2049, 70000);
    EXPECT(COMPUTE("cast", FP16, i, TEXT("dtype", "bool")), 0, 1, 0, 1, 1);
    EXPECT(COMPUTE("cast", FP16, i, TEXT("dtype", "uint8")), 0, 255, 0, 1, 112);
    EXPECT(COMPUTE("cast", FP16, i, TEXT("dtype", "int16")), 0, -1, 0, 2049, 4464);
    EXPECT(COMPUTE("cast", FP16, I32("x", 2, 200, 127), TEXT("dtype", "int8")), 0, -56, 127);
}

/* ------------------------------------------------------------------ broadcasting */

/* [1, 2, 1, 3] with a vector per channel, per column, scalars, fewer axes, both sides growing. */
static void test_broadcasting(void **state)
{
    (void)state;
    const test_operand x = {"x", LAYA_MIL_FP32, SHAPE(4, 1, 2, 1, 3), VALUES(1, 2, 3, 4, 5, 6)};
    const test_operand channel = {"y", LAYA_MIL_FP32, SHAPE(4, 1, 2, 1, 1), VALUES(10, 20)};
    const test_operand column = {"y", LAYA_MIL_FP32, SHAPE(4, 1, 1, 1, 3), VALUES(10, 20, 30)};
    const test_operand row = {"y", LAYA_MIL_FP32, SHAPE(1, 3), VALUES(10, 20, 30)};
    const test_operand scalar = {"y", LAYA_MIL_FP32, VALUES(10)};
    EXPECT(COMPUTE("add", FP32, x, channel), 0, 11, 12, 13, 24, 25, 26);
    EXPECT(COMPUTE("add", FP32, x, column), 0, 11, 22, 33, 14, 25, 36);
    EXPECT(COMPUTE("add", FP32, x, row), 0, 11, 22, 33, 14, 25, 36);
    EXPECT(COMPUTE("sub", FP32, x, scalar), 0, -9, -8, -7, -6, -5, -4);
    const test_operand first = {"x", LAYA_MIL_FP32, VALUES(10)};
    const test_operand second = {"y", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(1, 2, 3, 4)};
    EXPECT(COMPUTE("sub", FP32, first, second), 0, 9, 8, 7, 6);
    const test_operand tall = {"x", LAYA_MIL_FP32, SHAPE(3, 2, 1, 2), VALUES(1, 2, 3, 4)};
    const test_operand wide = {"y", LAYA_MIL_FP32, SHAPE(3, 1, 3, 1), VALUES(10, 20, 30)};
    test_result grown = COMPUTE("mul", FP32, tall, wide);
    assert_int_equal(grown.type.dims[0] * 100 + grown.type.dims[1] * 10 + grown.type.dims[2], 232);
    EXPECT(grown, 0, 10, 20, 20, 40, 30, 60, 30, 40, 60, 80, 90, 120);
}

static void test_select(void **state)
{
    (void)state;
    const test_operand condition = {"cond", LAYA_MIL_BOOL, SHAPE(2, 2, 1), VALUES(1, 0)};
    const test_operand a = {"a", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(1, 2, 3, 4)};
    const test_operand b = {"b", LAYA_MIL_FP32, VALUES(-1)};
    EXPECT(COMPUTE("select", FP32, condition, a, b), 0, 1, 2, -1, -1);
    EXPECT(COMPUTE("select", FP32, BOOLS("cond", 3, 0, 1, 0), I32("a", 3, 1, 2, 3), I32("b", 3, 7, 8, 9)), 0, 7, 2,
           9);
}

/* ------------------------------------------------------------------ reductions */

static void test_reductions(void **state)
{
    (void)state;
    const test_operand x = {"x", LAYA_MIL_FP32, SHAPE(2, 2, 3), VALUES(1, -2, 3, 4, 5, -6)};
    const test_operand rows = LIST("axes", 1, 1), columns = LIST("axes", 1, 0), last = LIST("axes", 1, -1);
    EXPECT(COMPUTE("reduce_sum", FP32, x, rows), 0, 2, 3);
    EXPECT(COMPUTE("reduce_sum", FP32, x, last), 0, 2, 3);
    EXPECT(COMPUTE("reduce_sum", FP32, x, columns), 0, 5, 3, -3);
    EXPECT(COMPUTE("reduce_sum", FP32, x), 0, 5);
    EXPECT(COMPUTE("reduce_mean", FP32, x, columns), 0, 2.5, 1.5, -1.5);
    EXPECT(COMPUTE("reduce_max", FP32, x, columns), 0, 4, 5, 3);
    EXPECT(COMPUTE("reduce_max", FP32, x, rows), 0, 3, 5);
    EXPECT(COMPUTE("reduce_min", FP32, x, columns), 0, 1, -2, -6);
    EXPECT(COMPUTE("reduce_prod", FP32, x, columns), 0, 4, -10, -18);
    EXPECT(COMPUTE("reduce_prod", FP32, x, rows), 0, -6, -120);
    EXPECT(COMPUTE("reduce_l1_norm", FP32, x, rows), 0, 6, 15);
    EXPECT(COMPUTE("reduce_sum_square", FP32, x, rows), 0, 14, 77);
    EXPECT(COMPUTE("reduce_l2_norm", FP32, F32("x", 2, 3, -4)), 0, 5);
    EXPECT(COMPUTE("reduce_log_sum", FP32, x, rows), 1, 0.6931471806, 1.098612289);
    EXPECT(COMPUTE("reduce_log_sum_exp", FP32, F32("x", 3, 1000, 1000, -INFINITY)), 1, 1000.693147);
    EXPECT(COMPUTE("reduce_max", FP32, F32("x", 3, 1, NAN, 3)), 0, NAN);
    const test_operand keep = SCALAR("keep_dims", LAYA_MIL_BOOL, 1);
    test_result kept = COMPUTE("reduce_sum", FP32, x, rows, keep);
    assert_int_equal(kept.type.rank, 2);
    EXPECT(kept, 0, 2, 3);
    /* Axes 0 and 2 of [2, 2, 2]: not neighbours; axis 1 of it; axes 0 and 1. */
    const test_operand cube = {"x", LAYA_MIL_FP32, SHAPE(3, 2, 2, 2), VALUES(1, 2, 4, 8, 16, 32, 64, 128)};
    EXPECT(COMPUTE("reduce_sum", FP32, cube, LIST("axes", 2, 0, 2)), 0, 51, 204);
    EXPECT(COMPUTE("reduce_sum", FP32, cube, LIST("axes", 1, 1)), 0, 5, 10, 80, 160);
    EXPECT(COMPUTE("reduce_sum", FP32, cube, LIST("axes", 2, 0, 1)), 0, 85, 170);
    EXPECT(COMPUTE("reduce_sum", FP32, cube, LIST("axes", 2, 1, 2)), 0, 15, 240);
    /* Element (a, b, c, d) is 8 a + 4 b + 2 c + d. */
    const test_operand four = {"x", LAYA_MIL_FP32, SHAPE(4, 2, 2, 2, 2),
                               VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
    EXPECT(COMPUTE("reduce_sum", FP32, four, LIST("axes", 2, 1, 3)), 0, 10, 18, 42, 50);
    EXPECT(COMPUTE("reduce_sum", FP32, four, LIST("axes", 2, 0, 2)), 0, 20, 24, 36, 40);
}

static void test_integer_reductions(void **state)
{
    (void)state;
    const test_operand x = {"x", LAYA_MIL_INT32, SHAPE(2, 2, 3), VALUES(1, -2, 3, 4, 5, -6)};
    EXPECT(COMPUTE("reduce_sum", FP16, x, LIST("axes", 1, 0)), 0, 5, 3, -3);
    EXPECT(COMPUTE("reduce_mean", FP16, x, LIST("axes", 1, 0)), 0, 2, 1, -1);
    EXPECT(COMPUTE("reduce_max", FP16, x, LIST("axes", 1, 1)), 0, 3, 5);
    EXPECT(COMPUTE("reduce_min", FP16, x, LIST("axes", 1, 1)), 0, -2, -6);
    EXPECT(COMPUTE("reduce_prod", FP16, x, LIST("axes", 1, 1)), 0, -6, -120);
    EXPECT(COMPUTE("reduce_l1_norm", FP16, x), 0, 21);
    EXPECT(COMPUTE("reduce_l2_norm", FP16, x), 0, 9);
    EXPECT(COMPUTE("reduce_sum_square", FP16, x), 0, 91);
    EXPECT(COMPUTE("reduce_log_sum", FP16, I32("x", 1, 8)), 0, 2);
    EXPECT(COMPUTE("reduce_log_sum_exp", FP16, I32("x", 2, 3, 3)), 0, 3);
}

/* 2048 + 1 is a tie to 2048 in fp16: in order nothing is ever added. In float32 the sum is 2050. */
static void test_strict_sums(void **state)
{
    (void)state;
    const test_operand x = {"x", LAYA_MIL_FP16, SHAPE(2, 3, 1), VALUES(2048, 1, 1)};
    const test_operand row = VECTOR("x", LAYA_MIL_FP16, 3, 2048, 1, 1);
    const test_operand wide = F32("x", 3, 2048, 1, 1);
    EXPECT(COMPUTE("reduce_sum", FP16, x, LIST("axes", 1, 0)), 0, 2050);
    EXPECT(COMPUTE("reduce_sum", STRICT, x, LIST("axes", 1, 0)), 0, 2048);
    EXPECT(COMPUTE("reduce_sum", FP16, row), 0, 2050);
    EXPECT(COMPUTE("reduce_sum", STRICT, row), 0, 2048);
    EXPECT(COMPUTE("reduce_sum", STRICT, wide), 0, 2050);
    /* 300^2 is beyond fp16 in either mode; its root is not, if the sum is float32's. */
    EXPECT(COMPUTE("reduce_l2_norm", FP16, VECTOR("x", LAYA_MIL_FP16, 1, 300)), 0, 300);
    EXPECT(COMPUTE("reduce_l2_norm", STRICT, VECTOR("x", LAYA_MIL_FP16, 1, 300)), 0, INFINITY);
    EXPECT(COMPUTE("reduce_sum_square", FP16, VECTOR("x", LAYA_MIL_FP16, 1, 300)), 0, INFINITY);
    EXPECT(COMPUTE("reduce_prod", STRICT, VECTOR("x", LAYA_MIL_FP16, 3, 2000, 2000, 0)), 0, NAN);
    EXPECT(COMPUTE("reduce_prod", FP16, VECTOR("x", LAYA_MIL_FP16, 3, 2000, 2000, 0)), 0, 0);
    EXPECT(COMPUTE("reduce_l1_norm", STRICT, VECTOR("x", LAYA_MIL_FP16, 3, 2048, -1, -1)), 0, 2048);
    EXPECT(COMPUTE("reduce_log_sum_exp", STRICT, VECTOR("x", LAYA_MIL_FP16, 2, 0, 0)), 0, 0.693359375);
}

/* ------------------------------------------------------------------ norms */

/* Along each column of [1, 2, 1, 2]: values m ± d become ± d / sqrt(d^2 + epsilon). */
static void test_layer_norm(void **state)
{
    (void)state;
    const test_operand x = {"x", LAYA_MIL_FP32, SHAPE(4, 1, 2, 1, 2), VALUES(7, 1, 1, 9)};
    const test_operand axes = LIST("axes", 1, 1), epsilon = SCALAR("epsilon", LAYA_MIL_FP32, 0);
    const test_operand gamma = {"gamma", LAYA_MIL_FP32, SHAPE(1, 2), VALUES(2, 3), .fixed = true};
    const test_operand beta = {"beta", LAYA_MIL_FP32, SHAPE(1, 2), VALUES(10, 20), .fixed = true};
    EXPECT(COMPUTE("layer_norm", FP32, x, axes, epsilon), 1, 1, -1, -1, 1);
    EXPECT(COMPUTE("layer_norm", FP32, x, axes, gamma, beta, epsilon), 1, 12, 8, 17, 23);
    EXPECT(COMPUTE("layer_norm", FP32, x, axes, gamma, epsilon), 1, 2, -2, -3, 3);
    /* d^2 = 9 and 16, epsilon 16 and 9: d / 5 */
    EXPECT(COMPUTE("layer_norm", FP32, x, axes, SCALAR("epsilon", LAYA_MIL_FP32, 16)), 1, 0.6, -0.707106781, -0.6,
           0.707106781);
    const test_operand rows = {"x", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(7, 1, 1, 9)};
    EXPECT(COMPUTE("layer_norm", FP32, rows, LIST("axes", 1, -1), gamma, beta, epsilon), 1, 12, 17, 8, 23);
    EXPECT(COMPUTE("layer_norm", FP32, rows, LIST("axes", 1, -1), epsilon), 1, 1, -1, -1, 1);
    /* Over both axes: 1, 3, 5, 7 have mean 4 and variance 5. */
    const test_operand all = {"x", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(1, 3, 5, 7)};
    const test_operand each = {"gamma", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(1, 2, 3, 4), .fixed = true};
    EXPECT(COMPUTE("layer_norm", FP32, all, each, epsilon), 1, -1.341640786, -0.894427191, 1.341640786, 5.366563146);
    /* Axes 0 and 2 of [2, 1, 2, …]: apart from each other. gamma runs over them in order. */
    const test_operand cube = {"x", LAYA_MIL_FP32, SHAPE(3, 2, 2, 2), VALUES(1, 3, 0, 0, 5, 7, 0, 0)};
    const test_operand beta4 = {"beta", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(1, 2, 3, 4), .fixed = true};
    const test_operand gamma4 = {"gamma", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(1, 1, 2, 2), .fixed = true};
    EXPECT(COMPUTE("layer_norm", FP32, cube, LIST("axes", 2, 0, 2), gamma4, beta4, epsilon), 4, -0.341640786,
           1.552786405, NAN, NAN, 3.894427191, 6.683281573, NAN, NAN);
    const test_operand one = SCALAR("epsilon", LAYA_MIL_FP32, 1);
    const double deviation = 2.449489743; /* the root of 5 + 1 */
    EXPECT(COMPUTE("layer_norm", FP32, cube, LIST("axes", 2, 0, 2), gamma4, beta4, one), 4, 1 - 3 / deviation,
           2 - 1 / deviation, 1, 2, 3 + 2 / deviation, 4 + 6 / deviation, 3, 4);
}

/* Strict: sums of 2048, 1, 1 lose the ones; the mean is then 682.67, 682.5 in fp16. */
static void test_strict_norm(void **state)
{
    (void)state;
    const test_operand x = VECTOR("x", LAYA_MIL_FP16, 3, 2048, 1, 1), axes = LIST("axes", 1, 0);
    const test_operand epsilon = SCALAR("epsilon", LAYA_MIL_FP16, 1);
    test_result loose = COMPUTE("layer_norm", FP16, x, axes, epsilon);
    EXPECT(loose, 0, 1.4140625, -0.70703125, -0.70703125);
    /* 1365.5^2 is beyond fp16: the sum is infinite, all results are 0. */
    EXPECT(COMPUTE("layer_norm", STRICT, x, axes, epsilon), 0, 0, 0, 0);
}

static void test_other_norms(void **state)
{
    (void)state;
    const test_operand x = {"x", LAYA_MIL_FP32, SHAPE(3, 1, 2, 2), VALUES(7, 1, 1, 9)};
    const test_operand gamma = {"gamma", LAYA_MIL_FP32, SHAPE(1, 2), VALUES(2, 3), .fixed = true};
    const test_operand beta = {"beta", LAYA_MIL_FP32, SHAPE(1, 2), VALUES(10, 20), .fixed = true};
    const test_operand mean = {"mean", LAYA_MIL_FP32, SHAPE(1, 2), VALUES(1, 2), .fixed = true};
    const test_operand variance = {"variance", LAYA_MIL_FP32, SHAPE(1, 2), VALUES(3, 8), .fixed = true};
    const test_operand zero = SCALAR("epsilon", LAYA_MIL_FP32, 0), one = SCALAR("epsilon", LAYA_MIL_FP32, 1);
    EXPECT(COMPUTE("instance_norm", FP32, x, gamma, beta, zero), 1, 12, 8, 17, 23);
    EXPECT(COMPUTE("instance_norm", FP32, x, zero), 1, 1, -1, -1, 1);
    /* (x - 1) / 2 * 2 + 10, (x - 2) / 3 * 3 + 20 */
    EXPECT(COMPUTE("batch_norm", FP32, x, mean, variance, gamma, beta, one), 1, 16, 10, 19, 27);
    EXPECT(COMPUTE("batch_norm", FP32, x, mean, variance, one), 1, 3, 0, -1 / 3.0, 7 / 3.0);
    const test_operand flat = {"x", LAYA_MIL_FP32, SHAPE(3, 1, 1, 2), VALUES(3, 4)};
    EXPECT(COMPUTE("l2_norm", FP32, flat, zero), 1, 0.6, 0.8);
    const test_operand apart = {"x", LAYA_MIL_FP32, SHAPE(3, 2, 1, 2), VALUES(3, 0, 0, 4)};
    EXPECT(COMPUTE("l2_norm", FP32, apart, zero), 1, 0.6, 0, 0, 0.8);
    const test_operand batch = {"x", LAYA_MIL_FP32, SHAPE(4, 2, 1, 1, 2), VALUES(3, 4, 6, 8)};
    EXPECT(COMPUTE("l2_norm", FP32, batch, zero), 1, 0.6, 0.8, 0.6, 0.8);
}

/* exp(ln 3) : exp(0) = 3 : 1 */
static void test_softmax(void **state)
{
    (void)state;
    const double ln3 = 1.0986122886681098;
    const test_operand columns = {"x", LAYA_MIL_FP32, SHAPE(4, 1, 2, 1, 2), VALUES(ln3, 1000, 0, 1000)};
    EXPECT(COMPUTE("softmax", FP32, columns, SCALAR("axis", LAYA_MIL_INT32, 1)), 4, 0.75, 0.5, 0.25, 0.5);
    const test_operand rows = {"x", LAYA_MIL_FP32, SHAPE(2, 2, 2), VALUES(ln3, 0, -1e4, -1e4)};
    EXPECT(COMPUTE("softmax", FP32, rows), 4, 0.75, 0.25, 0.5, 0.5);
    EXPECT(COMPUTE("softmax", FP32, rows, SCALAR("axis", LAYA_MIL_INT32, -2)), 4, 1, 1, 0, 0);
    const test_operand masked = F32("x", 3, 0, -INFINITY, 0);
    EXPECT(COMPUTE("softmax", FP32, masked), 4, 0.5, 0, 0.5);
    EXPECT(COMPUTE("softmax", FP32, F32("x", 2, -INFINITY, -INFINITY)), 0, NAN, NAN);
    EXPECT(COMPUTE("softmax", FP32, F32("x", 2, 1, NAN)), 0, NAN, NAN);
    const test_operand half = {"x", LAYA_MIL_FP16, SHAPE(2, 3, 1), VALUES(0, 0, 0)};
    EXPECT(COMPUTE("softmax", FP16, half, SCALAR("axis", LAYA_MIL_INT32, 0)), 0, 0.333251953125, 0.333251953125,
           0.333251953125);
    /* Strict: 1 + 64 times 2^-11 stays 1, a tie to even every time; in float32 the sum is 1.03125. */
    test_operand small = {"x", LAYA_MIL_FP16, SHAPE(1, 64), VALUES(0)};
    for (int at = 1; at < 64; at++) small.values[at] = -7.625; /* exp: 0.000488 */
    assert_true(COMPUTE("softmax", STRICT, small).values[0] == 1.0);
    assert_true(COMPUTE("softmax", FP16, small).values[0] < 0.972);
}

/* ------------------------------------------------------------------ fp16 */

static void expect_rounded(float value)
{
    float found = laya_round_fp16(value), array = value;
    float expected = laya_half_to_float(laya_float_to_half(value));
    laya_round_fp16_array(&array, 1);
    if (laya_bits_of_float(found) != laya_bits_of_float(expected) ||
        laya_bits_of_float(array) != laya_bits_of_float(expected))
        fail_msg("%a: expected %a, found %a and %a", (double)value, (double)expected, (double)found, (double)array);
}

/* All halves, the ties between neighbours, and what lies next to either. */
static void test_rounding_to_half(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        float value = laya_half_to_float((uint16_t)half);
        expect_rounded(value);
        if ((half & 0x7fffu) >= 0x7c00u) continue;
        uint32_t size = (half & 0x7fffu) == 0x7bffu ? 0x47800000u : 0; /* after 65504 comes 65536 */
        float next = size ? laya_float_of_bits(size | (half & 0x8000u) << 16)
                          : laya_half_to_float((uint16_t)(half + 1));
        float tie = 0.5f * (value + next);
        uint32_t bits = laya_bits_of_float(tie);
        expect_rounded(tie);
        expect_rounded(laya_float_of_bits(bits + 1));
        if (bits & 0x7fffffffu) expect_rounded(laya_float_of_bits(bits - 1));
    }
    static const uint32_t special[] = {0x7f800001u, 0x7fc00000u, 0xff812345u, 0x00000001u, 0x807fffffu,
                                       0x7f7fffffu, 0x33000000u, 0x33000001u, 0x32ffffffu, 0x477fefffu,
                                       0x477ff000u, 0xc77fefffu, 0xc77ff000u, 0x387fc000u, 0x387fe000u};
    for (size_t at = 0; at < sizeof special / sizeof *special; at++) expect_rounded(laya_float_of_bits(special[at]));
    assert_true(laya_round_fp16(65519.996f) == 65504.0f);
    assert_true(isinf(laya_round_fp16(65520.0f)));
    assert_true(laya_round_fp16(0x1p-25f) == 0.0f && laya_round_fp16(0x1.8p-25f) == 0x1p-24f);
}

/* Inputs and results are rounded in fp16, not in fp32; values of type fp32 never. */
static void test_where_it_rounds(void **state)
{
    (void)state;
    const test_operand x = VECTOR("x", LAYA_MIL_FP16, 2, 2049, 1),
                       y = VECTOR("y", LAYA_MIL_FP16, 2, 0, 0.00048828125);
    EXPECT(COMPUTE("add", FP16, x, y), 0, 2048, 1);
    EXPECT(COMPUTE("add", FP32, x, y), 0, 2049, 1.00048828125);
    EXPECT(COMPUTE("maximum", FP16, x, y), 0, 2048, 1);
    EXPECT(COMPUTE("add", FP16, F32("x", 1, 2049), F32("y", 1, 0)), 0, 2049);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_arithmetic),
        cmocka_unit_test(test_integer_arithmetic),
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_simple_functions),
        cmocka_unit_test(test_transcendental_functions),
        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_cast),
        cmocka_unit_test(test_broadcasting),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_integer_reductions),
        cmocka_unit_test(test_strict_sums),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_strict_norm),
        cmocka_unit_test(test_other_norms),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_rounding_to_half),
        cmocka_unit_test(test_where_it_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
