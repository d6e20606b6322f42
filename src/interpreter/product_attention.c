/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled_dot_product_attention: softmax(query key^T / sqrt(E) + mask) value. One task takes some queries of one batch
 * index. Scores stay in fp32; with strict sums they and the weights are rounded to fp16, as the separate operations
 * would have it.
 */
#include "interpreter/product.h"

#include "base/error.h"

#include <math.h>

#define QUERY_BLOCK 48u /* queries of a task; a multiple of every mr */

typedef struct attention {
    const laya_run *run;
    laya_gemm scores, context; /* of all queries; tasks take some of their rows */
    size_t queries, keys, blocks;
    float scale;
    const laya_array *mask; /* NULL: none */
    size_t mask_batch_strides[LAYA_MIL_MAX_RANK];
    size_t mask_row_stride, mask_col_stride;
} attention;

/* Scores of query `row` to the weights of its keys. Keys that a bool mask hides get minus infinity. */
static void weigh(const attention *a, float *scores, size_t batch, size_t row)
{
    bool strict = a->scores.strict;
    for (size_t j = 0; j < a->keys; j++) scores[j] *= a->scale;
    if (strict) laya_round_fp16_array(scores, a->keys);
    if (a->mask) {
        size_t at = laya_gemm_offset(&a->scores, batch, a->mask_batch_strides) + row * a->mask_row_stride;
        for (size_t j = 0; j < a->keys; j++, at += a->mask_col_stride) {
            if (a->mask->values)
                scores[j] += a->mask->values[at];
            else if (!a->mask->integers[at])
                scores[j] = -INFINITY;
        }
        if (strict) laya_round_fp16_array(scores, a->keys);
    }
    a->run->kernels->softmax(scores, a->keys, 1.0f);
    if (strict) laya_round_fp16_array(scores, a->keys);
}

static void attend_task(void *argument, size_t index, unsigned worker)
{
    const attention *a = argument;
    float *scratch = a->run->scratch + worker * a->run->scratch_size;
    float *block = scratch + laya_gemm_scratch(); /* [QUERY_BLOCK, keys] */
    size_t batch = index / a->blocks, first = index % a->blocks * QUERY_BLOCK;
    size_t count = a->queries - first < QUERY_BLOCK ? a->queries - first : QUERY_BLOCK;
    laya_gemm scores = a->scores, context = a->context;
    scores.rows = context.rows = count;
    scores.left.values += first * scores.left.row_stride;
    scores.out = block;
    laya_gemm_one(a->run->kernels, &scores, batch, scratch);
    for (size_t row = 0; row < count; row++) weigh(a, block + row * a->keys, batch, first + row);
    context.left.values = block;
    context.out += first * context.out_stride;
    laya_gemm_one(a->run->kernels, &context, batch, scratch);
}

/* The mask's strides along the axes of the scores, 0 where it has one element for all of them. */
static void set_mask(attention *a, const laya_array *mask, uint32_t rank)
{
    size_t strides[LAYA_MIL_MAX_RANK] = {0}, stride = 1;
    for (uint32_t axis = mask->type.rank; axis-- > 0;) {
        size_t size = (size_t)mask->type.dims[axis];
        strides[rank - mask->type.rank + axis] = size == 1 ? 0 : stride;
        stride *= size;
    }
    for (uint32_t axis = 0; axis + 2 < rank; axis++) a->mask_batch_strides[axis] = strides[axis];
    a->mask_row_stride = strides[rank - 2];
    a->mask_col_stride = strides[rank - 1];
    a->mask = mask;
}

/* Matrices of [rows, cols] elements, one after the other; `rows` and `cols` are the strides of an element. */
static laya_gemm_matrix stacked(const laya_operand *operand, const laya_gemm *gemm, size_t size, size_t row_stride,
                                size_t col_stride)
{
    laya_gemm_matrix matrix = laya_gemm_operand(operand);
    matrix.row_stride = row_stride;
    matrix.col_stride = col_stride;
    for (uint32_t axis = gemm->batch_rank; axis-- > 0;) {
        matrix.batch_strides[axis] = size;
        size *= gemm->batch_dims[axis];
    }
    return matrix;
}

laya_status laya_attention_run(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_operand *query = laya_step_operand(step, "query"), *key = laya_step_operand(step, "key");
    const laya_operand *value = laya_step_operand(step, "value"), *mask = laya_step_operand(step, "attn_mask");
    const laya_mil_type *type = &query->array->type;
    uint32_t rank = type->rank;
    size_t size = (size_t)type->dims[rank - 1], made = (size_t)value->array->type.dims[rank - 1];
    attention a = {.run = run,
                   .queries = (size_t)type->dims[rank - 2],
                   .keys = (size_t)key->array->type.dims[rank - 2],
                   .scale = (float)(1 / sqrt((double)size))};
    a.blocks = (a.queries + QUERY_BLOCK - 1) / QUERY_BLOCK;
    a.scores = (laya_gemm){.depth = size, .cols = a.keys, .out_stride = a.keys, .batch_rank = rank - 2};
    for (uint32_t axis = 0; axis + 2 < rank; axis++) a.scores.batch_dims[axis] = (size_t)type->dims[axis];
    a.scores.strict = laya_product_is_strict(run, step);
    a.context = a.scores;
    a.scores.left = stacked(query, &a.scores, a.queries * size, size, 1);
    a.scores.right = stacked(key, &a.scores, a.keys * size, 1, size);
    a.context.depth = a.keys;
    a.context.cols = a.context.out_stride = made;
    a.context.left = (laya_gemm_matrix){.row_stride = a.keys, .col_stride = 1};
    a.context.right = stacked(value, &a.context, a.keys * made, made, 1);
    a.context.out = step->outputs[0]->values;
    size_t stride = a.queries * made;
    for (uint32_t axis = rank - 2; axis-- > 0;) {
        a.context.out_batch_strides[axis] = stride;
        stride *= a.context.batch_dims[axis];
    }
    if (mask) set_mask(&a, mask->array, rank);
    laya_pool_run(run->pool, a.blocks * laya_gemm_batches(&a.scores), attend_task, &a);
    return LAYA_OK;
}

void laya_attention_needs(const laya_step *step, const laya_kernels *kernels, size_t *scratch, size_t *shared)
{
    (void)kernels;
    const laya_mil_type *key = &laya_step_operand(step, "key")->array->type;
    *scratch = laya_gemm_scratch() + (size_t)QUERY_BLOCK * (size_t)key->dims[key->rank - 2];
    *shared = 0;
}
