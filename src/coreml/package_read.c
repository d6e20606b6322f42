/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a package: Manifest.json names the model file and the weights, both are mapped, the model is decoded. */
#include "coreml/package.h"

#include "base/error.h"
#include "coreml/encode.h"
#include "coreml/manifest.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define BUNDLE_PACKAGE "model.mlpackage"
#define COMPILED_MARK "coremldata.bin" /* every .mlmodelc directory has it */

/* ------------------------------------------------------------------ which directory */

/* Whether the last component of a path ends so; slashes at its end do not count. */
static bool has_suffix(const char *path, const char *suffix)
{
    size_t size = strlen(path), length = strlen(suffix);
    while (size > 1 && path[size - 1] == '/') size--;
    return size >= length && memcmp(path + size - length, suffix, length) == 0;
}

static laya_status has_entry(const laya_package *package, const char *directory, const char *name, bool *present,
                             laya_error *error)
{
    char *path = laya_path_join(&package->allocator, directory, name);
    if (!path) return laya_fail_memory(error, 0);
    *present = laya_path_exists(path);
    laya_release(&package->allocator, path);
    return LAYA_OK;
}

static laya_status fail_no_package(const laya_package *package, const char *path, laya_error *error)
{
    bool compiled = has_suffix(path, ".mlmodelc");
    if (!compiled) LAYA_TRY(has_entry(package, path, COMPILED_MARK, &compiled, error));
    if (compiled) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "%s: a compiled model cannot be read; pass the .mlpackage that it was compiled from", path);
    }
    return laya_fail(
        error, LAYA_ERROR_FORMAT,
        "%s: neither a Core ML package (no " LAYA_PACKAGE_MANIFEST ") nor a bundle (no " BUNDLE_PACKAGE ")", path);
}

/* The package directory that `path` names: itself, or the one of a bundle. */
static laya_status find_directory(laya_package *package, const char *path, laya_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0) return laya_fail_file(error, path, "cannot be opened", errno);
    if (!S_ISDIR(facts.st_mode)) {
        if (has_suffix(path, ".mlmodel")) {
            return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                             "%s: a single .mlmodel file is not read; pass the .mlpackage directory", path);
        }
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected a .mlpackage directory or a bundle, found a file",
                         path);
    }
    /* The bundle first: its manifest.json answers to Manifest.json where file names ignore case. */
    bool bundle = false, manifest = false;
    LAYA_TRY(has_entry(package, path, BUNDLE_PACKAGE, &bundle, error));
    if (!bundle) {
        LAYA_TRY(has_entry(package, path, LAYA_PACKAGE_MANIFEST, &manifest, error));
        if (!manifest) return fail_no_package(package, path, error);
    }
    package->path = laya_path_join(&package->allocator, bundle ? path : "", bundle ? BUNDLE_PACKAGE : path);
    return package->path ? LAYA_OK : laya_fail_memory(error, 0);
}

/* ------------------------------------------------------------------ the files that the manifest names */

/* "PACKAGE/Data/PATH", or NULL. */
static char *item_path(const laya_package *package, const char *path)
{
    char *data = laya_path_join(&package->allocator, package->path, LAYA_PACKAGE_DATA);
    char *whole = data ? laya_path_join(&package->allocator, data, path) : NULL;
    laya_release(&package->allocator, data);
    return whole;
}

static laya_status check_items(const laya_package *package, const laya_package_manifest *manifest, laya_error *error)
{
    for (uint32_t i = 0; i < manifest->count; i++) {
        char *path = item_path(package, manifest->items[i].path);
        if (!path) return laya_fail_memory(error, 0);
        struct stat facts;
        laya_status status = LAYA_OK;
        if (stat(path, &facts) != 0)
            status = laya_fail_file(error, path, LAYA_PACKAGE_MANIFEST " names it, but it cannot be opened", errno);
        laya_release(&package->allocator, path);
        LAYA_TRY(status);
    }
    return LAYA_OK;
}

/*
 * A regular file below the package, reached without symbolic links: Core ML does not follow them. `path` begins with
 * the package's path; it is changed and restored.
 */
static laya_status require_file(const laya_package *package, char *path, laya_error *error)
{
    struct stat facts = {0};
    for (size_t at = strlen(package->path) + 1;; at++) {
        char end = path[at];
        if (end != '/' && end != '\0') continue;
        path[at] = '\0';
        laya_status status = LAYA_OK;
        if (lstat(path, &facts) != 0) {
            status = laya_fail_file(error, path, "cannot be opened", errno);
        } else if (S_ISLNK(facts.st_mode)) {
            status = laya_fail(
                error, LAYA_ERROR_FORMAT,
                "%s: a symbolic link, which Core ML does not follow; put a copy of the real file there", path);
        }
        path[at] = end;
        LAYA_TRY(status);
        if (end == '\0') break;
    }
    if (S_ISREG(facts.st_mode)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected a regular file", path);
}

static bool is_weight_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strcmp(name, "weight.bin") == 0 || strcmp(name, "weights.bin") == 0;
}

/* The weight file of an item: in its folder, or the item itself; weights_path stays NULL when there is none. */
static laya_status take_weights(laya_package *package, const laya_package_item *item, laya_error *error)
{
    static const char *const names[] = {"weight.bin", "weights.bin"};
    char *path = item_path(package, item->path);
    if (!path) return laya_fail_memory(error, 0);
    if (!laya_path_is_directory(path)) {
        if (is_weight_file_name(path))
            package->weights_path = path;
        else
            laya_release(&package->allocator, path);
        return LAYA_OK;
    }
    laya_status status = LAYA_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == LAYA_OK && !package->weights_path; i++) {
        char *file = laya_path_join(&package->allocator, path, names[i]);
        struct stat facts;
        if (!file)
            status = laya_fail_memory(error, 0);
        else if (lstat(file, &facts) == 0)
            package->weights_path = file;
        else
            laya_release(&package->allocator, file);
    }
    laya_release(&package->allocator, path);
    return status;
}

/* First the item that has Apple's name and author, then those of other writers. */
static laya_status find_weights(laya_package *package, const laya_package_manifest *manifest, laya_error *error)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < manifest->count && !package->weights_path; i++) {
            const laya_package_item *item = &manifest->items[i];
            if (item->weights == (pass == 0)) LAYA_TRY(take_weights(package, item, error));
        }
    }
    return LAYA_OK;
}

static laya_status find_files(laya_package *package, const laya_package_manifest *manifest, laya_error *error)
{
    LAYA_TRY(check_items(package, manifest, error));
    package->model_path = item_path(package, manifest->model->path);
    if (!package->model_path) return laya_fail_memory(error, 0);
    LAYA_TRY(require_file(package, package->model_path, error));
    LAYA_TRY(find_weights(package, manifest, error));
    return package->weights_path ? require_file(package, package->weights_path, error) : LAYA_OK;
}

static laya_status read_manifest(laya_package *package, laya_error *error)
{
    char *path = laya_path_join(&package->allocator, package->path, LAYA_PACKAGE_MANIFEST);
    if (!path) return laya_fail_memory(error, 0);
    laya_file file;
    laya_package_manifest manifest = {0};
    laya_status status = laya_file_map(&file, path, error);
    if (status == LAYA_OK) {
        status = laya_package_manifest_read(&manifest, (const char *)file.data, file.size, &package->allocator,
                                            error);
        if (status == LAYA_ERROR_FORMAT || status == LAYA_ERROR_UNSUPPORTED) laya_error_prefix(error, "%s: ", path);
    }
    if (status == LAYA_OK) {
        status = find_files(package, &manifest, error);
        laya_package_manifest_close(&manifest);
    }
    laya_file_unmap(&file);
    laya_release(&package->allocator, path);
    return status;
}

/* ------------------------------------------------------------------ open and close */

static laya_status open_files(laya_package *package, const char *path, laya_error *error)
{
    LAYA_TRY(find_directory(package, path, error));
    LAYA_TRY(read_manifest(package, error));
    LAYA_TRY(laya_file_map(&package->model_file, package->model_path, error));
    if (package->weights_path) LAYA_TRY(laya_file_map(&package->weight_file, package->weights_path, error));
    laya_status status = laya_model_decode(&package->program, package->model_file.data, package->model_file.size,
                                           package->weight_file.data, package->weight_file.size, error);
    if (status == LAYA_ERROR_FORMAT || status == LAYA_ERROR_UNSUPPORTED)
        laya_error_prefix(error, "%s: ", package->model_path);
    return status;
}

laya_status laya_package_open(const char *path, const laya_allocator *allocator, laya_package **package,
                              laya_error *error)
{
    laya_allocator hooks = laya_allocator_or_default(allocator);
    laya_error_clear(error);
    if (!package) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_package_open: package must not be NULL");
    *package = NULL;
    if (!path) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_package_open: path must not be NULL");
    laya_package *opened = laya_alloc_zero(&hooks, 1, sizeof *opened);
    if (!opened) return laya_fail_memory(error, sizeof *opened);
    opened->allocator = hooks;
    laya_mil_program_init(&opened->program, &hooks);
    laya_status status = open_files(opened, path, error);
    if (status == LAYA_OK)
        *package = opened;
    else
        laya_package_close(opened);
    return status;
}

void laya_package_close(laya_package *package)
{
    if (!package) return;
    laya_mil_program_close(&package->program);
    laya_file_unmap(&package->model_file);
    laya_file_unmap(&package->weight_file);
    laya_release(&package->allocator, package->path);
    laya_release(&package->allocator, package->model_path);
    laya_release(&package->allocator, package->weights_path);
    laya_allocator allocator = package->allocator;
    laya_release(&allocator, package);
}
