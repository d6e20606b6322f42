/* SPDX-License-Identifier: Apache-2.0 */
/* What screen, gated palettes and the allocation of bits share: one reference, a gate, its key figures. */
#ifndef LAYA_SCREEN_GATED_H
#define LAYA_SCREEN_GATED_H

#include "laya/palette.h"
#include "palette/bundle.h"

/* Key figures of a validation report. */
typedef struct laya_gate_result {
    laya_palette_gate gate;
    uint32_t argmax_changes; /* decisions that differ */
    uint32_t near_ties;
    bool stable;
    bool other_gates;    /* all gates but "probability", whose limit is validation's, passed */
    laya_report *report; /* close it with laya_report_close */
} laya_gate_result;

/* Run laya_validate on a bundle and read the key figures of its report. Errors: as laya_validate. */
laya_status laya_gate_run(const char *bundle, const laya_validate_options *options, laya_gate_result *result,
                          laya_error *error);

/*
 * A reference that several validations use: options->reference where it is given, else recorded from options->fixture
 * and the checkpoint into a temporary file that laya_gate_reference_close removes. Errors: as laya_validate.
 */
#define LAYA_GATE_PATH 4096
typedef struct laya_gate_reference {
    char path[LAYA_GATE_PATH];        /* for laya_validate_options.reference */
    char folder[LAYA_GATE_PATH - 16]; /* of the temporary file; "": there is none */
} laya_gate_reference;
laya_status laya_gate_reference_open(laya_gate_reference *made, const char *bundle,
                                     const laya_validate_options *options, laya_error *error);
void laya_gate_reference_close(laya_gate_reference *made);

/*
 * Choose bits for every weight: the fewest bytes that were found of a palettized bundle that passes the gates with
 * job->target_error as the largest probability error (docs/PALETTES.md, "Bits for each weight"). Candidates are
 * validated with one repeat, the one that is kept with options->repeats.
 *
 * job      without bits and choice.bits; choice.energy may be set
 * options  with a reference; its progress is not called, but the job's
 * output   an existing directory that is empty; it receives the bundle, whose manifest says nothing of a gate yet.
 *          After an error it may hold anything
 * result   receives the gate of the bundle; close its report
 *
 * Errors: as laya_palettize; UNSUPPORTED also when no palette was found to pass, or the parent itself does not.
 */
laya_status laya_allocate_bits(const laya_palette_job *job, const laya_validate_options *options, const char *output,
                               laya_gate_result *result, laya_error *error);

#endif
