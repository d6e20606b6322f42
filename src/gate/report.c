/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/report.h"

#include "base/error.h"
#include "base/number.h"
#include "base/staging.h"
#include "export/fingerprint.h"
#include "gate/host.h"

#include <math.h>
#include <string.h>

laya_status laya_report_open(const laya_allocator *allocator, laya_report **report, laya_error *error)
{
    laya_allocator hooks = laya_allocator_or_default(allocator);
    *report = NULL;
    laya_report *opened = laya_alloc_zero(&hooks, 1, sizeof *opened);
    if (!opened) return laya_fail_memory(error, sizeof *opened);
    opened->allocator = hooks;
    laya_buffer_init(&opened->json, &hooks);
    laya_json_writer_init(&opened->writer, &opened->json, true);
    *report = opened;
    return LAYA_OK;
}

laya_status laya_report_finish(laya_report *report, laya_error *error)
{
    laya_buffer_putc(&report->json, '\n');
    return report->json.failed ? laya_fail_memory(error, report->json.size) : LAYA_OK;
}

int laya_report_passed(const laya_report *report)
{
    return report->passed;
}

const char *laya_report_json(const laya_report *report, size_t *size)
{
    if (size) *size = report->json.size;
    return report->json.data;
}

void laya_report_close(laya_report *report)
{
    if (!report) return;
    laya_buffer_close(&report->json);
    laya_release(&report->allocator, report);
}

/* ------------------------------------------------------------------ members */

void laya_write_origin(laya_json_writer *w)
{
    laya_host host;
    laya_host_get(&host);
    laya_write_provenance(w);
    laya_json_name(w, "host");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "system", host.system);
    laya_json_member_string(w, "processor", host.processor);
    laya_json_member_uint(w, "cpus", host.cpus);
    laya_json_member_string(w, "kernels", host.kernels);
    laya_json_end(w, '}');
    laya_json_member_string(w, "date", host.date);
}

void laya_write_package(laya_json_writer *w, const laya_bucket_info *package)
{
    laya_json_name(w, "package");
    laya_json_begin(w, '{');
    laya_json_member_path(w, "directory", package->directory);
    laya_json_member_string(w, "package_sha256", package->package_sha256);
    laya_json_member_string(w, "source_weights_sha256", package->weights_sha256);
    laya_json_member_string(w, "graph", package->graph);
    laya_json_member_string(w, "precision", package->precision);
    laya_json_member_uint(w, "length", package->length);
    laya_json_member_uint(w, "markers", package->markers);
    laya_json_member_uint(w, "operations", package->operations);
    laya_json_name(w, "palette");
    if (package->palette)
        laya_json_put_string(w, package->palette, strlen(package->palette));
    else
        laya_json_put_raw(w, "null");
    laya_json_end(w, '}');
}

const char *laya_executor_class(const laya_bundle_options *options)
{
    return options->backend == LAYA_BACKEND_COREML ? "executed by Core ML" : "executed by the interpreter";
}

/* ------------------------------------------------------------------ files */

laya_status laya_report_check_path(const char *path, const laya_allocator *allocator, laya_error *error)
{
    laya_staging staging;
    if (!path) return LAYA_OK;
    LAYA_TRY(laya_staging_open(&staging, path, allocator, error));
    laya_staging_discard(&staging);
    return LAYA_OK;
}

laya_status laya_report_save(const char *path, const char *text, size_t size, const laya_allocator *allocator,
                             laya_error *error)
{
    laya_staging staging;
    if (!path) return LAYA_OK;
    LAYA_TRY(laya_staging_open(&staging, path, allocator, error));
    return laya_staging_commit_file(&staging, text, size, error);
}
