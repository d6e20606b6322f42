/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/manifest.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#define AUTHOR "com.apple.CoreML" /* also the folder below Data/ */
#define MODEL_NAME "model.mlmodel"
#define WEIGHTS_NAME "weights"

/* ------------------------------------------------------------------ reading */

/* How much of a text a message shows. */
static int shown(size_t size)
{
    return size < 200 ? (int)size : 200;
}

static const char *found(laya_json_value value)
{
    return laya_json_present(value) ? laya_json_type_name(value) : "nothing";
}

/* "1.0.0": three integers; false when the text is something else. */
static bool parse_version(const char *text, size_t size, uint32_t version[3])
{
    size_t at = 0;
    for (int part = 0; part < 3; part++) {
        if (part > 0 && (at == size || text[at++] != '.')) return false;
        size_t begin = at;
        version[part] = 0;
        for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
            if (at - begin == 9) return false; /* keeps the number below 2^32 */
            version[part] = version[part] * 10 + (uint32_t)(text[at] - '0');
        }
        if (at == begin) return false;
    }
    return at == size;
}

static laya_status check_version(laya_json_value root, laya_error *error)
{
    laya_json_value value = laya_json_get(root, "fileFormatVersion");
    if (laya_json_typeof(value) != LAYA_JSON_STRING) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "'fileFormatVersion' must be a string such as \"1.0.0\", found %s",
                         found(value));
    }
    size_t size;
    uint32_t version[3];
    const char *text = laya_json_text(value, &size);
    if (!parse_version(text, size, version)) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "'fileFormatVersion' must be three integers such as \"1.0.0\", found \"%.*s\"", shown(size),
                         text);
    }
    if (version[0] > 1 || (version[0] == 1 && (version[1] > 0 || version[2] > 0))) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "'fileFormatVersion' is \"%.*s\"; versions up to \"1.0.0\" are supported", shown(size),
                         text);
    }
    return LAYA_OK;
}

/* A path that stays below Data/. */
static bool path_is_inside(const char *path, size_t size)
{
    if (size == 0 || path[0] == '/' || memchr(path, '\0', size)) return false;
    for (size_t begin = 0; begin < size;) {
        const char *slash = memchr(path + begin, '/', size - begin);
        size_t length = slash ? (size_t)(slash - path) - begin : size - begin;
        if (length == 2 && memcmp(path + begin, "..", 2) == 0) return false;
        begin += length + 1;
    }
    return true;
}

static laya_status read_item(laya_package_manifest *manifest, laya_json_iterator entry, laya_package_item *item,
                             laya_error *error)
{
    static const char *const fields[] = {"path", "name", "author", "description"};
    size_t key_size, size;
    const char *key = laya_json_text(entry.key, &key_size);
    if (laya_json_typeof(entry.value) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "item '%.*s' must be an object, found %s", shown(key_size), key,
                         found(entry.value));
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        laya_json_value value = laya_json_get(entry.value, fields[i]);
        if (laya_json_typeof(value) == LAYA_JSON_STRING) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT, "item '%.*s': '%s' must be a string, found %s", shown(key_size),
                         key, fields[i], found(value));
    }
    const char *path = laya_json_text(laya_json_get(entry.value, "path"), &size);
    if (!path_is_inside(path, size)) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "item '%.*s': 'path' must be relative to Data/ and stay below it, found \"%.*s\"",
                         shown(key_size), key, shown(size), path);
    }
    item->path = laya_arena_copy(&manifest->arena, path, size);
    if (!item->path) return laya_fail_memory(error, size + 1);
    item->weights = laya_json_equals(laya_json_get(entry.value, "name"), WEIGHTS_NAME) &&
                    laya_json_equals(laya_json_get(entry.value, "author"), AUTHOR);
    return LAYA_OK;
}

static bool same_text(laya_json_value a, laya_json_value b)
{
    size_t a_size, b_size;
    const char *a_text = laya_json_text(a, &a_size), *b_text = laya_json_text(b, &b_size);
    return a_size == b_size && memcmp(a_text, b_text, a_size) == 0;
}

static laya_status read_items(laya_package_manifest *manifest, laya_json_value root, laya_error *error)
{
    laya_json_value entries = laya_json_get(root, "itemInfoEntries");
    laya_json_value identifier = laya_json_get(root, "rootModelIdentifier");
    if (laya_json_typeof(entries) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "'itemInfoEntries' must be an object, found %s", found(entries));
    }
    if (laya_json_typeof(identifier) != LAYA_JSON_STRING) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "'rootModelIdentifier' must be a string, found %s",
                         found(identifier));
    }
    manifest->items = laya_arena_alloc(&manifest->arena, laya_json_size(entries), sizeof *manifest->items);
    if (!manifest->items) return laya_fail_memory(error, laya_json_size(entries) * sizeof *manifest->items);
    for (laya_json_iterator it = laya_json_first(entries); laya_json_present(it.value); laya_json_next(&it)) {
        laya_package_item *item = &manifest->items[manifest->count];
        LAYA_TRY(read_item(manifest, it, item, error));
        if (same_text(it.key, identifier)) manifest->model = item;
        manifest->count++;
    }
    if (manifest->model) return LAYA_OK;
    size_t size;
    const char *text = laya_json_text(identifier, &size);
    return laya_fail(error, LAYA_ERROR_FORMAT,
                     "'rootModelIdentifier' is '%.*s', which 'itemInfoEntries' does not have", shown(size), text);
}

static laya_status read_document(laya_package_manifest *manifest, const laya_json *doc, laya_error *error)
{
    laya_json_value root = laya_json_root(doc);
    if (laya_json_typeof(root) != LAYA_JSON_OBJECT)
        return laya_fail(error, LAYA_ERROR_FORMAT, "expected a JSON object, found %s", found(root));
    LAYA_TRY(check_version(root, error));
    return read_items(manifest, root, error);
}

laya_status laya_package_manifest_read(laya_package_manifest *manifest, const char *text, size_t size,
                                       const laya_allocator *allocator, laya_error *error)
{
    *manifest = (laya_package_manifest){0};
    laya_arena_init(&manifest->arena, allocator);
    laya_json doc;
    laya_status status = laya_json_parse(&doc, text, size, allocator, error);
    if (status == LAYA_ERROR_INPUT) {
        laya_error_prefix(error, "not valid JSON: ");
        status = LAYA_ERROR_FORMAT;
        if (error) error->status = status;
    }
    if (status == LAYA_OK) status = read_document(manifest, &doc, error);
    laya_json_close(&doc);
    if (status != LAYA_OK) laya_package_manifest_close(manifest);
    return status;
}

void laya_package_manifest_close(laya_package_manifest *manifest)
{
    laya_arena_close(&manifest->arena);
    *manifest = (laya_package_manifest){0};
}

/* ------------------------------------------------------------------ writing */

#define UUID_SIZE 37 /* with the NUL */

/* A UUID of version 8: the first 122 bits of the SHA-256 of "PATH HASH" around the version and variant fields. */
static laya_status make_identifier(const char *path, const char *sha256, char uuid[UUID_SIZE], laya_error *error)
{
    char label[160], hex[65];
    int length = snprintf(label, sizeof label, "%s %.64s", path, sha256);
    LAYA_TRY(laya_sha256(label, (size_t)length, hex, error));
    size_t at = 0;
    for (size_t i = 0; i < 32; i++) {
        char digit = hex[i];
        if (i == 8 || i == 12 || i == 16 || i == 20) uuid[at++] = '-';
        if (i == 12)
            digit = '8';
        else if (i == 16)
            digit = "89AB"[(digit <= '9' ? digit - '0' : digit - 'a' + 10) & 3];
        else if (digit >= 'a')
            digit = (char)(digit - 'a' + 'A');
        uuid[at++] = digit;
    }
    uuid[at] = '\0';
    return LAYA_OK;
}

typedef struct item_text {
    const char *description, *name, *path;
    char identifier[UUID_SIZE];
} item_text;

static void append_item(laya_buffer *out, const item_text *item, bool last)
{
    laya_buffer_printf(out, "        \"%s\": {\n", item->identifier);
    laya_buffer_puts(out, "            \"author\": \"" AUTHOR "\",\n");
    laya_buffer_printf(out, "            \"description\": \"%s\",\n", item->description);
    laya_buffer_printf(out, "            \"name\": \"%s\",\n", item->name);
    laya_buffer_printf(out, "            \"path\": \"%s\"\n", item->path);
    laya_buffer_puts(out, last ? "        }\n" : "        },\n");
}

laya_status laya_package_manifest_write(laya_buffer *out, const char *model_sha256, const char *weights_sha256,
                                        laya_error *error)
{
    item_text model = {"CoreML Model Specification", MODEL_NAME, AUTHOR "/" MODEL_NAME, ""};
    item_text weights = {"CoreML Model Weights", WEIGHTS_NAME, AUTHOR "/" WEIGHTS_NAME, ""};
    LAYA_TRY(make_identifier(model.path, model_sha256, model.identifier, error));
    if (weights_sha256) LAYA_TRY(make_identifier(weights.path, weights_sha256, weights.identifier, error));
    bool weights_first = weights_sha256 && strcmp(weights.identifier, model.identifier) < 0;

    laya_buffer_puts(out, "{\n    \"fileFormatVersion\": \"1.0.0\",\n    \"itemInfoEntries\": {\n");
    if (weights_first) append_item(out, &weights, false);
    append_item(out, &model, weights_first || !weights_sha256);
    if (weights_sha256 && !weights_first) append_item(out, &weights, true);
    laya_buffer_printf(out, "    },\n    \"rootModelIdentifier\": \"%s\"\n}\n", model.identifier);
    return out->failed ? laya_fail_memory(error, 0) : LAYA_OK;
}
