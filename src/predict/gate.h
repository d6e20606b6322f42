/* SPDX-License-Identifier: Apache-2.0 */
/* The abstention gate: min_confidence. */
#ifndef LAYA_PREDICT_GATE_H
#define LAYA_PREDICT_GATE_H

#include "laya/predict.h"
#include "model/calibration.h"

typedef struct laya_gate {
    bool active;
    double by_bucket[3][LAYA_BUCKETS]; /* threshold of every bucket a question can be in */
} laya_gate;

/*
 * Read min_confidence: a number in [0, 1], or an object bucket -> number with an optional "default". NULL gives
 * an inactive gate. Errors: INPUT, MEMORY.
 */
laya_status laya_gate_read(laya_gate *gate, const char *min_confidence, const laya_allocator *allocator,
                           laya_error *error);

/* Set abstention and abstention_threshold of an answer. The rounded answer_confidence is compared, strictly. */
void laya_gate_apply(const laya_gate *gate, laya_answer *answer);

#endif
