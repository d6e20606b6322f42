/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder: embedding, layers of attention and gated MLP, final norm. docs/MODEL.md describes the mathematics. */
#include "model/compute.h"

#include "base/error.h"

#include <stdio.h>

#define ROW_TASK 8u /* tokens of a task that works row by row */

static size_t row_tasks(const laya_compute *compute)
{
    return (compute->tokens + ROW_TASK - 1) / ROW_TASK;
}

static size_t task_end(const laya_compute *compute, size_t index)
{
    return (index + 1) * ROW_TASK < compute->tokens ? (index + 1) * ROW_TASK : compute->tokens;
}

/* ------------------------------------------------------------------ embedding */

/* h = LayerNorm(embedding[id]); gain and shift are loaded */
static void embed_row(void *argument, size_t index, unsigned worker)
{
    (void)worker;
    const laya_compute *compute = argument;
    const laya_row *row = &compute->rows[index];
    size_t d = compute->config->hidden_size;
    const float *shift = compute->weights->embedding_norm_bias.data ? compute->shift : NULL;
    for (size_t t = 0; t < row->count; t++) {
        float *h = compute->h + (compute->row_start[index] + t) * compute->stride;
        laya_tensor_widen(&compute->weights->embedding, (size_t)row->ids[t] * d, d, h);
        laya_norm_row(h, d, compute->gain, shift, compute->config->norm_eps, h);
    }
}

/* ------------------------------------------------------------------ rotary embedding */

typedef struct rotary_job {
    const laya_compute *compute;
    const float *table; /* [positions, head_size]: cosines, then sines */
} rotary_job;

/*
 * Queries and keys in place, half-split: for channel c < s / 2 of a head,
 * out[c] = x[c] cos - x[c + s/2] sin, out[c + s/2] = x[c + s/2] cos + x[c] sin.
 */
static void rotary_task(void *argument, size_t index, unsigned worker)
{
    (void)worker;
    const rotary_job *job = argument;
    const laya_compute *compute = job->compute;
    size_t size = compute->config->head_size, half = size / 2;
    size_t heads = 2 * (size_t)compute->config->attention_heads; /* of queries, then of keys */
    for (size_t t = index * ROW_TASK; t < task_end(compute, index); t++) {
        const float *cosines = job->table + compute->position[t] * size, *sines = cosines + half;
        for (size_t head = 0; head < heads; head++) {
            float *low = compute->wide + t * compute->wide_stride + head * size, *high = low + half;
            for (size_t c = 0; c < half; c++) {
                float a = low[c], b = high[c];
                low[c] = a * cosines[c] - b * sines[c];
                high[c] = b * cosines[c] + a * sines[c];
            }
        }
    }
}

/* ------------------------------------------------------------------ gated MLP */

/* inner = GELU(first half of wide) * second half */
static void gate_task(void *argument, size_t index, unsigned worker)
{
    (void)worker;
    const laya_compute *compute = argument;
    size_t size = compute->config->intermediate_size;
    for (size_t t = index * ROW_TASK; t < task_end(compute, index); t++) {
        const float *u = compute->wide + t * compute->wide_stride;
        compute->kernels->gelu(u, u + size, compute->inner + t * compute->inner_stride, size);
    }
}

/* ------------------------------------------------------------------ all */

/* h += y, then x = LayerNorm(h) */
static void add_and_norm(const laya_compute *compute, const laya_tensor *gain, const laya_tensor *bias)
{
    const float *shift = bias->data ? laya_load_vector(bias, compute->shift) : NULL;
    laya_add_and_norm(compute, true, laya_load_vector(gain, compute->gain), shift, compute->config->norm_eps);
}

static void report_layer(laya_compute *compute)
{
    const laya_progress *progress = compute->progress;
    compute->done += compute->tokens;
    if (progress && progress->report) progress->report(progress->user, compute->done, compute->total);
}

laya_status laya_encoder_run(laya_compute *compute, laya_error *error)
{
    const laya_config *config = compute->config;
    const laya_weights *weights = compute->weights;
    size_t d = config->hidden_size;
    char name[48];
    laya_load_vector(&weights->embedding_norm, compute->gain);
    if (weights->embedding_norm_bias.data) laya_load_vector(&weights->embedding_norm_bias, compute->shift);
    laya_pool_run(compute->pool, compute->row_count, embed_row, compute);
    LAYA_TRY(laya_trace_rows(compute, "embeddings", compute->h, compute->stride, compute->tokens, d, error));
    for (uint32_t layer = 0; layer < config->encoder_layers; layer++) {
        const laya_encoder_weights *w = &weights->encoder[layer];
        bool global = config->layer_is_global[layer];
        const float *in = compute->h; /* layer 0 has no norm before its attention */
        if (layer) {
            add_and_norm(compute, &w->attn_norm, &w->attn_norm_bias);
            snprintf(name, sizeof name, "encoder.layer.%lu", (unsigned long)layer - 1);
            LAYA_TRY(laya_trace_rows(compute, name, compute->h, compute->stride, compute->tokens, d, error));
            in = compute->x;
        }
        laya_product(compute, in, compute->stride, compute->tokens, &w->wqkv, NULL, false, compute->wide,
                     compute->wide_stride);
        rotary_job rotary = {compute, compute->rotary[global]};
        laya_pool_run(compute->pool, row_tasks(compute), rotary_task, &rotary);
        laya_attention(compute, config->attention_heads, config->head_size,
                       global ? LAYA_NO_WINDOW : config->local_attention / 2);
        laya_product(compute, compute->x, compute->stride, compute->tokens, &w->attn_out, NULL, false, compute->y,
                     compute->stride);
        add_and_norm(compute, &w->mlp_norm, &w->mlp_norm_bias);
        laya_product(compute, compute->x, compute->stride, compute->tokens, &w->mlp_in, NULL, false, compute->wide,
                     compute->wide_stride);
        laya_pool_run(compute->pool, row_tasks(compute), gate_task, compute);
        laya_product(compute, compute->inner, compute->inner_stride, compute->tokens, &w->mlp_out, NULL, false,
                     compute->y, compute->stride);
        report_layer(compute);
    }
    add_and_norm(compute, &weights->final_norm, &weights->final_norm_bias);
    snprintf(name, sizeof name, "encoder.layer.%lu", (unsigned long)config->encoder_layers - 1);
    LAYA_TRY(laya_trace_rows(compute, name, compute->h, compute->stride, compute->tokens, d, error));
    return laya_trace_rows(compute, "encoder.final_norm", compute->x, compute->stride, compute->tokens, d, error);
}
