/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests share: paths, files, models, an allocator that counts and fails, temporary checkpoints. */
#ifndef LAYA_TEST_SUPPORT_H
#define LAYA_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "laya/laya.h"

#define TEST_PATH_SIZE 4096

/* Sanitizers make the arithmetic some twenty times slower: where this is 1, tests run fewer and shorter rows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* ------------------------------------------------------------------ files */

/* The source tree: $LAYA_SOURCE_DIR, else where the tests were configured. */
const char *test_source_dir(void);
/* Path of a file of the source tree. Returns `out`. */
const char *test_path(char out[TEST_PATH_SIZE], const char *relative);
/* The contents of a file, NUL-terminated; `size` may be NULL. Release with free(). Fails the test when unreadable. */
char *test_read_file(const char *path, size_t *size);
void test_write_file(const char *path, const void *data, size_t size);

/* ------------------------------------------------------------------ memory */

typedef struct test_memory {
    size_t made;    /* allocations asked for */
    size_t fail_at; /* the one that fails, counted from 1; 0: none */
    size_t live;    /* blocks not released yet */
    bool failed;    /* the failure happened */
    laya_allocator hooks;
} test_memory;

/* For one thread at a time. */
void test_memory_init(test_memory *memory);
/* Count from here; allocation number `fail_at` fails. */
void test_memory_arm(test_memory *memory, size_t fail_at);

/* ------------------------------------------------------------------ models */

#define TEST_DEMO "models/laya-demo"
#define TEST_TINY "tests/data/laya-tiny-random"

/* Open a model of the source tree; fails the test when that is not possible. */
laya_model *test_open_model(const char *relative);
/* A context with this many threads whose arena is poisoned: memory that is read unset gives NaN. */
laya_context *test_open_context(const laya_model *model, unsigned threads);

/*
 * A new temporary checkpoint directory whose files are links to the demo model's. Release with
 * test_remove_checkpoint. Files are named as in the checkpoint ("encoder/config.json").
 */
char *test_make_checkpoint(void);
/* Replace a file of such a directory; data NULL removes it. */
void test_change_file(const char *directory, const char *name, const void *data, size_t size);
/* Replace the first occurrence of `from` in a file by `to`; fails the test when there is none. */
void test_edit_file(const char *directory, const char *name, const char *from, const char *to);
void test_remove_checkpoint(char *directory);

/* ------------------------------------------------------------------ kernels */

/* The next table of kernels that this CPU can run, counting from *index, which moves on; NULL at the end. */
const struct laya_kernels *test_next_kernels(size_t *index);

/* ------------------------------------------------------------------ texts */

/* True when `text` holds `part`. */
bool test_contains(const char *text, const char *part);
/* The text and what it should hold are printed when it does not. */
#define assert_contains(text, part)                                                                                  \
    do {                                                                                                             \
        if (!test_contains(text, part)) fail_msg("\"%s\"\n  does not contain \"%s\"", text, part);                   \
    } while (0)

#endif
