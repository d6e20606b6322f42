/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the exported graph share. Activations are BC1S: [1, channels, 1, sequence]; every dense weight
 * [out, in] is the kernel [out, in, 1, 1] of a convolution.
 */
#ifndef LAYA_EXPORT_GRAPH_H
#define LAYA_EXPORT_GRAPH_H

#include "export/export.h"

/* cos and sin over positions, for one theta. */
typedef struct laya_rope_tables {
    laya_mil_value *cosine, *sine;
} laya_rope_tables;

typedef struct laya_graph_builder {
    laya_mil_builder mil;
    const laya_model *model;
    const laya_config *config;
    const laya_weights *weights;
    laya_mil_dtype dtype; /* of every tensor: fp16 or fp32 */
    bool lean;
    uint32_t length; /* L */
    uint32_t markers;
    laya_mil_value *full_mask, *local_mask; /* [1, L keys, 1, L queries] */
    /* Shared constants, made before the first operation as far as the graph needs them. */
    laya_rope_tables rope[2];     /* of local and global layers */
    laya_mil_value *rotation;     /* lean: [s, s, 1, 1], (x0, x1) -> (-x1, x0) on the halves of a head */
    laya_mil_value *zeros, *ones; /* [d] */
    laya_mil_value *scale;        /* scalar 1 / sqrt(head size) of the encoder; NULL: folded into weights */
    laya_mil_value *head_scale;   /* the same of the decision head */
} laya_graph_builder;

/* How a constant reads a tensor of the checkpoint. */
typedef struct laya_tensor_order {
    const uint32_t *rows; /* tensor row of each row of the constant; NULL: the same */
    const uint32_t *cols; /* the same for columns */
    const float *scales;  /* factor of each row of the constant; NULL: 1 */
} laya_tensor_order;

/* Weights of a tensor [out, in] as [out, in, 1, 1]. order NULL: as stored. Its arrays must lie in the program's arena. */
laya_mil_value *laya_graph_kernel(laya_graph_builder *graph, const char *label, const laya_tensor *tensor,
                                  const laya_tensor_order *order);
/*
 * What is behind a constant of laya_graph_kernel: the tensor, and the tensor's column of each column of the constant
 * (NULL: the same). False: the constant reads no tensor.
 */
bool laya_graph_kernel_view(const laya_mil_constant *constant, const laya_tensor **tensor, const uint32_t **cols);
/* A vector as [n]; NULL when the model has no such tensor. */
laya_mil_value *laya_graph_vector(laya_graph_builder *graph, const char *label, const laya_tensor *tensor,
                                  const laya_tensor_order *order);
/* A vector as [1, n, 1, 1]. */
laya_mil_value *laya_graph_column(laya_graph_builder *graph, const char *label, const laya_tensor *tensor);
/* A constant made of float values, rounded to the graph's type. */
laya_mil_value *laya_graph_constant(laya_graph_builder *graph, const char *label, laya_mil_type type,
                                    const float *values);

/* Make the shared constants. */
void laya_graph_make_rope(laya_graph_builder *graph, bool global);
void laya_graph_make_rotation(laya_graph_builder *graph);
/* 1 / sqrt(head_size) */
laya_mil_value *laya_graph_make_scale(laya_graph_builder *graph, const char *label, uint32_t head_size);
/* [d], all `value` */
laya_mil_value *laya_graph_make_fill(laya_graph_builder *graph, const char *label, float value);

/* Out of memory, unless an earlier error stands. */
void laya_graph_fail_memory(laya_graph_builder *graph, size_t bytes);

/* A dense layer; bias may be NULL or a tensor without data. */
laya_mil_value *laya_graph_linear(laya_graph_builder *graph, const char *label, laya_mil_value *x,
                                  const laya_tensor *weight, const laya_tensor *bias);
/* Layer norm over the channels: normalized * weight (+ bias); bias NULL: none. */
laya_mil_value *laya_graph_norm(laya_graph_builder *graph, const char *label, laya_mil_value *x,
                                const laya_tensor *weight, const laya_tensor *bias, double epsilon);

/* Whether 1 / sqrt(head_size) is a power of two, so that the lean graph folds it into weights. */
bool laya_graph_scale_folds(uint32_t head_size);

/* What attention needs to know about a layer. */
typedef struct laya_graph_attention {
    uint32_t heads, head_size;
    laya_mil_value *mask;
    laya_mil_value *scale;             /* NULL: folded into the weights */
    const laya_rope_tables *rope;      /* NULL: no rotary embedding */
    const laya_tensor *qkv, *qkv_bias; /* [3d, d], [3d] or NULL */
    const laya_tensor *out, *out_bias; /* [d, d], [d] or NULL */
} laya_graph_attention;

/* Projection, attention and output projection of a normalized input [1, d, 1, L]. */
laya_mil_value *laya_graph_attention_per_head(laya_graph_builder *graph, laya_mil_value *x,
                                              const laya_graph_attention *attention);
laya_mil_value *laya_graph_attention_lean(laya_graph_builder *graph, laya_mil_value *x,
                                          const laya_graph_attention *attention);

#endif
