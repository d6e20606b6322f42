/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/beside.h"

#include "base/error.h"

#include <string.h>

#define BUNDLE_FORMAT "laya-ane-research"

laya_status laya_beside_directory(const char *path, laya_arena *arena, const char **directory, const char **name,
                                  laya_error *error)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    size_t start = size;
    while (start > 0 && path[start - 1] != '/') start--;
    char *last = laya_arena_copy(arena, path + start, size - start);
    size_t parent = start;
    while (parent > 1 && path[parent - 1] == '/') parent--;
    char *before = laya_arena_copy(arena, parent ? path : ".", parent ? parent : 1);
    char *above = laya_arena_alloc(arena, size + sizeof "/..", 1);
    if (!last || !before || !above) return laya_fail_memory(error, size);
    memcpy(above, path, size);
    memcpy(above + size, "/..", sizeof "/..");
    bool named = *last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0;
    *directory = named ? before : above;
    *name = named ? last : NULL;
    return LAYA_OK;
}

bool laya_beside_is_bundle(laya_json_value root, const char *name)
{
    if (laya_json_typeof(root) != LAYA_JSON_OBJECT) return false;
    laya_json_value format = laya_json_get(root, "format"), package = laya_json_get(root, "package");
    if (!laya_json_present(format) || !laya_json_equals(format, BUNDLE_FORMAT)) return false;
    if (!laya_json_present(package) || laya_json_typeof(package) != LAYA_JSON_STRING) return false;
    return !name || laya_json_equals(package, name);
}
