/* SPDX-License-Identifier: Apache-2.0 */
/* Gates: references of full-precision answers, packages compared with them, and timings. */
#ifndef LAYA_GATE_H
#define LAYA_GATE_H

#include "laya/bundle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ references */

typedef struct laya_reference_options {
    size_t size;              /* sizeof(laya_reference_options); set by laya_reference_options_init */
    unsigned threads;         /* 0: one per online CPU; the file does not depend on it */
    laya_progress progress;   /* zero: none */
    laya_interrupt interrupt; /* zero: none */
} laya_reference_options;

/* Fill in the defaults. */
LAYA_API void laya_reference_options_init(laya_reference_options *options);

/*
 * Answer all questions of a fixture with the float32 engine and write a reference file: token rows, markers, unrounded
 * logits and action logits, results, and the SHA-256 of weights, configuration and fixture. Its class is "native fp32
 * engine": it shows what a package changes against this engine, not against upstream's. docs/REFERENCE.md describes
 * the file.
 *
 * fixture  a JSON file such as fixtures/questions.json
 * options  NULL means the defaults
 * output   a new file, complete or absent; it must not exist
 *
 * Errors: ARGUMENT, IO (also: output exists), FORMAT (fixture, a logit that is not finite), UNSUPPORTED (a model without
 * its encoder), INPUT (a question that laya_predict refuses; the message names the case), STOPPED, MEMORY, SYSTEM.
 */
LAYA_API laya_status laya_reference_record(const laya_model *model, const char *fixture,
                                           const laya_reference_options *options, const char *output,
                                           laya_error *error);

/* ------------------------------------------------------------------ reports */

typedef struct laya_report laya_report;

/* Non-zero: all gates passed (validation), or the outputs were stable (benchmark). */
LAYA_API int laya_report_passed(const laya_report *report);
/* The report as a JSON object, NUL-terminated; docs/GATES.md lists the fields. `size` may be NULL. */
LAYA_API const char *laya_report_json(const laya_report *report, size_t *size);
/* NULL is allowed. */
LAYA_API void laya_report_close(laya_report *report);

/* ------------------------------------------------------------------ validation */

typedef struct laya_validate_options {
    size_t size;                       /* sizeof(laya_validate_options); set by laya_validate_options_init */
    const laya_bundle_options *bundle; /* how the package runs; NULL: the defaults */
    uint32_t length;                   /* of the package to validate, tokens; 0: the bundle has one package only */
    const char *reference;             /* a reference file; NULL: recorded before the run by the float32 engine */
    const char *fixture;               /* that it is recorded from, where there is no reference */
    uint32_t repeats;                  /* public calls per case, at least 1 */
    const char *output;                /* a new file that receives the JSON; NULL: none */
    const char *html;                  /* a new file that receives the report as a page; NULL: none */
    laya_progress progress;            /* calls done; zero: none */
    laya_interrupt interrupt;          /* asked between two calls; zero: none */
} laya_validate_options;

/* Fill in the defaults: 100 repeats. */
LAYA_API void laya_validate_options_init(laya_validate_options *options);

/*
 * Run every case of a reference that fits a package, and gate what it answers: all decisions equal, calibrated and action
 * probabilities within 0.02, everything finite, token usage unchanged, the same public output in every repeat. Cases that
 * do not fit are listed as unvalidated. A package that fails gives a report that says so, and LAYA_OK.
 *
 * package  as laya_bundle_open takes it
 * report   receives the report; close it with laya_report_close. Its files are complete or absent
 *
 * Errors: as laya_bundle_open; ARGUMENT (options); IO (a file that exists or cannot be written); FORMAT (the reference is
 * malformed, or of another checkpoint); UNSUPPORTED (no reference, and no full checkpoint to record one); STOPPED.
 */
LAYA_API laya_status laya_validate(const char *package, const laya_validate_options *options, laya_report **report,
                                   laya_error *error);

/* ------------------------------------------------------------------ benchmark */

typedef struct laya_benchmark_options {
    size_t size;                       /* sizeof(laya_benchmark_options); set by laya_benchmark_options_init */
    const laya_bundle_options *bundle; /* how the packages run; NULL: the defaults */
    uint32_t length;                   /* as in laya_validate_options, of every package */
    int long_request;                  /* non-zero: a request that fills the package instead of a short one */
    uint32_t body_warmups, body_calls; /* of the executor alone, on synthetic embeddings */
    uint32_t warmups, calls;           /* of the complete path, from text to formatted answer */
    const char *const *compare;        /* [compare_count] packages, or "native" for the float32 engine */
    size_t compare_count;              /* subjects that are compared with the package in alternating blocks */
    uint32_t cycles;                   /* of a comparison: the subjects in order, then in reverse order */
    uint32_t block_warmups, block_calls;
    const char *power; /* command that prints watts, one number a line; "powercap": Linux's counters; NULL: none */
    double power_interval;    /* seconds between its samples */
    double block_seconds;     /* of a block where power is measured; the first 15 % are not used */
    double idle_seconds;      /* before such a block, for the idle power */
    const char *output;       /* a new file that receives the JSON; NULL: none */
    laya_progress progress;   /* steps done; zero: none */
    laya_interrupt interrupt; /* asked between two calls; zero: none */
} laya_benchmark_options;

/* Fill in the defaults: 5 + 30 calls of the body, 10 + 50 of the complete path, 3 cycles of blocks of 2 + 10; with power,
   blocks of 20 s after 10 s of idling, a sample every 0.5 s. */
LAYA_API void laya_benchmark_options_init(laya_benchmark_options *options);

/*
 * Time a package: loading, the body, the complete path; and, where asked, compare it with others in alternating blocks
 * and measure energy. Times of the interpreter say nothing about Core ML.
 *
 * Errors: as laya_validate; FORMAT also for compared packages of different checkpoints; INPUT (a request that fits no
 * package). Power samples that the rules reject are no error: the report says so.
 */
LAYA_API laya_status laya_benchmark(const char *package, const laya_benchmark_options *options, laya_report **report,
                                    laya_error *error);

#ifdef __cplusplus
}
#endif

#endif
