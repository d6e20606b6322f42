/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of the engine, as ratios within one run: kernels and thread counts take turns, so that a machine whose speed
 * drifts slows all of them. No test depends on a time.
 *
 *     laya-bench MODEL_DIR [ROUNDS] [TOKENS]
 *
 * One row of TOKENS tokens (96) with three options goes through the whole network per measurement.
 */
#include "timing.h"

#include "kernels/kernels.h"
#include "laya/laya.h"
#include "model/engine.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 200
#define MAX_VARIANTS 8
#define OPTIONS 3

typedef struct variant {
    const laya_kernels *kernels;
    laya_pool *pool;
    double seconds[MAX_ROUNDS];
} variant;

static int give_up(const laya_error *error)
{
    fprintf(stderr, "laya-bench: %s\n", error->message);
    return 1;
}

/* Multiplications and additions of the matrix products of one row, in GFLOP; the attention bands are exact. */
static double work(const laya_config *c, uint32_t tokens)
{
    uint32_t reach = c->local_attention / 2;
    double n = tokens, d = c->hidden_size, window = reach, flop = 0;
    for (uint32_t layer = 0; layer < c->encoder_layers; layer++) {
        double keys = c->layer_is_global[layer] || n <= window ? n : 2 * window + 1 < n ? 2 * window + 1 : n;
        flop += 2 * n * d * (4 * d + 3.0 * c->intermediate_size) + 4 * n * keys * d;
    }
    flop += c->head_layers * (2 * n * d * 12 * d + 4 * n * n * d);
    return flop * 1e-9;
}

static laya_status measure(const laya_model *model, variant *v, laya_row *row, laya_arena *arena, size_t round,
                           laya_error *error)
{
    const laya_network network = {.config = &model->config, .weights = &model->weights, .kernels = v->kernels};
    laya_arena_reset(arena);
    double start = now();
    laya_status status = laya_engine_run(&network, row, 1, v->pool, arena, NULL, error);
    v->seconds[round] = now() - start;
    return status;
}

/* The table's best-to-portable kernels that this processor can run, each with one thread and with all. */
static size_t list_variants(variant *variants, laya_pool *one, laya_pool *all)
{
    size_t count = 0;
    for (size_t at = 0; laya_kernels_at(at) && count + 2 <= MAX_VARIANTS; at++) {
        const laya_kernels *kernels = laya_kernels_at(at);
        if ((kernels->cpu & laya_cpu_features(LAYA_CPU_ALL)) != kernels->cpu) continue;
        variants[count++] = (variant){.kernels = kernels, .pool = all};
        if (laya_pool_threads(all) > 1) variants[count++] = (variant){.kernels = kernels, .pool = one};
    }
    return count;
}

static void report(const laya_model *model, variant *variants, size_t count, size_t rounds, uint32_t tokens)
{
    double gflop = work(&model->config, tokens), first = 0;
    printf("%u tokens, %.1f GFLOP a row, %zu rounds, medians\n", tokens, gflop, rounds);
    printf("%-10s %7s %10s %9s %8s\n", "kernels", "threads", "ms", "GFLOP/s", "ratio");
    for (size_t at = 0; at < count; at++) {
        double seconds = median(variants[at].seconds, rounds);
        if (at == 0) first = seconds;
        printf("%-10s %7u %10.1f %9.1f %8.2f\n", variants[at].kernels->name, laya_pool_threads(variants[at].pool),
               seconds * 1e3, gflop / seconds, seconds / first);
    }
    printf("ratio: time divided by the time of the first line\n");
}

static laya_status run(const laya_model *model, size_t rounds, uint32_t tokens, laya_error *error)
{
    static variant variants[MAX_VARIANTS];
    laya_pool *one = NULL, *all = NULL;
    laya_arena arena;
    double logits[OPTIONS], actions[LAYA_MAX_ACTIONS];
    const uint32_t markers[OPTIONS] = {4, 8, 12};
    laya_arena_init(&arena, NULL);
    uint32_t *ids = malloc(tokens * sizeof *ids);
    if (!ids) return LAYA_ERROR_MEMORY;
    for (uint32_t at = 0; at < tokens; at++) ids[at] = (at * 2654435761u + 17) % model->config.vocab_size;
    laya_row row = {.ids = ids,
                    .count = tokens,
                    .markers = markers,
                    .options = OPTIONS,
                    .logits = logits,
                    .action_logits = actions};
    laya_status status = laya_pool_open(1, NULL, &one, error);
    if (status == LAYA_OK) status = laya_pool_open(laya_online_cpus(), NULL, &all, error);
    size_t count = status == LAYA_OK ? list_variants(variants, one, all) : 0;
    for (size_t at = 0; at < count && status == LAYA_OK; at++) /* warm-up: pages, clocks */
        status = measure(model, &variants[at], &row, &arena, 0, error);
    for (size_t round = 0; round < rounds && status == LAYA_OK; round++) {
        for (size_t at = 0; at < count && status == LAYA_OK; at++)
            status = measure(model, &variants[at], &row, &arena, round, error);
    }
    if (status == LAYA_OK) report(model, variants, count, rounds, tokens);
    laya_pool_close(one);
    laya_pool_close(all);
    laya_arena_close(&arena);
    free(ids);
    return status;
}

int main(int count, char **arguments)
{
    laya_model *model;
    laya_error error = {0};
    size_t rounds = count > 2 ? (size_t)strtoul(arguments[2], NULL, 10) : 11;
    uint32_t tokens = count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 10) : 96;
    if (count < 2 || count > 4 || rounds < 1 || rounds > MAX_ROUNDS || tokens < 16) {
        fprintf(stderr, "usage: laya-bench MODEL_DIR [ROUNDS 1..%d] [TOKENS >= 16]\n", MAX_ROUNDS);
        return 2;
    }
    double start = now();
    if (laya_model_open(arguments[1], NULL, &model, &error) != LAYA_OK) return give_up(&error);
    printf("%s: opened in %.1f ms\n", arguments[1], (now() - start) * 1e3);
    laya_status status = run(model, rounds, tokens, &error);
    laya_model_close(model);
    return status == LAYA_OK ? 0 : give_up(&error);
}
