/* SPDX-License-Identifier: Apache-2.0 */
/* Optimal k-means of weighted points on a line. docs/PALETTES.md has the algorithm and its proof. */
#ifndef LAYA_PALETTE_KMEANS_H
#define LAYA_PALETTE_KMEANS_H

#include "base/memory.h"
#include "laya/base.h"

/* Working memory, for one thread. */
typedef struct laya_kmeans laya_kmeans;

/* capacity: the most points of a call, at least 1. Errors: MEMORY. */
laya_status laya_kmeans_open(uint32_t capacity, const laya_allocator *allocator, laya_kmeans **out,
                             laya_error *error);
/* NULL is allowed. */
void laya_kmeans_close(laya_kmeans *solver);

/*
 * Divide points into min(count, clusters) clusters of consecutive points with the least sum over all points of
 * weight * (value - mean of its cluster)^2. Of several optima the one whose last cluster begins first, then the one
 * whose last but one does, and so on. Exact up to rounding: errors that differ by less than 2^-50 of the energy (the sum
 * of weight * value^2 about the mean) count as equal.
 *
 * values   [count] ascending, no two equal, finite
 * weights  [count] positive, finite, none below about 1e-12 of their sum: smaller ones are lost in it
 * starts   [min(count, clusters)] receives the first point of each cluster; starts[0] is 0
 *
 * Errors: MEMORY.
 */
laya_status laya_kmeans_solve(laya_kmeans *solver, const double *values, const double *weights, uint32_t count,
                              uint32_t clusters, uint32_t *starts, laya_error *error);

/* The weighted mean of points, as a running mean from the first one on (the sum that coremltools computes). */
double laya_kmeans_mean(const double *values, const double *weights, uint32_t count);

#endif
