/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of bundles that were written: what their manifest says, in short. */
#include "summary.h"
#include "base/file.h"
#include "export/bundle.h"

static int print_manifest(const char *output, const char *package, laya_json_value manifest,
                          layac_write_summary *write, layac_judge *judge)
{
    laya_buffer summary;
    laya_json_writer w;
    laya_buffer_init(&summary, NULL);
    laya_json_writer_init(&w, &summary, true);
    write(&w, output, package, manifest);
    if (!summary.failed) puts(summary.data);
    int code = summary.failed ? layac_fail(EXIT_MEMORY, "out of memory") : layac_finish();
    laya_buffer_close(&summary);
    return code == EXIT_OK && judge ? judge(manifest) : code;
}

static int summarize(const char *output, const char *package, const char *path, layac_write_summary *write,
                     layac_judge *judge)
{
    laya_buffer text;
    laya_json doc = {0};
    laya_error error;
    int code = layac_read(path, &text);
    if (code == EXIT_OK && laya_json_parse(&doc, text.data, text.size, NULL, &error) != LAYA_OK)
        code = layac_fail_library(&error);
    if (code == EXIT_OK) code = print_manifest(output, package, laya_json_root(&doc), write, judge);
    laya_json_close(&doc);
    laya_buffer_close(&text);
    return code;
}

int layac_print_bundle(const char *output, layac_write_summary *write, layac_judge *judge)
{
    const laya_allocator allocator = laya_allocator_or_default(NULL);
    char *package = laya_path_join(&allocator, output, LAYA_BUNDLE_PACKAGE);
    char *manifest = laya_path_join(&allocator, output, LAYA_BUNDLE_MANIFEST);
    int code = package && manifest ? summarize(output, package, manifest, write, judge)
                                   : layac_fail(EXIT_MEMORY, "out of memory");
    laya_release(&allocator, package);
    laya_release(&allocator, manifest);
    return code;
}
