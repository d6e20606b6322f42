/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole network in float64 with plain loops: one row at a time, one operation after the other, in the order and
 * with the names of docs/MODEL.md. It shares no arithmetic with the float32 engine, and the tests hold that one
 * against it.
 */
#include "model/engine.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>

#define HEAD_EPS 1e-5 /* of the norms in the decision head and the scorer */
#define ACTION_HIDDEN 256u

/* One row and its activations. Matrices are [tokens, width], row-major, without padding. */
typedef struct state {
    const laya_config *config;
    const laya_weights *weights;
    const laya_trace *trace;
    laya_row *row;
    size_t tokens; /* n */
    size_t d;
    double *h;      /* [n, d] residual stream */
    double *x;      /* [n, d] normalized, or mixed by attention */
    double *qkv;    /* [n, 3d] */
    double *wide;   /* [n, max(2I, 4d)] inner layers before the activation */
    double *scores; /* [n] of one query */
    float *weight;  /* one row of a matrix: max(4d, I, d + 4) */
    double *input;  /* [d + 4] of the action head */
} state;

static void see(const state *s, const char *name, const double *values, size_t rows)
{
    if (s->trace) s->trace->see(s->trace->user, name, values, rows, s->d);
}

static double value_at(const laya_tensor *tensor, size_t at)
{
    float value;
    laya_tensor_widen(tensor, at, 1, &value);
    return (double)value;
}

/* MODEL.md, "Elementary operations": GELU(x) = x / 2 * (1 + erf(x / sqrt(2))) */
static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2.0)));
}

/*
 * MODEL.md, "Elementary operations": (x - mean) / sqrt(variance + eps) * gain + shift; a tensor without data is 1 or
 * 0.
 */
static void norm(const double *in, size_t d, const laya_tensor *gain, const laya_tensor *shift, double eps,
                 double *out)
{
    double mean = 0, variance = 0;
    for (size_t i = 0; i < d; i++) mean += in[i];
    mean /= (double)d;
    for (size_t i = 0; i < d; i++) variance += (in[i] - mean) * (in[i] - mean);
    variance /= (double)d;
    for (size_t i = 0; i < d; i++) {
        out[i] = (in[i] - mean) / sqrt(variance + eps) * value_at(gain, i);
        if (shift) out[i] += value_at(shift, i);
    }
}

/* out[t][o] = sum over i of in[t][i] * w[o][i], plus bias[o] */
static void linear(const state *s, const double *in, size_t tokens, const laya_tensor *w, const laya_tensor *bias,
                   double *out)
{
    size_t width = w->cols;
    for (size_t o = 0; o < w->rows; o++) {
        laya_tensor_widen(w, o * width, width, s->weight);
        double start = bias ? value_at(bias, o) : 0;
        for (size_t t = 0; t < tokens; t++) {
            double sum = 0;
            for (size_t i = 0; i < width; i++) sum += in[t * width + i] * (double)s->weight[i];
            out[t * w->rows + o] = sum + start;
        }
    }
}

/*
 * MODEL.md, "Attention": x[i] = sum over j of softmax_j(q[i] . k[j] / sqrt(size)) v[j], for |i - j| <= window, per
 * head.
 */
static void attend(const state *s, size_t heads, size_t window)
{
    size_t size = s->d / heads, stride = 3 * s->d;
    for (size_t head = 0; head < heads; head++) {
        for (size_t i = 0; i < s->tokens; i++) {
            size_t first = i > window ? i - window : 0;
            size_t last = s->tokens - i > window ? i + window + 1 : s->tokens;
            const double *q = s->qkv + i * stride + head * size;
            double top = -INFINITY, sum = 0;
            for (size_t j = first; j < last; j++) {
                const double *k = s->qkv + j * stride + s->d + head * size;
                double dot = 0;
                for (size_t c = 0; c < size; c++) dot += q[c] * k[c];
                s->scores[j] = dot / sqrt((double)size);
                if (s->scores[j] > top) top = s->scores[j];
            }
            for (size_t j = first; j < last; j++) {
                s->scores[j] = exp(s->scores[j] - top);
                sum += s->scores[j];
            }
            double *out = s->x + i * s->d + head * size;
            for (size_t c = 0; c < size; c++) out[c] = 0;
            for (size_t j = first; j < last; j++) {
                const double *v = s->qkv + j * stride + 2 * s->d + head * size;
                for (size_t c = 0; c < size; c++) out[c] += s->scores[j] / sum * v[c];
            }
        }
    }
}

/* MODEL.md, "Rotary embedding": pairs (c, c + size / 2) of queries and keys turn by position * theta^(-2c / size). */
static void rotate(const state *s, size_t heads, double theta)
{
    size_t size = s->d / heads, half = size / 2;
    for (size_t t = 0; t < s->tokens; t++) {
        for (size_t head = 0; head < 2 * heads; head++) { /* queries and keys lie side by side */
            double *channel = s->qkv + t * 3 * s->d + head * size;
            for (size_t c = 0; c < half; c++) {
                double angle = (double)t * pow(theta, -2.0 * (double)c / (double)size);
                double a = channel[c], b = channel[c + half];
                channel[c] = a * cos(angle) - b * sin(angle);
                channel[c + half] = b * cos(angle) + a * sin(angle);
            }
        }
    }
}

/* h += linear(in); s->wide or s->qkv, whichever `in` is not, may serve as `spare` [n, d]. */
static void add_linear(const state *s, const double *in, const laya_tensor *w, const laya_tensor *bias, double *spare)
{
    linear(s, in, s->tokens, w, bias, spare);
    for (size_t i = 0; i < s->tokens * s->d; i++) s->h[i] += spare[i];
}

static void norm_all(const state *s, const laya_tensor *gain, const laya_tensor *shift, double eps)
{
    for (size_t t = 0; t < s->tokens; t++) norm(s->h + t * s->d, s->d, gain, shift, eps, s->x + t * s->d);
}

/* MODEL.md, "Encoder" */
static void encoder(const state *s)
{
    const laya_config *config = s->config;
    const laya_weights *w = s->weights;
    size_t inner = config->intermediate_size;
    char name[48];
    for (size_t t = 0; t < s->tokens; t++) {
        double *h = s->h + t * s->d;
        for (size_t i = 0; i < s->d; i++) h[i] = value_at(&w->embedding, (size_t)s->row->ids[t] * s->d + i);
        norm(h, s->d, &w->embedding_norm, laya_tensor_or_null(&w->embedding_norm_bias), config->norm_eps, h);
    }
    see(s, "embeddings", s->h, s->tokens);
    for (uint32_t layer = 0; layer < config->encoder_layers; layer++) {
        const laya_encoder_weights *l = &w->encoder[layer];
        bool global = config->layer_is_global[layer];
        if (layer) norm_all(s, &l->attn_norm, laya_tensor_or_null(&l->attn_norm_bias), config->norm_eps);
        linear(s, layer ? s->x : s->h, s->tokens, &l->wqkv, NULL, s->qkv);
        rotate(s, config->attention_heads, global ? config->global_rope_theta : config->local_rope_theta);
        attend(s, config->attention_heads, global ? s->tokens : config->local_attention / 2);
        add_linear(s, s->x, &l->attn_out, NULL, s->qkv);

        norm_all(s, &l->mlp_norm, laya_tensor_or_null(&l->mlp_norm_bias), config->norm_eps);
        linear(s, s->x, s->tokens, &l->mlp_in, NULL, s->wide);
        for (size_t t = 0; t < s->tokens;
             t++) { /* [n, 2I] becomes [n, I]; a row's target never lies behind its source */
            const double *u = s->wide + t * 2 * inner, *gate = u + inner;
            for (size_t i = 0; i < inner; i++) s->wide[t * inner + i] = gelu(u[i]) * gate[i];
        }
        add_linear(s, s->wide, &l->mlp_out, NULL, s->qkv);
        snprintf(name, sizeof name, "encoder.layer.%lu", (unsigned long)layer);
        see(s, name, s->h, s->tokens);
    }
    for (size_t t = 0; t < s->tokens; t++) {
        double *h = s->h + t * s->d;
        norm(h, s->d, &w->final_norm, laya_tensor_or_null(&w->final_norm_bias), config->norm_eps, h);
    }
    see(s, "encoder.final_norm", s->h, s->tokens);
}

/* MODEL.md, "Decision head" */
static void head(const state *s)
{
    const laya_weights *w = s->weights;
    char name[32];
    for (size_t t = 0; t < s->tokens; t++) {
        for (size_t i = 0; i < s->d; i++) s->h[t * s->d + i] += value_at(&w->type_embedding, s->row->type * s->d + i);
    }
    see(s, "head.input", s->h, s->tokens);
    for (uint32_t layer = 0; layer < s->config->head_layers; layer++) {
        const laya_head_weights *l = &w->head[layer];
        norm_all(s, &l->norm1, &l->norm1_bias, HEAD_EPS);
        linear(s, s->x, s->tokens, &l->in_proj, &l->in_proj_bias, s->qkv);
        attend(s, s->config->head_heads, s->tokens);
        add_linear(s, s->x, &l->out_proj, &l->out_proj_bias, s->qkv);
        norm_all(s, &l->norm2, &l->norm2_bias, HEAD_EPS);
        linear(s, s->x, s->tokens, &l->linear1, &l->linear1_bias, s->wide);
        for (size_t i = 0; i < s->tokens * 4 * s->d; i++) s->wide[i] = s->wide[i] > 0 ? s->wide[i] : 0;
        add_linear(s, s->wide, &l->linear2, &l->linear2_bias, s->qkv);
        snprintf(name, sizeof name, "head.layer.%lu", (unsigned long)layer);
        see(s, name, s->h, s->tokens);
    }
}

/* MODEL.md, "Scorer" */
static void score(const state *s)
{
    const laya_weights *w = s->weights;
    size_t options = s->row->options; /* no more than tokens */
    for (size_t o = 0; o < options; o++) {
        for (size_t i = 0; i < s->d; i++) s->x[o * s->d + i] = s->h[s->row->markers[o] * s->d + i];
    }
    see(s, "scorer.input", s->x, options);
    for (size_t o = 0; o < options; o++) {
        norm(s->x + o * s->d, s->d, &w->scorer_norm, &w->scorer_norm_bias, HEAD_EPS, s->x + o * s->d);
    }
    linear(s, s->x, options, &w->scorer_in, &w->scorer_in_bias, s->qkv);
    for (size_t i = 0; i < options * s->d; i++) s->qkv[i] = gelu(s->qkv[i]);
    linear(s, s->qkv, options, &w->scorer_out, &w->scorer_out_bias, s->row->logits);
}

/* MODEL.md, "Action head": the first token's state and four features of the uncalibrated probabilities. */
static void act(const state *s)
{
    const laya_weights *w = s->weights;
    const laya_row *row = s->row;
    double top = -INFINITY, sum = 0, first = 0, second = 0, entropy = 0;
    double k = row->options > 2 ? row->options : 2;
    for (uint32_t o = 0; o < row->options; o++) top = fmax(top, row->logits[o]);
    for (uint32_t o = 0; o < row->options; o++) sum += exp(row->logits[o] - top);
    for (uint32_t o = 0; o < row->options; o++) {
        double p = exp(row->logits[o] - top) / sum;
        entropy -= p * log(fmax(p, 1e-9));
        second = fmax(second, fmin(first, p));
        first = fmax(first, p);
    }
    for (size_t i = 0; i < s->d; i++) s->input[i] = s->h[i];
    s->input[s->d] = first;
    s->input[s->d + 1] = first - second;
    s->input[s->d + 2] = entropy / log(k);
    s->input[s->d + 3] = k / 255;
    double hidden[ACTION_HIDDEN] = {0};
    linear(s, s->input, 1, &w->action_in, &w->action_in_bias, hidden);
    for (size_t i = 0; i < ACTION_HIDDEN; i++) hidden[i] = gelu(hidden[i]);
    linear(s, hidden, 1, &w->action_out, &w->action_out_bias, row->action_logits);
}

static laya_status run_row(const laya_network *network, laya_row *row, laya_arena *arena, const laya_trace *trace,
                           laya_error *error)
{
    const laya_config *config = network->config;
    size_t n = row->count, d = config->hidden_size, inner = config->intermediate_size;
    size_t wide = 2 * inner > 4 * d ? 2 * inner : 4 * d;
    state s = {.config = config, .weights = network->weights, .trace = trace, .row = row, .tokens = n, .d = d};
    s.h = laya_arena_alloc(arena, n, d * sizeof *s.h);
    s.x = laya_arena_alloc(arena, n, d * sizeof *s.x);
    s.qkv = laya_arena_alloc(arena, n, 3 * d * sizeof *s.qkv);
    s.wide = laya_arena_alloc(arena, n, wide * sizeof *s.wide);
    s.scores = laya_arena_alloc(arena, n, sizeof *s.scores);
    s.weight = laya_arena_alloc(arena, wide + ACTION_HIDDEN, sizeof *s.weight);
    s.input = laya_arena_alloc(arena, d + 4, sizeof *s.input);
    if (!s.h || !s.x || !s.qkv || !s.wide || !s.scores || !s.weight || !s.input) {
        return laya_fail_memory(error, n * (5 * d + wide) * sizeof *s.h);
    }
    encoder(&s);
    head(&s);
    score(&s);
    act(&s);
    for (uint32_t o = 0; o < row->options; o++) {
        if (isfinite(row->logits[o])) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "the option logits are not finite; the weights hold NaN or infinite values");
    }
    for (uint32_t a = 0; a < config->actions; a++) {
        if (isfinite(row->action_logits[a])) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "the action logits are not finite; the weights hold NaN or infinite values");
    }
    return LAYA_OK;
}

laya_status laya_reference_run(const laya_network *network, laya_row *rows, size_t count, laya_arena *arena,
                               const laya_trace *trace, laya_error *error)
{
    if (trace && count > 1)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "a trace needs a single row, got %zu", count);
    LAYA_TRY(laya_check_weights(network->weights, error));
    for (size_t r = 0; r < count; r++) {
        LAYA_TRY(laya_check_interrupt(network->interrupt, error));
        LAYA_TRY(laya_check_row(network->config, &rows[r], error));
        laya_arena_mark mark = laya_arena_save(arena);
        LAYA_TRY(run_row(network, &rows[r], arena, trace, error));
        laya_arena_restore(arena, mark);
        const laya_progress *progress = network->progress;
        if (progress && progress->report) progress->report(progress->user, r + 1, count);
    }
    return LAYA_OK;
}
