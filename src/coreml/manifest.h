/* SPDX-License-Identifier: Apache-2.0 */
/* Manifest.json of a Core ML package: what it names, and the text that the writer gives it. */
#ifndef LAYA_COREML_MANIFEST_H
#define LAYA_COREML_MANIFEST_H

#include "base/memory.h"
#include "laya/base.h"

#define LAYA_PACKAGE_DATA "Data" /* paths of items are below it */

/* A file or folder of the package. */
typedef struct laya_package_item {
    const char *path; /* below Data/: relative, without ".." */
    bool weights;     /* has the name and author that Apple's tools give the folder of the weights */
} laya_package_item;

typedef struct laya_package_manifest {
    laya_arena arena;
    laya_package_item *items;
    uint32_t count;
    const laya_package_item *model; /* that rootModelIdentifier names */
} laya_package_manifest;

/*
 * Read and check the text. Whether the items exist is not looked at. Errors: FORMAT (message names the field),
 * UNSUPPORTED (a later version of the format), MEMORY; the manifest is then closed.
 */
laya_status laya_package_manifest_read(laya_package_manifest *manifest, const char *text, size_t size,
                                       const laya_allocator *allocator, laya_error *error);
void laya_package_manifest_close(laya_package_manifest *manifest);

/*
 * Append the text for a package of a model and, where weights_sha256 is not NULL, a folder of weights. Identifiers are
 * UUIDs of version 8 (RFC 9562) made from the hashes of the files: 64 hex digits each. Errors: SYSTEM, MEMORY.
 */
laya_status laya_package_manifest_write(laya_buffer *out, const char *model_sha256, const char *weights_sha256,
                                        laya_error *error);

#endif
