/* SPDX-License-Identifier: Apache-2.0 */
/* What the measuring programs share. */
#ifndef LAYA_BENCH_TIMING_H
#define LAYA_BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

/* Seconds of a clock that only goes forward. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Sorts the values. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#endif
