/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of matrix products on the engine's tiles: what conv, linear, matmul, einsum and attention have in common.
 *
 * A sum is taken over k in order, in blocks of LAYA_KERNEL_KC that start at multiples of it: each block from zero, then
 * added to the sum of the blocks before. Neither threads nor the sizes of tasks change that order. Strict sums run over
 * k in order without blocks: each product in fp32 (exact for factors of fp16), each addition in fp32 and then rounded to
 * fp16.
 */
#ifndef LAYA_INTERPRETER_PRODUCT_H
#define LAYA_INTERPRETER_PRODUCT_H

#include "interpreter/step.h"

/* Floats of scratch that a worker needs. */
size_t laya_gemm_scratch(void);

/* Element (r, c) of matrix `batch`: values[r * row_stride + c * col_stride + sum of batch index * batch_stride]. */
typedef struct laya_gemm_matrix {
    const float *values;
    const unsigned char *bytes; /* where values is NULL: the same elements as stored */
    laya_dtype dtype;           /* of bytes */
    size_t row_stride, col_stride;
    size_t batch_strides[LAYA_MIL_MAX_RANK];
} laya_gemm_matrix;

/* Fills panel[k * nr + j] with element (k0 + k, col + j) of the right matrix; zeros for cols <= j < nr. */
typedef struct laya_gemm_block {
    size_t k0, depth, col, cols, nr;
} laya_gemm_block;
typedef void (*laya_gemm_pack)(const void *user, const float *right, const laya_gemm_block *block, float *panel);

/* out[rows, cols] = left[rows, depth] right[depth, cols] + bias[rows, cols], for every index of the batch. */
typedef struct laya_gemm {
    size_t rows, depth, cols;
    uint32_t batch_rank;
    size_t batch_dims[LAYA_MIL_MAX_RANK];
    laya_gemm_matrix left, right; /* in each, one of the strides is 1 */
    laya_gemm_matrix bias;        /* values NULL: none */
    laya_gemm_pack pack;          /* of the right matrix, from its values of the batch; NULL: as its strides say */
    const void *pack_user;
    float *out; /* element (r, c): out[r * out_stride + c], and batch strides; overlaps no operand */
    size_t out_stride;
    size_t out_batch_strides[LAYA_MIL_MAX_RANK];
    bool strict;
} laya_gemm;

/* All products, on the run's threads. */
void laya_gemm_run(const laya_run *run, const laya_gemm *gemm);
/* One product of the stack, by the worker who owns `scratch`. */
void laya_gemm_one(const laya_kernels *kernels, const laya_gemm *gemm, size_t batch, float *scratch);

/* Where element (0, 0) of matrix `batch` lies, by the strides of one operand. */
size_t laya_gemm_offset(const laya_gemm *gemm, size_t batch, const size_t *strides);
size_t laya_gemm_batches(const laya_gemm *gemm);

/* An operand as a matrix without strides: its values, or its stored bytes. */
laya_gemm_matrix laya_gemm_operand(const laya_operand *operand);
/* Whether sums of this step are rounded to fp16. */
bool laya_product_is_strict(const laya_run *run, const laya_step *step);

/* Runs of product_conv.c and product_attention.c. */
laya_status laya_conv_run(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_attention_run(const laya_run *run, const laya_step *step, laya_error *error);
void laya_attention_needs(const laya_step *step, const laya_kernels *kernels, size_t *scratch, size_t *shared);

#endif
