/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that move elements, and the expansion of compressed constants. Expected values are written out, or follow
 * from each element's index; those of rounded arithmetic were computed by coremltools 9.0.
 */
#include "support.h"

#include "base/half.h"
#include "coreml/weight_file.h"
#include "interpreter/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 6
#define MAX_OUTPUTS 4

/* ------------------------------------------------------------------ steps */

/* One step with its operands; elements lie in blocks of their exact size. */
typedef struct made_step {
    laya_step step;
    laya_parameter_values parameters[MAX_OPERANDS];
    laya_operand operands[2 * MAX_OPERANDS];
    laya_array arrays[2 * MAX_OPERANDS];
    laya_mil_constant constants[2 * MAX_OPERANDS];
    const char *strings[2 * MAX_OPERANDS];
    uint32_t operand_count;
    laya_array outputs[MAX_OUTPUTS];
    laya_array *output_pointers[MAX_OUTPUTS];
    laya_error error;
    laya_mil_opset opset;
    unsigned threads;
} made_step;

/* "2,3,4"; "" is a scalar. */
static laya_mil_type make_type(laya_mil_dtype dtype, const char *dims)
{
    laya_mil_type type = {.kind = LAYA_MIL_TENSOR, .dtype = dtype};
    for (const char *at = dims; *at;) {
        char *end;
        type.dims[type.rank++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    return type;
}

static laya_array make_array(laya_mil_type type)
{
    laya_array array = {.type = type};
    assert_true(laya_mil_type_count(&type, &array.count));
    void *block = malloc((size_t)array.count * 4 + (array.count == 0));
    assert_non_null(block);
    memset(block, 0xff, (size_t)array.count * 4);
    if (type.dtype == LAYA_MIL_FP16 || type.dtype == LAYA_MIL_FP32)
        array.values = block;
    else
        array.integers = block;
    return array;
}

static void begin_step(made_step *made, const char *type)
{
    *made = (made_step){.opset = LAYA_MIL_COREML7, .threads = 1};
    for (const laya_implementation *at = laya_shape_implementations; at->type; at++) {
        if (strcmp(at->type, type) == 0) made->step.implementation = at;
    }
    assert_non_null(made->step.implementation);
    made->step.parameters = made->parameters;
    made->step.outputs = made->output_pointers;
}

/* Another operand of the last parameter, or the first one of a new parameter. */
static laya_array *add_operand(made_step *made, const char *name, laya_mil_type type)
{
    assert_true(made->operand_count < 2 * MAX_OPERANDS);
    uint32_t at = made->operand_count++, count = made->step.parameter_count;
    if (count == 0 || strcmp(made->parameters[count - 1].name, name) != 0) {
        made->parameters[count] = (laya_parameter_values){name, &made->operands[at], 0};
        made->step.parameter_count++;
    }
    made->parameters[made->step.parameter_count - 1].count++;
    if (type.dtype != LAYA_MIL_STRING) made->arrays[at] = make_array(type);
    made->operands[at].array = &made->arrays[at];
    return &made->arrays[at];
}

/* Element i is first + i. */
static void add_counting(made_step *made, const char *name, const char *dims, float first)
{
    laya_array *array = add_operand(made, name, make_type(LAYA_MIL_FP32, dims));
    for (uint64_t i = 0; i < array->count; i++) array->values[i] = first + (float)i;
}

static void add_integers(made_step *made, const char *name, const char *dims, const int32_t *values)
{
    laya_array *array = add_operand(made, name, make_type(LAYA_MIL_INT32, dims));
    for (uint64_t i = 0; i < array->count; i++) array->integers[i] = values[i];
}

/* A vector, "1,2,3". */
static void add_list(made_step *made, const char *name, const char *values)
{
    laya_mil_type listed = make_type(LAYA_MIL_INT32, values);
    laya_array *array = add_operand(made, name, laya_mil_vector(LAYA_MIL_INT32, listed.rank));
    for (uint32_t i = 0; i < listed.rank; i++) array->integers[i] = (int32_t)listed.dims[i];
}

static void add_number(made_step *made, const char *name, int32_t value)
{
    add_integers(made, name, "", &value);
}

static void add_text(made_step *made, const char *name, const char *text)
{
    uint32_t at = made->operand_count;
    add_operand(made, name, laya_mil_scalar(LAYA_MIL_STRING));
    made->strings[at] = text;
    made->constants[at] = (laya_mil_constant){
        .type = laya_mil_scalar(LAYA_MIL_STRING), .strings = &made->strings[at], .string_count = 1};
    made->operands[at].constant = &made->constants[at];
}

static void add_output(made_step *made, laya_mil_dtype dtype, const char *dims)
{
    uint32_t at = made->step.output_count++;
    made->outputs[at] = make_array(make_type(dtype, dims));
    made->output_pointers[at] = &made->outputs[at];
}

static laya_status run_step(made_step *made)
{
    laya_pool *pool;
    assert_int_equal(laya_pool_open(made->threads, NULL, &pool, NULL), LAYA_OK);
    laya_run run = {.pool = pool, .kernels = &laya_kernels_portable, .opset = made->opset};
    laya_status status = made->step.implementation->run(&run, &made->step, &made->error);
    laya_pool_close(pool);
    return status;
}

static void end_step(made_step *made)
{
    for (uint32_t at = 0; at < made->operand_count; at++) {
        free(made->arrays[at].values);
        free(made->arrays[at].integers);
    }
    for (uint32_t at = 0; at < made->step.output_count; at++) {
        free(made->outputs[at].values);
        free(made->outputs[at].integers);
    }
}

/* "1 2 3" */
static void expect_values(const laya_array *array, const char *expected)
{
    char found[1024] = "";
    for (uint64_t i = 0; i < array->count; i++) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s%g", i > 0 ? " " : "",
                 array->values ? (double)array->values[i] : (double)array->integers[i]);
    }
    assert_string_equal(found, expected);
}

static void finish_step(made_step *made, const char *expected)
{
    assert_int_equal(run_step(made), LAYA_OK);
    expect_values(&made->outputs[0], expected);
    end_step(made);
}

static void refuse_step(made_step *made, const char *text)
{
    assert_int_equal(run_step(made), LAYA_ERROR_FORMAT);
    assert_contains(made->error.message, text);
    end_step(made);
}

/* ------------------------------------------------------------------ transpose */

static void check_transpose(const int32_t *perm, const int64_t *dims, uint32_t rank, unsigned threads)
{
    made_step made;
    laya_mil_type x = {.dtype = LAYA_MIL_FP32, .rank = rank}, out = x;
    int64_t stride[LAYA_MIL_MAX_RANK] = {0};
    char text[LAYA_MIL_MAX_RANK * 24] = "", turned[LAYA_MIL_MAX_RANK * 24] = "";
    for (uint32_t axis = 0; axis < rank; axis++) {
        x.dims[axis] = dims[axis];
        out.dims[axis] = dims[perm[axis]];
        for (uint32_t other = 0; other < axis; other++) stride[other] = stride[other] * dims[axis];
        stride[axis] = 1;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%ld,", (long)x.dims[axis]);
        snprintf(turned + strlen(turned), sizeof turned - strlen(turned), "%ld,", (long)out.dims[axis]);
    }
    begin_step(&made, "transpose");
    made.threads = threads;
    add_counting(&made, "x", text, 0);
    int32_t negative[LAYA_MIL_MAX_RANK]; /* one axis counted from the end */
    for (uint32_t axis = 0; axis < rank; axis++) negative[axis] = perm[axis] - (axis == 1 ? (int32_t)rank : 0);
    char count[8];
    snprintf(count, sizeof count, "%u", rank);
    add_integers(&made, "perm", count, negative);
    add_output(&made, LAYA_MIL_FP32, turned);
    assert_int_equal(run_step(&made), LAYA_OK);
    for (uint64_t i = 0; i < made.outputs[0].count; i++) {
        uint64_t rest = i;
        int64_t from = 0;
        for (uint32_t axis = rank; axis > 0; axis--) {
            from += (int64_t)(rest % (uint64_t)out.dims[axis - 1]) * stride[perm[axis - 1]];
            rest /= (uint64_t)out.dims[axis - 1];
        }
        assert_true(made.outputs[0].values[i] == (float)from);
    }
    end_step(&made);
}

static void test_transpose(void **state)
{
    (void)state;
    const int64_t dims[] = {3, 2, 17, 18}, column[] = {1, 100, 1, 70}, wide[] = {70, 3, 500};
    for (int32_t code = 0; code < 256; code++) {
        int32_t perm[] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
        if ((1 << perm[0] | 1 << perm[1] | 1 << perm[2] | 1 << perm[3]) == 15) check_transpose(perm, dims, 4, 1);
    }
    check_transpose((const int32_t[]){0, 3, 2, 1}, column, 4, 1);
    check_transpose((const int32_t[]){2, 1, 0}, wide, 3, 3);
    check_transpose((const int32_t[]){1, 0, 2}, wide, 3, 3);
    check_transpose((const int32_t[]){1, 2, 0}, wide, 3, 3);
}

/* ------------------------------------------------------------------ split, concat, stack */

static void test_split(void **state)
{
    (void)state;
    made_step made;
    begin_step(&made, "split");
    add_counting(&made, "x", "2,4,2", 0);
    add_number(&made, "axis", -2);
    add_output(&made, LAYA_MIL_FP32, "2,1,2");
    add_output(&made, LAYA_MIL_FP32, "2,0,2");
    add_output(&made, LAYA_MIL_FP32, "2,3,2");
    assert_int_equal(run_step(&made), LAYA_OK);
    expect_values(&made.outputs[0], "0 1 8 9");
    expect_values(&made.outputs[1], "");
    expect_values(&made.outputs[2], "2 3 4 5 6 7 10 11 12 13 14 15");
    end_step(&made);

    begin_step(&made, "split"); /* one block, shared by threads */
    made.threads = 3;
    add_counting(&made, "x", "1,4,1,30000", 0);
    add_number(&made, "axis", 1);
    add_output(&made, LAYA_MIL_FP32, "1,1,1,30000");
    add_output(&made, LAYA_MIL_FP32, "1,3,1,30000");
    assert_int_equal(run_step(&made), LAYA_OK);
    for (int i = 0; i < 30000; i++) assert_true(made.outputs[0].values[i] == (float)i);
    for (int i = 0; i < 90000; i++) assert_true(made.outputs[1].values[i] == (float)(30000 + i));
    end_step(&made);
}

static void test_concat(void **state)
{
    (void)state;
    made_step made;
    begin_step(&made, "concat");
    add_counting(&made, "values", "2,1", 0);
    add_counting(&made, "values", "2,2", 10);
    add_counting(&made, "values", "2,0", 0);
    add_number(&made, "axis", -1);
    add_output(&made, LAYA_MIL_FP32, "2,3");
    finish_step(&made, "0 10 11 1 12 13");

    begin_step(&made, "concat"); /* interleaved, as coremltools' documentation shows */
    add_counting(&made, "values", "3,2", 1);
    add_counting(&made, "values", "3,2", 7);
    add_number(&made, "axis", 0);
    add_number(&made, "interleave", 1);
    add_output(&made, LAYA_MIL_FP32, "6,2");
    finish_step(&made, "1 2 7 8 3 4 9 10 5 6 11 12");

    begin_step(&made, "concat"); /* scalars, integers */
    add_integers(&made, "values", "", (const int32_t[]){-7});
    add_integers(&made, "values", "", (const int32_t[]){INT32_MAX});
    add_number(&made, "axis", 0);
    add_output(&made, LAYA_MIL_INT32, "2");
    assert_int_equal(run_step(&made), LAYA_OK);
    assert_int_equal(made.outputs[0].integers[0], -7);
    assert_int_equal(made.outputs[0].integers[1], INT32_MAX);
    end_step(&made);
}

static void test_stack(void **state)
{
    (void)state;
    static const char *const expected[] = {"0 1 2 3 10 11 12 13", "0 1 10 11 2 3 12 13", "0 10 1 11 2 12 3 13"};
    static const char *const shapes[] = {"2,2,2", "2,2,2", "2,2,2"};
    for (int32_t axis = 0; axis < 3; axis++) {
        made_step made;
        begin_step(&made, "stack");
        add_counting(&made, "values", "2,2", 0);
        add_counting(&made, "values", "2,2", 10);
        add_number(&made, "axis", axis == 2 ? -1 : axis);
        add_output(&made, LAYA_MIL_FP32, shapes[axis]);
        finish_step(&made, expected[axis]);
    }
}

/* ------------------------------------------------------------------ slices */

/* Of the 4 x 5 elements 0 … 19. Masks are digits. */
typedef struct slice_row {
    const char *begin, *stride, *begin_mask, *squeeze_mask, *out, *expected;
} slice_row;

static void test_slice_by_index(void **state)
{
    (void)state;
    static const slice_row rows[] = {
        {"1,2", NULL, NULL, NULL, "2,3", "7 8 9 12 13 14"},
        {"-3,-2", NULL, NULL, NULL, "2,2", "8 9 13 14"},
        {"-9,-9", NULL, NULL, NULL, "1,2", "0 1"}, /* before the first element */
        {"3,4", "-2,-3", NULL, NULL, "2,2", "19 16 9 6"},
        {"7,7", "-1,1", "1,1", NULL, "2,1", "15 10"},
        {"0,0", "3,4", NULL, NULL, "2,2", "0 4 15 19"},
        {"2,1", NULL, NULL, "1,0", "3", "11 12 13"},
        {"-1,-5", NULL, NULL, "1,1", "", "15"},
        {"9,3", NULL, "1,0", "0,1", "4", "3 8 13 18"},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        made_step made;
        begin_step(&made, "slice_by_index");
        add_counting(&made, "x", "4,5", 0);
        add_list(&made, "begin", rows[row].begin);
        if (rows[row].stride) add_list(&made, "stride", rows[row].stride);
        if (rows[row].begin_mask) add_list(&made, "begin_mask", rows[row].begin_mask);
        if (rows[row].squeeze_mask) add_list(&made, "squeeze_mask", rows[row].squeeze_mask);
        add_output(&made, LAYA_MIL_FP32, rows[row].out);
        finish_step(&made, rows[row].expected);
    }
}

static void test_slices_out_of_range(void **state)
{
    (void)state;
    static const char *const indices[] = {"4,0", "-5,0"};
    made_step made;
    for (size_t at = 0; at < 2; at++) {
        begin_step(&made, "slice_by_index");
        add_counting(&made, "x", "4,5", 0);
        add_list(&made, "begin", indices[at]);
        add_list(&made, "squeeze_mask", "1,0");
        add_output(&made, LAYA_MIL_FP32, "5");
        refuse_step(&made, "out of range for the 4 of axis 0");
    }
    begin_step(&made, "slice_by_size");
    add_counting(&made, "x", "4,5", 0);
    add_list(&made, "begin", "-3,3");
    add_output(&made, LAYA_MIL_FP32, "2,2");
    finish_step(&made, "8 9 13 14");
    begin_step(&made, "slice_by_size");
    add_counting(&made, "x", "4,5", 0);
    add_list(&made, "begin", "0,4");
    add_output(&made, LAYA_MIL_FP32, "2,2");
    refuse_step(&made, "elements 4 to 5 are out of range for the 5 of axis 1");
}

/* ------------------------------------------------------------------ tile, pad, fill */

static void test_tile(void **state)
{
    (void)state;
    made_step made;
    begin_step(&made, "tile");
    add_counting(&made, "x", "2,2", 0);
    add_output(&made, LAYA_MIL_FP32, "4,6");
    finish_step(&made, "0 1 0 1 0 1 2 3 2 3 2 3 0 1 0 1 0 1 2 3 2 3 2 3");
    begin_step(&made, "tile"); /* one element, many times */
    add_counting(&made, "x", "1", 3);
    add_output(&made, LAYA_MIL_FP32, "4");
    finish_step(&made, "3 3 3 3");
}

static void pad_step(made_step *made, const char *mode, const char *pad, const char *out)
{
    begin_step(made, "pad");
    add_counting(made, "x", "2,3", 1);
    add_list(made, "pad", pad);
    add_text(made, "mode", mode);
    add_counting(made, "constant_val", "", -1);
    add_output(made, LAYA_MIL_FP32, out);
}

static void test_pad(void **state)
{
    (void)state;
    made_step made;
    pad_step(&made, "constant", "1,0,0,2", "3,5");
    finish_step(&made, "-1 -1 -1 -1 -1 1 2 3 -1 -1 4 5 6 -1 -1");
    pad_step(&made, "constant", "1,1", "2,5"); /* the last axis */
    finish_step(&made, "-1 1 2 3 -1 -1 4 5 6 -1");
    pad_step(&made, "reflect", "1,1,2,1", "4,6");
    finish_step(&made, "6 5 4 5 6 5 3 2 1 2 3 2 6 5 4 5 6 5 3 2 1 2 3 2");
    pad_step(&made, "replicate", "0,1,2,4", "3,9");
    finish_step(&made, "1 1 1 2 3 3 3 3 3 4 4 4 5 6 6 6 6 6 4 4 4 5 6 6 6 6 6");
    pad_step(&made, "reflect", "0,0", "2,3");
    finish_step(&made, "1 2 3 4 5 6");
    pad_step(&made, "reflect", "0,3", "2,6");
    refuse_step(&made, "expected at most 2 reflected elements on axis 1, found 3");
    pad_step(&made, "reflect", "2,0,0,0", "4,3");
    refuse_step(&made, "expected at most 1 reflected elements on axis 0, found 2");
}

static void test_fill(void **state)
{
    (void)state;
    made_step made;
    begin_step(&made, "fill");
    add_integers(&made, "value", "", (const int32_t[]){-3});
    add_output(&made, LAYA_MIL_INT32, "2,2");
    finish_step(&made, "-3 -3 -3 -3");
    begin_step(&made, "fill");
    add_counting(&made, "value", "", 0.5f);
    add_output(&made, LAYA_MIL_FP32, "3");
    finish_step(&made, "0.5 0.5 0.5");
    begin_step(&made, "fill"); /* the default */
    add_output(&made, LAYA_MIL_FP32, "2");
    finish_step(&made, "0 0");
}

/* ------------------------------------------------------------------ gather */

/* `values` of the indices in order, at most eight. */
static void gather_step(made_step *made, const char *x, const char *indices, const char *values, int32_t axis,
                        const char *out)
{
    begin_step(made, "gather");
    add_counting(made, "x", x, 0);
    add_list(made, "indices", values);
    made->arrays[1].type = make_type(LAYA_MIL_INT32, indices);
    add_number(made, "axis", axis);
    add_output(made, LAYA_MIL_FP32, out);
}

static void test_gather(void **state)
{
    (void)state;
    made_step made;
    gather_step(&made, "3,2", "2,2", "2,0,1,2", 0, "2,2,2");
    finish_step(&made, "4 5 0 1 2 3 4 5");
    gather_step(&made, "2,3,2", "2", "2,1", -2, "2,2,2");
    finish_step(&made, "4 5 2 3 10 11 8 9");
    gather_step(&made, "2,3", "", "1", 1, "2");
    finish_step(&made, "1 4");
    gather_step(&made, "2,3,2", "2,2", "0,2,1,1", 1, "2,2,2");
    add_number(&made, "batch_dims", 1);
    finish_step(&made, "0 1 4 5 8 9 8 9");
    gather_step(&made, "2,2,3", "2,2", "0,2,1,1", 2, "2,2,2");
    add_number(&made, "batch_dims", 1);
    finish_step(&made, "0 2 3 5 7 7 10 10");
    gather_step(&made, "3,2", "0", "", 0, "0,2");
    finish_step(&made, "");
}

static void test_gather_ranges(void **state)
{
    (void)state;
    made_step made;
    gather_step(&made, "3,2", "2", "-1,-3", 0, "2,2");
    made.opset = LAYA_MIL_COREML6;
    finish_step(&made, "4 5 0 1");
    gather_step(&made, "3,2", "2", "0,-4", 0, "2,2");
    made.opset = LAYA_MIL_COREML6;
    refuse_step(&made, "expected -3 to 2, found -4 at element 1");
    gather_step(&made, "3,2", "2", "0,-1", 0, "2,2");
    refuse_step(&made, "expected 0 to 2, found -1 at element 1");
    gather_step(&made, "3,2", "2", "3,0", 0, "2,2");
    refuse_step(&made, "expected 0 to 2, found 3 at element 0");
}

/* Rows of a constant that is left as it is stored. */
static void check_stored(laya_mil_dtype dtype, const unsigned char *bytes, size_t size)
{
    made_step made;
    begin_step(&made, "gather");
    made.arrays[0] = (laya_array){.type = make_type(dtype, "2,2"), .count = 4};
    made.constants[0] = (laya_mil_constant){.type = made.arrays[0].type, .bytes = bytes, .size = size};
    made.operands[0] = (laya_operand){&made.arrays[0], &made.constants[0]};
    made.parameters[0] = (laya_parameter_values){"x", &made.operands[0], 1};
    made.operand_count = made.step.parameter_count = 1;
    add_list(&made, "indices", "1,0,1");
    add_number(&made, "axis", 0);
    add_output(&made, LAYA_MIL_FP32, "3,2");
    finish_step(&made, "0.5 65504 1 -2 0.5 65504");
}

static void test_gather_stored(void **state)
{
    (void)state;
    static const unsigned char half[] = {0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38, 0xff, 0x7b}; /* 1 -2 0.5 65504 */
    static const unsigned char full[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f, 0, 0xe0, 0x7f, 0x47};
    check_stored(LAYA_MIL_FP16, half, sizeof half);
    check_stored(LAYA_MIL_FP32, full, sizeof full);
}

/* ------------------------------------------------------------------ compressed constants */

typedef struct made_constant {
    laya_mil_op op;
    laya_mil_argument arguments[MAX_OPERANDS];
    laya_mil_attribute attributes[MAX_OPERANDS];
    laya_mil_binding bindings[MAX_OPERANDS];
    laya_mil_constant constants[MAX_OPERANDS];
    const char *strings[MAX_OPERANDS];
    laya_mil_value output;
    laya_mil_value *outputs[1];
    laya_mil_opset opset;
    laya_error error;
} made_constant;

static void begin_constant(made_constant *made, laya_mil_opset opset, const char *type, laya_mil_dtype dtype,
                           const char *dims)
{
    *made = (made_constant){.opset = opset, .op = {.type = type, .name = "w", .output_count = 1}};
    made->output = (laya_mil_value){.name = "w", .type = make_type(dtype, dims)};
    made->outputs[0] = &made->output;
    made->op.outputs = made->outputs;
    made->op.inputs = made->arguments;
    made->op.attributes = made->attributes;
}

/* An attribute or an input, as the form has it. The bytes are not copied. */
static void add_parameter(made_constant *made, const char *name, laya_mil_dtype dtype, const char *dims,
                          const void *bytes, size_t size)
{
    const laya_mil_operation *form = laya_mil_operation_find(made->op.type, made->opset);
    uint32_t at = made->op.attribute_count + made->op.input_count;
    made->constants[at] = (laya_mil_constant){.type = make_type(dtype, dims), .bytes = bytes, .size = size};
    made->bindings[at] = (laya_mil_binding){.constant = &made->constants[at]};
    if (form && form->in_attributes)
        made->attributes[made->op.attribute_count++] = (laya_mil_attribute){name, &made->constants[at]};
    else
        made->arguments[made->op.input_count++] = (laya_mil_argument){name, &made->bindings[at], 1};
}

#define ADD_BYTES(made, name, dtype, dims, ...)                                                                      \
    add_parameter(made, name, dtype, dims, (const unsigned char[]){__VA_ARGS__},                                     \
                  sizeof((const unsigned char[]){__VA_ARGS__}))

static void expect_bytes(made_constant *made, const void *expected, size_t size)
{
    test_memory memory;
    unsigned char *bytes = NULL;
    uint64_t found = 0;
    test_memory_init(&memory);
    laya_status status = laya_constexpr_expand(&made->op, made->opset, &memory.hooks, &bytes, &found, &made->error);
    if (status != LAYA_OK) fail_msg("%s", made->error.message);
    assert_int_equal(found, size);
    assert_memory_equal(bytes, expected, size);
    laya_release(&memory.hooks, bytes);
    assert_int_equal(memory.live, 0);
}

#define EXPECT_BYTES(made, ...)                                                                                      \
    expect_bytes(made, (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__}))

static void refuse_constant(made_constant *made, laya_status status, const char *text)
{
    test_memory memory;
    unsigned char *bytes = NULL;
    uint64_t size;
    test_memory_init(&memory);
    assert_int_equal(laya_constexpr_expand(&made->op, made->opset, &memory.hooks, &bytes, &size, &made->error),
                     status);
    assert_contains(made->error.message, text);
    assert_null(bytes);
    assert_int_equal(memory.live, 0);
}

/* Indices of every width, packed by the rules of the format, at every place inside of a byte. */
static void test_packed_palettes(void **state)
{
    (void)state;
    static const unsigned widths[] = {1, 2, 4, 6, 8};
    enum { COUNT = 5003 };
    unsigned char table[256], packed[COUNT], expected[COUNT];
    for (unsigned i = 0; i < 256; i++) table[i] = (unsigned char)(255 - i * 3);
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        unsigned bits = widths[at];
        memset(packed, 0, sizeof packed);
        for (unsigned i = 0; i < COUNT; i++) {
            unsigned index = i * 2654435761u >> 7 & ((1u << bits) - 1);
            expected[i] = table[index];
            for (unsigned bit = 0; bit < bits; bit++) {
                unsigned place = i * bits + bit;
                packed[place / 8] |= (unsigned char)((index >> bit & 1) << place % 8);
            }
        }
        made_constant made;
        char entries[16], size[16];
        unsigned bytes = (COUNT * bits + 7) / 8;
        snprintf(entries, sizeof entries, "%u", 1u << bits);
        snprintf(size, sizeof size, "%u", bytes);
        begin_constant(&made, LAYA_MIL_COREML7, "constexpr_lut_to_dense", LAYA_MIL_UINT8, "5003");
        add_parameter(&made, "indices", LAYA_MIL_UINT8, size, packed, bytes);
        add_parameter(&made, "lut", LAYA_MIL_UINT8, entries, table, (size_t)1 << bits);
        ADD_BYTES(&made, "shape", LAYA_MIL_UINT32, "1", COUNT & 255, COUNT >> 8, 0, 0);
        expect_bytes(&made, expected, sizeof expected);
    }
}

/* The examples of coremltools' documentation. */
static void test_grouped_palettes(void **state)
{
    (void)state;
    made_constant made;
    /* indices 2 3 3 0 1 0 | 3 0 2 1 0 3, a table for each half of the rows */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_lut_to_dense", LAYA_MIL_UINT8, "6,2");
    ADD_BYTES(&made, "indices", LAYA_MIL_UINT2, "6,2", 0x3e, 0x31, 0xc6);
    ADD_BYTES(&made, "lut", LAYA_MIL_UINT8, "2,1,4,1", 1, 5, 9, 13, 2, 10, 18, 26);
    EXPECT_BYTES(&made, 9, 13, 13, 1, 5, 1, 26, 2, 18, 10, 2, 26);
    /* tables for both axes: rows 0-2 and 3-5, columns 0 and 1 */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_lut_to_dense", LAYA_MIL_UINT8, "6,2");
    ADD_BYTES(&made, "indices", LAYA_MIL_UINT2, "6,2", 0x3e, 0x31, 0xc6);
    ADD_BYTES(&made, "lut", LAYA_MIL_UINT8, "2,2,4,1", 0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33);
    EXPECT_BYTES(&made, 2, 13, 3, 10, 1, 10, 23, 30, 22, 31, 20, 33);
    /* two entries of three elements, along axis 1 and along axis 2 */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_lut_to_dense", LAYA_MIL_INT8, "2,6,2");
    ADD_BYTES(&made, "indices", LAYA_MIL_UINT1, "2,2,2", 0x34);
    ADD_BYTES(&made, "lut", LAYA_MIL_INT8, "1,1,1,2,3", 1, 2, 3, 11, 12, 13);
    ADD_BYTES(&made, "vector_axis", LAYA_MIL_INT32, "", 1, 0, 0, 0);
    EXPECT_BYTES(&made, 1, 1, 2, 2, 3, 3, 11, 1, 12, 2, 13, 3, 11, 11, 12, 12, 13, 13, 1, 1, 2, 2, 3, 3);
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_lut_to_dense", LAYA_MIL_INT8, "2,2,6");
    ADD_BYTES(&made, "indices", LAYA_MIL_UINT1, "2,2,2", 0x34);
    ADD_BYTES(&made, "lut", LAYA_MIL_INT8, "1,1,1,2,3", 1, 2, 3, 11, 12, 13);
    ADD_BYTES(&made, "vector_axis", LAYA_MIL_INT32, "", 0xff, 0xff, 0xff, 0xff);
    EXPECT_BYTES(&made, 1, 2, 3, 1, 2, 3, 11, 12, 13, 1, 2, 3, 11, 12, 13, 11, 12, 13, 1, 2, 3, 1, 2, 3);
    /* wider entries are copied as they are; 3 bits, 0 5 2 7 3 1 */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_lut_to_dense", LAYA_MIL_FP16, "6");
    ADD_BYTES(&made, "indices", LAYA_MIL_UINT3, "6", 0xa8, 0xbe, 0x00);
    ADD_BYTES(&made, "lut", LAYA_MIL_FP16, "1,8,1", 0, 0x80, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 0xff, 0x7f);
    EXPECT_BYTES(&made, 0, 0x80, 5, 5, 2, 2, 0xff, 0x7f, 3, 3, 1, 1);
}

static void test_affine(void **state)
{
    (void)state;
    made_constant made;
    /* 0.5 * (q - 10) and 2 * (q + 3), in the two columns */
    begin_constant(&made, LAYA_MIL_COREML6, "constexpr_affine_dequantize", LAYA_MIL_FP16, "2,2");
    ADD_BYTES(&made, "quantized_data", LAYA_MIL_INT8, "2,2", 12, 1, 0x80, 0xff);
    ADD_BYTES(&made, "zero_point", LAYA_MIL_INT8, "2", 10, 0xfd);
    ADD_BYTES(&made, "scale", LAYA_MIL_FP16, "2", 0x00, 0x38, 0x00, 0x40);
    ADD_BYTES(&made, "axis", LAYA_MIL_INT32, "", 0xff, 0xff, 0xff, 0xff);
    EXPECT_BYTES(&made, 0x00, 0x3c, 0x00, 0x48, 0x50, 0xd4, 0x00, 0x44); /* 1, 8, -69, 4 */
    /* float32: 0.1f * (200 - 0.5f) */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_affine_dequantize", LAYA_MIL_FP32, "1");
    ADD_BYTES(&made, "quantized_data", LAYA_MIL_UINT8, "1", 200);
    ADD_BYTES(&made, "zero_point", LAYA_MIL_FP32, "", 0, 0, 0, 0x3f);
    ADD_BYTES(&made, "scale", LAYA_MIL_FP32, "", 0xcd, 0xcc, 0xcc, 0x3d);
    ADD_BYTES(&made, "axis", LAYA_MIL_INT32, "", 0, 0, 0, 0);
    EXPECT_BYTES(&made, 0x9a, 0x99, 0x9f, 0x41); /* 19.95 */
}

static void test_blockwise(void **state)
{
    (void)state;
    made_constant made;
    /* int4 -8 7 | -1 3, scales 2 and 0.5 of the columns' halves */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_blockwise_shift_scale", LAYA_MIL_FP16, "1,4");
    ADD_BYTES(&made, "data", LAYA_MIL_INT4, "1,4", 0x78, 0x3f);
    ADD_BYTES(&made, "scale", LAYA_MIL_FP16, "1,2", 0x00, 0x40, 0x00, 0x38);
    EXPECT_BYTES(&made, 0x00, 0xcc, 0x00, 0x4b, 0x00, 0xb8, 0x00, 0x3e); /* -16 14 -0.5 1.5 */
    /* the same with offsets 1 and -1 */
    ADD_BYTES(&made, "offset", LAYA_MIL_INT4, "1,2", 0xf1);
    EXPECT_BYTES(&made, 0x80, 0xcc, 0x00, 0x4a, 0x00, 0x00, 0x00, 0x40); /* -18 12 0 2 */
    /* fp16 steps: 254 - 0.09998 gives 253.875, times 0.09998 gives 25.375; without the first rounding 25.390625 */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_blockwise_shift_scale", LAYA_MIL_FP16, "1");
    ADD_BYTES(&made, "data", LAYA_MIL_UINT8, "1", 254);
    ADD_BYTES(&made, "scale", LAYA_MIL_FP16, "1", 0x66, 0x2e);
    ADD_BYTES(&made, "offset", LAYA_MIL_FP16, "1", 0x66, 0x2e);
    EXPECT_BYTES(&made, 0x58, 0x4e);
    /* uint4 in float32, every element its block */
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_blockwise_shift_scale", LAYA_MIL_FP32, "2,1");
    ADD_BYTES(&made, "data", LAYA_MIL_UINT4, "2,1", 0xf2);
    ADD_BYTES(&made, "scale", LAYA_MIL_FP32, "2,1", 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0);
    EXPECT_BYTES(&made, 0, 0, 0, 0x40, 0, 0, 0xf0, 0xc1); /* 2 -30 */
}

static void test_sparse_and_cast(void **state)
{
    (void)state;
    made_constant made;
    begin_constant(&made, LAYA_MIL_COREML7, "constexpr_sparse_to_dense", LAYA_MIL_FP16, "5");
    ADD_BYTES(&made, "nonzero_data", LAYA_MIL_FP16, "2", 1, 2, 3, 4);
    ADD_BYTES(&made, "mask", LAYA_MIL_UINT8, "1", 0x0c);
    ADD_BYTES(&made, "shape", LAYA_MIL_UINT32, "1", 5, 0, 0, 0);
    EXPECT_BYTES(&made, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0);
    begin_constant(&made, LAYA_MIL_COREML8, "constexpr_sparse_to_dense", LAYA_MIL_INT4, "1,5");
    ADD_BYTES(&made, "nonzero_data", LAYA_MIL_INT4, "3", 0x9f, 0x07);
    ADD_BYTES(&made, "mask", LAYA_MIL_UINT1, "1,5", 0x1a);
    EXPECT_BYTES(&made, 0xf0, 0x90, 0x07);
    begin_constant(&made, LAYA_MIL_COREML7, "constexpr_cast", LAYA_MIL_FP32, "3");
    ADD_BYTES(&made, "source_val", LAYA_MIL_FP16, "3", 0x01, 0x00, 0x00, 0x80, 0x66, 0x2e);
    add_parameter(&made, "output_dtype", LAYA_MIL_STRING, "", NULL, 0);
    made.strings[0] = "fp32";
    made.constants[1].strings = made.strings;
    made.constants[1].string_count = 1;
    EXPECT_BYTES(&made, 0, 0, 0x80, 0x33, 0, 0, 0, 0x80, 0, 0xc0, 0xcc, 0x3d);
}

static void add_small_palette(made_constant *made, laya_mil_opset opset, laya_mil_dtype dtype, const char *dims)
{
    begin_constant(made, opset, "constexpr_lut_to_dense", dtype, dims);
    static const unsigned char indices[] = {0x05}, lut[] = {7, 9};
    add_parameter(made, "indices", LAYA_MIL_UINT1, "4", indices, 1);
    add_parameter(made, "lut", LAYA_MIL_UINT8, "1,2,1", lut, 2);
}

static void test_constants_refused(void **state)
{
    (void)state;
    made_constant made;
    add_small_palette(&made, LAYA_MIL_COREML8, LAYA_MIL_UINT8, "4");
    EXPECT_BYTES(&made, 9, 7, 9, 7);
    add_small_palette(&made, LAYA_MIL_COREML8, LAYA_MIL_UINT8, "5");
    refuse_constant(&made, LAYA_ERROR_FORMAT, "declared as uint8 [5], expected uint8 [4]");
    add_small_palette(&made, LAYA_MIL_COREML8, LAYA_MIL_UINT8, "4");
    made.constants[0].bytes = NULL;
    refuse_constant(&made, LAYA_ERROR_FORMAT, "parameter 'indices': its bytes cannot be read");
    add_small_palette(&made, LAYA_MIL_COREML8, LAYA_MIL_UINT8, "4");
    made.constants[1].size = 1;
    refuse_constant(&made, LAYA_ERROR_FORMAT, "parameter 'lut': its bytes cannot be read");
    add_small_palette(&made, LAYA_MIL_COREML8, LAYA_MIL_UINT8, "4");
    made.op.input_count = 1;
    refuse_constant(&made, LAYA_ERROR_FORMAT, "'lut' is missing");
    add_small_palette(&made, LAYA_MIL_COREML5, LAYA_MIL_UINT8, "4");
    refuse_constant(&made, LAYA_ERROR_UNSUPPORTED, "cannot be expanded in CoreML5");
    add_small_palette(&made, LAYA_MIL_COREML8, LAYA_MIL_UINT8, "4");
    made.op.type = "constexpr_lut_to_sparse";
    refuse_constant(&made, LAYA_ERROR_UNSUPPORTED, "w (constexpr_lut_to_sparse)");
    /* one of the ones stands behind the last element */
    begin_constant(&made, LAYA_MIL_COREML7, "constexpr_sparse_to_dense", LAYA_MIL_INT8, "5");
    ADD_BYTES(&made, "nonzero_data", LAYA_MIL_INT8, "2", 1, 2);
    ADD_BYTES(&made, "mask", LAYA_MIL_UINT8, "1", 0x24);
    ADD_BYTES(&made, "shape", LAYA_MIL_UINT32, "1", 5, 0, 0, 0);
    refuse_constant(&made, LAYA_ERROR_FORMAT, "expected 1 values as 'mask' says, found 2");
}

static void test_constants_without_memory(void **state)
{
    (void)state;
    test_memory memory;
    made_constant made;
    unsigned char *bytes = NULL;
    uint64_t size;
    test_memory_init(&memory);
    test_memory_arm(&memory, 1);
    add_small_palette(&made, LAYA_MIL_COREML8, LAYA_MIL_UINT8, "4");
    assert_int_equal(laya_constexpr_expand(&made.op, made.opset, &memory.hooks, &bytes, &size, &made.error),
                     LAYA_ERROR_MEMORY);
    assert_true(memory.failed);
    assert_null(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_concat),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_slice_by_index),
        cmocka_unit_test(test_slices_out_of_range),
        cmocka_unit_test(test_tile),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gather_ranges),
        cmocka_unit_test(test_gather_stored),
        cmocka_unit_test(test_packed_palettes),
        cmocka_unit_test(test_grouped_palettes),
        cmocka_unit_test(test_affine),
        cmocka_unit_test(test_blockwise),
        cmocka_unit_test(test_sparse_and_cast),
        cmocka_unit_test(test_constants_refused),
        cmocka_unit_test(test_constants_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
