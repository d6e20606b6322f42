/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liblaya: Laya decision models in C.
 *
 * Laya answers typed questions about a text with calibrated probabilities, from one pass of an encoder:
 * `choice` picks one of named options, `score` gives a level on a rubric, `noul` says whether a
 * statement is true. No tokens are generated.
 *
 *     laya_model *model;
 *     laya_context *context;
 *     laya_error error;
 *     const char *result;
 *     const char *state = "\"I was billed twice, please refund me.\"";
 *     const char *questions = "{\"refund\": {\"type\": \"noul\", \"instructions\": \"Is a refund requested?\"}}";
 *
 *     if (laya_model_open("models/laya-demo", NULL, &model, &error) != LAYA_OK) { puts(error.message); return 1; }
 *     if (laya_context_open(model, NULL, &context, &error) != LAYA_OK) { puts(error.message); return 1; }
 *     if (laya_predict(context, state, strlen(state), questions, strlen(questions), NULL, &result, NULL) != LAYA_OK)
 *         puts(laya_context_error(context)->message);
 *     else
 *         puts(result);
 *     laya_context_close(context);
 *     laya_model_close(model);
 *
 * A model is read-only after it was opened and may be shared between threads. A context belongs to one
 * thread at a time and holds its own memory and worker threads.
 */
#ifndef LAYA_H
#define LAYA_H

#include "laya/base.h"
#include "laya/bundle.h"
#include "laya/coreml.h"
#include "laya/gate.h"
#include "laya/model.h"
#include "laya/palette.h"
#include "laya/predict.h"
#include "laya/tokenizer.h"

#endif
