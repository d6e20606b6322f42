/* SPDX-License-Identifier: Apache-2.0 */
/* Making a palettized bundle: the parent verified, tables, package, files of the host, manifest. */
#include "palette/bundle.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/staging.h"
#include "palette/manifest.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define REPORTS 64u    /* calls of the progress hook, about */
#define TABLE_STEPS 4u /* what a byte of a weight takes, beside a byte that is written */

typedef struct maker {
    laya_palette_contents bundle;
    laya_bundle found; /* the parent, found but not opened */
    laya_pool *pool;
    laya_package *package;
    double start;
    uint64_t scale; /* steps of progress for a byte that the meter is told of */
    uint64_t total, reported;
    _Atomic uint64_t done;
    pthread_t caller; /* the thread that may call the progress hook */
} maker;

/* ------------------------------------------------------------------ progress, interrupt */

static laya_status report(void *user, uint64_t bytes, laya_error *error)
{
    maker *m = user;
    const laya_palette_job *job = m->bundle.job;
    uint64_t done = atomic_fetch_add(&m->done, bytes * m->scale) + bytes * m->scale;
    if (job->interrupt.requested && job->interrupt.requested(job->interrupt.user))
        return laya_fail(error, LAYA_ERROR_STOPPED, "the palettization was interrupted; nothing was written");
    if (!job->progress.report || !pthread_equal(pthread_self(), m->caller)) return LAYA_OK;
    if (done < m->reported + m->total / REPORTS || done >= m->total) return LAYA_OK;
    m->reported = done;
    job->progress.report(job->progress.user, done, m->total);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the parent */

static laya_status check_parent(const maker *m, laya_error *error)
{
    const laya_bucket *parent = m->bundle.parent;
    if (*parent->manifest.palette)
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "%s: has palettes already (%s); palettize the bundle that it was made from",
                         parent->directory, parent->manifest.palette);
    return laya_buckets_verify(&m->found, NULL, error);
}

static laya_status open_parent(maker *m, laya_error *error)
{
    const laya_palette_job *job = m->bundle.job;
    unsigned workers = job->workers ? job->workers : laya_online_cpus();
    LAYA_TRY(laya_pool_open(workers, &job->allocator, &m->pool, error));
    m->found.pool = m->pool;
    LAYA_TRY(laya_buckets_find_one(&m->found, job->parent, error));
    m->bundle.parent = &m->found.buckets[0];
    LAYA_TRY(check_parent(m, error));
    LAYA_TRY(laya_package_open(m->bundle.parent->directory, &job->allocator, &m->package, error));
    m->bundle.program = &m->package->program;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ tables */

static laya_status choose(maker *m, laya_palette_weight *weight, laya_error *error)
{
    const laya_palette_job *job = m->bundle.job;
    const laya_palette_choice *choice = &job->choice;
    weight->mapped = true;
    weight->bits = job->bits || !choice->bits ? job->bits : choice->bits(choice->user, weight->name);
    if (job->mode != LAYA_PALETTE_UNIQUE && weight->bits != LAYA_PALETTE_AS_IS &&
        laya_palettes_grouped_form(m->bundle.program, job->mode, job->group_size, weight->bits))
        m->bundle.grouped = true;
    weight->energy = choice->energy ? choice->energy(choice->user, weight->name, weight->row) : NULL;
    if (weight->energy || job->mode != LAYA_PALETTE_WEIGHTED) return LAYA_OK;
    return laya_fail(
        error, LAYA_ERROR_UNSUPPORTED,
        "%.200s: no activations were measured for this weight; the mode weighted needs a bundle that layac "
        "export wrote",
        weight->name);
}

/* Steps of progress: tables, then hashing, writing and comparing what is stored. */
static uint64_t count_steps(const maker *m)
{
    uint64_t steps = 0;
    for (uint32_t at = 0; at < m->bundle.count; at++) {
        const laya_palette_weight *weight = &m->bundle.weights[at];
        uint64_t bits = weight->bits ? weight->bits : LAYA_PALETTE_MAX_BITS;
        steps += TABLE_STEPS * weight->constant->size + 3 * weight->constant->size * bits / 16;
    }
    return steps;
}

static laya_status make_tables(maker *m, laya_error *error)
{
    laya_palette_contents *b = &m->bundle;
    const laya_palette_job *job = b->job;
    const laya_meter meter = {m, report};
    LAYA_TRY(laya_palettes_select(&m->package->program, job->group_size, &b->weights, &b->count, error));
    if (b->count == 0)
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "%s: no convolution weight of more than %u elements; there is nothing to palettize",
                         job->parent, LAYA_PALETTE_THRESHOLD);
    b->grouped = laya_palettes_grouped_form(b->program, LAYA_PALETTE_UNIQUE, job->group_size, 0);
    for (uint32_t at = 0; at < b->count; at++) LAYA_TRY(choose(m, &b->weights[at], error));
    m->total = count_steps(m);
    m->scale = TABLE_STEPS;
    LAYA_TRY(
        laya_palettes_make(b->weights, b->count, job->mode, b->grouped, m->pool, &job->allocator, &meter, error));
    m->scale = 1;
    return LAYA_OK;
}

/* Weights that stay as they are were asked for, or are told of. */
static laya_status check_skipped(const maker *m, laya_error *error)
{
    const laya_palette_contents *b = &m->bundle;
    const laya_logger *logger = &b->job->logger;
    uint32_t skipped = 0;
    for (uint32_t at = 0; at < b->count; at++) {
        char text[512];
        if (b->weights[at].lut) continue;
        skipped++;
        if (b->job->mode != LAYA_PALETTE_UNIQUE || !logger->log) continue;
        snprintf(text, sizeof text, "%.200s: more than 256 distinct values in a group; it stays as it is",
                 b->weights[at].name);
        logger->log(logger->user, LAYA_LOG_WARNING, text);
    }
    if (skipped < b->count || b->job->mode != LAYA_PALETTE_UNIQUE) return LAYA_OK;
    return laya_fail(
        error, LAYA_ERROR_UNSUPPORTED,
        "%s: every convolution weight has more than 256 distinct values in a group; use --mode kmeans or "
        "smaller groups",
        b->job->parent);
}

/* ------------------------------------------------------------------ the package */

/* Names the palettes in the package's own metadata, too. */
static laya_status add_metadata(maker *m, laya_error *error)
{
    laya_mil_program *program = &m->package->program;
    char text[LAYA_PALETTE_TEXT];
    laya_palette_text(m->bundle.job, text);
    laya_mil_metadata *all = laya_arena_alloc(&program->arena, program->metadata_count + 1, sizeof *all);
    const char *copy = laya_arena_copy(&program->arena, text, strlen(text));
    if (!all || !copy) return laya_fail_memory(error, sizeof *all);
    if (program->metadata_count) memcpy(all, program->metadata, program->metadata_count * sizeof *all);
    all[program->metadata_count++] = (laya_mil_metadata){"laya.palette", copy};
    program->metadata = all;
    return LAYA_OK;
}

static laya_status write_package(maker *m, const char *output, laya_error *error)
{
    laya_palette_contents *b = &m->bundle;
    const laya_meter meter = {m, report};
    laya_package_files files;
    bool any = false;
    for (uint32_t at = 0; at < b->count; at++) any |= b->weights[at].lut != NULL;
    if (any) LAYA_TRY(laya_palettes_rewrite(&m->package->program, b->weights, b->count, b->grouped, error));
    LAYA_TRY(add_metadata(m, error));
    char *path = laya_path_join(&b->job->allocator, output, LAYA_BUNDLE_PACKAGE);
    if (!path) return laya_fail_memory(error, 0);
    laya_status status = laya_package_write(&m->package->program, path, &meter, &files, error);
    if (status == LAYA_OK) status = laya_package_digest(&files, b->package_sha256, error);
    if (status == LAYA_OK) status = laya_package_read_back(b->program, path, path, &meter, error);
    laya_release(&b->job->allocator, path);
    LAYA_TRY(status);
    b->files[b->file_count++] = (laya_bundle_file){LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_MODEL, files.model};
    if (files.weights.size)
        b->files[b->file_count++] = (laya_bundle_file){LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_WEIGHTS, files.weights};
    b->files[b->file_count++] = (laya_bundle_file){LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_MANIFEST, files.manifest};
    return LAYA_OK;
}

/* ------------------------------------------------------------------ files of the host */

static laya_status write_copy(const maker *m, const laya_file *from, const char *path, laya_written *written,
                              laya_error *error)
{
    laya_output output;
    const laya_meter meter = {(void *)m, report};
    LAYA_TRY(laya_output_open(&output, path, &m->bundle.job->allocator, &meter, error));
    laya_status status = laya_output_mapped(&output, from->data, from->size, error);
    if (status == LAYA_OK) status = laya_output_finish(&output, written->sha256, error);
    written->size = output.size;
    laya_output_close(&output);
    return status;
}

/* The folder of a file, where it is in one and the first there. */
static laya_status make_folder(const maker *m, const char *output, const char *name, laya_error *error)
{
    const laya_allocator *allocator = &m->bundle.job->allocator;
    const char *slash = strchr(name, '/');
    if (!slash) return LAYA_OK;
    char folder[64];
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
    char *path = laya_path_join(allocator, output, folder);
    if (!path) return laya_fail_memory(error, 0);
    laya_status status = laya_path_exists(path) ? LAYA_OK : laya_make_directory(path, error);
    laya_release(allocator, path);
    return status;
}

static laya_status copy_file(maker *m, const char *output, const laya_bundle_file *file, laya_error *error)
{
    const laya_allocator *allocator = &m->bundle.job->allocator;
    laya_bundle_file *copy = &m->bundle.files[m->bundle.file_count++];
    laya_file from = {NULL, 0};
    LAYA_TRY(make_folder(m, output, file->path, error));
    char *source = laya_path_join(allocator, m->bundle.parent->directory, file->path);
    char *path = laya_path_join(allocator, output, file->path);
    laya_status status = source && path ? laya_file_map(&from, source, error) : laya_fail_memory(error, 0);
    copy->path = file->path;
    if (status == LAYA_OK) status = write_copy(m, &from, path, &copy->written, error);
    if (status == LAYA_OK && strcmp(copy->written.sha256, file->written.sha256) != 0)
        status = laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected SHA-256 %s, found %s; it changed meanwhile",
                           source, file->written.sha256, copy->written.sha256);
    laya_file_unmap(&from);
    laya_release(allocator, source);
    laya_release(allocator, path);
    return status;
}

static laya_status copy_host(maker *m, const char *output, laya_error *error)
{
    const laya_manifest *manifest = &m->bundle.parent->manifest;
    for (uint32_t at = 0; at < manifest->file_count; at++) {
        const laya_bundle_file *file = &manifest->files[at];
        if (!laya_palette_package_file(file)) LAYA_TRY(copy_file(m, output, file, error));
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ figures */

static laya_status copy_figures(const maker *m, laya_palette_figures *figures, laya_error *error)
{
    const laya_palette_contents *b = &m->bundle;
    laya_arena_init(&figures->arena, &b->job->allocator);
    figures->weights = laya_arena_alloc(&figures->arena, b->count, sizeof *figures->weights);
    if (!figures->weights) return laya_fail_memory(error, b->count * sizeof *figures->weights);
    for (uint32_t at = 0; at < b->count; at++) {
        const laya_palette_weight *weight = &b->weights[at];
        const char *name = laya_arena_copy(&figures->arena, weight->name, strlen(weight->name));
        if (!name) return laya_fail_memory(error, strlen(weight->name) + 1);
        figures->weights[at] = (laya_palette_figure){.name = name,
                                                     .bits = weight->bits,
                                                     .elements = weight->row * weight->channels,
                                                     .bytes_before = weight->constant->size,
                                                     .bytes = laya_palette_bytes(weight),
                                                     .errors = weight->errors};
    }
    figures->count = b->count;
    figures->package_before = laya_palette_package_bytes(b->parent->manifest.files, b->parent->manifest.file_count);
    figures->package_after = laya_palette_package_bytes(b->files, b->file_count);
    figures->seconds = b->seconds;
    return LAYA_OK;
}

void laya_palette_figures_close(laya_palette_figures *figures)
{
    laya_arena_close(&figures->arena);
    *figures = (laya_palette_figures){0};
}

/* ------------------------------------------------------------------ calls */

static laya_status make(maker *m, const char *output, laya_error *error)
{
    LAYA_TRY(open_parent(m, error));
    LAYA_TRY(make_tables(m, error));
    if (!output) return LAYA_OK;
    LAYA_TRY(check_skipped(m, error));
    LAYA_TRY(write_package(m, output, error));
    LAYA_TRY(copy_host(m, output, error));
    m->bundle.seconds = laya_seconds() - m->start;
    return laya_palette_manifest_write(&m->bundle, output, error);
}

static laya_status run(const laya_palette_job *job, const char *output, laya_palette_figures *figures,
                       laya_error *error)
{
    laya_palette_job completed = *job;
    completed.allocator = laya_allocator_or_default(&job->allocator);
    job = &completed;
    maker m = {.bundle = {.job = job}, .found = {.allocator = job->allocator}, .start = laya_seconds(), .scale = 1};
    atomic_init(&m.done, 0);
    m.caller = pthread_self();
    if (figures) *figures = (laya_palette_figures){0};
    laya_status status = make(&m, output, error);
    if (status == LAYA_OK && figures) {
        status = copy_figures(&m, figures, error);
        if (status != LAYA_OK) laya_palette_figures_close(figures);
    }
    if (status == LAYA_OK && job->progress.report) job->progress.report(job->progress.user, m.total, m.total);
    laya_palettes_release(m.bundle.weights, m.bundle.count, &job->allocator);
    laya_package_close(m.package);
    laya_buckets_close(&m.found);
    laya_pool_close(m.pool);
    return status;
}

laya_status laya_palette_bundle_make(const laya_palette_job *job, const char *output, laya_palette_figures *figures,
                                     laya_error *error)
{
    return run(job, output, figures, error);
}

laya_status laya_palette_measure(const laya_palette_job *job, laya_palette_figures *figures, laya_error *error)
{
    return run(job, NULL, figures, error);
}
