/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of the interpreter: literal results (conv: of numpy, by shifted slices of the padded input; strict sums: by
 * hand) and plain loops in float64 over random shapes, with every table of kernels that runs here and several numbers of
 * threads, which must give the same bits. Guard bands around every result, NaN in results before and in all scratch.
 */
#include "support.h"

#include "base/half.h"
#include "interpreter/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 32
#define GUARD_VALUE 12345.0f
#define MAX_PARAMETERS 9
#define MAX_LIST 8

static uint64_t seed = 1;

static uint32_t random_bits(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 32);
}

/* low .. high */
static int64_t random_in(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

/* Uniform in [-1, 1), with the 11 bits of fp16. */
static float random_half(void)
{
    float value = (float)((double)random_bits() / 2147483648.0 - 1);
    return laya_half_to_float(laya_float_to_half(value));
}

/* ------------------------------------------------------------------ steps */

/* A step made by hand: what the plan would make. */
typedef struct setup {
    laya_step step;
    laya_parameter_values parameters[MAX_PARAMETERS];
    laya_operand operands[MAX_PARAMETERS + 1];
    laya_array arrays[MAX_PARAMETERS + 1];
    laya_mil_constant constants[MAX_PARAMETERS + 1];
    const char *texts[MAX_PARAMETERS + 1];
    int32_t lists[MAX_PARAMETERS + 1][MAX_LIST];
    void *blocks[2 * MAX_PARAMETERS];
    size_t block_count, operand_count;
    laya_array output;
    laya_array *outputs[1];
} setup;

/* Zeroed memory that close_setup releases; a block of its own, so that sanitizers see what is read beyond it. */
static void *take(setup *s, uint64_t count, size_t size)
{
    laya_allocator hooks = laya_allocator_or_default(NULL);
    void *block = laya_alloc_zero(&hooks, (size_t)count, size);
    assert_non_null(block);
    assert_true(s->block_count < sizeof s->blocks / sizeof *s->blocks);
    return s->blocks[s->block_count++] = block;
}

static laya_mil_type make_type(laya_mil_dtype dtype, uint32_t rank, const int64_t *dims)
{
    laya_mil_type type = {.kind = LAYA_MIL_TENSOR, .dtype = dtype, .rank = rank};
    for (uint32_t axis = 0; axis < rank; axis++) type.dims[axis] = dims[axis];
    return type;
}

/* The next operand; an operand of the parameter before when that has the same name. */
static size_t add_operand(setup *s, const char *name, laya_mil_type type)
{
    size_t at = s->operand_count++;
    assert_true(at <= MAX_PARAMETERS);
    laya_array *array = &s->arrays[at];
    array->type = type;
    assert_true(laya_mil_type_count(&type, &array->count));
    s->operands[at] = (laya_operand){.array = array};
    laya_parameter_values *last = &s->parameters[s->step.parameter_count];
    if (s->step.parameter_count > 0 && strcmp(last[-1].name, name) == 0)
        last[-1].count++;
    else
        s->parameters[s->step.parameter_count++] = (laya_parameter_values){name, &s->operands[at], 1};
    return at;
}

static float *add_floats(setup *s, const char *name, laya_mil_type type)
{
    size_t at = add_operand(s, name, type);
    return s->arrays[at].values = take(s, s->arrays[at].count, sizeof(float));
}

static float *add_random(setup *s, const char *name, laya_mil_type type)
{
    float *values = add_floats(s, name, type);
    for (uint64_t i = 0; i < s->arrays[s->operand_count - 1].count; i++) values[i] = random_half();
    return values;
}

static int32_t *add_integers(setup *s, const char *name, laya_mil_type type)
{
    size_t at = add_operand(s, name, type);
    return s->arrays[at].integers = take(s, s->arrays[at].count, sizeof(int32_t));
}

static void add_list(setup *s, const char *name, uint32_t count, const int32_t *values)
{
    int32_t *list = add_integers(s, name, laya_mil_vector(LAYA_MIL_INT32, count));
    for (uint32_t i = 0; i < count; i++) list[i] = values[i];
}

static void add_scalar(setup *s, const char *name, laya_mil_dtype dtype, int32_t value)
{
    *add_integers(s, name, laya_mil_scalar(dtype)) = value;
}

static void add_text(setup *s, const char *name, const char *text)
{
    size_t at = add_operand(s, name, laya_mil_scalar(LAYA_MIL_STRING));
    s->texts[at] = text;
    s->constants[at] = (laya_mil_constant){.type = s->arrays[at].type, .strings = &s->texts[at], .string_count = 1};
    s->operands[at].constant = &s->constants[at];
}

/* Leave the last operand as a package stores it, at an odd address: its values are gone. */
static void store_last(setup *s)
{
    size_t at = s->operand_count - 1, count = (size_t)s->arrays[at].count;
    bool half = s->arrays[at].type.dtype == LAYA_MIL_FP16;
    unsigned char *bytes = take(s, count * (half ? 2 : 4) + 1, 1);
    bytes++;
    for (size_t i = 0; i < count; i++) {
        float value = s->arrays[at].values[i];
        uint32_t bits = half ? laya_float_to_half(value) : laya_bits_of_float(value);
        for (unsigned byte = 0; byte < (half ? 2u : 4u); byte++)
            bytes[i * (half ? 2 : 4) + byte] = (unsigned char)(bits >> (8 * byte));
    }
    s->constants[at] = (laya_mil_constant){.type = s->arrays[at].type, .bytes = bytes};
    s->operands[at].constant = &s->constants[at];
    s->arrays[at].values = NULL;
}

static void set_output(setup *s, laya_mil_type type)
{
    s->output = (laya_array){.type = type};
    assert_true(laya_mil_type_count(&type, &s->output.count));
    s->outputs[0] = &s->output;
    s->step.outputs = s->outputs;
    s->step.output_count = 1;
    s->step.parameters = s->parameters;
}

static void close_setup(setup *s)
{
    laya_allocator hooks = laya_allocator_or_default(NULL);
    for (size_t i = 0; i < s->block_count; i++) laya_release(&hooks, s->blocks[i]);
    memset(s, 0, sizeof *s);
}

static const laya_implementation *find_implementation(const char *type)
{
    const laya_implementation *found = laya_product_implementations;
    while (found->type && strcmp(found->type, type) != 0) found++;
    assert_non_null(found->type);
    return found;
}

/* Run with these kernels and threads; the caller frees the result. */
static void *run_once(setup *s, const char *type, const laya_kernels *kernels, unsigned threads, bool strict)
{
    const laya_implementation *implementation = find_implementation(type);
    size_t scratch = 0, shared = 0, count = (size_t)s->output.count;
    laya_run run = {.kernels = kernels, .strict = strict, .opset = LAYA_MIL_COREML8};
    assert_int_equal(laya_pool_open(threads, NULL, &run.pool, NULL), LAYA_OK);
    s->step.implementation = implementation;
    implementation->needs(&s->step, kernels, &scratch, &shared);
    run.scratch_size = scratch;
    run.scratch = malloc((scratch * threads + 1) * sizeof(float));
    run.shared = malloc((shared + 1) * sizeof(float));
    assert_true(run.scratch && run.shared);
    for (size_t i = 0; i < scratch * threads; i++) run.scratch[i] = NAN;
    float *all = malloc((count + 2 * GUARD) * sizeof *all), *result = malloc(count * sizeof *result);
    assert_true(all && result);
    for (size_t i = 0; i < count + 2 * GUARD; i++) all[i] = i < GUARD || i >= count + GUARD ? GUARD_VALUE : NAN;
    bool integers = s->output.type.dtype == LAYA_MIL_INT32;
    s->output.values = integers ? NULL : all + GUARD;
    s->output.integers = integers ? (int32_t *)(void *)(all + GUARD) : NULL;
    assert_int_equal(implementation->run(&run, &s->step, NULL), LAYA_OK);
    for (size_t i = 0; i < GUARD; i++) {
        assert_true(all[i] == GUARD_VALUE);
        assert_true(all[GUARD + count + i] == GUARD_VALUE);
    }
    memcpy(result, all + GUARD, count * sizeof *result);
    laya_pool_close(run.pool);
    free(run.scratch);
    free(run.shared);
    free(all);
    return result;
}

/* Every table of kernels: near `expected` by `slack` times `weights` (sums of magnitudes), the same bits for threads. */
static void check_near(setup *s, const char *type, const double *expected, const double *weights)
{
    static const unsigned threads[] = {2, 5};
    size_t index = 0, count = (size_t)s->output.count;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index));) {
        float *first = run_once(s, type, kernels, 1, false);
        for (size_t i = 0; i < count; i++) {
            double error = fabs((double)first[i] - expected[i]);
            if (!(error <= 1e-6 * weights[i] + 1e-7))
                fail_msg("%s, %s: element %zu is %.9g, expected %.9g", type, kernels->name, i, (double)first[i],
                         expected[i]);
        }
        for (size_t at = 0; at < sizeof threads / sizeof *threads; at++) {
            float *other = run_once(s, type, kernels, threads[at], false);
            assert_memory_equal(other, first, count * sizeof *first);
            free(other);
        }
        free(first);
    }
}

static void check_exact(setup *s, const char *type, bool strict, const float *expected)
{
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index));) {
        float *result = run_once(s, type, kernels, 2, strict);
        for (size_t i = 0; i < s->output.count; i++) {
            if (result[i] != expected[i])
                fail_msg("%s, %s: element %zu is %.9g, expected %.9g", type, kernels->name, i, (double)result[i],
                         (double)expected[i]);
        }
        free(result);
    }
}

static double *make_doubles(setup *s, uint64_t count)
{
    return take(s, count, sizeof(double));
}

/* ------------------------------------------------------------------ conv */

typedef struct conv_case {
    uint32_t rank;
    int64_t x[5], weight[5], out[5];
    int32_t strides[3], dilations[3], pad[6];
    const char *pad_type;
    int32_t groups;
    bool bias;
    float expected[32];
} conv_case;

static void set_conv(setup *s, const conv_case *c)
{
    add_list(s, "strides", c->rank - 2, c->strides);
    add_text(s, "pad_type", c->pad_type);
    add_list(s, "pad", 2 * (c->rank - 2), c->pad);
    add_list(s, "dilations", c->rank - 2, c->dilations);
    add_scalar(s, "groups", LAYA_MIL_INT32, c->groups);
    set_output(s, make_type(LAYA_MIL_FP16, c->rank, c->out));
}

/* x[i] = 7 i mod 11 - 5, weight[i] = 5 i mod 7 - 3, bias[i] = 10 i; results of numpy. */
static const conv_case conv_cases[] = {
    {4,
     {1, 2, 4, 5},
     {2, 2, 2, 3},
     {1, 2, 3, 3},
     {1, 2},
     {2, 1},
     {1, 0, 0, 2},
     "custom",
     1,
     true,
     {7, -17, -6, -11, 22, -11, -11, -11, -1, -9, 21, 16, 34, -24, 9, 32, 7, -7}},
    {4, {1, 1, 4, 5}, {1, 1, 2, 2}, {1, 1, 4, 5}, {1, 1}, {1, 1}, {0}, "same", 1, false, {11, -10, 24,  -19, -3,
                                                                                          27, -16, -4,  8,   -9,
                                                                                          -1, 11,  -10, 24,  -15,
                                                                                          -9, 17,  -12, -8,  12}},
    {4, {1, 1, 4, 5}, {1, 1, 2, 2}, {1, 1, 4, 5}, {1, 1}, {1, 1}, {0}, "same_lower", 1, false, {10,  -4,  4,   -10,
                                                                                                -2,  -4,  11,  -10,
                                                                                                24,  -19, -4,  27,
                                                                                                -16, -4,  8,   -4,
                                                                                                -1,  11,  -10, 24}},
    {4,
     {1, 1, 5, 6},
     {1, 1, 3, 3},
     {1, 1, 3, 3},
     {2, 2},
     {1, 1},
     {0},
     "same",
     1,
     false,
     {2, 13, 5, 1, -2, 10, 12, -18, 11}},
    {4, {2, 4, 2, 3}, {4, 2, 1, 2}, {2, 4, 2, 2}, {1, 1}, {1, 1}, {5, 5, 5, 5}, "valid", 2, true, {19, -2,  -11, 1,
                                                                                                   -7, 26,  26,  26,
                                                                                                   12, 33,  9,   30,
                                                                                                   26, 41,  27,  42,
                                                                                                   10, -11, 13,  -8,
                                                                                                   4,  26,  4,   26,
                                                                                                   21, 9,   18,  39,
                                                                                                   23, 27,  24,  50}},
    {3, {1, 2, 7}, {3, 2, 3}, {1, 3, 3}, {2}, {1}, {0}, "valid", 1, false, {10, 2, 5, 12, -24, 6, -7, 6, -14}},
    {5,
     {1, 1, 3, 2, 3},
     {1, 1, 2, 2, 2},
     {1, 1, 2, 1, 2},
     {1, 1, 1},
     {1, 1, 1},
     {0},
     "valid",
     1,
     false,
     {29, 8, 2, -8}},
    /* as many places as the input has, but not the same ones */
    {3, {1, 1, 3}, {1, 1, 1}, {1, 1, 3}, {2}, {1}, {0, 3}, "custom", 1, false, {15, 6, 0}},
};

static void test_conv_literals(void **unused)
{
    (void)unused;
    for (size_t at = 0; at < sizeof conv_cases / sizeof *conv_cases; at++) {
        const conv_case *c = &conv_cases[at];
        setup s = {0};
        float *x = add_floats(&s, "x", make_type(LAYA_MIL_FP16, c->rank, c->x));
        for (uint64_t i = 0; i < s.arrays[0].count; i++) x[i] = (float)(7 * i % 11) - 5;
        float *weight = add_floats(&s, "weight", make_type(LAYA_MIL_FP16, c->rank, c->weight));
        for (uint64_t i = 0; i < s.arrays[1].count; i++) weight[i] = (float)(5 * i % 7) - 3;
        if (at % 2) store_last(&s);
        if (c->bias) {
            float *bias = add_floats(&s, "bias", laya_mil_vector(LAYA_MIL_FP16, c->weight[0]));
            for (int64_t i = 0; i < c->weight[0]; i++) bias[i] = (float)(10 * i);
        }
        set_conv(&s, c);
        check_exact(&s, "conv", false, c->expected);
        check_exact(&s, "conv", true, c->expected);
        close_setup(&s);
    }
}

/* Everything that a package may leave out is left out. */
static void test_conv_defaults(void **unused)
{
    (void)unused;
    const int64_t x_dims[] = {1, 1, 1, 3}, weight_dims[] = {1, 1, 1, 2}, out_dims[] = {1, 1, 1, 2};
    const float expected[] = {21, 32};
    setup s = {0};
    float *x = add_floats(&s, "x", make_type(LAYA_MIL_FP32, 4, x_dims));
    float *weight = add_floats(&s, "weight", make_type(LAYA_MIL_FP32, 4, weight_dims));
    for (int i = 0; i < 3; i++) x[i] = (float)(i + 1);
    weight[0] = 1;
    weight[1] = 10;
    set_output(&s, make_type(LAYA_MIL_FP32, 4, out_dims));
    check_exact(&s, "conv", false, expected);
    close_setup(&s);
}

/* A kernel of one place over [n, in, 1, places] by plain loops. */
static void check_pointwise(int64_t n, int64_t made, int64_t read, int64_t places, int64_t groups, int stored)
{
    const int64_t x_dims[] = {n, read * groups, 1, places}, weight_dims[] = {made * groups, read, 1, 1};
    const int64_t out_dims[] = {n, made * groups, 1, places};
    setup s = {0};
    const float *x = add_random(&s, "x", make_type(LAYA_MIL_FP16, 4, x_dims));
    const float *weight = add_random(&s, "weight",
                                     make_type(stored == 2 ? LAYA_MIL_FP32 : LAYA_MIL_FP16, 4, weight_dims));
    if (stored) store_last(&s);
    const float *bias = add_random(&s, "bias", laya_mil_vector(LAYA_MIL_FP16, made * groups));
    add_scalar(&s, "groups", LAYA_MIL_INT32, (int32_t)groups);
    set_output(&s, make_type(LAYA_MIL_FP16, 4, out_dims));
    double *expected = make_doubles(&s, s.output.count), *weights = make_doubles(&s, s.output.count);
    size_t at = 0;
    for (int64_t b = 0; b < n; b++) {
        for (int64_t c = 0; c < made * groups; c++) {
            const float *row = weight + c * read;
            for (int64_t p = 0; p < places; p++, at++) {
                const float *column = x + (b * groups + c / made) * read * places + p;
                expected[at] = (double)bias[c];
                for (int64_t k = 0; k < read; k++) {
                    expected[at] += (double)row[k] * (double)column[k * places];
                    weights[at] += fabs((double)row[k] * (double)column[k * places]);
                }
            }
        }
    }
    check_near(&s, "conv", expected, weights);
    close_setup(&s);
}

static void test_conv_pointwise(void **unused)
{
    (void)unused;
    check_pointwise(1, 250, 300, 70, 1, 1); /* large enough for several threads; every tail */
    check_pointwise(1, 30, 600, 260, 1, 2);
    check_pointwise(2, 97, 257, 33, 1, 0);
    for (int round = 0; round < 30; round++) {
        check_pointwise(random_in(1, 2), random_in(1, 30), random_in(1, 40), random_in(1, 40), random_in(1, 3),
                        round % 3);
    }
}

static double conv_element(const conv_case *c, const float *x, const float *weight, const int64_t at[4],
                           const int64_t before[2], double *magnitude)
{
    double sum = 0;
    int64_t read = c->weight[1], group = at[1] / (c->weight[0] / c->groups);
    for (int64_t k = 0; k < read; k++) {
        for (int64_t i = 0; i < c->weight[2]; i++) {
            for (int64_t j = 0; j < c->weight[3]; j++) {
                int64_t row = at[2] * c->strides[0] + i * c->dilations[0] - before[0];
                int64_t col = at[3] * c->strides[1] + j * c->dilations[1] - before[1];
                if (row < 0 || row >= c->x[2] || col < 0 || col >= c->x[3]) continue;
                double product = (double)weight[((at[1] * read + k) * c->weight[2] + i) * c->weight[3] + j] *
                                 (double)x[((at[0] * c->x[1] + group * read + k) * c->x[2] + row) * c->x[3] + col];
                sum += product;
                *magnitude += fabs(product);
            }
        }
    }
    return sum;
}

/* Random kernels, strides, dilations, groups and custom pads. */
static void check_random_conv(void)
{
    conv_case c = {.rank = 4, .pad_type = "custom", .groups = (int32_t)random_in(1, 3)};
    c.weight[0] = c.groups * random_in(1, 9);
    c.weight[1] = random_in(1, 5);
    c.x[0] = random_in(1, 2);
    c.x[1] = c.groups * c.weight[1];
    for (int axis = 0; axis < 2; axis++) {
        c.weight[2 + axis] = random_in(1, 4);
        c.strides[axis] = (int32_t)random_in(1, 3);
        c.dilations[axis] = (int32_t)random_in(1, 3);
        c.pad[2 * axis] = (int32_t)random_in(0, 3);
        c.pad[2 * axis + 1] = (int32_t)random_in(0, 3);
        int64_t reach = (c.weight[2 + axis] - 1) * c.dilations[axis] + 1;
        c.x[2 + axis] = reach + random_in(0, 9);
        c.out[2 + axis] = (c.x[2 + axis] + c.pad[2 * axis] + c.pad[2 * axis + 1] - reach) / c.strides[axis] + 1;
    }
    c.out[0] = c.x[0];
    c.out[1] = c.weight[0];
    setup s = {0};
    const float *x = add_random(&s, "x", make_type(LAYA_MIL_FP16, 4, c.x));
    const float *weight = add_random(&s, "weight", make_type(LAYA_MIL_FP16, 4, c.weight));
    store_last(&s);
    set_conv(&s, &c);
    double *expected = make_doubles(&s, s.output.count), *weights = make_doubles(&s, s.output.count);
    const int64_t before[2] = {c.pad[0], c.pad[2]};
    for (int64_t at = 0; at < (int64_t)s.output.count; at++) {
        int64_t plane = c.out[2] * c.out[3];
        const int64_t place[4] = {at / plane / c.out[1], at / plane % c.out[1], at % plane / c.out[3], at % c.out[3]};
        expected[at] = conv_element(&c, x, weight, place, before, &weights[at]);
    }
    check_near(&s, "conv", expected, weights);
    close_setup(&s);
}

static void test_conv_random(void **unused)
{
    (void)unused;
    for (int round = 0; round < 60; round++) check_random_conv();
}

/* ------------------------------------------------------------------ einsum */

/* Rank 4, or rank 3 without n; x and y have batch dimensions n and h of their own, 1 or that of the output. */
static void check_einsum(uint32_t rank, const int64_t n[2], const int64_t h[2], int64_t c, int64_t w, int64_t u)
{
    const int64_t x_dims[] = {n[0], c, h[0], w}, y_dims[] = {n[1], w, h[1], u};
    const int64_t out_dims[] = {n[0] > n[1] ? n[0] : n[1], c, h[0] > h[1] ? h[0] : h[1], u};
    uint32_t skip = 4 - rank;
    setup s = {0};
    const float *x = add_random(&s, "values", make_type(LAYA_MIL_FP16, rank, x_dims + skip));
    const float *y = add_random(&s, "values", make_type(LAYA_MIL_FP16, rank, y_dims + skip));
    add_text(&s, "equation", rank == 4 ? "nchw,nwhu->nchu" : "chw,whu->chu");
    set_output(&s, make_type(LAYA_MIL_FP16, rank, out_dims + skip));
    double *expected = make_doubles(&s, s.output.count), *weights = make_doubles(&s, s.output.count);
    for (int64_t at = 0; at < (int64_t)s.output.count; at++) {
        int64_t col = at % u, high = at / u % out_dims[2], row = at / u / out_dims[2] % c,
                b = at / u / out_dims[2] / c;
        int64_t xb = n[0] == 1 ? 0 : b, yb = n[1] == 1 ? 0 : b, xh = h[0] == 1 ? 0 : high, yh = h[1] == 1 ? 0 : high;
        for (int64_t k = 0; k < w; k++) {
            double product = (double)x[((xb * c + row) * h[0] + xh) * w + k] *
                             (double)y[((yb * w + k) * h[1] + yh) * u + col];
            expected[at] += product;
            weights[at] += fabs(product);
        }
    }
    check_near(&s, "einsum", expected, weights);
    close_setup(&s);
}

static void test_einsum(void **unused)
{
    (void)unused;
    const int64_t one[2] = {1, 1}, three[2] = {3, 3}, left[2] = {3, 1}, right[2] = {1, 3}, many[2] = {12, 12};
    check_einsum(4, one, one, 96, 64, 96);
    check_einsum(4, one, many, 50, 33, 70); /* large enough for several threads */
    check_einsum(4, three, three, 5, 7, 9);
    check_einsum(4, left, right, 13, 300, 17);
    check_einsum(4, right, left, 13, 5, 17);
    check_einsum(4, one, right, 4, 3, 1);
    check_einsum(3, one, three, 6, 20, 16);
    check_einsum(3, one, left, 7, 2, 31);
    check_einsum(3, one, right, 1, 1, 1);
}

/* By hand: out[0, c, h, u] = sum over w of x[0, c, h, w] y[0, w, h, u]. */
static void test_einsum_literal(void **unused)
{
    (void)unused;
    const int64_t x_dims[] = {1, 2, 2, 2}, y_dims[] = {1, 2, 2, 1}, out_dims[] = {1, 2, 2, 1};
    const float x_values[] = {1, 2, 3, 4, 5, 6, 7, 8}, y_values[] = {1, 10, 100, 1000};
    const float expected[] = {201, 4030, 605, 8070};
    setup s = {0};
    memcpy(add_floats(&s, "values", make_type(LAYA_MIL_FP32, 4, x_dims)), x_values, sizeof x_values);
    memcpy(add_floats(&s, "values", make_type(LAYA_MIL_FP32, 4, y_dims)), y_values, sizeof y_values);
    add_text(&s, "equation", "abcd,adce->abce");
    set_output(&s, make_type(LAYA_MIL_FP32, 4, out_dims));
    check_exact(&s, "einsum", false, expected);
    close_setup(&s);
}

/* ------------------------------------------------------------------ matmul, linear */

typedef struct matmul_case {
    uint32_t x_rank, y_rank, out_rank;
    int64_t x[5], y[5], out[5]; /* as stored */
    bool turn_x, turn_y, stored;
} matmul_case;

static const matmul_case matmul_cases[] = {
    {2, 2, 2, {5, 7}, {7, 19}, {5, 19}, false, false, false},
    {2, 2, 2, {7, 5}, {7, 19}, {5, 19}, true, false, true},
    {2, 2, 2, {5, 7}, {19, 7}, {5, 19}, false, true, true},
    {2, 2, 2, {300, 101}, {40, 300}, {101, 40}, true, true, false},
    {1, 2, 1, {7}, {7, 19}, {19}, false, false, false},
    {2, 1, 1, {5, 7}, {7}, {5}, false, false, true},
    {1, 1, 0, {270}, {270}, {0}, false, false, false},
    {3, 2, 3, {4, 30, 65}, {65, 33}, {4, 30, 33}, false, false, true},
    {3, 2, 3, {4, 65, 30}, {65, 33}, {4, 30, 33}, true, false, false},
    {2, 3, 3, {5, 7}, {3, 7, 19}, {3, 5, 19}, false, false, false},
    {4, 4, 4, {2, 1, 9, 8}, {1, 3, 8, 17}, {2, 3, 9, 17}, false, false, true},
    {4, 3, 4, {2, 3, 9, 8}, {3, 17, 8}, {2, 3, 9, 17}, false, true, false},
    {5, 1, 4, {2, 1, 3, 9, 8}, {8}, {2, 1, 3, 9}, false, false, false},
    {1, 4, 3, {8}, {2, 3, 8, 9}, {2, 3, 9}, false, false, false},
    {3, 3, 3, {12, 64, 96}, {12, 64, 70}, {12, 96, 70}, true, false, false},
};

/* The flat index of row i and column k in the matrix of batch index `batch` of the output. */
static int64_t matmul_index(const matmul_case *c, bool is_x, int64_t batch, int64_t i, int64_t k)
{
    uint32_t rank = is_x ? c->x_rank : c->y_rank;
    const int64_t *dims = is_x ? c->x : c->y;
    uint32_t out_batch = c->out_rank - (c->x_rank > 1) - (c->y_rank > 1), own = rank > 1 ? rank - 2 : 0;
    int64_t flat = 0, stride = 1, rest = batch;
    for (uint32_t back = 0; back < own; back++) {
        int64_t size = dims[own - 1 - back], at = rest % c->out[out_batch - 1 - back];
        flat += (size == 1 ? 0 : at) * stride;
        stride *= size;
        rest /= c->out[out_batch - 1 - back];
    }
    if (rank == 1) return is_x ? k : i;
    bool turned = is_x ? c->turn_x : c->turn_y;
    int64_t row = turned ? k : i, col = turned ? i : k;
    return flat * dims[own] * dims[own + 1] + row * dims[own + 1] + col;
}

static int64_t matmul_size(const matmul_case *c, bool is_x, bool last)
{
    uint32_t rank = is_x ? c->x_rank : c->y_rank;
    const int64_t *dims = is_x ? c->x : c->y;
    if (rank == 1) return is_x == last ? dims[0] : 1;
    return dims[rank - 1 - (last == (is_x ? c->turn_x : c->turn_y))];
}

static void set_matmul(setup *s, const matmul_case *c, laya_mil_dtype dtype)
{
    add_scalar(s, "transpose_x", LAYA_MIL_BOOL, c->turn_x);
    add_scalar(s, "transpose_y", LAYA_MIL_BOOL, c->turn_y);
    set_output(s, make_type(dtype, c->out_rank, c->out));
}

static void test_matmul(void **unused)
{
    (void)unused;
    for (size_t at = 0; at < sizeof matmul_cases / sizeof *matmul_cases; at++) {
        const matmul_case *c = &matmul_cases[at];
        setup s = {0};
        const float *x = add_random(&s, "x", make_type(LAYA_MIL_FP16, c->x_rank, c->x));
        const float *y = add_random(&s, "y", make_type(LAYA_MIL_FP16, c->y_rank, c->y));
        if (c->stored) store_last(&s);
        set_matmul(&s, c, LAYA_MIL_FP16);
        int64_t rows = matmul_size(c, true, false), depth = matmul_size(c, true, true);
        int64_t cols = matmul_size(c, false, true);
        double *expected = make_doubles(&s, s.output.count), *weights = make_doubles(&s, s.output.count);
        for (int64_t e = 0; e < (int64_t)s.output.count; e++) {
            int64_t j = e % cols, i = e / cols % rows, batch = e / cols / rows;
            for (int64_t k = 0; k < depth; k++) {
                double product = (double)x[matmul_index(c, true, batch, i, k)] *
                                 (double)y[matmul_index(c, false, batch, k, j)];
                expected[e] += product;
                weights[e] += fabs(product);
            }
        }
        check_near(&s, "matmul", expected, weights);
        close_setup(&s);
    }
}

static void test_integers(void **unused)
{
    (void)unused;
    const int64_t dims[] = {2, 2}, x_dims[] = {1, 2};
    const int32_t left[] = {1, 2, 3, 4}, right[] = {10, 20, 2147483647, -5};
    /* [1 2; 3 4]^T [10 20; 2147483647 -5], modulo 2^32 */
    setup s = {0};
    memcpy(add_integers(&s, "x", make_type(LAYA_MIL_INT32, 2, dims)), left, sizeof left);
    memcpy(add_integers(&s, "y", make_type(LAYA_MIL_INT32, 2, dims)), right, sizeof right);
    add_scalar(&s, "transpose_x", LAYA_MIL_BOOL, 1);
    set_output(&s, make_type(LAYA_MIL_INT32, 2, dims));
    int32_t *result = run_once(&s, "matmul", &laya_kernels_portable, 1, false);
    assert_int_equal(result[0], -2147483641); /* 10 + 3 * 2147483647 = 6442450951 = 2^33 - 2147483641 */
    assert_int_equal(result[1], 5);           /* 20 - 15 */
    assert_int_equal(result[2], 16);          /* 20 + 4 * 2147483647 = 8589934608 = 2^33 + 16 */
    assert_int_equal(result[3], 20);          /* 40 - 20 */
    free(result);
    close_setup(&s);

    memcpy(add_integers(&s, "x", make_type(LAYA_MIL_INT32, 2, x_dims)), left, 2 * sizeof *left);
    memcpy(add_integers(&s, "weight", make_type(LAYA_MIL_INT32, 2, dims)), left, sizeof left);
    add_list(&s, "bias", 2, (const int32_t[]){100, -100});
    set_output(&s, make_type(LAYA_MIL_INT32, 2, x_dims));
    result = run_once(&s, "linear", &laya_kernels_portable, 1, false);
    assert_int_equal(result[0], 105);
    assert_int_equal(result[1], -89);
    free(result);
    close_setup(&s);
}

static void check_linear(uint32_t rank, const int64_t *x_dims, int64_t made, laya_mil_dtype dtype, bool stored)
{
    int64_t read = x_dims[rank - 1], out_dims[3] = {0};
    const int64_t weight_dims[] = {made, read};
    setup s = {0};
    const float *x = add_random(&s, "x", make_type(LAYA_MIL_FP16, rank, x_dims));
    const float *weight = add_random(&s, "weight", make_type(dtype, 2, weight_dims));
    if (stored) store_last(&s);
    const float *bias = add_random(&s, "bias", laya_mil_vector(dtype, made));
    for (uint32_t axis = 0; axis + 1 < rank; axis++) out_dims[axis] = x_dims[axis];
    out_dims[rank - 1] = made;
    set_output(&s, make_type(LAYA_MIL_FP16, rank, out_dims));
    double *expected = make_doubles(&s, s.output.count), *weights = make_doubles(&s, s.output.count);
    for (int64_t e = 0; e < (int64_t)s.output.count; e++) {
        expected[e] = (double)bias[e % made];
        for (int64_t k = 0; k < read; k++) {
            double product = (double)x[e / made * read + k] * (double)weight[e % made * read + k];
            expected[e] += product;
            weights[e] += fabs(product);
        }
    }
    check_near(&s, "linear", expected, weights);
    close_setup(&s);
}

static void test_linear(void **unused)
{
    (void)unused;
    check_linear(1, (const int64_t[]){33}, 50, LAYA_MIL_FP16, true);
    check_linear(2, (const int64_t[]){7, 300}, 20, LAYA_MIL_FP32, true);
    check_linear(3, (const int64_t[]){2, 50, 128}, 130, LAYA_MIL_FP16, true); /* for several threads */
    check_linear(3, (const int64_t[]){2, 3, 5}, 1, LAYA_MIL_FP32, false);
}

/* ------------------------------------------------------------------ attention */

typedef enum mask_kind { NO_MASK, FLOAT_MASK, BOOL_MASK } mask_kind;

typedef struct attention_case {
    uint32_t rank, mask_rank;
    int64_t batch[2]; /* of ranks 3 and 4 */
    int64_t queries, keys, size, made;
    mask_kind kind;
    int64_t mask[4];
} attention_case;

static const attention_case attention_cases[] = {
    {3, 0, {1}, 5, 7, 4, 3, NO_MASK, {0}},
    {4, 2, {2, 3}, 50, 70, 16, 17, FLOAT_MASK, {50, 70}},
    {4, 4, {2, 3}, 9, 11, 8, 8, FLOAT_MASK, {2, 1, 1, 11}},
    {4, 3, {2, 3}, 9, 11, 8, 8, BOOL_MASK, {3, 9, 11}},
    {3, 2, {4}, 97, 33, 64, 16, BOOL_MASK, {1, 33}},
    {3, 1, {2}, 1, 300, 2, 300, FLOAT_MASK, {300}},
};

/* Element of the mask at (batch, query, key): what is added to the score. */
static double mask_element(const attention_case *c, const setup *s, int64_t batch, int64_t query, int64_t key)
{
    const laya_array *mask = &s->arrays[3];
    int64_t first = c->rank == 4 ? batch / c->batch[1] : 0, flat = 0;
    const int64_t place[4] = {first, c->rank == 4 ? batch % c->batch[1] : batch, query, key};
    for (uint32_t axis = 0; axis < c->mask_rank; axis++) {
        int64_t at = place[4 - c->mask_rank + axis];
        flat = flat * c->mask[axis] + (c->mask[axis] == 1 ? 0 : at);
    }
    if (mask->values) return (double)mask->values[flat];
    return mask->integers[flat] ? 0 : -INFINITY;
}

static void attend_row(const attention_case *c, const setup *s, int64_t batch, int64_t query, double *out)
{
    const float *q = s->arrays[0].values + (batch * c->queries + query) * c->size;
    const float *keys = s->arrays[1].values + batch * c->keys * c->size;
    const float *values = s->arrays[2].values + batch * c->keys * c->made;
    double scores[512], top = -INFINITY, sum = 0;
    for (int64_t key = 0; key < c->keys; key++) {
        scores[key] = 0;
        for (int64_t e = 0; e < c->size; e++) scores[key] += (double)q[e] * (double)keys[key * c->size + e];
        scores[key] /= sqrt((double)c->size);
        if (c->kind != NO_MASK) scores[key] += mask_element(c, s, batch, query, key);
        top = scores[key] > top ? scores[key] : top;
    }
    for (int64_t key = 0; key < c->keys; key++) sum += scores[key] = exp(scores[key] - top);
    for (int64_t e = 0; e < c->made; e++) {
        out[e] = 0;
        for (int64_t key = 0; key < c->keys; key++) out[e] += scores[key] / sum * (double)values[key * c->made + e];
    }
}

static void set_attention(setup *s, const attention_case *c)
{
    uint32_t batch_rank = c->rank - 2;
    int64_t dims[4] = {0};
    memcpy(dims, c->batch, batch_rank * sizeof *dims);
    const int64_t sizes[3][2] = {{c->queries, c->size}, {c->keys, c->size}, {c->keys, c->made}};
    static const char *const names[] = {"query", "key", "value"};
    for (int at = 0; at < 3; at++) {
        memcpy(dims + batch_rank, sizes[at], sizeof sizes[at]);
        add_random(s, names[at], make_type(LAYA_MIL_FP16, c->rank, dims));
    }
    if (c->kind == FLOAT_MASK) add_random(s, "attn_mask", make_type(LAYA_MIL_FP16, c->mask_rank, c->mask));
    if (c->kind == BOOL_MASK) {
        int32_t *mask = add_integers(s, "attn_mask", make_type(LAYA_MIL_BOOL, c->mask_rank, c->mask));
        for (uint64_t i = 0; i < s->arrays[3].count; i++) mask[i] = i % 5 == 0 || random_bits() % 2;
    }
    dims[batch_rank] = c->queries;
    set_output(s, make_type(LAYA_MIL_FP16, c->rank, dims));
}

static void test_attention(void **unused)
{
    (void)unused;
    for (size_t at = 0; at < sizeof attention_cases / sizeof *attention_cases; at++) {
        const attention_case *c = &attention_cases[at];
        setup s = {0};
        set_attention(&s, c);
        double *expected = make_doubles(&s, s.output.count), *weights = make_doubles(&s, s.output.count);
        int64_t rows = (int64_t)s.output.count / c->made;
        for (int64_t row = 0; row < rows; row++)
            attend_row(c, &s, row / c->queries, row % c->queries, expected + row * c->made);
        for (uint64_t i = 0; i < s.output.count; i++) weights[i] = 1;
        check_near(&s, "scaled_dot_product_attention", expected, weights);
        close_setup(&s);
    }
}

/* A query that may see no key: minus infinity everywhere, which the formula makes NaN. Others are as before. */
static void test_attention_hidden_row(void **unused)
{
    (void)unused;
    const attention_case c = {3, 2, {1}, 2, 19, 4, 2, BOOL_MASK, {2, 19}};
    setup s = {0};
    set_attention(&s, &c);
    for (int i = 0; i < 2 * 19; i++) s.arrays[3].integers[i] = i == 3;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index));) {
        float *result = run_once(&s, "scaled_dot_product_attention", kernels, 1, false);
        assert_true(result[0] == s.arrays[2].values[6] && result[1] == s.arrays[2].values[7]);
        assert_true(isnan(result[2]) && isnan(result[3]));
        free(result);
    }
    close_setup(&s);
}

/* ------------------------------------------------------------------ strict sums */

/* fp16 has 11 bits: 2048 + 1 is a tie and stays 2048; 1 + 1 comes first or last. Beyond a block of k nothing changes. */
static void check_strict(size_t depth, size_t large, laya_mil_dtype dtype, float strict, float loose)
{
    const int64_t x_dims[] = {1, (int64_t)depth, 1, 1}, weight_dims[] = {1, (int64_t)depth, 1, 1};
    const int64_t out_dims[] = {1, 1, 1, 1};
    setup s = {0};
    float *x = add_floats(&s, "x", make_type(dtype, 4, x_dims));
    float *weight = add_floats(&s, "weight", make_type(dtype, 4, weight_dims));
    for (size_t k = 0; k < depth; k++) {
        x[k] = 1;
        weight[k] = k == large ? 2048 : 1;
    }
    set_output(&s, make_type(dtype, 4, out_dims));
    check_exact(&s, "conv", true, &strict);
    check_exact(&s, "conv", false, &loose);
    close_setup(&s);
}

static void test_strict_sums(void **unused)
{
    (void)unused;
    check_strict(3, 0, LAYA_MIL_FP16, 2048, 2050);
    check_strict(3, 1, LAYA_MIL_FP16, 2048, 2050); /* 1 + 2048 is the tie, then 2048 + 1 */
    check_strict(3, 2, LAYA_MIL_FP16, 2050, 2050); /* 2 + 2048 is exact */
    check_strict(600, 0, LAYA_MIL_FP16, 2048, 2647);
    check_strict(3, 0, LAYA_MIL_FP32, 2050, 2050); /* not an fp16 sum */
}

/* The same sum in the other operations. */
static void test_strict_operations(void **unused)
{
    (void)unused;
    const int64_t row[] = {1, 3}, column[] = {3, 1}, one[] = {1, 1}, row3[] = {1, 1, 3}, column3[] = {3, 1, 1};
    const int64_t one3[] = {1, 1, 1};
    const float ones[] = {1, 1, 1}, sum[] = {2048, 1, 1}, strict = 2048, loose = 2050;
    setup s = {0};
    memcpy(add_floats(&s, "values", make_type(LAYA_MIL_FP16, 3, row3)), sum, sizeof sum);
    memcpy(add_floats(&s, "values", make_type(LAYA_MIL_FP16, 3, column3)), ones, sizeof ones);
    set_output(&s, make_type(LAYA_MIL_FP16, 3, one3));
    check_exact(&s, "einsum", true, &strict);
    check_exact(&s, "einsum", false, &loose);
    close_setup(&s);
    memcpy(add_floats(&s, "x", make_type(LAYA_MIL_FP16, 2, row)), ones, sizeof ones);
    memcpy(add_floats(&s, "y", make_type(LAYA_MIL_FP16, 2, column)), sum, sizeof sum);
    store_last(&s);
    set_output(&s, make_type(LAYA_MIL_FP16, 2, one));
    check_exact(&s, "matmul", true, &strict);
    check_exact(&s, "matmul", false, &loose);
    close_setup(&s);
    /* 1025 * 1025 = 1050625 is exact in fp32, infinite once it is added in fp16. */
    const float wide[] = {1025, 0, 0}, infinite = INFINITY, exact = 1050625;
    memcpy(add_floats(&s, "x", make_type(LAYA_MIL_FP16, 2, row)), wide, sizeof wide);
    memcpy(add_floats(&s, "weight", make_type(LAYA_MIL_FP16, 2, row)), wide, sizeof wide);
    set_output(&s, make_type(LAYA_MIL_FP16, 2, one));
    check_exact(&s, "linear", true, &infinite);
    check_exact(&s, "linear", false, &exact);
    close_setup(&s);
}

/* Two keys of equal scores: 0.5 * 4096 + 0.5 * 2 is 2049, a tie that stays 2048 in fp16. */
static void test_strict_attention(void **unused)
{
    (void)unused;
    const int64_t query[] = {1, 1, 1}, keys[] = {1, 2, 1};
    const float strict = 2048, loose = 2049;
    setup s = {0};
    *add_floats(&s, "query", make_type(LAYA_MIL_FP16, 3, query)) = 1;
    memcpy(add_floats(&s, "key", make_type(LAYA_MIL_FP16, 3, keys)), (const float[]){3, 3}, 2 * sizeof(float));
    memcpy(add_floats(&s, "value", make_type(LAYA_MIL_FP16, 3, keys)), (const float[]){4096, 2}, 2 * sizeof(float));
    set_output(&s, make_type(LAYA_MIL_FP16, 3, query));
    check_exact(&s, "scaled_dot_product_attention", true, &strict);
    check_exact(&s, "scaled_dot_product_attention", false, &loose);
    close_setup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_literals),
        cmocka_unit_test(test_conv_defaults),
        cmocka_unit_test(test_conv_pointwise),
        cmocka_unit_test(test_conv_random),
        cmocka_unit_test(test_einsum),
        cmocka_unit_test(test_einsum_literal),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_hidden_row),
        cmocka_unit_test(test_strict_sums),
        cmocka_unit_test(test_strict_operations),
        cmocka_unit_test(test_strict_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
