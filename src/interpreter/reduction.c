/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any axes, and the table of what is built on them. */
#include "interpreter/reduction.h"

#include "base/half.h"

#include <math.h>

#define LANES ((size_t)64) /* partial sums of a reduced row */
#define CHUNK ((size_t)64) /* rows that are summed before their sum is added to the total */

/* ------------------------------------------------------------------ axes */

/* Groups of joined axes become the row first, then kept or reduced axes. */
static void add_group(laya_axes *axes, bool reduced, size_t size, size_t stride)
{
    if (axes->row == 0) {
        axes->row = size;
        axes->row_reduced = reduced;
    } else if (reduced) {
        axes->reduced_dims[axes->reduced_rank] = size;
        axes->reduced_strides[axes->reduced_rank++] = stride;
        axes->reduced *= size;
    } else {
        axes->kept_dims[axes->kept_rank] = size;
        axes->kept_strides[axes->kept_rank++] = stride;
        axes->kept *= size;
    }
}

void laya_axes_set(laya_axes *axes, const laya_mil_type *type, const bool *reduced)
{
    size_t size = 1, stride = 1;
    bool kind = false;
    *axes = (laya_axes){.kept = 1, .reduced = 1};
    for (uint32_t left = type->rank; left > 0; left--) {
        size_t own = (size_t)type->dims[left - 1];
        if (own == 1) continue;
        if (size > 1 && reduced[left - 1] != kind) {
            add_group(axes, kind, size, stride);
            stride *= size;
            size = 1;
        }
        kind = reduced[left - 1];
        size *= own;
    }
    add_group(axes, kind, size, stride);
}

static size_t offset_of(uint32_t rank, const size_t *dims, const size_t *strides, size_t index)
{
    size_t offset = 0;
    for (uint32_t axis = 0; axis < rank; axis++) {
        offset += index % dims[axis] * strides[axis];
        index /= dims[axis];
    }
    return offset;
}

size_t laya_axes_kept(const laya_axes *axes, size_t index)
{
    return offset_of(axes->kept_rank, axes->kept_dims, axes->kept_strides, index);
}

size_t laya_axes_reduced(const laya_axes *axes, size_t index)
{
    return offset_of(axes->reduced_rank, axes->reduced_dims, axes->reduced_strides, index);
}

void laya_axes_chosen(const laya_step *step, uint32_t rank, bool *reduced)
{
    size_t count;
    const int32_t *list = laya_step_integers(step, "axes", &count);
    for (uint32_t axis = 0; axis < rank; axis++) reduced[axis] = list == NULL;
    for (size_t at = 0; list && at < count; at++) reduced[list[at] < 0 ? list[at] + (int32_t)rank : list[at]] = true;
}

/* ------------------------------------------------------------------ folds */

#define FOLD(name, expression)                                                                                       \
    void name(const float *x, const float *shift, float *restrict totals, size_t count)                              \
    {                                                                                                                \
        (void)shift;                                                                                                 \
        for (size_t i = 0; i < count; i++) {                                                                         \
            float value = x[i], total = totals[i];                                                                   \
            totals[i] = (expression);                                                                                \
        }                                                                                                            \
    }

FOLD(laya_fold_add, total + value)
FOLD(laya_fold_add_strict, laya_round_fp16(total + value))
static FOLD(fold_square, total + value * value) static FOLD(
    fold_square_strict, laya_round_fp16(total + value * value)) FOLD(laya_fold_deviation,
                                                                     total + (value - shift[i]) * (value - shift[i]))
    FOLD(laya_fold_deviation_strict, laya_round_fp16(total + (value - shift[i]) * (value - shift[i]))) static FOLD(fold_max, value > total || value != value ? value : total) static FOLD(
        fold_min,
        value < total || value != value
            ? value
            : total) static FOLD(fold_multiply,
                                 total *
                                     value) static FOLD(fold_multiply_strict,
                                                        laya_round_fp16(
                                                            total *
                                                                value)) static FOLD(fold_size,
                                                                                    total +
                                                                                        fabsf(
                                                                                            value)) static FOLD(fold_size_strict,
                                                                                                                laya_round_fp16(
                                                                                                                    total +
                                                                                                                    fabsf(
                                                                                                                        value))) static FOLD(fold_exp,
                                                                                                                                             total +
                                                                                                                                                 expf(
                                                                                                                                                     value -
                                                                                                                                                     shift
                                                                                                                                                         [i])) static FOLD(fold_exp_strict,
                                                                                                                                                                           laya_round_fp16(
                                                                                                                                                                               total +
                                                                                                                                                                               expf(
                                                                                                                                                                                   value -
                                                                                                                                                                                   shift
                                                                                                                                                                                       [i])))

    /* The results are a kept row's. */
    static void fold_columns(const laya_reduce *reduce, const laya_axes *axes, const float *x, const float *shift,
                             float *totals, size_t count)
{
    float chunk[LAYA_REDUCE_COLUMNS];
    for (size_t i = 0; i < count; i++) totals[i] = reduce->identity;
    if (reduce->in_order) {
        for (size_t r = 0; r < axes->reduced; r++) reduce->fold(x + laya_axes_reduced(axes, r), shift, totals, count);
        return;
    }
    for (size_t first = 0; first < axes->reduced; first += CHUNK) {
        size_t end = first + CHUNK < axes->reduced ? first + CHUNK : axes->reduced;
        for (size_t i = 0; i < count; i++) chunk[i] = reduce->identity;
        for (size_t r = first; r < end; r++) reduce->fold(x + laya_axes_reduced(axes, r), shift, chunk, count);
        reduce->join(chunk, NULL, totals, count);
    }
}

/* The one result of a reduced row. */
static void fold_row(const laya_reduce *reduce, const laya_axes *axes, const float *x, const float *shift,
                     float *total)
{
    float lanes[LANES], shifts[LANES];
    size_t width = reduce->in_order ? 1 : LANES;
    for (size_t i = 0; i < width; i++) {
        lanes[i] = reduce->identity;
        shifts[i] = shift ? shift[0] : 0.0f;
    }
    for (size_t r = 0; r < axes->reduced; r++) {
        const float *row = x + laya_axes_reduced(axes, r);
        for (size_t i = 0; i < axes->row; i += width)
            reduce->fold(row + i, shifts, lanes, axes->row - i < width ? axes->row - i : width);
    }
    for (size_t half = width / 2; half > 0; half /= 2) reduce->join(lanes + half, NULL, lanes, half);
    *total = lanes[0];
}

void laya_reduce_run(const laya_reduce *reduce, const laya_axes *axes, const float *x, const float *shift,
                     float *totals, size_t count)
{
    if (axes->row_reduced)
        fold_row(reduce, axes, x, shift, totals);
    else
        fold_columns(reduce, axes, x, shift, totals, count);
}

/* ------------------------------------------------------------------ blocks */

laya_blocks laya_blocks_of(const laya_axes *axes, const laya_run *run, size_t most)
{
    enum { SMALLEST = 16 };
    size_t wanted = (size_t)laya_pool_threads(run->pool) * 3;
    laya_blocks blocks = {.block = most};
    if (axes->row_reduced)
        return (laya_blocks){.block = 1, .per_row = 1, .count = axes->kept, .cost = axes->reduced * axes->row};
    while (blocks.block > SMALLEST && axes->row / blocks.block * axes->kept < wanted) blocks.block /= 2;
    blocks.per_row = (axes->row + blocks.block - 1) / blocks.block;
    blocks.count = blocks.per_row * axes->kept;
    blocks.cost = axes->reduced * (blocks.block < axes->row ? blocks.block : axes->row);
    return blocks;
}

void laya_block_at(const laya_blocks *blocks, const laya_axes *axes, size_t index, size_t *kept, size_t *column,
                   size_t *count)
{
    size_t width = axes->row_reduced ? 1 : axes->row;
    *kept = index / blocks->per_row;
    *column = index % blocks->per_row * blocks->block;
    *count = width - *column < blocks->block ? width - *column : blocks->block;
}

/* ------------------------------------------------------------------ reductions */

typedef enum ending { SUM, MEAN, ROOT, LOGARITHM, SHIFTED_LOGARITHM } ending;

typedef enum integer_fold { ADD, GREATEST, LEAST, MULTIPLY, ADD_SIZE, ADD_SQUARE, ADD_EXP } integer_fold;

typedef struct operation {
    laya_fold fold, strict, join;
    integer_fold integers;
    float identity;
    ending end;
} operation;

/* type, fold, fold of strict fp16, join, fold of integers, identity, what is done with the total */
#define OPERATIONS(OPERATION)                                                                                        \
    OPERATION("reduce_sum", laya_fold_add, laya_fold_add_strict, laya_fold_add, ADD, 0, SUM)                         \
    OPERATION("reduce_mean", laya_fold_add, laya_fold_add_strict, laya_fold_add, ADD, 0, MEAN)                       \
    OPERATION("reduce_max", fold_max, fold_max, fold_max, GREATEST, -INFINITY, SUM)                                  \
    OPERATION("reduce_min", fold_min, fold_min, fold_min, LEAST, INFINITY, SUM)                                      \
    OPERATION("reduce_prod", fold_multiply, fold_multiply_strict, fold_multiply, MULTIPLY, 1, SUM)                   \
    OPERATION("reduce_l1_norm", fold_size, fold_size_strict, laya_fold_add, ADD_SIZE, 0, SUM)                        \
    OPERATION("reduce_l2_norm", fold_square, fold_square_strict, laya_fold_add, ADD_SQUARE, 0, ROOT)                 \
    OPERATION("reduce_sum_square", fold_square, fold_square_strict, laya_fold_add, ADD_SQUARE, 0, SUM)               \
    OPERATION("reduce_log_sum", laya_fold_add, laya_fold_add_strict, laya_fold_add, ADD, 0, LOGARITHM)               \
    OPERATION("reduce_log_sum_exp", fold_exp, fold_exp_strict, laya_fold_add, ADD_EXP, 0, SHIFTED_LOGARITHM)

#define FOLDS_OF(type_, fold_, strict_, join_, integers_, identity_, end_)                                           \
    {fold_, strict_, join_, integers_, identity_, end_},
static const operation operations[] = {OPERATIONS(FOLDS_OF)};

typedef struct reduction {
    laya_axes axes;
    laya_blocks blocks;
    laya_reduce reduce;
    ending end;
    size_t elements; /* of one result */
    const float *x;
    float *out;
} reduction;

static float finish(const reduction *all, float total, float shift)
{
    switch (all->end) {
    case SUM: break;
    case MEAN: return total / (float)all->elements;
    case ROOT: return sqrtf(total);
    case LOGARITHM: return logf(total);
    case SHIFTED_LOGARITHM: return logf(total) + shift;
    }
    return total;
}

static void reduce_blocks(const void *argument, size_t begin, size_t end)
{
    const reduction *all = argument;
    const laya_reduce greatest = {.fold = fold_max, .join = fold_max, .identity = -INFINITY};
    for (size_t index = begin; index < end; index++) {
        float totals[LAYA_REDUCE_COLUMNS], shift[LAYA_REDUCE_COLUMNS];
        size_t kept, column, count;
        laya_block_at(&all->blocks, &all->axes, index, &kept, &column, &count);
        const float *x = all->x + laya_axes_kept(&all->axes, kept) + column;
        for (size_t i = 0; i < count; i++) shift[i] = 0.0f;
        if (all->end == SHIFTED_LOGARITHM) {
            laya_reduce_run(&greatest, &all->axes, x, NULL, shift, count);
            for (size_t i = 0; i < count; i++) shift[i] = isfinite(shift[i]) ? shift[i] : 0.0f;
        }
        laya_reduce_run(&all->reduce, &all->axes, x, shift, totals, count);
        float *out = all->out + kept * (all->axes.row_reduced ? 1 : all->axes.row) + column;
        for (size_t i = 0; i < count; i++) out[i] = finish(all, totals[i], shift[i]);
    }
}

/* ------------------------------------------------------------------ integers */

static double fold_integer(integer_fold fold, double total, double value)
{
    switch (fold) {
    case ADD: return total + value;
    case GREATEST: return value > total ? value : total;
    case LEAST: return value < total ? value : total;
    case MULTIPLY: return total * value;
    case ADD_SIZE: return total + fabs(value);
    case ADD_SQUARE: return total + value * value;
    case ADD_EXP: return total + exp(value);
    }
    return total;
}

static double finish_integer(const reduction *all, double total)
{
    switch (all->end) {
    case SUM: break;
    case MEAN: return total / (double)all->elements;
    case ROOT: return sqrt(total);
    case LOGARITHM:
    case SHIFTED_LOGARITHM: return log(total);
    }
    return total;
}

/* In double; the result is cut towards zero, and int32's nearest where it is beyond. */
static int32_t reduce_integers(const reduction *all, const operation *which, const int32_t *x)
{
    double total = (double)which->identity;
    size_t row = all->axes.row_reduced ? all->axes.row : 1;
    for (size_t r = 0; r < all->axes.reduced; r++) {
        const int32_t *in = x + laya_axes_reduced(&all->axes, r);
        for (size_t i = 0; i < row; i++) total = fold_integer(which->integers, total, (double)in[i]);
    }
    total = finish_integer(all, total);
    if (total != total) return 0;
    return total >= INT32_MAX ? INT32_MAX : total <= INT32_MIN ? INT32_MIN : (int32_t)total;
}

static void run_integers(const reduction *all, const operation *which, const int32_t *x, int32_t *out)
{
    size_t columns = all->axes.row_reduced ? 1 : all->axes.row;
    for (size_t kept = 0; kept < all->axes.kept; kept++) {
        const int32_t *in = x + laya_axes_kept(&all->axes, kept);
        for (size_t i = 0; i < columns; i++) out[kept * columns + i] = reduce_integers(all, which, in + i);
    }
}

/* ------------------------------------------------------------------ table */

static laya_status run_reduction(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const operation *which = &operations[step->implementation - laya_reduction_implementations];
    const laya_array *x = laya_step_operand(step, "x")->array, *out = step->outputs[0];
    bool reduced[LAYA_MIL_MAX_RANK], strict = run->strict && x->type.dtype == LAYA_MIL_FP16;
    reduction all = {.end = which->end, .x = x->values, .out = out->values};
    laya_axes_chosen(step, x->type.rank, reduced);
    laya_axes_set(&all.axes, &x->type, reduced);
    all.elements = all.axes.reduced * (all.axes.row_reduced ? all.axes.row : 1);
    all.reduce = (laya_reduce){.fold = strict ? which->strict : which->fold,
                               .join = which->join,
                               .identity = which->identity,
                               .in_order = strict};
    if (x->integers) {
        run_integers(&all, which, x->integers, out->integers);
        return LAYA_OK;
    }
    all.blocks = laya_blocks_of(&all.axes, run, LAYA_REDUCE_COLUMNS);
    laya_run_ranges(run, all.blocks.count, all.blocks.cost, reduce_blocks, &all);
    return LAYA_OK;
}

#define IMPLEMENTATION_OF(type_, fold_, strict_, join_, integers_, identity_, end_)                                  \
    {.type = (type_), .run = run_reduction},

const laya_implementation laya_reduction_implementations[] = {
    OPERATIONS(IMPLEMENTATION_OF) /* as many as there are folds, in the same order */
    {.type = "layer_norm", .run = laya_run_layer_norm, .in_place = true},
    {.type = "instance_norm", .run = laya_run_instance_norm, .in_place = true},
    {.type = "batch_norm", .run = laya_run_batch_norm, .in_place = true},
    {.type = "l2_norm", .run = laya_run_l2_norm, .in_place = true},
    {.type = "softmax", .run = laya_run_softmax, .needs = laya_softmax_needs, .in_place = true},
    {0}};
