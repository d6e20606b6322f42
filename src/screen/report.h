/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of a screen, what was found of each, and the report. */
#ifndef LAYA_SCREEN_REPORT_H
#define LAYA_SCREEN_REPORT_H

#include "gate/report.h"
#include "palette/bundle.h"
#include "screen/gated.h"

#define LAYA_SCREEN_FORMAT "laya-screen"
#define LAYA_SCREEN_VARIANTS 12u

typedef struct laya_screen_variant {
    const char *name; /* of its directory: "w8-uniform-g32" */
    laya_palette_mode mode;
    unsigned bits;
    uint32_t group_size; /* 0: one table for the tensor */
} laya_screen_variant;

/* The study's five first, in the order of its table (study.md, S74). */
extern const laya_screen_variant laya_screen_variants[LAYA_SCREEN_VARIANTS];

typedef struct laya_screen_row {
    bool made;
    char reason[LAYA_MESSAGE_SIZE];         /* why it was not made */
    uint32_t weights;                       /* that have tables */
    uint64_t weights_before, weights_after; /* bytes of all selected weights */
    uint64_t package_before, package_after; /* bytes of all files of the package */
    laya_palette_error errors;              /* of all selected weights */
    double seconds;                         /* that palettizing took */
    laya_gate_result result;                /* close its report */
} laya_screen_row;

typedef struct laya_screen_results {
    const laya_screen_options *options;
    const char *reference;    /* file for the report; NULL: it was temporary */
    unsigned workers;         /* at least 1 */
    laya_energy_facts energy; /* of the weighted variants */
    laya_gate_result parent;  /* the same */
    laya_screen_row rows[LAYA_SCREEN_VARIANTS];
} laya_screen_results;

/* Errors: MEMORY. */
laya_status laya_screen_report(const laya_screen_results *results, const laya_allocator *allocator,
                               laya_report **report, laya_error *error);

#endif
