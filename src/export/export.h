/* SPDX-License-Identifier: Apache-2.0 */
/* From an open model to a MIL program. */
#ifndef LAYA_EXPORT_EXPORT_H
#define LAYA_EXPORT_EXPORT_H

#include "laya/coreml.h"
#include "mil/builder.h"
#include "model/model.h"

#define LAYA_EXPORT_MIN_LENGTH 16u
#define LAYA_EXPORT_MAX_MARKERS 255u

/* Check options against a model. Errors: ARGUMENT; messages name the option, the limits and what was found. */
laya_status laya_export_check(const laya_model *model, const laya_export_options *options, laya_error *error);

/*
 * Build the graph of checked options into an initialised, empty program. Large constants refer to the model's mapped
 * tensors: the model must outlive the program. Errors: MEMORY, FORMAT.
 */
laya_status laya_export_build(const laya_model *model, const laya_export_options *options, laya_mil_program *program,
                              laya_error *error);

/* "body", "layer", "mlp"; "per-head", "lean"; "fp16", "fp32". Static storage. */
const char *laya_export_kind_name(laya_export_kind kind);
const char *laya_graph_name(laya_graph graph);
const char *laya_package_precision_name(laya_package_precision precision);

#endif
