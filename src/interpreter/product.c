/* SPDX-License-Identifier: Apache-2.0 */
/* linear, matmul and einsum as stacks of matrix products; the table of all products. */
#include "interpreter/product.h"

#include "base/error.h"

/* ------------------------------------------------------------------ integers */

/* The same products on integers, which wrap around; strides as in `gemm`. */
static void multiply_integers(const laya_gemm *gemm, const int32_t *left, const int32_t *right, const int32_t *bias,
                              int32_t *out)
{
    size_t batches = laya_gemm_batches(gemm);
    for (size_t batch = 0; batch < batches; batch++) {
        const int32_t *x = left + laya_gemm_offset(gemm, batch, gemm->left.batch_strides);
        const int32_t *y = right + laya_gemm_offset(gemm, batch, gemm->right.batch_strides);
        int32_t *z = out + laya_gemm_offset(gemm, batch, gemm->out_batch_strides);
        for (size_t i = 0; i < gemm->rows; i++) {
            for (size_t j = 0; j < gemm->cols; j++) {
                uint32_t sum = bias ? (uint32_t)bias[j] : 0;
                for (size_t k = 0; k < gemm->depth; k++) {
                    sum += (uint32_t)x[i * gemm->left.row_stride + k * gemm->left.col_stride] *
                           (uint32_t)y[k * gemm->right.row_stride + j * gemm->right.col_stride];
                }
                z[i * gemm->out_stride + j] = (int32_t)sum;
            }
        }
    }
}

/* `bias` may be NULL. */
static void multiply(const laya_run *run, const laya_step *step, laya_gemm *gemm, const laya_array *left,
                     const laya_array *right, const laya_operand *bias)
{
    laya_array *out = step->outputs[0];
    if (out->integers) {
        multiply_integers(gemm, left->integers, right->integers, bias ? bias->array->integers : NULL, out->integers);
        return;
    }
    if (bias) {
        gemm->bias.values = bias->array->values;
        gemm->bias.col_stride = 1;
    }
    gemm->out = out->values;
    gemm->strict = laya_product_is_strict(run, step);
    laya_gemm_run(run, gemm);
}

/* ------------------------------------------------------------------ linear */

static laya_status run_linear(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_operand *x = laya_step_operand(step, "x"), *weight = laya_step_operand(step, "weight");
    const laya_mil_type *shape = &weight->array->type;
    size_t made = (size_t)shape->dims[0], read = (size_t)shape->dims[1];
    laya_gemm gemm = {.rows = (size_t)x->array->count / read,
                      .depth = read,
                      .cols = made,
                      .left = laya_gemm_operand(x),
                      .right = laya_gemm_operand(weight),
                      .out_stride = made};
    gemm.left.row_stride = read;
    gemm.left.col_stride = 1;
    gemm.right.row_stride = 1;
    gemm.right.col_stride = read;
    multiply(run, step, &gemm, x->array, weight->array, laya_step_operand(step, "bias"));
    return LAYA_OK;
}

/* ------------------------------------------------------------------ matmul */

/* One operand: its matrices' size as they are multiplied, and where its batch dimensions are. */
typedef struct matrices {
    size_t rows, cols;
    uint32_t batch_rank;
} matrices;

/* Strides of an operand; `batch_rank` is that of the output, dimensions are aligned at the end. */
static matrices set_strides(const laya_mil_type *type, bool transposed, bool is_left, uint32_t batch_rank,
                            laya_gemm_matrix *matrix)
{
    size_t rows = 1, cols = 1;
    uint32_t own = 0;
    if (type->rank == 1) { /* a row on the left, a column on the right */
        *(is_left ? &cols : &rows) = (size_t)type->dims[0];
    } else {
        own = type->rank - 2;
        rows = (size_t)type->dims[own];
        cols = (size_t)type->dims[own + 1];
    }
    size_t stride = rows * cols;
    for (uint32_t axis = own; axis-- > 0;) {
        size_t size = (size_t)type->dims[axis];
        matrix->batch_strides[batch_rank - own + axis] = size == 1 ? 0 : stride;
        stride *= size;
    }
    matrix->row_stride = transposed ? 1 : cols;
    matrix->col_stride = transposed ? cols : 1;
    return (matrices){transposed ? cols : rows, transposed ? rows : cols, own};
}

/* A stack on the left against one matrix on the right is one tall matrix. */
static void join_batches(laya_gemm *gemm, bool transposed, uint32_t left_rank, uint32_t right_rank)
{
    if (right_rank > 0 || transposed || left_rank != gemm->batch_rank) return;
    gemm->rows *= laya_gemm_batches(gemm);
    gemm->batch_rank = 0;
}

static laya_status run_matmul(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_operand *x = laya_step_operand(step, "x"), *y = laya_step_operand(step, "y");
    const laya_mil_type *left = &x->array->type, *right = &y->array->type, *out = &step->outputs[0]->type;
    bool left_turned = laya_step_bool(step, "transpose_x", false);
    bool right_turned = laya_step_bool(step, "transpose_y", false);
    uint32_t batch_rank = out->rank - (left->rank > 1) - (right->rank > 1);
    laya_gemm gemm = {.left = laya_gemm_operand(x), .right = laya_gemm_operand(y), .batch_rank = batch_rank};
    matrices a = set_strides(left, left_turned, true, batch_rank, &gemm.left);
    matrices b = set_strides(right, right_turned, false, batch_rank, &gemm.right);
    gemm.rows = a.rows;
    gemm.depth = a.cols;
    gemm.cols = gemm.out_stride = b.cols;
    size_t stride = gemm.rows * gemm.cols;
    for (uint32_t axis = batch_rank; axis-- > 0;) {
        gemm.batch_dims[axis] = (size_t)out->dims[axis];
        gemm.out_batch_strides[axis] = stride;
        stride *= gemm.batch_dims[axis];
    }
    join_batches(&gemm, left_turned, a.batch_rank, b.batch_rank);
    multiply(run, step, &gemm, x->array, y->array, NULL);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ einsum */

/* Strides of [n, r, h, c] (or [r, h, c]) as matrices [r, c] with the batch dimensions n and h. */
static void set_einsum_strides(const laya_mil_type *type, laya_gemm_matrix *matrix)
{
    const int64_t *dims = type->dims + (type->rank - 3);
    size_t rows = (size_t)dims[0], height = (size_t)dims[1], cols = (size_t)dims[2];
    matrix->row_stride = height * cols;
    matrix->col_stride = 1;
    matrix->batch_strides[0] = type->rank == 4 && type->dims[0] > 1 ? rows * height * cols : 0;
    matrix->batch_strides[1] = height > 1 ? cols : 0;
}

/* "nchw,nwhu->nchu" and "chw,whu->chu": one product for every n and h, each of which may be 1 in one operand. */
static laya_status run_einsum(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_operand *values = laya_step_parameter(step, "values")->operands;
    const laya_mil_type *left = &values[0].array->type, *right = &values[1].array->type;
    const laya_mil_type *out = &step->outputs[0]->type;
    uint32_t c = out->rank - 3, h = out->rank - 2, w = out->rank - 1;
    laya_gemm gemm = {.rows = (size_t)left->dims[c],
                      .depth = (size_t)left->dims[w],
                      .cols = (size_t)right->dims[w],
                      .left = laya_gemm_operand(&values[0]),
                      .right = laya_gemm_operand(&values[1]),
                      .batch_rank = 2,
                      .batch_dims = {out->rank == 4 ? (size_t)out->dims[0] : 1, (size_t)out->dims[h]}};
    set_einsum_strides(left, &gemm.left);
    set_einsum_strides(right, &gemm.right);
    gemm.out_stride = gemm.batch_dims[1] * gemm.cols;
    gemm.out_batch_strides[0] = gemm.rows * gemm.out_stride;
    gemm.out_batch_strides[1] = gemm.cols;
    multiply(run, step, &gemm, values[0].array, values[1].array, NULL);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ table */

static void product_needs(const laya_step *step, const laya_kernels *kernels, size_t *scratch, size_t *shared)
{
    (void)step;
    (void)kernels;
    *scratch = laya_gemm_scratch();
    *shared = 0;
}

const laya_implementation laya_product_implementations[] = {
    {.type = "conv", .run = laya_conv_run, .needs = product_needs, .raw = "weight"},
    {.type = "einsum", .run = run_einsum, .needs = product_needs},
    {.type = "linear", .run = run_linear, .needs = product_needs, .raw = "weight"},
    {.type = "matmul", .run = run_matmul, .needs = product_needs, .raw = "y"},
    {.type = "scaled_dot_product_attention", .run = laya_attention_run, .needs = laya_attention_needs},
    {0},
};
