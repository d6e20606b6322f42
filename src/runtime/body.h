/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of a package of kind body: names, shapes, places. The contract is D20 of the study. */
#ifndef LAYA_RUNTIME_BODY_H
#define LAYA_RUNTIME_BODY_H

#include "coreml/package.h"

typedef enum laya_body_input {
    LAYA_BODY_EMBEDDINGS,   /* [1, d, 1, L] */
    LAYA_BODY_FULL_MASK,    /* [1, L keys, 1, L queries] */
    LAYA_BODY_LOCAL_MASK,   /* the same */
    LAYA_BODY_TYPE_VECTORS, /* [1, d, 1, 1] */
    LAYA_BODY_MARKER_MAP,   /* [1, L, 1, markers] */
    LAYA_BODY_INPUTS
} laya_body_input;

typedef enum laya_body_output {
    LAYA_BODY_OPTION_LOGITS, /* [1, 1, 1, markers] */
    LAYA_BODY_CLS_COLUMN,    /* [1, d, 1, 1] */
    LAYA_BODY_OUTPUTS
} laya_body_output;

typedef struct laya_body_tensor {
    const char *name; /* static storage */
    int64_t shape[4];
} laya_body_tensor;

typedef struct laya_body_shape {
    uint32_t hidden_size; /* d */
    uint32_t length;      /* L */
    uint32_t markers;
    laya_body_tensor inputs[LAYA_BODY_INPUTS];
    laya_body_tensor outputs[LAYA_BODY_OUTPUTS];
} laya_body_shape;

void laya_body_shape_init(laya_body_shape *shape, uint32_t hidden_size, uint32_t length, uint32_t markers);
/* Elements of a tensor. */
size_t laya_body_count(const laya_body_tensor *tensor);

/*
 * A program has these inputs and outputs and no others, with elements of type `dtype`, in the model's description and
 * in its function. Errors: FORMAT (the message names the tensor, expected and found).
 */
laya_status laya_body_check(const laya_mil_program *program, const laya_body_shape *shape, laya_mil_dtype dtype,
                            laya_error *error);

#endif
