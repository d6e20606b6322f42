/* SPDX-License-Identifier: Apache-2.0 */
/* One answer of a package against the reference: errors, margins, certificates. */
#ifndef LAYA_GATE_CHECK_H
#define LAYA_GATE_CHECK_H

#include "gate/reference.h"

/* Limits of the study: S46, D24. */
#define LAYA_GATE_PROBABILITY 0.02      /* largest error of a calibrated probability and of the action probability */
#define LAYA_GATE_PUBLISHED 0.000100001 /* more between two published values, each rounded to four decimals */
#define LAYA_GATE_NEAR_TIE 0.04         /* margin of the reference below which a decision is a near tie */

/* Errors are the largest over all repeats; not finite where a value was not. */
typedef struct laya_question_check {
    const laya_reference_item *item;
    size_t best;                     /* of the package; of the first repeat that differed, where one did */
    size_t reference_best;           /* first maximum of the reference's probabilities */
    bool decided;                    /* every repeat decided as the reference, the published label included */
    bool finite;                     /* every logit and published number */
    bool tokens;                     /* every row had the reference's length */
    double temperature;              /* of the calibration */
    double probability_error;        /* calibrated, not rounded */
    double published_error;          /* of the rounded probabilities of the answer */
    double action_probability_error; /* of softmax(action logits)[0] */
    double published_action_error;   /* of the rounded one */
    double action_logit_error;
    double logit_error;  /* delta: the largest of the options */
    double margin;       /* between the reference's two largest probabilities */
    double logit_margin; /* the same of its logits; infinite for one option */
    bool near_tie;       /* margin < LAYA_GATE_NEAR_TIE */
    bool certified;      /* 2 delta < logit_margin: the decision cannot differ */
} laya_question_check;

typedef struct laya_case_check {
    const laya_reference_case *reference;
    laya_question_check *questions;  /* [reference->input.count] */
    bool evaluated;                  /* else it does not fit, see needed_... */
    uint32_t needed_length;          /* tokens of its longest row */
    uint32_t needed_markers;         /* most options of its questions */
    uint32_t repeats;                /* that ran */
    bool usage;                      /* the usage of every answer equals the reference's */
    bool stable;                     /* all repeats published the same */
    char failure[LAYA_MESSAGE_SIZE]; /* why the package gave no answer, or not the one asked for; "" when it did */
} laya_case_check;

/* Begin the check of a case: margins of the reference, what it needs, whether that fits. */
void laya_case_check_init(laya_case_check *check, const laya_reference_case *reference,
                          laya_question_check *questions, uint32_t length, uint32_t markers);

/*
 * Measure one answer: a document of laya_predict with LAYA_PREDICT_RAW. What it lacks becomes the failure. Working
 * memory comes from `arena`. Errors: MEMORY.
 */
laya_status laya_case_check_answer(laya_case_check *check, const laya_json *answer, laya_arena *arena,
                                   laya_error *error);

/* Whether two such documents publish the same: everything but "raw" is compared. */
bool laya_same_published(const laya_json *a, const laya_json *b);

/* The gates of one question, and of a case with all its questions. */
bool laya_probabilities_passed(const laya_question_check *check);
bool laya_action_passed(const laya_question_check *check);
bool laya_question_passed(const laya_question_check *check);
bool laya_case_passed(const laya_case_check *check);

#endif
