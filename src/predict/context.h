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
    laya_interrupt interrupt;
    laya_bundle *bundle; /* NULL: the CPU engine answers */
    bool long_native;
    const laya_kernels *kernels;    /* the best of this processor */
    const struct laya_probe *probe; /* of the float32 engine, set by who wants to see its products; NULL: none */
    laya_arena arena;               /* reset at the start of every call */
    laya_buffer result;             /* the JSON text that laya_predict returned */
    laya_error error;
    const struct laya_row *rows; /* [row_count] of the last call, in the arena: what the network got and gave */
    size_t row_count;
};

#endif
