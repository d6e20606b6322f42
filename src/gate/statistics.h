/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics of timings, and the interval of a ratio. */
#ifndef LAYA_GATE_STATISTICS_H
#define LAYA_GATE_STATISTICS_H

#include <stddef.h>

/* Sort ascending. Values are finite. */
void laya_sort(double *values, size_t count);

/*
 * Quantile of sorted values by linear interpolation between the closest ranks: position q * (count - 1), as NumPy's
 * default. count is at least 1, q in [0, 1].
 */
double laya_quantile(const double *sorted, size_t count, double q);

typedef struct laya_summary {
    size_t count;
    double mean, median, p95, least, largest;
} laya_summary;

/* Summary of values in any order; they are sorted in place. count is at least 1. */
laya_summary laya_summarize(double *values, size_t count);

/* The 0.975 quantile of Student's t; between tabulated degrees of freedom, the next lower one's (a wider interval). */
double laya_student_975(size_t degrees);

typedef struct laya_ratio {
    size_t pairs;
    double estimate;  /* exp(mean of the log ratios) */
    double low, high; /* exp(mean -+ t s / sqrt(pairs)); not finite for fewer than two pairs */
} laya_ratio;

/*
 * The ratio of paired positive values, numerator[i] / denominator[i], with its 95 % confidence interval: log ratios are
 * averaged, s is their standard deviation with pairs - 1 in the denominator. pairs is at least 1.
 */
laya_ratio laya_paired_ratio(const double *numerators, const double *denominators, size_t pairs);

#endif
