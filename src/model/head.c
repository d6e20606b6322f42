/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision head: its layers, the scorer at the markers. docs/MODEL.md describes the mathematics.
 */
#include "model/compute.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ABSENT SIZE_MAX

/* Where a token of the group stands in h: the last layer keeps only the rows that are read. */
typedef struct row_map {
    size_t *place; /* [T] row in h, or ABSENT */
} row_map;

/* ------------------------------------------------------------------ layers */

static void add_type_embedding(laya_compute *compute)
{
    size_t d = compute->config->hidden_size;
    for (size_t r = 0; r < compute->row_count; r++) {
        const laya_row *row = &compute->rows[r];
        laya_tensor_widen(&compute->weights->type_embedding, row->type * d, d, compute->shift);
        for (size_t t = compute->row_start[r]; t < compute->row_start[r] + row->count; t++) {
            const float *x = compute->x + t * compute->stride;
            float *h = compute->h + t * compute->stride;
            for (size_t i = 0; i < d; i++) h[i] = x[i] + compute->shift[i];
        }
    }
}

/*
 * After the last layer only each row's first token and its markers are read, and what follows attention works row by
 * row. So move these rows of h and x together; their values stay the same bits.
 */
static void keep_rows_that_are_read(laya_compute *compute, row_map map)
{
    size_t d = compute->config->hidden_size, tokens = 0;
    for (size_t t = 0; t < compute->tokens; t++) map.place[t] = ABSENT;
    for (size_t r = 0; r < compute->row_count; r++) {
        const laya_row *row = &compute->rows[r];
        map.place[compute->row_start[r]] = 0;
        for (uint32_t o = 0; o < row->options; o++) map.place[compute->row_start[r] + row->markers[o]] = 0;
    }
    for (size_t t = 0; t < compute->tokens; t++) {
        if (map.place[t] == ABSENT) continue;
        map.place[t] = tokens;
        if (t != tokens) {
            memcpy(compute->h + tokens * compute->stride, compute->h + t * compute->stride, d * sizeof *compute->h);
            memcpy(compute->x + tokens * compute->stride, compute->x + t * compute->stride, d * sizeof *compute->x);
        }
        tokens++;
    }
    compute->tokens = tokens;
}

static laya_status run_layers(laya_compute *compute, row_map map, laya_error *error)
{
    const laya_config *config = compute->config;
    size_t d = config->hidden_size;
    char name[32];
    for (uint32_t layer = 0; layer < config->head_layers; layer++) {
        const laya_head_weights *w = &compute->weights->head[layer];
        laya_load_vector(&w->norm1, compute->gain);
        laya_add_and_norm(compute, layer > 0, compute->gain, laya_load_vector(&w->norm1_bias, compute->shift),
                          LAYA_HEAD_NORM_EPS);
        if (layer) {
            snprintf(name, sizeof name, "head.layer.%lu", (unsigned long)layer - 1);
            LAYA_TRY(laya_trace_rows(compute, name, compute->h, compute->stride, compute->tokens, d, error));
        }
        laya_product(compute, compute->x, compute->stride, compute->tokens, &w->in_proj,
                     laya_load_vector(&w->in_proj_bias, compute->bias), false, compute->wide, compute->wide_stride);
        laya_attention(compute, config->head_heads, config->hidden_size / config->head_heads, LAYA_NO_WINDOW);
        if (layer + 1 == config->head_layers && !compute->trace) keep_rows_that_are_read(compute, map);
        laya_product(compute, compute->x, compute->stride, compute->tokens, &w->out_proj,
                     laya_load_vector(&w->out_proj_bias, compute->bias), false, compute->y, compute->stride);
        laya_load_vector(&w->norm2, compute->gain);
        laya_add_and_norm(compute, true, compute->gain, laya_load_vector(&w->norm2_bias, compute->shift),
                          LAYA_HEAD_NORM_EPS);
        laya_product(compute, compute->x, compute->stride, compute->tokens, &w->linear1,
                     laya_load_vector(&w->linear1_bias, compute->bias), true, compute->wide, compute->wide_stride);
        laya_product(compute, compute->wide, compute->wide_stride, compute->tokens, &w->linear2,
                     laya_load_vector(&w->linear2_bias, compute->bias), false, compute->y, compute->stride);
    }
    if (config->head_layers == 0) return LAYA_OK;
    laya_add_and_norm(compute, true, NULL, NULL, 0);
    snprintf(name, sizeof name, "head.layer.%lu", (unsigned long)config->head_layers - 1);
    return laya_trace_rows(compute, name, compute->h, compute->stride, compute->tokens, d, error);
}

/* ------------------------------------------------------------------ scorer */

/* logit = w3 . GELU(W1 LayerNorm(h[marker]) + b1) + b3, all options of the group in one product. */
static laya_status run_scorer(laya_compute *compute, row_map map, laya_error *error)
{
    const laya_weights *w = compute->weights;
    size_t d = compute->config->hidden_size, options = 0;
    laya_load_vector(&w->scorer_norm, compute->gain);
    laya_load_vector(&w->scorer_norm_bias, compute->shift);
    for (size_t r = 0; r < compute->row_count; r++) {
        const laya_row *row = &compute->rows[r];
        for (uint32_t o = 0; o < row->options; o++, options++) {
            const float *h = compute->h + map.place[compute->row_start[r] + row->markers[o]] * compute->stride;
            memcpy(compute->y + options * compute->stride, h, d * sizeof *h);
            laya_norm_row(h, d, compute->gain, compute->shift, LAYA_HEAD_NORM_EPS,
                          compute->x + options * compute->stride);
        }
    }
    LAYA_TRY(laya_trace_rows(compute, "scorer.input", compute->y, compute->stride, options, d, error));
    laya_product(compute, compute->x, compute->stride, options, &w->scorer_in,
                 laya_load_vector(&w->scorer_in_bias, compute->bias), false, compute->wide, compute->wide_stride);
    laya_load_vector(&w->scorer_out, compute->gain);
    float last_bias;
    laya_tensor_widen(&w->scorer_out_bias, 0, 1, &last_bias);
    options = 0;
    for (size_t r = 0; r < compute->row_count; r++) {
        const laya_row *row = &compute->rows[r];
        for (uint32_t o = 0; o < row->options; o++, options++) {
            float *hidden = compute->wide + options * compute->wide_stride;
            compute->kernels->gelu(hidden, NULL, hidden, d);
            double sum = 0;
            for (size_t i = 0; i < d; i++) sum += (double)hidden[i] * (double)compute->gain[i];
            row->logits[o] = (double)(float)(sum + (double)last_bias);
            if (!isfinite(row->logits[o])) {
                return laya_fail(error, LAYA_ERROR_FORMAT,
                                 "the option logits are not finite; the weights hold NaN or infinite values");
            }
        }
    }
    laya_probe_rows(compute, &w->scorer_out, compute->wide, compute->wide_stride, options);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the whole */

static laya_status run_action_head(const laya_compute *compute, row_map map, laya_error *error)
{
    const float **states = laya_arena_alloc(compute->arena, compute->row_count, sizeof *states);
    if (!states) return laya_fail_memory(error, compute->row_count * sizeof *states);
    for (size_t r = 0; r < compute->row_count; r++)
        states[r] = compute->h + map.place[compute->row_start[r]] * compute->stride;
    return laya_action_head_run(compute->config, compute->weights, compute->rows, states, compute->row_count,
                                compute->pool, compute->arena, error);
}

laya_status laya_head_run(laya_compute *compute, laya_error *error)
{
    size_t d = compute->config->hidden_size;
    row_map map = {laya_arena_alloc(compute->arena, compute->tokens, sizeof *map.place)};
    if (!map.place) return laya_fail_memory(error, compute->tokens * sizeof *map.place);
    for (size_t t = 0; t < compute->tokens; t++) map.place[t] = t;
    add_type_embedding(compute);
    LAYA_TRY(laya_trace_rows(compute, "head.input", compute->h, compute->stride, compute->tokens, d, error));
    LAYA_TRY(run_layers(compute, map, error));
    LAYA_TRY(run_scorer(compute, map, error));
    return run_action_head(compute, map, error);
}
