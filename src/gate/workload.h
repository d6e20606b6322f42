/* SPDX-License-Identifier: Apache-2.0 */
/* The requests that are timed. */
#ifndef LAYA_GATE_WORKLOAD_H
#define LAYA_GATE_WORKLOAD_H

#include "base/memory.h"
#include "gate/fixture.h"
#include "gate/subject.h"

#define LAYA_LONG_TOKENS 1024u /* of the long request, where the package takes as many */

typedef struct laya_workload {
    laya_fixture_case input; /* one statement to be judged */
    laya_predict_options options;
    char sha256[65]; /* of STATE "\n" QUESTIONS, the JSON texts */
    laya_buffer state;
} laya_workload;

/*
 * The short request, or one whose text is longer than `fill` tokens, so that its row is cut to exactly that many.
 *
 * fill  tokens; 0: the short request
 *
 * Errors: MEMORY, SYSTEM.
 */
laya_status laya_workload_open(laya_workload *workload, uint32_t fill, const laya_allocator *allocator,
                               laya_error *error);
void laya_workload_close(laya_workload *workload);

/* Something that answers the request, with what it published first. */
typedef struct laya_candidate {
    const char *name;
    laya_source source;
    laya_buffer published;
    bool stable; /* every answer was published the same */
} laya_candidate;

void laya_candidate_init(laya_candidate *candidate, const char *name, const laya_source *source,
                         const laya_allocator *allocator);
void laya_candidate_close(laya_candidate *candidate);
/* One request, from text to formatted answer. Errors: those of the source, MEMORY. */
laya_status laya_candidate_call(laya_candidate *candidate, const laya_workload *workload, double *seconds,
                                laya_error *error);

/* Times in the order of the calls. */
typedef struct laya_series {
    laya_allocator allocator;
    double *seconds;
    size_t count, capacity;
} laya_series;

void laya_series_init(laya_series *series, const laya_allocator *allocator);
laya_status laya_series_add(laya_series *series, double seconds, laya_error *error);
void laya_series_close(laya_series *series);

#endif
