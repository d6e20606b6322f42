/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of k-means tables on the groups of 32 output channels of a package, beside dynamic programming on the same
 * groups in the same run: by divide and conquer, O(k n log n), and for one group of 4 bits over all pairs of values,
 * O(k n^2). One thread. No test depends on a time; that all find the same optimum is checked.
 *
 *     laya-bench-palettes PACKAGE [GROUPS]
 *
 * GROUPS groups (default 24) are taken from all weights, evenly.
 */
#include "timing.h"

#include "base/error.h"
#include "base/half.h"
#include "coreml/package.h"
#include "kmeans_oracle.h"
#include "palette/kmeans.h"
#include "palette/palettes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHANNELS 32u
#define MAX_GROUPS 1000u
#define HALVES 65536u

/* Seconds of each group. */
typedef struct timings {
    double make[MAX_GROUPS], solve[MAX_GROUPS], divide[MAX_GROUPS], ratio[MAX_GROUPS], distinct[MAX_GROUPS];
    double error[MAX_GROUPS]; /* relative */
    size_t count;
} timings;

typedef struct bench {
    laya_package *package;
    laya_palette_weight *weights;
    uint32_t weight_count;
    uint64_t group_count, largest; /* groups in all weights, elements of the largest one */
    laya_grouper *grouper;
    laya_kmeans *solver;
    unsigned char *indices;
    unsigned char lut[2 * LAYA_PALETTE_MAX_ENTRIES];
    /* of the group at hand */
    laya_group_source source;
    double values[HALVES], counts[HALVES];
    uint32_t distinct;
} bench;

static laya_status open_bench(bench *b, const char *path, laya_error *error)
{
    const laya_allocator allocator = laya_allocator_or_default(NULL);
    LAYA_TRY(laya_package_open(path, NULL, &b->package, error));
    LAYA_TRY(laya_palettes_select(&b->package->program, CHANNELS, &b->weights, &b->weight_count, error));
    for (uint32_t at = 0; at < b->weight_count; at++) {
        const laya_palette_weight *weight = &b->weights[at];
        if (weight->constant->type.dtype != LAYA_MIL_FP16)
            return laya_fail(error, LAYA_ERROR_FORMAT, "%s: not in fp16; export with --precision fp16", weight->name);
        b->group_count += weight->channels / CHANNELS;
        if (CHANNELS * weight->row > b->largest) b->largest = CHANNELS * weight->row;
    }
    if (!b->group_count) return laya_fail(error, LAYA_ERROR_FORMAT, "%s: no weights to palettize", path);
    b->indices = malloc((size_t)b->largest);
    if (!b->indices) return laya_fail_memory(error, (size_t)b->largest);
    LAYA_TRY(laya_grouper_open(b->largest, &allocator, &b->grouper, error));
    return laya_kmeans_open(HALVES, &allocator, &b->solver, error);
}

static void close_bench(bench *b)
{
    laya_kmeans_close(b->solver);
    laya_grouper_close(b->grouper);
    free(b->indices);
    laya_package_close(b->package);
}

/* Group number `at` of all weights, and its distinct values with their counts. */
static void take_group(bench *b, uint64_t at)
{
    static uint32_t counts[HALVES];
    const laya_palette_weight *weight = b->weights;
    for (; at >= weight->channels / CHANNELS; weight++) at -= weight->channels / CHANNELS;
    b->source = (laya_group_source){.bytes = weight->constant->bytes + at * CHANNELS * weight->row * 2,
                                    .dtype = LAYA_MIL_FP16,
                                    .rows = CHANNELS,
                                    .row = weight->row};
    memset(counts, 0, sizeof counts);
    for (uint64_t i = 0; i < CHANNELS * weight->row; i++)
        counts[b->source.bytes[2 * i] | (uint32_t)b->source.bytes[2 * i + 1] << 8]++;
    counts[0] += counts[0x8000];
    counts[0x8000] = 0;
    b->distinct = 0;
    for (uint32_t place = 0; place < HALVES; place++) {
        uint32_t half = place < 0x8000 ? 0xffff - place : place - 0x8000; /* in ascending order */
        if (!counts[half]) continue;
        b->values[b->distinct] = (double)laya_half_to_float((uint16_t)half);
        b->counts[b->distinct++] = counts[half];
    }
}

/* The larger of two errors over the smaller one, less one. */
static double disagreement(const bench *b, const uint32_t *one, const uint32_t *other, uint32_t clusters)
{
    double a = kmeans_error(b->values, b->counts, b->distinct, one, clusters);
    double c = kmeans_error(b->values, b->counts, b->distinct, other, clusters);
    return a == c ? 0 : fabs(a - c) / (a < c ? a : c);
}

static laya_status measure_group(bench *b, unsigned bits, timings *t, laya_error *error)
{
    uint32_t starts[LAYA_PALETTE_MAX_ENTRIES], expected[LAYA_PALETTE_MAX_ENTRIES], clusters = 1u << bits;
    laya_palette_error errors;
    if (clusters > b->distinct) clusters = b->distinct;
    double start = now();
    LAYA_TRY(laya_group_make(b->grouper, &b->source, LAYA_PALETTE_KMEANS, bits, b->lut, b->indices, &errors, error));
    double made = now();
    LAYA_TRY(laya_kmeans_solve(b->solver, b->values, b->counts, b->distinct, clusters, starts, error));
    double solved = now();
    if (!kmeans_divided(b->values, b->counts, b->distinct, clusters, expected)) return laya_fail_memory(error, 0);
    double divided = now();
    size_t at = t->count++;
    t->make[at] = made - start;
    t->solve[at] = solved - made;
    t->divide[at] = divided - solved;
    t->ratio[at] = (divided - solved) / (solved - made);
    t->error[at] = disagreement(b, starts, expected, clusters);
    t->distinct[at] = b->distinct;
    return LAYA_OK;
}

/* True: the same error everywhere. */
static bool print_timings(timings *t, unsigned bits)
{
    double worst = 0;
    for (size_t at = 0; at < t->count; at++) worst = t->error[at] > worst ? t->error[at] : worst;
    printf("  %u bits: %.3f ms a group, %.3f of it the solver; divide and conquer %.2f ms, %.0f times the solver",
           bits, median(t->make, t->count) * 1e3, median(t->solve, t->count) * 1e3, median(t->divide, t->count) * 1e3,
           median(t->ratio, t->count));
    printf(" (%.0f to %.0f); errors differ by %.1g at most\n", t->ratio[0], t->ratio[t->count - 1], worst);
    return worst <= 1e-10;
}

/* Dynamic programming over all pairs, 4 bits, one group. */
static laya_status measure_plain(bench *b, laya_error *error)
{
    uint32_t starts[16], expected[16], clusters = b->distinct < 16 ? b->distinct : 16;
    double start = now();
    LAYA_TRY(laya_kmeans_solve(b->solver, b->values, b->counts, b->distinct, clusters, starts, error));
    double solved = now();
    if (kmeans_plain(b->values, b->counts, b->distinct, clusters, expected, NULL) < 0)
        return laya_fail_memory(error, 0);
    double plain = now();
    printf("  4 bits, one group of %" PRIu32 " values: the solver %.3f ms, over all pairs %.0f ms, %.0f times\n",
           b->distinct, (solved - start) * 1e3, (plain - solved) * 1e3, (plain - solved) / (solved - start));
    if (memcmp(starts, expected, clusters * sizeof *starts) == 0) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "the two divisions differ");
}

static laya_status run(bench *b, size_t groups, laya_error *error)
{
    static const unsigned bits[] = {8, 6, 4};
    static timings t[3];
    bool same = true;
    if (groups > b->group_count) groups = (size_t)b->group_count;
    for (size_t group = 0; group < groups; group++) {
        take_group(b, b->group_count * group / groups);
        for (size_t at = 0; at < 3; at++) LAYA_TRY(measure_group(b, bits[at], &t[at], error));
    }
    printf("%zu of %" PRIu64 " groups of %u channels, %.0f distinct values; medians, one thread:\n", groups,
           b->group_count, CHANNELS, median(t[0].distinct, t[0].count));
    for (size_t at = 0; at < 3; at++) same = print_timings(&t[at], bits[at]) && same;
    if (!same) return laya_fail(error, LAYA_ERROR_FORMAT, "the two solvers find other errors");
    return measure_plain(b, error);
}

int main(int count, char **arguments)
{
    static bench b;
    laya_error error = {0};
    size_t groups = count > 2 ? (size_t)strtoul(arguments[2], NULL, 10) : 24;
    if (count < 2 || count > 3 || groups < 1 || groups > MAX_GROUPS) {
        fprintf(stderr, "usage: laya-bench-palettes PACKAGE [GROUPS 1..%u]\n", MAX_GROUPS);
        return 2;
    }
    laya_status status = open_bench(&b, arguments[1], &error);
    if (status == LAYA_OK) status = run(&b, groups, &error);
    close_bench(&b);
    if (status == LAYA_OK) return 0;
    fprintf(stderr, "laya-bench-palettes: %s\n", error.message);
    return 1;
}
