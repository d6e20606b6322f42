/* SPDX-License-Identifier: Apache-2.0 */
/* See kmeans_oracle.h. */
#include "kmeans_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ exhaustive search */

#define LEAST_MULTIPLE UINT64_C(144403552893600) /* least common multiple of 1 … 36 */

typedef struct gains {
    uint64_t of[KMEANS_EXHAUSTIVE_COUNT][KMEANS_EXHAUSTIVE_COUNT + 1]; /* [first][end] */
} gains;

/*
 * The squared error is the sum of weight * value^2 less the sum over the clusters of S^2 / W, with the sums S of
 * weight * value and W of weight. In units of 1 / LEAST_MULTIPLE all S^2 / W are integers, and their sum is at most
 * that of weight * value^2, which is below 36 * 59^2 * LEAST_MULTIPLE < 2^64.
 */
static void find_gains(gains *all, const int32_t *values, const int32_t *weights, uint32_t count)
{
    for (uint32_t first = 0; first < count; first++) {
        int64_t sum = 0, weight = 0;
        for (uint32_t at = first; at < count; at++) {
            sum += (int64_t)weights[at] * values[at];
            weight += weights[at];
            all->of[first][at + 1] = (uint64_t)(sum * sum) * (LEAST_MULTIPLE / (uint64_t)weight);
        }
    }
}

/* Bit i - 1 of `borders`: a cluster begins with point i. */
static uint64_t gain_of(const gains *all, uint32_t borders, uint32_t count)
{
    uint64_t gain = 0;
    uint32_t first = 0;
    for (uint32_t at = 1; at < count; at++) {
        if (!(borders >> (at - 1) & 1u)) continue;
        gain += all->of[first][at];
        first = at;
    }
    return gain + all->of[first][count];
}

static uint32_t count_bits(uint32_t bits)
{
    uint32_t count = 0;
    for (; bits; bits &= bits - 1) count++;
    return count;
}

uint32_t kmeans_exhaustive(const int32_t *values, const int32_t *weights, uint32_t count, uint32_t clusters,
                           uint32_t *starts)
{
    gains all;
    uint64_t best = 0;
    uint32_t best_borders = 0, equal = 0, divisions = count > 0 ? 1u << (count - 1) : 0;
    find_gains(&all, values, weights, count);
    /* Of two numbers with as many bits the smaller one has, where they differ first from the top, its bit lower: in
       ascending order the first of equal divisions is the wanted one. */
    for (uint32_t borders = 0; borders < divisions; borders++) {
        if (count_bits(borders) != clusters - 1) continue;
        uint64_t gain = gain_of(&all, borders, count);
        if (equal && gain == best) equal++;
        if (equal && gain <= best) continue;
        best = gain;
        best_borders = borders;
        equal = 1;
    }
    uint32_t filled = 0;
    starts[filled++] = 0;
    for (uint32_t at = 1; at < count; at++) {
        if (best_borders >> (at - 1) & 1u) starts[filled++] = at;
    }
    return equal;
}

/* ------------------------------------------------------------------ plain dynamic programming */

/* For the first i points and c clusters, at [i][c]: the least errors and where the last cluster begins. */
typedef struct plain_tables {
    double *best, *second;
    uint32_t *from;
} plain_tables;

static void improve(plain_tables *tables, size_t to, size_t from, double cost, uint32_t first)
{
    double error = tables->best[from] + cost;
    if (error < tables->best[to]) {
        if (tables->second) tables->second[to] = tables->best[to];
        tables->best[to] = error;
        tables->from[to] = first;
    } else if (tables->second && error < tables->second[to]) {
        tables->second[to] = error;
    }
    if (tables->second && tables->second[from] + cost < tables->second[to])
        tables->second[to] = tables->second[from] + cost;
}

/* Beginnings in ascending order: all that leads to one is known before it is used. */
static void fill_plain(plain_tables *tables, const double *values, const double *weights, uint32_t count,
                       uint32_t clusters)
{
    size_t row = (size_t)clusters + 1, size = ((size_t)count + 1) * row;
    for (size_t at = 0; at < size; at++) {
        tables->best[at] = INFINITY;
        if (tables->second) tables->second[at] = INFINITY;
    }
    tables->best[0] = 0;
    for (uint32_t first = 0; first < count; first++) {
        double weight = 0, mean = 0, cost = 0;
        uint32_t most = first < clusters ? first : clusters - 1; /* clusters before this one */
        for (uint32_t at = first; at < count; at++) {
            double away = values[at] - mean, before = weight;
            weight += weights[at];
            mean += away * (weights[at] / weight);
            cost += away * away * (weights[at] * (before / weight));
            for (uint32_t c = first ? 1 : 0; c <= most; c++)
                improve(tables, ((size_t)at + 1) * row + c + 1, (size_t)first * row + c, cost, first);
        }
    }
}

double kmeans_plain(const double *values, const double *weights, uint32_t count, uint32_t clusters, uint32_t *starts,
                    double *second)
{
    size_t row = (size_t)clusters + 1, size = ((size_t)count + 1) * row;
    plain_tables tables = {calloc(size, sizeof(double)), second ? calloc(size, sizeof(double)) : NULL,
                           calloc(size, sizeof(uint32_t))};
    double error = -1;
    if (tables.best && tables.from && (tables.second || !second)) {
        fill_plain(&tables, values, weights, count, clusters);
        uint32_t end = count;
        for (uint32_t c = clusters; c > 0; c--) {
            end = tables.from[end * row + c];
            starts[c - 1] = end;
        }
        error = tables.best[count * row + clusters];
        if (second) *second = tables.second[count * row + clusters];
    }
    free(tables.best);
    free(tables.second);
    free(tables.from);
    return error;
}

/* ------------------------------------------------------------------ divide and conquer */

typedef struct divided {
    const double *weight, *sum; /* [count + 1] sums of the points before */
    const double *base;         /* [count + 1] least errors, less the sum of weight * value^2, of one cluster less */
    double *result;
    uint32_t *from; /* [count + 1] */
} divided;

/* Ends that are still to be done, and where their best beginnings may lie. */
typedef struct part {
    uint32_t low, high;   /* ends */
    uint32_t first, last; /* beginnings */
} part;

static void best_beginning(const divided *d, uint32_t end, uint32_t first, uint32_t last)
{
    double best = INFINITY;
    uint32_t from = first;
    if (last > end - 1) last = end - 1;
    for (uint32_t at = first; at <= last; at++) {
        double sum = d->sum[end] - d->sum[at];
        double error = d->base[at] - sum * sum / (d->weight[end] - d->weight[at]);
        if (error < best) {
            best = error;
            from = at;
        }
    }
    d->result[end] = best;
    d->from[end] = from;
}

/* Parts wait on a stack: each halves, so it holds no more than the bits of a number. */
static void fill_layer(const divided *d, uint32_t low, uint32_t high, uint32_t first)
{
    part waiting[64];
    uint32_t count = 0;
    waiting[count++] = (part){low, high, first, high - 1};
    while (count) {
        part now = waiting[--count];
        uint32_t middle = now.low + (now.high - now.low) / 2;
        best_beginning(d, middle, now.first, now.last);
        uint32_t from = d->from[middle];
        if (middle < now.high) waiting[count++] = (part){middle + 1, now.high, from, now.last};
        if (middle > now.low) waiting[count++] = (part){now.low, middle - 1, now.first, from};
    }
}

static void fill_divided(divided *d, double *sums, uint32_t *from, const double *values, const double *weights,
                         uint32_t count, uint32_t clusters, uint32_t *starts)
{
    size_t row = (size_t)count + 1;
    double *weight = sums, *sum = sums + row, *base = sums + 2 * row, *result = sums + 3 * row;
    double centre = values[count / 2];
    weight[0] = sum[0] = base[0] = 0;
    for (uint32_t at = 0; at < count; at++) {
        weight[at + 1] = weight[at] + weights[at];
        sum[at + 1] = sum[at] + weights[at] * (values[at] - centre);
        base[at + 1] = -sum[at + 1] * sum[at + 1] / weight[at + 1];
    }
    d->weight = weight;
    d->sum = sum;
    for (uint32_t c = 2; c <= clusters; c++) {
        d->base = base;
        d->result = result;
        d->from = from + (c - 2) * row;
        fill_layer(d, c, count, c - 1);
        double *old = base;
        base = result;
        result = old;
    }
    uint32_t end = count;
    for (uint32_t c = clusters; c >= 2; c--) {
        end = from[(c - 2) * row + end];
        starts[c - 1] = end;
    }
    starts[0] = 0;
}

bool kmeans_divided(const double *values, const double *weights, uint32_t count, uint32_t clusters, uint32_t *starts)
{
    size_t row = (size_t)count + 1;
    double *sums = malloc(4 * row * sizeof *sums);
    uint32_t *from = malloc(clusters * row * sizeof *from);
    divided d = {0};
    bool made = sums && from;
    if (made) fill_divided(&d, sums, from, values, weights, count, clusters, starts);
    free(sums);
    free(from);
    return made;
}

/* ------------------------------------------------------------------ error */

double kmeans_error(const double *values, const double *weights, uint32_t count, const uint32_t *starts,
                    uint32_t clusters)
{
    long double error = 0;
    for (uint32_t c = 0; c < clusters; c++) {
        uint32_t end = c + 1 < clusters ? starts[c + 1] : count;
        long double weight = 0, sum = 0;
        for (uint32_t at = starts[c]; at < end; at++) {
            weight += weights[at];
            sum += (long double)weights[at] * ((long double)values[at] - values[starts[c]]);
        }
        long double mean = values[starts[c]] + sum / weight;
        for (uint32_t at = starts[c]; at < end; at++)
            error += weights[at] * (values[at] - mean) * (values[at] - mean);
    }
    return (double)error;
}
