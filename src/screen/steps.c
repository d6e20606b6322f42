/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/steps.h"

#include <math.h>
#include <stdlib.h>

/* The next corner of the lower convex hull: the point that costs least error per byte; NULL: none is smaller. */
static const laya_bit_point *next_corner(const laya_bit_point *points, const laya_bit_point *from, double *slope)
{
    const laya_bit_point *best = NULL;
    *slope = 0;
    for (size_t level = 0; level < LAYA_BIT_LEVELS; level++) {
        const laya_bit_point *to = &points[level];
        if (to->bits == 0 || to->bytes >= from->bytes) continue;
        double cost = (to->error - from->error) / (double)(from->bytes - to->bytes);
        if (best && (cost > *slope || (cost == *slope && to->bytes > best->bytes))) continue;
        best = to;
        *slope = cost;
    }
    return best;
}

/* The steps of one weight. Returns their number. */
static uint32_t walk_hull(uint32_t weight, uint64_t before, const laya_bit_point *points, laya_bit_step *steps)
{
    laya_bit_point from = {.bytes = before};
    double slope, steepest = -INFINITY;
    uint32_t order = 0;
    for (;;) {
        const laya_bit_point *to = next_corner(points, &from, &slope);
        if (!to) return order;
        if (slope > steepest) steepest = slope; /* rounding must not change the order of a weight's steps */
        steps[order] = (laya_bit_step){weight, order, to->bits, steepest};
        order++;
        from = *to;
    }
}

static int by_slope(const void *one, const void *other)
{
    const laya_bit_step *a = one, *b = other;
    if (a->slope != b->slope) return a->slope < b->slope ? -1 : 1;
    if (a->weight != b->weight) return a->weight < b->weight ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

size_t laya_bit_steps(const uint64_t *before, const laya_bit_point *points, uint32_t count, laya_bit_step *steps)
{
    size_t made = 0;
    for (uint32_t weight = 0; weight < count; weight++)
        made += walk_hull(weight, before[weight], points + (size_t)weight * LAYA_BIT_LEVELS, steps + made);
    qsort(steps, made, sizeof *steps, by_slope);
    return made;
}
