/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of the interpreter on a package, beside the engine's on the checkpoint that it was made from: numerics and
 * thread counts take turns, so that a machine whose speed drifts slows all of them. No test depends on a time.
 *
 *     laya-bench-interpreter PACKAGE [ROUNDS] [--model DIR]
 *
 * Inputs are made up: masks of zeros, one marker in every column of the marker map, else uniform in [-1, 1). The engine
 * runs one row of as many tokens as the package takes.
 */
#include "timing.h"

#include "coreml/package.h"
#include "interpreter/interpreter.h"
#include "kernels/kernels.h"
#include "laya/laya.h"
#include "model/engine.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>

#define MAX_ROUNDS 200
#define MAX_VARIANTS 6
#define OPTIONS 3

typedef struct variant {
    const char *name;
    laya_pool *pool;
    laya_interpreter *interpreter; /* NULL: the engine */
    double seconds[MAX_ROUNDS];
} variant;

typedef struct bench {
    laya_package *package;
    laya_model *model; /* NULL: no engine */
    laya_pool *pools[2];
    laya_arena arena; /* of the engine */
    uint32_t tokens;
    uint32_t *ids;
    variant variants[MAX_VARIANTS];
    size_t count;
    size_t rounds;
} bench;

/* ------------------------------------------------------------------ inputs */

static float random_float(void)
{
    static uint64_t seed = 1;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)((double)(seed >> 32) / 2147483648.0 - 1);
}

static void fill_inputs(laya_interpreter *interpreter)
{
    for (uint32_t at = 0; at < laya_interpreter_input_count(interpreter); at++) {
        const char *name;
        laya_array *input = laya_interpreter_input(interpreter, at, &name);
        bool random = !strstr(name, "mask") && !strstr(name, "marker");
        for (uint64_t i = 0; i < input->count; i++) {
            if (input->values)
                input->values[i] = random ? random_float() : 0;
            else
                input->integers[i] = 0;
        }
        if (!strstr(name, "marker") || input->type.rank != 4) continue;
        uint64_t rows = (uint64_t)input->type.dims[1], cols = (uint64_t)input->type.dims[3];
        for (uint64_t col = 0; col < cols; col++) input->values[(4 * col + 4) % rows * cols + col] = 1;
    }
}

/* Length of the first input's last axis: the tokens of a body. */
static uint32_t count_tokens(const laya_package *package)
{
    const laya_mil_type *type = &package->program.functions[0].inputs[0]->type;
    return type->rank == 4 ? (uint32_t)type->dims[3] : 0;
}

/* ------------------------------------------------------------------ measurement */

static laya_status run_engine(bench *b, laya_pool *pool, laya_error *error)
{
    double logits[OPTIONS], actions[LAYA_MAX_ACTIONS];
    const uint32_t markers[OPTIONS] = {4, 8, 12};
    const laya_network network = {
        .config = &b->model->config, .weights = &b->model->weights, .kernels = laya_kernels_select(LAYA_CPU_ALL)};
    laya_row row = {.ids = b->ids,
                    .count = b->tokens,
                    .markers = markers,
                    .options = OPTIONS,
                    .logits = logits,
                    .action_logits = actions};
    laya_arena_reset(&b->arena);
    return laya_engine_run(&network, &row, 1, pool, &b->arena, NULL, error);
}

static laya_status measure(bench *b, variant *v, size_t round, laya_error *error)
{
    if (v->interpreter) fill_inputs(v->interpreter);
    double start = now();
    laya_status status = v->interpreter ? laya_interpreter_run(v->interpreter, error) : run_engine(b, v->pool, error);
    v->seconds[round] = now() - start;
    return status;
}

static laya_status add_variants(bench *b, laya_error *error)
{
    static const struct {
        const char *name;
        laya_numerics numerics;
    } kinds[] = {{"interpreter fp32", LAYA_NUMERICS_FP32}, {"interpreter fp16", LAYA_NUMERICS_FP16}};
    size_t pools = laya_pool_threads(b->pools[0]) > 1 ? 2 : 1;
    for (size_t pool = 0; pool < pools; pool++) {
        if (b->model) b->variants[b->count++] = (variant){.name = "engine", .pool = b->pools[pool]};
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            variant *v = &b->variants[b->count];
            *v = (variant){.name = kinds[kind].name, .pool = b->pools[pool]};
            double start = now();
            laya_status status = laya_interpreter_open(&b->package->program, NULL, kinds[kind].numerics, v->pool,
                                                       NULL, &v->interpreter, error);
            if (status != LAYA_OK) return status;
            b->count++;
            if (pool + kind > 0) continue;
            uint64_t planned, unplanned;
            laya_interpreter_memory(v->interpreter, &planned, &unplanned);
            printf("prepared in %.1f ms; values take %.1f MB, %.1f MB without reuse\n", (now() - start) * 1e3,
                   (double)planned * 1e-6, (double)unplanned * 1e-6);
        }
    }
    return LAYA_OK;
}

static void report(bench *b)
{
    printf("%u tokens, %s kernels, %zu rounds, medians\n", b->tokens, laya_kernels_select(LAYA_CPU_ALL)->name,
           b->rounds);
    printf("%-18s %7s %10s %8s\n", "", "threads", "ms", "ratio");
    double first = 0;
    for (size_t at = 0; at < b->count; at++) {
        variant *v = &b->variants[at];
        double seconds = median(v->seconds, b->rounds);
        if (at == 0 || v->pool != b->variants[at - 1].pool) first = seconds;
        printf("%-18s %7u %10.1f %8.2f\n", v->name, laya_pool_threads(v->pool), seconds * 1e3, seconds / first);
    }
    printf("ratio: time divided by the first line's of as many threads\n");
}

static laya_status run(bench *b, const char *directory, laya_error *error)
{
    laya_status status = laya_pool_open(laya_online_cpus(), NULL, &b->pools[0], error);
    if (status == LAYA_OK) status = laya_pool_open(1, NULL, &b->pools[1], error);
    if (status == LAYA_OK && directory) status = laya_model_open(directory, NULL, &b->model, error);
    if (status != LAYA_OK) return status;
    b->tokens = count_tokens(b->package);
    b->ids = calloc((size_t)b->tokens + 1, sizeof *b->ids);
    if (!b->ids) return LAYA_ERROR_MEMORY;
    for (uint32_t at = 0; b->model && at < b->tokens; at++)
        b->ids[at] = (at * 2654435761u + 17) % b->model->config.vocab_size;
    status = add_variants(b, error);
    for (size_t at = 0; at < b->count && status == LAYA_OK; at++) /* warm-up: pages, clocks */
        status = measure(b, &b->variants[at], 0, error);
    for (size_t round = 0; round < b->rounds && status == LAYA_OK; round++) {
        for (size_t at = 0; at < b->count && status == LAYA_OK; at++)
            status = measure(b, &b->variants[at], round, error);
    }
    if (status == LAYA_OK) report(b);
    return status;
}

static void close_bench(bench *b)
{
    for (size_t at = 0; at < b->count; at++) laya_interpreter_close(b->variants[at].interpreter);
    laya_model_close(b->model);
    laya_package_close(b->package);
    laya_pool_close(b->pools[0]);
    laya_pool_close(b->pools[1]);
    laya_arena_close(&b->arena);
    free(b->ids);
}

int main(int count, char **arguments)
{
    static bench b = {.rounds = 11};
    const char *directory = NULL;
    laya_error error = {0};
    laya_arena_init(&b.arena, NULL);
    if (count > 3 && strcmp(arguments[count - 2], "--model") == 0) {
        directory = arguments[count - 1];
        count -= 2;
    }
    if (count > 2) b.rounds = (size_t)strtoul(arguments[2], NULL, 10);
    if (count < 2 || count > 3 || b.rounds < 1 || b.rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: laya-bench-interpreter PACKAGE [ROUNDS 1..%d] [--model DIR]\n", MAX_ROUNDS);
        return 2;
    }
    double start = now();
    laya_status status = laya_package_open(arguments[1], NULL, &b.package, &error);
    if (status == LAYA_OK) printf("%s: opened in %.1f ms\n", arguments[1], (now() - start) * 1e3);
    if (status == LAYA_OK) status = run(&b, directory, &error);
    close_bench(&b);
    if (status == LAYA_OK) return 0;
    fprintf(stderr, "laya-bench-interpreter: %s\n", error.message);
    return 1;
}
