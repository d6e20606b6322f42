/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The action head: from a row's option logits and the state of its first token to its action logits. docs/MODEL.md
 * describes the mathematics.
 */
#include "base/error.h"
#include "model/engine.h"

#include <math.h>

#define HIDDEN 256u    /* width of the inner layer */
#define FEATURES 4u    /* appended to the first token's state */
#define TASK 16u       /* inner values per task */
#define CACHE_LINE 16u /* floats */

/* [t1, t1 - t2, entropy / ln k, k / 255] of p = softmax(logits), k = max(2, options). */
static void action_features(const laya_row *row, double *features)
{
    double top = row->logits[0];
    for (uint32_t o = 1; o < row->options; o++) top = row->logits[o] > top ? row->logits[o] : top;
    double sum = 0;
    for (uint32_t o = 0; o < row->options; o++) sum += exp(row->logits[o] - top);
    double first = 0, second = 0, entropy = 0;
    for (uint32_t o = 0; o < row->options; o++) {
        double p = exp(row->logits[o] - top) / sum;
        entropy -= p * log(p > 1e-9 ? p : 1e-9);
        if (p > first) {
            second = first;
            first = p;
        } else if (p > second) {
            second = p;
        }
    }
    double k = row->options > 2 ? row->options : 2;
    features[0] = first;
    features[1] = first - second;
    features[2] = entropy / log(k);
    features[3] = k / 255;
}

typedef struct action_job {
    const laya_weights *weights;
    size_t count;        /* rows */
    const double *input; /* [rows, d + 4] */
    const float *bias;   /* [256] */
    float *scratch;      /* [threads, stride] a row of weights for each worker */
    size_t stride;
    double *hidden; /* [rows, 256] */
} action_job;

/* hidden = GELU(W0 input + b0) for TASK inner values and all rows, in float64: published action logits run to thousands. */
static void action_task(void *argument, size_t index, unsigned worker)
{
    const action_job *job = argument;
    size_t width = job->weights->action_in.cols;
    float *weights = job->scratch + worker * job->stride;
    for (size_t j = index * TASK; j < (index + 1) * TASK; j++) {
        laya_tensor_widen(&job->weights->action_in, j * width, width, weights);
        for (size_t r = 0; r < job->count; r++) {
            const double *input = job->input + r * width;
            double sum = 0;
            for (size_t i = 0; i < width; i++) sum += (double)weights[i] * input[i];
            sum += (double)job->bias[j];
            job->hidden[r * HIDDEN + j] = 0.5 * sum * (1 + erf(sum / sqrt(2.0)));
        }
    }
}

/* Action logit `action` of all rows. `weights` has room for HIDDEN values. */
static laya_status action_logits(const action_job *job, laya_row *rows, size_t action, float *weights,
                                 laya_error *error)
{
    float bias;
    laya_tensor_widen(&job->weights->action_out, action * HIDDEN, HIDDEN, weights);
    laya_tensor_widen(&job->weights->action_out_bias, action, 1, &bias);
    for (size_t r = 0; r < job->count; r++) {
        double sum = 0;
        for (size_t j = 0; j < HIDDEN; j++) sum += (double)weights[j] * job->hidden[r * HIDDEN + j];
        sum = (double)(float)(sum + (double)bias);
        rows[r].action_logits[action] = sum;
        if (!isfinite(sum)) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "the action logits are not finite; the weights hold NaN or infinite values");
        }
    }
    return LAYA_OK;
}

laya_status laya_action_head_run(const laya_config *config, const laya_weights *weights, laya_row *rows,
                                 const float *const *states, size_t count, laya_pool *pool, laya_arena *arena,
                                 laya_error *error)
{
    size_t d = config->hidden_size, width = d + FEATURES;
    size_t stride = (width + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    double *input = laya_arena_alloc(arena, count * width, sizeof *input);
    double *hidden = laya_arena_alloc(arena, count * HIDDEN, sizeof *hidden);
    float *bias = laya_arena_alloc(arena, HIDDEN, sizeof *bias);
    float *out_weights = laya_arena_alloc(arena, HIDDEN, sizeof *out_weights);
    float *scratch = laya_arena_alloc(arena, laya_pool_threads(pool) * stride, sizeof *scratch);
    if (!input || !hidden || !bias || !out_weights || !scratch)
        return laya_fail_memory(error, count * (width + HIDDEN) * sizeof *input);
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < d; i++) input[r * width + i] = (double)states[r][i];
        action_features(&rows[r], input + r * width + d);
    }
    laya_tensor_widen(&weights->action_in_bias, 0, HIDDEN, bias);
    const action_job job = {weights, count, input, bias, scratch, stride, hidden};
    laya_pool_run(pool, HIDDEN / TASK, action_task, (void *)&job);
    for (size_t a = 0; a < config->actions; a++) LAYA_TRY(action_logits(&job, rows, a, out_weights, error));
    return LAYA_OK;
}
