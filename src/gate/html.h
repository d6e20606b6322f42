/* SPDX-License-Identifier: Apache-2.0 */
/* A validation report as one self-contained page. */
#ifndef LAYA_GATE_HTML_H
#define LAYA_GATE_HTML_H

#include "base/memory.h"

/*
 * Append the page of a report (its JSON text): verdict, gates, a plot of the errors on a logarithmic scale, tables of
 * cases. Valid HTML and XML, without scripts or anything fetched. Errors: MEMORY.
 */
laya_status laya_report_html(laya_buffer *out, const char *json, size_t size, laya_error *error);

#endif
