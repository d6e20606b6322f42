/* SPDX-License-Identifier: Apache-2.0 */
#include "mil_run.h"

#include "base/half.h"
#include "mil/builder.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

laya_mil_type test_operand_type(const test_operand *from)
{
    laya_mil_type type = {.kind = LAYA_MIL_TENSOR, .dtype = from->dtype, .rank = from->rank};
    for (uint32_t axis = 0; axis < from->rank; axis++) type.dims[axis] = from->dims[axis];
    return type;
}

/* The bytes of a constant, in the file's order. */
void test_encode(const laya_mil_type *type, const double *values, unsigned char *bytes)
{
    uint64_t count;
    assert_true(laya_mil_type_count(type, &count));
    unsigned width = laya_mil_dtype_bits(type->dtype) / 8;
    for (uint64_t at = 0; at < count; at++) {
        uint32_t bits = (uint32_t)(int32_t)values[at];
        if (type->dtype == LAYA_MIL_FP16) bits = laya_float_to_half((float)values[at]);
        if (type->dtype == LAYA_MIL_FP32) bits = laya_bits_of_float((float)values[at]);
        for (unsigned byte = 0; byte < width; byte++) bytes[at * width + byte] = (unsigned char)(bits >> 8 * byte);
    }
}

void test_begin_program(laya_mil_program *program)
{
    laya_mil_builder b;
    laya_error error;
    laya_mil_program_init(program, NULL);
    laya_mil_begin(&b, program, LAYA_MIL_COREML8, &error);
    laya_mil_output(&b, laya_mil_relu(&b, "first", laya_mil_input(&b, "zero", laya_mil_vector(LAYA_MIL_FP32, 1))));
    assert_int_equal(laya_mil_finish(&b), LAYA_OK);
}

void test_add_operand(laya_mil_program *program, laya_mil_op *op, const test_operand *from)
{
    laya_mil_argument *argument = test_add_input(program, op, from->name);
    laya_mil_type type = test_operand_type(from);
    if (from->text) {
        laya_mil_constant *constant = test_take(program, sizeof *constant);
        const char **strings = test_take(program, sizeof *strings);
        strings[0] = from->text;
        *constant = (laya_mil_constant){
            .type = laya_mil_scalar(LAYA_MIL_STRING), .strings = strings, .string_count = 1};
        argument->bindings[0].constant = constant;
    } else if (from->fixed) {
        unsigned char bytes[TEST_ELEMENTS * 4];
        test_encode(&type, from->values, bytes);
        test_bind_constant(program, argument, type, bytes);
    } else {
        test_bind(argument->bindings, test_add_function_input(program, from->name, type));
    }
}

/* Declare what the operation gives. */
void test_declare(laya_mil_op *op)
{
    laya_error error;
    laya_mil_type types[4];
    assert_true(op->output_count <= 4);
    if (laya_mil_infer(op, LAYA_MIL_COREML8, types, &error) != LAYA_OK) fail_msg("%s", error.message);
    for (uint32_t at = 0; at < op->output_count; at++) op->outputs[at]->type = types[at];
}

void test_write_array(const laya_array *array, const double *values)
{
    for (uint64_t at = 0; at < array->count; at++) {
        if (array->values)
            array->values[at] = (float)values[at];
        else
            array->integers[at] = (int32_t)values[at];
    }
}

void test_read_array(const laya_array *array, test_result *out)
{
    assert_true(array->count <= TEST_ELEMENTS);
    out->type = array->type;
    for (uint64_t at = 0; at < array->count; at++)
        out->values[at] = array->values ? (double)array->values[at] : (double)array->integers[at];
}

void test_run_interpreter(laya_interpreter *interpreter)
{
    laya_error error;
    if (laya_interpreter_run(interpreter, &error) != LAYA_OK) fail_msg("%s", error.message);
}

laya_pool *test_open_pool(unsigned threads)
{
    laya_pool *pool;
    laya_error error;
    assert_int_equal(laya_pool_open(threads, NULL, &pool, &error), LAYA_OK);
    return pool;
}

/* Memory full of NaN: what is read before it was written shows. */
static void *allocate_poisoned(void *user, size_t size)
{
    (void)user;
    void *block = malloc(size);
    if (block) memset(block, 0xFF, size);
    return block;
}

static void release(void *user, void *block)
{
    (void)user;
    free(block);
}

laya_interpreter *test_open_interpreter(const laya_mil_program *program, laya_numerics numerics, bool reuse,
                                        laya_pool *pool)
{
    laya_interpreter *interpreter;
    laya_error error;
    laya_plan_options options = {.reuse = reuse};
    const laya_allocator poisoned = {NULL, allocate_poisoned, release};
    if (laya_interpreter_open_with(program, NULL, numerics, &options, pool, &poisoned, &interpreter, &error) !=
        LAYA_OK)
        fail_msg("%s", error.message);
    return interpreter;
}

/* Run one operation on these operands, up to one without a name. */
test_result test_compute(const char *type, laya_numerics numerics, const test_operand *operands)
{
    laya_mil_program program;
    test_result out = {.type = {0}};
    test_begin_program(&program);
    laya_mil_op *op = test_append_op(&program, type, "out", laya_mil_scalar(LAYA_MIL_FP32));
    for (const test_operand *at = operands; at->name; at++) test_add_operand(&program, op, at);
    test_declare(op);
    test_add_output(&program, op->outputs[0]);
    laya_pool *pool = test_open_pool(1);
    laya_interpreter *interpreter = test_open_interpreter(&program, numerics, true, pool);
    uint32_t input = 0;
    *laya_interpreter_input(interpreter, input++, NULL)->values = 0;
    for (const test_operand *at = operands; at->name; at++) {
        if (!at->fixed && !at->text) test_write_array(laya_interpreter_input(interpreter, input++, NULL), at->values);
    }
    test_run_interpreter(interpreter);
    test_read_array(laya_interpreter_output(interpreter, 1, NULL), &out);
    laya_interpreter_close(interpreter);
    laya_pool_close(pool);
    laya_mil_program_close(&program);
    return out;
}

void test_expect(const test_result *found, size_t count, const double *values, double ulps)
{
    uint64_t elements;
    assert_true(laya_mil_type_count(&found->type, &elements));
    assert_int_equal(elements, count);
    for (size_t at = 0; at < count; at++) {
        double want = values[at], have = found->values[at];
        if (want == have || (want != want && have != have)) continue;
        if (fabs(want - have) <= ulps * fabs(want) * (double)FLT_EPSILON) continue;
        fail_msg("element %zu: expected %.9g, found %.9g", at, want, have);
    }
}
