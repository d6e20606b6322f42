/* SPDX-License-Identifier: Apache-2.0 */
/* Power samples: checked, integrated over time. The rules are the study's (D23); docs/GATES.md states them. */
#ifndef LAYA_GATE_POWER_H
#define LAYA_GATE_POWER_H

#include "laya/base.h"

#include <stdbool.h>
#include <stddef.h>

#define LAYA_POWER_MAX_WATTS 500.0

typedef struct laya_power_sample {
    double seconds; /* of the monotonic clock; ascending */
    double watts;
} laya_power_sample;

/* The longest time between two samples that is accepted: max(2 s, 3 x interval). */
double laya_power_max_gap(double interval);

/*
 * Energy in joules between two times: trapezoids over the samples, whose line is cut at both ends by interpolation.
 *
 * samples   in order of time; those outside the window are used for its ends only
 * interval  seconds between samples, as asked of the sampler
 *
 * Refused with LAYA_ERROR_INPUT, and a message that names the rule: no sample at or before `from` or at or after `to`
 * (missing), a sample that is not finite, not positive or above 500 W, a gap above laya_power_max_gap. Samples that do
 * not touch the window are not looked at.
 */
laya_status laya_power_integrate(const laya_power_sample *samples, size_t count, double interval, double from,
                                 double to, double *joules, laya_error *error);

#endif
