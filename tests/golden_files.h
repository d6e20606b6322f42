/* SPDX-License-Identifier: Apache-2.0 */
/* Golden case files: found, read, and looked into. For tests; a file that cannot be read ends the program. */
#ifndef LAYA_TESTS_GOLDEN_FILES_H
#define LAYA_TESTS_GOLDEN_FILES_H

#include "base/file.h"
#include "base/json.h"
#include "text/question.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_MAX_CASES 64
#define GOLDEN_NAME_SIZE 64
#define GOLDEN_PATH_SIZE 4096

typedef struct golden_list {
    char names[GOLDEN_MAX_CASES][GOLDEN_NAME_SIZE]; /* without ".json", sorted */
    size_t count;
} golden_list;

typedef struct golden_document {
    laya_file file;
    laya_json json;
} golden_document;

static inline int golden_compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* The *.json files of a folder but for meta.json, index.json and repr_probe.json, which are no cases. */
static inline void golden_find(golden_list *list, const char *folder)
{
    DIR *stream = opendir(folder);
    list->count = 0;
    if (!stream) {
        fprintf(stderr, "%s: cannot be opened\n", folder);
        exit(1);
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        size_t size = strlen(entry->d_name);
        if (size <= 5 || strcmp(entry->d_name + size - 5, ".json") != 0) continue;
        size -= 5;
        if ((size == 4 && memcmp(entry->d_name, "meta", 4) == 0) ||
            (size == 5 && memcmp(entry->d_name, "index", 5) == 0) ||
            (size == 10 && memcmp(entry->d_name, "repr_probe", 10) == 0))
            continue;
        if (size >= GOLDEN_NAME_SIZE || list->count == GOLDEN_MAX_CASES) {
            fprintf(stderr, "%s: too many cases, or a name that is too long\n", folder);
            exit(1);
        }
        memcpy(list->names[list->count], entry->d_name, size);
        list->names[list->count++][size] = '\0';
    }
    closedir(stream);
    qsort(list->names, list->count, sizeof list->names[0], golden_compare_names);
}

static inline laya_json_value golden_open(golden_document *document, const char *folder, const char *name)
{
    laya_error error;
    char path[GOLDEN_PATH_SIZE];
    int size = snprintf(path, sizeof path, "%s/%s.json", folder, name);
    if (size < 0 || (size_t)size >= sizeof path || laya_file_map(&document->file, path, &error) != LAYA_OK ||
        laya_json_parse(&document->json, (const char *)document->file.data, document->file.size, NULL, &error) !=
            LAYA_OK) {
        fprintf(stderr, "%s/%s.json cannot be read\n", folder, name);
        exit(1);
    }
    return laya_json_root(&document->json);
}

static inline void golden_close(golden_document *document)
{
    laya_json_close(&document->json);
    laya_file_unmap(&document->file);
}

/* The prompt text of a state: a string as it is, anything else as Python's JSON text, which goes into `scratch`. */
static inline laya_span golden_state(laya_json_value state, laya_buffer *scratch)
{
    laya_span span;
    if (laya_json_typeof(state) == LAYA_JSON_STRING) {
        span.text = laya_json_text(state, &span.size);
        return span;
    }
    laya_buffer_clear(scratch);
    laya_json_write_python(scratch, state);
    return (laya_span){scratch->data, scratch->size};
}

/* The questions as the model saw them: a shortlist case names the reduced ones. */
static inline laya_json_value golden_questions(laya_json_value root)
{
    laya_json_value reduced = laya_json_get(root, "reduced_questions");
    return laya_json_present(reduced) ? reduced : laya_json_get(root, "questions");
}

static inline bool golden_same(laya_json_value expected, laya_span text)
{
    size_t size;
    const char *wanted = laya_json_text(expected, &size);
    return laya_json_typeof(expected) == LAYA_JSON_STRING && size == text.size &&
           (size == 0 || memcmp(wanted, text.text, size) == 0);
}

/* The numbers below 2^32 of a list, at most `limit`; how many. */
static inline size_t golden_uints(laya_json_value list, uint32_t *out, size_t limit)
{
    size_t count = 0;
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), count++) {
        if (count == limit || !laya_json_to_uint32(it.value, &out[count])) {
            fprintf(stderr, "entry %zu of a list: no number below 2^32, or one too many\n", count);
            exit(1);
        }
    }
    return count;
}

/* The numbers of a list, at most `limit`; how many. */
static inline size_t golden_doubles(laya_json_value list, double *out, size_t limit)
{
    size_t count = 0;
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), count++) {
        if (count == limit || !laya_json_to_double(it.value, &out[count])) {
            fprintf(stderr, "entry %zu of a list: no number, or one too many\n", count);
            exit(1);
        }
    }
    return count;
}

/* A member that is a number below 2^32; 0 and a message when it is not. */
static inline uint32_t golden_uint(laya_json_value object, const char *key)
{
    uint32_t number = 0;
    if (!laya_json_to_uint32(laya_json_get(object, key), &number)) fprintf(stderr, "no number: %s\n", key);
    return number;
}

#endif
