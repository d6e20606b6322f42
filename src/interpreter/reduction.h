/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and extrema over axes; included by interpreter/reduction.c and interpreter/norm.c only. */
#ifndef LAYA_INTERPRETER_REDUCTION_H
#define LAYA_INTERPRETER_REDUCTION_H

#include "interpreter/step.h"

#define LAYA_REDUCE_COLUMNS 128 /* results that are computed together, at most */

/*
 * The axes of a tensor as those that are kept and those that are reduced. Axes of one element are left out, neighbours
 * of one kind are joined. The last one is the row, of contiguous elements; the others are numbered from the last one.
 */
typedef struct laya_axes {
    uint32_t kept_rank, reduced_rank;
    size_t kept_dims[LAYA_MIL_MAX_RANK], kept_strides[LAYA_MIL_MAX_RANK];
    size_t reduced_dims[LAYA_MIL_MAX_RANK], reduced_strides[LAYA_MIL_MAX_RANK];
    bool row_reduced;
    size_t row;
    size_t kept;    /* results, without those of a kept row */
    size_t reduced; /* elements of one result, without those of a reduced row */
} laya_axes;

void laya_axes_set(laya_axes *axes, const laya_mil_type *type, const bool *reduced);
/* Where element `index` of the kept, or of the reduced axes begins. */
size_t laya_axes_kept(const laya_axes *axes, size_t index);
size_t laya_axes_reduced(const laya_axes *axes, size_t index);
/* The axes that an operation's list names; all when it is left out. */
void laya_axes_chosen(const laya_step *step, uint32_t rank, bool *reduced);

/* totals[i] = totals[i] and x[i], joined as the fold does; shift[i] is subtracted from x[i] before by some. */
typedef void (*laya_fold)(const float *x, const float *shift, float *totals, size_t count);

void laya_fold_add(const float *x, const float *shift, float *totals, size_t count);
void laya_fold_add_strict(const float *x, const float *shift, float *totals, size_t count);
/* Of x - shift. */
void laya_fold_deviation(const float *x, const float *shift, float *totals, size_t count);
void laya_fold_deviation_strict(const float *x, const float *shift, float *totals, size_t count);

typedef struct laya_reduce {
    laya_fold fold;
    laya_fold join; /* of two totals; add, max … */
    float identity;
    bool in_order; /* one sum in the order of the elements, as strict ones are; else partial sums */
} laya_reduce;

/*
 * Fold all that goes into `count` <= LAYA_REDUCE_COLUMNS neighbouring results; `x` is the first element of the first
 * one. count is 1 where the row is reduced. The order of additions depends on the shape alone.
 */
void laya_reduce_run(const laya_reduce *reduce, const laya_axes *axes, const float *x, const float *shift,
                     float *totals, size_t count);

/*
 * Results in blocks: `block` neighbours of a kept row (1 where the row is reduced), so that all threads have some.
 */
typedef struct laya_blocks {
    size_t block;   /* results of one, at most */
    size_t per_row; /* blocks of a row */
    size_t count;   /* of all blocks */
    size_t cost;    /* elements that go into one */
} laya_blocks;

/* `most`: results of a block, a power of 2 up to LAYA_REDUCE_COLUMNS. */
laya_blocks laya_blocks_of(const laya_axes *axes, const laya_run *run, size_t most);
/* The place of block `index`: the kept index, the first column of the row, the number of results. */
void laya_block_at(const laya_blocks *blocks, const laya_axes *axes, size_t index, size_t *kept, size_t *column,
                   size_t *count);

/* Operations of norm.c, for the table. */
laya_status laya_run_layer_norm(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_run_instance_norm(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_run_batch_norm(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_run_l2_norm(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_run_softmax(const laya_run *run, const laya_step *step, laya_error *error);
void laya_softmax_needs(const laya_step *step, const laya_kernels *kernels, size_t *scratch, size_t *shared);

#endif
