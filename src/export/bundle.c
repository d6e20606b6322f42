/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting a bundle: two tasks, one that hashes the checkpoint and one that writes and verifies the package. */
#include "export/bundle.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/staging.h"
#include "base/threads.h"
#include "export/export.h"

#include <stdatomic.h>
#include <string.h>

#define REPORTS 64u /* calls of the progress hook, about */
#define NO_TASK (-1)

typedef enum task { TASK_PACKAGE, TASK_HASHES, TASKS } task;

typedef struct job {
    laya_bundle_contents bundle;
    laya_mil_program program;
    laya_staging staging;
    char *package_path;
    unsigned threads;
    uint64_t total;        /* bytes that the meters will count, about */
    _Atomic uint64_t done; /* of them */
    atomic_int failed;     /* the task that failed first, for the other one to stop; NO_TASK */
    laya_error errors[TASKS];
} job;

/* What a meter's report needs to know: who calls. */
typedef struct reporter {
    job *job;
    bool caller; /* on the calling thread: the only one that may call the progress hook */
    uint64_t reported;
} reporter;

/* ------------------------------------------------------------------ progress, interrupt */

static laya_status report(void *user, uint64_t bytes, laya_error *error)
{
    reporter *self = user;
    job *j = self->job;
    const laya_export_options *options = j->bundle.options;
    uint64_t done = atomic_fetch_add(&j->done, bytes) + bytes;
    if (atomic_load(&j->failed) != NO_TASK)
        return laya_fail(error, LAYA_ERROR_STOPPED, "another part of the export failed");
    if (options->interrupt.requested && options->interrupt.requested(options->interrupt.user))
        return laya_fail(error, LAYA_ERROR_STOPPED, "the export was interrupted; nothing was written");
    if (self->caller && options->progress.report && done - self->reported >= j->total / REPORTS) {
        self->reported = done;
        options->progress.report(options->progress.user, done < j->total ? done : j->total, j->total);
    }
    return LAYA_OK;
}

/* Bytes of the constants that a program reads from the checkpoint. */
static uint64_t source_bytes(const laya_mil_program *program)
{
    uint64_t sum = 0, size;
    for (const laya_mil_op *op = program->functions[0].body.first; op; op = op->next) {
        const laya_mil_constant *constant = laya_mil_find_attribute(op, "val");
        if (constant && constant->source && laya_mil_type_size(&constant->type, &size)) sum += size;
    }
    return sum;
}

/* ------------------------------------------------------------------ task: hashes of the checkpoint */

static laya_status check_weights(const job *j, const char *path, laya_error *error)
{
    const char *expected = j->bundle.options->weights_sha256;
    const laya_written *found = &j->bundle.sources[LAYA_SOURCE_WEIGHTS];
    if (found->size != j->bundle.model->weight_file.size)
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: expected %zu bytes, as when the model was opened, found %llu; open the model again",
                         path, j->bundle.model->weight_file.size, (unsigned long long)found->size);
    if (expected && strcmp(expected, found->sha256) != 0)
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected SHA-256 %s, found %s", path, expected,
                         found->sha256);
    return LAYA_OK;
}

static laya_status hash_sources(job *j, const laya_meter *meter, laya_error *error)
{
    const laya_model *model = j->bundle.model;
    laya_status status = LAYA_OK;
    for (laya_source_file file = LAYA_SOURCE_WEIGHTS; file < LAYA_SOURCE_FILES && status == LAYA_OK; file++) {
        laya_written *written = &j->bundle.sources[file];
        char *path = laya_path_join(&model->allocator, model->directory, laya_source_file_name(file));
        if (!path) return laya_fail_memory(error, 0);
        status = laya_hash_file(path, written->sha256, &written->size, meter, error);
        if (status == LAYA_OK && file == LAYA_SOURCE_WEIGHTS) status = check_weights(j, path, error);
        laya_release(&model->allocator, path);
    }
    return status;
}

/* ------------------------------------------------------------------ task: the package */

static laya_status write_package(job *j, const laya_meter *meter, laya_error *error)
{
    laya_bundle_contents *bundle = &j->bundle;
    laya_package_files files;
    LAYA_TRY(laya_package_write(&j->program, j->package_path, meter, &files, error));
    LAYA_TRY(laya_package_digest(&files, bundle->package_sha256, error));
    laya_bundle_add(bundle, LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_MODEL, &files.model);
    if (files.weights.size) laya_bundle_add(bundle, LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_WEIGHTS, &files.weights);
    laya_bundle_add(bundle, LAYA_BUNDLE_PACKAGE "/" LAYA_PACKAGE_MANIFEST, &files.manifest);
    /* Read back with code that shares nothing with the writer. */
    return laya_package_read_back(&j->program, j->package_path, j->staging.target, meter, error);
}

/* ------------------------------------------------------------------ both tasks */

static void run_task(void *argument, size_t index, unsigned worker)
{
    job *j = argument;
    /* One thread hashes first, so that a wrong checkpoint is found before anything is written. */
    task which = j->threads > 1 ? (task)index : index == 0 ? TASK_HASHES : TASK_PACKAGE;
    laya_error *error = &j->errors[which];
    reporter self = {.job = j, .caller = worker == 0, .reported = 0};
    laya_meter meter = {&self, report};
    if (atomic_load(&j->failed) != NO_TASK) return;
    laya_status status = which == TASK_HASHES ? hash_sources(j, &meter, error) : write_package(j, &meter, error);
    int nobody = NO_TASK;
    if (status != LAYA_OK) atomic_compare_exchange_strong(&j->failed, &nobody, (int)which);
}

static laya_status run_tasks(job *j, laya_error *error)
{
    laya_pool *pool;
    LAYA_TRY(laya_pool_open(j->threads, &j->bundle.model->allocator, &pool, error));
    laya_pool_run(pool, TASKS, run_task, j);
    laya_pool_close(pool);
    int failed = atomic_load(&j->failed);
    if (failed == NO_TASK) return LAYA_OK;
    return laya_fail(error, j->errors[failed].status, "%s", j->errors[failed].message);
}

/* ------------------------------------------------------------------ the whole */

static laya_status fill_staging(job *j, laya_error *error)
{
    laya_bundle_contents *bundle = &j->bundle;
    const laya_model *model = bundle->model;
    double start = laya_seconds();
    LAYA_TRY(laya_export_build(model, bundle->options, &j->program, error));
    /* The checkpoint for its hash; the constants to find equal ones, to write them and to verify them. */
    j->total = model->weight_file.size + 3 * source_bytes(&j->program);
    if (bundle->options->standalone) j->total += laya_host_files_size(bundle);
    j->package_path = laya_path_join(&model->allocator, j->staging.directory, LAYA_BUNDLE_PACKAGE);
    if (!j->package_path) return laya_fail_memory(error, 0);
    LAYA_TRY(run_tasks(j, error));
    if (bundle->options->standalone) {
        reporter self = {.job = j, .caller = true, .reported = 0};
        laya_meter meter = {&self, report};
        LAYA_TRY(laya_host_files_write(bundle, j->staging.directory, &meter, error));
    }
    bundle->seconds = laya_seconds() - start;
    return laya_bundle_manifest_write(bundle, j->staging.directory, error);
}

static laya_status export_bundle(job *j, const char *output, laya_error *error)
{
    const laya_export_options *options = j->bundle.options;
    LAYA_TRY(laya_staging_open(&j->staging, output, &j->bundle.model->allocator, error));
    laya_status status = fill_staging(j, error);
    if (status == LAYA_OK) status = laya_staging_commit(&j->staging, error);
    laya_staging_discard(&j->staging);
    if (status == LAYA_OK && options->progress.report)
        options->progress.report(options->progress.user, j->total, j->total);
    return status;
}

laya_status laya_model_export(const laya_model *model, const laya_export_options *options, const char *output,
                              laya_error *error)
{
    laya_export_options defaults;
    laya_error_clear(error);
    if (!model) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_model_export: model must not be NULL");
    if (!output || !*output)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_model_export: output must name a new directory");
    if (!options) {
        laya_export_options_init(&defaults);
        options = &defaults;
    }
    LAYA_TRY(laya_export_check(model, options, error));
    unsigned threads = options->threads ? options->threads : laya_online_cpus();
    job j = {.bundle = {.model = model, .options = options}, .threads = threads < TASKS ? threads : TASKS};
    atomic_init(&j.done, 0);
    atomic_init(&j.failed, NO_TASK);
    laya_mil_program_init(&j.program, &model->allocator);
    j.bundle.program = &j.program;
    laya_status status = export_bundle(&j, output, error);
    laya_release(&model->allocator, j.package_path);
    laya_mil_program_close(&j.program);
    return status;
}
