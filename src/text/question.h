/* SPDX-License-Identifier: Apache-2.0 */
/* Questions: checked, and rendered into the texts of the prompt. */
#ifndef LAYA_TEXT_QUESTION_H
#define LAYA_TEXT_QUESTION_H

#include "base/json.h"
#include "base/memory.h"
#include "laya/predict.h"

typedef struct laya_span {
    const char *text; /* UTF-8, not NUL-terminated */
    size_t size;
} laya_span;

/* A question whose texts are ready for the tokenizer. All memory belongs to the arena of the call. */
typedef struct laya_query {
    laya_span id;
    laya_question_type type;
    laya_span head;           /* "<type> question: <instructions>" */
    uint32_t count;           /* options, at least 1 */
    const laya_span *options; /* [count] rendered, in the caller's order */
    const laya_span *labels;  /* choice: [count] answer keys; NULL otherwise */
    const laya_span *legend;  /* score: [count] level texts; NULL otherwise */
    const uint32_t *order;    /* [count] slot s of the prompt shows option order[s]; NULL: as given */
} laya_query;

/* "choice", "score", "noul" */
const char *laya_question_type_name(laya_question_type type);

/* The texts "question 'id': " + message, with the id in Python's repr form. Returns LAYA_ERROR_INPUT. */
laya_status laya_fail_question(laya_error *error, laya_span id, const char *message);

/* Check and render one member of the questions object. Errors: INPUT (the question is named), MEMORY. */
laya_status laya_query_from_json(laya_query *query, laya_json_value id, laya_json_value definition, laya_arena *arena,
                                 laya_error *error);

/* Check and render a question that came as a struct. Errors: ARGUMENT, INPUT, MEMORY. */
laya_status laya_query_from_struct(laya_query *query, const laya_question *question, laya_arena *arena,
                                   laya_error *error);

#endif
