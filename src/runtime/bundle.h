/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an open bundle, and one row sent through it. */
#ifndef LAYA_RUNTIME_BUNDLE_H
#define LAYA_RUNTIME_BUNDLE_H

#include "base/threads.h"
#include "laya/bundle.h"
#include "model/engine.h"
#include "model/model.h"
#include "runtime/executor.h"
#include "runtime/manifest.h"

typedef struct laya_bucket {
    char *directory; /* of the export */
    laya_manifest manifest;
    laya_body_shape shape;
    laya_package *package;
    laya_executor *executor;
} laya_bucket;

struct laya_bundle {
    laya_allocator allocator;
    laya_backend backend;
    const char *executor_name;
    laya_pool *pool;
    laya_model *model;
    laya_bucket *buckets; /* sorted by length, then markers */
    size_t count;
};

/*
 * Make bundle->buckets from a path: manifests read, sorted, all of one checkpoint. Errors: as laya_bundle_open.
 */
laya_status laya_buckets_find(laya_bundle *bundle, const char *path, laya_error *error);
/*
 * The same where one bundle alone is wanted, which may be of any kind where it is named itself. Errors: also ARGUMENT (a
 * directory of several).
 */
laya_status laya_buckets_find_one(laya_bundle *bundle, const char *path, laya_error *error);
/* Errors: UNSUPPORTED (kind mlp or layer). */
laya_status laya_bucket_require_body(const laya_bucket *bucket, laya_error *error);
void laya_buckets_close(laya_bundle *bundle);

/*
 * Hash every file that the manifests list, and those of the checkpoint at `checkpoint` (NULL: the bundle stands alone),
 * in parallel. Errors: FORMAT (message names file, expected and found), IO, MEMORY, SYSTEM.
 */
laya_status laya_buckets_verify(const laya_bundle *bundle, const char *checkpoint, laya_error *error);

/* The smallest bucket that takes a row of so many tokens and options; NULL: none does. */
laya_bucket *laya_bundle_choose(const laya_bundle *bundle, uint32_t tokens, uint32_t options);
/* Why laya_bundle_choose gave none, and what to do. Returns INPUT. */
laya_status laya_bundle_fail_choice(const laya_bundle *bundle, uint32_t tokens, uint32_t options, laya_error *error);

/*
 * Write the inputs of a row: gathered embedding rows, masks, type vector, markers. Padding columns are zero; no output
 * depends on them. `row` follows the rules of laya_row and fits. Errors: MEMORY.
 */
laya_status laya_adapter_fill(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                              float *const inputs[LAYA_BODY_INPUTS], laya_arena *arena, laya_error *error);

/*
 * Answer one row: its logits and action logits are written. Errors: ARGUMENT (the row breaks the rules of laya_row or
 * does not fit), FORMAT (an output is not finite; what the executor says), MEMORY.
 */
laya_status laya_bucket_run(const laya_bundle *bundle, laya_bucket *bucket, laya_row *row, laya_arena *arena,
                            laya_error *error);

#endif
