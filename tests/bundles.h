/* SPDX-License-Identifier: Apache-2.0 */
/* Exports made by tests, opened as bundles, and asked. */
#ifndef LAYA_TESTS_BUNDLES_H
#define LAYA_TESTS_BUNDLES_H

#include "support.h"
#include "tree.h"

/* Export a body of the checkpoint at `directory` to `output`. */
void test_export(const char *directory, laya_graph graph, laya_package_precision precision, uint32_t length,
                 bool standalone, const char *output);

/* Open what an export wrote, with the interpreter; fails the test when that is not possible. */
laya_bundle *test_open_bundle(const char *path, laya_numerics numerics, unsigned threads);
/* A context whose questions the bundle answers; memory that is read unset gives NaN. */
laya_context *test_bundle_context(laya_bundle *bundle, bool long_native);

/* Copy the five files of a checkpoint into a new directory `output`. */
void test_copy_checkpoint(const char *directory, const char *output);
/* Change one byte in the middle of a file, or change it back. */
void test_flip_byte(const char *path);

#endif
