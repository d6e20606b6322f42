/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/statistics.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void laya_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
}

double laya_quantile(const double *sorted, size_t count, double q)
{
    double position = q * (double)(count - 1);
    size_t below = (size_t)position;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

laya_summary laya_summarize(double *values, size_t count)
{
    laya_summary summary = {.count = count};
    laya_sort(values, count);
    for (size_t at = 0; at < count; at++) summary.mean += values[at];
    summary.mean /= (double)count;
    summary.median = laya_quantile(values, count, 0.5);
    summary.p95 = laya_quantile(values, count, 0.95);
    summary.least = values[0];
    summary.largest = values[count - 1];
    return summary;
}

double laya_student_975(size_t degrees)
{
    /* Tables of Student's t, two-sided 95 %. */
    static const double by_degree[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                       2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                       2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    if (degrees == 0) return INFINITY;
    if (degrees <= sizeof by_degree / sizeof *by_degree) return by_degree[degrees - 1];
    if (degrees < 40) return 2.042;
    if (degrees < 60) return 2.021;
    return degrees < 120 ? 2.000 : 1.980;
}

laya_ratio laya_paired_ratio(const double *numerators, const double *denominators, size_t pairs)
{
    double mean = 0, squares = 0;
    for (size_t at = 0; at < pairs; at++) mean += log(numerators[at] / denominators[at]);
    mean /= (double)pairs;
    laya_ratio ratio = {.pairs = pairs, .estimate = exp(mean), .low = 0, .high = INFINITY};
    if (pairs < 2) return ratio;
    for (size_t at = 0; at < pairs; at++) {
        double distance = log(numerators[at] / denominators[at]) - mean;
        squares += distance * distance;
    }
    double half = laya_student_975(pairs - 1) * sqrt(squares / (double)(pairs - 1) / (double)pairs);
    ratio.low = exp(mean - half);
    ratio.high = exp(mean + half);
    return ratio;
}
