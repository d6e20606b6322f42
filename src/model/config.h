/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a model: encoder/config.json and rl_agent_config.json. */
#ifndef LAYA_MODEL_CONFIG_H
#define LAYA_MODEL_CONFIG_H

#include "base/json.h"
#include "base/memory.h"
#include "laya/base.h"

typedef struct laya_config {
    laya_allocator allocator;
    /* encoder/config.json */
    uint32_t vocab_size;
    uint32_t hidden_size; /* d */
    uint32_t encoder_layers;
    uint32_t attention_heads;
    uint32_t head_size;         /* d / attention_heads */
    uint32_t intermediate_size; /* I */
    uint32_t local_attention;   /* keys with |i - j| <= local_attention / 2 */
    uint32_t max_positions;
    double norm_eps;
    double global_rope_theta;
    double local_rope_theta;
    bool *layer_is_global; /* [encoder_layers] */
    /* rl_agent_config.json */
    uint32_t head_layers;
    uint32_t head_heads; /* attention heads of a head layer: max(1, d / 64) */
    uint32_t actions;    /* entries of act_costs + 1 */
    uint32_t max_len;
    uint32_t head_max_len;
    char *encoder_name; /* NUL-terminated */
    char *model_name;   /* NUL-terminated, "" when absent */
} laya_config;

/*
 * Read both documents. The encoder's shape, epsilon, window, layer kinds and both rope thetas are required; the
 * fields of rl_agent_config.json have upstream's defaults, except encoder and head_layers. Integers must be written as
 * integers.
 *
 * Rope: rope_parameters (per kind of layer, or flat) wins over global_rope_theta and local_rope_theta; a missing theta
 * is an error. Window: local_attention counts both sides; sliding_window is half of it, as transformers 5 writes it.
 * Layer kinds: layer_types, else every n-th layer. Two fields that say the same must agree.
 *
 * Refused by name: option_layout other than "sequential", residual_adapters, another model_type, activation or rope
 * type, rope scaling, biases or norm bias in the encoder, a quantization, kinds of layers that are not known. Other
 * fields do not change answers and are not looked at. Errors: FORMAT, UNSUPPORTED, MEMORY; messages name the file and
 * the field.
 */
laya_status laya_config_read(laya_config *config, laya_json_value encoder, laya_json_value agent,
                             const laya_allocator *allocator, laya_error *error);
void laya_config_close(laya_config *config);

#endif
