/* SPDX-License-Identifier: Apache-2.0 */
/* Packages run by the interpreter: inputs are written where it reads them. */
#include "base/error.h"
#include "interpreter/interpreter.h"
#include "runtime/executor.h"

#include <string.h>

typedef struct interpreter_executor {
    laya_executor executor; /* first: the executor is this block */
    laya_allocator allocator;
    laya_interpreter *interpreter;
} interpreter_executor;

const char *laya_interpreter_executor_name(laya_numerics numerics)
{
    switch (numerics) {
    case LAYA_NUMERICS_FP16: return "interpreter fp16";
    case LAYA_NUMERICS_FP16_STRICT: return "interpreter fp16-strict";
    case LAYA_NUMERICS_FP32: return "interpreter fp32";
    }
    return NULL;
}

static laya_status run(laya_executor *executor, laya_error *error)
{
    return laya_interpreter_run(((interpreter_executor *)executor)->interpreter, error);
}

static void close_executor(laya_executor *executor)
{
    interpreter_executor *self = (interpreter_executor *)executor;
    if (self->interpreter) laya_interpreter_close(self->interpreter);
    laya_allocator allocator = self->allocator;
    laya_release(&allocator, self);
}

/* ------------------------------------------------------------------ places of inputs and outputs */

static float *find_input(const interpreter_executor *self, const laya_body_tensor *tensor)
{
    for (uint32_t at = 0; at < laya_interpreter_input_count(self->interpreter); at++) {
        const char *name;
        const laya_array *array = laya_interpreter_input(self->interpreter, at, &name);
        if (strcmp(name, tensor->name) == 0) return array->count == laya_body_count(tensor) ? array->values : NULL;
    }
    return NULL;
}

static const float *find_output(const interpreter_executor *self, const laya_body_tensor *tensor)
{
    for (uint32_t at = 0; at < laya_interpreter_output_count(self->interpreter); at++) {
        const char *name;
        const laya_array *array = laya_interpreter_output(self->interpreter, at, &name);
        if (strcmp(name, tensor->name) == 0) return array->count == laya_body_count(tensor) ? array->values : NULL;
    }
    return NULL;
}

static laya_status fail_place(const laya_body_tensor *tensor, laya_error *error)
{
    return laya_fail(error, LAYA_ERROR_FORMAT, "the interpreter has no tensor '%s' of the package's shape",
                     tensor->name);
}

static laya_status find_places(interpreter_executor *self, const laya_body_shape *shape, laya_error *error)
{
    laya_executor *executor = &self->executor;
    for (size_t at = 0; at < LAYA_BODY_INPUTS; at++) {
        executor->inputs[at] = find_input(self, &shape->inputs[at]);
        if (!executor->inputs[at]) return fail_place(&shape->inputs[at], error);
    }
    for (size_t at = 0; at < LAYA_BODY_OUTPUTS; at++) {
        executor->outputs[at] = find_output(self, &shape->outputs[at]);
        if (!executor->outputs[at]) return fail_place(&shape->outputs[at], error);
    }
    return LAYA_OK;
}

laya_status laya_executor_open_interpreter(const laya_package *package, const laya_body_shape *shape,
                                           laya_numerics numerics, laya_pool *pool, const laya_allocator *allocator,
                                           laya_executor **executor, laya_error *error)
{
    interpreter_executor *self = laya_alloc_zero(allocator, 1, sizeof *self);
    if (!self) return laya_fail_memory(error, sizeof *self);
    self->allocator = *allocator;
    self->executor.run = run;
    self->executor.close = close_executor;
    laya_status status = laya_interpreter_open(&package->program, NULL, numerics, pool, allocator, &self->interpreter,
                                               error);
    if (status == LAYA_OK) status = find_places(self, shape, error);
    if (status == LAYA_OK)
        *executor = &self->executor;
    else
        close_executor(&self->executor);
    return status;
}
