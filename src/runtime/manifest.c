/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/manifest.h"

#include "base/error.h"
#include "base/file.h"
#include "export/export.h"

#include <stdio.h>
#include <string.h>

#define FORMAT "laya-ane-research"
#define VERSION 1u
#define LARGEST_SIZE 9007199254740992.0 /* 2^53: sizes are exact in a double */

enum { PACKAGE_MODEL, PACKAGE_WEIGHTS, PACKAGE_MANIFEST, PACKAGE_FILES };

/* Files of a package, then those of a standalone host. */
static const char *const package_paths[PACKAGE_FILES] = {LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_MODEL,
                                                         LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_WEIGHTS,
                                                         LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_MANIFEST};
static const char *const source_keys[LAYA_SOURCE_FILES] = {"weights_sha256", "config_sha256", "encoder_config_sha256",
                                                           "tokenizer_sha256", "tokenizer_config_sha256"};

/* ------------------------------------------------------------------ members */

#define FOUND_SIZE 80

/* What a message says was found. */
static const char *found(laya_json_value value, char text[FOUND_SIZE])
{
    size_t size;
    laya_json_type type = laya_json_typeof(value);
    if (!laya_json_present(value)) return "nothing";
    if (type == LAYA_JSON_STRING || type == LAYA_JSON_INTEGER || type == LAYA_JSON_FLOAT) {
        const char *start = laya_json_text(value, &size);
        snprintf(text, FOUND_SIZE, "'%.*s'", size > 70 ? 70 : (int)size, start);
        return text;
    }
    return laya_json_type_name(value);
}

static laya_status fail_member(laya_error *error, const char *name, const char *expected, laya_json_value value)
{
    char text[FOUND_SIZE];
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected %s, found %s", name, expected, found(value, text));
}

static laya_status read_number(laya_json_value object, const char *key, uint32_t low, uint32_t high, uint32_t *number,
                               laya_error *error)
{
    laya_json_value value = laya_json_get(object, key);
    char expected[64];
    if (laya_json_to_uint32(value, number) && *number >= low && *number <= high) return LAYA_OK;
    snprintf(expected, sizeof expected, "a number from %lu to %lu", (unsigned long)low, (unsigned long)high);
    return fail_member(error, key, expected, value);
}

static laya_status read_hash(laya_json_value object, const char *key, char hex[65], laya_error *error)
{
    laya_json_value value = laya_json_get(object, key);
    size_t size = 0;
    const char *text = laya_json_typeof(value) == LAYA_JSON_STRING ? laya_json_text(value, &size) : "";
    if (size == 64) {
        memcpy(hex, text, 64);
        hex[64] = '\0';
        if (strspn(hex, "0123456789abcdef") == 64) return LAYA_OK;
    }
    return fail_member(error, key, "a SHA-256 of 64 hexadecimal digits", value);
}

/* One of `count` names; `index` receives which. */
static laya_status read_name(laya_json_value object, const char *key, const char *const *names, size_t count,
                             const char *expected, size_t *index, laya_error *error)
{
    laya_json_value value = laya_json_get(object, key);
    for (*index = 0; *index < count; ++*index) {
        if (laya_json_present(value) && laya_json_equals(value, names[*index])) return LAYA_OK;
    }
    return fail_member(error, key, expected, value);
}

/* ------------------------------------------------------------------ what it is */

static laya_status read_kind(laya_manifest *manifest, laya_json_value root, laya_error *error)
{
    const char *const kinds[] = {laya_export_kind_name(LAYA_EXPORT_BODY), laya_export_kind_name(LAYA_EXPORT_LAYER),
                                 laya_export_kind_name(LAYA_EXPORT_MLP)};
    const char *const graphs[] = {laya_graph_name(LAYA_GRAPH_PER_HEAD), laya_graph_name(LAYA_GRAPH_LEAN)};
    const char *const precisions[] = {laya_package_precision_name(LAYA_PACKAGE_FP16),
                                      laya_package_precision_name(LAYA_PACKAGE_FP32)};
    size_t kind, graph, precision;
    LAYA_TRY(read_name(root, "kind", kinds, 3, "body, layer or mlp", &kind, error));
    LAYA_TRY(read_name(root, "graph", graphs, 2, "per-head or lean", &graph, error));
    LAYA_TRY(read_name(root, "precision", precisions, 2, "fp16 or fp32", &precision, error));
    manifest->kind = (laya_export_kind)kind;
    manifest->graph = (laya_graph)graph;
    manifest->precision = (laya_package_precision)precision;
    return LAYA_OK;
}

static laya_status read_shape(laya_manifest *manifest, laya_json_value root, laya_error *error)
{
    laya_json_value shape = laya_json_get(root, "shape");
    uint32_t batch;
    LAYA_TRY(read_number(shape, "batch", 1, 1, &batch, error));
    LAYA_TRY(read_number(shape, "length", LAYA_EXPORT_MIN_LENGTH, UINT32_MAX, &manifest->length, error));
    if (manifest->kind != LAYA_EXPORT_BODY) return LAYA_OK;
    return read_number(shape, "options", 2, LAYA_EXPORT_MAX_MARKERS, &manifest->markers, error);
}

static laya_status read_header(laya_manifest *manifest, laya_json_value root, laya_error *error)
{
    uint32_t version;
    laya_json_value format = laya_json_get(root, "format"), number = laya_json_get(root, "version");
    laya_json_value package = laya_json_get(root, "package");
    char text[FOUND_SIZE];
    if (!laya_json_present(format) || !laya_json_equals(format, FORMAT))
        return fail_member(error, "format", "'" FORMAT "'", format);
    if (!laya_json_to_uint32(number, &version) || version != VERSION)
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "version: this build reads version %u, found %s", VERSION,
                         found(number, text));
    LAYA_TRY(read_kind(manifest, root, error));
    LAYA_TRY(read_shape(manifest, root, error));
    if (!laya_json_present(package) || !laya_json_equals(package, LAYA_BUNDLE_PACKAGE))
        return fail_member(error, "package", "'" LAYA_BUNDLE_PACKAGE "'", package);
    LAYA_TRY(read_hash(root, "package_sha256", manifest->package_sha256, error));
    return read_number(laya_json_get(root, "operations"), "total", 1, UINT32_MAX, &manifest->operations, error);
}

/* ------------------------------------------------------------------ where it comes from */

static laya_status read_source(laya_manifest *manifest, laya_json_value root, laya_error *error)
{
    static const char *const ways[] = {"reference", "standalone"};
    laya_json_value source = laya_json_get(root, "source"), directory = laya_json_get(source, "directory");
    for (size_t at = 0; at < LAYA_SOURCE_FILES; at++)
        LAYA_TRY(read_hash(source, source_keys[at], manifest->sources[at], error));
    if (!laya_json_is_null(directory)) {
        size_t size;
        const char *text = laya_json_text(directory, &size);
        if (laya_json_typeof(directory) != LAYA_JSON_STRING || size == 0 || memchr(text, '\0', size))
            return fail_member(error, "source.directory", "a path or null", directory);
        manifest->source_directory = laya_alloc(&manifest->allocator, size + 1, 1);
        if (!manifest->source_directory) return laya_fail_memory(error, size + 1);
        memcpy(manifest->source_directory, text, size);
        manifest->source_directory[size] = '\0';
    }
    size_t way;
    LAYA_TRY(read_name(laya_json_get(root, "host"), "by", ways, 2, "reference or standalone", &way, error));
    manifest->standalone = way == 1;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ files */

/* The files that a bundle may list; NULL past their end. */
static const char *known_path(const laya_manifest *manifest, size_t index)
{
    if (index < PACKAGE_FILES) return package_paths[index];
    index -= PACKAGE_FILES;
    if (!manifest->standalone || index >= LAYA_SOURCE_FILES) return NULL;
    return index == LAYA_SOURCE_WEIGHTS ? LAYA_BUNDLE_HOST_WEIGHTS : laya_source_file_name((laya_source_file)index);
}

static const laya_bundle_file *find_file(const laya_manifest *manifest, const char *path)
{
    for (uint32_t at = 0; at < manifest->file_count; at++) {
        if (strcmp(manifest->files[at].path, path) == 0) return &manifest->files[at];
    }
    return NULL;
}

static laya_status read_file(laya_manifest *manifest, laya_json_value key, laya_json_value value, laya_error *error)
{
    char text[FOUND_SIZE];
    size_t index = 0;
    const char *path = known_path(manifest, index);
    while (path && !laya_json_equals(key, path)) path = known_path(manifest, ++index);
    if (!path) return laya_fail(error, LAYA_ERROR_FORMAT, "files: %s is no file of such a bundle", found(key, text));
    laya_bundle_file *file = &manifest->files[manifest->file_count++];
    double bytes;
    file->path = path;
    laya_json_value size = laya_json_get(value, "bytes");
    if (laya_json_typeof(size) != LAYA_JSON_INTEGER || !laya_json_to_double(size, &bytes) || bytes < 0 ||
        bytes > LARGEST_SIZE)
        return fail_member(error, path, "its size in \"bytes\"", size);
    file->written.size = (uint64_t)bytes;
    laya_status status = read_hash(value, "sha256", file->written.sha256, error);
    if (status != LAYA_OK) laya_error_prefix(error, "%s: ", path);
    return status;
}

/* Everything but weight.bin, which a package without large constants does not have, must be listed. */
static laya_status check_listed(const laya_manifest *manifest, laya_error *error)
{
    const char *path;
    for (size_t index = 0; (path = known_path(manifest, index)) != NULL; index++) {
        const laya_bundle_file *file = find_file(manifest, path);
        if (!file && index != PACKAGE_WEIGHTS)
            return laya_fail(error, LAYA_ERROR_FORMAT, "files: '%s' is missing", path);
        if (index <= PACKAGE_FILES) continue; /* of the package, and the host's weights, which are no copy */
        const char *source = manifest->sources[index - PACKAGE_FILES];
        if (strcmp(file->written.sha256, source) != 0)
            return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected SHA-256 %s as in 'source', found %s", path,
                             source, file->written.sha256);
    }
    return LAYA_OK;
}

static laya_status check_digest(const laya_manifest *manifest, laya_error *error)
{
    laya_package_files files = {0};
    laya_written *const places[PACKAGE_FILES] = {&files.model, &files.weights, &files.manifest};
    for (size_t index = 0; index < PACKAGE_FILES; index++) {
        const laya_bundle_file *file = find_file(manifest, package_paths[index]);
        if (file) *places[index] = file->written;
    }
    char digest[65];
    LAYA_TRY(laya_package_digest(&files, digest, error));
    if (strcmp(digest, manifest->package_sha256) == 0) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT,
                     "package_sha256: expected %s, the digest of the package's files, found %s", digest,
                     manifest->package_sha256);
}

static laya_status read_files(laya_manifest *manifest, laya_json_value root, laya_error *error)
{
    laya_json_value files = laya_json_get(root, "files");
    if (laya_json_typeof(files) != LAYA_JSON_OBJECT) return fail_member(error, "files", "an object", files);
    for (laya_json_iterator it = laya_json_first(files); laya_json_present(it.value); laya_json_next(&it))
        LAYA_TRY(read_file(manifest, it.key, it.value, error));
    LAYA_TRY(check_listed(manifest, error));
    return check_digest(manifest, error);
}

/* ------------------------------------------------------------------ palettes */

void laya_manifest_palette_text(const char *mode, uint32_t bits, uint32_t group_size, char text[LAYA_PALETTE_TEXT])
{
    char width[24] = "bits per weight", groups[24] = "per tensor";
    if (bits) snprintf(width, sizeof width, "%lu bit%s", (unsigned long)bits, bits == 1 ? "" : "s");
    if (group_size) snprintf(groups, sizeof groups, "groups of %lu", (unsigned long)group_size);
    snprintf(text, LAYA_PALETTE_TEXT, "%s, %s, %s", mode, width, groups);
}

/* Which palettes a bundle has, so that an approximate model is always told from an exact one (study.md, S72). */
static laya_status read_palette(laya_manifest *manifest, laya_json_value root, laya_error *error)
{
    static const char *const modes[] = {"uniform", "kmeans", "unique", "weighted"};
    laya_json_value palette = laya_json_get(root, "palette");
    if (!laya_json_present(palette)) return LAYA_OK;
    if (laya_json_typeof(palette) != LAYA_JSON_OBJECT) return fail_member(error, "palette", "an object", palette);
    laya_json_value bits = laya_json_get(palette, "bits"), group_size = laya_json_get(palette, "group_size");
    uint32_t width = 0, size = 0;
    size_t mode;
    LAYA_TRY(read_name(palette, "mode", modes, 4, "uniform, kmeans, unique or weighted", &mode, error));
    if (!laya_json_present(bits) || !laya_json_equals(bits, "per weight"))
        LAYA_TRY(read_number(palette, "bits", 1, 8, &width, error));
    if (!laya_json_present(group_size) || !laya_json_is_null(group_size))
        LAYA_TRY(read_number(palette, "group_size", 1, UINT32_MAX, &size, error));
    LAYA_TRY(read_hash(palette, "parent_package_sha256", manifest->parent_sha256, error));
    laya_manifest_palette_text(modes[mode], width, size, manifest->palette);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the document */

static laya_status read_document(laya_manifest *manifest, const char *text, size_t size, laya_error *error)
{
    laya_json doc;
    laya_status status = laya_json_parse(&doc, text, size, &manifest->allocator, error);
    if (status == LAYA_ERROR_INPUT && error) error->status = LAYA_ERROR_FORMAT;
    if (status != LAYA_OK) return status == LAYA_ERROR_INPUT ? LAYA_ERROR_FORMAT : status;
    laya_json_value root = laya_json_root(&doc);
    status = read_header(manifest, root, error);
    if (status == LAYA_OK) status = read_source(manifest, root, error);
    if (status == LAYA_OK) status = read_palette(manifest, root, error);
    if (status == LAYA_OK) status = read_files(manifest, root, error);
    laya_json_close(&doc);
    return status;
}

laya_status laya_manifest_parse(laya_manifest *manifest, const char *text, size_t size,
                                const laya_allocator *allocator, laya_error *error)
{
    *manifest = (laya_manifest){.allocator = *allocator};
    laya_status status = read_document(manifest, text, size, error);
    if (status != LAYA_OK) laya_manifest_close(manifest);
    return status;
}

laya_status laya_manifest_read(laya_manifest *manifest, const char *directory, const laya_allocator *allocator,
                               laya_error *error)
{
    *manifest = (laya_manifest){.allocator = *allocator};
    char *path = laya_path_join(allocator, directory, LAYA_BUNDLE_MANIFEST);
    if (!path) return laya_fail_memory(error, 0);
    laya_file file = {NULL, 0};
    laya_status status = laya_file_map(&file, path, error);
    if (status == LAYA_OK) {
        const char *text = file.data ? (const char *)file.data : "";
        status = laya_manifest_parse(manifest, text, file.size, allocator, error);
        if (status != LAYA_OK) laya_error_prefix(error, "%s: ", path);
    }
    laya_file_unmap(&file);
    laya_release(allocator, path);
    return status;
}

void laya_manifest_close(laya_manifest *manifest)
{
    laya_release(&manifest->allocator, manifest->source_directory);
    manifest->source_directory = NULL;
}
