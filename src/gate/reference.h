/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference files: what a full-precision implementation answers to the cases of a fixture, with its token rows and
 * unrounded logits (docs/REFERENCE.md).
 */
#ifndef LAYA_GATE_REFERENCE_H
#define LAYA_GATE_REFERENCE_H

#include "gate/fixture.h"
#include "laya/gate.h"
#include "laya/predict.h"

#define LAYA_REFERENCE_FORMAT "laya-reference"
#define LAYA_REFERENCE_NATIVE "native fp32 engine"
#define LAYA_REFERENCE_UPSTREAM "upstream PyTorch fp32"

/* One question: its row, and what the network gave. Arrays live as long as the reference. */
typedef struct laya_reference_item {
    const char *id;      /* NUL-terminated; of the question */
    const uint32_t *ids; /* [count] */
    uint32_t count;
    const uint32_t *markers; /* [options] positions in the row, in the order of the prompt */
    uint32_t options;
    laya_question_type type;
    const double *logits;        /* [options] in the order of the question's options, before the temperature */
    const double *action_logits; /* [actions] */
    uint32_t actions;
} laya_reference_item;

typedef struct laya_reference_case {
    laya_fixture_case input;          /* state and questions, as JSON texts */
    const laya_reference_item *items; /* [input.count], in the order of the questions */
    laya_json_value answers;          /* object id -> answer, in the same order, rounded as laya_predict rounds */
    laya_json_value usage;            /* object: "input_tokens", ... */
} laya_reference_case;

/* What one checkpoint answers. */
typedef struct laya_reference_model {
    const char *name;
    const char *weights_sha256; /* of model.safetensors */
    const char *config_sha256;  /* of rl_agent_config.json; "" when not recorded */
    const laya_reference_case *cases;
    size_t count;     /* cases, at least 1 */
    size_t questions; /* in all cases */
} laya_reference_model;

/* Not to be copied while it is open. */
typedef struct laya_reference {
    char sha256[65];            /* of the file */
    const char *class;          /* LAYA_REFERENCE_NATIVE or LAYA_REFERENCE_UPSTREAM */
    const char *fixture_sha256; /* of the fixture it was recorded from */
    const laya_reference_model *models;
    size_t count; /* models, at least 1 */
    laya_file file;
    laya_json doc;
    laya_arena arena;
} laya_reference;

/*
 * Read a reference file. Everything is checked that can be checked without the checkpoint: counts fit each other,
 * markers lie inside their rows, numbers are finite. Errors: IO, FORMAT (file, field, expected and found), MEMORY.
 */
laya_status laya_reference_open(laya_reference *reference, const char *path, const laya_allocator *allocator,
                                laya_error *error);
/* The same for the text of a file, which must outlive the reference; messages do not name one. Errors: FORMAT, MEMORY. */
laya_status laya_reference_parse(laya_reference *reference, const char *text, size_t size,
                                 const laya_allocator *allocator, laya_error *error);
void laya_reference_close(laya_reference *reference);

/* The model that was recorded from these weights (64 hex digits); NULL: none. */
const laya_reference_model *laya_reference_find(const laya_reference *reference, const char *weights_sha256);

#endif
