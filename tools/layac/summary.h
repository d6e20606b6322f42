/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of bundles that were written. */
#ifndef LAYAC_SUMMARY_H
#define LAYAC_SUMMARY_H

#include "base/json.h"
#include "layac.h"

typedef void layac_write_summary(laya_json_writer *w, const char *output, const char *package,
                                 laya_json_value manifest);
/* An exit code for what the manifest says. */
typedef int layac_judge(laya_json_value manifest);

/* Print the summary of the bundle at `output`, as `write` makes it. Returns an exit code; judge NULL: EXIT_OK. */
int layac_print_bundle(const char *output, layac_write_summary *write, layac_judge *judge);

#endif
