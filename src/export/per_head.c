/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention as the study exports it: every head by itself, 22 operations a head with rotary embedding, 6 without
 * (study.md D3).
 */
#include "export/graph.h"

#include "base/error.h"

/* Halves (a, b) of a head become (a cos - b sin, b cos + a sin). */
static laya_mil_value *rotate(laya_graph_builder *graph, const char *label, laya_mil_value *x,
                              const laya_rope_tables *rope)
{
    laya_mil_builder *b = &graph->mil;
    laya_mil_value *half[2], *parts[2];
    size_t scope = laya_mil_enter(b, "%s", label);
    laya_mil_split(b, "halves", x, 1, 2, half);
    laya_mil_value *low_cos = laya_mil_mul(b, "low_cos", half[0], rope->cosine);
    laya_mil_value *high_sin = laya_mil_mul(b, "high_sin", half[1], rope->sine);
    laya_mil_value *high_cos = laya_mil_mul(b, "high_cos", half[1], rope->cosine);
    laya_mil_value *low_sin = laya_mil_mul(b, "low_sin", half[0], rope->sine);
    parts[0] = laya_mil_sub(b, "low", low_cos, high_sin);
    parts[1] = laya_mil_add(b, "high", high_cos, low_sin);
    laya_mil_value *rotated = laya_mil_concat(b, "rotated", parts, 2, 1);
    laya_mil_leave(b, scope);
    return rotated;
}

/* One head: query, key and value [1, s, 1, L]. */
static laya_mil_value *attend(laya_graph_builder *graph, const laya_graph_attention *attention, laya_mil_value *query,
                              laya_mil_value *key, laya_mil_value *value)
{
    static const int32_t perm[4] = {0, 3, 2, 1};
    laya_mil_builder *b = &graph->mil;
    if (attention->rope) {
        query = rotate(graph, "query", query, attention->rope);
        key = rotate(graph, "key", key, attention->rope);
    }
    laya_mil_value *keys = laya_mil_transpose(b, "keys", key, perm);
    laya_mil_value *scores = laya_mil_einsum(b, "scores", keys, query);
    scores = laya_mil_mul(b, "scaled", scores, attention->scale);
    scores = laya_mil_add(b, "masked", scores, attention->mask);
    laya_mil_value *weights = laya_mil_softmax(b, "weights", scores, 1);
    return laya_mil_einsum(b, "context", value, weights);
}

laya_mil_value *laya_graph_attention_per_head(laya_graph_builder *graph, laya_mil_value *x,
                                              const laya_graph_attention *attention)
{
    static const char *const labels[3] = {"query", "key", "value"};
    laya_mil_builder *b = &graph->mil;
    uint32_t heads = attention->heads;
    laya_arena *arena = &b->program->arena;
    laya_mil_value *parts[3];
    laya_mil_value **split[3];
    laya_mil_value **contexts = laya_arena_alloc(arena, heads, sizeof *contexts);
    bool taken = contexts != NULL;
    for (size_t i = 0; i < 3; i++) {
        split[i] = laya_arena_alloc(arena, heads, sizeof *split[i]);
        taken = taken && split[i];
    }
    if (!taken) {
        laya_graph_fail_memory(graph, heads * sizeof *contexts);
        return NULL;
    }
    laya_mil_value *qkv = laya_graph_linear(graph, "qkv", x, attention->qkv, attention->qkv_bias);
    laya_mil_split(b, "qkv_parts", qkv, 1, 3, parts);
    for (size_t i = 0; i < 3; i++) laya_mil_split(b, labels[i], parts[i], 1, heads, split[i]);
    for (uint32_t head = 0; head < heads; head++) {
        size_t scope = laya_mil_enter(b, "head_%lu", (unsigned long)head);
        contexts[head] = attend(graph, attention, split[0][head], split[1][head], split[2][head]);
        laya_mil_leave(b, scope);
    }
    laya_mil_value *context = laya_mil_concat(b, "context", contexts, heads, 1);
    return laya_graph_linear(graph, "out", context, attention->out, attention->out_bias);
}
