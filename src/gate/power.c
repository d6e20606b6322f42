/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/power.h"

#include "base/error.h"

#include <math.h>

double laya_power_max_gap(double interval)
{
    return 3 * interval > 2.0 ? 3 * interval : 2.0;
}

static laya_status check_sample(const laya_power_sample *sample, laya_error *error)
{
    if (!isfinite(sample->watts)) return laya_fail(error, LAYA_ERROR_INPUT, "a power sample is not a finite number");
    if (sample->watts <= 0)
        return laya_fail(error, LAYA_ERROR_INPUT, "a power sample of %g W is not positive", sample->watts);
    if (sample->watts > LAYA_POWER_MAX_WATTS)
        return laya_fail(error, LAYA_ERROR_INPUT, "a power sample of %g W is above %g W", sample->watts,
                         LAYA_POWER_MAX_WATTS);
    return LAYA_OK;
}

/* The line through two samples, at a time. */
static double watts_at(const laya_power_sample *a, const laya_power_sample *b, double seconds)
{
    double span = b->seconds - a->seconds;
    return span > 0 ? a->watts + (b->watts - a->watts) * ((seconds - a->seconds) / span) : b->watts;
}

/* The part between two neighbours that lies in the window. */
static double area(const laya_power_sample *a, const laya_power_sample *b, double from, double to)
{
    double left = a->seconds > from ? a->seconds : from, right = b->seconds < to ? b->seconds : to;
    if (right <= left) return 0;
    return (right - left) * (watts_at(a, b, left) + watts_at(a, b, right)) / 2;
}

laya_status laya_power_integrate(const laya_power_sample *samples, size_t count, double interval, double from,
                                 double to, double *joules, laya_error *error)
{
    const double limit = laya_power_max_gap(interval);
    size_t first = 0, last;
    double sum = 0;
    *joules = 0;
    if (!(to > from)) return laya_fail(error, LAYA_ERROR_INPUT, "the window of the power samples has no length");
    while (first + 1 < count && samples[first + 1].seconds <= from) first++;
    for (last = first; last < count && samples[last].seconds < to;) last++;
    if (count == 0 || samples[first].seconds > from || last == count)
        return laya_fail(error, LAYA_ERROR_INPUT, "power samples are missing: there is none %s the window",
                         last == count ? "after" : "before");
    for (size_t at = first; at <= last; at++) {
        LAYA_TRY(check_sample(&samples[at], error));
        if (at == first) continue;
        double gap = samples[at].seconds - samples[at - 1].seconds;
        if (gap > limit)
            return laya_fail(error, LAYA_ERROR_INPUT, "a gap of %.3f s between power samples is above %.3f s", gap,
                             limit);
        sum += area(&samples[at - 1], &samples[at], from, to);
    }
    *joules = sum;
    return LAYA_OK;
}
