/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of a benchmark; docs/GATES.md lists the fields. */
#include "base/error.h"
#include "gate/benchmark.h"
#include "gate/sampler.h"

#include <math.h>
#include <string.h>

#define IDENTITY_TOLERANCE 0.01 /* of the energy ratio: calls fill a block but for the time between two of them */

static void member_milliseconds(laya_json_writer *w, const char *name, double seconds)
{
    laya_json_member_double(w, name, seconds * 1000);
}

static void write_raw(laya_json_writer *w, const laya_series *series)
{
    laya_json_name(w, "seconds");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < series->count; at++) laya_json_put_double(w, series->seconds[at]);
    laya_json_end(w, ']');
}

/* Members "calls", "p50_ms", ... from values in any order, which are sorted. */
static void write_summary(laya_json_writer *w, double *values, size_t count)
{
    laya_json_member_uint(w, "calls", count);
    if (count == 0) return;
    laya_summary summary = laya_summarize(values, count);
    member_milliseconds(w, "p50_ms", summary.median);
    member_milliseconds(w, "p95_ms", summary.p95);
    member_milliseconds(w, "mean_ms", summary.mean);
    member_milliseconds(w, "least_ms", summary.least);
    member_milliseconds(w, "largest_ms", summary.largest);
}

static laya_status write_series(laya_json_writer *w, const laya_series *series, laya_error *error)
{
    double *copy = laya_alloc(&series->allocator, series->count ? series->count : 1, sizeof *copy);
    if (!copy) return laya_fail_memory(error, series->count * sizeof *copy);
    if (series->count) memcpy(copy, series->seconds, series->count * sizeof *copy);
    write_summary(w, copy, series->count);
    laya_release(&series->allocator, copy);
    write_raw(w, series);
    return LAYA_OK;
}

static const char *class_of(const laya_benchmark_run *run, const laya_contender *contender)
{
    bool coreml = run->options->bundle->backend == LAYA_BACKEND_COREML;
    return contender->subject.bundle && coreml ? "timed through Core ML on this machine" : "timed on this CPU";
}

/* ------------------------------------------------------------------ one subject */

static void write_subject(laya_json_writer *w, const laya_benchmark_run *run, const laya_contender *contender)
{
    laya_json_member_path(w, "name", contender->candidate.name);
    laya_json_member_string(w, "class", class_of(run, contender));
    laya_json_member_string(w, "executor", contender->subject.executor);
    if (contender->subject.bundle) {
        laya_write_package(w, &contender->subject.package);
    } else {
        laya_json_name(w, "package");
        laya_json_put_raw(w, "null");
    }
    laya_json_member_double(w, "load_seconds", contender->subject.load_seconds);
    laya_json_member_bool(w, "stable", contender->candidate.stable);
}

static void write_request(laya_json_writer *w, const laya_benchmark_run *run)
{
    const laya_workload *workload = &run->workload;
    laya_json_name(w, "request");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "kind", workload->input.name);
    laya_json_member_string(w, "input_sha256", workload->sha256);
    laya_json_member_uint(w, "questions", workload->input.count);
    laya_json_member_uint(w, "tokens", run->tokens);
    laya_json_member_uint(w, "state_tokens", run->state_tokens);
    laya_json_member_uint(w, "state_tokens_dropped", run->state_tokens_dropped);
    laya_json_end(w, '}');
}

static laya_status write_body(laya_json_writer *w, const laya_benchmark_run *run, laya_error *error)
{
    laya_json_name(w, "body");
    if (run->body.count == 0) {
        laya_json_put_raw(w, "\"" LAYA_NOT_MEASURED "\"");
        return LAYA_OK;
    }
    laya_json_begin(w, '{');
    laya_json_member_string(w, "scope", "the executor alone, synthetic embeddings; not an end-to-end time");
    laya_json_member_uint(w, "warmups", run->options->body_warmups);
    laya_json_member_bool(w, "stable", run->body_stable);
    LAYA_TRY(write_series(w, &run->body, error));
    laya_json_end(w, '}');
    return LAYA_OK;
}

static laya_status write_complete(laya_json_writer *w, const laya_benchmark_run *run, laya_error *error)
{
    laya_json_name(w, "complete");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "scope", "from the text of the request to the formatted answer, without loading");
    laya_json_member_string(w, "evidence", "a serial screen, no paired comparison");
    laya_json_member_uint(w, "warmups", run->options->warmups);
    LAYA_TRY(write_series(w, &run->complete, error));
    laya_json_end(w, '}');
    return LAYA_OK;
}

/* ------------------------------------------------------------------ comparison */

/* All kept calls of a candidate, over its blocks. */
static laya_status write_pooled(laya_json_writer *w, const laya_comparison *c, size_t candidate, laya_error *error)
{
    size_t count = 0, used = 0;
    for (size_t at = 0; at < c->block_count; at++)
        count += c->blocks[at].candidate == candidate ? c->blocks[at].series.count : 0;
    double *values = laya_alloc(&c->allocator, count ? count : 1, sizeof *values);
    if (!values) return laya_fail_memory(error, count * sizeof *values);
    for (size_t at = 0; at < c->block_count; at++) {
        const laya_series *series = &c->blocks[at].series;
        if (c->blocks[at].candidate != candidate || series->count == 0) continue;
        memcpy(values + used, series->seconds, series->count * sizeof *values);
        used += series->count;
    }
    write_summary(w, values, count);
    laya_release(&c->allocator, values);
    return LAYA_OK;
}

static void write_ratio(laya_json_writer *w, const laya_ratio *ratio)
{
    laya_json_name(w, "time_ratio");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "of", "this subject's time over the first one's, by the medians of paired blocks");
    laya_json_member_double(w, "estimate", ratio->estimate);
    laya_json_member_double(w, "low_95", ratio->low);
    laya_json_member_double(w, "high_95", ratio->high);
    laya_json_member_uint(w, "pairs", ratio->pairs);
    laya_json_end(w, '}');
}

static void write_energy(laya_json_writer *w, const laya_comparison *c, size_t candidate)
{
    laya_json_name(w, "energy");
    if (!c->energies) {
        laya_json_put_raw(w, "\"" LAYA_NOT_MEASURED "\"");
        return;
    }
    const laya_energy *first = &c->energies[0], *e = &c->energies[candidate];
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "decisions", e->decisions);
    member_milliseconds(w, "mean_ms", e->seconds);
    laya_json_member_double(w, "watts", e->watts);
    laya_json_member_double(w, "gross_joules", e->gross);
    laya_json_member_double(w, "net_joules", e->net);
    if (candidate > 0) {
        double ratio = e->gross / first->gross;
        double product = e->seconds / first->seconds * (e->watts / first->watts);
        laya_json_member_double(w, "gross_ratio", ratio);
        laya_json_member_double(w, "net_ratio", e->net / first->net);
        laya_json_member_double(w, "time_ratio", e->seconds / first->seconds);
        laya_json_member_double(w, "power_ratio", e->watts / first->watts);
        laya_json_member_double(w, "time_times_power", product);
        laya_json_member_bool(w, "identity_holds", fabs(product / ratio - 1) <= IDENTITY_TOLERANCE);
    }
    laya_json_end(w, '}');
}

static laya_status write_blocks(laya_json_writer *w, const laya_comparison *c, laya_error *error)
{
    laya_json_name(w, "blocks");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < c->block_count; at++) {
        const laya_block *block = &c->blocks[at];
        laya_json_begin(w, '{');
        laya_json_member_uint(w, "subject", block->candidate);
        laya_json_member_uint(w, "pair", block->pair);
        if (c->energies) laya_json_member_double(w, "joules", block->joules);
        LAYA_TRY(write_series(w, &block->series, error));
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
    return LAYA_OK;
}

static laya_status write_comparison(laya_json_writer *w, const laya_benchmark_run *run, laya_error *error)
{
    const laya_comparison *c = &run->comparison;
    laya_json_name(w, "comparison");
    if (c->block_count == 0) {
        laya_json_put_raw(w, "\"" LAYA_NOT_MEASURED "\"");
        return LAYA_OK;
    }
    laya_json_begin(w, '{');
    laya_json_member_string(w, "order", "in each cycle the subjects in order, then in reverse order");
    laya_json_member_string(w, "interval", "mean of the log ratios -+ Student's t, 95 %");
    laya_json_member_uint(w, "cycles", run->options->cycles);
    laya_json_member_uint(w, "warmups", run->options->power ? 0 : run->options->block_warmups);
    laya_json_name(w, "subjects");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < run->count; at++) {
        laya_ratio ratio;
        laya_json_begin(w, '{');
        write_subject(w, run, &run->contenders[at]);
        LAYA_TRY(write_pooled(w, c, at, error));
        if (at > 0) {
            LAYA_TRY(laya_comparison_ratio(c, at, &ratio, error));
            write_ratio(w, &ratio);
        }
        write_energy(w, c, at);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
    LAYA_TRY(write_blocks(w, c, error));
    laya_json_end(w, '}');
    return LAYA_OK;
}

static void write_power(laya_json_writer *w, const laya_benchmark_run *run)
{
    const laya_benchmark_options *options = run->options;
    const laya_comparison *c = &run->comparison;
    laya_json_name(w, "power");
    if (!options->power) {
        laya_json_put_raw(w, "\"" LAYA_NOT_MEASURED "\"");
        return;
    }
    bool counters = strcmp(options->power, LAYA_POWERCAP) == 0;
    laya_json_begin(w, '{');
    laya_json_member_string(w, "source", counters ? "Linux powercap: processor packages only" : "a command");
    laya_json_member_path(w, "command", options->power);
    laya_json_member_string(w, "status", c->energies ? "accepted" : "rejected");
    if (!c->energies) laya_json_member_string(w, "reason", c->rejected);
    laya_json_member_double(w, "interval_seconds", options->power_interval);
    laya_json_member_double(w, "block_seconds", options->block_seconds);
    laya_json_member_double(w, "idle_seconds", options->idle_seconds);
    laya_json_member_uint(w, "samples", c->samples);
    if (c->energies) laya_json_member_double(w, "idle_watts", c->idle_watts);
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ the document */

static bool all_stable(const laya_benchmark_run *run)
{
    bool stable = run->body_stable;
    for (size_t at = 0; at < run->count; at++) stable = stable && run->contenders[at].candidate.stable;
    return stable;
}

static laya_status write_document(laya_json_writer *w, const laya_benchmark_run *run, bool stable, laya_error *error)
{
    const laya_bundle_options *bundle = run->options->bundle;
    laya_json_begin(w, '{');
    laya_json_member_string(w, "format", LAYA_BENCHMARK_FORMAT);
    laya_json_member_uint(w, "version", 1);
    laya_json_member_bool(w, "outputs_stable", stable);
    write_subject(w, run, &run->contenders[0]);
    laya_json_name(w, "threads");
    if (bundle->threads)
        laya_json_put_uint(w, bundle->threads);
    else
        laya_json_put_raw(w, "\"one per CPU\"");
    laya_json_member_string(w, "load_scope",
                            "verification, reading and preparing; caches of the system as they were");
    write_request(w, run);
    LAYA_TRY(write_body(w, run, error));
    LAYA_TRY(write_complete(w, run, error));
    LAYA_TRY(write_comparison(w, run, error));
    write_power(w, run);
    laya_json_member_string(w, "placement", LAYA_NOT_MEASURED);
    laya_write_origin(w);
    laya_json_end(w, '}');
    return LAYA_OK;
}

laya_status laya_benchmark_report(const laya_benchmark_run *run, laya_report **report, laya_error *error)
{
    laya_report *made;
    *report = NULL;
    LAYA_TRY(laya_report_open(&run->allocator, &made, error));
    made->passed = all_stable(run);
    laya_status status = write_document(&made->writer, run, made->passed, error);
    if (status == LAYA_OK) status = laya_report_finish(made, error);
    if (status == LAYA_OK)
        *report = made;
    else
        laya_report_close(made);
    return status;
}
