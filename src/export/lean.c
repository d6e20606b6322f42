/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same attention with all heads in one operation. Channels of the projection are ordered so that one reshape gives
 * [1, s, heads, L]: heads live in the third axis, where einsum treats them as a batch.
 *
 * Projected channel c of head h stands in row c * slots + h, slots being 2 * heads for queries and keys together
 * (queries first) and heads for values. The output projection reads its columns in the order of the values. These are
 * permutations and exact. 1 / sqrt(s) is folded into the rows of queries and keys where it is a power of two, half of
 * the exponent each, so that both keep like magnitudes; exact but for weights that become subnormal in fp16.
 */
#include "export/graph.h"

#include "base/error.h"

/* Rows `first` … of slots * size: row c * slots + slot of the constant is row slot * size + c of the tensor. */
static void interleave(uint32_t *rows, uint32_t first, uint32_t slots, uint32_t size)
{
    for (uint32_t c = 0; c < size; c++) {
        for (uint32_t slot = 0; slot < slots; slot++) {
            rows[first + c * slots + slot] = first + slot * size + c;
        }
    }
}

bool laya_graph_scale_folds(uint32_t head_size)
{
    while (head_size > 1 && head_size % 4 == 0) head_size /= 4;
    return head_size == 1;
}

/* 1 / sqrt(size) = query * key, both powers of two. size is a power of 4. */
static void split_scale(uint32_t size, float *query, float *key)
{
    *query = *key = 1.0f;
    for (unsigned step = 0; size > 1; size /= 4, step++) {
        if (step % 2 == 0)
            *query /= 2;
        else
            *key /= 2;
    }
}

static laya_status make_orders(laya_graph_builder *graph, const laya_graph_attention *attention,
                               laya_tensor_order *qkv, laya_tensor_order *out)
{
    uint32_t heads = attention->heads, size = attention->head_size, d = heads * size;
    laya_arena *arena = &graph->mil.program->arena;
    uint32_t *rows = laya_arena_alloc(arena, 3 * (size_t)d, sizeof *rows);
    uint32_t *cols = laya_arena_alloc(arena, d, sizeof *cols);
    float *scales = attention->scale ? NULL : laya_arena_alloc(arena, 3 * (size_t)d, sizeof *scales);
    if (!rows || !cols || (!scales && !attention->scale)) {
        laya_graph_fail_memory(graph, 3 * (size_t)d * sizeof *rows);
        return LAYA_ERROR_MEMORY;
    }
    interleave(rows, 0, 2 * heads, size);
    interleave(rows, 2 * d, heads, size);
    interleave(cols, 0, heads, size);
    float query, key;
    split_scale(size, &query, &key);
    for (uint32_t row = 0; scales && row < 3 * d; row++) scales[row] = rows[row] < d ? query : key;
    for (uint32_t row = 2 * d; scales && row < 3 * d; row++) scales[row] = 1.0f;
    *qkv = (laya_tensor_order){.rows = rows, .scales = scales};
    *out = (laya_tensor_order){.cols = cols};
    return LAYA_OK;
}

/* Queries and keys [1, s, 2 heads, L] at once: x cos + (P x) sin. */
static laya_mil_value *rotate(laya_graph_builder *graph, laya_mil_value *x, const laya_rope_tables *rope)
{
    laya_mil_builder *b = &graph->mil;
    laya_mil_value *straight = laya_mil_mul(b, "rope_cos", x, rope->cosine);
    laya_mil_value *turned = laya_mil_conv(b, "rope_turned", x, graph->rotation, NULL);
    turned = laya_mil_mul(b, "rope_sin", turned, rope->sine);
    return laya_mil_add(b, "rope", straight, turned);
}

static laya_mil_value *linear(laya_graph_builder *graph, const char *label, laya_mil_value *x,
                              const laya_tensor *weight, const laya_tensor_order *order, laya_mil_value *bias)
{
    size_t scope = laya_mil_enter(&graph->mil, "%s", label);
    laya_mil_value *kernel = laya_graph_kernel(graph, "weight", weight, order);
    laya_mil_leave(&graph->mil, scope);
    return laya_mil_conv(&graph->mil, label, x, kernel, bias);
}

laya_mil_value *laya_graph_attention_lean(laya_graph_builder *graph, laya_mil_value *x,
                                          const laya_graph_attention *attention)
{
    static const int32_t perm[4] = {0, 3, 2, 1};
    laya_mil_builder *b = &graph->mil;
    int32_t heads = (int32_t)attention->heads, size = (int32_t)attention->head_size, d = heads * size;
    int32_t length = (int32_t)graph->length;
    const int32_t sizes[2] = {2 * d, d};
    const int32_t pair_shape[4] = {1, size, 2 * heads, length}, value_shape[4] = {1, size, heads, length};
    const int32_t flat_shape[4] = {1, d, 1, length};
    laya_tensor_order qkv_order, out_order;
    if (make_orders(graph, attention, &qkv_order, &out_order) != LAYA_OK) return NULL;

    laya_mil_value *parts[2], *pair[2];
    laya_mil_value *bias = laya_graph_vector(graph, "qkv_bias", attention->qkv_bias, &qkv_order);
    laya_mil_value *qkv = linear(graph, "qkv", x, attention->qkv, &qkv_order, bias);
    laya_mil_split_sizes(b, "qkv_parts", qkv, 1, 2, sizes, parts);
    laya_mil_value *rotary = laya_mil_reshape(b, "query_key", parts[0], 4, pair_shape);
    laya_mil_value *values = laya_mil_reshape(b, "values", parts[1], 4, value_shape);
    if (attention->rope) rotary = rotate(graph, rotary, attention->rope);
    laya_mil_split(b, "query_key_parts", rotary, 2, 2, pair);
    laya_mil_value *query = attention->scale ? laya_mil_mul(b, "scaled", pair[0], attention->scale) : pair[0];
    laya_mil_value *keys = laya_mil_transpose(b, "keys", pair[1], perm);
    laya_mil_value *scores = laya_mil_einsum(b, "scores", keys, query);
    scores = laya_mil_add(b, "masked", scores, attention->mask);
    laya_mil_value *weights = laya_mil_softmax(b, "weights", scores, 1);
    laya_mil_value *context = laya_mil_einsum(b, "context", values, weights);
    context = laya_mil_reshape(b, "context_flat", context, 4, flat_shape);
    bias = laya_graph_vector(graph, "out_bias", attention->out_bias, NULL);
    return linear(graph, "out", context, attention->out, &out_order, bias);
}
