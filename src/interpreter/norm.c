/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalizations and softmax. The output may lie in the memory of x: every result of a block is computed from x before
 * its place is written.
 */
#include "interpreter/reduction.h"

#include <math.h>
#include <string.h>

#define COLUMNS LAYA_REDUCE_COLUMNS

/* ------------------------------------------------------------------ y = (x - mean) factor gain + offset */

typedef struct norm {
    laya_axes axes;
    laya_blocks blocks;
    size_t elements; /* of one result of the reduction */
    bool strict;
    bool centered; /* the mean is subtracted; else the sum of squares, not its mean, is used */
    float epsilon;
    const float *gamma, *beta; /* NULL: ones, zeros */
    size_t channels;           /* of instance_norm, gamma and beta of each; 0: of each reduced element */
    const float *x;
    float *out;
} norm;

/* Mean (0 where not centered) and 1 / sqrt(… + epsilon) of a block's results. */
static void measure(const norm *all, const float *x, float *mean, float *factor, size_t count)
{
    laya_reduce sum = {
        .fold = all->strict ? laya_fold_add_strict : laya_fold_add, .join = laya_fold_add, .in_order = all->strict};
    laya_reduce squares = sum;
    squares.fold = all->strict ? laya_fold_deviation_strict : laya_fold_deviation;
    float elements = all->centered ? (float)all->elements : 1.0f;
    for (size_t i = 0; i < count; i++) mean[i] = 0.0f;
    if (all->centered) {
        laya_reduce_run(&sum, &all->axes, x, NULL, mean, count);
        for (size_t i = 0; i < count; i++) mean[i] /= elements;
    }
    if (all->strict) laya_round_fp16_array(mean, count);
    laya_reduce_run(&squares, &all->axes, x, mean, factor, count);
    for (size_t i = 0; i < count; i++) factor[i] = 1.0f / sqrtf(factor[i] / elements + all->epsilon);
}

/* A run of one kept row: mean and factor of each element, one gain. */
static void scale_columns(const float *x, const float *mean, const float *factor, float gain, float offset,
                          float *out, size_t count)
{
    float aside[COLUMNS];
    for (size_t i = 0; i < count; i++) aside[i] = (x[i] - mean[i]) * factor[i] * gain + offset;
    memcpy(out, aside, count * sizeof *out);
}

/* A run of a reduced row: one mean and factor; gamma and beta of each element, or `gain` and `offset`. */
static void scale_row(const float *x, float mean, float factor, const float *gamma, const float *beta, float *out,
                      size_t count)
{
    float aside[COLUMNS];
    for (size_t first = 0; first < count; first += COLUMNS) {
        size_t width = count - first < COLUMNS ? count - first : COLUMNS;
        for (size_t i = 0; i < width; i++) aside[i] = (x[first + i] - mean) * factor;
        for (size_t i = 0; gamma && i < width; i++) aside[i] *= gamma[first + i];
        for (size_t i = 0; beta && i < width; i++) aside[i] += beta[first + i];
        memcpy(out + first, aside, width * sizeof *aside);
    }
}

/* One value per channel. */
static void scale_channel(const norm *all, const float *x, float mean, float factor, size_t channel, float *out,
                          size_t count)
{
    float gain = all->gamma ? all->gamma[channel] : 1.0f, offset = all->beta ? all->beta[channel] : 0.0f;
    float aside[COLUMNS];
    for (size_t first = 0; first < count; first += COLUMNS) {
        size_t width = count - first < COLUMNS ? count - first : COLUMNS;
        for (size_t i = 0; i < width; i++) aside[i] = (x[first + i] - mean) * factor * gain + offset;
        memcpy(out + first, aside, width * sizeof *aside);
    }
}

static void norm_block(const norm *all, size_t index)
{
    float mean[COLUMNS], factor[COLUMNS];
    size_t kept, column, count;
    laya_block_at(&all->blocks, &all->axes, index, &kept, &column, &count);
    size_t place = laya_axes_kept(&all->axes, kept) + column;
    const float *x = all->x + place;
    float *out = all->out + place;
    measure(all, x, mean, factor, count);
    for (size_t r = 0; r < all->axes.reduced; r++) {
        size_t at = laya_axes_reduced(&all->axes, r), first = r * all->axes.row;
        if (all->channels > 0) {
            size_t channel = all->axes.row_reduced ? kept : kept * all->axes.row + column;
            for (size_t i = 0; i < count; i++)
                scale_channel(all, x + at + i, mean[i], factor[i], (channel + i) % all->channels, out + at + i,
                              all->axes.row_reduced ? all->axes.row : 1);
        } else if (all->axes.row_reduced) {
            scale_row(x + at, mean[0], factor[0], all->gamma ? all->gamma + first : NULL,
                      all->beta ? all->beta + first : NULL, out + at, all->axes.row);
        } else {
            scale_columns(x + at, mean, factor, all->gamma ? all->gamma[r] : 1.0f, all->beta ? all->beta[r] : 0.0f,
                          out + at, count);
        }
    }
}

static void norm_blocks(const void *argument, size_t begin, size_t end)
{
    for (size_t index = begin; index < end; index++) norm_block(argument, index);
}

static const float *values_of(const laya_step *step, const char *name)
{
    const laya_operand *operand = laya_step_operand(step, name);
    return operand ? operand->array->values : NULL;
}

/* A default is a value of the type of x. */
static float get_epsilon(const laya_step *step, const laya_mil_type *type, double fallback)
{
    bool half = type->dtype == LAYA_MIL_FP16;
    return (float)laya_step_number(step, "epsilon", half ? (double)laya_round_fp16((float)fallback) : fallback);
}

static void run_norm(const laya_run *run, const laya_step *step, norm *all, const bool *reduced, double epsilon)
{
    const laya_array *x = laya_step_operand(step, "x")->array;
    laya_axes_set(&all->axes, &x->type, reduced);
    all->elements = all->axes.reduced * (all->axes.row_reduced ? all->axes.row : 1);
    all->blocks = laya_blocks_of(&all->axes, run, LAYA_REDUCE_COLUMNS);
    all->strict = run->strict && x->type.dtype == LAYA_MIL_FP16;
    all->epsilon = get_epsilon(step, &x->type, epsilon);
    all->gamma = values_of(step, "gamma");
    all->beta = values_of(step, "beta");
    all->x = x->values;
    all->out = step->outputs[0]->values;
    laya_run_ranges(run, all->blocks.count, all->blocks.cost, norm_blocks, all);
}

laya_status laya_run_layer_norm(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    bool reduced[LAYA_MIL_MAX_RANK];
    norm all = {.centered = true};
    laya_axes_chosen(step, step->outputs[0]->type.rank, reduced);
    run_norm(run, step, &all, reduced, 1e-5);
    return LAYA_OK;
}

/* Over the spatial axes, which follow batch and channels. */
laya_status laya_run_instance_norm(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    bool reduced[LAYA_MIL_MAX_RANK] = {false, false, true, true, true, true, true, true};
    norm all = {.centered = true, .channels = (size_t)step->outputs[0]->type.dims[1]};
    run_norm(run, step, &all, reduced, 1e-5);
    return LAYA_OK;
}

/* x / sqrt(sum of squares over the last three axes + epsilon) */
laya_status laya_run_l2_norm(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    uint32_t rank = step->outputs[0]->type.rank;
    bool reduced[LAYA_MIL_MAX_RANK];
    norm all = {0};
    for (uint32_t axis = 0; axis < rank; axis++) reduced[axis] = axis + 3 >= rank;
    run_norm(run, step, &all, reduced, 1e-6);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ batch_norm */

typedef struct channels {
    norm all; /* x, out, gamma, beta, epsilon, channels */
    const float *mean, *variance;
    size_t row; /* elements of one channel */
} channels;

static void norm_channels(const void *argument, size_t begin, size_t end)
{
    const channels *batch = argument;
    for (size_t index = begin; index < end; index++) {
        size_t channel = index % batch->all.channels, place = index * batch->row;
        float factor = 1.0f / sqrtf(batch->variance[channel] + batch->all.epsilon);
        scale_channel(&batch->all, batch->all.x + place, batch->mean[channel], factor, channel,
                      batch->all.out + place, batch->row);
    }
}

laya_status laya_run_batch_norm(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_array *x = laya_step_operand(step, "x")->array;
    channels batch = {.mean = values_of(step, "mean"), .variance = values_of(step, "variance")};
    batch.all.x = x->values;
    batch.all.out = step->outputs[0]->values;
    batch.all.gamma = values_of(step, "gamma");
    batch.all.beta = values_of(step, "beta");
    batch.all.epsilon = get_epsilon(step, &x->type, 1e-5);
    batch.all.channels = (size_t)x->type.dims[1];
    size_t count = (size_t)(x->type.dims[0] * x->type.dims[1]);
    batch.row = (size_t)x->count / count;
    laya_run_ranges(run, count, batch.row, norm_channels, &batch);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ softmax */

typedef struct softmax {
    laya_axes axes;
    laya_blocks blocks;
    bool strict;
    const laya_run *run;
    const float *x;
    float *out;
} softmax;

/* Columns of a block, so that it stays in the second-level cache: 128 KiB, where that is 16 columns or more. */
static size_t softmax_width(size_t size)
{
    size_t width = COLUMNS;
    while (width > 16 && width * size > (size_t)32 * 1024) width /= 2;
    return width;
}

static void softmax_axes(const laya_step *step, laya_axes *axes)
{
    const laya_mil_type *type = &step->outputs[0]->type;
    bool reduced[LAYA_MIL_MAX_RANK] = {false};
    if (type->rank > 0) reduced[laya_step_axis(step, "axis", -1, type->rank)] = true;
    laya_axes_set(axes, type, reduced);
}

void laya_softmax_needs(const laya_step *step, const laya_kernels *kernels, size_t *scratch, size_t *shared)
{
    (void)kernels;
    laya_axes axes;
    softmax_axes(step, &axes);
    size_t width = softmax_width(axes.reduced);
    *shared = 0;
    *scratch = axes.row_reduced ? axes.row : axes.reduced * (axes.row < width ? axes.row : width);
}

/* Powers and their sum, which grows in chunks of rows. */
static void exp_rows(const softmax *all, float *rows, const float *top, float *total, size_t size, size_t count)
{
    enum { CHUNK = 64 };
    const laya_kernels *kernels = all->run->kernels;
    float sums[COLUMNS];
    for (size_t i = 0; i < count; i++) total[i] = sums[i] = 0.0f;
    for (size_t r = 0; r < size; r++) {
        float *row = rows + r * count;
        kernels->exp_columns(row, top, sums, count);
        if (all->strict) {
            laya_round_fp16_array(row, count);
            laya_fold_add_strict(row, NULL, total, count);
        } else if (r % CHUNK == CHUNK - 1 || r + 1 == size) {
            for (size_t i = 0; i < count; i++) total[i] += sums[i];
            for (size_t i = 0; i < count; i++) sums[i] = 0.0f;
        }
    }
}

static void copy_and_raise(const float *x, float *restrict out, float *restrict top, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value = x[i];
        out[i] = value;
        top[i] = value > top[i] ? value : top[i];
    }
}

/* `count` neighbouring columns, collected in the worker's scratch: in their places they may lie far apart. */
static void softmax_columns(const softmax *all, const float *x, float *out, float *rows, size_t size, size_t stride,
                            size_t count)
{
    float top[COLUMNS], total[COLUMNS];
    for (size_t i = 0; i < count; i++) top[i] = -INFINITY;
    for (size_t r = 0; r < size; r++) copy_and_raise(x + r * stride, rows + r * count, top, count);
    exp_rows(all, rows, top, total, size, count);
    for (size_t i = 0; i < count; i++) total[i] = 1.0f / total[i];
    for (size_t r = 0; r < size; r++) {
        float *row = rows + r * count;
        for (size_t i = 0; i < count; i++) row[i] *= total[i];
        memcpy(out + r * stride, row, count * sizeof *out);
    }
}

static void softmax_block(void *argument, size_t index, unsigned worker)
{
    const softmax *all = argument;
    const laya_axes *axes = &all->axes;
    size_t kept, column, count;
    laya_block_at(&all->blocks, axes, index, &kept, &column, &count);
    size_t place = laya_axes_kept(axes, kept) + column;
    const float *x = all->x + place;
    float *out = all->out + place, *rows = all->run->scratch + worker * all->run->scratch_size;
    if (!axes->row_reduced) {
        softmax_columns(all, x, out, rows, axes->reduced, axes->reduced_strides[0], count);
    } else if (all->strict) {
        softmax_columns(all, x, out, rows, axes->row, 1, 1);
    } else {
        if (out != x) memcpy(out, x, axes->row * sizeof *out);
        all->run->kernels->softmax(out, axes->row, 1.0f);
    }
}

laya_status laya_run_softmax(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_array *x = laya_step_operand(step, "x")->array;
    softmax all = {.run = run, .x = x->values, .out = step->outputs[0]->values};
    softmax_axes(step, &all.axes);
    all.blocks = laya_blocks_of(&all.axes, run, softmax_width(all.axes.reduced));
    all.strict = run->strict && x->type.dtype == LAYA_MIL_FP16;
    laya_run_tasks(run, all.blocks.count, all.blocks.cost, softmax_block, &all);
    return LAYA_OK;
}
