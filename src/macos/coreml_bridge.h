/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core ML behind C. The implementation is one Objective-C file, built on macOS; on other systems laya_coreml_available
 * says no and everything else fails with UNSUPPORTED. The tests build the same file against stand-in classes.
 */
#ifndef LAYA_MACOS_COREML_BRIDGE_H
#define LAYA_MACOS_COREML_BRIDGE_H

#include "base/memory.h"
#include "laya/bundle.h"

#include <stdbool.h>

typedef struct laya_coreml laya_coreml;

/* A tensor of a call: float32 in C order, [a, b, c, d]. Converted to and from the model's own type, strides honoured. */
typedef struct laya_coreml_tensor {
    const char *name;
    int64_t shape[4];
    float *values;
} laya_coreml_tensor;

bool laya_coreml_available(void);

/*
 * Compile a package and load it with these compute units. The compiled model is kept as
 * cache_directory/<package_sha256>.mlmodelc and used again (NULL: the user's cache folder), so that it is compiled once;
 * it is put there by a rename. Errors: UNSUPPORTED, IO, FORMAT (Core ML refused the package: its own message), MEMORY.
 */
laya_status laya_coreml_open(const char *package, const char *package_sha256, laya_compute_units units,
                             const char *cache_directory, const laya_allocator *allocator, laya_coreml **model,
                             laya_error *error);
void laya_coreml_close(laya_coreml *model);

/* One prediction. Output tensors are named and shaped by the caller and filled in. Errors: FORMAT (a feature is missing,
   has another shape or type; Core ML's message), MEMORY. */
laya_status laya_coreml_run(laya_coreml *model, const laya_coreml_tensor *inputs, size_t input_count,
                            laya_coreml_tensor *outputs, size_t output_count, laya_error *error);

/*
 * The compute plan of the compiled model as a JSON object (study S61): for every operation name, type, preferred device,
 * supported devices and cost weight; counts of operations that prefer CPU, GPU, Neural Engine, of those without a
 * device, and of constants; sum of cost weights per device; OS build and device names; seconds that compiling (0: found
 * in the cache) and loading took. Class: planned by Core ML. The text is from the allocator of laya_coreml_open. Errors: UNSUPPORTED (no plan on this system: macOS before 14.4),
 * FORMAT, MEMORY.
 */
laya_status laya_coreml_plan(laya_coreml *model, char **json, laya_error *error);

#endif
