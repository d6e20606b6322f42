/* SPDX-License-Identifier: Apache-2.0 */
/* What layac validate and layac benchmark share. */
#ifndef LAYAC_GATE_OPTIONS_H
#define LAYAC_GATE_OPTIONS_H

#include "base/json.h"
#include "bundle_options.h"

typedef struct layac_gate_options {
    layac_bundle_options bundle; /* complete: the checkpoint, threads and log too */
    const char *output;          /* of the report */
    uint32_t length;             /* 0: not given */
} layac_gate_options;

/* Values of getopt_long; a command's own begin at 256. */
enum { LAYAC_OPTION_LENGTH = 768, LAYAC_OPTION_THREADS };

/* Entries of a command's table of long options, and of its usage text. */
#define LAYAC_GATE_LONG_OPTIONS                                                                                      \
    LAYAC_BUNDLE_LONG_OPTIONS, {"model", required_argument, NULL, 'm'}, {"output", required_argument, NULL, 'o'},    \
        {"length", required_argument, NULL, LAYAC_OPTION_LENGTH},                                                    \
        {"threads", required_argument, NULL, LAYAC_OPTION_THREADS},                                                  \
    {                                                                                                                \
        "help", no_argument, NULL, 'h'                                                                               \
    }
#define LAYAC_GATE_USAGE                                                                                             \
    "  --length N               which package, where there are several lengths\n"                                    \
    "  --model DIR              checkpoint of the package (default: the one that its manifest names)\n"              \
    "  --threads N              threads that compute (default: one per CPU)\n" LAYAC_BUNDLE_USAGE

void layac_gate_options_init(layac_gate_options *set);
/* Whether a value of getopt_long is one of these options, "help" aside. */
bool layac_is_gate_option(int option);
/* Take the option, whose argument is `argument`. Returns an exit code; usage errors are reported. */
int layac_gate_option(layac_gate_options *set, int option, const char *argument);
/* What is missing or contradicts, once all options are read. Returns an exit code. */
int layac_gate_check(const layac_gate_options *set, const char *command);

/* ------------------------------------------------------------------ printing reports */

/* Copy a member of an object, where it has it. */
void layac_copy_member(laya_json_writer *w, laya_json_value object, const char *name);
/*
 * Print a report: for people on standard error (show NULL: nothing), and its summary on standard output. Returns an exit
 * code: EXIT_CHECK when the report did not pass.
 */
int layac_print_report(const laya_report *report, void (*show)(laya_json_value report),
                       void (*summarize)(laya_json_writer *w, laya_json_value report));

#endif
