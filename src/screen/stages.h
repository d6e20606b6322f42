/* SPDX-License-Identifier: Apache-2.0 */
/* One progress over several steps that each report their own. */
#ifndef LAYA_SCREEN_STAGES_H
#define LAYA_SCREEN_STAGES_H

#include "laya/base.h"

#include <stdbool.h>

/* Zero but for `to` and `total` to begin with. Not to be moved while a step runs. */
typedef struct laya_stages {
    laya_progress to; /* the caller's; zero: none */
    uint64_t total;   /* units of all steps, as far as they are known */
    uint64_t begin;   /* of the step at hand */
    uint64_t units;
    uint64_t reported; /* thousandths of units */
} laya_stages;

/* Begin a step of so many units; the step before is over. Returns the progress to give to it. */
laya_progress laya_stages_next(laya_stages *stages, uint64_t units);
/* Steps that will not be taken: the units that are left are done. */
void laya_stages_end(laya_stages *stages);

#endif
