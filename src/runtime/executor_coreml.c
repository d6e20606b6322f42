/* SPDX-License-Identifier: Apache-2.0 */
/* Packages run by Core ML, through src/macos. */
#include "base/error.h"
#include "macos/coreml_bridge.h"
#include "runtime/executor.h"

#include <string.h>

typedef struct coreml_executor {
    laya_executor executor; /* first: the executor is this block */
    laya_allocator allocator;
    laya_coreml *model;
    laya_coreml_tensor inputs[LAYA_BODY_INPUTS];
    laya_coreml_tensor outputs[LAYA_BODY_OUTPUTS];
} coreml_executor;

const char *laya_coreml_executor_name(laya_compute_units units)
{
    switch (units) {
    case LAYA_UNITS_CPU: return "Core ML CPU_ONLY";
    case LAYA_UNITS_CPU_GPU: return "Core ML CPU_AND_GPU";
    case LAYA_UNITS_ALL: return "Core ML ALL";
    case LAYA_UNITS_CPU_NE: return "Core ML CPU_AND_NE";
    }
    return NULL;
}

static laya_status run(laya_executor *executor, laya_error *error)
{
    coreml_executor *self = (coreml_executor *)executor;
    return laya_coreml_run(self->model, self->inputs, LAYA_BODY_INPUTS, self->outputs, LAYA_BODY_OUTPUTS, error);
}

static laya_status plan(laya_executor *executor, char **json, laya_error *error)
{
    coreml_executor *self = (coreml_executor *)executor;
    return laya_coreml_plan(self->model, json, error);
}

static void close_executor(laya_executor *executor)
{
    coreml_executor *self = (coreml_executor *)executor;
    if (self->model) laya_coreml_close(self->model);
    for (size_t at = 0; at < LAYA_BODY_INPUTS; at++) laya_release(&self->allocator, self->inputs[at].values);
    for (size_t at = 0; at < LAYA_BODY_OUTPUTS; at++) laya_release(&self->allocator, self->outputs[at].values);
    laya_allocator allocator = self->allocator;
    laya_release(&allocator, self);
}

static laya_status make_tensor(const coreml_executor *self, const laya_body_tensor *shape, laya_coreml_tensor *tensor,
                               laya_error *error)
{
    size_t count = laya_body_count(shape);
    tensor->name = shape->name;
    memcpy(tensor->shape, shape->shape, sizeof tensor->shape);
    tensor->values = laya_alloc_zero(&self->allocator, count, sizeof *tensor->values);
    return tensor->values ? LAYA_OK : laya_fail_memory(error, count * sizeof *tensor->values);
}

static laya_status make_tensors(coreml_executor *self, const laya_body_shape *shape, laya_error *error)
{
    for (size_t at = 0; at < LAYA_BODY_INPUTS; at++) {
        LAYA_TRY(make_tensor(self, &shape->inputs[at], &self->inputs[at], error));
        self->executor.inputs[at] = self->inputs[at].values;
    }
    for (size_t at = 0; at < LAYA_BODY_OUTPUTS; at++) {
        LAYA_TRY(make_tensor(self, &shape->outputs[at], &self->outputs[at], error));
        self->executor.outputs[at] = self->outputs[at].values;
    }
    return LAYA_OK;
}

laya_status laya_executor_open_coreml(const laya_package *package, const char *package_sha256,
                                      const laya_body_shape *shape, laya_compute_units units,
                                      const char *cache_directory, const laya_allocator *allocator,
                                      laya_executor **executor, laya_error *error)
{
    if (!laya_coreml_available())
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "Core ML needs macOS; use --backend interpreter to run the package on this system");
    coreml_executor *self = laya_alloc_zero(allocator, 1, sizeof *self);
    if (!self) return laya_fail_memory(error, sizeof *self);
    self->allocator = *allocator;
    self->executor.run = run;
    self->executor.close = close_executor;
    self->executor.plan = plan;
    laya_status status = make_tensors(self, shape, error);
    if (status == LAYA_OK)
        status = laya_coreml_open(package->path, package_sha256, units, cache_directory, allocator, &self->model,
                                  error);
    if (status == LAYA_OK)
        *executor = &self->executor;
    else
        close_executor(&self->executor);
    return status;
}
