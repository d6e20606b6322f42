/* SPDX-License-Identifier: Apache-2.0 */
/* The executor of a package alone, on synthetic embeddings. */
#ifndef LAYA_GATE_BODY_TIMING_H
#define LAYA_GATE_BODY_TIMING_H

#include "gate/workload.h"

/*
 * Fill the inputs of the subject's package: embeddings from a fixed pseudo-random sequence in [-1, 1), a row without
 * padding, two markers. Errors: MEMORY.
 */
laya_status laya_body_prepare(const laya_subject *subject, const laya_allocator *allocator, laya_error *error);

/* One run; `stable` becomes false when the outputs differ from `outputs`, which the first call fills. */
typedef struct laya_body_outputs {
    laya_allocator allocator;
    float *values; /* NULL: no run yet */
    size_t count;
} laya_body_outputs;
laya_status laya_body_time(const laya_subject *subject, laya_body_outputs *outputs, double *seconds, bool *stable,
                           laya_error *error);

#endif
