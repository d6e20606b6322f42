/* SPDX-License-Identifier: Apache-2.0 */
/* Core ML where there is none. */
#include "base/error.h"
#include "macos/coreml_bridge.h"

static laya_status refuse(laya_error *error)
{
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                     "Core ML exists on macOS only; use the interpreter on this system");
}

bool laya_coreml_available(void)
{
    return false;
}

laya_status laya_coreml_open(const char *package, const char *package_sha256, laya_compute_units units,
                             const char *cache_directory, const laya_allocator *allocator, laya_coreml **model,
                             laya_error *error)
{
    (void)package, (void)package_sha256, (void)units, (void)cache_directory, (void)allocator;
    *model = NULL;
    return refuse(error);
}

void laya_coreml_close(laya_coreml *model)
{
    (void)model;
}

laya_status laya_coreml_run(laya_coreml *model, const laya_coreml_tensor *inputs, size_t input_count,
                            laya_coreml_tensor *outputs, size_t output_count, laya_error *error)
{
    (void)model, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return refuse(error);
}

laya_status laya_coreml_plan(laya_coreml *model, char **json, laya_error *error)
{
    (void)model;
    *json = NULL;
    return refuse(error);
}
