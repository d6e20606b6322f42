/* SPDX-License-Identifier: Apache-2.0 */
/* Temperatures: which number a question's logits are divided by. */
#ifndef LAYA_MODEL_CALIBRATION_H
#define LAYA_MODEL_CALIBRATION_H

#include "base/json.h"
#include "base/memory.h"
#include "laya/predict.h"

#define LAYA_BUCKETS 4 /* 2, 3-5, 6-10, 11+ options */

/* Index 0..3 of the bucket of a question with `count` options. */
unsigned laya_bucket_of(size_t count);
/* Name of a bucket, such as "choice:3-5". Static storage. */
const char *laya_bucket_name(laya_question_type type, unsigned bucket);

typedef struct laya_temperatures {
    double by_type[3];                 /* choice, score, noul */
    double by_bucket[3][LAYA_BUCKETS]; /* 0: this bucket has none */
} laya_temperatures;

typedef struct laya_language {
    char *code; /* primary subtag, lower-case, NUL-terminated */
    laya_temperatures temperatures;
} laya_language;

typedef struct laya_calibration {
    laya_allocator allocator;
    laya_temperatures base;
    laya_language *languages;
    size_t language_count;
} laya_calibration;

/*
 * Read "temperature" and "temperature_by_options" of rl_agent_config.json and the language overrides
 * (absent: none). Every value is made usable: a bool, a non-number, NaN or an infinite value becomes 1.0, a numeric
 * string is a number, all else is clamped to [0.5, 5]. Entries of the checkpoint that changed are listed in `changes`
 * as "NAME=RAW -> VALUE, NAME=RAW -> VALUE". Errors: FORMAT (checkpoint), INPUT (overrides), MEMORY.
 */
laya_status laya_calibration_read(laya_calibration *calibration, laya_json_value agent, laya_json_value overrides,
                                  const laya_allocator *allocator, laya_buffer *changes, laya_error *error);
void laya_calibration_close(laya_calibration *calibration);

/* The override whose language is the primary subtag of `lang`, else the checkpoint's. `lang` may be NULL. */
const laya_temperatures *laya_calibration_for(const laya_calibration *calibration, const char *lang);
/* The temperature of a question: its bucket's, else its type's. */
double laya_temperature_of(const laya_temperatures *temperatures, laya_question_type type, size_t count);

#endif
