/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predictions: questions about a state, answered with calibrated probabilities.
 *
 * Two doors lead to the same engine: laya_predict takes and gives JSON text in upstream's format,
 * laya_decide takes and gives structs.
 */
#ifndef LAYA_PREDICT_H
#define LAYA_PREDICT_H

#include "laya/base.h"
#include "laya/bundle.h"
#include "laya/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct laya_context laya_context;

typedef enum laya_precision {
    LAYA_PRECISION_FLOAT = 0, /* float32 arithmetic on the stored weights */
    LAYA_PRECISION_DOUBLE = 1 /* plain loops in float64: slow, an oracle for tests and audits */
} laya_precision;

typedef struct laya_context_options {
    size_t size;      /* sizeof(laya_context_options); set by laya_context_options_init */
    unsigned threads; /* threads that compute, the caller included; 0: one per online CPU */
    laya_precision precision;
    laya_progress progress;   /* zero: none */
    laya_interrupt interrupt; /* asked before each question of a bundle, else before each group of rows; zero: none */
    laya_bundle *bundle;      /* answers come from its packages; NULL: from the CPU engine */
    int long_native;          /* non-zero: questions that fit no package go to the CPU engine; not where the bundle
                                 stands alone. Zero: they are an error */
} laya_context_options;

/* Fill in the defaults: a thread per CPU, float32, the CPU engine. */
LAYA_API void laya_context_options_init(laya_context_options *options);

/*
 * Open a context: working memory and worker threads for calls from one thread at a time. The answers
 * have the same bits for any number of threads.
 *
 * model    where options name a bundle: laya_bundle_model of it
 * options  NULL means the defaults
 * context  receives the context; close it with laya_context_close before its model and bundle
 *
 * Errors: ARGUMENT, MEMORY, SYSTEM (a thread cannot be started), UNSUPPORTED (the model of a bundle that stands alone,
 * without its bundle).
 */
LAYA_API laya_status laya_context_open(const laya_model *model, const laya_context_options *options,
                                       laya_context **context, laya_error *error);

/* Release a context and everything that its calls returned. NULL is allowed. */
LAYA_API void laya_context_close(laya_context *context);

/* Status and message of the last call on this context; valid until the next. */
LAYA_API const laya_error *laya_context_error(const laya_context *context);

/* Flags of laya_predict_options. */
enum {
    LAYA_PREDICT_STATE_TOKEN_COUNTS = 1, /* usage also has state_tokens and state_tokens_dropped */
    LAYA_PREDICT_RAW = 2,                /* each answer also has "raw": logits and action logits */
    LAYA_PREDICT_PRETTY = 4              /* the JSON is indented by two spaces */
};

typedef struct laya_predict_options {
    size_t size;                /* sizeof(laya_predict_options); set by laya_predict_options_init */
    unsigned flags;             /* LAYA_PREDICT_... */
    uint32_t max_len;           /* longest row, tokens; 0: the checkpoint's; at most its max_positions */
    uint32_t head_max_len;      /* soft budget of question and options, tokens; 0: the checkpoint's */
    const char *lang;           /* language of the state ("de-AT") for lang_temperatures; NULL: none */
    const char *min_confidence; /* JSON: a number in [0, 1] or an object bucket -> number with an optional
                                   "default"; NULL: no abstention gate */
} laya_predict_options;

/* Fill in the defaults: everything as the checkpoint says, no gate. */
LAYA_API void laya_predict_options_init(laya_predict_options *options);

/*
 * Answer questions about a state, from JSON text to JSON text.
 *
 * state      any JSON value but null; text that is not a string is put into the prompt as Python's
 *            json.dumps(state, ensure_ascii=False) writes it
 * questions  object: id -> {"type": "choice" | "score" | "noul", "instructions": ..., "criteria": ...}
 * options    NULL means the defaults
 * result     receives {"model", "answers", "usage"}, NUL-terminated, owned by the context and valid until
 *            its next call
 * size       receives the length of the text in bytes; may be NULL
 *
 * With a bundle each answer also has "served_by": {"executor", "length"}, the length of the package or null.
 *
 * Errors: INPUT (JSON, state or question not acceptable, options that do not fit, a row that fits no package; the
 * message names the question), ARGUMENT, MEMORY, STOPPED, FORMAT (a result is not finite; what the package's executor
 * says). Message: laya_context_error.
 */
LAYA_API laya_status laya_predict(laya_context *context, const char *state, size_t state_size, const char *questions,
                                  size_t questions_size, const laya_predict_options *options, const char **result,
                                  size_t *size);

/* ------------------------------------------------------------------ structs instead of JSON */

typedef enum laya_question_type {
    LAYA_CHOICE = 0, /* one of the labels */
    LAYA_SCORE = 1,  /* a level, 0 .. count - 1 */
    LAYA_NOUL = 2    /* is the statement true? option 0 is false, option 1 is true */
} laya_question_type;

typedef struct laya_state {
    const char *text; /* prompt text, UTF-8 */
    size_t size;      /* bytes */
    int keep_end;     /* a text that is too long keeps: 0 its beginning, else its end (conversations) */
} laya_state;

typedef struct laya_question {
    const char *id; /* named in messages */
    laya_question_type type;
    const char *instructions;
    size_t count;                    /* options; for noul 0 (default texts) or 2 */
    const char *const *labels;       /* choice: [count], required. noul: [2] or NULL. score: NULL */
    const char *const *descriptions; /* score: [count], required. choice: [count] or NULL, entries may be
                                        NULL. noul: [2] or NULL, entries may be NULL */
} laya_question;

typedef enum laya_abstention {
    LAYA_GATE_NONE = 0, /* no min_confidence was given */
    LAYA_GATE_PASSED = 1,
    LAYA_GATE_ABSTAINED = 2 /* answer_confidence is below the threshold */
} laya_abstention;

/* Arrays live until the next call on the context. Nothing is rounded here. */
typedef struct laya_answer {
    laya_question_type type;
    size_t count;               /* options */
    const double *logits;       /* [count] before the temperature */
    const float *probabilities; /* [count] softmax(logits / temperature) */
    size_t best;                /* index of the first maximum */
    double score;               /* sum of i * probabilities[i] for score questions, else 0 */
    double confidence;          /* choice, score: 1 - entropy / ln(count); noul: max(p, 1 - p) */
    double answer_confidence;   /* the largest probability */
    size_t action_count;
    const double *action_logits; /* [action_count] */
    double act_probability;      /* softmax(action_logits)[0] */
    double temperature;          /* that was applied */
    laya_abstention abstention;
    double abstention_threshold;
    uint32_t input_tokens;         /* length of this question's row */
    uint32_t state_tokens_dropped; /* state tokens that did not fit */
    uint32_t distinct_options;     /* different option token sequences after the cut */
    uint32_t tokens_per_option;    /* cut of each option block, its mask token included; 0: not cut */
    uint32_t bucket;               /* length of the package that served it; 0: the CPU engine */
} laya_answer;

typedef struct laya_result {
    const laya_answer *answers; /* [count], in the order of the questions */
    size_t count;
    uint64_t input_tokens;         /* over all rows */
    uint32_t state_tokens;         /* of the whole state */
    uint32_t state_tokens_dropped; /* maximum over the questions */
} laya_result;

/*
 * Answer `count` questions about a state. The result belongs to the context and is valid until its next
 * call. No questions give an empty result. Errors: as laya_predict.
 */
LAYA_API laya_status laya_decide(laya_context *context, const laya_state *state, const laya_question *questions,
                                 size_t count, const laya_predict_options *options, laya_result *result);

#ifdef __cplusplus
}
#endif

#endif
