/* SPDX-License-Identifier: Apache-2.0 */
/* From logits to calibrated answers. */
#ifndef LAYA_PREDICT_ANSWER_H
#define LAYA_PREDICT_ANSWER_H

#include "laya/predict.h"

/*
 * softmax(logits / temperature) in float32, as NumPy computes it: the logits and the temperature are rounded to
 * float32, exp is the correctly rounded float of the double exp, sums are pairwise.
 */
void laya_softmax(const double *logits, size_t count, double temperature, float *probabilities);

/*
 * Fill in best, score, confidence, answer_confidence and act_probability of an answer that has its type, count,
 * probabilities, action_count and action_logits. `scratch` holds max(count, action_count) floats.
 */
void laya_answer_compute(laya_answer *answer, float *scratch);

#endif
