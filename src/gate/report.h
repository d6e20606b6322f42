/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: a JSON document with what all of them say, and files that appear complete or not at all. */
#ifndef LAYA_GATE_REPORT_H
#define LAYA_GATE_REPORT_H

#include "export/bundle.h"
#include "laya/gate.h"

struct laya_report {
    laya_allocator allocator;
    laya_buffer json;
    laya_json_writer writer;
    bool passed;
};

/* An empty report whose writer is ready. Errors: MEMORY. */
laya_status laya_report_open(const laya_allocator *allocator, laya_report **report, laya_error *error);
/* End the text. Errors: MEMORY, when any of it could not be stored. */
laya_status laya_report_finish(laya_report *report, laya_error *error);

/* Members "tool", "source_files_sha256", "host" and "date". */
void laya_write_origin(laya_json_writer *w);
/* Member "package". */
void laya_write_package(laya_json_writer *w, const laya_bucket_info *package);

/* What a number of this executor is: "executed by the interpreter", "executed by Core ML". Static storage. */
const char *laya_executor_class(const laya_bundle_options *options);

/*
 * A file that is to be written later can be made now. Errors: IO (it exists, or the folder cannot be written), MEMORY.
 * path NULL: none is.
 */
laya_status laya_report_check_path(const char *path, const laya_allocator *allocator, laya_error *error);
/* Write a file, complete or absent. Errors: IO (what exists is never replaced), MEMORY, SYSTEM. path NULL: none is. */
laya_status laya_report_save(const char *path, const char *text, size_t size, const laya_allocator *allocator,
                             laya_error *error);

#endif
