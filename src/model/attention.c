/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of one row, one head and one block of queries per task. Scores exist only for the keys that some query of
 * the block sees, in the worker's scratch memory; there is no mask.
 */
#include "model/compute.h"

#include <math.h>
#include <string.h>

#define TILE LAYA_KERNEL_MAX_NR

typedef struct attention_job {
    const laya_compute *compute;
    uint32_t heads;
    uint32_t head_size;
    uint32_t window;
    float scale;
} attention_job;

static size_t round_up(size_t count)
{
    return (count + TILE - 1) / TILE * TILE;
}

/* Panel of keys or values, scores, result. */
static size_t scratch_floats(size_t head_size, size_t longest)
{
    size_t deepest = head_size > LAYA_KERNEL_KC ? head_size : LAYA_KERNEL_KC;
    return deepest * TILE + LAYA_QUERY_BLOCK * round_up(longest) + LAYA_QUERY_BLOCK * round_up(head_size);
}

size_t laya_attention_scratch(const laya_config *config, uint32_t longest)
{
    size_t encoder = scratch_floats(config->head_size, longest);
    size_t head = scratch_floats(config->hidden_size / config->head_heads, longest);
    return encoder > head ? encoder : head;
}

/*
 * scores[i][j] = softmax over the keys j that query i sees; 0 for the others. Key 0 is number `first_key` of the row.
 */
static void softmax_rows(const attention_job *job, const laya_query_block *block, size_t first_key, size_t keys,
                         float *scores, size_t stride)
{
    for (size_t i = 0; i < block->queries; i++) {
        float *row = scores + i * stride;
        size_t query = block->first + i, low = 0, high = keys;
        if (job->window != LAYA_NO_WINDOW) {
            size_t oldest = query > job->window ? query - job->window : 0;
            size_t newest = query + job->window;
            low = oldest - first_key; /* the block's first key is the first query's oldest */
            if (newest - first_key + 1 < keys) high = newest - first_key + 1;
        }
        for (size_t j = 0; j < low; j++) row[j] = 0;
        job->compute->kernels->softmax(row + low, high - low, job->scale);
        for (size_t j = high; j < keys; j++) row[j] = 0;
    }
}

static void attention_task(void *argument, size_t index, unsigned worker)
{
    const attention_job *job = argument;
    const laya_compute *compute = job->compute;
    const laya_kernels *kernels = compute->kernels;
    const laya_query_block *block = &compute->blocks[index / job->heads];
    size_t head = index % job->heads, size = job->head_size, width = (size_t)job->heads * size;
    size_t mr = kernels->mr, nr = kernels->nr, stride = compute->wide_stride;

    size_t key0 = 0, key1 = block->count;
    if (job->window != LAYA_NO_WINDOW) {
        size_t reach = (size_t)block->first + block->queries + job->window;
        key0 = block->first > job->window ? block->first - job->window : 0;
        key1 = reach < key1 ? reach : key1;
    }
    size_t keys = key1 - key0, score_stride = round_up(keys), out_stride = round_up(size);
    size_t deepest = size > LAYA_KERNEL_KC ? size : LAYA_KERNEL_KC;
    float *panel = laya_worker_scratch(compute, worker);
    float *scores = panel + deepest * TILE;
    float *out = scores + LAYA_QUERY_BLOCK * round_up(compute->longest);

    const float *row = compute->wide + block->row_start * stride + head * size;
    const float *q = row + block->first * stride;
    const float *k = row + width + key0 * stride;
    const float *v = row + 2 * width + key0 * stride;
    for (size_t j = 0; j < keys; j += nr) {
        kernels->pack_floats(k + j * stride, stride, keys - j < nr ? keys - j : nr, size, panel);
        for (size_t i = 0; i < block->queries; i += mr) {
            kernels->tile(block->queries - i < mr ? block->queries - i : mr, size, q + i * stride, stride, panel,
                          scores + i * score_stride + j, score_stride, false);
        }
    }
    softmax_rows(job, block, key0, keys, scores, score_stride);
    for (size_t c = 0; c < size; c += nr) {
        for (size_t j = 0; j < keys; j += LAYA_KERNEL_KC) {
            size_t depth = keys - j < LAYA_KERNEL_KC ? keys - j : LAYA_KERNEL_KC;
            kernels->pack_cols(v + j * stride + c, stride, depth, size - c < nr ? size - c : nr, panel);
            for (size_t i = 0; i < block->queries; i += mr) {
                kernels->tile(block->queries - i < mr ? block->queries - i : mr, depth, scores + i * score_stride + j,
                              score_stride, panel, out + i * out_stride + c, out_stride, j > 0);
            }
        }
    }
    float *x = compute->x + (block->row_start + block->first) * compute->stride + head * size;
    for (size_t i = 0; i < block->queries; i++)
        memcpy(x + i * compute->stride, out + i * out_stride, size * sizeof *x);
}

void laya_attention(const laya_compute *compute, uint32_t heads, uint32_t head_size, uint32_t window)
{
    attention_job job = {.compute = compute,
                         .heads = heads,
                         .head_size = head_size,
                         .window = window,
                         .scale = (float)(1 / sqrt((double)head_size))};
    laya_pool_run(compute->pool, compute->block_count * heads, attention_task, &job);
}
