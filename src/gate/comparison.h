/* SPDX-License-Identifier: Apache-2.0 */
/* Alternating blocks of calls, and the energy of each. */
#ifndef LAYA_GATE_COMPARISON_H
#define LAYA_GATE_COMPARISON_H

#include "gate/power.h"
#include "gate/statistics.h"
#include "gate/workload.h"
#include "laya/gate.h"

/* Calls of one candidate in a row. */
typedef struct laya_block {
    size_t candidate;
    size_t pair; /* blocks of all candidates with the same number stand for each other: half a cycle */
    laya_series series;
    double from, to;           /* monotonic seconds: from the first kept call's start to the last one's end */
    double idle_from, idle_to; /* before the block; equal: no power is measured */
    double joules;             /* of from ... to */
} laya_block;

/* Means over the kept calls of a candidate. */
typedef struct laya_energy {
    size_t decisions;
    double seconds; /* of a decision */
    double watts;   /* while deciding */
    double gross;   /* joules of a decision */
    double net;     /* the same less what idling takes in that time */
} laya_energy;

typedef struct laya_comparison {
    const laya_benchmark_options *options;
    const laya_workload *workload;
    laya_candidate *const *candidates; /* [count]; needed by laya_comparison_run alone */
    size_t count;
    laya_allocator allocator;
    /* results */
    laya_block *blocks; /* [block_count] in the order of time */
    size_t block_count;
    size_t samples;
    double idle_watts;
    laya_energy *energies;            /* [count]; NULL: not measured */
    char rejected[LAYA_MESSAGE_SIZE]; /* why power samples were; "" */
    uint64_t done;                    /* progress: steps before and of this comparison */
    uint64_t total;
} laya_comparison;

/* Steps of progress. */
uint64_t laya_comparison_steps(const laya_benchmark_options *options, size_t candidates);

/*
 * Run cycles: each has all candidates in order, then in reverse order. Without power a block is block_warmups and
 * block_calls calls; with power it lasts block_seconds, calls that begin in the first 15 % are dropped, and idle_seconds
 * of rest come before it. Errors: those of the sources, STOPPED, MEMORY, SYSTEM, IO (the sampler).
 */
laya_status laya_comparison_run(laya_comparison *comparison, laya_error *error);
void laya_comparison_close(laya_comparison *comparison);

/*
 * Fill in joules of the blocks, idle power and energies from samples. Samples that the rules reject set `rejected`, and
 * nothing else. Errors: MEMORY.
 */
laya_status laya_comparison_energy(laya_comparison *comparison, const laya_power_sample *samples, size_t count,
                                   laya_error *error);

/* Time of a candidate over that of the first, paired by block medians. Errors: MEMORY. */
laya_status laya_comparison_ratio(const laya_comparison *comparison, size_t candidate, laya_ratio *ratio,
                                  laya_error *error);

#endif
