/* SPDX-License-Identifier: Apache-2.0 */
/* Directories in tests: listing, comparing, removing; bundles that laya_model_export wrote. */
#ifndef LAYA_TEST_TREE_H
#define LAYA_TEST_TREE_H

#include "support.h"

/* Make an empty temporary directory; its path is written to `path`. */
void test_make_folder(char path[TEST_PATH_SIZE]);
/* A folder of one test: set-up and tear-down for cmocka_unit_test_setup_teardown. */
extern char test_folder[TEST_PATH_SIZE];
int test_setup_folder(void **state);
int test_teardown_folder(void **state);
/* Remove a directory with all that is in it. */
void test_remove_tree(const char *path);
/* directory/name. Returns `out`. */
const char *test_join(char out[TEST_PATH_SIZE], const char *directory, const char *name);

/* The entries below a directory, relative, sorted, one a line; directories end in '/'. Release with free(). */
char *test_list_tree(const char *directory);

/*
 * Two bundles hold the same files with the same bytes; in manifest.json the lines of "conversion_seconds" and
 * "directory" may differ.
 */
void test_same_bundle(const char *a, const char *b);

#endif
