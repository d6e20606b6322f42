/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.json of a palettized bundle: the parent's, with what changed, and the member "palette". */
#ifndef LAYA_PALETTE_MANIFEST_H
#define LAYA_PALETTE_MANIFEST_H

#include "palette/bundle.h"
#include "runtime/bundle.h"

typedef struct laya_palette_contents {
    const laya_palette_job *job;
    const laya_bucket *parent;
    const laya_mil_program *program; /* with the palettes in place */
    laya_palette_weight *weights;
    uint32_t count;
    bool grouped;                                  /* the form of CoreML8 */
    laya_bundle_file files[LAYA_BUNDLE_MAX_FILES]; /* all but manifest.json */
    uint32_t file_count;
    char package_sha256[65];
    double seconds;
} laya_palette_contents;

/* Bytes of a weight as it is stored: tables and indices, or itself. */
uint64_t laya_palette_bytes(const laya_palette_weight *weight);
/* Whether a file belongs to the package, and the bytes of those that do. */
bool laya_palette_package_file(const laya_bundle_file *file);
uint64_t laya_palette_package_bytes(const laya_bundle_file *files, uint32_t count);

/* "kmeans, 8 bits, groups of 32": what a job makes, in words; the reader of manifests says the same. */
void laya_palette_text(const laya_palette_job *job, char text[LAYA_PALETTE_TEXT]);

/* Member "energy": where activations come from; null where none were measured. */
void laya_palette_write_energy(laya_json_writer *w, const laya_energy_facts *energy);

/* Write manifest.json. Errors: IO, FORMAT (the parent's), MEMORY, SYSTEM. */
laya_status laya_palette_manifest_write(const laya_palette_contents *bundle, const char *directory,
                                        laya_error *error);

#endif
