/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic follows NumPy's types step by step (docs/MODEL.md, "Answers"): float32 for the softmax and
 * the entropy, float64 for the expected level. Sums are pairwise as NumPy's are. exp and log are
 * computed in double and rounded once, which does not depend on a vector library.
 */
#include "predict/answer.h"

#include <math.h>

/*
 * NumPy's pairwise sum of float32: eight running sums up to 128 values, halves above. The recursion is log2(count /
 * 128) deep.
 */
// NOLINTNEXTLINE(misc-no-recursion)
static float sum_float(const float *values, size_t count)
{
    if (count < 8) {
        float sum = 0;
        for (size_t at = 0; at < count; at++) sum += values[at];
        return sum;
    }
    if (count <= 128) {
        float r[8];
        size_t at = 8;
        for (size_t j = 0; j < 8; j++) r[j] = values[j];
        for (; at < count - count % 8; at += 8) {
            for (size_t j = 0; j < 8; j++) r[j] += values[at + j];
        }
        float sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
        for (; at < count; at++) sum += values[at];
        return sum;
    }
    size_t half = count / 2;
    half -= half % 8;
    return sum_float(values, half) + sum_float(values + half, count - half);
}

void laya_softmax(const double *logits, size_t count, double temperature, float *probabilities)
{
    float divisor = (float)temperature, largest = -INFINITY;
    for (size_t at = 0; at < count; at++) {
        probabilities[at] = (float)logits[at] / divisor;
        if (probabilities[at] > largest) largest = probabilities[at];
    }
    for (size_t at = 0; at < count; at++) probabilities[at] = (float)exp((double)(probabilities[at] - largest));
    float sum = sum_float(probabilities, count);
    for (size_t at = 0; at < count; at++) probabilities[at] /= sum;
}

/* 1 - H / ln k with H = -sum p ln(clip(p, 1e-12, 1)), clipped to [0, 1]; 1 for fewer than two options. */
static double entropy_confidence(const float *p, size_t count, float *terms)
{
    if (count < 2) return 1.0;
    for (size_t at = 0; at < count; at++) {
        float clipped = p[at] < 1e-12f ? 1e-12f : p[at] > 1.0f ? 1.0f : p[at];
        terms[at] = p[at] * (float)log((double)clipped);
    }
    double confidence = 1.0 + (double)sum_float(terms, count) / log((double)count);
    return confidence < 0 ? 0 : confidence > 1 ? 1 : confidence;
}

/* Sum of i * p[i] in float64. */
static double expected_level(const float *p, size_t count)
{
    double sum = 0;
    for (size_t at = 0; at < count; at++) sum += (double)at * (double)p[at];
    return sum;
}

void laya_answer_compute(laya_answer *answer, float *scratch)
{
    const float *p = answer->probabilities;
    answer->best = 0;
    for (size_t at = 1; at < answer->count; at++) {
        if (p[at] > p[answer->best]) answer->best = at;
    }
    answer->score = answer->type == LAYA_SCORE ? expected_level(p, answer->count) : 0;
    answer->answer_confidence = (double)p[answer->best];
    if (answer->type == LAYA_NOUL) {
        float other = 1.0f - p[1];
        answer->confidence = (double)(p[1] > other ? p[1] : other);
    } else {
        answer->confidence = entropy_confidence(p, answer->count, scratch);
    }
    laya_softmax(answer->action_logits, answer->action_count, 1.0, scratch);
    answer->act_probability = (double)scratch[0];
}
