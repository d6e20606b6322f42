/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution as one matrix product per group: the kernel is [channels made, channels read * places of the kernel], the
 * right matrix has a column for each place of the output. Where a kernel of one place visits every place of the input,
 * that matrix is the input itself; else its panels are gathered.
 */
#include "interpreter/product.h"

#include "base/error.h"

#include <string.h>

#define MAX_SPATIAL 3 /* axes; missing ones in front have one place */

/* One spatial axis. */
typedef struct conv_axis {
    size_t in, kernel, out;
    size_t stride, dilation;
    ptrdiff_t before; /* zeros in front of the input */
} conv_axis;

typedef struct conv {
    conv_axis axes[MAX_SPATIAL];
    size_t plane; /* places of a channel of the input */
} conv;

static size_t list_value(const int32_t *values, size_t count, size_t at, size_t fallback)
{
    return values && at < count ? (size_t)values[at] : fallback;
}

/* Zeros in front of an axis. "same" puts the odd one behind, "same_lower" in front. */
static size_t zeros_before(const laya_step *step, const char *pad_type, size_t axis, const conv_axis *a)
{
    if (strcmp(pad_type, "custom") == 0) {
        size_t count;
        const int32_t *pad = laya_step_integers(step, "pad", &count);
        return list_value(pad, count, 2 * axis, 0);
    }
    if (strncmp(pad_type, "same", 4) != 0) return 0;
    size_t needed = (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
    size_t total = needed > a->in ? needed - a->in : 0;
    return strcmp(pad_type, "same_lower") == 0 ? total - total / 2 : total / 2;
}

static conv make_conv(const laya_step *step, const laya_mil_type *x, const laya_mil_type *weight)
{
    conv c = {.plane = 1};
    size_t spatial = x->rank - 2, stride_count = 0, dilation_count = 0;
    const int32_t *strides = laya_step_integers(step, "strides", &stride_count);
    const int32_t *dilations = laya_step_integers(step, "dilations", &dilation_count);
    const char *pad_type = laya_step_string(step, "pad_type", "valid");
    for (size_t at = 0; at < MAX_SPATIAL; at++) c.axes[at] = (conv_axis){1, 1, 1, 1, 1, 0};
    for (size_t axis = 0; axis < spatial; axis++) {
        conv_axis *a = &c.axes[MAX_SPATIAL - spatial + axis];
        a->in = (size_t)x->dims[2 + axis];
        a->kernel = (size_t)weight->dims[2 + axis];
        a->out = (size_t)step->outputs[0]->type.dims[2 + axis];
        a->stride = list_value(strides, stride_count, axis, 1);
        a->dilation = list_value(dilations, dilation_count, axis, 1);
        a->before = (ptrdiff_t)zeros_before(step, pad_type, axis, a);
        c.plane *= a->in;
    }
    return c;
}

/* Every place of the output reads that place of the input and no other. */
static bool is_pointwise(const conv *c)
{
    for (size_t axis = 0; axis < MAX_SPATIAL; axis++) {
        const conv_axis *a = &c->axes[axis];
        if (a->kernel != 1 || a->stride != 1 || a->before != 0 || a->out != a->in) return false;
    }
    return true;
}

/* Indices of `flat` along the axes whose sizes are given. */
static void unravel(size_t flat, const size_t sizes[MAX_SPATIAL], size_t out[MAX_SPATIAL])
{
    for (size_t axis = MAX_SPATIAL; axis-- > 0;) {
        out[axis] = flat % sizes[axis];
        flat /= sizes[axis];
    }
}

/* The value that place `out` of the output reads at place `kernel` of the kernel. */
static float gather_value(const conv *c, const float *channel, const size_t out[MAX_SPATIAL],
                          const size_t kernel[MAX_SPATIAL])
{
    size_t at = 0;
    for (size_t axis = 0; axis < MAX_SPATIAL; axis++) {
        const conv_axis *a = &c->axes[axis];
        ptrdiff_t place = (ptrdiff_t)(out[axis] * a->stride + kernel[axis] * a->dilation) - a->before;
        if (place < 0 || place >= (ptrdiff_t)a->in) return 0;
        at = at * a->in + (size_t)place;
    }
    return channel[at];
}

static void gather_panel(const void *user, const float *right, const laya_gemm_block *block, float *panel)
{
    const conv *c = user;
    size_t outs[LAYA_KERNEL_MAX_NR][MAX_SPATIAL], kernel[MAX_SPATIAL];
    const size_t made[MAX_SPATIAL] = {c->axes[0].out, c->axes[1].out, c->axes[2].out};
    const size_t taps[MAX_SPATIAL] = {c->axes[0].kernel, c->axes[1].kernel, c->axes[2].kernel};
    size_t places = taps[0] * taps[1] * taps[2];
    for (size_t j = 0; j < block->cols; j++) unravel(block->col + j, made, outs[j]);
    for (size_t k = 0; k < block->depth; k++) {
        size_t flat = block->k0 + k;
        const float *channel = right + flat / places * c->plane;
        float *row = panel + k * block->nr;
        unravel(flat % places, taps, kernel);
        for (size_t j = 0; j < block->cols; j++) row[j] = gather_value(c, channel, outs[j], kernel);
        for (size_t j = block->cols; j < block->nr; j++) row[j] = 0;
    }
}

laya_status laya_conv_run(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_operand *x = laya_step_operand(step, "x"), *weight = laya_step_operand(step, "weight");
    const laya_operand *bias = laya_step_operand(step, "bias");
    const laya_mil_type *in = &x->array->type, *kernel = &weight->array->type;
    const conv c = make_conv(step, in, kernel);
    size_t groups = (size_t)laya_step_integer(step, "groups", 1);
    laya_gemm gemm = {.rows = (size_t)kernel->dims[0] / groups,
                      .cols = c.axes[0].out * c.axes[1].out * c.axes[2].out,
                      .batch_rank = 2,
                      .batch_dims = {(size_t)in->dims[0], groups},
                      .left = laya_gemm_operand(weight),
                      .right = laya_gemm_operand(x),
                      .strict = laya_product_is_strict(run, step)};
    size_t read = (size_t)kernel->dims[1]; /* channels that a group reads */
    gemm.depth = read * c.axes[0].kernel * c.axes[1].kernel * c.axes[2].kernel;
    gemm.left.row_stride = gemm.depth;
    gemm.left.col_stride = 1;
    gemm.left.batch_strides[1] = gemm.rows * gemm.depth;
    gemm.right.row_stride = c.plane;
    gemm.right.col_stride = 1;
    gemm.right.batch_strides[0] = groups * read * c.plane;
    gemm.right.batch_strides[1] = read * c.plane;
    if (!is_pointwise(&c)) {
        gemm.pack = gather_panel;
        gemm.pack_user = &c;
    }
    if (bias) {
        gemm.bias.values = bias->array->values;
        gemm.bias.row_stride = 1;
        gemm.bias.batch_strides[1] = gemm.rows;
    }
    gemm.out = step->outputs[0]->values;
    gemm.out_stride = gemm.cols;
    gemm.out_batch_strides[0] = groups * gemm.rows * gemm.cols;
    gemm.out_batch_strides[1] = gemm.rows * gemm.cols;
    laya_gemm_run(run, &gemm);
    return LAYA_OK;
}
