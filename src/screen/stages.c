/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/stages.h"

#define PARTS 1000u  /* of a unit */
#define REPORTS 100u /* calls of the caller's hook, about */

/* Never backwards, whatever the steps say. */
static void report(laya_stages *stages, uint64_t done)
{
    uint64_t total = stages->total * PARTS;
    if (done > total) done = total;
    if (done <= stages->reported) return;
    if (done < total && done - stages->reported < total / REPORTS) return;
    stages->reported = done;
    stages->to.report(stages->to.user, done, total);
}

static void report_step(void *user, uint64_t done, uint64_t total)
{
    laya_stages *stages = user;
    if (total == 0) return;
    double part = done < total ? (double)done / (double)total : 1;
    report(stages, stages->begin * PARTS + (uint64_t)(part * (double)(stages->units * PARTS)));
}

laya_progress laya_stages_next(laya_stages *stages, uint64_t units)
{
    if (!stages->to.report) return (laya_progress){0};
    stages->begin += stages->units;
    stages->units = units;
    report(stages, stages->begin * PARTS);
    return (laya_progress){.user = stages, .report = report_step};
}

void laya_stages_end(laya_stages *stages)
{
    if (stages->to.report) report(stages, stages->total * PARTS);
}
