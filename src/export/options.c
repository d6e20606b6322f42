/* SPDX-License-Identifier: Apache-2.0 */
/* Options of an export. */
#include "export/export.h"

#include "base/error.h"
#include "model/engine.h"

#include <string.h>

void laya_export_options_init(laya_export_options *options)
{
    *options = (laya_export_options){.size = sizeof *options, .length = 96, .markers = 32};
}

const char *laya_export_kind_name(laya_export_kind kind)
{
    switch (kind) {
    case LAYA_EXPORT_BODY: return "body";
    case LAYA_EXPORT_LAYER: return "layer";
    case LAYA_EXPORT_MLP: return "mlp";
    }
    return NULL;
}

const char *laya_graph_name(laya_graph graph)
{
    switch (graph) {
    case LAYA_GRAPH_PER_HEAD: return "per-head";
    case LAYA_GRAPH_LEAN: return "lean";
    }
    return NULL;
}

const char *laya_package_precision_name(laya_package_precision precision)
{
    switch (precision) {
    case LAYA_PACKAGE_FP16: return "fp16";
    case LAYA_PACKAGE_FP32: return "fp32";
    }
    return NULL;
}

static laya_status check_number(const char *name, uint32_t value, uint32_t low, uint32_t high, const char *why,
                                laya_error *error)
{
    if (value >= low && value <= high) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_ARGUMENT, "%s: expected %lu to %lu%s, found %lu", name, (unsigned long)low,
                     (unsigned long)high, why, (unsigned long)value);
}

laya_status laya_export_check(const laya_model *model, const laya_export_options *options, laya_error *error)
{
    const laya_config *config = &model->config;
    LAYA_TRY(laya_check_weights(&model->weights, error));
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "options.size: call laya_export_options_init first");
    if (!laya_export_kind_name(options->kind))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "kind: %d is none of laya_export_kind", (int)options->kind);
    if (!laya_graph_name(options->graph))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "graph: %d is none of laya_graph", (int)options->graph);
    if (!laya_package_precision_name(options->precision))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "precision: %d is none of laya_package_precision",
                         (int)options->precision);
    LAYA_TRY(check_number("length", options->length, LAYA_EXPORT_MIN_LENGTH, config->max_positions,
                          " tokens (the encoder's max_position_embeddings)", error));
    LAYA_TRY(check_number("markers", options->markers, 2, LAYA_EXPORT_MAX_MARKERS, " slots", error));
    if (options->kind != LAYA_EXPORT_BODY)
        LAYA_TRY(check_number("layer", options->layer, 0, config->encoder_layers - 1, " (an encoder layer)", error));
    const char *hex = options->weights_sha256;
    if (hex && (strlen(hex) != 64 || strspn(hex, "0123456789abcdef") != 64))
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "weights_sha256: expected 64 lower-case hexadecimal digits, found '%.70s'", hex);
    return LAYA_OK;
}
