/* SPDX-License-Identifier: Apache-2.0 */
/* The result of laya_predict as JSON. */
#ifndef LAYA_PREDICT_RESULT_JSON_H
#define LAYA_PREDICT_RESULT_JSON_H

#include "base/memory.h"
#include "laya/predict.h"
#include "text/question.h"

/*
 * Write {"model", "answers", "usage"}. `executor` runs packages (NULL: there are none), `flags` are LAYA_PREDICT_...;
 * failure shows in out->failed.
 */
void laya_result_write(laya_buffer *out, const laya_query *queries, const laya_result *result, const char *executor,
                       unsigned flags);

#endif
