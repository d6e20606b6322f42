/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network: token rows in, option logits and action logits out.
 *
 * Rows are concatenated without padding, several questions at a time. Sums run in a fixed order, so that a row's
 * logits have the same bits alone, among others, and for any number of threads.
 */
#ifndef LAYA_MODEL_ENGINE_H
#define LAYA_MODEL_ENGINE_H

#include "base/memory.h"
#include "base/threads.h"
#include "laya/predict.h"
#include "model/config.h"
#include "model/weights.h"

#define LAYA_MAX_ACTIONS 256
#define LAYA_GROUP_TOKENS 1024 /* a longer row is a group of its own */

/* One question's row. `ids` are below vocab_size, `markers` below `count`; 1 <= count <= max_positions. */
typedef struct laya_row {
    const uint32_t *ids; /* [count] */
    uint32_t count;
    const uint32_t *markers; /* [options] positions of the mask tokens, no more than count */
    uint32_t options;        /* >= 1 */
    uint32_t type;           /* row of the type embedding: 0 choice, 1 score, 2 noul */
    double *logits;          /* [options], written; the float32 engine's are exact float32 values */
    double *action_logits;   /* [actions], written; likewise */
} laya_row;

/*
 * Sees intermediate values in tests: `name` as in the golden traces ("embeddings", "encoder.layer.0",
 * "encoder.final_norm", "head.input", "head.layer.0", "scorer.input"), values [rows, d] of the row that is being
 * computed. Traces need a single row.
 */
typedef struct laya_trace {
    void *user;
    void (*see)(void *user, const char *name, const double *values, size_t rows, size_t cols);
} laya_trace;

/*
 * Sees what goes into every dense weight of the float32 engine: rows of weight->cols values. In a fixed order, whatever
 * the number of threads, on the thread that runs the engine.
 */
typedef struct laya_probe {
    void *user;
    void (*see)(void *user, const laya_tensor *weight, const float *rows, size_t stride, size_t count);
} laya_probe;

typedef struct laya_network {
    const laya_config *config;
    const laya_weights *weights;
    const struct laya_kernels *kernels; /* NULL: the best that this processor has, looked up in each run */
    const laya_progress *progress;      /* NULL: none */
    const laya_interrupt *interrupt;    /* asked between groups of rows; NULL: none */
    const laya_probe *probe;            /* of the float32 engine; NULL: none */
} laya_network;

/* LAYA_ERROR_STOPPED when the caller asks to stop. `interrupt` may be NULL. */
laya_status laya_check_interrupt(const laya_interrupt *interrupt, laya_error *error);
/* Every tensor must be there. Errors: UNSUPPORTED (weights of laya_weights_bind_host). */
laya_status laya_check_weights(const laya_weights *weights, laya_error *error);
/* The rules of laya_row. Errors: ARGUMENT. */
laya_status laya_check_row(const laya_config *config, const laya_row *row, laya_error *error);

/*
 * float32 engine. Working memory comes from `arena` (not reset here). Rows go through the layers in groups of about
 * LAYA_GROUP_TOKENS tokens, which bounds that memory. `trace` may be NULL. Errors: ARGUMENT (a row breaks the rules
 * above), MEMORY, FORMAT when a logit is not finite.
 */
laya_status laya_engine_run(const laya_network *network, laya_row *rows, size_t count, laya_pool *pool,
                            laya_arena *arena, const laya_trace *trace, laya_error *error);

/*
 * Action logits of rows whose option logits are there. `states` are the hidden states of the rows' first tokens, [d]
 * each. Working memory comes from `arena`. Errors: MEMORY, FORMAT when a logit is not finite.
 */
laya_status laya_action_head_run(const laya_config *config, const laya_weights *weights, laya_row *rows,
                                 const float *const *states, size_t count, laya_pool *pool, laya_arena *arena,
                                 laya_error *error);

/* The same mathematics in float64 with plain loops, one row at a time, one thread: the oracle. */
laya_status laya_reference_run(const laya_network *network, laya_row *rows, size_t count, laya_arena *arena,
                               const laya_trace *trace, laya_error *error);

#endif
