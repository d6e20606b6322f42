/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/comparison.h"

#include "base/clock.h"
#include "base/error.h"
#include "gate/sampler.h"
#include "model/engine.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define DISCARDED 0.15 /* part of a block with power that is not used: 3 s of 20 s */
#define SLICE_MS 50    /* of a rest, until the interrupt is asked again */

static uint64_t block_steps(const laya_benchmark_options *options)
{
    return (uint64_t)options->block_warmups + options->block_calls;
}

static size_t count_blocks(const laya_benchmark_options *options, size_t candidates)
{
    return 2 * (size_t)options->cycles * candidates;
}

uint64_t laya_comparison_steps(const laya_benchmark_options *options, size_t candidates)
{
    return count_blocks(options, candidates) * block_steps(options);
}

static void report_progress(const laya_comparison *c, uint64_t steps)
{
    const laya_progress *progress = &c->options->progress;
    if (progress->report) progress->report(progress->user, c->done + steps, c->total);
}

/* ------------------------------------------------------------------ blocks */

static laya_status rest(const laya_comparison *c, double seconds, laya_error *error)
{
    double end = laya_seconds() + seconds, left = seconds;
    while (left > 0) {
        LAYA_TRY(laya_check_interrupt(&c->options->interrupt, error));
        poll(NULL, 0, left * 1000 < SLICE_MS ? (int)(left * 1000) + 1 : SLICE_MS);
        left = end - laya_seconds();
    }
    return LAYA_OK;
}

static laya_status call(laya_comparison *c, laya_block *block, bool keep, laya_error *error)
{
    double seconds;
    LAYA_TRY(laya_check_interrupt(&c->options->interrupt, error));
    double start = laya_seconds();
    LAYA_TRY(laya_candidate_call(c->candidates[block->candidate], c->workload, &seconds, error));
    if (!keep) return LAYA_OK;
    if (block->series.count == 0) block->from = start;
    block->to = laya_seconds();
    return laya_series_add(&block->series, seconds, error);
}

static laya_status run_counted_block(laya_comparison *c, laya_block *block, laya_error *error)
{
    uint64_t steps = block_steps(c->options);
    for (uint64_t at = 0; at < steps; at++) {
        LAYA_TRY(call(c, block, at >= c->options->block_warmups, error));
        report_progress(c, at + 1);
    }
    return LAYA_OK;
}

/* A block that lasts: power is sampled some times a second only. At least one call is kept. */
static laya_status run_timed_block(laya_comparison *c, laya_block *block, laya_error *error)
{
    const laya_benchmark_options *options = c->options;
    block->idle_from = laya_seconds();
    LAYA_TRY(rest(c, options->idle_seconds, error));
    block->idle_to = laya_seconds();
    double part = 0;
    while (part < 1 || block->series.count == 0) {
        LAYA_TRY(call(c, block, part >= DISCARDED, error));
        part = (laya_seconds() - block->idle_to) / options->block_seconds;
        report_progress(c, (uint64_t)((part < 1 ? part : 1) * (double)block_steps(options)));
    }
    return LAYA_OK;
}

static laya_status run_blocks(laya_comparison *c, laya_error *error)
{
    size_t blocks = count_blocks(c->options, c->count);
    for (size_t at = 0; at < blocks; at++) {
        size_t pair = at / c->count, place = at % c->count;
        laya_block *block = &c->blocks[c->block_count++];
        *block = (laya_block){.candidate = pair % 2 == 0 ? place : c->count - 1 - place, .pair = pair};
        laya_series_init(&block->series, &c->allocator);
        LAYA_TRY((c->options->power ? run_timed_block : run_counted_block)(c, block, error));
        c->done += block_steps(c->options);
    }
    return LAYA_OK;
}

/* Wait for so many more samples, as long as a gap between two may last; without them the samples are rejected. */
static laya_status await_samples(const laya_comparison *c, const laya_sampler *sampler, size_t more,
                                 laya_error *error)
{
    size_t wanted = laya_sampler_count(sampler) + more;
    double end = laya_seconds() + laya_power_max_gap(c->options->power_interval);
    while (laya_sampler_count(sampler) < wanted && laya_seconds() < end) LAYA_TRY(rest(c, SLICE_MS * 1e-3, error));
    return LAYA_OK;
}

/* With samples that begin before the first rest and end after the last block: two more, as one may have been taken just
   before. */
static laya_status run_with_power(laya_comparison *c, laya_error *error)
{
    const laya_benchmark_options *options = c->options;
    laya_sampler *sampler;
    LAYA_TRY(laya_sampler_open(options->power, options->power_interval, &c->allocator, &sampler, error));
    laya_status status = await_samples(c, sampler, 1, error);
    if (status == LAYA_OK) status = run_blocks(c, error);
    if (status == LAYA_OK) status = await_samples(c, sampler, 2, error);
    if (status == LAYA_OK) status = laya_sampler_stop(sampler, error);
    if (status == LAYA_OK) {
        const laya_power_sample *samples = laya_sampler_samples(sampler, &c->samples);
        status = laya_comparison_energy(c, samples, c->samples, error);
    }
    laya_sampler_close(sampler);
    return status;
}

laya_status laya_comparison_run(laya_comparison *c, laya_error *error)
{
    size_t blocks = count_blocks(c->options, c->count);
    c->blocks = laya_alloc_zero(&c->allocator, blocks, sizeof *c->blocks);
    if (!c->blocks) return laya_fail_memory(error, blocks * sizeof *c->blocks);
    return c->options->power ? run_with_power(c, error) : run_blocks(c, error);
}

void laya_comparison_close(laya_comparison *c)
{
    for (size_t at = 0; at < c->block_count; at++) laya_series_close(&c->blocks[at].series);
    laya_release(&c->allocator, c->blocks);
    laya_release(&c->allocator, c->energies);
    c->blocks = NULL;
    c->energies = NULL;
    c->block_count = 0;
}

/* ------------------------------------------------------------------ energy */

/* Joules of every block and of every rest; INPUT where a sample is rejected. */
static laya_status integrate(laya_comparison *c, const laya_power_sample *samples, size_t count, laya_error *error)
{
    double interval = c->options->power_interval, idle_joules = 0, idle_seconds = 0;
    for (size_t at = 0; at < c->block_count; at++) {
        laya_block *block = &c->blocks[at];
        double joules;
        LAYA_TRY(laya_power_integrate(samples, count, interval, block->idle_from, block->idle_to, &joules, error));
        idle_joules += joules;
        idle_seconds += block->idle_to - block->idle_from;
        LAYA_TRY(laya_power_integrate(samples, count, interval, block->from, block->to, &block->joules, error));
    }
    c->idle_watts = idle_joules / idle_seconds;
    return LAYA_OK;
}

static laya_energy energy_of(const laya_comparison *c, size_t candidate)
{
    double joules = 0, window = 0, busy = 0;
    laya_energy energy = {0};
    for (size_t at = 0; at < c->block_count; at++) {
        const laya_block *block = &c->blocks[at];
        if (block->candidate != candidate) continue;
        joules += block->joules;
        window += block->to - block->from;
        energy.decisions += block->series.count;
        for (size_t i = 0; i < block->series.count; i++) busy += block->series.seconds[i];
    }
    energy.seconds = busy / (double)energy.decisions;
    energy.watts = joules / window;
    energy.gross = joules / (double)energy.decisions;
    energy.net = (joules - c->idle_watts * window) / (double)energy.decisions;
    return energy;
}

laya_status laya_comparison_energy(laya_comparison *c, const laya_power_sample *samples, size_t count,
                                   laya_error *error)
{
    laya_error reason;
    if (integrate(c, samples, count, &reason) != LAYA_OK) {
        snprintf(c->rejected, sizeof c->rejected, "%s", reason.message);
        return LAYA_OK;
    }
    c->energies = laya_alloc(&c->allocator, c->count, sizeof *c->energies);
    if (!c->energies) return laya_fail_memory(error, c->count * sizeof *c->energies);
    for (size_t at = 0; at < c->count; at++) c->energies[at] = energy_of(c, at);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ ratios */

static laya_status block_median(const laya_block *block, const laya_allocator *allocator, double *median,
                                laya_error *error)
{
    size_t count = block->series.count;
    double *copy = laya_alloc(allocator, count, sizeof *copy);
    if (!copy) return laya_fail_memory(error, count * sizeof *copy);
    memcpy(copy, block->series.seconds, count * sizeof *copy);
    *median = laya_summarize(copy, count).median;
    laya_release(allocator, copy);
    return LAYA_OK;
}

laya_status laya_comparison_ratio(const laya_comparison *c, size_t candidate, laya_ratio *ratio, laya_error *error)
{
    size_t pairs = 2 * (size_t)c->options->cycles;
    double *medians = laya_alloc_zero(&c->allocator, 2 * pairs, sizeof *medians);
    if (!medians) return laya_fail_memory(error, 2 * pairs * sizeof *medians);
    laya_status status = LAYA_OK;
    for (size_t at = 0; at < c->block_count && status == LAYA_OK; at++) {
        const laya_block *block = &c->blocks[at];
        if (block->candidate == candidate) status = block_median(block, &c->allocator, &medians[block->pair], error);
        if (block->candidate == 0 && status == LAYA_OK)
            status = block_median(block, &c->allocator, &medians[pairs + block->pair], error);
    }
    if (status == LAYA_OK) *ratio = laya_paired_ratio(medians, medians + pairs, pairs);
    laya_release(&c->allocator, medians);
    return status;
}
