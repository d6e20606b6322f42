/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exported body run by the interpreter in float32, over a model that can be changed, and the list of changes that
 * tests must see.
 */
#ifndef LAYA_TESTS_LAYOUT_BODY_H
#define LAYA_TESTS_LAYOUT_BODY_H

#include "support.h"

#include "export/export.h"
#include "interpreter/interpreter.h"
#include "model/engine.h"
#include "runtime/bundle.h"

#define LAYOUT_MAX_LAYERS 8
#define LAYOUT_MAX_OPTIONS 16
#define LAYOUT_MAX_ACTIONS 8
#define LAYOUT_MAX_WIDTH 192
#define LAYOUT_MARKERS 12u /* slots of the graphs */

/* Configuration and weights of a model; tensors are shared with the files they came from. */
typedef struct layout_subject {
    laya_model model;
    bool global[LAYOUT_MAX_LAYERS];
    laya_encoder_weights encoder[LAYOUT_MAX_LAYERS];
    laya_head_weights head[LAYOUT_MAX_LAYERS];
    laya_arena arena; /* of changed tensors */
} layout_subject;

typedef struct layout_outputs {
    double logits[LAYOUT_MAX_OPTIONS], cls[LAYOUT_MAX_WIDTH], actions[LAYOUT_MAX_ACTIONS];
} layout_outputs;

/* A model, program or input with one thing wrong. */
typedef struct layout_mutant {
    const char *name;
    const char *variant;              /* of the tiny model */
    void (*model)(layout_subject *s); /* changed before the graph is built */
    void (*program)(laya_mil_program *program);
    void (*inputs)(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                   float *const inputs[LAYA_BODY_INPUTS]);
    bool refused; /* on the demo model: errors beyond the limits of S46 */
} layout_mutant;

typedef struct layout_body {
    layout_subject subject;
    const layout_mutant *mutant;
    laya_mil_program program;
    laya_interpreter *interpreter;
    laya_pool *pool;
    laya_arena arena;
    laya_body_shape shape;
    float *inputs[LAYA_BODY_INPUTS];
    const float *results[LAYA_BODY_OUTPUTS];
} layout_body;

/* Fails the test with the error's message. */
void layout_must(laya_status status, const laya_error *error);

/* Nothing changed. */
extern const layout_mutant layout_unchanged;
extern const layout_mutant layout_mutants[];
extern const size_t layout_mutant_count;

/* A graph of one kind, ready to run: subject, program and interpreter of `body`. */
void layout_open(layout_body *body, const layout_mutant *change, const laya_config *config,
                 const laya_weights *weights, const laya_export_options *options);
/* Kind body: its inputs and results too. */
void layout_open_body(layout_body *body, const layout_mutant *change, const laya_config *config,
                      const laya_weights *weights, laya_graph graph, uint32_t length);
void layout_close(layout_body *body);
/* fp32, LAYOUT_MARKERS slots. */
laya_export_options layout_options(laya_graph graph, laya_export_kind kind, uint32_t length);

/* The product's adapter writes the inputs of a row. */
void layout_fill(layout_body *body, const laya_row *row);
/* Run what was filled in, then the host's action head. */
void layout_run_filled(layout_body *body, const laya_row *row, layout_outputs *out);
/* Both. */
void layout_run(layout_body *body, const laya_row *row, layout_outputs *out);

#endif
