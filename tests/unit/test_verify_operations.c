/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier, checks 3 to 5: changes to types, parameters and values, and the finding that names each. */
#include "mil_program.h"

#include <string.h>

/* ------------------------------------------------------------------ check 3 */

static void declared_shape(laya_mil_program *program)
{
    test_find_value(program, "masked")->type.dims[1] = 2 * TEST_CHANNELS;
    /* so that the consumer agrees */
    test_find_value(program, "soft")->type.dims[1] = 2 * TEST_CHANNELS;
    test_find_op(program, "halves_0")->outputs[0]->type.dims[1] = TEST_CHANNELS;
    test_find_op(program, "halves_0")->outputs[1]->type.dims[1] = TEST_CHANNELS;
    test_find_value(program, "joined")->type.dims[1] = 2 * TEST_CHANNELS;
    test_find_value(program, "y")->type.dims[1] = program->interfaces[0].outputs[0].type.dims[1] = 2 * TEST_CHANNELS;
    test_find_value(program, "second")->type.dims[1] = program->interfaces[0].outputs[1].type.dims[1] = TEST_CHANNELS;
}

static void declared_dtype(laya_mil_program *program)
{
    test_find_value(program, "y")->type.dtype = LAYA_MIL_FP32;
    program->interfaces[0].outputs[0].type.dtype = LAYA_MIL_FP32;
}

static void declared_second_output(laya_mil_program *program)
{
    test_find_op(program, "halves_0")->outputs[1]->type.dims[1] = 1;
    test_find_value(program, "joined")->type.dims[1] = TEST_CHANNELS / 2 + 1;
    test_find_value(program, "y")->type.dims[1] = program->interfaces[0].outputs[0].type.dims[1] = TEST_CHANNELS / 2 +
                                                                                                   1;
}

static void declared_const(laya_mil_program *program)
{
    laya_mil_op *op = test_append_op(program, "const", "spare", laya_mil_vector(LAYA_MIL_FP16, 3));
    test_add_attribute(program, op, "val", test_make_constant(program, laya_mil_vector(LAYA_MIL_FP16, 2), NULL));
}

static void declared_const_dtype(laya_mil_program *program)
{
    laya_mil_op *op = test_append_op(program, "const", "spare", laya_mil_vector(LAYA_MIL_INT32, 2));
    test_add_attribute(program, op, "val", test_make_constant(program, laya_mil_vector(LAYA_MIL_UINT32, 2), NULL));
}

static void declared_open(laya_mil_program *program)
{
    test_append_unary(program, "relu", "open", "y")->outputs[0]->type.dims[0] = LAYA_MIL_UNKNOWN;
}

static void constant_size(laya_mil_program *program)
{
    ((laya_mil_constant *)(uintptr_t)test_find_value(program, "weight")->constant)->size--;
}

static void constant_without_file(laya_mil_program *program)
{
    laya_mil_constant *constant = (laya_mil_constant *)(uintptr_t)test_find_value(program, "weight")->constant;
    constant->in_file = true;
    constant->offset = 64;
}

/* constexpr_affine_dequantize int8 [2, 4] of an fp16 scale: fp16 [2, 4]. */
static laya_mil_op *add_dequantize(laya_mil_program *program)
{
    laya_mil_type output = {LAYA_MIL_TENSOR, LAYA_MIL_FP16, 2, {2, 4}},
                  data = {LAYA_MIL_TENSOR, LAYA_MIL_INT8, 2, {2, 4}};
    uint16_t scale = 0x3c00;
    int32_t axis = 0;
    laya_mil_op *op = test_append_op(program, "constexpr_affine_dequantize", "expanded", output);
    test_add_attribute(program, op, "quantized_data", test_make_constant(program, data, NULL));
    test_add_attribute(program, op, "zero_point", test_make_constant(program, laya_mil_scalar(LAYA_MIL_INT8), NULL));
    test_add_attribute(program, op, "scale", test_make_constant(program, laya_mil_scalar(LAYA_MIL_FP16), &scale));
    test_add_attribute(program, op, "axis", test_make_constant(program, laya_mil_scalar(LAYA_MIL_INT32), &axis));
    return op;
}

static void constexpr_good(laya_mil_program *program)
{
    add_dequantize(program);
}

static void declared_constexpr(laya_mil_program *program)
{
    add_dequantize(program)->outputs[0]->type.dims[1] = 8;
}

static void constexpr_output(laya_mil_program *program)
{
    test_add_output(program, add_dequantize(program)->outputs[0]);
}

/* ------------------------------------------------------------------ check 4 */

static void no_epsilon(laya_mil_program *program)
{
    test_remove_input(program, "norm", "epsilon");
}

static void no_groups(laya_mil_program *program)
{
    test_remove_input(program, "wide", "groups");
}

static void no_mode(laya_mil_program *program)
{
    test_remove_input(program, "y", "mode");
}

static void no_x(laya_mil_program *program)
{
    test_remove_input(program, "soft", "x");
}

static void unknown_parameter(laya_mil_program *program)
{
    int32_t one = 1;
    test_bind_constant(program, test_add_input(program, test_find_op(program, "soft"), "axes"),
                       laya_mil_scalar(LAYA_MIL_INT32), &one);
}

static void parameter_twice(laya_mil_program *program)
{
    int32_t one = 1;
    test_bind_constant(program, test_add_input(program, test_find_op(program, "soft"), "axis"),
                       laya_mil_scalar(LAYA_MIL_INT32), &one);
}

static void axis_not_constant(laya_mil_program *program)
{
    laya_mil_value *axis = test_add_function_input(program, "axis", laya_mil_vector(LAYA_MIL_INT32, TEST_LENGTH));
    test_bind(test_find_input(program, "soft", "axis")->bindings, axis);
}

static void dtypes_differ(laya_mil_program *program)
{
    test_main_function(program)->inputs[1]->type.dtype = LAYA_MIL_FP32;
    program->interfaces[0].inputs[1].type.dtype = LAYA_MIL_FP32;
}

static void attribute_on_op(laya_mil_program *program)
{
    test_add_attribute(program, test_find_op(program, "soft"), "note",
                       test_make_constant(program, laya_mil_scalar(LAYA_MIL_INT32), NULL));
}

static void constexpr_in_inputs(laya_mil_program *program)
{
    laya_mil_op *op = add_dequantize(program);
    laya_mil_argument *axis = test_add_input(program, op, "axis");
    axis->bindings[0].constant = op->attributes[--op->attribute_count].value;
}

static void later_opset(laya_mil_program *program)
{
    laya_mil_op *op = test_append_op(program, "scaled_dot_product_attention", "attended", test_hidden_type());
    for (unsigned at = 0; at < 3; at++) {
        static const char *const names[3] = {"query", "key", "value"};
        test_bind(test_add_input(program, op, names[at])->bindings, test_find_value(program, "y"));
    }
}

static void unknown_ops(laya_mil_program *program)
{
    test_append_unary(program, "frobnicate", "a", "y");
    test_append_unary(program, "frobnicate", "b", "y");
}

static void bound_in_place(laya_mil_program *program)
{
    int32_t one = 1;
    uint16_t epsilon = 0x00a8;
    test_bind_constant(program, test_find_input(program, "soft", "axis"), laya_mil_scalar(LAYA_MIL_INT32), &one);
    test_bind_constant(program, test_find_input(program, "norm", "epsilon"), laya_mil_scalar(LAYA_MIL_FP16),
                       &epsilon);
}

/* ------------------------------------------------------------------ check 5 */

static void rank_6(laya_mil_program *program)
{
    laya_mil_type type = {LAYA_MIL_TENSOR, LAYA_MIL_FP16, 6, {1, 1, 1, 1, 1, 2}};
    laya_mil_op *op = test_append_op(program, "const", "deep", type);
    test_add_attribute(program, op, "val", test_make_constant(program, type, NULL));
}

static void rank_5(laya_mil_program *program)
{
    laya_mil_type type = {LAYA_MIL_TENSOR, LAYA_MIL_FP16, 5, {1, 1, 1, 1, 2}};
    for (unsigned at = 0; at < 2; at++) {
        laya_mil_op *op = test_append_op(program, "const", at ? "deep_1" : "deep_0", type);
        test_add_attribute(program, op, "val", test_make_constant(program, type, NULL));
    }
}

static void last_axis(laya_mil_program *program)
{
    test_add_function_input(program, "odd", laya_mil_tensor4(LAYA_MIL_FP16, 1, TEST_CHANNELS, 1, 24));
}

static void last_axis_1(laya_mil_program *program)
{
    test_add_function_input(program, "column", laya_mil_tensor4(LAYA_MIL_FP16, 1, TEST_CHANNELS, 1, 1));
}

static void flexible_shape(laya_mil_program *program)
{
    test_main_function(program)->inputs[1]->type.dims[0] = LAYA_MIL_UNKNOWN;
    program->interfaces[0].inputs[1].flexible = true;
}

static void zero_epsilon(laya_mil_program *program)
{
    uint16_t zero = 0; /* what 1e-12 becomes in fp16 */
    test_bind_constant(program, test_find_input(program, "norm", "epsilon"), laya_mil_scalar(LAYA_MIL_FP16), &zero);
}

static void negative_epsilon(laya_mil_program *program)
{
    uint16_t value = 0x80a8;
    test_bind_constant(program, test_find_input(program, "norm", "epsilon"), laya_mil_scalar(LAYA_MIL_FP16), &value);
}

static void zero_epsilon_of(laya_mil_program *program, const char *type)
{
    uint16_t zero = 0;
    laya_mil_op *op = test_append_unary(program, type, "last", "y");
    test_bind_constant(program, test_add_input(program, op, "epsilon"), laya_mil_scalar(LAYA_MIL_FP16), &zero);
}

static void zero_epsilon_of_rsqrt(laya_mil_program *program)
{
    zero_epsilon_of(program, "rsqrt");
}

static void zero_epsilon_of_inverse(laya_mil_program *program)
{
    zero_epsilon_of(program, "inverse");
}

/* With the second variance; the others are 1. */
static void zero_epsilon_of_batch_norm(laya_mil_program *program, uint16_t variance)
{
    uint16_t zeros[TEST_CHANNELS] = {0}, variances[TEST_CHANNELS];
    for (int at = 0; at < TEST_CHANNELS; at++) variances[at] = at == 1 ? variance : 0x3c00;
    zero_epsilon_of(program, "batch_norm");
    laya_mil_op *op = test_find_op(program, "last");
    laya_mil_type type = laya_mil_vector(LAYA_MIL_FP16, TEST_CHANNELS);
    test_bind_constant(program, test_add_input(program, op, "mean"), type, zeros);
    test_bind_constant(program, test_add_input(program, op, "variance"), type, variances);
}

static void weight_and_bias(laya_mil_program *program)
{
    zero_epsilon_of_batch_norm(program, 0x0001);
}

static void zero_variance(laya_mil_program *program)
{
    zero_epsilon_of_batch_norm(program, 0);
}

static void negative_variance(laya_mil_program *program)
{
    zero_epsilon_of_batch_norm(program, 0xbc00);
}

/* constexpr_lut_to_dense of iOS 16: fp16 [1, 10] from 4-bit indices and a table of `entries`. */
static void add_lut(laya_mil_program *program, int64_t entries)
{
    laya_mil_type output = {LAYA_MIL_TENSOR, LAYA_MIL_FP16, 2, {1, 10}};
    static const uint32_t shape[2] = {1, 10};
    laya_mil_op *op = test_append_op(program, "constexpr_lut_to_dense", "looked_up", output);
    test_add_attribute(program, op, "indices", test_make_constant(program, laya_mil_vector(LAYA_MIL_UINT8, 5), NULL));
    test_add_attribute(program, op, "lut",
                       test_make_constant(program, laya_mil_vector(LAYA_MIL_FP16, entries), NULL));
    test_add_attribute(program, op, "shape", test_make_constant(program, laya_mil_vector(LAYA_MIL_UINT32, 2), shape));
}

static void lut_good(laya_mil_program *program)
{
    add_lut(program, 16);
}

static void lut_of_3_bits(laya_mil_program *program)
{
    add_lut(program, 8);
}

/* A const operation of these values, used by nothing. */
static void add_values(laya_mil_program *program, laya_mil_dtype dtype, int64_t count, const void *bytes)
{
    laya_mil_type type = laya_mil_vector(dtype, count);
    laya_mil_op *op = test_append_op(program, "const", "values", type);
    test_add_attribute(program, op, "val", test_make_constant(program, type, bytes));
    op->outputs[0]->constant = op->attributes[0].value;
}

static void finite_values(laya_mil_program *program)
{
    static const uint16_t half[5] = {0x7bff, 0xfbff, 0x8000, 0x0001, 0x83ff}; /* 65504, -65504, -0, subnormal */
    add_values(program, LAYA_MIL_FP16, 5, half);
    static const uint16_t mask[1] = {0xf0e2}; /* -1e4 */
    add_values(program, LAYA_MIL_FP16, 1, mask);
    test_find_op(program, "values")->outputs[0]->name = "values_1"; /* the first of the two */
    static const uint32_t single[2] = {0x7f7fffff, 0xff7fffff};
    test_find_op(program, "values")->outputs[0]->name = "values_2";
    add_values(program, LAYA_MIL_FP32, 2, single);
}

static void half_infinity(laya_mil_program *program)
{
    static const uint16_t values[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0x7c00};
    add_values(program, LAYA_MIL_FP16, 9, values);
}

static void half_nan(laya_mil_program *program)
{
    static const uint16_t values[8] = {0, 0, 0xfc01, 0, 0x7bff, 0x7bff, 0x7bff, 0x7bff};
    add_values(program, LAYA_MIL_FP16, 8, values);
}

static void single_infinity(laya_mil_program *program)
{
    static const uint32_t values[3] = {0x7f7fffff, 0xff800000, 0};
    add_values(program, LAYA_MIL_FP32, 3, values);
}

static void bfloat_nan(laya_mil_program *program)
{
    static const uint16_t values[5] = {0x7f7f, 0, 0, 0, 0x7fc0};
    add_values(program, LAYA_MIL_BF16, 5, values);
}

static void double_nan(laya_mil_program *program)
{
    static const uint64_t values[2] = {0x7fefffffffffffffu, 0x7ff0000000000001u};
    add_values(program, LAYA_MIL_FP64, 2, values);
}

/* The bytes of other types mean nothing like that. */
static void int_values(laya_mil_program *program)
{
    static const uint32_t values[2] = {0x7fc07fc0, 0xffffffff};
    add_values(program, LAYA_MIL_INT32, 2, values);
}

static void infinite_in_place(laya_mil_program *program)
{
    uint16_t values[TEST_CHANNELS] = {0};
    values[63] = 0x7c00;
    test_bind_constant(program, test_find_input(program, "norm", "beta"),
                       laya_mil_vector(LAYA_MIL_FP16, TEST_CHANNELS), values);
}

/* ------------------------------------------------------------------ the table */

static const test_change changes[] = {
    TEST_CHANGE(constexpr_output, TEST_ALSO, 1, "output 'expanded' is a constant"),
    TEST_CHANGE(declared_shape, TEST_ERROR, 3,
                "'masked' is declared fp16 [1, 128, 1, 32], but add gives fp16 [1, 64, 1, 32]"),
    TEST_CHANGE(declared_dtype, TEST_ERROR, 3,
                "'y' is declared fp32 [1, 64, 1, 32], but gelu gives fp16 [1, 64, 1, 32]"),
    TEST_CHANGE(declared_second_output, TEST_ERROR, 3,
                "'halves_1' is declared fp16 [1, 1, 1, 32], but split gives fp16 [1, 32"),
    TEST_CHANGE(declared_const, TEST_ERROR, 3, "'spare' is declared fp16 [3], but const gives fp16 [2]"),
    TEST_CHANGE(declared_const_dtype, TEST_ERROR, 3, "'spare' is declared int32 [2], but const gives uint32 [2]"),
    TEST_CHANGE(declared_open, TEST_WARNING, 3,
                "'open' is declared fp16 [?, 64, 1, 32], though relu gives the fixed fp16 [1, 64"),
    TEST_CHANGE(constexpr_good, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(declared_constexpr, TEST_ERROR, 3,
                "'expanded' is declared fp16 [2, 8], but constexpr_affine_dequantize gives"),
    TEST_CHANGE(constant_size, TEST_ERROR, 3,
                "constant 'weight': 8191 bytes do not fit its type fp16 [64, 64, 1, 1]"),
    TEST_CHANGE(constant_without_file, TEST_ERROR, 3, "1 constants lie in a weight file, but there is none"),
    TEST_CHANGE(no_epsilon, TEST_ERROR, 4, "norm: layer_norm lacks 'epsilon'; it has a default value"),
    TEST_CHANGE(no_groups, TEST_ERROR, 4, "wide: conv lacks 'groups'; it has a default value"),
    TEST_CHANGE(no_mode, TEST_ERROR, 4, "y: gelu lacks 'mode'; it has a default value"),
    TEST_CHANGE(no_x, TEST_ERROR, 4, "soft (softmax): parameter 'x' is missing"),
    TEST_CHANGE(unknown_parameter, TEST_ERROR, 4, "soft (softmax): unknown parameter 'axes'"),
    TEST_CHANGE(parameter_twice, TEST_ERROR, 4, "soft (softmax): parameter 'axis' occurs twice"),
    TEST_CHANGE(axis_not_constant, TEST_ERROR, 4, "soft (softmax): parameter 'axis': expected a constant"),
    TEST_CHANGE(dtypes_differ, TEST_ERROR, 4, "masked (add): parameter 'y': expected fp16 as 'x', found fp32"),
    TEST_CHANGE(attribute_on_op, TEST_ERROR, 4, "soft (softmax): unknown attribute 'note'"),
    TEST_CHANGE(constexpr_in_inputs, TEST_ERROR, 4,
                "expanded (constexpr_affine_dequantize): unknown parameter 'axis'"),
    TEST_CHANGE(lut_good, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(lut_of_3_bits, TEST_ERROR, 4, "looked_up (constexpr_lut_to_dense): "),
    TEST_CHANGE(later_opset, TEST_ERROR, 4,
                "attended: opset CoreML7 has no scaled_dot_product_attention; it exists from CoreML8 on"),
    TEST_CHANGE(unknown_ops, TEST_WARNING, 4,
                "operation frobnicate is not known here: 2 of it not checked (first a)"),
    TEST_CHANGE(bound_in_place, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(rank_6, TEST_ERROR, 5, "'deep' has rank 6; Core ML takes at most 5"),
    TEST_CHANGE(rank_5, TEST_WARNING, 5, "2 values have rank 5 (first 'deep_0')"),
    TEST_CHANGE(last_axis, TEST_WARNING, 5, "input 'odd': last axis of 24, no multiple of 32"),
    TEST_CHANGE(last_axis_1, TEST_WARNING, 5, "input 'column': last axis of 1, no multiple of 32"),
    TEST_CHANGE(flexible_shape, TEST_WARNING, 5, "input 'mask' has a flexible shape"),
    TEST_CHANGE(zero_epsilon, TEST_ERROR, 5,
                "norm: the epsilon of layer_norm is 0; a positive value that fp16 can hold"),
    TEST_CHANGE(negative_epsilon, TEST_ERROR, 5, "norm: the epsilon of layer_norm is -1.00136e-05"),
    TEST_CHANGE(zero_epsilon_of_rsqrt, TEST_ERROR, 5, "last: the epsilon of rsqrt is 0"),
    TEST_CHANGE(zero_epsilon_of_inverse, TEST_WARNING, 5, "last: the epsilon of inverse is 0 (fp16)"),
    TEST_CHANGE(weight_and_bias, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(zero_variance, TEST_ERROR, 5, "last: the epsilon of batch_norm is 0"),
    TEST_CHANGE(negative_variance, TEST_ERROR, 5, "last: the epsilon of batch_norm is 0"),
    TEST_CHANGE(finite_values, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(half_infinity, TEST_ERROR, 5, "constant 'values' (fp16 [9]): element 8 is infinite"),
    TEST_CHANGE(half_nan, TEST_ERROR, 5, "constant 'values' (fp16 [8]): element 2 is NaN"),
    TEST_CHANGE(single_infinity, TEST_ERROR, 5, "constant 'values' (fp32 [3]): element 1 is infinite"),
    TEST_CHANGE(bfloat_nan, TEST_ERROR, 5, "constant 'values' (bf16 [5]): element 4 is NaN"),
    TEST_CHANGE(double_nan, TEST_ERROR, 5, "constant 'values' (fp64 [2]): element 1 is NaN"),
    TEST_CHANGE(int_values, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(infinite_in_place, TEST_ERROR, 5, "norm: constant 'beta' (fp16 [64]): element 63 is infinite"),
};

static void test_changes(void **unused)
{
    (void)unused;
    test_run_changes(changes, sizeof changes / sizeof *changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
