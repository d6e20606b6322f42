/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported graph: inputs, encoder layers, decision head, outputs (study.md, contract table D20). The encoder uses
 * the exact GELU, the decision head ReLU; norms keep the order normalized * weight + bias.
 */
#include "export/graph.h"

#include "base/error.h"

#include <stdio.h>

#define HEAD_NORM_EPS 1e-5 /* PyTorch's default: decision head and scorer */
/*
 * Of batch_norm, which here only multiplies and adds: its variance is one, and one plus this is one in fp16 and in
 * fp32. Not zero, which some backends do not take.
 */
#define AFFINE_EPS 0x1p-24

/* ------------------------------------------------------------------ parts */

laya_mil_value *laya_graph_linear(laya_graph_builder *graph, const char *label, laya_mil_value *x,
                                  const laya_tensor *weight, const laya_tensor *bias)
{
    size_t scope = laya_mil_enter(&graph->mil, "%s", label);
    laya_mil_value *kernel = laya_graph_kernel(graph, "weight", weight, NULL);
    laya_mil_value *vector = laya_graph_vector(graph, "bias", bias, NULL);
    laya_mil_leave(&graph->mil, scope);
    return laya_mil_conv(&graph->mil, label, x, kernel, vector);
}

laya_mil_value *laya_graph_norm(laya_graph_builder *graph, const char *label, laya_mil_value *x,
                                const laya_tensor *weight, const laya_tensor *bias, double epsilon)
{
    laya_mil_builder *b = &graph->mil;
    bool column = !graph->lean && !bias; /* a multiplication by [1, d, 1, 1] follows */
    size_t scope = laya_mil_enter(b, "%s", label);
    laya_mil_value *gamma = column ? laya_graph_column(graph, "weight", weight)
                                   : laya_graph_vector(graph, "weight", weight, NULL);
    laya_mil_value *beta = bias ? laya_graph_vector(graph, "bias", bias, NULL) : graph->zeros;
    laya_mil_value *normalized = graph->lean ? NULL : laya_mil_layer_norm(b, "normalized", x, 1, NULL, NULL, epsilon);
    laya_mil_leave(b, scope);
    if (graph->lean) return laya_mil_layer_norm(b, label, x, 1, gamma, beta, epsilon);
    if (column) return laya_mil_mul(b, label, normalized, gamma);
    return laya_mil_batch_norm(b, label, normalized, graph->zeros, graph->ones, gamma, beta, AFFINE_EPS);
}

static laya_mil_value *attend(laya_graph_builder *graph, laya_mil_value *x, const laya_graph_attention *attention)
{
    size_t scope = laya_mil_enter(&graph->mil, "attn");
    laya_mil_value *result = graph->lean ? laya_graph_attention_lean(graph, x, attention)
                                         : laya_graph_attention_per_head(graph, x, attention);
    laya_mil_leave(&graph->mil, scope);
    return result;
}

/* ------------------------------------------------------------------ encoder layer */

static laya_mil_value *encoder_norm(laya_graph_builder *graph, const char *label, laya_mil_value *x,
                                    const laya_tensor *weight, const laya_tensor *bias)
{
    return laya_graph_norm(graph, label, x, weight, laya_tensor_or_null(bias), graph->config->norm_eps);
}

/* h + Wo(GELU(u) * v), (u, v) = Wi(norm(h)) */
static laya_mil_value *gated_mlp(laya_graph_builder *graph, laya_mil_value *h, const laya_encoder_weights *w,
                                 const char *label)
{
    laya_mil_builder *b = &graph->mil;
    laya_mil_value *parts[2];
    laya_mil_value *x = encoder_norm(graph, "mlp_norm", h, &w->mlp_norm, &w->mlp_norm_bias);
    laya_mil_value *inner = laya_graph_linear(graph, "mlp_in", x, &w->mlp_in, NULL);
    laya_mil_split(b, "mlp_parts", inner, 1, 2, parts);
    laya_mil_value *active = laya_mil_gelu(b, "mlp_gelu", parts[0]);
    laya_mil_value *gated = laya_mil_mul(b, "mlp_gated", active, parts[1]);
    laya_mil_value *out = laya_graph_linear(graph, "mlp_out", gated, &w->mlp_out, NULL);
    return laya_mil_add(b, label, h, out);
}

static laya_mil_value *encoder_attention(laya_graph_builder *graph, laya_mil_value *h, uint32_t layer)
{
    const laya_config *config = graph->config;
    const laya_encoder_weights *w = &graph->weights->encoder[layer];
    bool global = config->layer_is_global[layer];
    const laya_graph_attention attention = {.heads = config->attention_heads,
                                            .head_size = config->head_size,
                                            .mask = global ? graph->full_mask : graph->local_mask,
                                            .scale = graph->scale,
                                            .rope = &graph->rope[global],
                                            .qkv = &w->wqkv,
                                            .out = &w->attn_out};
    laya_mil_value *x = h;
    if (w->attn_norm.data) x = encoder_norm(graph, "attn_norm", h, &w->attn_norm, &w->attn_norm_bias);
    x = attend(graph, x, &attention);
    return laya_mil_add(&graph->mil, "attn_residual", h, x);
}

static laya_mil_value *encoder_layer(laya_graph_builder *graph, laya_mil_value *h, uint32_t layer, const char *label)
{
    h = encoder_attention(graph, h, layer);
    return gated_mlp(graph, h, &graph->weights->encoder[layer], label);
}

/* ------------------------------------------------------------------ decision head */

static laya_mil_value *head_layer(laya_graph_builder *graph, laya_mil_value *h, const laya_head_weights *w)
{
    laya_mil_builder *b = &graph->mil;
    const laya_config *config = graph->config;
    const laya_graph_attention attention = {.heads = config->head_heads,
                                            .head_size = config->hidden_size / config->head_heads,
                                            .mask = graph->full_mask,
                                            .scale = graph->head_scale,
                                            .qkv = &w->in_proj,
                                            .qkv_bias = &w->in_proj_bias,
                                            .out = &w->out_proj,
                                            .out_bias = &w->out_proj_bias};
    laya_mil_value *x = laya_graph_norm(graph, "norm1", h, &w->norm1, &w->norm1_bias, HEAD_NORM_EPS);
    h = laya_mil_add(b, "attn_residual", h, attend(graph, x, &attention));
    x = laya_graph_norm(graph, "norm2", h, &w->norm2, &w->norm2_bias, HEAD_NORM_EPS);
    x = laya_graph_linear(graph, "linear1", x, &w->linear1, &w->linear1_bias);
    x = laya_mil_relu(b, "relu", x);
    x = laya_graph_linear(graph, "linear2", x, &w->linear2, &w->linear2_bias);
    return laya_mil_add(b, "hidden", h, x);
}

/* The states at the markers to their logits. */
static void score(laya_graph_builder *graph, laya_mil_value *h, laya_mil_value *marker_map)
{
    laya_mil_builder *b = &graph->mil;
    const laya_weights *w = graph->weights;
    laya_mil_value *x = laya_mil_einsum(b, "marker_states", h, marker_map);
    x = laya_graph_norm(graph, "scorer_norm", x, &w->scorer_norm, &w->scorer_norm_bias, HEAD_NORM_EPS);
    x = laya_graph_linear(graph, "scorer_in", x, &w->scorer_in, &w->scorer_in_bias);
    x = laya_mil_gelu(b, "scorer_gelu", x);
    laya_mil_output(b, laya_graph_linear(graph, "option_logits", x, &w->scorer_out, &w->scorer_out_bias));
    const int32_t begin[4] = {0, 0, 0, 0}, end[4] = {1, (int32_t)graph->config->hidden_size, 1, 1};
    laya_mil_output(b, laya_mil_slice(b, "cls_column", h, begin, end));
}

/* ------------------------------------------------------------------ whole graphs */

static laya_mil_value *mask_input(laya_graph_builder *graph, const char *name)
{
    laya_mil_type type = laya_mil_tensor4(graph->dtype, 1, graph->length, 1, graph->length);
    return laya_mil_input(&graph->mil, name, type);
}

static laya_mil_value *hidden_input(laya_graph_builder *graph, const char *name, uint32_t length)
{
    laya_mil_type type = laya_mil_tensor4(graph->dtype, 1, graph->config->hidden_size, 1, length);
    return laya_mil_input(&graph->mil, name, type);
}

/* Constants of norms, of which some have a bias or none has. */
static void make_norm_constants(laya_graph_builder *graph, bool biased)
{
    if (graph->lean || biased) graph->zeros = laya_graph_make_fill(graph, "zeros", 0);
    if (!graph->lean && biased) graph->ones = laya_graph_make_fill(graph, "ones", 1);
}

/* Constants of attention layers of one kind. */
static void make_attention_constants(laya_graph_builder *graph, bool local, bool global)
{
    if (local) laya_graph_make_rope(graph, false);
    if (global) laya_graph_make_rope(graph, true);
    if (graph->lean) laya_graph_make_rotation(graph);
    uint32_t size = graph->config->head_size;
    if (!graph->lean || !laya_graph_scale_folds(size))
        graph->scale = laya_graph_make_scale(graph, "attention_scale", size);
}

static void build_mlp(laya_graph_builder *graph, uint32_t layer)
{
    make_norm_constants(graph, graph->weights->encoder[layer].mlp_norm_bias.data != NULL);
    laya_mil_value *h = hidden_input(graph, "hidden", graph->length);
    laya_mil_output(&graph->mil, gated_mlp(graph, h, &graph->weights->encoder[layer], "hidden_out"));
}

static void build_layer(laya_graph_builder *graph, uint32_t layer)
{
    bool global = graph->config->layer_is_global[layer];
    const laya_encoder_weights *w = &graph->weights->encoder[layer];
    make_norm_constants(graph, w->attn_norm_bias.data || w->mlp_norm_bias.data);
    make_attention_constants(graph, !global, global);
    laya_mil_value *h = hidden_input(graph, "hidden", graph->length);
    laya_mil_value *mask = mask_input(graph, global ? "full_mask" : "local_mask");
    graph->full_mask = graph->local_mask = mask;
    laya_mil_output(&graph->mil, encoder_layer(graph, h, layer, "hidden_out"));
}

static void make_body_constants(laya_graph_builder *graph)
{
    const laya_config *config = graph->config;
    bool kinds[2] = {false, false};
    for (uint32_t layer = 0; layer < config->encoder_layers; layer++) kinds[config->layer_is_global[layer]] = true;
    make_norm_constants(graph, true); /* those of the decision head */
    make_attention_constants(graph, kinds[0], kinds[1]);
    uint32_t size = config->head_layers ? config->hidden_size / config->head_heads : 0;
    if (size == config->head_size)
        graph->head_scale = graph->scale;
    else if (size && (!graph->lean || !laya_graph_scale_folds(size)))
        graph->head_scale = laya_graph_make_scale(graph, "head_attention_scale", size);
}

static void build_body(laya_graph_builder *graph)
{
    laya_mil_builder *b = &graph->mil;
    const laya_config *config = graph->config;
    const laya_weights *w = graph->weights;
    make_body_constants(graph);
    laya_mil_value *h = hidden_input(graph, "embeddings", graph->length);
    graph->full_mask = mask_input(graph, "full_mask");
    graph->local_mask = mask_input(graph, "local_mask");
    laya_mil_value *type = hidden_input(graph, "type_vectors", 1);
    laya_mil_value *marker_map = laya_mil_input(b, "marker_map",
                                                laya_mil_tensor4(graph->dtype, 1, graph->length, 1, graph->markers));

    h = encoder_norm(graph, "embeddings_norm", h, &w->embedding_norm, &w->embedding_norm_bias);
    for (uint32_t layer = 0; layer < config->encoder_layers; layer++) {
        size_t scope = laya_mil_enter(b, "layers_%lu", (unsigned long)layer);
        h = encoder_layer(graph, h, layer, "hidden");
        laya_mil_leave(b, scope);
    }
    h = encoder_norm(graph, "final_norm", h, &w->final_norm, &w->final_norm_bias);
    h = laya_mil_add(b, "typed", h, type);
    for (uint32_t layer = 0; layer < config->head_layers; layer++) {
        size_t scope = laya_mil_enter(b, "head_layers_%lu", (unsigned long)layer);
        h = head_layer(graph, h, &w->head[layer]);
        laya_mil_leave(b, scope);
    }
    score(graph, h, marker_map);
}

static void add_metadata(laya_graph_builder *graph, const laya_export_options *options)
{
    laya_mil_builder *b = &graph->mil;
    char text[32];
    laya_mil_metadata_add(b, "shortDescription", "Laya decision model");
    laya_mil_metadata_add(b, "laya.version", LAYA_VERSION_STRING);
    laya_mil_metadata_add(b, "laya.kind", laya_export_kind_name(options->kind));
    laya_mil_metadata_add(b, "laya.graph", laya_graph_name(options->graph));
    laya_mil_metadata_add(b, "laya.precision", laya_package_precision_name(options->precision));
    snprintf(text, sizeof text, "%lu", (unsigned long)options->length);
    laya_mil_metadata_add(b, "laya.length", text);
    bool body = options->kind == LAYA_EXPORT_BODY;
    snprintf(text, sizeof text, "%lu", (unsigned long)(body ? options->markers : options->layer));
    laya_mil_metadata_add(b, body ? "laya.markers" : "laya.layer", text);
}

laya_status laya_export_build(const laya_model *model, const laya_export_options *options, laya_mil_program *program,
                              laya_error *error)
{
    bool half = options->precision == LAYA_PACKAGE_FP16;
    laya_graph_builder graph = {.model = model,
                                .config = &model->config,
                                .weights = &model->weights,
                                .lean = options->graph == LAYA_GRAPH_LEAN,
                                .dtype = half ? LAYA_MIL_FP16 : LAYA_MIL_FP32,
                                .length = options->length,
                                .markers = options->markers};
    /* The lowest opset that has what the graph uses: fp16 inputs and outputs came with CoreML6. */
    laya_mil_begin(&graph.mil, program, half ? LAYA_MIL_COREML6 : LAYA_MIL_COREML5, error);
    if (graph.mil.status == LAYA_OK) {
        add_metadata(&graph, options);
        switch (options->kind) {
        case LAYA_EXPORT_BODY: build_body(&graph); break;
        case LAYA_EXPORT_LAYER: build_layer(&graph, options->layer); break;
        case LAYA_EXPORT_MLP: build_mlp(&graph, options->layer); break;
        }
    }
    return laya_mil_finish(&graph.mil);
}
