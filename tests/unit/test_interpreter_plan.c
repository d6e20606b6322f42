/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter's plans: memory that is reused gives the same bits as memory that is not, so do any number of
 * threads; constants of every kind; what is refused.
 */
#include "mil_run.h"

#include "base/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ random graphs */

static uint64_t seed;

static uint32_t random_below(uint32_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % limit;
}

#define GRAPH_VALUES 300

typedef struct graph {
    laya_mil_program program;
    laya_mil_value *values[GRAPH_VALUES];
    uint32_t count;
} graph;

static const char *new_name(graph *g)
{
    char *name = test_take(&g->program, 16);
    snprintf(name, 16, "v%u", g->count);
    return name;
}

/* Of the values so far, the later ones more often. */
static laya_mil_value *pick(const graph *g)
{
    uint32_t back = random_below(4) ? random_below(6) : random_below(g->count);
    return g->values[back < g->count ? g->count - 1 - back : 0];
}

static laya_mil_op *add_op(graph *g, const char *type, const char *parameter, laya_mil_value *x)
{
    laya_mil_op *op = test_append_op(&g->program, type, new_name(g), x->type);
    test_bind(test_add_input(&g->program, op, parameter)->bindings, x);
    return op;
}

static void end_op(graph *g, laya_mil_op *op)
{
    test_declare(op);
    g->values[g->count++] = op->outputs[0];
}

static void bind_list(graph *g, laya_mil_op *op, const char *name, uint32_t count, const int32_t *values)
{
    unsigned char bytes[TEST_ELEMENTS];
    double wide[8];
    laya_mil_type type = laya_mil_vector(LAYA_MIL_INT32, count);
    for (uint32_t at = 0; at < count; at++) wide[at] = (double)values[at];
    test_encode(&type, wide, bytes);
    test_bind_constant(&g->program, test_add_input(&g->program, op, name), type, bytes);
}

static void add_unary(graph *g, laya_mil_value *x)
{
    static const char *const types[] = {"relu", "abs", "silu", "square", "sigmoid", "identity", "gelu", "softsign"};
    end_op(g, add_op(g, types[random_below(8)], "x", x));
}

static void add_binary(graph *g, laya_mil_value *x, laya_mil_value *y)
{
    static const char *const types[] = {"add", "sub", "maximum", "mul"};
    laya_mil_op *op = add_op(g, types[random_below(4)], "x", x);
    test_bind(test_add_input(&g->program, op, "y")->bindings, y);
    end_op(g, op);
}

static void add_move(graph *g, laya_mil_value *x)
{
    static const int32_t perms[][4] = {{0, 3, 2, 1}, {1, 0, 2, 3}, {0, 1, 3, 2}}, shape[] = {2, 6, 1, 40};
    bool reshape = random_below(2);
    laya_mil_op *op = add_op(g, reshape ? "reshape" : "transpose", "x", x);
    bind_list(g, op, reshape ? "shape" : "perm", 4, reshape ? shape : perms[random_below(3)]);
    end_op(g, op);
}

static void add_along_axis(graph *g, laya_mil_value *x)
{
    const int32_t axis = (int32_t)random_below(4);
    bool norm = random_below(2);
    laya_mil_op *op = add_op(g, norm ? "layer_norm" : "softmax", "x", x);
    const test_operand scalar = SCALAR("axis", LAYA_MIL_INT32, (double)axis);
    if (norm)
        bind_list(g, op, "axes", 1, &axis);
    else
        test_add_operand(&g->program, op, &scalar);
    end_op(g, op);
}

/* The greatest along an axis less x: the smaller operand comes first and is read for the last time. */
static void add_difference(graph *g, laya_mil_value *x)
{
    const int32_t axis = (int32_t)random_below(4);
    const test_operand keep = SCALAR("keep_dims", LAYA_MIL_BOOL, 1);
    laya_mil_op *op = add_op(g, "reduce_max", "x", x);
    bind_list(g, op, "axes", 1, &axis);
    test_add_operand(&g->program, op, &keep);
    end_op(g, op);
    laya_mil_value *greatest = g->values[--g->count]; /* of another shape: not to be picked */
    op = test_append_op(&g->program, "sub", "", x->type);
    op->name = op->outputs[0]->name = strcat(strcpy(test_take(&g->program, 24), greatest->name), "_less");
    test_bind(test_add_input(&g->program, op, "x")->bindings, greatest);
    test_bind(test_add_input(&g->program, op, "y")->bindings, x);
    end_op(g, op);
}

/* An operation on values of one shape, [2, 6, 1, 40] up to the order of axes. */
static void add_random_op(graph *g)
{
    laya_mil_value *x = pick(g), *y = pick(g);
    switch (random_below(8)) {
    case 0:
    case 1:
    case 2: add_unary(g, x); break;
    case 3:
    case 4: add_binary(g, x, laya_mil_type_equal(&x->type, &y->type) ? y : x); break;
    case 5: add_move(g, x); break;
    case 6: add_along_axis(g, x); break;
    default: add_difference(g, x); break;
    }
}

static void make_graph(graph *g, uint64_t number, uint32_t operations)
{
    seed = number;
    g->count = 0;
    test_begin_program(&g->program);
    laya_mil_type type = laya_mil_tensor4(LAYA_MIL_FP16, 2, 6, 1, 40);
    g->values[g->count++] = test_add_function_input(&g->program, "a", type);
    g->values[g->count++] = test_add_function_input(&g->program, "b", type);
    uint16_t constant[480];
    for (uint32_t at = 0; at < 480; at++) constant[at] = (uint16_t)(0x3000 + random_below(0x1000));
    laya_mil_op *op = test_append_op(&g->program, "const", "c", type);
    test_add_attribute(&g->program, op, "val", test_make_constant(&g->program, type, constant));
    op->outputs[0]->constant = op->attributes[0].value;
    g->values[g->count++] = op->outputs[0];
    for (uint32_t at = 0; at < operations; at++) add_random_op(g);
    for (uint32_t at = 0; at < 4; at++) {
        laya_mil_value *value = g->values[g->count - 1 - at * 3];
        test_add_output(&g->program, value);
    }
}

static void fill_inputs(laya_interpreter *interpreter)
{
    for (uint32_t input = 0; input < laya_interpreter_input_count(interpreter); input++) {
        laya_array *array = laya_interpreter_input(interpreter, input, NULL);
        for (uint64_t at = 0; at < array->count; at++)
            array->values[at] = (float)((at * 37 + input * 11) % 64) / 16.0f - 2.0f;
    }
}

/* A hash of all values in their order, and how many there were. */
typedef struct seen {
    uint64_t hash;
    uint32_t count;
} seen;

static void see(void *user, const laya_mil_value *value, const laya_array *array)
{
    seen *all = user;
    assert_true(laya_mil_type_equal(&value->type, &array->type));
    all->count++;
    for (uint64_t at = 0; at < array->count; at++) {
        uint32_t bits = array->values ? laya_bits_of_float(array->values[at]) : (uint32_t)array->integers[at];
        all->hash = (all->hash ^ bits) * UINT64_C(1099511628211);
    }
}

static uint64_t hash_outputs(const laya_interpreter *interpreter)
{
    seen all = {1, 0};
    for (uint32_t at = 0; at < laya_interpreter_output_count(interpreter); at++) {
        const laya_array *array = laya_interpreter_output(interpreter, at, NULL);
        laya_mil_value value = {.type = array->type};
        see(&all, &value, array);
    }
    return all.hash;
}

typedef struct outcome {
    seen values;
    uint64_t outputs;
} outcome;

/* Two runs, which must agree; inputs must stay what they were. */
static outcome run_graph(const graph *g, laya_numerics numerics, bool reuse, unsigned threads)
{
    outcome out = {{1, 0}, 0};
    laya_interpreter_trace trace = {&out.values, see};
    laya_pool *pool = test_open_pool(threads);
    laya_interpreter *interpreter = test_open_interpreter(&g->program, numerics, reuse, pool);
    fill_inputs(interpreter);
    laya_interpreter_set_trace(interpreter, &trace);
    test_run_interpreter(interpreter);
    laya_interpreter_set_trace(interpreter, NULL);
    out.outputs = hash_outputs(interpreter);
    test_run_interpreter(interpreter);
    assert_true(hash_outputs(interpreter) == out.outputs);
    uint64_t planned, unplanned;
    laya_interpreter_memory(interpreter, &planned, &unplanned);
    assert_true(reuse ? planned < unplanned : planned >= unplanned);
    laya_interpreter_close(interpreter);
    laya_pool_close(pool);
    return out;
}

static void test_reused_memory(void **state)
{
    (void)state;
    static graph g;
    const laya_numerics numerics[] = {FP16, FP32, STRICT};
    for (uint64_t number = 1; number <= (TEST_SANITIZED ? 20 : 60); number++) {
        make_graph(&g, number, 20 + (uint32_t)number * 4);
        for (size_t at = 0; at < 3; at++) {
            outcome apart = run_graph(&g, numerics[at], false, 1), reused = run_graph(&g, numerics[at], true, 1);
            assert_true(apart.values.count > 20);
            if (apart.outputs != reused.outputs || apart.values.hash != reused.values.hash ||
                apart.values.count != reused.values.count)
                fail_msg("graph %u: memory that is reused changes results", (unsigned)number);
        }
        laya_mil_program_close(&g.program);
    }
}

/* ------------------------------------------------------------------ threads */

/* Large enough for the pool: every kind of loop. */
static void make_large(graph *g)
{
    g->count = 0;
    test_begin_program(&g->program);
    laya_mil_type type = laya_mil_tensor4(LAYA_MIL_FP16, 1, 301, 3, 101);
    laya_mil_value *x = test_add_function_input(&g->program, "a", type);
    laya_mil_value *column = test_add_function_input(&g->program, "b", laya_mil_tensor4(LAYA_MIL_FP16, 1, 301, 1, 1));
    const int32_t channels = 1, last = 3;
    laya_mil_op *op = add_op(g, "add", "x", x);
    test_bind(test_add_input(&g->program, op, "y")->bindings, column);
    end_op(g, op);
    for (int axis = 0; axis < 4; axis++) {
        test_operand parameter = SCALAR("axis", LAYA_MIL_INT32, (double)axis);
        op = add_op(g, "softmax", "x", g->values[0]);
        test_add_operand(&g->program, op, &parameter);
        end_op(g, op);
        op = add_op(g, "gelu", "x", g->values[g->count - 1]);
        end_op(g, op);
    }
    op = add_op(g, "layer_norm", "x", g->values[0]);
    bind_list(g, op, "axes", 1, &channels);
    end_op(g, op);
    op = add_op(g, "layer_norm", "x", g->values[0]);
    bind_list(g, op, "axes", 1, &last);
    end_op(g, op);
    op = add_op(g, "reduce_sum", "x", g->values[0]);
    bind_list(g, op, "axes", 1, &channels);
    end_op(g, op);
    test_add_output(&g->program, g->values[g->count - 1]);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    static graph g;
    make_large(&g);
    const laya_numerics numerics[] = {FP16, FP32, STRICT};
    for (size_t at = 0; at < 3; at++) {
        outcome one = run_graph(&g, numerics[at], true, 1);
        for (unsigned threads = 2; threads <= 3; threads++) {
            outcome more = run_graph(&g, numerics[at], true, threads);
            assert_true(one.values.hash == more.values.hash && one.outputs == more.outputs);
        }
    }
    laya_mil_program_close(&g.program);
}

/* Sums over 301 elements in float32: within 2e-6 of the same in float64. */
static void test_long_sums(void **state)
{
    (void)state;
    static graph g;
    enum { CHANNELS = 301, COLUMNS = 303 };
    make_large(&g);
    test_add_output(&g.program, g.values[3]); /* softmax along the channels */
    laya_pool *pool = test_open_pool(2);
    laya_interpreter *interpreter = test_open_interpreter(&g.program, FP32, true, pool);
    fill_inputs(interpreter);
    test_run_interpreter(interpreter);
    const float *x = laya_interpreter_input(interpreter, 1, NULL)->values;
    const float *column = laya_interpreter_input(interpreter, 2, NULL)->values;
    const laya_array *sums = laya_interpreter_output(interpreter, 1, NULL);
    const laya_array *parts = laya_interpreter_output(interpreter, 2, NULL);
    assert_int_equal(sums->count, COLUMNS);
    for (size_t at = 0; at < COLUMNS; at++) {
        double sum = 0, sizes = 0, whole = 0;
        for (size_t channel = 0; channel < CHANNELS; channel++) {
            float value = x[channel * COLUMNS + at] + column[channel];
            sum += (double)value;
            sizes += fabs((double)value);
            whole += (double)parts->values[channel * COLUMNS + at];
        }
        assert_true(fabs(sum - (double)sums->values[at]) <= 2e-6 * sizes);
        assert_true(fabs(whole - 1) <= 2e-6);
    }
    laya_interpreter_close(interpreter);
    laya_pool_close(pool);
    laya_mil_program_close(&g.program);
}

/* ------------------------------------------------------------------ plans */

/* A chain of operations that work in place takes its input's memory and one result's. */
static void test_memory_in_place(void **state)
{
    (void)state;
    static graph g;
    g.count = 0;
    test_begin_program(&g.program);
    laya_mil_type type = laya_mil_tensor4(LAYA_MIL_FP16, 1, 64, 1, 32);
    g.values[g.count++] = test_add_function_input(&g.program, "a", type);
    for (int at = 0; at < 10; at++) end_op(&g, add_op(&g, "relu", "x", g.values[g.count - 1]));
    test_add_output(&g.program, g.values[g.count - 1]);
    laya_pool *pool = test_open_pool(1);
    laya_interpreter *interpreter = test_open_interpreter(&g.program, FP16, true, pool);
    uint64_t planned, unplanned, bytes = 64 * 32 * 4;
    laya_interpreter_memory(interpreter, &planned, &unplanned);
    assert_int_equal(unplanned, 11 * bytes + 8);
    assert_int_equal(planned, 2 * bytes + 128);
    laya_interpreter_close(interpreter);
    laya_pool_close(pool);
    laya_mil_program_close(&g.program);
}

/* An output that is an input by another name keeps its values while the next inputs are written. */
static void test_outputs_are_no_inputs(void **state)
{
    (void)state;
    static graph g;
    g.count = 0;
    test_begin_program(&g.program);
    laya_mil_value *x = test_add_function_input(&g.program, "a", laya_mil_vector(LAYA_MIL_FP32, 4));
    laya_mil_value *i = test_add_function_input(&g.program, "i", laya_mil_vector(LAYA_MIL_INT32, 2));
    end_op(&g, add_op(&g, "identity", "x", x));
    end_op(&g, add_op(&g, "identity", "x", g.values[0]));
    test_add_output(&g.program, g.values[1]);
    end_op(&g, add_op(&g, "identity", "x", i));
    test_add_output(&g.program, g.values[2]);
    laya_pool *pool = test_open_pool(1);
    laya_interpreter *interpreter = test_open_interpreter(&g.program, FP32, true, pool);
    laya_array *in = laya_interpreter_input(interpreter, 1, NULL),
               *numbers = laya_interpreter_input(interpreter, 2, NULL);
    const char *name;
    assert_int_equal(laya_interpreter_output_count(interpreter), 3);
    const laya_array *out = laya_interpreter_output(interpreter, 1, &name);
    assert_string_equal(name, "v1");
    test_write_array(in, (const double[]){1, 2, 3, 4});
    test_write_array(numbers, (const double[]){5, -6});
    test_run_interpreter(interpreter);
    test_write_array(in, (const double[]){9, 9, 9, 9});
    test_write_array(numbers, (const double[]){9, 9});
    assert_true(out->values[0] == 1 && out->values[3] == 4);
    assert_int_equal(laya_interpreter_output(interpreter, 2, NULL)->integers[1], -6);
    laya_interpreter_close(interpreter);
    laya_pool_close(pool);
    laya_mil_program_close(&g.program);
}

static laya_status read_rows(const void *user, uint64_t first, uint64_t count, unsigned char *out, laya_error *error)
{
    (void)error;
    for (uint64_t row = 0; row < count; row++) {
        uint16_t half = laya_float_to_half((float)(first + row) + *(const float *)user);
        out[2 * row] = (unsigned char)half;
        out[2 * row + 1] = (unsigned char)(half >> 8);
    }
    return LAYA_OK;
}

/* Constants of every kind: from a source, an output itself, expanded, expanded from what was expanded. */
static void test_constants(void **state)
{
    (void)state;
    static graph g;
    g.count = 0;
    test_begin_program(&g.program);
    laya_mil_value *x = test_add_function_input(&g.program, "a", laya_mil_vector(LAYA_MIL_FP16, 3));
    const float start = 10;
    const laya_mil_source source = {&start, read_rows, NULL};
    laya_mil_constant *constant = test_take(&g.program, sizeof *constant);
    *constant = (laya_mil_constant){.type = x->type, .size = 6, .source = &source};
    laya_mil_op *op = test_append_op(&g.program, "const", "rows", x->type);
    test_add_attribute(&g.program, op, "val", constant);
    op->outputs[0]->constant = constant;
    laya_mil_value *rows = op->outputs[0];
    op = add_op(&g, "add", "x", x);
    test_bind(test_add_input(&g.program, op, "y")->bindings, rows);
    end_op(&g, op);
    test_add_output(&g.program, g.values[0]);
    test_add_output(&g.program, rows);
    /* (3, 4, 5 - 1) * 0.5 */
    op = test_append_op(&g.program, "constexpr_affine_dequantize", "dense", x->type);
    const laya_mil_type bytes = laya_mil_vector(LAYA_MIL_UINT8, 3), half = laya_mil_scalar(LAYA_MIL_FP16);
    test_add_attribute(&g.program, op, "quantized_data", test_make_constant(&g.program, bytes, "\3\4\5"));
    test_add_attribute(&g.program, op, "zero_point",
                       test_make_constant(&g.program, laya_mil_scalar(LAYA_MIL_UINT8), "\1"));
    test_add_attribute(&g.program, op, "scale", test_make_constant(&g.program, half, "\0\x38"));
    test_add_attribute(&g.program, op, "axis", test_make_constant(&g.program, laya_mil_scalar(LAYA_MIL_INT32), NULL));
    laya_mil_value *dense = op->outputs[0];
    /* The same once more times 2 */
    op = test_append_op(&g.program, "constexpr_blockwise_shift_scale", "scaled", x->type);
    test_bind(test_add_input(&g.program, op, "data")->bindings, dense);
    test_bind_constant(&g.program, test_add_input(&g.program, op, "scale"), laya_mil_vector(LAYA_MIL_FP16, 1),
                       "\0\x40");
    laya_mil_value *scaled = op->outputs[0];
    op = add_op(&g, "add", "x", x);
    test_bind(test_add_input(&g.program, op, "y")->bindings, scaled);
    end_op(&g, op);
    test_add_output(&g.program, g.values[1]);
    laya_pool *pool = test_open_pool(1);
    laya_interpreter *interpreter = test_open_interpreter(&g.program, FP16, true, pool);
    test_write_array(laya_interpreter_input(interpreter, 0, NULL), (const double[]){0});
    test_write_array(laya_interpreter_input(interpreter, 1, NULL), (const double[]){1, 2, 3});
    test_run_interpreter(interpreter);
    test_result out;
    test_read_array(laya_interpreter_output(interpreter, 1, NULL), &out);
    EXPECT(out, 0, 11, 13, 15);
    test_read_array(laya_interpreter_output(interpreter, 2, NULL), &out);
    EXPECT(out, 0, 10, 11, 12);
    test_read_array(laya_interpreter_output(interpreter, 3, NULL), &out);
    EXPECT(out, 0, 3, 5, 7);
    laya_interpreter_close(interpreter);
    laya_pool_close(pool);
    laya_mil_program_close(&g.program);
}

/* A weight that stays as it is stored for one operation and is widened for another. */
static void test_stored_and_widened(void **state)
{
    (void)state;
    static graph g;
    static uint16_t weight[80 * 80];
    g.count = 0;
    test_begin_program(&g.program);
    for (size_t at = 0; at < 80; at++) weight[at * 81] = laya_float_to_half(2);
    laya_mil_type type = laya_mil_tensor4(LAYA_MIL_FP16, 80, 80, 1, 1);
    laya_mil_op *op = test_append_op(&g.program, "const", "weight", type);
    test_add_attribute(&g.program, op, "val", test_make_constant(&g.program, type, weight));
    laya_mil_value *constant = op->outputs[0];
    constant->constant = op->attributes[0].value;
    laya_mil_value *x = test_add_function_input(&g.program, "a", laya_mil_tensor4(LAYA_MIL_FP16, 1, 80, 1, 1));
    op = add_op(&g, "conv", "x", x);
    test_bind(test_add_input(&g.program, op, "weight")->bindings, constant);
    end_op(&g, op);
    test_add_output(&g.program, g.values[0]);
    op = add_op(&g, "reduce_sum", "x", constant);
    end_op(&g, op);
    test_add_output(&g.program, g.values[1]);
    laya_pool *pool = test_open_pool(1);
    laya_interpreter *interpreter = test_open_interpreter(&g.program, FP16, true, pool);
    fill_inputs(interpreter);
    test_run_interpreter(interpreter);
    assert_null(laya_step_operand(&interpreter->steps[1].step, "weight")->array->values);
    assert_non_null(laya_step_operand(&interpreter->steps[2].step, "x")->array->values);
    const laya_array *in = laya_interpreter_input(interpreter, 1, NULL);
    const laya_array *out = laya_interpreter_output(interpreter, 1, NULL);
    for (size_t at = 0; at < 80; at++) assert_true(out->values[at] == 2 * in->values[at]);
    assert_true(laya_interpreter_output(interpreter, 2, NULL)->values[0] == 160);
    laya_interpreter_close(interpreter);
    laya_pool_close(pool);
    laya_mil_program_close(&g.program);
}

/* ------------------------------------------------------------------ refusals */

static void expect_refused(const laya_mil_program *program, const char *function, laya_status status,
                           const char *text)
{
    laya_pool *pool = test_open_pool(1);
    laya_interpreter *interpreter = NULL;
    laya_error error;
    laya_status found = laya_interpreter_open(program, function, FP16, pool, NULL, &interpreter, &error);
    assert_null(interpreter);
    if (found != status) fail_msg("expected status %d, found %d: %s", (int)status, (int)found, error.message);
    assert_contains(error.message, text);
    laya_pool_close(pool);
}

static void change_and_refuse(void (*change)(laya_mil_program *program), laya_status status, const char *text)
{
    laya_mil_program program;
    test_build_program(&program, NULL);
    change(&program);
    expect_refused(&program, NULL, status, text);
    laya_mil_program_close(&program);
}

static void add_unknown(laya_mil_program *program)
{
    test_append_unary(program, "warp", "odd", "norm");
}

static void add_known_only_to_the_verifier(laya_mil_program *program)
{
    test_main_function(program)->opset = LAYA_MIL_COREML8;
    laya_mil_type type = test_hidden_type();
    type.kind = LAYA_MIL_STATE;
    laya_mil_value *value = test_take(program, sizeof *value);
    *value = (laya_mil_value){.name = "cache", .type = type};
    laya_mil_op *op = test_append_op(program, "read_state", "kept", test_hidden_type());
    test_bind(test_add_input(program, op, "input")->bindings, value);
}

static void add_state_input(laya_mil_program *program)
{
    laya_mil_type type = test_hidden_type();
    type.kind = LAYA_MIL_STATE;
    test_add_function_input(program, "cache", type);
}

static void add_condition(laya_mil_program *program)
{
    laya_mil_op *op = test_append_unary(program, "cond", "branch", "norm");
    op->blocks = test_take(program, 2 * sizeof *op->blocks);
    op->block_count = 2;
}

static void make_flexible(laya_mil_program *program)
{
    test_main_function(program)->inputs[0]->type.dims[3] = LAYA_MIL_UNKNOWN;
}

static void make_output_flexible(laya_mil_program *program)
{
    test_find_value(program, "norm")->type.dims[3] = LAYA_MIL_UNKNOWN;
}

static void make_empty(laya_mil_program *program)
{
    test_main_function(program)->inputs[1]->type.dims[3] = 0;
}

static void declare_wrongly(laya_mil_program *program)
{
    test_find_value(program, "wide")->type.dims[1] = 32;
}

static void name_twice(laya_mil_program *program)
{
    test_rename(program, test_find_value(program, "soft"), "norm");
}

static void forget_bytes(laya_mil_program *program)
{
    laya_mil_constant *constant = test_make_constant(program, laya_mil_vector(LAYA_MIL_FP16, TEST_CHANNELS), NULL);
    constant->bytes = NULL;
    test_find_op(program, "gamma")->attributes[0].value = constant;
    test_find_value(program, "gamma")->constant = constant;
}

static void output_what_is_not_there(laya_mil_program *program)
{
    laya_mil_binding *output = &test_main_function(program)->body.outputs[0];
    output->name = "nowhere";
    output->value = NULL;
}

static void use_early(laya_mil_program *program)
{
    test_bind(test_find_input(program, "wide", "x")->bindings, test_find_value(program, "soft"));
}

static void name_another(laya_mil_program *program)
{
    test_find_input(program, "wide", "x")->bindings[0].name = "mask";
}

static void take_away_opset(laya_mil_program *program)
{
    test_main_function(program)->opset = (laya_mil_opset)0;
}

static void test_refusals(void **state)
{
    (void)state;
    change_and_refuse(add_unknown, LAYA_ERROR_UNSUPPORTED, "odd (warp)");
    change_and_refuse(add_known_only_to_the_verifier, LAYA_ERROR_UNSUPPORTED, "kept (read_state)");
    change_and_refuse(add_state_input, LAYA_ERROR_UNSUPPORTED, "input 'cache'");
    change_and_refuse(add_condition, LAYA_ERROR_UNSUPPORTED, "branch (cond): the interpreter does not run control");
    change_and_refuse(make_flexible, LAYA_ERROR_UNSUPPORTED, "fixed shapes");
    change_and_refuse(make_output_flexible, LAYA_ERROR_UNSUPPORTED, "norm (layer_norm)");
    change_and_refuse(make_empty, LAYA_ERROR_UNSUPPORTED,
                      "input 'mask': the interpreter does not compute with empty");
    change_and_refuse(declare_wrongly, LAYA_ERROR_FORMAT, "wide (conv): output 'wide': expected");
    change_and_refuse(name_twice, LAYA_ERROR_FORMAT, "two values are called 'norm'");
    change_and_refuse(forget_bytes, LAYA_ERROR_FORMAT, "gamma");
    change_and_refuse(output_what_is_not_there, LAYA_ERROR_FORMAT, "'nowhere'");
    change_and_refuse(use_early, LAYA_ERROR_FORMAT, "'soft'");
    change_and_refuse(name_another, LAYA_ERROR_FORMAT, "'mask'");
    change_and_refuse(take_away_opset, LAYA_ERROR_UNSUPPORTED, "opset");
    laya_mil_program program;
    test_build_program(&program, NULL);
    expect_refused(&program, "other", LAYA_ERROR_FORMAT, "other");
    laya_mil_program_close(&program);
}

/* Every allocation of an opening may fail; a run makes none. */
static void test_failing_allocations(void **state)
{
    (void)state;
    laya_mil_program program;
    test_memory memory;
    laya_pool *pool = test_open_pool(1);
    test_build_program(&program, NULL);
    test_memory_init(&memory);
    bool failed = true;
    for (size_t fail_at = 1; failed; fail_at++) {
        laya_interpreter *interpreter = NULL;
        laya_error error;
        test_memory_arm(&memory, fail_at);
        laya_status status = laya_interpreter_open(&program, "main", FP16, pool, &memory.hooks, &interpreter, &error);
        failed = memory.failed;
        assert_int_equal(status, failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        assert_int_equal(interpreter != NULL, !failed);
        size_t made = memory.made;
        if (interpreter) {
            assert_true(fail_at > 3);
            fill_inputs(interpreter);
            test_run_interpreter(interpreter);
            assert_int_equal(memory.made, made);
        }
        laya_interpreter_close(interpreter);
        assert_int_equal(memory.live, 0);
    }
    laya_pool_close(pool);
    laya_mil_program_close(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reused_memory),
        cmocka_unit_test(test_threads_give_the_same_bits),
        cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_memory_in_place),
        cmocka_unit_test(test_outputs_are_no_inputs),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_stored_and_widened),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
