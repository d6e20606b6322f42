/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier, checks 1 and 2: a good program has no finding; each of many changes to its names or its interface gives
 * the finding that names it. coremltools' loader lets most of them through.
 */
#include "mil_program.h"

#include <string.h>

static void test_good(void **unused)
{
    (void)unused;
    laya_mil_program program;
    test_build_program(&program, NULL);
    laya_package package = test_in_memory(&program);
    laya_verdict verdict;
    test_check_package(&package, &verdict);
    test_print_findings(&verdict);
    assert_int_equal(verdict.finding_count, 0);
    assert_int_equal(verdict.errors + verdict.warnings, 0);
    assert_int_equal(verdict.checked_ops, 8); /* norm, wide, masked, soft, halves, joined, y, second */
    assert_int_equal(verdict.unknown_ops, 0);
    uint32_t constants = 0;
    for (const laya_mil_op *op = program.functions[0].body.first; op; op = op->next)
        constants += laya_mil_is_const(op);
    assert_int_equal(verdict.constants, constants);
    assert_true(verdict.constant_bytes > 2 * TEST_CHANNELS * TEST_CHANNELS + 4 * TEST_CHANNELS);
    laya_verdict_close(&verdict);
    laya_verdict_close(&verdict);
    laya_mil_program_close(&program);
}

/* ------------------------------------------------------------------ check 1 */

static void illegal_name(laya_mil_program *program)
{
    test_rename(program, test_find_value(program, "wide"), "layers.3");
}

static void keyword_name(laya_mil_program *program)
{
    test_rename(program, test_find_value(program, "wide"), "fp16");
}

static void digit_name(laya_mil_program *program)
{
    test_rename(program, test_find_value(program, "wide"), "3rd");
}

static void empty_name(laya_mil_program *program)
{
    test_rename(program, test_find_value(program, "wide"), "");
}

static void not_utf8_name(laya_mil_program *program)
{
    test_rename(program, test_find_value(program, "wide"), "w\xff");
}

/* The value is not used after the second definition, so that only the repetition is wrong. */
static void same_name(laya_mil_program *program)
{
    test_append_unary(program, "relu", "wide", "wide");
}

static void name_of_input(laya_mil_program *program)
{
    test_append_unary(program, "relu", "mask", "wide");
}

static void second_output_name(laya_mil_program *program)
{
    test_rename(program, test_find_op(program, "halves_0")->outputs[1], "halves_0");
}

static void undefined_name(laya_mil_program *program)
{
    test_find_input(program, "masked", "y")->bindings[0] = (laya_mil_binding){.name = "nowhere"};
}

static void later_name(laya_mil_program *program)
{
    test_bind(test_find_input(program, "masked", "x")->bindings, test_find_value(program, "soft"));
}

static void own_output(laya_mil_program *program)
{
    test_bind(test_find_input(program, "masked", "x")->bindings, test_find_value(program, "masked"));
}

static void constant_output(laya_mil_program *program)
{
    laya_mil_value *weight = test_find_value(program, "weight");
    weight->type = test_hidden_type();
    test_replace_constant(program, "weight", test_hidden_type(), NULL);
    test_append_unary(program, "relu", "not_used", "weight");
    laya_mil_op *wide = test_find_op(program, "wide");
    wide->type = "relu";
    wide->input_count = 0;
    test_bind(test_add_input(program, wide, "x")->bindings, test_find_value(program, "norm"));
    test_add_output(program, weight);
}

static void input_as_output(laya_mil_program *program)
{
    test_add_output(program, test_main_function(program)->inputs[0]);
}

static void undefined_output(laya_mil_program *program)
{
    test_main_function(program)->body.outputs[1] = (laya_mil_binding){.name = "second"};
    test_rename(program, test_find_value(program, "second"), "other");
}

static void nameless_op(laya_mil_program *program)
{
    test_find_op(program, "wide")->name = NULL;
    test_find_op(program, "soft")->name = NULL;
}

static void illegal_op_name(laya_mil_program *program)
{
    test_find_op(program, "wide")->name = "layers/3";
}

static void illegal_function_name(laya_mil_program *program)
{
    test_main_function(program)->name = "main-1";
    program->interfaces[0].name = "main-1";
    program->default_function = "main-1";
}

/* An operation with two nested blocks, each with one operation: inner_0, inner_1. */
static laya_mil_op *add_cond(laya_mil_program *program, const char *first, const char *second)
{
    laya_mil_op *cond = test_append_op(program, "cond", "chosen", test_hidden_type());
    const char *names[2] = {first, second};
    cond->blocks = test_take(program, 2 * sizeof *cond->blocks);
    cond->block_count = 2;
    for (unsigned at = 0; at < 2; at++) {
        laya_mil_op *op = test_make_op(program, "relu", names[at], test_hidden_type());
        test_bind(test_add_input(program, op, "x")->bindings, test_find_value(program, "y"));
        test_append(&cond->blocks[at], op);
        cond->blocks[at].outputs = test_take(program, sizeof(laya_mil_binding));
        cond->blocks[at].output_count = 1;
        test_bind(cond->blocks[at].outputs, op->outputs[0]);
    }
    return cond;
}

static void nested_blocks(laya_mil_program *program)
{
    add_cond(program, "inner_0", "inner_1");
}

static void nested_same_name(laya_mil_program *program)
{
    add_cond(program, "inner", "inner");
}

/* Each of the two blocks has an input of this name. */
static laya_mil_op *add_loop(laya_mil_program *program, const char *first, const char *second)
{
    laya_mil_op *loop = add_cond(program, "inner_0", "inner_1");
    const char *names[2] = {first, second};
    for (unsigned at = 0; at < 2; at++) {
        laya_mil_block *block = &loop->blocks[at];
        laya_mil_value *value = test_take(program, sizeof *value);
        *value = (laya_mil_value){.name = names[at], .type = test_hidden_type()};
        block->inputs = test_take(program, sizeof(laya_mil_value *));
        block->inputs[0] = value;
        block->input_count = 1;
        test_bind(block->first->inputs[0].bindings, value);
    }
    return loop;
}

static void illegal_block_input(laya_mil_program *program)
{
    add_loop(program, "state", "repeated");
}

static void passed_on(laya_mil_program *program)
{
    laya_mil_op *loop = add_loop(program, "one", "two");
    test_bind(loop->blocks[1].outputs, loop->blocks[1].inputs[0]); /* passed on unchanged */
}

static void block_inputs_alike(laya_mil_program *program)
{
    add_loop(program, "repeated", "repeated");
}

static void block_input_like_value(laya_mil_program *program)
{
    add_loop(program, "repeated", "soft");
}

static void output_like_block_input(laya_mil_program *program)
{
    add_loop(program, "repeated", "repeated");
    test_append_unary(program, "relu", "repeated", "y");
}

static void nested_name_outside(laya_mil_program *program)
{
    laya_mil_op *cond = add_cond(program, "inner_0", "inner_1");
    laya_mil_op *after = test_append_unary(program, "relu", "after", "y");
    test_bind(after->inputs[0].bindings, cond->blocks[0].first->outputs[0]);
}

static void nested_name_in_sibling(laya_mil_program *program)
{
    laya_mil_op *cond = add_cond(program, "inner_0", "inner_1");
    test_bind(cond->blocks[1].first->inputs[0].bindings, cond->blocks[0].first->outputs[0]);
}

static void nested_uses_owner(laya_mil_program *program)
{
    laya_mil_op *cond = add_cond(program, "inner_0", "inner_1");
    test_bind(cond->blocks[1].first->inputs[0].bindings, cond->outputs[0]);
}

static void nested_constant_output(laya_mil_program *program)
{
    laya_mil_op *cond = add_cond(program, "inner_0", "inner_1");
    test_bind(cond->blocks[1].outputs, test_find_value(program, "gamma"));
}

static void nested_wrong_type(laya_mil_program *program)
{
    laya_mil_op *cond = add_cond(program, "inner_0", "inner_1");
    cond->blocks[1].first->outputs[0]->type.dims[3] = 2 * TEST_LENGTH;
}

static laya_mil_value *add_state(laya_mil_program *program, laya_mil_dtype dtype)
{
    laya_mil_interface *interface = &program->interfaces[0];
    laya_mil_type type = laya_mil_tensor4(dtype, 1, 1, 1, TEST_LENGTH);
    laya_mil_value *value = test_add_function_input(program, "cache", type);
    value->type.kind = LAYA_MIL_STATE;
    interface->input_count--;
    interface->states = test_take(program, sizeof *interface->states);
    interface->states[0] = (laya_mil_feature){.name = "cache", .kind = "state", .type = type};
    interface->state_count = 1;
    return value;
}

static void set_version(laya_mil_program *program, int32_t version, laya_mil_opset opset)
{
    program->specification_version = version;
    test_main_function(program)->opset = opset;
    test_main_function(program)->opset_name = laya_mil_opset_name(opset);
    test_main_function(program)->specialization_name = laya_mil_opset_name(opset);
}

/* ------------------------------------------------------------------ check 2 */

static void program_version(laya_mil_program *program)
{
    program->version = 2;
}

static void old_version(laya_mil_program *program)
{
    program->specification_version = 4;
}

static void future_version(laya_mil_program *program)
{
    program->specification_version = 12;
}

static void lower_version(laya_mil_program *program)
{
    program->specification_version = LAYA_MIL_COREML6;
}

static void higher_version(laya_mil_program *program)
{
    program->specification_version = LAYA_MIL_COREML8;
}

static void unknown_opset(laya_mil_program *program)
{
    test_main_function(program)->opset_name = test_main_function(program)->specialization_name = "CoreML4";
    test_main_function(program)->opset = (laya_mil_opset)0;
}

static void other_key(laya_mil_program *program)
{
    test_main_function(program)->specialization_name = "CoreML6";
}

static void no_block(laya_mil_program *program)
{
    test_main_function(program)->specialization_count = 0;
}

static void more_blocks(laya_mil_program *program)
{
    test_main_function(program)->specialization_count = 2;
}

static void fp16_too_early(laya_mil_program *program)
{
    set_version(program, LAYA_MIL_COREML5, LAYA_MIL_COREML5);
}

static void int8_too_early(laya_mil_program *program)
{
    test_add_function_input(program, "small", laya_mil_vector(LAYA_MIL_INT8, TEST_LENGTH));
}

static void int8_input(laya_mil_program *program)
{
    int8_too_early(program);
    set_version(program, LAYA_MIL_COREML9, LAYA_MIL_COREML9);
}

static void int32_input(laya_mil_program *program)
{
    test_add_function_input(program, "ids", laya_mil_vector(LAYA_MIL_INT32, TEST_LENGTH));
}

static void bool_input(laya_mil_program *program)
{
    test_add_function_input(program, "flags", laya_mil_vector(LAYA_MIL_BOOL, TEST_LENGTH));
}

static void fp64_input(laya_mil_program *program)
{
    test_add_function_input(program, "exact", laya_mil_vector(LAYA_MIL_FP64, TEST_LENGTH));
}

static void scalar_input(laya_mil_program *program)
{
    test_add_function_input(program, "one", laya_mil_scalar(LAYA_MIL_FP16));
}

static void list_input(laya_mil_program *program)
{
    test_add_function_input(program, "all", laya_mil_vector(LAYA_MIL_FP16, TEST_LENGTH))->type.kind = LAYA_MIL_LIST;
}

static void image_input(laya_mil_program *program)
{
    test_add_function_input(program, "picture", test_hidden_type());
    program->interfaces[0].inputs[2] = (laya_mil_feature){.name = "picture", .kind = "image"};
}

static void state(laya_mil_program *program)
{
    add_state(program, LAYA_MIL_FP16);
    set_version(program, LAYA_MIL_COREML8, LAYA_MIL_COREML8);
}

static void state_too_early(laya_mil_program *program)
{
    add_state(program, LAYA_MIL_FP16);
}

static void fp32_state(laya_mil_program *program)
{
    add_state(program, LAYA_MIL_FP32);
    set_version(program, LAYA_MIL_COREML8, LAYA_MIL_COREML8);
}

static void state_not_described(laya_mil_program *program)
{
    state(program);
    program->interfaces[0].state_count = 0;
}

static void input_name(laya_mil_program *program)
{
    program->interfaces[0].inputs[1].name = "musk";
}

static void input_order(laya_mil_program *program)
{
    laya_mil_feature *inputs = program->interfaces[0].inputs, first = inputs[0];
    inputs[0] = inputs[1];
    inputs[1] = first;
}

static void input_dtype(laya_mil_program *program)
{
    program->interfaces[0].inputs[1].type.dtype = LAYA_MIL_FP32;
}

static void input_shape(laya_mil_program *program)
{
    program->interfaces[0].inputs[1].type.dims[3] = 2 * TEST_LENGTH;
}

static void input_rank(laya_mil_program *program)
{
    program->interfaces[0].inputs[1].type.rank = 3;
}

static void input_shape_missing(laya_mil_program *program)
{
    program->interfaces[0].inputs[1].type.rank = 0;
}

static void open_input(laya_mil_program *program)
{
    test_main_function(program)->inputs[1]->type.dims[0] = LAYA_MIL_UNKNOWN;
}

static void input_not_described(laya_mil_program *program)
{
    program->interfaces[0].input_count = 1;
}

static void input_not_in_function(laya_mil_program *program)
{
    test_add_function_input(program, "more", test_hidden_type());
    test_main_function(program)->input_count = 2;
}

static void output_name(laya_mil_program *program)
{
    program->interfaces[0].outputs[0].name = "z";
}

static void output_type(laya_mil_program *program)
{
    program->interfaces[0].outputs[0].type.dims[1] = 1;
}

static void output_shape_missing(laya_mil_program *program)
{
    program->interfaces[0].outputs[0].type.rank = 0;
}

static void output_not_described(laya_mil_program *program)
{
    program->interfaces[0].output_count = 1;
}

static void no_output(laya_mil_program *program)
{
    program->interfaces[0].output_count = 0;
    test_main_function(program)->body.output_count = 0;
}

static void no_main(laya_mil_program *program)
{
    test_main_function(program)->name = "len32";
    program->interfaces[0].name = "len32";
}

static void other_default(laya_mil_program *program)
{
    no_main(program);
    program->default_function = "len32";
}

static void wrong_default(laya_mil_program *program)
{
    program->default_function = "len64";
}

static void function_not_described(laya_mil_program *program)
{
    program->interface_count = 0;
}

static void copy_function(laya_mil_program *program, const char *name)
{
    laya_mil_function *functions = test_take(program, 2 * sizeof *functions);
    laya_mil_interface *interfaces = test_take(program, 2 * sizeof *interfaces);
    functions[0] = functions[1] = program->functions[0];
    interfaces[0] = interfaces[1] = program->interfaces[0];
    functions[1].name = interfaces[1].name = name;
    program->functions = functions;
    program->interfaces = interfaces;
    program->function_count = program->interface_count = 2;
}

static void two_functions(laya_mil_program *program)
{
    copy_function(program, "len32");
    for (unsigned at = 0; at < 2; at++) {
        program->functions[at].opset = LAYA_MIL_COREML8;
        program->functions[at].opset_name = program->functions[at].specialization_name = "CoreML8";
    }
    program->specification_version = LAYA_MIL_COREML8;
}

static void two_functions_too_early(laya_mil_program *program)
{
    copy_function(program, "len32");
}

static void function_twice(laya_mil_program *program)
{
    two_functions(program);
    program->functions[1].name = "main";
    program->interface_count = 1;
}

static void function_described_twice(laya_mil_program *program)
{
    two_functions(program);
    program->function_count = 1;
    program->interfaces[1].name = "main";
}

static void function_missing(laya_mil_program *program)
{
    two_functions(program);
    program->function_count = 1;
}

static void wrong_in_second_function(laya_mil_program *program)
{
    two_functions(program);
    laya_mil_feature *outputs = test_take(program, 2 * sizeof *outputs);
    memcpy(outputs, program->interfaces[1].outputs, 2 * sizeof *outputs);
    program->interfaces[1].outputs = outputs;
    outputs[1].type.dtype = LAYA_MIL_FP32;
}

/* ------------------------------------------------------------------ the table */

static const test_change changes[] = {
    TEST_CHANGE(illegal_name, TEST_ERROR, 1, "'layers.3' is no legal name"),
    TEST_CHANGE(keyword_name, TEST_ERROR, 1, "'fp16' is no legal name"),
    TEST_CHANGE(digit_name, TEST_ERROR, 1, "'3rd' is no legal name"),
    TEST_CHANGE(empty_name, TEST_ERROR, 1, "'' is no legal name"),
    TEST_CHANGE(not_utf8_name, TEST_ERROR, 1, "'w?' is no legal name"),
    TEST_CHANGE(same_name, TEST_ERROR, 1, "'wide' is defined twice"),
    TEST_CHANGE(name_of_input, TEST_ERROR, 1, "'mask' is defined twice"),
    TEST_CHANGE(second_output_name, TEST_ALSO, 1, "'halves_0' is defined twice"),
    TEST_CHANGE(undefined_name, TEST_ERROR, 1,
                "masked: y is 'nowhere', which is not defined: nothing of that name comes before"),
    TEST_CHANGE(later_name, TEST_ERROR, 1, "masked: x is 'soft', which is not defined"),
    TEST_CHANGE(own_output, TEST_ERROR, 1, "masked: x is 'masked', which is not defined"),
    TEST_CHANGE(constant_output, TEST_ERROR, 1, "output 'weight' is a constant"),
    TEST_CHANGE(input_as_output, TEST_ERROR, 1, "output 'x' is an input"),
    TEST_CHANGE(undefined_output, TEST_ERROR, 1, "an output is 'second', which is not defined"),
    TEST_CHANGE(nameless_op, TEST_WARNING, 1, "2 operations have no attribute 'name' (first wide)"),
    TEST_CHANGE(illegal_op_name, TEST_ERROR, 1, "operation 'layers/3' (conv)"),
    TEST_CHANGE(illegal_function_name, TEST_ERROR, 1, "function 'main-1': not a legal name"),
    TEST_CHANGE(nested_blocks, TEST_WARNING, 4, "operation cond is not known here: 1 of it"),
    TEST_CHANGE(nested_same_name, TEST_ALSO, 1, "'inner' is defined twice"),
    TEST_CHANGE(passed_on, TEST_WARNING, 4, "operation cond is not known here: 1 of it"),
    TEST_CHANGE(illegal_block_input, TEST_ALSO, 1, "'state' is no legal name"),
    TEST_CHANGE(block_inputs_alike, TEST_WARNING, 4, "operation cond is not known here: 1 of it"),
    TEST_CHANGE(block_input_like_value, TEST_ALSO, 1, "'soft' is defined twice"),
    TEST_CHANGE(output_like_block_input, TEST_ALSO, 1, "'repeated' is defined twice"),
    TEST_CHANGE(nested_name_outside, TEST_ALSO, 1,
                "after: x is 'inner_0', which is not defined: that name ends with its"),
    TEST_CHANGE(nested_name_in_sibling, TEST_ALSO, 1,
                "inner_1: x is 'inner_0', which is not defined: that name ends with its"),
    TEST_CHANGE(nested_uses_owner, TEST_ALSO, 1, "inner_1: x is 'chosen', which is not defined"),
    TEST_CHANGE(nested_constant_output, TEST_ALSO, 1, "chosen: output 'gamma' is a constant"),
    TEST_CHANGE(nested_wrong_type, TEST_ALSO, 3,
                "'inner_1' is declared fp16 [1, 64, 1, 64], but relu gives fp16 [1, 64, 1, 32]"),
    TEST_CHANGE(program_version, TEST_ERROR, 2, "version of the program: expected 1, found 2"),
    TEST_CHANGE(old_version, TEST_ALSO, 2, "specification version 4: ML Programs begin with 6"),
    TEST_CHANGE(future_version, TEST_WARNING, 2, "specification version 12 is not known here"),
    TEST_CHANGE(lower_version, TEST_ERROR, 2,
                "opset CoreML7 belongs to specification version 8, but the model has 7"),
    TEST_CHANGE(higher_version, TEST_ERROR, 2,
                "opset CoreML7 belongs to specification version 8, but the model has 9"),
    TEST_CHANGE(unknown_opset, TEST_ALSO, 2, "opset 'CoreML4' is not known"),
    TEST_CHANGE(other_key, TEST_ERROR, 2,
                "block_specializations has the key 'CoreML6'; expected the function's opset 'CoreML7'"),
    TEST_CHANGE(no_block, TEST_ERROR, 2, "the function has no block"),
    TEST_CHANGE(more_blocks, TEST_WARNING, 2, "2 block specializations"),
    TEST_CHANGE(fp16_too_early, TEST_ALSO, 2,
                "input 'x': fp16 inputs and outputs need specification version 7, found 6"),
    TEST_CHANGE(int8_too_early, TEST_ERROR, 2,
                "input 'small': int8 inputs and outputs need specification version 10, found 8"),
    TEST_CHANGE(int8_input, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(int32_input, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(bool_input, TEST_ERROR, 2, "input 'flags' has type bool"),
    TEST_CHANGE(fp64_input, TEST_ERROR, 2, "input 'exact' has type fp64"),
    TEST_CHANGE(scalar_input, TEST_ERROR, 2, "input 'one' is a scalar"),
    TEST_CHANGE(list_input, TEST_ERROR, 2, "input 'all': the description says multiArray, the function list"),
    TEST_CHANGE(image_input, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(state, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(state_too_early, TEST_ERROR, 2, "state 'cache': fp16 states need specification version 9, found 8"),
    TEST_CHANGE(fp32_state, TEST_ERROR, 2, "state 'cache' has type fp32; states must be fp16"),
    TEST_CHANGE(state_not_described, TEST_ERROR, 2, "state 'cache' of the function is not in the description"),
    TEST_CHANGE(input_name, TEST_ERROR, 2, "input 2 is 'musk' in the description, but 'mask' in the function"),
    TEST_CHANGE(input_order, TEST_ALSO, 2, "input 1 is 'mask' in the description, but 'x' in the function"),
    TEST_CHANGE(input_dtype, TEST_ERROR, 2,
                "input 'mask': the description says fp32 [1, 64, 1, 32], the function fp16 [1, 64, 1"),
    TEST_CHANGE(input_shape, TEST_ERROR, 2,
                "input 'mask': the description says fp16 [1, 64, 1, 64], the function fp16 [1, 64, 1"),
    TEST_CHANGE(input_rank, TEST_ERROR, 2,
                "input 'mask': the description says fp16 [1, 64, 1], the function fp16 [1, 64, 1, 32]"),
    TEST_CHANGE(input_shape_missing, TEST_ERROR, 2,
                "input 'mask': the description says fp16, the function fp16 [1, 64, 1, 32]"),
    TEST_CHANGE(open_input, TEST_ERROR, 2,
                "input 'mask': the description says fp16 [1, 64, 1, 32], the function fp16 [?, 64, 1"),
    TEST_CHANGE(input_not_described, TEST_ERROR, 2, "input 'mask' of the function is not in the description"),
    TEST_CHANGE(input_not_in_function, TEST_ERROR, 2, "input 'more' of the description is not in the function"),
    TEST_CHANGE(output_name, TEST_ERROR, 2, "output 1 is 'z' in the description, but 'y' in the function"),
    TEST_CHANGE(output_type, TEST_ERROR, 2,
                "output 'y': the description says fp16 [1, 1, 1, 32], the function fp16 [1, 64, 1, 32]"),
    TEST_CHANGE(output_shape_missing, TEST_WARNING, 2, "output 'y': the description leaves the shape out"),
    TEST_CHANGE(output_not_described, TEST_ERROR, 2, "output 'second' of the function is not in the description"),
    TEST_CHANGE(no_output, TEST_ERROR, 2, "the function has no output"),
    TEST_CHANGE(no_main, TEST_ERROR, 2, "no function 'main', and defaultFunctionName names no other"),
    TEST_CHANGE(other_default, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(wrong_default, TEST_ERROR, 2, "defaultFunctionName: the program has no function 'len64'"),
    TEST_CHANGE(function_not_described, TEST_ERROR, 2, "function 'main' is not in the description"),
    TEST_CHANGE(two_functions, TEST_NOTHING, 0, NULL),
    TEST_CHANGE(two_functions_too_early, TEST_ERROR, 2,
                "2 functions: models of several need specification version 9, found 8"),
    TEST_CHANGE(function_twice, TEST_ALSO, 1, "function 'main' exists twice"),
    TEST_CHANGE(function_described_twice, TEST_ERROR, 2, "the description has function 'main' twice"),
    TEST_CHANGE(function_missing, TEST_ERROR, 2, "the program has no function 'len32' of the description"),
    TEST_CHANGE(wrong_in_second_function, TEST_ERROR, 2,
                "function 'len32': output 'second': the description says fp32"),
};

static void test_changes(void **unused)
{
    (void)unused;
    test_run_changes(changes, sizeof changes / sizeof *changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
