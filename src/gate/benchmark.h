/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark measures, and its report. */
#ifndef LAYA_GATE_BENCHMARK_H
#define LAYA_GATE_BENCHMARK_H

#include "gate/comparison.h"
#include "gate/report.h"

#define LAYA_BENCHMARK_FORMAT "laya-benchmark"
#define LAYA_NATIVE "native" /* instead of a package: the float32 engine */

/* A subject of the comparison; the first is the package. */
typedef struct laya_contender {
    laya_subject subject;
    laya_model *model; /* of a native subject, opened for it; NULL for packages */
    laya_candidate candidate;
    bool opened; /* the candidate is there */
} laya_contender;

typedef struct laya_benchmark_run {
    const laya_benchmark_options *options;
    laya_allocator allocator;
    laya_contender *contenders; /* [count] */
    size_t count;
    laya_workload workload;
    uint32_t tokens, state_tokens, state_tokens_dropped; /* of the request, as the package's answer says */
    laya_series body, complete;
    bool body_stable; /* every run of the body gave the same bits */
    laya_comparison comparison;
    uint64_t done, total; /* steps of progress */
} laya_benchmark_run;

/* Errors: MEMORY. */
laya_status laya_benchmark_report(const laya_benchmark_run *run, laya_report **report, laya_error *error);

#endif
