/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle: what laya_model_export puts into a directory, and manifest.json, which records it. */
#ifndef LAYA_EXPORT_BUNDLE_H
#define LAYA_EXPORT_BUNDLE_H

#include "base/json.h"
#include "coreml/package.h"
#include "laya/coreml.h"

#define LAYA_BUNDLE_PACKAGE "model.mlpackage"
#define LAYA_BUNDLE_MANIFEST "manifest.json"
#define LAYA_BUNDLE_HOST_WEIGHTS "host_weights.safetensors"

/* Written in manifests and reports where nothing was measured, never a guess. */
#define LAYA_NOT_MEASURED "not_measured"

/* The files of a checkpoint. */
typedef enum laya_source_file {
    LAYA_SOURCE_WEIGHTS,
    LAYA_SOURCE_CONFIG,
    LAYA_SOURCE_ENCODER_CONFIG,
    LAYA_SOURCE_TOKENIZER,
    LAYA_SOURCE_TOKENIZER_CONFIG,
    LAYA_SOURCE_FILES
} laya_source_file;

/* Relative to the checkpoint, such as "encoder/config.json". Static storage. */
const char *laya_source_file_name(laya_source_file file);

/* The tensors that the host computes with: token and type embedding, action head. */
#define LAYA_HOST_TENSORS 6u
extern const char *const laya_host_tensor_names[LAYA_HOST_TENSORS]; /* sorted */

#define LAYA_BUNDLE_MAX_FILES 8u /* three of the package, host weights, four copies */

typedef struct laya_bundle_file {
    const char *path; /* relative to the bundle */
    laya_written written;
} laya_bundle_file;

typedef struct laya_bundle_contents {
    const laya_model *model;
    const laya_export_options *options;
    const laya_mil_program *program;
    laya_written sources[LAYA_SOURCE_FILES];       /* of the checkpoint */
    laya_bundle_file files[LAYA_BUNDLE_MAX_FILES]; /* all files but manifest.json */
    uint32_t file_count;
    char package_sha256[65];
    double seconds; /* that the conversion took */
} laya_bundle_contents;

/* Record a file. */
void laya_bundle_add(laya_bundle_contents *bundle, const char *path, const laya_written *written);

/*
 * Write the files of a standalone bundle into its directory and record them: host_weights.safetensors, the
 * configuration and the tokenizer. A copy must have the hash in `sources`. Errors: IO, MEMORY, SYSTEM, FORMAT (a file
 * of the checkpoint changed meanwhile), and what the meter says.
 */
laya_status laya_host_files_write(laya_bundle_contents *bundle, const char *directory, const laya_meter *meter,
                                  laya_error *error);
/* Bytes that laya_host_files_write reads and writes, for the meter. */
uint64_t laya_host_files_size(const laya_bundle_contents *bundle);

/* Write manifest.json into the directory of the bundle. Errors: IO, MEMORY, SYSTEM. */
laya_status laya_bundle_manifest_write(const laya_bundle_contents *bundle, const char *directory, laya_error *error);

/* Members that manifests of bundles share: "files", sorted by path; "operations" of the first function, of which "total"
   and "by_kind" count what runs, constants and their expansion (constexpr) apart. Errors: MEMORY. */
void laya_write_files(laya_json_writer *w, const laya_bundle_file *files, uint32_t count);
laya_status laya_write_operations(laya_json_writer *w, const laya_mil_program *program, laya_error *error);

#endif
