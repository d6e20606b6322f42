/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the float32 engine share: one group of rows, its activations, and the operations on them. */
#ifndef LAYA_MODEL_COMPUTE_H
#define LAYA_MODEL_COMPUTE_H

#include "kernels/kernels.h"
#include "model/engine.h"

#define LAYA_QUERY_BLOCK 48u      /* queries that an attention task takes; a multiple of every table's mr */
#define LAYA_NO_WINDOW UINT32_MAX /* every query sees every key */
#define LAYA_HEAD_NORM_EPS 1e-5   /* PyTorch's default, used by the decision head and the scorer */

/* Up to LAYA_QUERY_BLOCK consecutive queries of one row. */
typedef struct laya_query_block {
    size_t row_start; /* first token of the row, in the group */
    uint32_t count;   /* tokens of the row */
    uint32_t first;   /* first query, in the row */
    uint32_t queries;
} laya_query_block;

/*
 * A group of rows, their tokens behind each other. Activation rows have a stride of whole cache lines, an odd number
 * of them, so that consecutive rows do not compete for the same lines of a cache; strides count floats and leave room
 * for whole tiles.
 */
typedef struct laya_compute {
    const laya_config *config;
    const laya_weights *weights;
    const laya_kernels *kernels;
    laya_pool *pool;
    laya_arena *arena;
    const laya_trace *trace;
    const laya_progress *progress;
    const laya_probe *probe;
    uint64_t done, total; /* tokens times encoder layers, of the whole run */

    laya_row *rows; /* of the group */
    size_t row_count;
    size_t tokens;      /* T */
    uint32_t longest;   /* tokens of the longest row of the run */
    uint32_t *position; /* [T] place of a token in its row */
    size_t *row_start;  /* [row_count] first token of a row */
    laya_query_block *blocks;
    size_t block_count;

    size_t stride;       /* of h, x and y */
    size_t wide_stride;  /* of wide */
    size_t inner_stride; /* of inner */
    float *h;            /* [T, d] the residual stream */
    float *x;            /* [T, d] normalized input of a product; result of attention */
    float *y;            /* [T, d] result of a product, still to be added to h */
    float *wide;         /* [T, max(3d, 2I, 4d)] queries, keys and values; inner layers */
    float *inner;        /* [T, I] gated inner layer */
    float *rotary[2];    /* [longest, head_size] local and global: cosines, then sines */
    float *gain;         /* [d] weights of the norm at hand */
    float *shift;        /* [d] its bias */
    float *bias;         /* [4d] bias of the product at hand */
    float *scratch;      /* [threads, scratch_stride] of one worker each */
    size_t scratch_stride;
} laya_compute;

/* Floats from one row to the next for `cols` values. */
size_t laya_row_stride(size_t cols);
/* Floats of scratch memory that the operations below need per worker. */
size_t laya_product_scratch(void);
size_t laya_attention_scratch(const laya_config *config, uint32_t longest);
float *laya_worker_scratch(const laya_compute *compute, unsigned worker);

/* A vector of the checkpoint, widened into `out`, which is returned. */
const float *laya_load_vector(const laya_tensor *tensor, float *out);

/*
 * C[M, N] = A[M, K] W[N, K]^T + bias[N] (NULL: none), then max(C, 0) where relu is set. Rows of C have room for whole
 * tiles.
 */
void laya_product(const laya_compute *compute, const float *a, size_t a_stride, size_t m, const laya_tensor *w,
                  const float *bias, bool relu, float *c, size_t c_stride);
/* Show the probe, if there is one, the rows that go into a weight. laya_product does this itself. */
void laya_probe_rows(const laya_compute *compute, const laya_tensor *w, const float *a, size_t a_stride, size_t m);

/* Rows of `out` = LayerNorm(row of in) * gain + shift (NULL: none); statistics in float64. out may be in. */
void laya_norm_row(const float *in, size_t d, const float *gain, const float *shift, double eps, float *out);
/* h += y (unless add is false), then x = LayerNorm(h) (unless gain is NULL), over all tokens. */
void laya_add_and_norm(const laya_compute *compute, bool add, const float *gain, const float *shift, double eps);

/*
 * x = attention over `wide`, whose rows are queries, keys and values, [heads, head size] each. Keys with |i - j| <=
 * window are seen; scores are scaled by 1 / sqrt(head size).
 */
void laya_attention(const laya_compute *compute, uint32_t heads, uint32_t head_size, uint32_t window);

/* Embedding, layers, final norm: writes x. Errors: MEMORY (of a trace). */
laya_status laya_encoder_run(laya_compute *compute, laya_error *error);
/* From x to the logits of all rows of the group. Errors: MEMORY, FORMAT (a logit is not finite). */
laya_status laya_head_run(laya_compute *compute, laya_error *error);

/* Give [rows, cols] values to the trace, if there is one. */
laya_status laya_trace_rows(const laya_compute *compute, const char *name, const float *values, size_t stride,
                            size_t rows, size_t cols, laya_error *error);

#endif
