/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of a checkpoint, bound to their places in the model. Linear weights are [out, in]. The encoder's norms
 * have a bias in some ModernBERT models; configurations that say so are refused, and those tensors have no data.
 */
#ifndef LAYA_MODEL_WEIGHTS_H
#define LAYA_MODEL_WEIGHTS_H

#include "model/config.h"
#include "model/safetensors.h"

typedef struct laya_encoder_weights {
    laya_tensor attn_norm;      /* [d]; data NULL in layer 0 */
    laya_tensor attn_norm_bias; /* [d], optional */
    laya_tensor wqkv;           /* [3d, d] */
    laya_tensor attn_out;       /* [d, d] */
    laya_tensor mlp_norm;       /* [d] */
    laya_tensor mlp_norm_bias;  /* [d], optional */
    laya_tensor mlp_in;         /* [2I, d]: rows 0..I-1 go through GELU, the others are the gate */
    laya_tensor mlp_out;        /* [d, I] */
} laya_encoder_weights;

typedef struct laya_head_weights {
    laya_tensor norm1, norm1_bias;     /* [d] */
    laya_tensor in_proj, in_proj_bias; /* [3d, d], [3d] */
    laya_tensor out_proj, out_proj_bias;
    laya_tensor norm2, norm2_bias;
    laya_tensor linear1, linear1_bias; /* [4d, d], [4d] */
    laya_tensor linear2, linear2_bias; /* [d, 4d], [d] */
} laya_head_weights;

typedef struct laya_weights {
    laya_allocator allocator;
    laya_tensor embedding;                     /* [V, d] */
    laya_tensor embedding_norm;                /* [d] */
    laya_tensor embedding_norm_bias;           /* [d], optional */
    laya_tensor final_norm;                    /* [d] */
    laya_tensor final_norm_bias;               /* [d], optional */
    laya_tensor type_embedding;                /* [3, d]: choice, score, noul */
    laya_encoder_weights *encoder;             /* [encoder_layers]; NULL: the host's weights only */
    laya_head_weights *head;                   /* [head_layers] */
    laya_tensor scorer_norm, scorer_norm_bias; /* scorer.0 */
    laya_tensor scorer_in, scorer_in_bias;     /* scorer.1: [d, d], [d] */
    laya_tensor scorer_out, scorer_out_bias;   /* scorer.3: [1, d], [1] */
    laya_tensor action_in, action_in_bias;     /* act_head.0: [256, d + 4], [256] */
    laya_tensor action_out, action_out_bias;   /* act_head.2: [A, 256], [A] */
    laya_tensor temperature;                   /* [3]; checked, never read: rl_agent_config.json decides */
    uint64_t parameters;
} laya_weights;

/* An optional tensor; NULL: the model does not have it. */
static inline const laya_tensor *laya_tensor_or_null(const laya_tensor *tensor)
{
    return tensor->data ? tensor : NULL;
}

/*
 * Bind every tensor. A missing, misshapen or unknown tensor is a FORMAT error in upstream's words (up to five are
 * listed).
 */
laya_status laya_weights_bind(laya_weights *weights, const laya_safetensors *file, const laya_config *config,
                              const laya_allocator *allocator, laya_error *error);
/*
 * Bind only what the host of a package computes with: token and type embedding, action head. The file must hold these
 * six tensors and no other; `encoder` and `head` stay NULL.
 */
laya_status laya_weights_bind_host(laya_weights *weights, const laya_safetensors *file, const laya_config *config,
                                   const laya_allocator *allocator, laya_error *error);
void laya_weights_close(laya_weights *weights);

#endif
