/* SPDX-License-Identifier: Apache-2.0 */
/* In which order weights lose bits: steps along the lower convex hulls of (bytes, error), cheapest first. */
#ifndef LAYA_SCREEN_STEPS_H
#define LAYA_SCREEN_STEPS_H

#include "laya/base.h"

#define LAYA_BIT_LEVELS 5u /* points of a weight, at most, besides the weight as it is */

/* What a weight is with a number of bits. */
typedef struct laya_bit_point {
    unsigned bits; /* 0: there is no such point */
    uint64_t bytes;
    double error; /* the weight as it is has none */
} laya_bit_point;

/* From one corner of a weight's hull to the next, which is smaller. */
typedef struct laya_bit_step {
    uint32_t weight;
    uint32_t order; /* among the steps of the weight */
    unsigned bits;  /* after the step */
    double slope;   /* error per byte saved; does not fall from one step of a weight to the next */
} laya_bit_step;

/*
 * Make the steps of all weights and sort them by slope, then weight, then order. Any number of them, from the first one
 * on, is a choice of bits whose sum of errors no choice with as few bytes undercuts.
 *
 * before  [count] bytes of each weight as it is
 * points  [count, LAYA_BIT_LEVELS]
 * steps   [count * LAYA_BIT_LEVELS] receives the steps
 *
 * Returns their number.
 */
size_t laya_bit_steps(const uint64_t *before, const laya_bit_point *points, uint32_t count, laya_bit_step *steps);

#endif
