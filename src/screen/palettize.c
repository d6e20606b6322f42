/* SPDX-License-Identifier: Apache-2.0 */
/* laya_palettize: options, then the bundle, and where the mode asks for it energies, a gate, bits for each weight. */
#include "laya/palette.h"

#include "base/error.h"
#include "base/staging.h"
#include "base/threads.h"
#include "palette/bundle.h"
#include "screen/energy.h"
#include "screen/gated.h"
#include "screen/stages.h"

#include <math.h>

#define GATE_REPEATS 2u /* the fewest that show whether answers are stable */

void laya_palettize_options_init(laya_palettize_options *options)
{
    *options = (laya_palettize_options){
        .size = sizeof *options, .mode = LAYA_PALETTE_KMEANS, .bits = 8, .group_size = 32};
}

/* ------------------------------------------------------------------ options */

static laya_status check_bits(const laya_palettize_options *options, laya_error *error)
{
    static const unsigned widths[] = {1, 2, 3, 4, 6, 8};
    if (options->mode == LAYA_PALETTE_UNIQUE || options->target_error > 0) return LAYA_OK;
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        if (options->bits == widths[at]) return LAYA_OK;
    }
    return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_palettize: bits: expected 1, 2, 3, 4, 6 or 8, found %lu",
                     (unsigned long)options->bits);
}

static laya_status check_target(const laya_palettize_options *options, laya_error *error)
{
    double target = options->target_error;
    if (!(target >= 0 && target < 1))
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_palettize: target_error: expected a probability below 1, or 0 for none, found %g",
                         target);
    if (target > 0 && options->mode == LAYA_PALETTE_UNIQUE)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_palettize: target_error: expected 0 with the mode unique, whose bits are its weights' "
                         "own, found %g",
                         target);
    return LAYA_OK;
}

/* Activations come from a fixture, a gate from a fixture or a reference. */
static laya_status check_questions(const laya_palettize_options *options, laya_error *error)
{
    if (options->mode == LAYA_PALETTE_WEIGHTED && !options->fixture)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_palettize: fixture: expected questions, whose activations the mode weighted measures, "
                         "found none");
    if (options->target_error > 0 && !options->fixture && !options->reference)
        return laya_fail(
            error, LAYA_ERROR_ARGUMENT,
            "laya_palettize: fixture: expected questions, or a reference, for the gate of a target_error, "
            "found none");
    return LAYA_OK;
}

static laya_status check_options(const laya_palettize_options *options, laya_error *error)
{
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_palettize: options.size is %zu, expected %zu; call laya_palettize_options_init first",
                         options->size, sizeof *options);
    if (!laya_palette_mode_name(options->mode))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_palettize: mode: %d is none of laya_palette_mode",
                         (int)options->mode);
    if (options->workers > LAYA_MAX_THREADS)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_palettize: workers: expected at most %u, found %u",
                         LAYA_MAX_THREADS, options->workers);
    LAYA_TRY(check_target(options, error));
    LAYA_TRY(check_bits(options, error));
    return check_questions(options, error);
}

/* ------------------------------------------------------------------ the bundle */

/* Make the bundle in `directory`, gate it, write the gate into its manifest. */
static laya_status make_gated(laya_palette_job *job, laya_stages *stages, laya_validate_options *validate,
                              const char *directory, laya_error *error)
{
    laya_gate_result result;
    if (job->target_error > 0) {
        job->progress = laya_stages_next(stages, 20);
        LAYA_TRY(laya_allocate_bits(job, validate, directory, &result, error));
    } else {
        job->progress = laya_stages_next(stages, 1);
        LAYA_TRY(laya_palette_bundle_make(job, directory, NULL, error));
        validate->progress = laya_stages_next(stages, 2);
        LAYA_TRY(laya_gate_run(directory, validate, &result, error));
    }
    laya_report_close(result.report);
    return laya_palette_bundle_gate(directory, &result.gate, &job->allocator, error);
}

static laya_status with_reference(laya_palette_job *job, laya_stages *stages, const laya_palettize_options *options,
                                  const char *directory, laya_error *error)
{
    laya_bundle_options bundle;
    laya_validate_options validate;
    laya_gate_reference reference;
    laya_bundle_options_init(&bundle);
    bundle.allocator = options->allocator;
    bundle.logger = options->logger;
    bundle.model_directory = options->model_directory;
    bundle.threads = options->workers;
    laya_validate_options_init(&validate);
    validate.bundle = &bundle;
    validate.reference = options->reference;
    validate.fixture = options->fixture;
    validate.repeats = GATE_REPEATS;
    validate.interrupt = options->interrupt;
    validate.progress = laya_stages_next(stages, 1);
    LAYA_TRY(laya_gate_reference_open(&reference, job->parent, &validate, error));
    validate.reference = reference.path;
    laya_status status = make_gated(job, stages, &validate, directory, error);
    laya_gate_reference_close(&reference);
    return status;
}

static laya_status with_energies(laya_palette_job *job, laya_stages *stages, const laya_palettize_options *options,
                                 const char *directory, laya_error *error)
{
    laya_energies *energies = NULL;
    laya_progress progress = laya_stages_next(stages, 1);
    if (options->mode == LAYA_PALETTE_WEIGHTED) {
        LAYA_TRY(laya_energies_measure(job->parent, options->model_directory, options->fixture, options->workers,
                                       &job->allocator, &progress, &options->interrupt, &energies, error));
        job->choice.user = energies;
        job->choice.energy = laya_energies_find;
        job->energy = laya_energies_facts(energies);
    }
    laya_status status = with_reference(job, stages, options, directory, error);
    laya_energies_close(energies);
    return status;
}

static laya_status fill(laya_palette_job *job, const laya_palettize_options *options, const char *directory,
                        laya_error *error)
{
    bool target = options->target_error > 0;
    if (!target && options->mode != LAYA_PALETTE_WEIGHTED)
        return laya_palette_bundle_make(job, directory, NULL, error);
    /* Energies, reference, then all candidates, or a bundle and its gate of two repeats. */
    laya_stages stages = {.to = options->progress, .total = 2 + (target ? 20 : 3)};
    laya_status status = with_energies(job, &stages, options, directory, error);
    if (status == LAYA_OK) laya_stages_end(&stages);
    return status;
}

laya_status laya_palettize(const char *package, const laya_palettize_options *options, const char *output,
                           laya_error *error)
{
    laya_palettize_options defaults;
    laya_staging staging;
    laya_error_clear(error);
    if (!package) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_palettize: package must not be NULL");
    if (!output || !*output)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_palettize: output must name a new directory");
    laya_palettize_options_init(&defaults);
    if (!options) options = &defaults;
    LAYA_TRY(check_options(options, error));
    laya_palette_job job = {.parent = package,
                            .mode = options->mode,
                            .bits = options->target_error > 0 ? 0 : options->bits,
                            .group_size = options->group_size,
                            .target_error = options->target_error,
                            .workers = options->workers,
                            .allocator = laya_allocator_or_default(&options->allocator),
                            .logger = options->logger,
                            .progress = options->progress,
                            .interrupt = options->interrupt};
    LAYA_TRY(laya_staging_open(&staging, output, &job.allocator, error));
    laya_status status = fill(&job, options, staging.directory, error);
    if (status == LAYA_OK) status = laya_staging_commit(&staging, error);
    laya_staging_discard(&staging);
    if (status == LAYA_ERROR_STOPPED)
        return laya_fail(error, status, "the palettization was interrupted; nothing was written");
    return status;
}
