/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three slow ways to divide points on a line into clusters of consecutive points with the least squared error, for
 * the tests of src/palette/kmeans.c and as what its speed is compared with. Points are in ascending order, weights
 * are positive, 1 <= clusters <= count; starts receives the first point of each cluster.
 */
#ifndef LAYA_TEST_KMEANS_ORACLE_H
#define LAYA_TEST_KMEANS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#define KMEANS_EXHAUSTIVE_COUNT 12  /* the most points */
#define KMEANS_EXHAUSTIVE_WEIGHT 36 /* the largest sum of all weights */
#define KMEANS_EXHAUSTIVE_VALUE 59  /* the largest absolute value */

/*
 * All divisions, in exact integers. Of equal ones the one whose last cluster begins first, then the last but one, and
 * so on. Returns how many divisions are as good as the best.
 */
uint32_t kmeans_exhaustive(const int32_t *values, const int32_t *weights, uint32_t count, uint32_t clusters,
                           uint32_t *starts);

/*
 * Dynamic programming over all pairs of points, O(clusters count^2). Squared errors of clusters are added up point by
 * point, so that nothing cancels. second, where it is not NULL, receives the squared error of the best division but
 * one (infinity: there is none). Returns the squared error; a negative number: no memory.
 */
double kmeans_plain(const double *values, const double *weights, uint32_t count, uint32_t clusters, uint32_t *starts,
                    double *second);

/*
 * Dynamic programming by divide and conquer: best beginnings do not decrease, so the middle one halves the work on
 * both sides; O(clusters count log count), with prefix sums. Returns false when there is no memory.
 */
bool kmeans_divided(const double *values, const double *weights, uint32_t count, uint32_t clusters, uint32_t *starts);

/* The squared error of a division, from its definition: means first, then differences. */
double kmeans_error(const double *values, const double *weights, uint32_t count, const uint32_t *starts,
                    uint32_t clusters);

#endif
