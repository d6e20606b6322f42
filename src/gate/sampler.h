/* SPDX-License-Identifier: Apache-2.0 */
/* Where power samples come from: a command that prints watts, or Linux's energy counters. */
#ifndef LAYA_GATE_SAMPLER_H
#define LAYA_GATE_SAMPLER_H

#include "base/memory.h"
#include "gate/power.h"

/* ------------------------------------------------------------------ energy counters */

#define LAYA_POWERCAP "powercap" /* instead of a command */
#define LAYA_POWERCAP_ROOT "/sys/class/powercap"
#define LAYA_POWERCAP_MAX 16u /* packages */

/* One counter per processor package: ROOT/intel-rapl:N/energy_uj, which starts again after max_energy_range_uj. */
typedef struct laya_powercap {
    unsigned count;
    int counters[LAYA_POWERCAP_MAX];                           /* descriptors */
    double ranges[LAYA_POWERCAP_MAX], last[LAYA_POWERCAP_MAX]; /* microjoules */
} laya_powercap;

/* Errors: IO (no counter, or one that cannot be read: most systems reserve them for root). */
laya_status laya_powercap_open(laya_powercap *powercap, const char *root, laya_error *error);
/* Joules of all packages since the last call, or since open. Errors: IO. */
laya_status laya_powercap_read(laya_powercap *powercap, double *joules, laya_error *error);
void laya_powercap_close(laya_powercap *powercap);

/* ------------------------------------------------------------------ sampling in a thread */

typedef struct laya_sampler laya_sampler;

/*
 * Start sampling.
 *
 * command   run by /bin/sh; prints watts, one number a line, whenever it has one. A line that is no number becomes a
 *           sample that is not finite, which laya_power_integrate rejects. LAYA_POWERCAP: the counters; each sample is
 *           the mean power since the one before
 * interval  seconds between samples: how often the counters are read. A command keeps its own time
 *
 * Errors: SYSTEM (no thread, no process), IO (counters), MEMORY.
 */
laya_status laya_sampler_open(const char *command, double interval, const laya_allocator *allocator,
                              laya_sampler **sampler, laya_error *error);
/* Samples so far; may be called while it runs. */
size_t laya_sampler_count(const laya_sampler *sampler);
/* End the command and the thread; the samples are complete then. Nothing happens the second time. Errors: MEMORY, IO of
   the sampling itself. */
laya_status laya_sampler_stop(laya_sampler *sampler, laya_error *error);
/* After laya_sampler_stop; valid until laya_sampler_close. */
const laya_power_sample *laya_sampler_samples(const laya_sampler *sampler, size_t *count);
/* Stop, and release. NULL is allowed. */
void laya_sampler_close(laya_sampler *sampler);

#endif
