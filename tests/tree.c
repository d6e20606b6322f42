/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ENTRIES 4096

void test_make_folder(char path[TEST_PATH_SIZE])
{
    const char *temporary = getenv("TMPDIR");
    test_join(path, temporary && *temporary ? temporary : "/tmp", "laya-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

const char *test_join(char out[TEST_PATH_SIZE], const char *directory, const char *name)
{
    int size = snprintf(out, TEST_PATH_SIZE, "%s/%s", directory, name);
    assert_true(size > 0 && size < TEST_PATH_SIZE);
    return out;
}

/* ------------------------------------------------------------------ listing */

typedef struct tree {
    char *entries[MAX_ENTRIES]; /* relative; directories end in '/', and come before what is in them */
    size_t count;
} tree;

static void add_entries(tree *t, const char *root, const char *folder)
{
    char path[TEST_PATH_SIZE], name[TEST_PATH_SIZE];
    struct stat facts;
    struct dirent *entry;
    DIR *directory = opendir(test_join(path, root, folder));
    if (!directory) fail_msg("%s cannot be listed", path);
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s%s", folder, entry->d_name);
        assert_int_equal(lstat(test_join(path, root, name), &facts), 0);
        size_t size = strlen(name);
        char *copy = malloc(size + 2);
        assert_non_null(copy);
        memcpy(copy, name, size + 1);
        if (S_ISDIR(facts.st_mode)) memcpy(copy + size, "/", 2);
        assert_true(t->count < MAX_ENTRIES);
        t->entries[t->count++] = copy;
    }
    closedir(directory);
}

static tree *read_tree(const char *root)
{
    tree *t = calloc(1, sizeof *t);
    assert_non_null(t);
    add_entries(t, root, "");
    for (size_t at = 0; at < t->count; at++) {
        if (t->entries[at][strlen(t->entries[at]) - 1] == '/') add_entries(t, root, t->entries[at]);
    }
    return t;
}

static void free_tree(tree *t)
{
    for (size_t at = 0; at < t->count; at++) free(t->entries[at]);
    free(t);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *test_list_tree(const char *directory)
{
    tree *t = read_tree(directory);
    size_t size = 1, filled = 0;
    for (size_t at = 0; at < t->count; at++) size += strlen(t->entries[at]) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    qsort(t->entries, t->count, sizeof *t->entries, by_text);
    for (size_t at = 0; at < t->count; at++) filled += (size_t)sprintf(text + filled, "%s\n", t->entries[at]);
    text[filled] = '\0';
    free_tree(t);
    return text;
}

void test_remove_tree(const char *path)
{
    char entry[TEST_PATH_SIZE];
    tree *t = read_tree(path);
    for (size_t at = t->count; at-- > 0;) assert_int_equal(remove(test_join(entry, path, t->entries[at])), 0);
    assert_int_equal(rmdir(path), 0);
    free_tree(t);
}

/* ------------------------------------------------------------------ bundles */

/* Drop the line of a member. */
static void drop_line(char *text, const char *name)
{
    char *hit = strstr(text, name);
    if (!hit) fail_msg("no %s in %s", name, text);
    char *start = hit, *end = strchr(hit, '\n');
    while (start > text && start[-1] != '\n') start--;
    memmove(start, end, strlen(end) + 1);
}

static void same_file(const char *a, const char *b, bool manifest)
{
    size_t a_size, b_size;
    char *first = test_read_file(a, &a_size), *second = test_read_file(b, &b_size);
    if (manifest) {
        drop_line(first, "\"conversion_seconds\"");
        drop_line(second, "\"conversion_seconds\"");
        drop_line(first, "\"directory\"");
        drop_line(second, "\"directory\"");
        assert_string_equal(first, second);
    } else if (a_size != b_size || memcmp(first, second, a_size) != 0) {
        fail_msg("%s and %s differ", a, b);
    }
    free(first);
    free(second);
}

void test_same_bundle(const char *a, const char *b)
{
    char first[TEST_PATH_SIZE], second[TEST_PATH_SIZE];
    char *names = test_list_tree(a), *others = test_list_tree(b);
    assert_string_equal(names, others);
    for (char *name = names, *end; (end = strchr(name, '\n')) != NULL; name = end + 1) {
        *end = '\0';
        if (end[-1] == '/') continue;
        same_file(test_join(first, a, name), test_join(second, b, name), strcmp(name, "manifest.json") == 0);
    }
    free(names);
    free(others);
}

char test_folder[TEST_PATH_SIZE];

int test_setup_folder(void **state)
{
    (void)state;
    test_make_folder(test_folder);
    return 0;
}

int test_teardown_folder(void **state)
{
    (void)state;
    test_remove_tree(test_folder);
    return 0;
}
