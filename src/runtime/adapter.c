/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of a package: inputs of a row, one run, action head. */
#include "base/error.h"
#include "export/export.h"
#include "runtime/bundle.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MASKED (-1e4f) /* added to the scores of keys that a query does not see */
#define GATHER 16u     /* embedding rows that are transposed together: a cache line of the result */

/* ------------------------------------------------------------------ buckets */

laya_bucket *laya_bundle_choose(const laya_bundle *bundle, uint32_t tokens, uint32_t options)
{
    for (size_t at = 0; at < bundle->count; at++) {
        laya_bucket *bucket = &bundle->buckets[at];
        if (bucket->shape.length >= tokens && bucket->shape.markers >= options) return bucket;
    }
    return NULL;
}

laya_status laya_bundle_fail_choice(const laya_bundle *bundle, uint32_t tokens, uint32_t options, laya_error *error)
{
    const char *otherwise = bundle->model->host_only ? "" : ", or use --long native";
    uint32_t longest = bundle->buckets[bundle->count - 1].shape.length, markers = 0;
    if (tokens > longest)
        return laya_fail(error, LAYA_ERROR_INPUT,
                         "%" PRIu32 " tokens, but the longest package takes %" PRIu32
                         "; export one with --length %" PRIu32 " or more%s",
                         tokens, longest, tokens, otherwise);
    for (size_t at = 0; at < bundle->count; at++) {
        const laya_body_shape *shape = &bundle->buckets[at].shape;
        if (shape->length >= tokens && shape->markers > markers) markers = shape->markers;
    }
    return laya_fail(error, LAYA_ERROR_INPUT,
                     "%" PRIu32 " options, but the packages for its %" PRIu32 " tokens take %" PRIu32
                     "; export one with --markers %" PRIu32 " or more%s",
                     options, tokens, markers, options, otherwise);
}

/* ------------------------------------------------------------------ inputs */

/* [d, L]: column t is the embedding of token t, as stored; columns after the row are zero. */
static laya_status fill_embeddings(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                                   float *out, laya_arena *arena, laya_error *error)
{
    size_t d = shape->hidden_size, length = shape->length;
    laya_arena_mark mark = laya_arena_save(arena);
    float *rows = laya_arena_alloc(arena, GATHER * d, sizeof *rows);
    if (!rows) return laya_fail_memory(error, GATHER * d * sizeof *rows);
    for (size_t first = 0; first < row->count; first += GATHER) {
        size_t count = row->count - first < GATHER ? row->count - first : GATHER;
        for (size_t t = 0; t < count; t++)
            laya_tensor_widen(&model->weights.embedding, (size_t)row->ids[first + t] * d, d, rows + t * d);
        for (size_t i = 0; i < d; i++) {
            for (size_t t = 0; t < count; t++) out[i * length + first + t] = rows[t * d + i];
        }
    }
    laya_arena_restore(arena, mark);
    for (size_t i = 0; i < d; i++) {
        for (size_t t = row->count; t < length; t++) out[i * length + t] = 0;
    }
    return LAYA_OK;
}

/*
 * [L keys, L queries]: 0 where the query sees the key, else MASKED. No query sees a padding key; a padding query sees
 * every other key.
 */
static void fill_masks(const laya_row *row, size_t length, size_t radius, float *full, float *local)
{
    for (size_t key = 0; key < length; key++) {
        float *full_row = full + key * length, *local_row = local + key * length;
        bool valid = key < row->count;
        for (size_t query = 0; query < length; query++) {
            size_t distance = key > query ? key - query : query - key;
            full_row[query] = valid ? 0 : MASKED;
            local_row[query] = valid && (distance <= radius || query >= row->count) ? 0 : MASKED;
        }
    }
}

/* [L, markers]: column o has a 1 at the marker of option o; columns without an option are zero. */
static void fill_markers(const laya_row *row, const laya_body_shape *shape, float *out)
{
    memset(out, 0, (size_t)shape->length * shape->markers * sizeof *out);
    for (uint32_t o = 0; o < row->options; o++) out[(size_t)row->markers[o] * shape->markers + o] = 1;
}

laya_status laya_adapter_fill(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                              float *const inputs[LAYA_BODY_INPUTS], laya_arena *arena, laya_error *error)
{
    LAYA_TRY(fill_embeddings(model, row, shape, inputs[LAYA_BODY_EMBEDDINGS], arena, error));
    fill_masks(row, shape->length, model->config.local_attention / 2, inputs[LAYA_BODY_FULL_MASK],
               inputs[LAYA_BODY_LOCAL_MASK]);
    laya_tensor_widen(&model->weights.type_embedding, (size_t)row->type * shape->hidden_size, shape->hidden_size,
                      inputs[LAYA_BODY_TYPE_VECTORS]);
    fill_markers(row, shape, inputs[LAYA_BODY_MARKER_MAP]);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ one row */

static laya_status check_finite(const laya_bucket *bucket, laya_body_output output, size_t count, laya_error *error)
{
    const float *values = bucket->executor->outputs[output];
    for (size_t at = 0; at < count; at++) {
        if (!isfinite(values[at]))
            return laya_fail(
                error, LAYA_ERROR_FORMAT,
                "%s: value %zu of '%s' is not finite; the activations of this checkpoint may not fit into %s",
                bucket->directory, at, bucket->shape.outputs[output].name,
                laya_package_precision_name(bucket->manifest.precision));
    }
    return LAYA_OK;
}

static laya_status check_fit(const laya_bucket *bucket, const laya_row *row, laya_error *error)
{
    if (row->count <= bucket->shape.length && row->options <= bucket->shape.markers) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_ARGUMENT,
                     "a row of %" PRIu32 " tokens and %" PRIu32 " options does not fit into a package of %" PRIu32
                     " tokens and %" PRIu32 " options",
                     row->count, row->options, bucket->shape.length, bucket->shape.markers);
}

laya_status laya_bucket_run(const laya_bundle *bundle, laya_bucket *bucket, laya_row *row, laya_arena *arena,
                            laya_error *error)
{
    const laya_model *model = bundle->model;
    laya_executor *executor = bucket->executor;
    LAYA_TRY(laya_check_row(&model->config, row, error));
    LAYA_TRY(check_fit(bucket, row, error));
    LAYA_TRY(laya_adapter_fill(model, row, &bucket->shape, executor->inputs, arena, error));
    LAYA_TRY(executor->run(executor, error));
    LAYA_TRY(check_finite(bucket, LAYA_BODY_OPTION_LOGITS, row->options, error));
    LAYA_TRY(check_finite(bucket, LAYA_BODY_CLS_COLUMN, bucket->shape.hidden_size, error));
    const float *logits = executor->outputs[LAYA_BODY_OPTION_LOGITS];
    const float *state = executor->outputs[LAYA_BODY_CLS_COLUMN];
    for (uint32_t o = 0; o < row->options; o++) row->logits[o] = (double)logits[o];
    return laya_action_head_run(&model->config, &model->weights, row, &state, 1, bundle->pool, arena, error);
}
