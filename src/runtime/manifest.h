/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.json of a bundle, read strictly. */
#ifndef LAYA_RUNTIME_MANIFEST_H
#define LAYA_RUNTIME_MANIFEST_H

#include "base/json.h"
#include "export/bundle.h"

#define LAYA_PALETTE_TEXT 64

typedef struct laya_manifest {
    laya_allocator allocator;
    laya_export_kind kind;
    laya_graph graph;
    laya_package_precision precision;
    uint32_t length;
    uint32_t markers;    /* 0 unless the kind is body */
    uint32_t operations; /* non-constant ones */
    char package_sha256[65];
    char *source_directory; /* of the checkpoint; NULL: not recorded */
    char sources[LAYA_SOURCE_FILES][65];
    bool standalone;
    char palette[LAYA_PALETTE_TEXT]; /* "kmeans, 8 bits, groups of 32"; "": the weights are as they were exported */
    char parent_sha256[65];          /* of the package that palettes were made from */
    laya_bundle_file files[LAYA_BUNDLE_MAX_FILES]; /* paths have static storage */
    uint32_t file_count;
} laya_manifest;

/*
 * Read DIRECTORY/manifest.json: format, version, kind, shape, hashes. Its `files` are those of the package, and of the
 * host where it stands alone, no more and no less; package_sha256 is the digest over their hashes; copies of the
 * checkpoint's files have the hashes of `source`. Members that are not read here are ignored. Errors: IO, FORMAT,
 * UNSUPPORTED (another version), MEMORY.
 */
laya_status laya_manifest_read(laya_manifest *manifest, const char *directory, const laya_allocator *allocator,
                               laya_error *error);
/* The same for the text of a manifest.json; messages do not name a file. Errors: FORMAT, UNSUPPORTED, MEMORY. */
laya_status laya_manifest_parse(laya_manifest *manifest, const char *text, size_t size,
                                const laya_allocator *allocator, laya_error *error);
void laya_manifest_close(laya_manifest *manifest);

/* What palettes are, in words. bits 0: they differ from weight to weight; group_size 0: one table a tensor. */
void laya_manifest_palette_text(const char *mode, uint32_t bits, uint32_t group_size, char text[LAYA_PALETTE_TEXT]);

#endif
