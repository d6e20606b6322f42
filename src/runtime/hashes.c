/* SPDX-License-Identifier: Apache-2.0 */
/* Files of bundles and checkpoint against the hashes of manifest.json, all at once. */
#include "base/error.h"
#include "base/output.h"
#include "runtime/bundle.h"

#include <inttypes.h>
#include <string.h>

typedef struct hash_check {
    char *path;
    const char *expected; /* SHA-256 */
    const char *bundle;   /* whose manifest.json says so */
    bool sized;           /* `size` is known too */
    uint64_t size;
    laya_error error;
} hash_check;

typedef struct hash_job {
    const laya_allocator *allocator;
    hash_check *checks;
    size_t count;
} hash_job;

static void check_task(void *argument, size_t index, unsigned worker)
{
    (void)worker;
    hash_check *check = &((hash_job *)argument)->checks[index];
    char hex[65];
    uint64_t size;
    laya_error_clear(&check->error);
    if (laya_hash_file(check->path, hex, &size, NULL, &check->error) != LAYA_OK) return;
    if (check->sized && size != check->size)
        laya_set_error(&check->error, LAYA_ERROR_FORMAT,
                       "%s: expected %" PRIu64 " bytes, as " LAYA_BUNDLE_MANIFEST " of %s says, found %" PRIu64
                       "; the file was changed or cut",
                       check->path, check->size, check->bundle, size);
    else if (strcmp(hex, check->expected) != 0)
        laya_set_error(&check->error, LAYA_ERROR_FORMAT,
                       "%s: expected SHA-256 %s, as " LAYA_BUNDLE_MANIFEST
                       " of %s says, found %s; the file was changed or belongs to another checkpoint",
                       check->path, check->expected, check->bundle, hex);
}

static laya_status add(hash_job *job, const char *directory, const char *name, const char *expected,
                       const char *bundle, const uint64_t *size, laya_error *error)
{
    hash_check *check = &job->checks[job->count];
    *check = (hash_check){.path = laya_path_join(job->allocator, directory, name),
                          .expected = expected,
                          .bundle = bundle,
                          .sized = size != NULL,
                          .size = size ? *size : 0};
    if (!check->path) return laya_fail_memory(error, 0);
    job->count++;
    return LAYA_OK;
}

/* The checkpoint first: its weights take longest. */
static laya_status add_all(hash_job *job, const laya_bundle *bundle, const char *checkpoint, laya_error *error)
{
    const laya_bucket *first = &bundle->buckets[0];
    for (size_t at = 0; checkpoint && at < LAYA_SOURCE_FILES; at++)
        LAYA_TRY(add(job, checkpoint, laya_source_file_name((laya_source_file)at), first->manifest.sources[at],
                     first->directory, NULL, error));
    for (size_t at = 0; at < bundle->count; at++) {
        const laya_bucket *bucket = &bundle->buckets[at];
        for (uint32_t i = 0; i < bucket->manifest.file_count; i++) {
            const laya_bundle_file *file = &bucket->manifest.files[i];
            LAYA_TRY(add(job, bucket->directory, file->path, file->written.sha256, bucket->directory,
                         &file->written.size, error));
        }
    }
    return LAYA_OK;
}

laya_status laya_buckets_verify(const laya_bundle *bundle, const char *checkpoint, laya_error *error)
{
    size_t most = LAYA_SOURCE_FILES + bundle->count * LAYA_BUNDLE_MAX_FILES;
    hash_job job = {.allocator = &bundle->allocator};
    job.checks = laya_alloc(&bundle->allocator, most, sizeof *job.checks);
    if (!job.checks) return laya_fail_memory(error, most * sizeof *job.checks);
    laya_status status = add_all(&job, bundle, checkpoint, error);
    if (status == LAYA_OK) laya_pool_run(bundle->pool, job.count, check_task, &job);
    for (size_t at = 0; at < job.count; at++) {
        const laya_error *found = &job.checks[at].error;
        if (status == LAYA_OK && found->status != LAYA_OK)
            status = laya_fail(error, found->status, "%s", found->message);
        laya_release(&bundle->allocator, job.checks[at].path);
    }
    laya_release(&bundle->allocator, job.checks);
    return status;
}
