/* SPDX-License-Identifier: Apache-2.0 */
/* What runs a package: its inputs and outputs as float32 in C order. */
#ifndef LAYA_RUNTIME_EXECUTOR_H
#define LAYA_RUNTIME_EXECUTOR_H

#include "base/threads.h"
#include "laya/bundle.h"
#include "runtime/body.h"

typedef struct laya_executor laya_executor;
struct laya_executor {
    laya_status (*run)(laya_executor *executor, laya_error *error);
    void (*close)(laya_executor *executor);
    /* The compute plan as JSON, from the allocator of opening; NULL: there is none. Errors: as laya_coreml_plan. */
    laya_status (*plan)(laya_executor *executor, char **json, laya_error *error);
    float *inputs[LAYA_BODY_INPUTS];         /* the caller writes all of them before each run */
    const float *outputs[LAYA_BODY_OUTPUTS]; /* valid until the next run */
};

/* Our interpreter. The package and the pool must outlive it. Errors: UNSUPPORTED, FORMAT, MEMORY. */
laya_status laya_executor_open_interpreter(const laya_package *package, const laya_body_shape *shape,
                                           laya_numerics numerics, laya_pool *pool, const laya_allocator *allocator,
                                           laya_executor **executor, laya_error *error);

/* Core ML. Errors: UNSUPPORTED (not macOS), and those of laya_coreml_open. */
laya_status laya_executor_open_coreml(const laya_package *package, const char *package_sha256,
                                      const laya_body_shape *shape, laya_compute_units units,
                                      const char *cache_directory, const laya_allocator *allocator,
                                      laya_executor **executor, laya_error *error);

/* Names for reports. Static storage; NULL for other values. */
const char *laya_interpreter_executor_name(laya_numerics numerics);
const char *laya_coreml_executor_name(laya_compute_units units);

#endif
