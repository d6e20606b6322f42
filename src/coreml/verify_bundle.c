/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the bundle that a package lies in, against the hashes of the bundle's manifest.json. */
#include "coreml/verify.h"

#include "coreml/beside.h"

#include <inttypes.h>
#include <string.h>

#define BUNDLE_MANIFEST LAYA_BESIDE_MANIFEST

typedef struct bundle_check {
    laya_checker *checker;
    laya_json_value root;     /* of manifest.json */
    const char *directory;    /* of the bundle */
    laya_package_files files; /* of the package, as they were hashed; size 0: not listed */
    uint32_t hashed;
} bundle_check;

/* ------------------------------------------------------------------ places */

/* A relative path that stays below its directory. */
static bool is_inside(const char *path, size_t size)
{
    if (size == 0 || path[0] == '/' || memchr(path, '\0', size)) return false;
    for (size_t at = 0; at < size;) {
        const char *slash = memchr(path + at, '/', size - at);
        size_t length = slash ? (size_t)(slash - path) - at : size - at;
        if (length == 2 && memcmp(path + at, "..", 2) == 0) return false;
        at += length + 1;
    }
    return true;
}

/* Where the hash of a package's file belongs; NULL: another file. `path` is relative to the bundle. */
static laya_written *package_file(bundle_check *b, const char *path)
{
    size_t size;
    const char *package = laya_json_text(laya_json_get(b->root, "package"), &size);
    if (strncmp(path, package, size) != 0 || path[size] != '/') return NULL;
    const char *inside = path + size + 1;
    if (strcmp(inside, LAYA_PACKAGE_MANIFEST) == 0) return &b->files.manifest;
    if (strcmp(inside, LAYA_PACKAGE_MODEL) == 0) return &b->files.model;
    if (strcmp(inside, LAYA_PACKAGE_WEIGHTS) == 0) return &b->files.weights;
    return NULL;
}

/* ------------------------------------------------------------------ files and hashes */

static void compare_file(bundle_check *b, const char *path, laya_json_value stated, const laya_written *found)
{
    double bytes = -1;
    if (!laya_json_to_double(laya_json_get(stated, "bytes"), &bytes) || bytes != (double)found->size) {
        laya_check_error(b->checker, LAYA_CHECK_FILES,
                         "'%.300s' has %" PRIu64 " bytes, " BUNDLE_MANIFEST " says %.0f; the file was changed or cut",
                         path, found->size, bytes);
    }
    laya_json_value hash = laya_json_get(stated, "sha256");
    if (!laya_json_equals(hash, found->sha256)) {
        laya_check_error(b->checker, LAYA_CHECK_FILES,
                         "'%.300s' has SHA-256 %s, not the one of " BUNDLE_MANIFEST "; the file was changed", path,
                         found->sha256);
    }
}

static laya_status check_file(bundle_check *b, laya_json_value key, laya_json_value stated, laya_error *error)
{
    size_t size;
    const char *text = laya_json_text(key, &size);
    char *path = laya_arena_copy(&b->checker->scratch, text, size);
    if (!path) return laya_fail_memory(error, size);
    if (!is_inside(text, size)) {
        laya_check_error(b->checker, LAYA_CHECK_FILES,
                         BUNDLE_MANIFEST " lists '%.300s'; expected a path relative to the bundle, without '..'",
                         path);
        return LAYA_OK;
    }
    char *whole = laya_path_join(&b->checker->package->allocator, b->directory, path);
    if (!whole) return laya_fail_memory(error, 0);
    laya_written found = {0};
    laya_error problem;
    laya_status status = laya_hash_file(whole, found.sha256, &found.size, NULL, &problem);
    laya_release(&b->checker->package->allocator, whole);
    if (status == LAYA_ERROR_IO) {
        laya_check_error(b->checker, LAYA_CHECK_FILES, BUNDLE_MANIFEST " lists a file that cannot be read: %s",
                         problem.message);
        return LAYA_OK;
    }
    if (status != LAYA_OK) return laya_fail(error, status, "%s", problem.message);
    b->hashed++;
    compare_file(b, path, stated, &found);
    laya_written *kept = package_file(b, path);
    if (kept) *kept = found;
    return LAYA_OK;
}

static void require_listed(bundle_check *b, const laya_written *file, const char *path)
{
    if (file->size) return;
    laya_check_error(b->checker, LAYA_CHECK_FILES, BUNDLE_MANIFEST " does not list the package's '%s'", path);
}

static laya_status check_digest(bundle_check *b, laya_error *error)
{
    require_listed(b, &b->files.manifest, LAYA_PACKAGE_MANIFEST);
    require_listed(b, &b->files.model, LAYA_PACKAGE_MODEL);
    if (b->checker->package->weights_path) require_listed(b, &b->files.weights, LAYA_PACKAGE_WEIGHTS);
    char digest[65];
    LAYA_TRY(laya_package_digest(&b->files, digest, error));
    if (laya_json_equals(laya_json_get(b->root, "package_sha256"), digest)) return LAYA_OK;
    laya_check_error(b->checker, LAYA_CHECK_FILES,
                     "the digest of the package is %s, not 'package_sha256' of " BUNDLE_MANIFEST, digest);
    return LAYA_OK;
}

static laya_status check_files(bundle_check *b, laya_error *error)
{
    laya_json_value files = laya_json_get(b->root, "files");
    if (!laya_json_present(files) || laya_json_typeof(files) != LAYA_JSON_OBJECT) {
        laya_check_warning(b->checker, LAYA_CHECK_FILES,
                           BUNDLE_MANIFEST " has no object 'files': no hash was compared");
        return LAYA_OK;
    }
    for (laya_json_iterator it = laya_json_first(files); laya_json_present(it.value); laya_json_next(&it))
        LAYA_TRY(check_file(b, it.key, it.value, error));
    return check_digest(b, error);
}

/* ------------------------------------------------------------------ manifest.json */

static laya_status check_manifest(bundle_check *b, const laya_file *file, const char *name, bool *bundle,
                                  laya_error *error)
{
    laya_json doc;
    laya_error problem;
    laya_status status = laya_json_parse(&doc, (const char *)file->data, file->size, &b->checker->package->allocator,
                                         &problem);
    if (status == LAYA_ERROR_MEMORY) return laya_fail_memory(error, 0);
    if (status != LAYA_OK) {
        laya_check_warning(b->checker, LAYA_CHECK_FILES,
                           BUNDLE_MANIFEST " beside the package is not valid JSON (%s): no hash was compared",
                           problem.message);
        return LAYA_OK;
    }
    b->root = laya_json_root(&doc);
    *bundle = laya_beside_is_bundle(b->root, name);
    if (*bundle) status = check_files(b, error);
    laya_json_close(&doc);
    return status;
}

laya_status laya_check_bundle(laya_checker *checker, bool *bundle, uint32_t *hashed, laya_error *error)
{
    bundle_check b = {.checker = checker};
    const char *name;
    *bundle = false;
    *hashed = 0;
    LAYA_TRY(laya_beside_directory(checker->package->path, &checker->scratch, &b.directory, &name, error));
    char *path = laya_path_join(&checker->package->allocator, b.directory, BUNDLE_MANIFEST);
    if (!path) return laya_fail_memory(error, 0);
    laya_file file = {NULL, 0};
    laya_status status = LAYA_OK;
    if (laya_path_exists(path)) {
        status = laya_file_map(&file, path, error);
        if (status == LAYA_OK) status = check_manifest(&b, &file, name, bundle, error);
        laya_file_unmap(&file);
    }
    laya_release(&checker->package->allocator, path);
    *hashed = b.hashed;
    return status;
}
