/* SPDX-License-Identifier: Apache-2.0 */
/* Weight palettes: packages whose convolution weights are tables of a few values and indices into them. */
#ifndef LAYA_PALETTE_H
#define LAYA_PALETTE_H

#include "laya/gate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the values of a table are chosen (docs/PALETTES.md). */
typedef enum laya_palette_mode {
    LAYA_PALETTE_UNIFORM = 0, /* equal steps from the smallest to the largest weight, as coremltools computes them */
    LAYA_PALETTE_KMEANS = 1,  /* least squared error of the weights: the global optimum of 1-D k-means */
    LAYA_PALETTE_UNIQUE = 2,  /* the weights' own values, where there are at most 256: lossless */
    LAYA_PALETTE_WEIGHTED = 3 /* least squared error, each weight counted with the mean square of the activation that
                                  it multiplies: a different optimum of the same format */
} laya_palette_mode;

typedef struct laya_palettize_options {
    size_t size; /* sizeof(laya_palettize_options); set by laya_palettize_options_init */
    laya_palette_mode mode;
    uint32_t bits;       /* of an index: 1, 2, 3, 4, 6 or 8; not looked at with UNIQUE or a target_error */
    uint32_t group_size; /* consecutive output channels that share a table; 0: one table for the tensor */
    double target_error; /* largest probability error to allow: bits are then chosen for each weight, the fewest bytes
                            that were found to pass; 0: the same bits for all. Not with UNIQUE */
    /* For WEIGHTED and a target_error, whose results are always gated: */
    const char *model_directory; /* the checkpoint; NULL: as the bundle's manifest says */
    const char *fixture;         /* questions for activations and gate, such as fixtures/questions.json */
    const char *reference;       /* of the gate; NULL: recorded from the fixture by the float32 engine */

    unsigned workers; /* threads; 0: one per online CPU. The bytes do not depend on it */
    laya_allocator allocator;
    laya_logger logger;       /* told of weights that stay as they are */
    laya_progress progress;   /* zero: none */
    laya_interrupt interrupt; /* zero: none */
} laya_palettize_options;

/* Fill in the defaults: k-means, 8 bits, groups of 32 channels. */
LAYA_API void laya_palettize_options_init(laya_palettize_options *options);

/*
 * Write a bundle that differs from the bundle `package` in its convolution weights alone: those of more than 2,048
 * elements become constexpr_lut_to_dense operations. Norms, RoPE tables and rotations, masks, biases and the host's
 * files are copied. The opset is raised only where the form needs it: one table a tensor of 1, 2, 4, 6 or 8 bits fits
 * CoreML6, groups and 3 bits need CoreML8 (iOS 18, macOS 15). Source: study.md S67 to S73; coreml.md 4 and 5.
 *
 * manifest.json records the parent's hash, mode, bits, group size, algorithm, the error and bytes of every weight, and
 * with WEIGHTED or a target_error the gate's result, which may be a failure. Any other palette is unvalidated until
 * laya_validate says more.
 *
 * package  a bundle that laya_model_export wrote, or its model.mlpackage
 * output   a new directory, complete or absent; it must not exist
 *
 * Errors: ARGUMENT (options), IO (output exists or cannot be written), FORMAT (the bundle; a weight that is not finite;
 * output channels that the group size does not divide), UNSUPPORTED (no weight to compress, a bundle that has palettes;
 * UNIQUE where no weight has few enough values; a target_error that no palette was found to meet), STOPPED,
 * MEMORY, SYSTEM; with a gate also those of laya_validate.
 */
LAYA_API laya_status laya_palettize(const char *package, const laya_palettize_options *options, const char *output,
                                    laya_error *error);

/* ------------------------------------------------------------------ screen */

typedef struct laya_screen_options {
    size_t size;                       /* sizeof(laya_screen_options); set by laya_screen_options_init */
    const laya_bundle_options *bundle; /* how the packages run; NULL: the defaults */
    const char *fixture;               /* questions for activations, and for the reference where there is none */
    const char *reference;             /* a reference file; NULL: recorded once by the float32 engine */
    uint32_t repeats;                  /* public calls per case and variant, at least 1 */
    unsigned workers;                  /* as in laya_palettize_options */
    laya_progress progress;            /* zero: none */
    laya_interrupt interrupt;          /* zero: none */
} laya_screen_options;

/* Fill in the defaults: 1 repeat. */
LAYA_API void laya_screen_options_init(laya_screen_options *options);

/*
 * Palettize a bundle in the study's five variants (W8 uniform in groups of 32 and of 4, W8, W6 and W4 k-means in groups
 * of 32), the same per tensor, and W8, W6 and W4 weighted in groups of 32; validate each, and the parent.
 *
 * output  a new directory, complete or absent, which receives for every variant a bundle NAME and NAME.validation.json,
 *         for the parent parent.validation.json, reference.json where none was named, and screen.json, the report;
 *         NULL: nothing is kept, and bundles lie in $TMPDIR, one at a time
 * report  receives the report, whose table has the study's figures beside ours; laya_report_passed: every variant was
 *         made and validated, whatever its gates said. Close it with laya_report_close
 *
 * Errors: as laya_palettize and laya_validate.
 */
LAYA_API laya_status laya_screen(const char *package, const laya_screen_options *options, const char *output,
                                 laya_report **report, laya_error *error);

#ifdef __cplusplus
}
#endif

#endif
