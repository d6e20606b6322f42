/* SPDX-License-Identifier: Apache-2.0 */
/* The run of a validation and its report, whatever answers. */
#ifndef LAYA_GATE_VALIDATE_H
#define LAYA_GATE_VALIDATE_H

#include "gate/check.h"
#include "gate/report.h"
#include "gate/subject.h"

#define LAYA_VALIDATION_FORMAT "laya-validation"

typedef struct laya_validation {
    const laya_reference *reference;
    const laya_reference_model *model; /* of the reference, with the package's weights */
    const char *reference_path;        /* NULL: recorded for this run */
    laya_bucket_info package;
    const char *executor, *class;
    uint32_t repeats;
    laya_progress progress;
    laya_interrupt interrupt;
    laya_case_check *cases; /* [model->count], from `arena`; laya_validation_run makes them */
    laya_arena arena;
} laya_validation;

/*
 * Check all cases that fit. An answer that the source refuses (FORMAT, INPUT, UNSUPPORTED) is a failed case. Errors:
 * those of the source that are no fault of a package, STOPPED, MEMORY.
 */
laya_status laya_validation_run(laya_validation *validation, const laya_source *source, laya_error *error);
/* Errors: MEMORY. */
laya_status laya_validation_report(const laya_validation *validation, laya_report **report, laya_error *error);

#endif
