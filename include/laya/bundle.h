/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles: exported packages with what the host computes around them, opened to answer questions.
 *
 * The host tokenizes, gathers embedding rows, builds masks and markers; one call of the package gives the option logits
 * and the first token's state; the host computes the action head, calibration and answers. laya_context_options.bundle
 * sends the questions of a context this way instead of through the CPU engine.
 */
#ifndef LAYA_BUNDLE_H
#define LAYA_BUNDLE_H

#include "laya/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum laya_backend {
    LAYA_BACKEND_INTERPRETER = 0, /* our own execution of the package, on any CPU */
    LAYA_BACKEND_COREML = 1       /* Core ML; macOS only */
} laya_backend;

/* How the interpreter computes. */
typedef enum laya_numerics {
    LAYA_NUMERICS_FP16 = 0,        /* results of fp16 operations rounded to fp16, sums in fp32 */
    LAYA_NUMERICS_FP16_STRICT = 1, /* sums rounded to fp16 after every addition too: a pessimistic bound */
    LAYA_NUMERICS_FP32 = 2         /* nothing rounded to fp16 */
} laya_numerics;

/* What Core ML may use; its names. CPU_AND_NE allows the CPU: it is no Neural Engine switch. */
typedef enum laya_compute_units {
    LAYA_UNITS_CPU = 0,
    LAYA_UNITS_CPU_GPU = 1,
    LAYA_UNITS_ALL = 2,
    LAYA_UNITS_CPU_NE = 3
} laya_compute_units;

typedef struct laya_bundle_options {
    size_t size; /* sizeof(laya_bundle_options); set by laya_bundle_options_init */
    laya_allocator allocator;
    laya_logger logger;
    const char *model_directory;   /* checkpoint for the host side; NULL: as the manifest says */
    const char *lang_temperatures; /* as in laya_model_options. Strings are read during the call only */
    laya_backend backend;
    laya_numerics numerics;      /* of the interpreter */
    laya_compute_units units;    /* of Core ML */
    const char *cache_directory; /* of compiled packages, for Core ML; NULL: the user's cache folder */
    unsigned threads;            /* of the interpreter; 0: one per online CPU */
} laya_bundle_options;

/* Fill in the defaults: interpreter, fp16 numerics, CPU_NE, the manifest's checkpoint. */
LAYA_API void laya_bundle_options_init(laya_bundle_options *options);

typedef struct laya_bundle laya_bundle;

/*
 * Open a bundle of kind body, or a directory whose sub-directories are bundles of one checkpoint with different lengths
 * (buckets). Verified before anything runs: SHA-256 of the package's files, of the checkpoint's weights and
 * configurations against manifest.json; shapes and names of inputs and outputs against the checkpoint.
 *
 * path     an export's output directory, its model.mlpackage, or a directory of such outputs
 * options  NULL means the defaults
 * bundle   receives the bundle; close it with laya_bundle_close after the contexts that use it. One context at a time
 *          may use it
 *
 * Errors: IO, FORMAT (a hash or shape that does not fit; the message names file, expected and found), UNSUPPORTED (kind
 * mlp or layer; an operation that the interpreter lacks; Core ML on a system without it), MEMORY, SYSTEM.
 */
LAYA_API laya_status laya_bundle_open(const char *path, const laya_bundle_options *options, laya_bundle **bundle,
                                      laya_error *error);
/* NULL is allowed. */
LAYA_API void laya_bundle_close(laya_bundle *bundle);

/* The checkpoint of the host side; lives as long as the bundle. */
LAYA_API const laya_model *laya_bundle_model(const laya_bundle *bundle);

/* One package of a bundle. Strings live as long as the bundle. */
typedef struct laya_bucket_info {
    const char *directory;      /* of the export */
    const char *package_sha256; /* 64 hex digits */
    const char *weights_sha256; /* of the checkpoint that it was made from */
    const char *graph;          /* "per-head", "lean" */
    const char *precision;      /* "fp16", "fp32" */
    const char *palette;        /* "kmeans, 8 bits, groups of 32"; NULL: the weights as they were exported */
    uint32_t length;            /* tokens of a row, at most */
    uint32_t markers;           /* options of a question, at most */
    uint32_t operations;        /* non-constant ones */
} laya_bucket_info;

/* Number of packages, sorted by length. */
LAYA_API size_t laya_bundle_buckets(const laya_bundle *bundle);
/* Fill in `info` of bucket `index`; false (0) when there is none. */
LAYA_API int laya_bundle_bucket(const laya_bundle *bundle, size_t index, laya_bucket_info *info);

/* Name of what executes, for reports: "interpreter fp16", "Core ML CPU_AND_NE". Static storage. */
LAYA_API const char *laya_bundle_executor(const laya_bundle *bundle);

/*
 * Core ML's compute plan of bucket `index` as a JSON object (docs/COREML.md lists the members): for every operation the
 * preferred and the supported devices and the cost weight, counts and sums by device, seconds that compiling and loading
 * took. Class "planned by Core ML": anticipated placement, not a trace of an execution.
 *
 * json  receives a NUL-terminated text; release it with laya_bundle_release
 *
 * Errors: ARGUMENT (no such bucket), UNSUPPORTED (the bundle is open with the interpreter; macOS before 14.4), FORMAT
 * (Core ML made no plan: its own message), MEMORY.
 */
LAYA_API laya_status laya_bundle_plan(laya_bundle *bundle, size_t index, char **json, laya_error *error);

/* Release a text that a call on the same bundle gave. NULL is allowed. */
LAYA_API void laya_bundle_release(const laya_bundle *bundle, char *text);

#ifdef __cplusplus
}
#endif

#endif
