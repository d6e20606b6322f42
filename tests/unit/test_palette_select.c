/* SPDX-License-Identifier: Apache-2.0 */
/* Which weights get palettes: those of the exported graphs, and programs that are changed by hand. */
#include "mil_program.h"
#include "palettes.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ the exported graphs */

/* What the demo model has, from its configuration: d = 192, 4 encoder layers with 256 inside, 2 head layers. */
static const struct demo_weight {
    const char *name;
    uint32_t out, in;
} encoder_weights[] = {{"attn_qkv", 3 * 192, 192},
                       {"attn_out", 192, 192},
                       {"mlp_in", 2 * 256, 192},
                       {"mlp_out", 192, 256}},
  head_weights[] = {
      {"attn_qkv", 3 * 192, 192}, {"attn_out", 192, 192}, {"linear1", 4 * 192, 192}, {"linear2", 192, 4 * 192}};

static void expect_weight(const laya_palette_weight *weight, const char *scope, unsigned layer,
                          const struct demo_weight *expected)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%u_%s_weight", scope, layer, expected->name);
    assert_string_equal(weight->name, name);
    assert_int_equal(weight->channels, expected->out);
    assert_int_equal(weight->row, expected->in);
    assert_int_equal(weight->group, expected->out);
    assert_string_equal(weight->op->type, "const");
    assert_ptr_equal(weight->constant, weight->op->outputs[0]->constant);
}

static void expect_demo(laya_graph graph, laya_package_precision precision)
{
    laya_package *package = test_open_body(test_folder, graph, precision);
    laya_palette_weight *weights;
    assert_int_equal(test_select_weights(&package->program, 0, &weights), 4 * 4 + 2 * 4 + 1);
    for (unsigned layer = 0; layer < 4; layer++) {
        for (unsigned at = 0; at < 4; at++)
            expect_weight(&weights[4 * layer + at], "layers", layer, &encoder_weights[at]);
    }
    for (unsigned layer = 0; layer < 2; layer++) {
        for (unsigned at = 0; at < 4; at++)
            expect_weight(&weights[16 + 4 * layer + at], "head_layers", layer, &head_weights[at]);
    }
    assert_string_equal(weights[24].name, "scorer_in_weight");
    assert_int_equal(weights[24].channels * weights[24].row, 192 * 192);
    laya_package_close(package);
}

static void selects_in_the_per_head_graph(void **state)
{
    (void)state;
    expect_demo(LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16);
}

/* It has a rotation of 64 x 64, which convolutions alone read. */
static void selects_in_the_lean_graph(void **state)
{
    (void)state;
    expect_demo(LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP32);
}

/* ------------------------------------------------------------------ programs changed by hand */

/* Another convolution like "wide", which reads `value` as its parameter. */
static laya_mil_op *add_conv(laya_mil_program *program, const char *name, const char *parameter,
                             laya_mil_value *value)
{
    const laya_mil_op *wide = test_find_op(program, "wide");
    laya_mil_op *op = test_make_op(program, "conv", name, test_hidden_type());
    for (uint32_t at = 0; at < wide->input_count; at++) {
        laya_mil_argument *argument = test_add_input(program, op, wide->inputs[at].name);
        argument->bindings[0] = wide->inputs[at].bindings[0];
        if (strcmp(argument->name, parameter) == 0) test_bind(argument->bindings, value);
    }
    return op;
}

static laya_mil_value *weight_of(laya_mil_program *program)
{
    return test_find_value(program, "weight");
}

static void nothing(laya_mil_program *program)
{
    (void)program;
}

static void two_readers(laya_mil_program *program)
{
    test_append(&test_main_function(program)->body, add_conv(program, "again", "weight", weight_of(program)));
}

static void read_as_x(laya_mil_program *program)
{
    test_append(&test_main_function(program)->body, add_conv(program, "again", "x", weight_of(program)));
}

static void read_by_relu(laya_mil_program *program)
{
    test_append_unary(program, "relu", "positive", "weight");
}

static void read_by_linear(laya_mil_program *program)
{
    laya_mil_op *op = test_append_op(program, "linear", "rows", test_hidden_type());
    test_bind(test_add_input(program, op, "weight")->bindings, weight_of(program));
}

static void read_as_one_of_many(laya_mil_program *program)
{
    laya_mil_argument *values = test_find_input(program, "joined", "values");
    test_bind(&values->bindings[1], weight_of(program));
}

static void made_an_output(laya_mil_program *program)
{
    test_add_output(program, weight_of(program));
}

static laya_mil_block *add_branch(laya_mil_program *program)
{
    laya_mil_op *op = test_append_op(program, "cond", "branch", test_hidden_type());
    op->blocks = test_take(program, 2 * sizeof *op->blocks);
    op->block_count = 2;
    return &op->blocks[1];
}

static void read_in_a_branch(laya_mil_program *program)
{
    test_append(add_branch(program), add_conv(program, "inner", "weight", weight_of(program)));
}

static void given_by_a_branch(laya_mil_program *program)
{
    laya_mil_block *block = add_branch(program);
    block->outputs = test_take(program, sizeof *block->outputs);
    block->output_count = 1;
    test_bind(block->outputs, weight_of(program));
}

static void made_in_a_branch(laya_mil_program *program)
{
    laya_mil_op *op = test_make_op(program, "const", "inner", weight_of(program)->type);
    laya_mil_block *block = add_branch(program);
    op->outputs[0]->constant = weight_of(program)->constant;
    test_append(block, op);
    test_append(block, add_conv(program, "inner_conv", "weight", op->outputs[0]));
}

static void scaled_by_blocks(laya_mil_program *program)
{
    laya_mil_op *op = test_append_op(program, "constexpr_blockwise_shift_scale", "scaled", weight_of(program)->type);
    test_bind(test_add_input(program, op, "data")->bindings, weight_of(program));
}

static void bound_in_place(laya_mil_program *program)
{
    laya_mil_argument *argument = test_find_input(program, "wide", "weight");
    argument->bindings[0] = (laya_mil_binding){.constant = weight_of(program)->constant};
}

static void named_rotation(laya_mil_program *program)
{
    test_rename(program, weight_of(program), "rope_rotation_to_fp16");
}

static void named_scoped_rotation(laya_mil_program *program)
{
    test_rename(program, weight_of(program), "layers_0_attn_rope_rotation");
}

static void named_like_a_rotation(laya_mil_program *program)
{
    test_rename(program, weight_of(program), "europe_weight");
}

/* A value of the weight and of what is declared. */
static void replace(laya_mil_program *program, laya_mil_type type, const void *bytes)
{
    test_replace_constant(program, "weight", type, bytes);
    weight_of(program)->type = type;
}

/* Channel i is the input channel 5 i + 3, every other one negative; `bits` at its place. */
static void replace_by_moves(laya_mil_program *program, laya_mil_dtype dtype, const uint32_t bits[2])
{
    unsigned char bytes[TEST_CHANNELS * TEST_CHANNELS * 4] = {0};
    size_t width = dtype == LAYA_MIL_FP16 ? 2 : 4;
    for (size_t row = 0; row < TEST_CHANNELS; row++) {
        size_t place = row * TEST_CHANNELS + (5 * row + 3) % TEST_CHANNELS;
        for (size_t byte = 0; byte < width; byte++)
            bytes[place * width + byte] = (unsigned char)(bits[row % 2] >> 8 * byte);
    }
    replace(program, laya_mil_tensor4(dtype, TEST_CHANNELS, TEST_CHANNELS, 1, 1), bytes);
}

static void half_moves(laya_mil_program *program)
{
    replace_by_moves(program, LAYA_MIL_FP16, (const uint32_t[]){0x3c00, 0xbc00});
}

static void float_moves(laya_mil_program *program)
{
    replace_by_moves(program, LAYA_MIL_FP32, (const uint32_t[]){0x3f800000, 0xbf800000});
}

static void moves_that_double(laya_mil_program *program)
{
    replace_by_moves(program, LAYA_MIL_FP16, (const uint32_t[]){0x3c00, 0xc000});
}

static void moves_that_drop(laya_mil_program *program)
{
    replace_by_moves(program, LAYA_MIL_FP16, (const uint32_t[]){0x3c00, 0x8000});
}

static void moves_that_add(laya_mil_program *program)
{
    half_moves(program);
    unsigned char *bytes = (unsigned char *)weight_of(program)->constant->bytes;
    bytes[2 * TEST_CHANNELS * TEST_CHANNELS - 1] = 0x3c; /* the last row has a second one */
}

static void of_2048_elements(laya_mil_program *program)
{
    replace(program, laya_mil_tensor4(LAYA_MIL_FP16, 32, 64, 1, 1), NULL);
}

static void of_2049_elements(laya_mil_program *program)
{
    replace(program, laya_mil_tensor4(LAYA_MIL_FP16, 2049, 1, 1, 1), NULL);
}

static void of_rank_3(laya_mil_program *program)
{
    replace(program, (laya_mil_type){.dtype = LAYA_MIL_FP16, .rank = 3, .dims = {64, 64, 1}}, NULL);
}

static void of_rank_5(laya_mil_program *program)
{
    replace(program, (laya_mil_type){.dtype = LAYA_MIL_FP16, .rank = 5, .dims = {64, 64, 1, 1, 1}}, NULL);
}

static void of_integers(laya_mil_program *program)
{
    replace(program, laya_mil_tensor4(LAYA_MIL_INT8, 64, 64, 1, 1), NULL);
}

static void of_floats(laya_mil_program *program)
{
    replace(program, laya_mil_tensor4(LAYA_MIL_FP32, 64, 64, 1, 1), NULL);
}

static void of_windows(laya_mil_program *program)
{
    replace(program, laya_mil_tensor4(LAYA_MIL_FP16, 16, 16, 3, 3), NULL);
}

static void declared_otherwise(laya_mil_program *program)
{
    weight_of(program)->type.dims[0] = 32;
}

static void without_bytes(laya_mil_program *program)
{
    laya_mil_constant *constant = (laya_mil_constant *)weight_of(program)->constant;
    constant->bytes = NULL;
}

static void not_read(laya_mil_program *program)
{
    replace(program, weight_of(program)->type, NULL);
    bound_in_place(program);
}

static void selects_by_role(void **state)
{
    (void)state;
    static const struct {
        void (*change)(laya_mil_program *program);
        const char *selected; /* NULL: none */
        uint32_t channels, row;
    } cases[] = {{nothing, "weight", 64, 64},
                 {two_readers, "weight", 64, 64},
                 {read_as_x, NULL, 0, 0},
                 {read_by_relu, NULL, 0, 0},
                 {read_by_linear, NULL, 0, 0},
                 {read_as_one_of_many, NULL, 0, 0},
                 {made_an_output, NULL, 0, 0},
                 {read_in_a_branch, NULL, 0, 0},
                 {given_by_a_branch, NULL, 0, 0},
                 {made_in_a_branch, "weight", 64, 64},
                 {scaled_by_blocks, NULL, 0, 0},
                 {bound_in_place, NULL, 0, 0},
                 {not_read, NULL, 0, 0},
                 {named_rotation, NULL, 0, 0},
                 {named_scoped_rotation, NULL, 0, 0},
                 {named_like_a_rotation, "europe_weight", 64, 64},
                 {half_moves, NULL, 0, 0},
                 {float_moves, NULL, 0, 0},
                 {moves_that_double, "weight", 64, 64},
                 {moves_that_drop, "weight", 64, 64},
                 {moves_that_add, "weight", 64, 64},
                 {of_2048_elements, NULL, 0, 0},
                 {of_2049_elements, "weight", 2049, 1},
                 {of_rank_3, NULL, 0, 0},
                 {of_rank_5, NULL, 0, 0},
                 {of_integers, NULL, 0, 0},
                 {of_floats, "weight", 64, 64},
                 {of_windows, "weight", 16, 144},
                 {declared_otherwise, NULL, 0, 0},
                 {without_bytes, NULL, 0, 0}};
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        laya_mil_program program;
        laya_palette_weight *weights;
        test_build_program(&program, NULL);
        cases[at].change(&program);
        uint32_t count = test_select_weights(&program, 0, &weights);
        if (count != (cases[at].selected ? 1 : 0)) fail_msg("case %zu: %u weights", at, count);
        if (count) {
            assert_string_equal(weights[0].name, cases[at].selected);
            assert_int_equal(weights[0].channels, cases[at].channels);
            assert_int_equal(weights[0].row, cases[at].row);
        }
        laya_mil_program_close(&program);
    }
}

/* Functions have names of their own. */
static void selects_in_all_functions(void **state)
{
    (void)state;
    laya_mil_program programs[2];
    laya_palette_weight *weights;
    test_build_program(&programs[0], NULL);
    test_build_program(&programs[1], NULL);
    laya_mil_function both[2] = {programs[0].functions[0], programs[1].functions[0]};
    laya_mil_op *second = test_find_op(&programs[1], "weight");
    programs[0].functions = both;
    programs[0].function_count = 2;
    assert_int_equal(test_select_weights(&programs[0], 0, &weights), 2);
    assert_ptr_equal(weights[0].op, test_find_op(&programs[0], "weight"));
    assert_ptr_equal(weights[1].op, second);
    laya_mil_program_close(&programs[1]);
    laya_mil_program_close(&programs[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(selects_in_the_per_head_graph, test_setup_folder, test_teardown_folder),
        cmocka_unit_test_setup_teardown(selects_in_the_lean_graph, test_setup_folder, test_teardown_folder),
        cmocka_unit_test(selects_by_role),
        cmocka_unit_test(selects_in_all_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
