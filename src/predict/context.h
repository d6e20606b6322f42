/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a context. */
#ifndef LAYA_PREDICT_CONTEXT_H
#define LAYA_PREDICT_CONTEXT_H

#include "base/memory.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "laya/predict.h"
#include "model/model.h"

struct laya_context {
    const laya_model *model;
    laya_pool *pool;
    laya_precision precision;
    laya_progress progress;
    const laya_kernels *kernels; /* the best of this processor */
    laya_arena arena;            /* reset at the start of every call */
    laya_buffer result;          /* the JSON text that laya_predict returned */
    laya_error error;
};

#endif
