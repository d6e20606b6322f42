/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with palettes in the place of weights: both forms, written, read, verified, expanded, run. */
#include "mil_run.h"
#include "palettes.h"

#include "mil/builder.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ a program of two layers */

/*
 * Weights [45, 47, 1, 1] and [48, 45, 1, 1]. The 2,115 elements of the first one fill no whole bytes but at 8 bits.
 */
static void build(laya_mil_program *program, laya_mil_dtype dtype, const laya_allocator *allocator)
{
    static const int64_t sizes[2][2] = {{45, 47}, {48, 45}};
    unsigned char bytes[48 * 45 * 4];
    double values[48 * 45];
    laya_mil_builder b;
    laya_error error;
    laya_mil_value *weights[2];
    laya_mil_program_init(program, allocator);
    laya_mil_begin(&b, program, dtype == LAYA_MIL_FP16 ? LAYA_MIL_COREML6 : LAYA_MIL_COREML5, &error);
    laya_mil_value *x = laya_mil_input(&b, "x", laya_mil_tensor4(dtype, 1, 47, 1, 6));
    for (size_t at = 0; at < 2; at++) {
        laya_mil_type type = laya_mil_tensor4(dtype, sizes[at][0], sizes[at][1], 1, 1);
        for (size_t i = 0; i < 48 * 45; i++) values[i] = (double)(int)(i * 7919 % 2048) / 1024 - 1;
        test_encode(&type, values, bytes);
        weights[at] = laya_mil_const(&b, at ? "second_weight" : "first_weight", type, bytes);
    }
    x = laya_mil_relu(&b, "positive", laya_mil_conv(&b, "first", x, weights[0], NULL));
    laya_mil_output(&b, laya_mil_conv(&b, "second", x, weights[1], NULL));
    if (laya_mil_finish(&b) != LAYA_OK) {
        assert_non_null(allocator);
        fail_msg("%s", error.message);
    }
}

static void names_what_a_group_size_does_not_divide(void **state)
{
    (void)state;
    static const struct {
        uint32_t group_size;
        const char *message; /* NULL: it divides */
    } cases[] = {{0, NULL},
                 {1, NULL},
                 {3, NULL},
                 {9, "second_weight: groups of 9 do not divide its 48 output channels; choose a divisor of 3"},
                 {16, "first_weight: groups of 16 do not divide its 45 output channels; choose a divisor of 3"},
                 {45, "second_weight: groups of 45 do not divide its 48 output channels"},
                 {UINT32_MAX, "first_weight: groups of 4294967295 do not divide its 45 output channels"}};
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        laya_mil_program program;
        laya_palette_weight *weights;
        laya_error error;
        uint32_t count;
        build(&program, LAYA_MIL_FP16, NULL);
        laya_status status = laya_palettes_select(&program, cases[at].group_size, &weights, &count, &error);
        assert_int_equal(status, cases[at].message ? LAYA_ERROR_FORMAT : LAYA_OK);
        if (cases[at].message) {
            assert_contains(error.message, cases[at].message);
            assert_contains(error.message, "one table for each tensor");
        } else {
            assert_int_equal(count, 2);
            assert_int_equal(weights[0].group, cases[at].group_size ? cases[at].group_size : 45);
            assert_int_equal(weights[1].group, cases[at].group_size ? cases[at].group_size : 48);
        }
        laya_mil_program_close(&program);
    }
}

static void knows_which_form_is_needed(void **state)
{
    (void)state;
    laya_mil_program program;
    build(&program, LAYA_MIL_FP16, NULL);
    static const unsigned widths[] = {1, 2, 4, 6, 8};
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        assert_false(laya_palettes_grouped_form(&program, LAYA_PALETTE_KMEANS, 0, widths[at]));
        assert_true(laya_palettes_grouped_form(&program, LAYA_PALETTE_KMEANS, 1, widths[at]));
    }
    assert_true(laya_palettes_grouped_form(&program, LAYA_PALETTE_UNIFORM, 0, 3));
    assert_true(laya_palettes_grouped_form(&program, LAYA_PALETTE_WEIGHTED, 0, 3));
    assert_false(laya_palettes_grouped_form(&program, LAYA_PALETTE_UNIQUE, 0, 3));
    assert_true(laya_palettes_grouped_form(&program, LAYA_PALETTE_UNIQUE, 32, 0));
    program.functions[0].opset = LAYA_MIL_COREML7;
    assert_false(laya_palettes_grouped_form(&program, LAYA_PALETTE_KMEANS, 0, 4));
    program.functions[0].opset = LAYA_MIL_COREML8;
    assert_true(laya_palettes_grouped_form(&program, LAYA_PALETTE_KMEANS, 0, 4));
    assert_true(laya_palettes_grouped_form(&program, LAYA_PALETTE_UNIQUE, 0, 4));
    laya_mil_program_close(&program);
}

/* ------------------------------------------------------------------ tables made here */

static uint32_t next_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static size_t width_of(const laya_palette_weight *weight)
{
    return weight->constant->type.dtype == LAYA_MIL_FP16 ? 2 : 4;
}

/* Random indices into random tables, packed bit by bit; returns the elements that they stand for. */
static unsigned char *make_table(laya_mil_program *program, laya_palette_weight *weight, unsigned bits, uint32_t seed)
{
    uint64_t count = weight->row * weight->channels, tables = weight->channels / weight->group;
    size_t width = width_of(weight);
    weight->bits = bits;
    weight->indices_size = (count * bits + 7) / 8;
    weight->lut_size = (tables << bits) * width;
    unsigned char *lut = weight->lut = test_take(program, (size_t)weight->lut_size);
    unsigned char *packed = weight->indices = test_take(program, (size_t)weight->indices_size);
    unsigned char *dense = test_take(program, (size_t)count * width);
    laya_mil_type type = laya_mil_scalar(weight->constant->type.dtype);
    for (uint64_t at = 0; at < tables << bits; at++) {
        double value = (double)(int)(next_number(&seed) % 4096) / 16384 - 0.125;
        test_encode(&type, &value, lut + at * width);
    }
    for (uint64_t at = 0; at < count; at++) {
        uint64_t index = next_number(&seed) % (1u << bits), table = at / weight->row / weight->group;
        for (unsigned bit = 0; bit < bits; bit++) {
            uint64_t place = at * bits + bit;
            packed[place / 8] = (unsigned char)(packed[place / 8] | (index >> bit & 1) << place % 8);
        }
        memcpy(dense + at * width, lut + ((table << bits) + index) * width, width);
    }
    return dense;
}

static void rewrite(laya_mil_program *program, const laya_palette_weight *weights, uint32_t count, bool grouped)
{
    laya_error error;
    if (laya_palettes_rewrite(program, weights, count, grouped, &error) != LAYA_OK) fail_msg("%s", error.message);
}

/* Write a program as a package and open that; the verifier has nothing to say of palettes. */
static laya_package *write_package(laya_mil_program *program, const char *name)
{
    char path[TEST_PATH_SIZE];
    laya_package_files files;
    laya_error error;
    laya_verdict verdict;
    test_join(path, test_folder, name);
    if (laya_package_write(program, path, NULL, &files, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (laya_package_read_back(program, path, name, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    laya_package *package = test_open_package(path);
    test_check_package(package, &verdict);
    assert_int_equal(verdict.errors, 0);
    for (uint32_t at = 0; at < verdict.finding_count; at++) /* of the inputs that the program had before */
        assert_contains(verdict.findings[at].text, "no multiple of 32: the Neural Engine pads it");
    assert_int_equal(verdict.unknown_ops, 0);
    laya_verdict_close(&verdict);
    return package;
}

static void expect_opset(const laya_mil_program *program, laya_mil_opset opset, const char *name)
{
    for (uint32_t at = 0; at < program->function_count; at++) {
        assert_int_equal(program->functions[at].opset, opset);
        assert_string_equal(program->functions[at].opset_name, name);
        assert_string_equal(program->functions[at].specialization_name, name);
    }
    assert_int_equal(program->specification_version, opset);
}

/* Types as coreml.md 4 has them, and where the bytes lie. */
static void expect_attributes(const laya_mil_op *op, const laya_palette_weight *weight)
{
    const laya_mil_constant *indices = laya_mil_find_attribute(op, "indices");
    const laya_mil_constant *lut = laya_mil_find_attribute(op, "lut"), *shape = laya_mil_find_attribute(op, "shape");
    uint64_t count = weight->channels * weight->row;
    laya_mil_type bytes = laya_mil_vector(LAYA_MIL_UINT8, (int64_t)((count * weight->bits + 7) / 8));
    laya_mil_type table = laya_mil_vector(op->outputs[0]->type.dtype, INT64_C(1) << weight->bits);
    laya_mil_type sizes = laya_mil_vector(LAYA_MIL_UINT32, 4);
    assert_int_equal(op->input_count, 0);
    assert_int_equal(op->attribute_count, 3);
    assert_true(laya_mil_type_equal(&indices->type, &bytes) && laya_mil_type_equal(&lut->type, &table) &&
                laya_mil_type_equal(&shape->type, &sizes));
    assert_true(indices->in_file);
    assert_int_equal(lut->in_file, weight->bits >= 4); /* ten elements */
    assert_false(shape->in_file);
}

static const laya_mil_constant *in_place(const laya_mil_op *op, const char *name)
{
    const laya_mil_argument *argument = laya_mil_find_argument(op, name);
    assert_non_null(argument);
    assert_int_equal(argument->count, 1);
    assert_null(argument->bindings[0].name);
    return argument->bindings[0].constant;
}

/* The same for inputs, which coremltools 9 binds in place, too. */
static void expect_inputs(const laya_mil_op *op, const laya_palette_weight *weight)
{
    static const laya_mil_dtype dtypes[9] = {[1] = LAYA_MIL_UINT1, [2] = LAYA_MIL_UINT2, [3] = LAYA_MIL_UINT3,
                                             [4] = LAYA_MIL_UINT4, [6] = LAYA_MIL_UINT6, [8] = LAYA_MIL_UINT8};
    const laya_mil_constant *indices = in_place(op, "indices"), *lut = in_place(op, "lut");
    laya_mil_type places = laya_mil_tensor4(dtypes[weight->bits], weight->channels, (int64_t)weight->row, 1, 1);
    laya_mil_type tables = {.dtype = op->outputs[0]->type.dtype,
                            .rank = 6,
                            .dims = {weight->channels / weight->group, 1, 1, 1, INT64_C(1) << weight->bits, 1}};
    assert_int_equal(op->input_count, 2);
    assert_int_equal(op->attribute_count, 0);
    assert_true(laya_mil_type_equal(&indices->type, &places) && laya_mil_type_equal(&lut->type, &tables));
    assert_true(indices->in_file);
    assert_int_equal(lut->in_file, (weight->channels / weight->group) << weight->bits >= 10);
}

/* The operation of a program that was read gives exactly these elements. */
static void expect_palette(laya_mil_program *read, const laya_palette_weight *weight, const unsigned char *dense,
                           bool grouped)
{
    const laya_mil_op *op = test_find_op(read, weight->name);
    const laya_allocator allocator = laya_allocator_or_default(NULL);
    unsigned char *bytes;
    uint64_t size;
    laya_error error;
    assert_string_equal(op->type, "constexpr_lut_to_dense");
    assert_true(laya_mil_type_equal(&op->outputs[0]->type, &weight->constant->type));
    if (grouped)
        expect_inputs(op, weight);
    else
        expect_attributes(op, weight);
    if (laya_constexpr_expand(op, read->functions[0].opset, &allocator, &bytes, &size, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    assert_int_equal(size, weight->constant->size);
    assert_memory_equal(bytes, dense, (size_t)size);
    laya_release(&allocator, bytes);
}

/* ------------------------------------------------------------------ running */

static laya_interpreter *start(const laya_mil_program *program, laya_numerics numerics, laya_pool *pool)
{
    laya_interpreter *interpreter = test_open_interpreter(program, numerics, true, pool);
    for (uint32_t at = 0; at < laya_interpreter_input_count(interpreter); at++) {
        laya_array *input = laya_interpreter_input(interpreter, at, NULL);
        for (uint64_t i = 0; i < input->count; i++) input->values[i] = (float)((i * 37 + at) % 64) / 64 - 0.5f;
    }
    test_run_interpreter(interpreter);
    return interpreter;
}

/* Every output has the same bits, and not all of them are zero. */
static void expect_same_outputs(const laya_mil_program *a, const laya_mil_program *b, laya_numerics numerics)
{
    laya_pool *pool = test_open_pool(2);
    laya_interpreter *first = start(a, numerics, pool), *second = start(b, numerics, pool);
    bool any = false;
    for (uint32_t at = 0; at < laya_interpreter_output_count(first); at++) {
        const laya_array *x = laya_interpreter_output(first, at, NULL),
                         *y = laya_interpreter_output(second, at, NULL);
        assert_int_equal(x->count, y->count);
        assert_memory_equal(x->values, y->values, (size_t)x->count * sizeof *x->values);
        for (uint64_t i = 0; i < x->count; i++) any |= x->values[i] != 0;
    }
    assert_true(any);
    laya_interpreter_close(first);
    laya_interpreter_close(second);
    laya_pool_close(pool);
}

/* ------------------------------------------------------------------ the program of two layers, rewritten */

static void expect_two_layers(laya_mil_dtype dtype, unsigned bits, uint32_t group_size, bool grouped)
{
    static unsigned number;
    char name[64];
    laya_mil_program program, dense;
    laya_palette_weight *weights;
    unsigned char *expected[2];
    build(&program, dtype, NULL);
    build(&dense, dtype, NULL);
    laya_mil_opset before = program.functions[0].opset;
    uint32_t ops = program.functions[0].body.op_count;
    assert_int_equal(test_select_weights(&program, group_size, &weights), 2);
    for (uint32_t at = 0; at < 2; at++) {
        expected[at] = make_table(&program, &weights[at], bits, bits + 16 * at);
        test_replace_constant(&dense, weights[at].name, weights[at].constant->type, expected[at]);
    }
    rewrite(&program, weights, 2, grouped);
    assert_int_equal(program.functions[0].body.op_count, ops);
    if (grouped)
        expect_opset(&program, LAYA_MIL_COREML8, "CoreML8");
    else
        expect_opset(&program, LAYA_MIL_COREML6, "CoreML6"); /* fp32: from CoreML5 */
    assert_true(grouped || dtype == LAYA_MIL_FP32 || before == LAYA_MIL_COREML6);
    snprintf(name, sizeof name, "palettes%u.mlpackage", number);
    laya_package *package = write_package(&program, name);
    expect_opset(&package->program, grouped ? LAYA_MIL_COREML8 : LAYA_MIL_COREML6, grouped ? "CoreML8" : "CoreML6");
    for (uint32_t at = 0; at < 2; at++) expect_palette(&package->program, &weights[at], expected[at], grouped);
    snprintf(name, sizeof name, "dense%u.mlpackage", number++);
    laya_package *plain = write_package(&dense, name);
    expect_same_outputs(&package->program, &plain->program, LAYA_NUMERICS_FP32);
    expect_same_outputs(&package->program, &plain->program, LAYA_NUMERICS_FP16);
    laya_package_close(plain);
    laya_package_close(package);
    laya_mil_program_close(&dense);
    laya_mil_program_close(&program);
}

static const unsigned widths[] = {1, 2, 3, 4, 6, 8};

static void writes_one_table_a_tensor(void **state)
{
    (void)state;
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        expect_two_layers(LAYA_MIL_FP16, widths[at], 0, widths[at] == 3);
        expect_two_layers(LAYA_MIL_FP32, widths[at], 0, widths[at] == 3);
    }
}

static void writes_groups(void **state)
{
    (void)state;
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        expect_two_layers(LAYA_MIL_FP16, widths[at], 3, true);
        expect_two_layers(LAYA_MIL_FP16, widths[at], 1, true);
        expect_two_layers(LAYA_MIL_FP32, widths[at], 3, true);
    }
    expect_two_layers(LAYA_MIL_FP16, 4, 0, true); /* a program of CoreML8 */
}

/* A program that has the opset keeps it; one whose weights all stay keeps everything. */
static void raises_no_opset_without_need(void **state)
{
    (void)state;
    laya_mil_program program;
    laya_palette_weight *weights;
    test_build_program(&program, NULL); /* CoreML7 */
    assert_int_equal(test_select_weights(&program, 16, &weights), 1);
    rewrite(&program, weights, 1, true);
    expect_opset(&program, LAYA_MIL_COREML7, "CoreML7");
    assert_string_equal(weights[0].op->type, "const");
    assert_int_equal(test_select_weights(&program, 0, &weights), 1);
    make_table(&program, &weights[0], 4, 1);
    rewrite(&program, weights, 1, false);
    expect_opset(&program, LAYA_MIL_COREML7, "CoreML7");
    laya_mil_program_close(&program);

    test_build_program(&program, NULL);
    laya_mil_function *function = test_main_function(&program);
    function->opset = LAYA_MIL_COREML9;
    function->opset_name = function->specialization_name = "CoreML9";
    program.specification_version = LAYA_MIL_COREML9;
    assert_int_equal(test_select_weights(&program, 16, &weights), 1);
    unsigned char *dense = make_table(&program, &weights[0], 6, 1);
    rewrite(&program, weights, 1, true);
    laya_package *package = write_package(&program, "nine.mlpackage");
    expect_opset(&package->program, LAYA_MIL_COREML9, "CoreML9");
    expect_palette(&package->program, &weights[0], dense, true);
    laya_package_close(package);
    laya_mil_program_close(&program);
}

/* ------------------------------------------------------------------ exports, rewritten */

/* Each weight with other bits than the one before; the last of each round stays as it is. */
static void expect_export(laya_graph graph, laya_package_precision precision, uint32_t group_size, bool grouped)
{
    static const unsigned rounds[2][7] = {{1, 2, 4, 6, 8, LAYA_PALETTE_AS_IS, 8},
                                          {1, 2, 3, 4, 6, 8, LAYA_PALETTE_AS_IS}};
    unsigned char *expected[25];
    laya_palette_weight *weights;
    laya_package *package = test_open_body(test_folder, graph, precision);
    char path[TEST_PATH_SIZE];
    laya_package *dense = test_open_package(test_join(path, test_folder, "body"));
    assert_int_equal(test_select_weights(&package->program, group_size, &weights), 25);
    for (uint32_t at = 0; at < 25; at++) {
        weights[at].bits = rounds[grouped][at % 7];
        expected[at] = NULL;
        if (weights[at].bits == LAYA_PALETTE_AS_IS) continue;
        expected[at] = make_table(&package->program, &weights[at], weights[at].bits, at);
        test_replace_constant(&dense->program, weights[at].name, weights[at].constant->type, expected[at]);
    }
    rewrite(&package->program, weights, 25, grouped);
    laya_package *read = write_package(&package->program, "palettes.mlpackage");
    expect_opset(&read->program, grouped ? LAYA_MIL_COREML8 : LAYA_MIL_COREML6, grouped ? "CoreML8" : "CoreML6");
    for (uint32_t at = 0; at < 25; at++) {
        if (expected[at]) {
            expect_palette(&read->program, &weights[at], expected[at], grouped);
            continue;
        }
        const laya_mil_value *value = test_find_value(&read->program, weights[at].name);
        assert_string_equal(value->op->type, "const");
        assert_memory_equal(value->constant->bytes, weights[at].constant->bytes, (size_t)value->constant->size);
    }
    laya_package *plain = write_package(&dense->program, "dense.mlpackage");
    expect_same_outputs(&read->program, &plain->program, LAYA_NUMERICS_FP16);
    laya_package_close(plain);
    laya_package_close(read);
    laya_package_close(dense);
    laya_package_close(package);
}

static void rewrites_the_per_head_graph(void **state)
{
    (void)state;
    expect_export(LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16, 0, false);
}

static void rewrites_the_per_head_graph_in_groups(void **state)
{
    (void)state;
    expect_export(LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16, 32, true);
}

static void rewrites_the_lean_graph(void **state)
{
    (void)state;
    expect_export(LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP32, 0, false);
}

static void rewrites_the_lean_graph_in_groups(void **state)
{
    (void)state;
    expect_export(LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 64, true);
}

static void rewrites_an_fp32_graph_in_groups(void **state)
{
    (void)state;
    expect_export(LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP32, 4, true);
}

/* ------------------------------------------------------------------ programs that cannot have the opset */

static void unknown_operation(laya_mil_program *program)
{
    test_append_unary(program, "fancy", "new_one", "positive");
}

static void unknown_operation_in_a_branch(laya_mil_program *program)
{
    laya_mil_op *op = test_append_unary(program, "relu", "branch", "positive");
    op->blocks = test_take(program, sizeof *op->blocks);
    op->block_count = 1;
    test_append(op->blocks, test_make_op(program, "fancy", "new_one", laya_mil_scalar(LAYA_MIL_FP16)));
}

static void other_type(laya_mil_program *program)
{
    test_append_unary(program, "relu", "wider", "positive")->outputs[0]->type.dims[3] = 7;
}

static void other_dtype(laya_mil_program *program)
{
    test_append_unary(program, "relu", "wider", "positive")->outputs[0]->type.dtype = LAYA_MIL_FP32;
}

/* Its indices may be negative in CoreML6 alone. */
static void old_gather(laya_mil_program *program)
{
    static const test_operand indices = {.name = "indices", .dtype = LAYA_MIL_INT32, SHAPE(1, 2), VALUES(0, 3)},
                              axis = SCALAR("axis", LAYA_MIL_INT32, 1),
                              batch = SCALAR("batch_dims", LAYA_MIL_INT32, 0);
    laya_mil_op *op = test_append_unary(program, "gather", "chosen", "positive");
    op->outputs[0]->type.dims[1] = 2;
    test_add_operand(program, op, &indices);
    test_add_operand(program, op, &axis);
    test_add_operand(program, op, &batch);
}

static void packed_palette(laya_mil_program *program)
{
    const unsigned char shape[] = {8, 0, 0, 0};
    laya_mil_op *op = test_append_op(program, "constexpr_lut_to_dense", "packed", laya_mil_vector(LAYA_MIL_FP16, 8));
    test_add_attribute(program, op, "indices", test_make_constant(program, laya_mil_vector(LAYA_MIL_UINT8, 1), NULL));
    test_add_attribute(program, op, "lut", test_make_constant(program, laya_mil_vector(LAYA_MIL_FP16, 2), NULL));
    test_add_attribute(program, op, "shape", test_make_constant(program, laya_mil_vector(LAYA_MIL_UINT32, 1), shape));
}

static void unknown_opset(laya_mil_program *program)
{
    test_main_function(program)->opset = (laya_mil_opset)0;
    test_main_function(program)->opset_name = "CoreML77";
}

static void two_specializations(laya_mil_program *program)
{
    test_main_function(program)->specialization_count = 2;
}

static void newer_opset(laya_mil_program *program)
{
    test_main_function(program)->opset = LAYA_MIL_COREML8;
}

static void second_function(laya_mil_program *program)
{
    laya_mil_function *both = test_take(program, 2 * sizeof *both);
    both[0] = program->functions[0];
    both[1] = (laya_mil_function){.name = "second",
                                  .opset = LAYA_MIL_COREML6,
                                  .opset_name = "CoreML6",
                                  .specialization_count = 1,
                                  .specialization_name = "CoreML6"};
    test_append(&both[1].body, test_make_op(program, "fancy", "new_one", laya_mil_scalar(LAYA_MIL_FP16)));
    program->functions = both;
    program->function_count = 2;
}

static void refuses_what_the_opset_changes(void **state)
{
    (void)state;
    static const struct {
        void (*change)(laya_mil_program *program);
        bool attributes_too; /* refused in both forms */
        const char *message;
    } cases[] = {{unknown_operation, false, "new_one (fancy): this operation is not known here"},
                 {unknown_operation_in_a_branch, false, "new_one (fancy): this operation is not known here"},
                 {other_type, false,
                  "wider (relu): its output is declared as fp16 [1, 45, 1, 7], but would be fp16 [1, 45, 1, 6]"},
                 {other_dtype, false, "declared as fp32 [1, 45, 1, 6], but would be fp16"},
                 {old_gather, false, "chosen (gather): it lacks the parameter 'validate_indices'"},
                 {packed_palette, false, "packed (constexpr_lut_to_dense): "},
                 {unknown_opset, true, "function 'main': palettes cannot be put into a function of opset 'CoreML77'"},
                 {two_specializations, true, "of opset 'CoreML6' with more than one specialization"},
                 {second_function, false, "new_one (fancy): "}};
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        for (int grouped = 0; grouped < 2; grouped++) {
            laya_mil_program program;
            laya_palette_weight *weights;
            laya_error error;
            build(&program, LAYA_MIL_FP16, NULL);
            cases[at].change(&program);
            uint32_t count = test_select_weights(&program, 0, &weights);
            for (uint32_t i = 0; i < count; i++) make_table(&program, &weights[i], 4, i);
            laya_status status = laya_palettes_rewrite(&program, weights, count, grouped, &error);
            if (!grouped && !cases[at].attributes_too) {
                assert_int_equal(status, LAYA_OK);
            } else {
                assert_int_equal(status, LAYA_ERROR_UNSUPPORTED);
                assert_contains(error.message, cases[at].message);
                /* Nothing was changed. */
                assert_int_equal(program.specification_version, LAYA_MIL_COREML6);
                assert_string_equal(program.functions[0].specialization_name, "CoreML6");
                for (uint32_t i = 0; i < count; i++) assert_string_equal(weights[i].op->type, "const");
            }
            laya_mil_program_close(&program);
        }
    }
}

static void says_what_fits_an_older_opset(void **state)
{
    (void)state;
    laya_mil_program program;
    laya_palette_weight *weights;
    laya_error error;
    build(&program, LAYA_MIL_FP16, NULL);
    unknown_operation(&program);
    assert_int_equal(test_select_weights(&program, 3, &weights), 2);
    make_table(&program, &weights[1], 4, 1);
    assert_int_equal(laya_palettes_rewrite(&program, weights, 2, true, &error), LAYA_ERROR_UNSUPPORTED);
    assert_contains(error.message,
                    "the palettes need opset CoreML8, and an operation of CoreML6 is not the same there");
    assert_contains(error.message, "; one table for each tensor, of 1, 2, 4, 6 or 8 bits, needs CoreML6 only");
    laya_mil_program_close(&program);

    build(&program, LAYA_MIL_FP32, NULL); /* CoreML5, which has no palettes */
    unknown_operation(&program);
    assert_int_equal(test_select_weights(&program, 0, &weights), 2);
    make_table(&program, &weights[1], 4, 1);
    assert_int_equal(laya_palettes_rewrite(&program, weights, 2, false, &error), LAYA_ERROR_UNSUPPORTED);
    assert_contains(error.message,
                    "the palettes need opset CoreML6, and an operation of CoreML5 is not the same there");
    laya_mil_program_close(&program);

    build(&program, LAYA_MIL_FP16, NULL);
    newer_opset(&program);
    assert_int_equal(test_select_weights(&program, 0, &weights), 2);
    make_table(&program, &weights[1], 4, 1);
    assert_int_equal(laya_palettes_rewrite(&program, weights, 2, false, &error), LAYA_ERROR_UNSUPPORTED);
    assert_contains(error.message, "function 'main': opset CoreML8 has no palettes whose parameters are attributes");
    laya_mil_program_close(&program);
}

/* All functions get the opset, also one without palettes: the model has one specification version. */
static void raises_all_functions(void **state)
{
    (void)state;
    laya_mil_program program;
    laya_palette_weight *weights;
    build(&program, LAYA_MIL_FP16, NULL);
    second_function(&program);
    laya_mil_op *op = program.functions[1].body.first;
    op->type = "const"; /* known in all opsets */
    test_add_attribute(&program, op, "val", test_make_constant(&program, op->outputs[0]->type, NULL));
    assert_int_equal(test_select_weights(&program, 3, &weights), 2);
    make_table(&program, &weights[0], 4, 1);
    rewrite(&program, weights, 2, true);
    expect_opset(&program, LAYA_MIL_COREML8, "CoreML8");
    assert_string_equal(weights[0].op->type, "constexpr_lut_to_dense");
    assert_null(weights[0].op->outputs[0]->constant);
    assert_string_equal(weights[1].op->type, "const");
    laya_mil_program_close(&program);
}

/* ------------------------------------------------------------------ memory */

/* Select and rewrite with `left` blocks in the arena; allocation number `fail_at` fails. */
static laya_status run_short(test_memory *memory, size_t left, size_t fail_at, bool grouped)
{
    static const unsigned char bytes[48 * 256 * 2];
    laya_mil_program program;
    laya_palette_weight *weights;
    laya_error error;
    uint32_t count;
    test_memory_init(memory);
    build(&program, grouped ? LAYA_MIL_FP16 : LAYA_MIL_FP32, &memory->hooks);
    size_t before = program.arena.total; /* a new chunk begins, and is filled but for the blocks */
    while (program.arena.total == before) assert_non_null(laya_arena_alloc(&program.arena, 1, 64));
    size_t room = program.arena.total - before - 64;
    assert_non_null(laya_arena_alloc(&program.arena, 1, room - 64 * left));
    assert_int_equal(program.arena.total - before, room + 64);
    test_memory_arm(memory, fail_at);
    laya_status status = laya_palettes_select(&program, 3, &weights, &count, &error);
    for (uint32_t at = 0; status == LAYA_OK && at < count; at++) {
        weights[at].bits = 8;
        weights[at].indices = weights[at].lut = (unsigned char *)bytes;
        weights[at].indices_size = weights[at].row * weights[at].channels;
        weights[at].lut_size = 512 * (uint64_t)(weights[at].channels / weights[at].group);
    }
    if (status == LAYA_OK) status = laya_palettes_rewrite(&program, weights, count, grouped, &error);
    if (status != LAYA_OK) assert_contains(error.message, "out of memory");
    laya_mil_program_close(&program);
    assert_int_equal(memory->live, 0);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    test_memory memory;
    for (unsigned grouped = 0; grouped < 2; grouped++) {
        size_t failures = 0;
        for (size_t left = 0; left < 120; left++) {
            for (size_t fail_at = 1;; fail_at++) {
                laya_status status = run_short(&memory, left, fail_at, grouped);
                assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : LAYA_OK);
                if (!memory.failed) break;
                failures++;
            }
        }
        assert_true(failures > 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_a_group_size_does_not_divide),
        cmocka_unit_test(knows_which_form_is_needed),
        cmocka_unit_test_setup_teardown(writes_one_table_a_tensor, test_setup_folder, test_teardown_folder),
        cmocka_unit_test_setup_teardown(writes_groups, test_setup_folder, test_teardown_folder),
        cmocka_unit_test_setup_teardown(raises_no_opset_without_need, test_setup_folder, test_teardown_folder),
        cmocka_unit_test_setup_teardown(rewrites_the_per_head_graph, test_setup_folder, test_teardown_folder),
        cmocka_unit_test_setup_teardown(rewrites_the_per_head_graph_in_groups, test_setup_folder,
                                        test_teardown_folder),
        cmocka_unit_test_setup_teardown(rewrites_the_lean_graph, test_setup_folder, test_teardown_folder),
        cmocka_unit_test_setup_teardown(rewrites_the_lean_graph_in_groups, test_setup_folder, test_teardown_folder),
        cmocka_unit_test_setup_teardown(rewrites_an_fp32_graph_in_groups, test_setup_folder, test_teardown_folder),
        cmocka_unit_test(refuses_what_the_opset_changes),
        cmocka_unit_test(says_what_fits_an_older_opset),
        cmocka_unit_test(raises_all_functions),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
