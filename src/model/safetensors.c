/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A safetensors file: 8 bytes little-endian header size n, n bytes of JSON, then the tensors' bytes.
 *
 *   {"name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}}
 *
 * Offsets count from the end of the header; the tensors cover the rest of the file without gap or overlap.
 */
#include "model/safetensors.h"

#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_LIMIT 100000000u /* bytes; the limit of the format's own reader */
#define NAME_SHOWN 200          /* bytes of a name that messages repeat */

/* An entry while the header is read: where its bytes lie, for the check of gaps and overlaps. */
typedef struct span {
    uint64_t begin;
    uint64_t end;
    uint32_t entry;
} span;

void laya_tensor_widen(const laya_tensor *tensor, size_t at, size_t count, float *out)
{
    laya_widen(tensor->data + at * laya_dtype_size(tensor->dtype), tensor->dtype, count, out);
}

/* ------------------------------------------------------------------ header */

/*
 * The members that the text has, repeated keys included: colons outside strings. `text` is valid JSON. (The JSON
 * reader keeps the last of several members with one key, as Python does; here a repeated key is an error.)
 */
static size_t count_members(const char *text, size_t size)
{
    size_t members = 0;
    bool inside = false;
    for (size_t i = 0; i < size; i++) {
        if (inside) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                inside = false;
        } else if (text[i] == '"') {
            inside = true;
        } else if (text[i] == ':') {
            members++;
        }
    }
    return members;
}

static size_t count_document_members(const laya_json *doc)
{
    size_t members = 0;
    for (uint32_t i = 0; i < doc->count; i++) {
        if (doc->nodes[i].type == LAYA_JSON_OBJECT) members += doc->nodes[i].size;
    }
    return members;
}

static bool to_uint64(laya_json_value value, uint64_t *number)
{
    if (!laya_json_present(value) || laya_json_typeof(value) != LAYA_JSON_INTEGER) return false;
    size_t size;
    const char *text = laya_json_text(value, &size);
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        unsigned digit = (unsigned)(text[i] - '0');
        if (sum > (UINT64_MAX - digit) / 10) return false;
        sum = sum * 10 + digit;
    }
    *number = sum;
    return true;
}

/* How much of a name a message shows. */
static int shown(size_t size)
{
    return size < NAME_SHOWN ? (int)size : NAME_SHOWN;
}

static laya_status read_metadata(laya_json_value metadata, laya_error *error)
{
    if (laya_json_typeof(metadata) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "__metadata__ must be an object of strings, found %s",
                         laya_json_type_name(metadata));
    }
    for (laya_json_iterator it = laya_json_first(metadata); laya_json_present(it.value); laya_json_next(&it)) {
        if (laya_json_typeof(it.value) == LAYA_JSON_STRING) continue;
        size_t size;
        const char *key = laya_json_text(it.key, &size);
        return laya_fail(error, LAYA_ERROR_FORMAT, "__metadata__ must be an object of strings, '%.*s' is %s",
                         shown(size), key, laya_json_type_name(it.value));
    }
    return LAYA_OK;
}

static laya_status read_dtype(laya_json_value value, const char *name, laya_dtype *dtype, laya_error *error)
{
    if (!laya_json_present(value) || laya_json_typeof(value) != LAYA_JSON_STRING) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "tensor '%.*s': 'dtype' must be a string, found %s",
                         shown(strlen(name)), name,
                         laya_json_present(value) ? laya_json_type_name(value) : "nothing");
    }
    static const laya_dtype known[] = {LAYA_F16, LAYA_BF16, LAYA_F32};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (laya_json_equals(value, laya_dtype_name(known[i]))) {
            *dtype = known[i];
            return LAYA_OK;
        }
    }
    size_t size;
    const char *text = laya_json_text(value, &size);
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                     "tensor '%.*s': dtype '%.*s' is not supported (F16, BF16 and F32 are)", shown(strlen(name)),
                     name, size < 16 ? (int)size : 16, text);
}

/* One tensor: entry->name is set; the rest is filled in, `place` receives the offsets. */
static laya_status read_tensor(laya_json_value value, laya_tensor_entry *entry, span *place, laya_error *error)
{
    const char *name = entry->name;
    int width = shown(strlen(name));
    if (laya_json_typeof(value) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "tensor '%.*s' must be an object, found %s", width, name,
                         laya_json_type_name(value));
    }
    for (laya_json_iterator it = laya_json_first(value); laya_json_present(it.value); laya_json_next(&it)) {
        if (laya_json_equals(it.key, "dtype") || laya_json_equals(it.key, "shape") ||
            laya_json_equals(it.key, "data_offsets")) {
            continue;
        }
        size_t size;
        const char *key = laya_json_text(it.key, &size);
        return laya_fail(error, LAYA_ERROR_FORMAT, "tensor '%.*s': unknown field '%.*s'", width, name, shown(size),
                         key);
    }
    LAYA_TRY(read_dtype(laya_json_get(value, "dtype"), name, &entry->tensor.dtype, error));

    laya_json_value shape = laya_json_get(value, "shape");
    if (!laya_json_present(shape) || laya_json_typeof(shape) != LAYA_JSON_ARRAY || laya_json_size(shape) < 1 ||
        laya_json_size(shape) > 2) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "tensor '%.*s': 'shape' must be a list of one or two sizes", width,
                         name);
    }
    uint32_t sizes[2] = {1, 1};
    entry->rank = (uint32_t)laya_json_size(shape);
    uint32_t at = 2 - entry->rank;
    for (laya_json_iterator it = laya_json_first(shape); laya_json_present(it.value); laya_json_next(&it)) {
        if (!laya_json_to_uint32(it.value, &sizes[at]) || sizes[at] == 0) {
            return laya_fail(error, LAYA_ERROR_FORMAT, "tensor '%.*s': 'shape' must hold sizes from 1 to 4294967295",
                             width, name);
        }
        at++;
    }
    entry->tensor.rows = sizes[0];
    entry->tensor.cols = sizes[1];

    laya_json_value offsets = laya_json_get(value, "data_offsets");
    laya_json_iterator it = laya_json_first(offsets);
    bool valid = laya_json_present(offsets) && laya_json_typeof(offsets) == LAYA_JSON_ARRAY &&
                 laya_json_size(offsets) == 2 && to_uint64(it.value, &place->begin);
    if (valid) {
        laya_json_next(&it);
        valid = to_uint64(it.value, &place->end) && place->begin <= place->end;
    }
    if (!valid) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "tensor '%.*s': 'data_offsets' must be [begin, end] with 0 <= begin <= end", width, name);
    }
    /* rows and cols are below 2^32, so that their product fits; the size in bytes need not. */
    uint64_t values = (uint64_t)sizes[0] * sizes[1];
    uint64_t bytes = place->end - place->begin;
    uint64_t each = laya_dtype_size(entry->tensor.dtype);
    if (bytes % each != 0 || bytes / each != values) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "tensor '%.*s': %llu bytes between its offsets, but its shape has %llu values of type %s",
                         width, name, (unsigned long long)bytes, (unsigned long long)values,
                         laya_dtype_name(entry->tensor.dtype));
    }
    return LAYA_OK;
}

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_name(const void *a, const void *b)
{
    const laya_tensor_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static laya_status check_cover(laya_safetensors *tensors, span *places, const unsigned char *data, uint64_t size,
                               laya_error *error)
{
    qsort(places, tensors->count, sizeof *places, by_begin);
    uint64_t at = 0;
    for (uint32_t i = 0; i < tensors->count; i++) {
        laya_tensor_entry *entry = &tensors->entries[places[i].entry];
        int width = shown(strlen(entry->name));
        if (places[i].end > size) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "tensor '%.*s' ends at byte %llu of the data, but the file holds only %llu (truncated?)",
                             width, entry->name, (unsigned long long)places[i].end, (unsigned long long)size);
        }
        if (places[i].begin != at) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "tensor '%.*s' begins at byte %llu of the data, expected %llu (%s)", width, entry->name,
                             (unsigned long long)places[i].begin, (unsigned long long)at,
                             places[i].begin < at ? "overlap" : "gap");
        }
        entry->tensor.data = data + (size_t)at;
        at = places[i].end;
    }
    if (at != size) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "the tensors end at byte %llu of the data, but the file holds %llu", (unsigned long long)at,
                         (unsigned long long)size);
    }
    return LAYA_OK;
}

/* Fill entries, names and places from the document's members. */
static laya_status read_entries(laya_safetensors *tensors, laya_json_value root, span *places, laya_error *error)
{
    char *name = tensors->names;
    uint32_t at = 0;
    for (laya_json_iterator it = laya_json_first(root); laya_json_present(it.value); laya_json_next(&it)) {
        if (laya_json_equals(it.key, "__metadata__")) {
            LAYA_TRY(read_metadata(it.value, error));
            continue;
        }
        size_t size;
        const char *key = laya_json_text(it.key, &size);
        if (size == 0 || memchr(key, '\0', size)) {
            return laya_fail(error, LAYA_ERROR_FORMAT, "a tensor's name is empty or holds a NUL character");
        }
        memcpy(name, key, size);
        name[size] = '\0';
        tensors->entries[at].name = name;
        places[at].entry = at;
        LAYA_TRY(read_tensor(it.value, &tensors->entries[at], &places[at], error));
        name += size + 1;
        at++;
    }
    return LAYA_OK;
}

static laya_status read_header(laya_safetensors *tensors, const laya_json *doc, const unsigned char *data,
                               size_t size, laya_error *error)
{
    laya_json_value root = laya_json_root(doc);
    if (laya_json_typeof(root) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "the header must be an object, found %s",
                         laya_json_type_name(root));
    }
    size_t name_bytes = 0;
    for (laya_json_iterator it = laya_json_first(root); laya_json_present(it.value); laya_json_next(&it)) {
        if (laya_json_equals(it.key, "__metadata__")) continue;
        size_t length;
        laya_json_text(it.key, &length);
        name_bytes += length + 1; /* below the header's size */
        tensors->count++;
    }
    if (tensors->count == 0) return laya_fail(error, LAYA_ERROR_FORMAT, "the file has no tensors");
    tensors->entries = laya_alloc_zero(&tensors->allocator, tensors->count, sizeof *tensors->entries);
    tensors->names = laya_alloc(&tensors->allocator, name_bytes, 1);
    span *places = laya_alloc_zero(&tensors->allocator, tensors->count, sizeof *places);
    laya_status status;
    if (!tensors->entries || !tensors->names || !places) {
        status = laya_fail_memory(error, tensors->count * sizeof *tensors->entries);
    } else {
        status = read_entries(tensors, root, places, error);
        if (status == LAYA_OK) status = check_cover(tensors, places, data, size, error);
        if (status == LAYA_OK) qsort(tensors->entries, tensors->count, sizeof *tensors->entries, by_name);
    }
    laya_release(&tensors->allocator, places);
    return status;
}

laya_status laya_safetensors_read(laya_safetensors *tensors, const unsigned char *data, size_t size,
                                  const laya_allocator *allocator, laya_error *error)
{
    *tensors = (laya_safetensors){.allocator = laya_allocator_or_default(allocator)};
    if (size < 8) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "not a safetensors file: %zu bytes, shorter than its header size",
                         size);
    }
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | data[i];
    if (length > HEADER_LIMIT || length > size - 8) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "not a safetensors file, or truncated: a header of %llu bytes in a file of %zu (at most %u)",
                         (unsigned long long)length, size, HEADER_LIMIT);
    }
    const char *text = (const char *)data + 8;
    if (length < 2 || text[0] != '{') {
        return laya_fail(error, LAYA_ERROR_FORMAT, "not a safetensors file: the header does not begin with '{'");
    }
    laya_json doc;
    laya_status status = laya_json_parse(&doc, text, (size_t)length, &tensors->allocator, error);
    if (status != LAYA_OK) {
        if (status != LAYA_ERROR_INPUT) return status;
        laya_error_prefix(error, "the header is not valid JSON: ");
        if (error) error->status = LAYA_ERROR_FORMAT;
        return LAYA_ERROR_FORMAT;
    }
    if (count_members(text, (size_t)length) != count_document_members(&doc)) {
        status = laya_fail(error, LAYA_ERROR_FORMAT, "the header names a tensor or field twice");
    } else {
        status = read_header(tensors, &doc, data + 8 + (size_t)length, size - 8 - (size_t)length, error);
    }
    laya_json_close(&doc);
    if (status != LAYA_OK) laya_safetensors_close(tensors);
    return status;
}

void laya_safetensors_close(laya_safetensors *tensors)
{
    laya_release(&tensors->allocator, tensors->entries);
    laya_release(&tensors->allocator, tensors->names);
    tensors->entries = NULL;
    tensors->names = NULL;
    tensors->count = 0;
}

const laya_tensor_entry *laya_safetensors_find(const laya_safetensors *tensors, const char *name)
{
    size_t low = 0, high = tensors->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, tensors->entries[middle].name);
        if (order == 0) return &tensors->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
