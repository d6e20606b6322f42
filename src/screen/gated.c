/* SPDX-License-Identifier: Apache-2.0 */
/* One validation and what its report says; a reference for several of them. */
#include "screen/gated.h"

#include "base/error.h"
#include "base/json.h"
#include "base/staging.h"
#include "gate/report.h"
#include "runtime/executor.h"
#include "screen/origin.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ a validation */

/* "worst".NAME: the largest error. NaN: nothing was measured; infinite: a value was not finite. */
static double worst_of(laya_json_value root, const char *name)
{
    double number;
    laya_json_value worst = laya_json_get(laya_json_get(root, "worst"), name);
    if (laya_json_is_null(worst)) return NAN;
    return laya_json_to_double(laya_json_get(worst, "value"), &number) ? number : INFINITY;
}

static bool is_true(laya_json_value object, const char *name)
{
    return laya_json_typeof(laya_json_get(object, name)) == LAYA_JSON_TRUE;
}

static uint32_t number_of(laya_json_value object, const char *name)
{
    uint32_t number;
    return laya_json_to_uint32(laya_json_get(object, name), &number) ? number : 0;
}

static bool other_gates_passed(laya_json_value gates)
{
    bool passed = true;
    for (laya_json_iterator it = laya_json_first(gates); laya_json_present(it.value); laya_json_next(&it)) {
        if (laya_json_typeof(it.value) == LAYA_JSON_OBJECT && !laya_json_equals(it.key, "probability"))
            passed = passed && is_true(it.value, "passed");
    }
    return passed;
}

static void read_report(laya_gate_result *result, laya_json_value root)
{
    laya_json_value gates = laya_json_get(root, "gates"), counts = laya_json_get(root, "counts");
    laya_json_value hash = laya_json_get(laya_json_get(root, "reference"), "sha256");
    laya_palette_gate *gate = &result->gate;
    size_t size;
    const char *text = laya_json_text(hash, &size);
    if (size < sizeof gate->reference_sha256) memcpy(gate->reference_sha256, text, size);
    gate->passed = is_true(root, "passed");
    gate->probability_error = worst_of(root, "probability_error");
    gate->action_logit_error = worst_of(root, "action_logit_error");
    gate->repeats = number_of(root, "repeats");
    gate->evaluated = number_of(counts, "evaluated");
    gate->unvalidated = number_of(counts, "unvalidated");
    result->argmax_changes = number_of(laya_json_get(gates, "argmax"), "failures");
    result->near_ties = number_of(counts, "near_ties");
    result->stable = is_true(laya_json_get(gates, "stable"), "passed");
    result->other_gates = other_gates_passed(gates);
}

laya_status laya_gate_run(const char *bundle, const laya_validate_options *options, laya_gate_result *result,
                          laya_error *error)
{
    laya_bundle_options defaults;
    laya_json doc;
    size_t size;
    *result = (laya_gate_result){0};
    laya_bundle_options_init(&defaults);
    const laya_bundle_options *how = options->bundle ? options->bundle : &defaults;
    LAYA_TRY(laya_validate(bundle, options, &result->report, error));
    const char *text = laya_report_json(result->report, &size);
    laya_status status = laya_json_parse(&doc, text, size, &how->allocator, error);
    if (status != LAYA_OK) {
        laya_report_close(result->report);
        *result = (laya_gate_result){0};
        return status;
    }
    read_report(result, laya_json_root(&doc));
    laya_json_close(&doc);
    result->gate.class = laya_executor_class(how);
    result->gate.executor = how->backend == LAYA_BACKEND_COREML ? laya_coreml_executor_name(how->units)
                                                                : laya_interpreter_executor_name(how->numerics);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ a reference */

static laya_status record_from(const char *checkpoint, const laya_validate_options *options, const char *path,
                               laya_error *error)
{
    laya_model *model;
    laya_model_options open;
    laya_reference_options record;
    laya_model_options_init(&open);
    laya_reference_options_init(&record);
    if (options->bundle) {
        open.allocator = options->bundle->allocator;
        open.logger = options->bundle->logger;
        open.lang_temperatures = options->bundle->lang_temperatures;
        record.threads = options->bundle->threads;
    }
    record.progress = options->progress;
    record.interrupt = options->interrupt;
    LAYA_TRY(laya_model_open(checkpoint, &open, &model, error));
    laya_status status = laya_reference_record(model, options->fixture, &record, path, error);
    laya_model_close(model);
    return status;
}

static laya_status record(laya_gate_reference *made, const char *bundle, const laya_validate_options *options,
                          laya_error *error)
{
    laya_origin origin;
    const char *directory = options->bundle ? options->bundle->model_directory : NULL;
    LAYA_TRY(laya_make_temporary("laya-reference", made->folder, sizeof made->folder, error));
    (void)snprintf(made->path, sizeof made->path, "%s/reference", made->folder);
    LAYA_TRY(
        laya_origin_open(&origin, bundle, directory, options->bundle ? &options->bundle->allocator : NULL, error));
    laya_status status = record_from(origin.checkpoint, options, made->path, error);
    laya_origin_close(&origin);
    return status;
}

laya_status laya_gate_reference_open(laya_gate_reference *made, const char *bundle,
                                     const laya_validate_options *options, laya_error *error)
{
    made->path[0] = made->folder[0] = '\0';
    if (options->reference) {
        int size = snprintf(made->path, sizeof made->path, "%s", options->reference);
        if (size >= 0 && (size_t)size < sizeof made->path) return LAYA_OK;
        return laya_fail(error, LAYA_ERROR_IO, "%.200s…: the path is longer than %zu bytes", options->reference,
                         sizeof made->path - 1);
    }
    if (!options->fixture)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "neither a reference nor a fixture to record one from");
    laya_status status = record(made, bundle, options, error);
    if (status != LAYA_OK) laya_gate_reference_close(made);
    return status;
}

void laya_gate_reference_close(laya_gate_reference *made)
{
    if (made->folder[0]) laya_remove_tree(made->folder);
    made->path[0] = made->folder[0] = '\0';
}
