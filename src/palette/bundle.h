/* SPDX-License-Identifier: Apache-2.0 */
/* A palettized bundle: package, files of the host, manifest. */
#ifndef LAYA_PALETTE_BUNDLE_H
#define LAYA_PALETTE_BUNDLE_H

#include "palette/palettes.h"

/* Bits and energies of weights by name, where these differ from weight to weight. */
typedef struct laya_palette_choice {
    void *user;
    /* LAYA_PALETTE_AS_IS: no table. NULL: the job's bits for all */
    unsigned (*bits)(void *user, const char *name);
    /* [row], valid while the job runs; NULL where none was measured, an error with WEIGHTED. NULL: no energies */
    const float *(*energy)(void *user, const char *name, uint64_t row);
} laya_palette_choice;

/* Where energies come from, for the manifest. */
typedef struct laya_energy_facts {
    const char *fixture_sha256; /* NULL: there are no energies */
    uint32_t cases, questions;
    uint64_t tokens; /* that activations were averaged over */
} laya_energy_facts;

typedef struct laya_palette_job {
    const char *parent; /* bundle directory, or its package */
    laya_palette_mode mode;
    unsigned bits; /* 0: as `choice` says */
    uint32_t group_size;
    laya_palette_choice choice;
    laya_energy_facts energy;
    double target_error; /* for the manifest; 0: none */
    unsigned workers;    /* as in laya_palettize_options */
    laya_allocator allocator;
    laya_logger logger;
    laya_progress progress;
    laya_interrupt interrupt;
} laya_palette_job;

/* A weight of a bundle that was made, or only measured. */
typedef struct laya_palette_figure {
    const char *name;
    unsigned bits;
    uint64_t elements;
    uint64_t bytes_before; /* of the weight in the parent */
    uint64_t bytes;        /* of indices and tables, or of the weight as it is */
    laya_palette_error errors;
} laya_palette_figure;

typedef struct laya_palette_figures {
    laya_arena arena;
    laya_palette_figure *weights;
    uint32_t count;
    uint64_t package_before, package_after; /* bytes of all files of the package; after is 0 when only measured */
    double seconds;
} laya_palette_figures;

/*
 * Make the bundle in `output`, an existing directory that is empty (a staging directory, which the caller gives its name
 * later, or a child of one): package, verified and compared with the program byte for byte; the host's files, copied
 * against their hashes; manifest.json with the member "palette", gate "not_measured". After an error the directory may
 * hold a part of that: the caller removes it. figures may be NULL, else to be closed after success. Errors: as
 * laya_palettize; IO (something is in the way).
 */
laya_status laya_palette_bundle_make(const laya_palette_job *job, const char *output, laya_palette_figures *figures,
                                     laya_error *error);
/* The tables' errors alone; nothing is written. */
laya_status laya_palette_measure(const laya_palette_job *job, laya_palette_figures *figures, laya_error *error);
void laya_palette_figures_close(laya_palette_figures *figures);

/* Result of a gate, for the manifest. */
typedef struct laya_palette_gate {
    bool passed;
    double probability_error, action_logit_error; /* largest ones; not finite: null in the manifest */
    const char *executor, *class;                 /* static storage */
    char reference_sha256[65];
    uint32_t repeats;                /* public calls per case */
    uint32_t evaluated, unvalidated; /* questions */
} laya_palette_gate;

/* Write the gate's result into the manifest of a bundle that laya_palette_bundle_make made and that has no name yet. */
laya_status laya_palette_bundle_gate(const char *directory, const laya_palette_gate *gate,
                                     const laya_allocator *allocator, laya_error *error);

/* "uniform", "kmeans", "unique", "weighted". Static storage. */
const char *laya_palette_mode_name(laya_palette_mode mode);

#endif
