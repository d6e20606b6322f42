/* SPDX-License-Identifier: Apache-2.0 */
/* Core ML packages: writing them from a checkpoint, opening, describing, verifying and comparing them. */
#ifndef LAYA_COREML_H
#define LAYA_COREML_H

#include "laya/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ export */

typedef enum laya_export_kind {
    LAYA_EXPORT_BODY = 0,  /* from the embedding norm to the option logits */
    LAYA_EXPORT_LAYER = 1, /* one encoder layer: a probe of placement */
    LAYA_EXPORT_MLP = 2    /* the feed-forward block of one encoder layer, with its norm and residual */
} laya_export_kind;

typedef enum laya_graph {
    LAYA_GRAPH_PER_HEAD = 0, /* the study's graph: every attention head by itself; the reference */
    LAYA_GRAPH_LEAN = 1      /* the same function with a tenth of the operations */
} laya_graph;

typedef enum laya_package_precision {
    LAYA_PACKAGE_FP16 = 0,
    LAYA_PACKAGE_FP32 = 1 /* for numerical work; the Neural Engine does not run it */
} laya_package_precision;

typedef struct laya_export_options {
    size_t size; /* sizeof(laya_export_options); set by laya_export_options_init */
    laya_export_kind kind;
    laya_graph graph;
    laya_package_precision precision;
    uint32_t length;            /* L, tokens: 16 … max_positions of the checkpoint; 96 */
    uint32_t markers;           /* marker slots, the most options of a question: 2 … 255; 32 */
    uint32_t layer;             /* of the kinds LAYER and MLP, from 0 */
    int standalone;             /* non-zero: copy the host's weights, tokenizer and configuration too */
    const char *weights_sha256; /* 64 hex digits that the checkpoint's model.safetensors must have; NULL: any */
    unsigned threads;           /* 0: one per online CPU; the package does not depend on it */
    laya_progress progress;     /* bytes read and written; zero: none */
    laya_interrupt interrupt;   /* zero: none */
} laya_export_options;

/* Fill in the defaults: body, per-head graph, fp16, 96 tokens, 32 markers, files of the host by reference. */
LAYA_API void laya_export_options_init(laya_export_options *options);

/*
 * Write a bundle directory: `model.mlpackage`, `manifest.json` and, where standalone, `host_weights.safetensors` (token
 * and type embedding, action head), the two configuration files and the tokenizer.
 *
 * The package has fixed shapes and batch 1; all tensors are BC1S ([1, channels, 1, sequence]). Inputs of a body:
 * embeddings [1, d, 1, L], full_mask and local_mask [1, L keys, 1, L queries] (0 or -1e4, added to scores),
 * type_vectors [1, d, 1, 1], marker_map [1, L, 1, markers] (one-hot columns). Outputs: option_logits [1, 1, 1,
 * markers], cls_column [1, d, 1, 1]. Kinds LAYER and MLP: hidden [1, d, 1, L] (and full_mask or local_mask) to
 * hidden_out. Source: the study, contract table D20; docs/GRAPHS.md.
 *
 * The package is verified and read back before the bundle gets its name, so that `output` is complete or absent. The
 * same checkpoint and options give the same bytes on every machine; in manifest.json only conversion_seconds and the
 * path of the source differ.
 *
 * output  must not exist; missing parents are made
 *
 * Errors: ARGUMENT (options), IO (output exists or cannot be written), FORMAT (weights that fp16 cannot hold, another
 * weights_sha256, a failed verification), UNSUPPORTED (a shape that the graph cannot express), STOPPED, MEMORY, SYSTEM.
 */
LAYA_API laya_status laya_model_export(const laya_model *model, const laya_export_options *options,
                                       const char *output, laya_error *error);

/* ------------------------------------------------------------------ packages */

typedef struct laya_package laya_package;

/*
 * Open a package: NAME.mlpackage, or a bundle that holds `model.mlpackage`. Any ML Program is read, also one that
 * another tool wrote; operations that are not known here are kept as they are.
 *
 * allocator  NULL or zero: malloc and free
 * package    receives the package; close it with laya_package_close
 *
 * Errors: IO, FORMAT (manifest, message or weight file malformed), UNSUPPORTED (another kind of model), MEMORY.
 */
LAYA_API laya_status laya_package_open(const char *path, const laya_allocator *allocator, laya_package **package,
                                       laya_error *error);
LAYA_API void laya_package_close(laya_package *package);

/*
 * Facts as a JSON object: inputs, outputs and states with types, opset, specification version, metadata, operations by
 * kind, constants and their bytes, palettes (weights that are tables and indices) and their bytes, bytes of the files.
 *
 * operations  non-zero: also every operation in order, with types
 * json        receives a NUL-terminated text; release it with laya_package_release
 *
 * Errors: MEMORY.
 */
LAYA_API laya_status laya_package_describe(const laya_package *package, int operations, char **json,
                                           laya_error *error);

/*
 * The palettes of a package as a JSON object: every constexpr_lut_to_dense operation with the values of its tables and
 * the number of entries that are used, and what the tables change (docs/GRAPHS.md).
 *
 * parent  the package that the palettes were made from, whose constants have the same names: squared, relative and
 *         largest error are computed; NULL: they are those that the bundle's manifest.json records, where the package
 *         lies in a bundle that laya_palettize wrote
 * json    receives a NUL-terminated text; release it with laya_package_release of `package`
 *
 * Errors: FORMAT (a palette that cannot be read, or whose dense constant the parent lacks or has with another type; a
 * manifest that does not fit), IO, MEMORY. Without a parent, a palette that cannot be read is listed as such.
 */
LAYA_API laya_status laya_package_palettes(const laya_package *package, const laya_package *parent, char **json,
                                           laya_error *error);

/*
 * Verify a package: names, interface, types, parameters, values, stored bytes (docs/GRAPHS.md lists the checks). A
 * bundle's files are also compared with the hashes of its manifest.json.
 *
 * passed  receives 1 when nothing is wrong (warnings are allowed), else 0
 * json    receives the report; release it with laya_package_release
 *
 * Errors: MEMORY, IO.
 */
LAYA_API laya_status laya_package_verify(const laya_package *package, int *passed, char **json, laya_error *error);

/*
 * Compare two packages by meaning: interface, opset, operations in order with their types, parameters and constants.
 * Names of values, the order of map entries and the layout of the files do not count.
 *
 * equal  receives 1 or 0
 * json   receives the differences (the first 100); release it with laya_package_release of `a`
 *
 * Errors: MEMORY.
 */
LAYA_API laya_status laya_package_compare(const laya_package *a, const laya_package *b, int *equal, char **json,
                                          laya_error *error);

/* Release a text that a call on the same package gave. NULL is allowed. */
LAYA_API void laya_package_release(const laya_package *package, char *text);

#ifdef __cplusplus
}
#endif

#endif
