/* SPDX-License-Identifier: Apache-2.0 */
/* The screen: one measurement of activations, one reference, and for every variant a bundle and a validation. */
#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/staging.h"
#include "base/threads.h"
#include "coreml/package.h"
#include "screen/energy.h"
#include "screen/report.h"
#include "screen/stages.h"

#include <stdio.h>
#include <string.h>

#define SCREEN_FILE "screen.json"
#define REFERENCE_FILE "reference.json"
#define PARENT "parent"
#define NAME_SIZE 64 /* of a file */

/* Units of progress: guesses of how long a step takes. */
enum { UNITS_ENERGIES = 3, UNITS_REFERENCE = 2, UNITS_GATE = 3, UNITS_MAKE = 2 };

typedef struct screen {
    const char *package;
    laya_screen_options options; /* with `bundle` */
    laya_bundle_options bundle;
    laya_allocator allocator;
    laya_staging staging;        /* of the output; */
    char folder[LAYA_GATE_PATH]; /*   without one: temporary, bundles are removed once they are validated */
    const char *directory;       /* one of the two */
    char *target;                /* the output's name; NULL: there is none */
    char *reference;             /* its file in the output; NULL: elsewhere */
    laya_energies *energies;
    laya_gate_reference recorded;
    laya_validate_options validate;
    laya_stages stages;
    laya_screen_results results;
} screen;

void laya_screen_options_init(laya_screen_options *options)
{
    *options = (laya_screen_options){.size = sizeof *options, .repeats = 1};
}

/* ------------------------------------------------------------------ files of the output */

/* Replace all `from` by `to` in a JSON text; both are paths, which it shows escaped. */
static void replace_path(laya_buffer *out, const char *text, const char *from, const char *to)
{
    laya_buffer old, new;
    laya_buffer_init(&old, &out->allocator);
    laya_buffer_init(&new, &out->allocator);
    laya_json_write_string(&old, from, strlen(from));
    laya_json_write_string(&new, to, strlen(to));
    if (old.failed || new.failed) {
        out->failed = true;
    } else {
        size_t size = old.size - 2; /* without the quotes */
        old.data[1 + size] = '\0';
        for (const char *hit; (hit = strstr(text, old.data + 1)) != NULL; text = hit + size) {
            laya_buffer_append(out, text, (size_t)(hit - text));
            laya_buffer_append(out, new.data + 1, new.size - 2);
        }
        laya_buffer_puts(out, text);
    }
    laya_buffer_close(&old);
    laya_buffer_close(&new);
}

/* Write a validation report, as seen from the output's final name: it has another one until all is done. */
static laya_status save_validation(const screen *s, const char *name, const laya_report *report, laya_error *error)
{
    char file[NAME_SIZE];
    laya_buffer text;
    if (!s->target) return LAYA_OK;
    snprintf(file, sizeof file, "%s.validation.json", name);
    char *path = laya_path_join(&s->allocator, s->directory, file);
    laya_buffer_init(&text, &s->allocator);
    replace_path(&text, laya_report_json(report, NULL), s->directory, s->target);
    laya_status status = path && !text.failed
                             ? laya_output_file(path, text.data, text.size, &s->allocator, NULL, NULL, error)
                             : laya_fail_memory(error, 0);
    laya_buffer_close(&text);
    laya_release(&s->allocator, path);
    return status;
}

static laya_status save_screen(const screen *s, const laya_report *report, laya_error *error)
{
    size_t size;
    if (!s->target) return LAYA_OK;
    char *path = laya_path_join(&s->allocator, s->directory, SCREEN_FILE);
    const char *text = laya_report_json(report, &size);
    laya_status status = path ? laya_output_file(path, text, size, &s->allocator, NULL, NULL, error)
                              : laya_fail_memory(error, 0);
    laya_release(&s->allocator, path);
    return status;
}

/* Keep a reference that was recorded: the validation reports name its hash. */
static laya_status keep_reference(screen *s, laya_error *error)
{
    laya_file file;
    s->reference = laya_path_join(&s->allocator, s->directory, REFERENCE_FILE);
    if (!s->reference) return laya_fail_memory(error, 0);
    LAYA_TRY(laya_file_map(&file, s->recorded.path, error));
    laya_status status = laya_output_file(s->reference, file.data, file.size, &s->allocator, NULL, NULL, error);
    laya_file_unmap(&file);
    s->validate.reference = s->reference;
    return status;
}

/* ------------------------------------------------------------------ before the variants */

/* Which variants the weights allow: a group size that does not divide the channels is no reason to stop. */
static laya_status check_groups(screen *s, laya_error *error)
{
    laya_package *package;
    laya_error reason;
    LAYA_TRY(laya_package_open(s->package, &s->allocator, &package, error));
    laya_status status = LAYA_OK;
    for (size_t at = 0; at < LAYA_SCREEN_VARIANTS && status == LAYA_OK; at++) {
        laya_palette_weight *weights;
        uint32_t count;
        laya_screen_row *row = &s->results.rows[at];
        status = laya_palettes_select(&package->program, laya_screen_variants[at].group_size, &weights, &count,
                                      &reason);
        row->made = status == LAYA_OK;
        if (status == LAYA_ERROR_FORMAT) {
            memcpy(row->reason, reason.message, sizeof row->reason);
            status = LAYA_OK;
        } else if (status != LAYA_OK) {
            status = laya_fail(error, status, "%s", reason.message);
        }
    }
    laya_package_close(package);
    return status;
}

static laya_status measure_energies(screen *s, laya_error *error)
{
    const laya_progress progress = laya_stages_next(&s->stages, UNITS_ENERGIES);
    LAYA_TRY(laya_energies_measure(s->package, s->bundle.model_directory, s->options.fixture, s->options.workers,
                                   &s->allocator, &progress, &s->options.interrupt, &s->energies, error));
    s->results.energy = laya_energies_facts(s->energies);
    return LAYA_OK;
}

static laya_status open_reference(screen *s, laya_error *error)
{
    s->validate.progress = laya_stages_next(&s->stages, UNITS_REFERENCE);
    LAYA_TRY(laya_gate_reference_open(&s->recorded, s->package, &s->validate, error));
    s->validate.reference = s->recorded.path;
    if (s->options.reference || !s->target) return LAYA_OK;
    return keep_reference(s, error);
}

static laya_status validate_parent(screen *s, laya_error *error)
{
    s->validate.progress = laya_stages_next(&s->stages, UNITS_GATE);
    LAYA_TRY(laya_gate_run(s->package, &s->validate, &s->results.parent, error));
    return save_validation(s, PARENT, s->results.parent.report, error);
}

/* ------------------------------------------------------------------ a variant */

static void sum_figures(laya_screen_row *row, const laya_palette_figures *figures)
{
    for (uint32_t at = 0; at < figures->count; at++) {
        const laya_palette_figure *weight = &figures->weights[at];
        row->weights += weight->bits != LAYA_PALETTE_AS_IS;
        row->weights_before += weight->bytes_before;
        row->weights_after += weight->bytes;
        laya_palette_error_add(&row->errors, &weight->errors);
    }
    row->package_before = figures->package_before;
    row->package_after = figures->package_after;
    row->seconds = figures->seconds;
}

static laya_status make_bundle(screen *s, const laya_screen_variant *variant, const char *directory,
                               laya_screen_row *row, laya_error *error)
{
    laya_palette_figures figures;
    laya_palette_job job = {.parent = s->package,
                            .mode = variant->mode,
                            .bits = variant->bits,
                            .group_size = variant->group_size,
                            .workers = s->options.workers,
                            .allocator = s->allocator,
                            .logger = s->bundle.logger,
                            .progress = laya_stages_next(&s->stages, UNITS_MAKE),
                            .interrupt = s->options.interrupt};
    if (variant->mode == LAYA_PALETTE_WEIGHTED) {
        job.choice = (laya_palette_choice){.user = s->energies, .energy = laya_energies_find};
        job.energy = s->results.energy;
    }
    LAYA_TRY(laya_make_directory(directory, error));
    LAYA_TRY(laya_palette_bundle_make(&job, directory, &figures, error));
    sum_figures(row, &figures);
    laya_palette_figures_close(&figures);
    return LAYA_OK;
}

static laya_status validate_bundle(screen *s, const char *name, const char *directory, laya_screen_row *row,
                                   laya_error *error)
{
    s->validate.progress = laya_stages_next(&s->stages, UNITS_GATE);
    LAYA_TRY(laya_gate_run(directory, &s->validate, &row->result, error));
    LAYA_TRY(laya_palette_bundle_gate(directory, &row->result.gate, &s->allocator, error));
    return save_validation(s, name, row->result.report, error);
}

static laya_status run_variant(screen *s, size_t at, laya_error *error)
{
    const laya_screen_variant *variant = &laya_screen_variants[at];
    laya_screen_row *row = &s->results.rows[at];
    if (!row->made) return LAYA_OK;
    char *directory = laya_path_join(&s->allocator, s->directory, variant->name);
    if (!directory) return laya_fail_memory(error, 0);
    laya_status status = make_bundle(s, variant, directory, row, error);
    if (status == LAYA_OK) status = validate_bundle(s, variant->name, directory, row, error);
    if (!s->target) laya_remove_tree(directory);
    laya_release(&s->allocator, directory);
    return status;
}

/* ------------------------------------------------------------------ the whole */

static laya_status run(screen *s, laya_report **report, laya_error *error)
{
    char *kept = NULL;
    LAYA_TRY(check_groups(s, error));
    LAYA_TRY(measure_energies(s, error));
    LAYA_TRY(open_reference(s, error));
    LAYA_TRY(validate_parent(s, error));
    for (size_t at = 0; at < LAYA_SCREEN_VARIANTS; at++) LAYA_TRY(run_variant(s, at, error));
    s->results.reference = s->options.reference;
    if (s->reference) {
        kept = laya_path_join(&s->allocator, s->target, REFERENCE_FILE);
        if (!kept) return laya_fail_memory(error, 0);
        s->results.reference = kept;
    }
    laya_status status = laya_screen_report(&s->results, &s->allocator, report, error);
    laya_release(&s->allocator, kept);
    return status == LAYA_OK ? save_screen(s, *report, error) : status;
}

/* Where the variants are made. */
static laya_status open_directory(screen *s, const char *output, laya_error *error)
{
    if (!output) {
        LAYA_TRY(laya_make_temporary("laya-screen", s->folder, sizeof s->folder, error));
        s->directory = s->folder;
        return LAYA_OK;
    }
    LAYA_TRY(laya_staging_open(&s->staging, output, &s->allocator, error));
    s->directory = s->staging.directory;
    s->target = s->staging.target;
    return LAYA_OK;
}

static laya_status screen_bundle(screen *s, const char *output, laya_report **report, laya_error *error)
{
    LAYA_TRY(open_directory(s, output, error));
    laya_status status = run(s, report, error);
    laya_gate_reference_close(&s->recorded);
    laya_energies_close(s->energies);
    laya_report_close(s->results.parent.report);
    for (size_t at = 0; at < LAYA_SCREEN_VARIANTS; at++) laya_report_close(s->results.rows[at].result.report);
    laya_release(&s->allocator, s->reference);
    if (!output) {
        laya_remove_tree(s->folder);
    } else {
        if (status == LAYA_OK) status = laya_staging_commit(&s->staging, error);
        laya_staging_discard(&s->staging);
    }
    if (status == LAYA_OK) laya_stages_end(&s->stages);
    return status;
}

static laya_status check_arguments(const char *package, const laya_screen_options *options, const char *output,
                                   laya_report **report, laya_error *error)
{
    if (!package || !options || !report)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_screen: %s must not be NULL",
                         !package   ? "package"
                         : !options ? "options"
                                    : "report");
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_screen: options.size is %zu, expected %zu; call laya_screen_options_init first",
                         options->size, sizeof *options);
    if (output && !*output)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_screen: output must name a new directory, or be NULL");
    if (!options->fixture)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_screen: fixture must not be NULL; activations are measured with its questions");
    if (options->repeats == 0)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_screen: repeats must be at least 1");
    if (options->workers > LAYA_MAX_THREADS)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_screen: workers: expected at most %u, found %u",
                         LAYA_MAX_THREADS, options->workers);
    return LAYA_OK;
}

laya_status laya_screen(const char *package, const laya_screen_options *options, const char *output,
                        laya_report **report, laya_error *error)
{
    laya_error_clear(error);
    if (report) *report = NULL;
    LAYA_TRY(check_arguments(package, options, output, report, error));
    screen s = {.package = package, .options = *options};
    laya_bundle_options_init(&s.bundle);
    if (options->bundle) s.bundle = *options->bundle;
    if (s.bundle.threads == 0) s.bundle.threads = options->workers;
    s.options.bundle = &s.bundle;
    s.allocator = laya_allocator_or_default(&s.bundle.allocator);
    laya_validate_options_init(&s.validate);
    s.validate.bundle = &s.bundle;
    s.validate.fixture = options->fixture;
    s.validate.reference = options->reference;
    s.validate.repeats = options->repeats;
    s.validate.interrupt = options->interrupt;
    s.stages.to = options->progress;
    s.stages.total = UNITS_ENERGIES + UNITS_REFERENCE + UNITS_GATE +
                     (uint64_t)LAYA_SCREEN_VARIANTS * (UNITS_MAKE + UNITS_GATE);
    s.results.options = &s.options;
    s.results.workers = options->workers ? options->workers : laya_online_cpus();
    laya_status status = screen_bundle(&s, output, report, error);
    if (status == LAYA_OK) return LAYA_OK;
    laya_report_close(*report);
    *report = NULL;
    return status;
}
