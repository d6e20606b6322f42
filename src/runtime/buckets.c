/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the bundles that a path names. */
#include "base/error.h"
#include "export/export.h"
#include "runtime/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKAGE_SUFFIX ".mlpackage"

/* ------------------------------------------------------------------ paths */

static char *copy_text(const laya_allocator *allocator, const char *text, size_t size)
{
    char *copy = laya_alloc(allocator, size + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

/* Bytes of a path without slashes at its end. */
static size_t path_size(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    return size;
}

static bool is_package(const char *path)
{
    size_t size = path_size(path), suffix = sizeof PACKAGE_SUFFIX - 1;
    return size >= suffix && memcmp(path + size - suffix, PACKAGE_SUFFIX, suffix) == 0;
}

static laya_status has_manifest(const laya_bundle *bundle, const char *directory, bool *present, laya_error *error)
{
    char *path = laya_path_join(&bundle->allocator, directory, LAYA_BUNDLE_MANIFEST);
    if (!path) return laya_fail_memory(error, 0);
    *present = laya_path_exists(path);
    laya_release(&bundle->allocator, path);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ one bundle */

/* Append a bucket, which takes `directory` over, and read its manifest. */
static laya_status add_bucket(laya_bundle *bundle, char *directory, laya_error *error)
{
    laya_bucket *buckets = laya_alloc_zero(&bundle->allocator, bundle->count + 1, sizeof *buckets);
    if (!buckets || !directory) {
        laya_release(&bundle->allocator, buckets);
        laya_release(&bundle->allocator, directory);
        return laya_fail_memory(error, (bundle->count + 1) * sizeof *buckets);
    }
    if (bundle->count) memcpy(buckets, bundle->buckets, bundle->count * sizeof *buckets);
    laya_release(&bundle->allocator, bundle->buckets);
    bundle->buckets = buckets;
    laya_bucket *bucket = &buckets[bundle->count++];
    bucket->directory = directory;
    bucket->manifest.allocator = bundle->allocator;
    return laya_manifest_read(&bucket->manifest, directory, &bundle->allocator, error);
}

/* The bundle of a package that is named itself: the directory around it. */
static laya_status add_package(laya_bundle *bundle, const char *path, laya_error *error)
{
    size_t size = path_size(path), start = size;
    while (start > 0 && path[start - 1] != '/') start--;
    size_t name = sizeof LAYA_BUNDLE_PACKAGE - 1;
    if (size - start != name || memcmp(path + start, LAYA_BUNDLE_PACKAGE, name) != 0)
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: no bundle has a package of this name; name the directory that layac export wrote",
                         path);
    while (start > 1 && path[start - 1] == '/') start--;
    char *directory = copy_text(&bundle->allocator, start ? path : ".", start ? start : 1);
    bool present = false;
    laya_status status = directory ? has_manifest(bundle, directory, &present, error) : laya_fail_memory(error, size);
    if (status == LAYA_OK && !present)
        status = laya_fail(error, LAYA_ERROR_FORMAT,
                           "%s: no " LAYA_BUNDLE_MANIFEST " beside the package; name what layac export wrote", path);
    if (status == LAYA_OK) return add_bucket(bundle, directory, error);
    laya_release(&bundle->allocator, directory);
    return status;
}

/* ------------------------------------------------------------------ a directory of bundles */

static laya_status add_entries(laya_bundle *bundle, const char *path, DIR *entries, laya_error *error)
{
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        bool present = false;
        char *directory = laya_path_join(&bundle->allocator, path, entry->d_name);
        laya_status status = directory ? has_manifest(bundle, directory, &present, error)
                                       : laya_fail_memory(error, 0);
        if (status == LAYA_OK && present && !is_package(directory)) {
            LAYA_TRY(add_bucket(bundle, directory, error));
        } else {
            laya_release(&bundle->allocator, directory);
            LAYA_TRY(status);
        }
    }
    return LAYA_OK;
}

/* Leave out kinds that answer no questions. */
static void drop_probes(laya_bundle *bundle)
{
    size_t kept = 0;
    for (size_t at = 0; at < bundle->count; at++) {
        laya_bucket *bucket = &bundle->buckets[at];
        if (bucket->manifest.kind == LAYA_EXPORT_BODY) {
            laya_bucket moved = *bucket;
            bundle->buckets[kept++] = moved;
        } else {
            laya_manifest_close(&bucket->manifest);
            laya_release(&bundle->allocator, bucket->directory);
        }
    }
    bundle->count = kept;
}

static laya_status add_directory(laya_bundle *bundle, const char *path, laya_error *error)
{
    DIR *entries = opendir(path);
    if (!entries) return laya_fail_file(error, path, "cannot be read", errno);
    laya_status status = add_entries(bundle, path, entries, error);
    closedir(entries);
    LAYA_TRY(status);
    if (bundle->count == 0)
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: neither a bundle (no " LAYA_BUNDLE_MANIFEST ") nor a directory of bundles", path);
    drop_probes(bundle);
    if (bundle->count == 0)
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "%s: holds no bundle of kind body; the kinds layer and mlp answer no questions", path);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ all of them */

static int by_capacity(const void *a, const void *b)
{
    const laya_bucket *x = a, *y = b;
    if (x->manifest.length != y->manifest.length) return x->manifest.length < y->manifest.length ? -1 : 1;
    if (x->manifest.markers != y->manifest.markers) return x->manifest.markers < y->manifest.markers ? -1 : 1;
    return strcmp(x->directory, y->directory);
}

/* Neighbours differ in capacity, and all are of one checkpoint. */
static laya_status check_neighbours(const laya_bundle *bundle, laya_error *error)
{
    for (size_t at = 1; at < bundle->count; at++) {
        const laya_bucket *a = &bundle->buckets[at - 1], *b = &bundle->buckets[at];
        for (size_t file = 0; file < LAYA_SOURCE_FILES; file++) {
            const char *expected = a->manifest.sources[file], *found = b->manifest.sources[file];
            if (strcmp(expected, found) == 0) continue;
            return laya_fail(
                error, LAYA_ERROR_FORMAT,
                "%s: expected the checkpoint of %s, whose %s has SHA-256 %s, found %s; keep bundles of one "
                "checkpoint in a directory",
                b->directory, a->directory, laya_source_file_name((laya_source_file)file), expected, found);
        }
        if (a->manifest.length == b->manifest.length && a->manifest.markers == b->manifest.markers)
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "%s and %s: two packages of %lu tokens and %lu options; keep one of them", a->directory,
                             b->directory, (unsigned long)a->manifest.length, (unsigned long)a->manifest.markers);
    }
    return LAYA_OK;
}

/* Bundles of a directory are of kind body; one that is named itself is of any kind. */
static laya_status find_any(laya_bundle *bundle, const char *path, laya_error *error)
{
    bool single = false;
    if (!laya_path_exists(path))
        return laya_fail(error, LAYA_ERROR_IO, "%s: not found; name what layac export wrote", path);
    if (!laya_path_is_directory(path))
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected a bundle directory, found a file", path);
    if (is_package(path)) {
        LAYA_TRY(add_package(bundle, path, error));
    } else {
        LAYA_TRY(has_manifest(bundle, path, &single, error));
        if (single)
            LAYA_TRY(add_bucket(bundle, copy_text(&bundle->allocator, path, path_size(path)), error));
        else
            LAYA_TRY(add_directory(bundle, path, error));
    }
    return LAYA_OK;
}

laya_status laya_bucket_require_body(const laya_bucket *bucket, laya_error *error)
{
    if (bucket->manifest.kind == LAYA_EXPORT_BODY) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: a package of kind %s answers no questions; export kind body",
                     bucket->directory, laya_export_kind_name(bucket->manifest.kind));
}

laya_status laya_buckets_find(laya_bundle *bundle, const char *path, laya_error *error)
{
    LAYA_TRY(find_any(bundle, path, error));
    LAYA_TRY(laya_bucket_require_body(&bundle->buckets[0], error));
    qsort(bundle->buckets, bundle->count, sizeof *bundle->buckets, by_capacity);
    return check_neighbours(bundle, error);
}

laya_status laya_buckets_find_one(laya_bundle *bundle, const char *path, laya_error *error)
{
    LAYA_TRY(find_any(bundle, path, error));
    if (bundle->count == 1) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_ARGUMENT, "%s: expected one bundle, found a directory of %zu; name one", path,
                     bundle->count);
}

void laya_buckets_close(laya_bundle *bundle)
{
    for (size_t at = 0; at < bundle->count; at++) {
        laya_bucket *bucket = &bundle->buckets[at];
        if (bucket->executor) bucket->executor->close(bucket->executor);
        laya_package_close(bucket->package);
        laya_manifest_close(&bucket->manifest);
        laya_release(&bundle->allocator, bucket->directory);
    }
    laya_release(&bundle->allocator, bundle->buckets);
    bundle->buckets = NULL;
    bundle->count = 0;
}
