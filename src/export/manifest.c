/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* realpath without a length limit */
#endif
#include "export/bundle.h"

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "coreml/listing.h"
#include "export/export.h"
#include "export/fingerprint.h"

#include <stdlib.h>
#include <string.h>

const char *laya_source_file_name(laya_source_file file)
{
    switch (file) {
    case LAYA_SOURCE_WEIGHTS: return "model.safetensors";
    case LAYA_SOURCE_CONFIG: return "rl_agent_config.json";
    case LAYA_SOURCE_ENCODER_CONFIG: return "encoder/config.json";
    case LAYA_SOURCE_TOKENIZER: return "tokenizer/tokenizer.json";
    case LAYA_SOURCE_TOKENIZER_CONFIG: return "tokenizer/tokenizer_config.json";
    case LAYA_SOURCE_FILES: break;
    }
    return NULL;
}

void laya_bundle_add(laya_bundle_contents *bundle, const char *path, const laya_written *written)
{
    bundle->files[bundle->file_count++] = (laya_bundle_file){path, *written};
}

/* ------------------------------------------------------------------ parts of the document */

static void write_shape(laya_json_writer *w, const laya_export_options *options)
{
    laya_json_name(w, "shape");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "batch", 1);
    laya_json_member_uint(w, "length", options->length);
    laya_json_name(w, "options");
    if (options->kind == LAYA_EXPORT_BODY)
        laya_json_put_uint(w, options->markers);
    else
        laya_json_put_raw(w, "null"); /* no marker slots */
    laya_json_end(w, '}');
    laya_json_name(w, "layer");
    if (options->kind == LAYA_EXPORT_BODY)
        laya_json_put_raw(w, "null");
    else
        laya_json_put_uint(w, options->layer);
}

static void write_source(laya_json_writer *w, const laya_bundle_contents *bundle)
{
    static const char *const keys[LAYA_SOURCE_FILES] = {"weights_sha256", "config_sha256", "encoder_config_sha256",
                                                        "tokenizer_sha256", "tokenizer_config_sha256"};
    char *directory = realpath(bundle->model->directory, NULL);
    laya_json_name(w, "source");
    laya_json_begin(w, '{');
    laya_json_member_path(w, "directory", directory);
    for (size_t at = 0; at < LAYA_SOURCE_FILES; at++)
        laya_json_member_string(w, keys[at], bundle->sources[at].sha256);
    laya_json_end(w, '}');
    free(directory);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const laya_bundle_file *)a)->path, ((const laya_bundle_file *)b)->path);
}

void laya_write_files(laya_json_writer *w, const laya_bundle_file *files, uint32_t count)
{
    laya_bundle_file sorted[LAYA_BUNDLE_MAX_FILES];
    memcpy(sorted, files, count * sizeof *files);
    qsort(sorted, count, sizeof *sorted, by_path);
    laya_json_name(w, "files");
    laya_json_begin(w, '{');
    for (uint32_t at = 0; at < count; at++) {
        laya_json_name(w, sorted[at].path);
        laya_json_begin(w, '{');
        laya_json_member_string(w, "sha256", sorted[at].written.sha256);
        laya_json_member_uint(w, "bytes", sorted[at].written.size);
        laya_json_end(w, '}');
    }
    laya_json_end(w, '}');
}

static void write_host(laya_json_writer *w, const laya_bundle_contents *bundle)
{
    bool standalone = bundle->options->standalone != 0;
    laya_json_name(w, "host");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "by", standalone ? "standalone" : "reference");
    laya_json_member_string(w, "file",
                            standalone ? LAYA_BUNDLE_HOST_WEIGHTS : laya_source_file_name(LAYA_SOURCE_WEIGHTS));
    laya_json_name(w, "tensors");
    laya_json_begin(w, '{');
    for (size_t at = 0; at < LAYA_HOST_TENSORS; at++) {
        const laya_tensor_entry *entry = laya_safetensors_find(&bundle->model->tensors, laya_host_tensor_names[at]);
        laya_json_name(w, entry->name);
        laya_json_begin(w, '{');
        laya_json_member_string(w, "dtype", laya_dtype_name(entry->tensor.dtype));
        laya_json_name(w, "shape");
        laya_json_begin(w, '[');
        if (entry->rank == 2) laya_json_put_uint(w, entry->tensor.rows);
        laya_json_put_uint(w, entry->tensor.cols);
        laya_json_end(w, ']');
        laya_json_end(w, '}');
    }
    laya_json_end(w, '}');
    laya_json_end(w, '}');
}

static void write_kinds(laya_json_writer *w, const laya_op_kind *kinds, uint32_t count)
{
    laya_json_name(w, "by_kind");
    laya_json_begin(w, '{');
    for (uint32_t at = 0; at < count; at++) {
        const laya_mil_op op = {.type = kinds[at].type};
        if (!laya_mil_is_const(&op) && !laya_mil_is_constexpr(&op))
            laya_json_member_uint(w, kinds[at].type, kinds[at].count);
    }
    laya_json_end(w, '}');
}

static laya_status write_operations(laya_json_writer *w, const laya_mil_program *program, laya_arena *arena,
                                    laya_error *error)
{
    laya_listing listing;
    laya_op_kind *kinds;
    uint32_t count, constants = 0, compressed = 0;
    LAYA_TRY(laya_listing_make(&listing, &program->functions[0], arena, error));
    LAYA_TRY(laya_listing_kinds(&listing, 1, arena, &kinds, &count, error));
    for (uint32_t at = 0; at < listing.count; at++) {
        constants += laya_mil_is_const(listing.ops[at].op);
        compressed += laya_mil_is_constexpr(listing.ops[at].op);
    }
    laya_json_name(w, "operations");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "total", listing.count - constants - compressed);
    laya_json_member_uint(w, "constants", constants);
    laya_json_member_uint(w, "constexpr", compressed);
    write_kinds(w, kinds, count);
    laya_json_end(w, '}');
    return LAYA_OK;
}

laya_status laya_write_operations(laya_json_writer *w, const laya_mil_program *program, laya_error *error)
{
    laya_arena arena;
    laya_arena_init(&arena, &program->arena.allocator);
    laya_status status = write_operations(w, program, &arena, error);
    laya_arena_close(&arena);
    return status;
}

void laya_write_provenance(laya_json_writer *w)
{
    laya_json_name(w, "tool");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "name", "laya.c");
    laya_json_member_string(w, "version", laya_version());
    laya_json_end(w, '}');
    laya_json_name(w, "source_files_sha256");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "exporter", laya_exporter_fingerprint);
    laya_json_member_string(w, "runtime", laya_runtime_fingerprint);
    laya_json_end(w, '}');
}

static laya_status write_document(laya_json_writer *w, const laya_bundle_contents *bundle, laya_error *error)
{
    const laya_export_options *options = bundle->options;
    const laya_mil_program *program = bundle->program;
    laya_json_begin(w, '{');
    laya_json_member_string(w, "format", "laya-ane-research");
    laya_json_member_uint(w, "version", 1);
    laya_json_member_string(w, "kind", laya_export_kind_name(options->kind));
    laya_json_member_string(w, "graph", laya_graph_name(options->graph));
    laya_json_member_string(w, "precision", laya_package_precision_name(options->precision));
    write_shape(w, options);
    laya_json_member_string(w, "opset", program->functions[0].opset_name);
    laya_json_member_uint(w, "specification_version", (uint64_t)program->specification_version);
    laya_json_member_string(w, "package", LAYA_BUNDLE_PACKAGE);
    laya_json_member_string(w, "package_sha256", bundle->package_sha256);
    write_source(w, bundle);
    laya_write_files(w, bundle->files, bundle->file_count);
    write_host(w, bundle);
    LAYA_TRY(laya_write_operations(w, program, error));
    laya_write_provenance(w);
    laya_json_member_string(w, "placement", LAYA_NOT_MEASURED);
    laya_json_member_string(w, "numerical_check", LAYA_NOT_MEASURED);
    laya_json_member_string(w, "timings", LAYA_NOT_MEASURED);
    laya_json_member_round4(w, "conversion_seconds", bundle->seconds);
    laya_json_end(w, '}');
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the file */

laya_status laya_bundle_manifest_write(const laya_bundle_contents *bundle, const char *directory, laya_error *error)
{
    const laya_allocator *allocator = &bundle->model->allocator;
    laya_buffer text;
    laya_json_writer w;
    laya_buffer_init(&text, allocator);
    laya_json_writer_init(&w, &text, true);
    laya_status status = write_document(&w, bundle, error);
    laya_buffer_putc(&text, '\n');
    if (status == LAYA_OK && text.failed) status = laya_fail_memory(error, text.size);
    if (status == LAYA_OK) {
        char *path = laya_path_join(allocator, directory, LAYA_BUNDLE_MANIFEST);
        status = path ? laya_output_file(path, text.data, text.size, allocator, NULL, NULL, error)
                      : laya_fail_memory(error, 0);
        laya_release(allocator, path);
    }
    laya_buffer_close(&text);
    return status;
}
