/* SPDX-License-Identifier: Apache-2.0 */
/* Angles of the rotary position embedding. */
#ifndef LAYA_MODEL_ROTARY_H
#define LAYA_MODEL_ROTARY_H

#include <math.h>
#include <stddef.h>

/* position * theta^(-2c / s) for channel c < s / 2 of a head of s channels, in float64. */
static inline double laya_rotary_angle(double theta, size_t position, size_t channel, size_t head_size)
{
    return (double)position * pow(theta, -2.0 * (double)channel / (double)head_size);
}

#endif
