/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of a standalone bundle needs: its weights, the configuration, the tokenizer. */
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output.h"
#include "base/staging.h"
#include "export/bundle.h"
#include "model/model.h"

#include <string.h>

const char *const laya_host_tensor_names[LAYA_HOST_TENSORS] = {"act_head.0.bias",
                                                               "act_head.0.weight",
                                                               "act_head.2.bias",
                                                               "act_head.2.weight",
                                                               "encoder.embeddings.tok_embeddings.weight",
                                                               "type_emb.weight"};

/* A file that is being written into the bundle. */
typedef struct bundle_output {
    laya_bundle_contents *bundle;
    const char *name;
    char *path;
    laya_output output;
} bundle_output;

static laya_status open_output(bundle_output *out, laya_bundle_contents *bundle, const char *directory,
                               const char *name, const laya_meter *meter, laya_error *error)
{
    const laya_allocator *allocator = &bundle->model->allocator;
    out->bundle = bundle;
    out->name = name;
    out->path = laya_path_join(allocator, directory, name);
    if (!out->path) return laya_fail_memory(error, 0);
    laya_status status = laya_output_open(&out->output, out->path, allocator, meter, error);
    if (status != LAYA_OK) laya_release(allocator, out->path);
    return status;
}

/* Close the file and, where `status` is good, record it. */
static laya_status close_output(bundle_output *out, laya_status status, laya_error *error)
{
    laya_written written = {.size = out->output.size};
    if (status == LAYA_OK) status = laya_output_finish(&out->output, written.sha256, error);
    if (status == LAYA_OK) laya_bundle_add(out->bundle, out->name, &written);
    laya_output_close(&out->output);
    laya_release(&out->bundle->model->allocator, out->path);
    return status;
}

/* ------------------------------------------------------------------ host_weights.safetensors */

static uint64_t tensor_size(const laya_tensor *tensor)
{
    return (uint64_t)tensor->rows * tensor->cols * laya_dtype_size(tensor->dtype);
}

/* The six tensors in the order of their data: wide types first, so that values are aligned, then by name. */
static void list_tensors(const laya_model *model, const laya_tensor_entry *entries[LAYA_HOST_TENSORS])
{
    size_t count = 0;
    for (size_t bytes = 4; bytes >= 2; bytes /= 2) {
        for (size_t at = 0; at < LAYA_HOST_TENSORS; at++) {
            const laya_tensor_entry *entry = laya_safetensors_find(&model->tensors, laya_host_tensor_names[at]);
            if (laya_dtype_size(entry->tensor.dtype) == bytes) entries[count++] = entry;
        }
    }
}

static void write_header(laya_buffer *header, const laya_tensor_entry *const entries[LAYA_HOST_TENSORS])
{
    uint64_t offset = 0;
    laya_json_writer w;
    laya_json_writer_init(&w, header, false);
    laya_json_begin(&w, '{');
    for (size_t at = 0; at < LAYA_HOST_TENSORS; at++) {
        const laya_tensor *tensor = &entries[at]->tensor;
        laya_json_name(&w, entries[at]->name);
        laya_json_begin(&w, '{');
        laya_json_member_string(&w, "dtype", laya_dtype_name(tensor->dtype));
        laya_json_name(&w, "shape");
        laya_json_begin(&w, '[');
        if (entries[at]->rank == 2) laya_json_put_uint(&w, tensor->rows);
        laya_json_put_uint(&w, tensor->cols);
        laya_json_end(&w, ']');
        laya_json_name(&w, "data_offsets");
        laya_json_begin(&w, '[');
        laya_json_put_uint(&w, offset);
        laya_json_put_uint(&w, offset += tensor_size(tensor));
        laya_json_end(&w, ']');
        laya_json_end(&w, '}');
    }
    laya_json_end(&w, '}');
    while (header->size % 8 != 0 && !header->failed) laya_buffer_putc(header, ' ');
}

static laya_status write_weights(laya_output *output, const laya_model *model, laya_error *error)
{
    const laya_tensor_entry *entries[LAYA_HOST_TENSORS];
    unsigned char length[8];
    laya_buffer header;
    list_tensors(model, entries);
    laya_buffer_init(&header, &model->allocator);
    write_header(&header, entries);
    for (size_t byte = 0; byte < 8; byte++)
        length[byte] = (unsigned char)((uint64_t)header.size >> (8 * byte) & 0xFF);
    laya_status status = header.failed ? laya_fail_memory(error, header.size) : LAYA_OK;
    if (status == LAYA_OK) status = laya_output_write(output, length, sizeof length, error);
    if (status == LAYA_OK) status = laya_output_write(output, header.data, header.size, error);
    laya_buffer_close(&header);
    for (size_t at = 0; at < LAYA_HOST_TENSORS && status == LAYA_OK; at++) {
        const laya_tensor *tensor = &entries[at]->tensor;
        status = laya_output_mapped(output, tensor->data, (size_t)tensor_size(tensor), error);
    }
    return status;
}

static laya_status write_host_weights(laya_bundle_contents *bundle, const char *directory, const laya_meter *meter,
                                      laya_error *error)
{
    bundle_output out;
    LAYA_TRY(open_output(&out, bundle, directory, LAYA_BUNDLE_HOST_WEIGHTS, meter, error));
    return close_output(&out, write_weights(&out.output, bundle->model, error), error);
}

/* ------------------------------------------------------------------ copies */

static laya_status copy_mapped(laya_bundle_contents *bundle, const laya_file *file, const char *directory,
                               const char *name, const laya_meter *meter, laya_error *error)
{
    bundle_output out;
    LAYA_TRY(open_output(&out, bundle, directory, name, meter, error));
    return close_output(&out, laya_output_mapped(&out.output, file->data, file->size, error), error);
}

static laya_status copy_source(laya_bundle_contents *bundle, laya_source_file source, const char *directory,
                               const laya_meter *meter, laya_error *error)
{
    const laya_allocator *allocator = &bundle->model->allocator;
    const char *name = laya_source_file_name(source);
    laya_file file;
    char *path = laya_path_join(allocator, bundle->model->directory, name);
    if (!path) return laya_fail_memory(error, 0);
    laya_status status = laya_file_map(&file, path, error);
    if (status == LAYA_OK) {
        status = copy_mapped(bundle, &file, directory, name, meter, error);
        laya_file_unmap(&file);
    }
    if (status == LAYA_OK) {
        const laya_written *copy = &bundle->files[bundle->file_count - 1].written;
        if (strcmp(copy->sha256, bundle->sources[source].sha256) != 0)
            status = laya_fail(error, LAYA_ERROR_FORMAT,
                               "%s: expected SHA-256 %s, as read at first, found %s; it changed during the export",
                               path, bundle->sources[source].sha256, copy->sha256);
    }
    laya_release(allocator, path);
    return status;
}

static laya_status make_folder(const laya_bundle_contents *bundle, const char *directory, const char *name,
                               laya_error *error)
{
    char *path = laya_path_join(&bundle->model->allocator, directory, name);
    if (!path) return laya_fail_memory(error, 0);
    laya_status status = laya_make_directory(path, error);
    laya_release(&bundle->model->allocator, path);
    return status;
}

uint64_t laya_host_files_size(const laya_bundle_contents *bundle)
{
    uint64_t size = 0;
    for (size_t at = 0; at < LAYA_HOST_TENSORS; at++)
        size += tensor_size(&laya_safetensors_find(&bundle->model->tensors, laya_host_tensor_names[at])->tensor);
    return size;
}

laya_status laya_host_files_write(laya_bundle_contents *bundle, const char *directory, const laya_meter *meter,
                                  laya_error *error)
{
    LAYA_TRY(write_host_weights(bundle, directory, meter, error));
    LAYA_TRY(make_folder(bundle, directory, "encoder", error));
    LAYA_TRY(make_folder(bundle, directory, "tokenizer", error));
    for (laya_source_file source = LAYA_SOURCE_CONFIG; source < LAYA_SOURCE_FILES; source++)
        LAYA_TRY(copy_source(bundle, source, directory, meter, error));
    return LAYA_OK;
}
