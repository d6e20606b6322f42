/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a package: the weight file first, because the model refers to offsets in it, then model and manifest. */
#include "coreml/package.h"

#include "base/error.h"
#include "base/staging.h"
#include "coreml/encode.h"
#include "coreml/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define FOLDER "Data/com.apple.CoreML"
#define WEIGHTS_FOLDER FOLDER "/weights"

typedef struct package_writer {
    laya_allocator allocator;
    const char *directory;
    const laya_meter *meter;
    laya_error *error;
} package_writer;

static laya_status make_folder(const package_writer *writer, const char *name)
{
    char *path = laya_path_join(&writer->allocator, writer->directory, name);
    if (!path) return laya_fail_memory(writer->error, 0);
    laya_status status = laya_make_directory(path, writer->error);
    laya_release(&writer->allocator, path);
    return status;
}

/* The folder of the weight file goes again when no constant needs the file. */
static laya_status remove_folder(const package_writer *writer, const char *name)
{
    char *path = laya_path_join(&writer->allocator, writer->directory, name);
    if (!path) return laya_fail_memory(writer->error, 0);
    laya_status status = LAYA_OK;
    if (rmdir(path) != 0) status = laya_fail_file(writer->error, path, "cannot be removed", errno);
    laya_release(&writer->allocator, path);
    return status;
}

static laya_status write_file(const package_writer *writer, const char *name, const laya_buffer *contents,
                              laya_written *written)
{
    char *path = laya_path_join(&writer->allocator, writer->directory, name);
    if (!path) return laya_fail_memory(writer->error, 0);
    laya_status status = laya_output_file(path, contents->data, contents->size, &writer->allocator, writer->meter,
                                          written->sha256, writer->error);
    written->size = contents->size;
    laya_release(&writer->allocator, path);
    return status;
}

static laya_status write_weights(const package_writer *writer, laya_mil_program *program, laya_written *written)
{
    LAYA_TRY(make_folder(writer, WEIGHTS_FOLDER));
    char *path = laya_path_join(&writer->allocator, writer->directory, LAYA_PACKAGE_WEIGHTS);
    if (!path) return laya_fail_memory(writer->error, 0);
    uint32_t count = 0;
    laya_status status = laya_weight_file_write(program, program->functions[0].opset, path, writer->meter, written,
                                                &count, writer->error);
    laya_release(&writer->allocator, path);
    if (status != LAYA_OK || count > 0) return status;
    *written = (laya_written){0};
    return remove_folder(writer, WEIGHTS_FOLDER);
}

static laya_status write_model(const package_writer *writer, const laya_mil_program *program, laya_written *written)
{
    laya_buffer message;
    laya_buffer_init(&message, &writer->allocator);
    laya_status status = laya_model_encode(program, &message, writer->error);
    if (status == LAYA_OK) status = write_file(writer, LAYA_PACKAGE_MODEL, &message, written);
    laya_buffer_close(&message);
    return status;
}

static laya_status write_manifest(const package_writer *writer, laya_package_files *files)
{
    laya_buffer text;
    laya_buffer_init(&text, &writer->allocator);
    laya_status status = laya_package_manifest_write(
        &text, files->model.sha256, files->weights.size ? files->weights.sha256 : NULL, writer->error);
    if (status == LAYA_OK) status = write_file(writer, LAYA_PACKAGE_MANIFEST, &text, &files->manifest);
    laya_buffer_close(&text);
    return status;
}

laya_status laya_package_write(laya_mil_program *program, const char *directory, const laya_meter *meter,
                               laya_package_files *files, laya_error *error)
{
    package_writer writer = {program->arena.allocator, directory, meter, error};
    *files = (laya_package_files){0};
    if (program->function_count == 0) return laya_fail(error, LAYA_ERROR_FORMAT, "the program has no function");
    LAYA_TRY(laya_make_directory(directory, error));
    LAYA_TRY(make_folder(&writer, LAYA_PACKAGE_DATA));
    LAYA_TRY(make_folder(&writer, FOLDER));
    LAYA_TRY(write_weights(&writer, program, &files->weights));
    LAYA_TRY(write_model(&writer, program, &files->model));
    return write_manifest(&writer, files);
}

laya_status laya_package_digest(const laya_package_files *files, char hex[65], laya_error *error)
{
    char text[512];
    size_t size = 0;
    const struct {
        const char *path;
        const laya_written *file;
    } sorted[] = {{LAYA_PACKAGE_MODEL, &files->model},
                  {LAYA_PACKAGE_WEIGHTS, &files->weights},
                  {LAYA_PACKAGE_MANIFEST, &files->manifest}};
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++) {
        if (sorted[i].file->size == 0) continue;
        int length = snprintf(text + size, sizeof text - size, "%.64s  %s\n", sorted[i].file->sha256, sorted[i].path);
        size += (size_t)length;
    }
    return laya_sha256(text, size, hex, error);
}
