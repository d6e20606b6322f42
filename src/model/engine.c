/* SPDX-License-Identifier: Apache-2.0 */
/* The float32 engine: rows are checked, gathered into groups, and sent through encoder and head. */
#include "model/engine.h"

#include "base/error.h"
#include "model/compute.h"
#include "model/rotary.h"

#include <math.h>

/* ------------------------------------------------------------------ checks */

laya_status laya_check_interrupt(const laya_interrupt *interrupt, laya_error *error)
{
    if (!interrupt || !interrupt->requested || !interrupt->requested(interrupt->user)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_STOPPED, "stopped");
}

laya_status laya_check_weights(const laya_weights *weights, laya_error *error)
{
    if (weights->encoder) return LAYA_OK;
    return laya_fail(
        error, LAYA_ERROR_UNSUPPORTED,
        "these are the host's weights of a standalone bundle, without the encoder; the CPU engine needs a "
        "complete checkpoint");
}

laya_status laya_check_row(const laya_config *config, const laya_row *row, laya_error *error)
{
    if (row->count < 1 || row->count > config->max_positions) {
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "a row has %lu tokens, the encoder takes 1 to %lu",
                         (unsigned long)row->count, (unsigned long)config->max_positions);
    }
    if (row->options < 1 || row->options > row->count) {
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "a row of %lu tokens has %lu markers", (unsigned long)row->count,
                         (unsigned long)row->options);
    }
    if (row->type > 2)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "no question type has number %lu", (unsigned long)row->type);
    for (uint32_t t = 0; t < row->count; t++) {
        if (row->ids[t] < config->vocab_size) continue;
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "token id %lu is outside the model's vocabulary of %lu",
                         (unsigned long)row->ids[t], (unsigned long)config->vocab_size);
    }
    for (uint32_t o = 0; o < row->options; o++) {
        if (row->markers[o] < row->count) continue;
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "marker %lu lies outside a row of %lu tokens",
                         (unsigned long)row->markers[o], (unsigned long)row->count);
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ trace */

laya_status laya_trace_rows(const laya_compute *compute, const char *name, const float *values, size_t stride,
                            size_t rows, size_t cols, laya_error *error)
{
    if (!compute->trace) return LAYA_OK;
    laya_arena_mark mark = laya_arena_save(compute->arena);
    double *copy = laya_arena_alloc(compute->arena, rows, cols * sizeof *copy);
    if (!copy) return laya_fail_memory(error, rows * cols * sizeof *copy);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) copy[i * cols + j] = (double)values[i * stride + j];
    }
    compute->trace->see(compute->trace->user, name, copy, rows, cols);
    laya_arena_restore(compute->arena, mark);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ memory */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Rows of the group that begins at `first`: as many as fit into LAYA_GROUP_TOKENS, at least one. */
static size_t group_rows(const laya_row *rows, size_t count, size_t first, size_t *tokens)
{
    size_t end = first + 1;
    *tokens = rows[first].count;
    while (end < count && *tokens + rows[end].count <= LAYA_GROUP_TOKENS) *tokens += rows[end++].count;
    return end - first;
}

/* A block from the arena; where there is none, its size goes to `failed`. After a failure nothing more is taken. */
static void *take(laya_arena *arena, size_t rows, size_t cols, size_t size, size_t *failed)
{
    if (*failed) return NULL;
    size_t values, bytes;
    if (!laya_mul_size(rows, cols, &values) || !laya_mul_size(values, size, &bytes)) bytes = SIZE_MAX;
    void *block = bytes == SIZE_MAX ? NULL : laya_arena_alloc(arena, bytes, 1);
    if (!block) *failed = bytes;
    return block;
}

/* Everything that the largest group needs. */
static laya_status take_memory(laya_compute *compute, laya_row *rows, size_t count, laya_error *error)
{
    const laya_config *config = compute->config;
    size_t d = config->hidden_size, most_tokens = 0, most_rows = 0, most_blocks = 0, tokens;
    for (size_t first = 0; first < count;) {
        size_t in_group = group_rows(rows, count, first, &tokens);
        most_tokens = larger(most_tokens, tokens);
        most_rows = larger(most_rows, in_group);
        most_blocks = larger(most_blocks, tokens / LAYA_QUERY_BLOCK + in_group);
        for (size_t r = first; r < first + in_group; r++) {
            if (rows[r].count > compute->longest) compute->longest = rows[r].count;
        }
        first += in_group;
    }
    compute->stride = laya_row_stride(d);
    size_t widest = larger(2 * (size_t)config->intermediate_size, (config->head_layers ? 4 : 3) * d);
    compute->wide_stride = laya_row_stride(widest);
    compute->inner_stride = laya_row_stride(config->intermediate_size);
    compute->scratch_stride = larger(larger(laya_product_scratch(), laya_attention_scratch(config, compute->longest)),
                                     d + 16);
    compute->scratch_stride = (compute->scratch_stride + 15) / 16 * 16;

    laya_arena *arena = compute->arena;
    size_t failed = 0;
    compute->position = take(arena, most_tokens, 1, sizeof *compute->position, &failed);
    compute->row_start = take(arena, most_rows, 1, sizeof *compute->row_start, &failed);
    compute->blocks = take(arena, most_blocks, 1, sizeof *compute->blocks, &failed);
    compute->h = take(arena, most_tokens, compute->stride, sizeof(float), &failed);
    compute->x = take(arena, most_tokens, compute->stride, sizeof(float), &failed);
    compute->y = take(arena, most_tokens, compute->stride, sizeof(float), &failed);
    compute->wide = take(arena, most_tokens, compute->wide_stride, sizeof(float), &failed);
    compute->inner = take(arena, most_tokens, compute->inner_stride, sizeof(float), &failed);
    compute->rotary[0] = take(arena, compute->longest, config->head_size, sizeof(float), &failed);
    compute->rotary[1] = take(arena, compute->longest, config->head_size, sizeof(float), &failed);
    compute->gain = take(arena, d, 1, sizeof(float), &failed);
    compute->shift = take(arena, d, 1, sizeof(float), &failed);
    compute->bias = take(arena, d, 4, sizeof(float), &failed);
    compute->scratch = take(arena, laya_pool_threads(compute->pool), compute->scratch_stride, sizeof(float), &failed);
    return failed ? laya_fail_memory(error, failed) : LAYA_OK;
}

/* ------------------------------------------------------------------ tables of a run and of a group */

typedef struct rotary_job {
    laya_compute *compute;
    double theta[2];
} rotary_job;

/* Angles in float64, cosines and sines rounded to float32. */
static void rotary_table_task(void *argument, size_t position, unsigned worker)
{
    (void)worker;
    const rotary_job *job = argument;
    size_t size = job->compute->config->head_size, half = size / 2;
    for (int global = 0; global < 2; global++) {
        float *row = job->compute->rotary[global] + position * size;
        for (size_t c = 0; c < half; c++) {
            double angle = laya_rotary_angle(job->theta[global], position, c, size);
            row[c] = (float)cos(angle);
            row[half + c] = (float)sin(angle);
        }
    }
}

static void place_rows(laya_compute *compute)
{
    compute->block_count = 0;
    size_t at = 0;
    for (size_t r = 0; r < compute->row_count; r++) {
        uint32_t count = compute->rows[r].count;
        compute->row_start[r] = at;
        for (uint32_t first = 0; first < count; first += LAYA_QUERY_BLOCK) {
            uint32_t queries = count - first < LAYA_QUERY_BLOCK ? count - first : LAYA_QUERY_BLOCK;
            compute->blocks[compute->block_count++] = (laya_query_block){at, count, first, queries};
        }
        for (uint32_t t = 0; t < count; t++) compute->position[at++] = t;
    }
    compute->tokens = at;
}

/* ------------------------------------------------------------------ run */

laya_status laya_engine_run(const laya_network *network, laya_row *rows, size_t count, laya_pool *pool,
                            laya_arena *arena, const laya_trace *trace, laya_error *error)
{
    if (count == 0) return LAYA_OK;
    if (trace && count != 1)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "a trace needs a single row, got %zu", count);
    LAYA_TRY(laya_check_weights(network->weights, error));
    for (size_t r = 0; r < count; r++) LAYA_TRY(laya_check_row(network->config, &rows[r], error));
    laya_compute compute = {
        .config = network->config,
        .weights = network->weights,
        .kernels = network->kernels ? network->kernels : laya_kernels_select(LAYA_CPU_ALL),
        .pool = pool,
        .arena = arena,
        .trace = trace,
        .progress = network->progress,
        .probe = network->probe,
    };
    for (size_t r = 0; r < count; r++) compute.total += (uint64_t)rows[r].count * network->config->encoder_layers;
    LAYA_TRY(take_memory(&compute, rows, count, error));
    rotary_job rotary = {&compute, {network->config->local_rope_theta, network->config->global_rope_theta}};
    laya_pool_run(pool, compute.longest, rotary_table_task, &rotary);
    for (size_t first = 0; first < count; first += compute.row_count) {
        size_t tokens;
        LAYA_TRY(laya_check_interrupt(network->interrupt, error));
        compute.rows = rows + first;
        compute.row_count = group_rows(rows, count, first, &tokens);
        place_rows(&compute);
        laya_arena_mark mark = laya_arena_save(arena);
        LAYA_TRY(laya_encoder_run(&compute, error));
        LAYA_TRY(laya_head_run(&compute, error));
        laya_arena_restore(arena, mark);
    }
    return LAYA_OK;
}
