/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element: broadcasting, and the table of operations. */
#include "interpreter/elementwise.h"

#include "base/half.h"

#include <string.h>

/* Elements that are computed aside where the output lies in the memory of an input. */
#define ASIDE 256

/* ------------------------------------------------------------------ broadcasting */

/*
 * The output as rows of `count` elements. Axes of one element are left out; neighbours that every operand runs through
 * in one go, or not at all, are joined. Axes are numbered from the last one, the row itself is not among them.
 */
typedef struct layout {
    uint32_t rank;
    size_t dims[LAYA_MIL_MAX_RANK];
    size_t strides[LAYA_ROW_OPERANDS][LAYA_MIL_MAX_RANK];
} layout;

typedef struct elementwise {
    layout rows;
    laya_row row; /* of the whole output: count of the joined axis that is a row, pointers to the first elements */
    laya_row_function function;
    uint32_t operands;
    bool aside;
} elementwise;

static void add_axis(layout *all, uint32_t operands, size_t size, const size_t *strides)
{
    bool joins = all->rank > 0;
    for (uint32_t at = 0; joins && at < operands; at++)
        joins = strides[at] == all->strides[at][all->rank - 1] * all->dims[all->rank - 1];
    if (joins) {
        all->dims[all->rank - 1] *= size;
        return;
    }
    all->dims[all->rank] = size;
    for (uint32_t at = 0; at < operands; at++) all->strides[at][all->rank] = strides[at];
    all->rank++;
}

static void lay_out(const laya_mil_type *out, const laya_array *const *inputs, uint32_t operands, layout *all)
{
    size_t running[LAYA_ROW_OPERANDS] = {1, 1, 1};
    all->rank = 0;
    for (uint32_t axis = 0; axis < out->rank; axis++) { /* from the last one */
        size_t size = (size_t)out->dims[out->rank - 1 - axis], strides[LAYA_ROW_OPERANDS];
        for (uint32_t at = 0; at < operands; at++) {
            const laya_mil_type *type = &inputs[at]->type;
            size_t own = axis < type->rank ? (size_t)type->dims[type->rank - 1 - axis] : 1;
            strides[at] = own == 1 ? 0 : running[at];
            running[at] *= own;
        }
        if (size > 1) add_axis(all, operands, size, strides);
    }
}

/* The first axis becomes the row. */
static void take_row(elementwise *all)
{
    layout *rows = &all->rows;
    all->row.count = rows->rank > 0 ? rows->dims[0] : 1;
    for (uint32_t at = 0; at < all->operands; at++) all->row.step[at] = rows->rank > 0 ? rows->strides[at][0] : 0;
    if (rows->rank == 0) return;
    rows->rank--;
    memmove(rows->dims, rows->dims + 1, rows->rank * sizeof *rows->dims);
    for (uint32_t at = 0; at < all->operands; at++)
        memmove(rows->strides[at], rows->strides[at] + 1, rows->rank * sizeof *rows->strides[at]);
}

/* Four bytes each, whatever the type. */
static const void *element(const void *base, size_t index)
{
    return (const unsigned char *)base + index * sizeof(float);
}

/* `out` lies in the memory of an operand. */
static void run_aside(const elementwise *all, laya_row row, unsigned char *out)
{
    float aside[ASIDE];
    size_t left = row.count;
    row.out = aside;
    while (left > 0) {
        row.count = left < ASIDE ? left : ASIDE;
        all->function(&row);
        memcpy(out, aside, row.count * sizeof *aside);
        for (uint32_t at = 0; at < all->operands; at++) row.in[at] = element(row.in[at], row.count * row.step[at]);
        out += row.count * sizeof *aside;
        left -= row.count;
    }
}

/* Elements begin .. end - 1 of the output. */
static void run_range(const void *argument, size_t begin, size_t end)
{
    const elementwise *all = argument;
    while (begin < end) {
        laya_row row = all->row;
        size_t index = begin / all->row.count, column = begin % all->row.count;
        size_t offsets[LAYA_ROW_OPERANDS];
        for (uint32_t at = 0; at < all->operands; at++) offsets[at] = column * row.step[at];
        for (uint32_t axis = 0; axis < all->rows.rank; axis++) {
            size_t place = index % all->rows.dims[axis];
            index /= all->rows.dims[axis];
            for (uint32_t at = 0; at < all->operands; at++) offsets[at] += place * all->rows.strides[at][axis];
        }
        for (uint32_t at = 0; at < all->operands; at++) row.in[at] = element(row.in[at], offsets[at]);
        row.count = all->row.count - column < end - begin ? all->row.count - column : end - begin;
        unsigned char *out = (unsigned char *)all->row.out + begin * sizeof(float);
        begin += row.count;
        if (all->aside) {
            run_aside(all, row, out);
        } else {
            row.out = out;
            all->function(&row);
        }
    }
}

static const void *memory_of(const laya_array *array)
{
    return array->values ? (const void *)array->values : array->integers;
}

/* Compute the first output from the operands of these names, ended by NULL, which are broadcast to it. */
static void run_elementwise(const laya_run *run, const laya_step *step, const char *const *names,
                            laya_row_function function, float a, float b)
{
    const laya_array *inputs[LAYA_ROW_OPERANDS] = {NULL}, *out = step->outputs[0];
    elementwise all = {.function = function};
    all.row.a = a;
    all.row.b = b;
    all.row.kernels = run->kernels;
    all.row.out = out->values ? (void *)out->values : out->integers;
    for (uint32_t at = 0; at < LAYA_ROW_OPERANDS && names[at]; at++) {
        all.operands++;
        inputs[at] = laya_step_operand(step, names[at])->array;
        all.row.in[at] = memory_of(inputs[at]);
        all.aside = all.aside || all.row.in[at] == all.row.out;
    }
    lay_out(&out->type, inputs, all.operands, &all.rows);
    take_row(&all);
    laya_run_ranges(run, (size_t)out->count, 1, run_range, &all);
}

/* ------------------------------------------------------------------ operations */

static const char *const one[] = {"x", NULL}, *const two[] = {"x", "y", NULL};

typedef struct operation {
    laya_row_function floats, integers; /* by the type of x */
    const char *const *operands;
    const char *parameter; /* becomes `a` of the rows; NULL: none */
    double fallback;
} operation;

/* type, exact, rows of floats, rows of integers, operands, parameter, its default */
#define OPERATIONS(OPERATION)                                                                                        \
    OPERATION("add", false, laya_add_floats, laya_add_integers, two, NULL, 0)                                        \
    OPERATION("sub", false, laya_sub_floats, laya_sub_integers, two, NULL, 0)                                        \
    OPERATION("mul", false, laya_mul_floats, laya_mul_integers, two, NULL, 0)                                        \
    OPERATION("real_div", false, laya_real_div_floats, laya_real_div_integers, two, NULL, 0)                         \
    OPERATION("floor_div", false, laya_floor_div_floats, laya_floor_div_integers, two, NULL, 0)                      \
    OPERATION("mod", false, laya_mod_floats, laya_mod_integers, two, NULL, 0)                                        \
    OPERATION("maximum", true, laya_maximum_floats, laya_maximum_integers, two, NULL, 0)                             \
    OPERATION("minimum", true, laya_minimum_floats, laya_minimum_integers, two, NULL, 0)                             \
    OPERATION("pow", false, laya_pow_floats, laya_pow_integers, two, NULL, 0)                                        \
    OPERATION("equal", true, laya_equal_floats, laya_equal_integers, two, NULL, 0)                                   \
    OPERATION("not_equal", true, laya_not_equal_floats, laya_not_equal_integers, two, NULL, 0)                       \
    OPERATION("greater", true, laya_greater_floats, laya_greater_integers, two, NULL, 0)                             \
    OPERATION("greater_equal", true, laya_greater_equal_floats, laya_greater_equal_integers, two, NULL, 0)           \
    OPERATION("less", true, laya_less_floats, laya_less_integers, two, NULL, 0)                                      \
    OPERATION("less_equal", true, laya_less_equal_floats, laya_less_equal_integers, two, NULL, 0)                    \
    OPERATION("logical_and", true, NULL, laya_logical_and, two, NULL, 0)                                             \
    OPERATION("logical_or", true, NULL, laya_logical_or, two, NULL, 0)                                               \
    OPERATION("logical_xor", true, NULL, laya_logical_xor, two, NULL, 0)                                             \
    OPERATION("logical_not", true, NULL, laya_logical_not, one, NULL, 0)                                             \
    OPERATION("relu", true, laya_relu, NULL, one, NULL, 0)                                                           \
    OPERATION("relu6", true, laya_relu6, NULL, one, NULL, 0)                                                         \
    OPERATION("leaky_relu", false, laya_leaky_relu, NULL, one, "alpha", 0)                                           \
    OPERATION("silu", false, laya_silu, NULL, one, NULL, 0)                                                          \
    OPERATION("sigmoid", false, laya_sigmoid, NULL, one, NULL, 0)                                                    \
    OPERATION("softplus", false, laya_softplus, NULL, one, NULL, 0)                                                  \
    OPERATION("softsign", false, laya_softsign, NULL, one, NULL, 0)                                                  \
    OPERATION("tanh", false, laya_tanh, NULL, one, NULL, 0)                                                          \
    OPERATION("erf", false, laya_erf, NULL, one, NULL, 0)                                                            \
    OPERATION("exp", false, laya_exp, NULL, one, NULL, 0)                                                            \
    OPERATION("exp2", false, laya_exp2_floats, laya_exp2_integers, one, NULL, 0)                                     \
    OPERATION("log", false, laya_log, NULL, one, "epsilon", 1e-45)                                                   \
    OPERATION("sqrt", false, laya_sqrt, NULL, one, NULL, 0)                                                          \
    OPERATION("rsqrt", false, laya_rsqrt, NULL, one, "epsilon", 1e-12)                                               \
    OPERATION("inverse", false, laya_inverse, NULL, one, "epsilon", 1e-4)                                            \
    OPERATION("square", false, laya_square_floats, laya_square_integers, one, NULL, 0)                               \
    OPERATION("abs", true, laya_abs_floats, laya_abs_integers, one, NULL, 0)                                         \
    OPERATION("sign", true, laya_sign_floats, laya_sign_integers, one, NULL, 0)                                      \
    OPERATION("sin", false, laya_sin, NULL, one, NULL, 0)                                                            \
    OPERATION("cos", false, laya_cos, NULL, one, NULL, 0)                                                            \
    OPERATION("tan", false, laya_tan, NULL, one, NULL, 0)                                                            \
    OPERATION("ceil", true, laya_ceil, NULL, one, NULL, 0)                                                           \
    OPERATION("floor", true, laya_floor, NULL, one, NULL, 0)                                                         \
    OPERATION("round", true, laya_round, NULL, one, NULL, 0)

#define ROWS_OF(type_, exact_, floats_, integers_, operands_, parameter_, fallback_)                                 \
    {floats_, integers_, operands_, parameter_, fallback_},
static const operation operations[] = {OPERATIONS(ROWS_OF)};

/* A default is a value of the type of x. */
static float get_parameter(const laya_step *step, const char *name, double fallback)
{
    bool half = laya_step_operand(step, "x")->array->type.dtype == LAYA_MIL_FP16;
    return (float)laya_step_number(step, name, half ? (double)laya_round_fp16((float)fallback) : fallback);
}

static laya_status run_operation(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const operation *which = &operations[step->implementation - laya_elementwise_implementations];
    bool floats = laya_step_operand(step, "x")->array->values != NULL;
    float a = which->parameter ? get_parameter(step, which->parameter, which->fallback) : 0.0f;
    run_elementwise(run, step, which->operands, floats ? which->floats : which->integers, a, 0);
    return LAYA_OK;
}

static laya_status run_clip(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    float low = get_parameter(step, "alpha", 0), high = get_parameter(step, "beta", 0);
    run_elementwise(run, step, one, laya_clip, low, high);
    return LAYA_OK;
}

static laya_status run_gelu(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const char *mode = laya_step_string(step, "mode", "EXACT");
    laya_row_function function = laya_gelu_exact;
    if (strcmp(mode, "TANH_APPROXIMATION") == 0) function = laya_gelu_tanh;
    if (strcmp(mode, "SIGMOID_APPROXIMATION") == 0) function = laya_gelu_sigmoid;
    run_elementwise(run, step, one, function, 0, 0);
    return LAYA_OK;
}

static laya_status run_cast(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_array *out = step->outputs[0];
    bool from_floats = laya_step_operand(step, "x")->array->values != NULL,
         to_bools = out->type.dtype == LAYA_MIL_BOOL;
    laya_row_function function;
    if (out->values)
        function = from_floats ? laya_copy_floats : laya_integers_to_floats;
    else if (to_bools)
        function = from_floats ? laya_floats_to_bools : laya_integers_to_bools;
    else
        function = from_floats ? laya_floats_to_integers : laya_copy_integers;
    run_elementwise(run, step, one, function, 0, 0);
    if (out->integers) laya_cut_integers(out->integers, (size_t)out->count, out->type.dtype);
    return LAYA_OK;
}

static laya_status run_select(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    static const char *const operands[] = {"cond", "a", "b", NULL};
    run_elementwise(run, step, operands, step->outputs[0]->values ? laya_select_floats : laya_select_integers, 0, 0);
    return LAYA_OK;
}

#define IMPLEMENTATION_OF(type_, exact_, floats_, integers_, operands_, parameter_, fallback_)                       \
    {.type = (type_), .run = run_operation, .in_place = true, .exact = (exact_)},

const laya_implementation laya_elementwise_implementations[] = {
    OPERATIONS(IMPLEMENTATION_OF) /* as many as there are rows, in the same order */
    {.type = "clip", .run = run_clip, .in_place = true, .exact = true},
    {.type = "gelu", .run = run_gelu, .in_place = true},
    {.type = "cast", .run = run_cast, .in_place = true},
    {.type = "select", .run = run_select, .in_place = true, .exact = true},
    {.type = "identity", .alias = true, .exact = true},
    {0}};
