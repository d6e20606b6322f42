/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/benchmark.h"

#include "base/clock.h"
#include "base/error.h"
#include "gate/body_timing.h"
#include "gate/sampler.h"
#include "model/engine.h"
#include "model/model.h"

#include <string.h>

void laya_benchmark_options_init(laya_benchmark_options *options)
{
    *options = (laya_benchmark_options){.size = sizeof *options,
                                        .body_warmups = 5,
                                        .body_calls = 30,
                                        .warmups = 10,
                                        .calls = 50,
                                        .cycles = 3,
                                        .block_warmups = 2,
                                        .block_calls = 10,
                                        .power_interval = 0.5,
                                        .block_seconds = 20,
                                        .idle_seconds = 10};
}

static void step(laya_benchmark_run *run)
{
    const laya_progress *progress = &run->options->progress;
    run->done++;
    if (progress->report) progress->report(progress->user, run->done, run->total);
}

/* ------------------------------------------------------------------ contenders */

/* The engine on the checkpoint of the package, opened anew so that its loading is timed too. */
static laya_status open_native(laya_benchmark_run *run, laya_contender *contender, laya_error *error)
{
    const laya_model *shared = run->contenders[0].subject.model;
    laya_model_options options;
    laya_model_info info;
    laya_status whole = laya_check_weights(&shared->weights, error);
    if (whole != LAYA_OK) laya_error_prefix(error, LAYA_NATIVE ": ");
    LAYA_TRY(whole);
    laya_model_get_info(shared, &info);
    laya_model_options_init(&options);
    options.allocator = run->allocator;
    options.lang_temperatures = run->options->bundle->lang_temperatures;
    double start = laya_seconds();
    LAYA_TRY(laya_model_open(info.directory, &options, &contender->model, error));
    double seconds = laya_seconds() - start;
    LAYA_TRY(laya_subject_open_native(&contender->subject, contender->model, run->options->bundle->threads,
                                      &run->options->interrupt, error));
    contender->subject.load_seconds += seconds;
    return LAYA_OK;
}

/* A package of other weights answers another question. */
static laya_status check_weights(const laya_benchmark_run *run, const laya_contender *contender, const char *path,
                                 laya_error *error)
{
    const char *expected = run->contenders[0].subject.package.weights_sha256;
    if (!contender->subject.bundle || strcmp(contender->subject.package.weights_sha256, expected) == 0)
        return LAYA_OK;
    return laya_fail(
        error, LAYA_ERROR_FORMAT,
        "%s: expected a package of the weights with SHA-256 %s, found %s; compare packages of one checkpoint", path,
        expected, contender->subject.package.weights_sha256);
}

static laya_status open_contender(laya_benchmark_run *run, size_t at, const char *path, laya_error *error)
{
    laya_contender *contender = &run->contenders[at];
    if (at > 0 && strcmp(path, LAYA_NATIVE) == 0)
        LAYA_TRY(open_native(run, contender, error));
    else
        LAYA_TRY(laya_subject_open(&contender->subject, path, run->options->bundle, run->options->length,
                                   &run->options->interrupt, error));
    LAYA_TRY(check_weights(run, contender, path, error));
    const laya_source source = laya_subject_source(&contender->subject);
    laya_candidate_init(&contender->candidate, path, &source, &run->allocator);
    contender->opened = true;
    return LAYA_OK;
}

static laya_status open_contenders(laya_benchmark_run *run, const char *package, laya_error *error)
{
    const laya_benchmark_options *options = run->options;
    run->contenders = laya_alloc_zero(&run->allocator, options->compare_count + 1, sizeof *run->contenders);
    if (!run->contenders) return laya_fail_memory(error, (options->compare_count + 1) * sizeof *run->contenders);
    run->count = options->compare_count + 1;
    for (size_t at = 0; at < run->count; at++)
        LAYA_TRY(open_contender(run, at, at ? options->compare[at - 1] : package, error));
    return LAYA_OK;
}

static void close_contenders(laya_benchmark_run *run)
{
    for (size_t at = 0; at < run->count; at++) {
        laya_contender *contender = &run->contenders[at];
        if (contender->opened) laya_candidate_close(&contender->candidate);
        laya_subject_close(&contender->subject);
        laya_model_close(contender->model);
    }
    laya_release(&run->allocator, run->contenders);
}

/* ------------------------------------------------------------------ body and complete path */

static laya_status time_body(laya_benchmark_run *run, laya_error *error)
{
    const laya_benchmark_options *options = run->options;
    laya_body_outputs outputs = {.allocator = run->allocator};
    laya_status status = LAYA_OK;
    uint64_t calls = options->body_calls ? (uint64_t)options->body_warmups + options->body_calls : 0;
    run->body_stable = true;
    for (uint64_t at = 0; at < calls && status == LAYA_OK; at++) {
        double seconds;
        status = laya_check_interrupt(&options->interrupt, error);
        if (status == LAYA_OK)
            status = laya_body_time(&run->contenders[0].subject, &outputs, &seconds, &run->body_stable, error);
        if (status == LAYA_OK && at >= options->body_warmups) status = laya_series_add(&run->body, seconds, error);
        step(run);
    }
    laya_release(&outputs.allocator, outputs.values);
    return status;
}

/* The request as it really is: tokens, and how much of the text did not fit. */
static laya_status count_tokens(laya_benchmark_run *run, laya_error *error)
{
    const laya_buffer *text = &run->contenders[0].candidate.published;
    laya_json doc;
    LAYA_TRY(laya_json_parse(&doc, text->data, text->size, &run->allocator, error));
    laya_json_value usage = laya_json_get(laya_json_root(&doc), "usage");
    bool read = laya_json_to_uint32(laya_json_get(usage, "input_tokens"), &run->tokens) &&
                laya_json_to_uint32(laya_json_get(usage, "state_tokens"), &run->state_tokens) &&
                laya_json_to_uint32(laya_json_get(usage, "state_tokens_dropped"), &run->state_tokens_dropped);
    laya_json_close(&doc);
    return read ? LAYA_OK : laya_fail(error, LAYA_ERROR_FORMAT, "the answer has no token counts");
}

static laya_status time_complete(laya_benchmark_run *run, laya_error *error)
{
    const laya_benchmark_options *options = run->options;
    uint64_t calls = (uint64_t)options->warmups + options->calls;
    for (uint64_t at = 0; at < calls; at++) {
        double seconds;
        LAYA_TRY(laya_check_interrupt(&options->interrupt, error));
        LAYA_TRY(laya_candidate_call(&run->contenders[0].candidate, &run->workload, &seconds, error));
        if (at >= options->warmups) LAYA_TRY(laya_series_add(&run->complete, seconds, error));
        step(run);
    }
    return count_tokens(run, error);
}

/* ------------------------------------------------------------------ all of it */

static bool has_blocks(const laya_benchmark_options *options)
{
    return options->compare_count > 0 || options->power;
}

static laya_status compare(laya_benchmark_run *run, laya_error *error)
{
    laya_comparison *c = &run->comparison;
    laya_candidate **candidates = laya_alloc(&run->allocator, run->count, sizeof *candidates);
    if (!candidates) return laya_fail_memory(error, run->count * sizeof *candidates);
    for (size_t at = 0; at < run->count; at++) candidates[at] = &run->contenders[at].candidate;
    *c = (laya_comparison){.options = run->options,
                           .workload = &run->workload,
                           .candidates = candidates,
                           .count = run->count,
                           .allocator = run->allocator,
                           .done = run->done,
                           .total = run->total};
    laya_status status = laya_comparison_run(c, error);
    c->candidates = NULL;
    laya_release(&run->allocator, candidates);
    return status;
}

static laya_status measure(laya_benchmark_run *run, const char *package, laya_error *error)
{
    const laya_benchmark_options *options = run->options;
    LAYA_TRY(open_contenders(run, package, error));
    uint32_t fill = run->contenders[0].subject.package.length;
    if (fill > LAYA_LONG_TOKENS) fill = LAYA_LONG_TOKENS;
    LAYA_TRY(laya_workload_open(&run->workload, options->long_request ? fill : 0, &run->allocator, error));
    run->workload.options.flags = LAYA_PREDICT_STATE_TOKEN_COUNTS;
    run->total = (uint64_t)options->body_warmups + options->body_calls + options->warmups + options->calls;
    if (has_blocks(options)) run->total += laya_comparison_steps(options, run->count);
    LAYA_TRY(time_body(run, error));
    LAYA_TRY(time_complete(run, error));
    return has_blocks(options) ? compare(run, error) : LAYA_OK;
}

/* Counters that cannot be read are reported before anything is timed. */
static laya_status check_counters(const laya_benchmark_options *options, laya_error *error)
{
    laya_powercap powercap;
    if (!options->power || strcmp(options->power, LAYA_POWERCAP) != 0) return LAYA_OK;
    LAYA_TRY(laya_powercap_open(&powercap, LAYA_POWERCAP_ROOT, error));
    laya_powercap_close(&powercap);
    return LAYA_OK;
}

static laya_status benchmark(const char *package, const laya_benchmark_options *options, laya_report **report,
                             laya_error *error)
{
    laya_benchmark_run run = {.options = options,
                              .allocator = laya_allocator_or_default(&options->bundle->allocator)};
    LAYA_TRY(laya_report_check_path(options->output, &run.allocator, error));
    LAYA_TRY(check_counters(options, error));
    laya_series_init(&run.body, &run.allocator);
    laya_series_init(&run.complete, &run.allocator);
    laya_status status = measure(&run, package, error);
    if (status == LAYA_OK) status = laya_benchmark_report(&run, report, error);
    if (status == LAYA_OK)
        status = laya_report_save(options->output, (*report)->json.data, (*report)->json.size, &run.allocator, error);
    laya_comparison_close(&run.comparison);
    laya_series_close(&run.body);
    laya_series_close(&run.complete);
    laya_workload_close(&run.workload);
    close_contenders(&run);
    return status;
}

/* ------------------------------------------------------------------ the public call */

static laya_status check_options(const laya_benchmark_options *options, laya_error *error)
{
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_benchmark: options.size is %zu, expected %zu; call laya_benchmark_options_init first",
                         options->size, sizeof *options);
    if (options->calls == 0) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_benchmark: calls must be at least 1");
    if (options->compare_count > 0 && !options->compare)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_benchmark: compare must not be NULL");
    if (has_blocks(options) && (options->cycles == 0 || options->block_calls == 0))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_benchmark: cycles and block_calls must be at least 1");
    if (options->power && !(options->power_interval > 0 && options->block_seconds > 0 && options->idle_seconds > 0))
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_benchmark: power_interval, block_seconds and idle_seconds must be positive");
    return LAYA_OK;
}

laya_status laya_benchmark(const char *package, const laya_benchmark_options *options, laya_report **report,
                           laya_error *error)
{
    laya_bundle_options bundle;
    laya_error_clear(error);
    if (report) *report = NULL;
    if (!package || !options || !report)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_benchmark: %s must not be NULL",
                         !package   ? "package"
                         : !options ? "options"
                                    : "report");
    LAYA_TRY(check_options(options, error));
    laya_benchmark_options completed = *options;
    laya_bundle_options_init(&bundle);
    if (!completed.bundle) completed.bundle = &bundle;
    laya_status status = benchmark(package, &completed, report, error);
    if (status == LAYA_OK) return LAYA_OK;
    laya_report_close(*report);
    *report = NULL;
    return status;
}
