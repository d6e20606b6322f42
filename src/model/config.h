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
    uint32_t hidden_size;       /* d */
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
 * Read both documents. Refused by name: option_layout other than "sequential", residual_adapters, another
 * model_type, activation, rope type, biases or norm bias in the encoder, layer kinds that are not known. Both spellings of
 * the rope fields are read and rope_parameters wins; a missing theta is an error. Messages name the file and field.
 */
laya_status laya_config_read(laya_config *config, laya_json_value encoder, laya_json_value agent,
                             const laya_allocator *allocator, laya_error *error);
void laya_config_close(laya_config *config);

#endif
