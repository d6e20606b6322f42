/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/body_timing.h"

#include "base/clock.h"
#include "base/error.h"
#include "gate/statistics.h"
#include "runtime/bundle.h"

#include <string.h>

/* splitmix64, of which the upper 24 bits are used: the same values on every machine. */
static float next_value(uint64_t *state)
{
    uint64_t x = (*state += UINT64_C(0x9E3779B97F4A7C15));
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return (float)(x >> 40) / 8388608.0f - 1.0f;
}

laya_status laya_body_prepare(const laya_subject *subject, const laya_allocator *allocator, laya_error *error)
{
    static const uint32_t markers[] = {1, 2};
    const laya_bucket *bucket = &subject->bundle->buckets[0];
    const laya_body_shape *shape = &bucket->shape;
    uint64_t state = 1;
    laya_arena arena;
    laya_arena_init(&arena, allocator);
    uint32_t *ids = laya_arena_alloc(&arena, shape->length, sizeof *ids);
    laya_status status = ids ? LAYA_OK : laya_fail_memory(error, shape->length * sizeof *ids);
    if (ids) {
        memset(ids, 0, shape->length * sizeof *ids);
        const laya_row row = {.ids = ids, .count = shape->length, .markers = markers, .options = 2};
        status = laya_adapter_fill(subject->model, &row, shape, bucket->executor->inputs, &arena, error);
    }
    float *embeddings = bucket->executor->inputs[LAYA_BODY_EMBEDDINGS];
    size_t count = laya_body_count(&shape->inputs[LAYA_BODY_EMBEDDINGS]);
    for (size_t at = 0; status == LAYA_OK && at < count; at++) embeddings[at] = next_value(&state);
    laya_arena_close(&arena);
    return status;
}

/* Keep the first outputs; compare later ones bit by bit. */
static laya_status compare_outputs(const laya_bucket *bucket, laya_body_outputs *outputs, bool *stable,
                                   laya_error *error)
{
    const laya_body_shape *shape = &bucket->shape;
    size_t first = laya_body_count(&shape->outputs[0]), second = laya_body_count(&shape->outputs[1]);
    const float *const *from = bucket->executor->outputs;
    if (!outputs->values) {
        outputs->count = first + second;
        outputs->values = laya_alloc(&outputs->allocator, outputs->count, sizeof *outputs->values);
        if (!outputs->values) return laya_fail_memory(error, outputs->count * sizeof *outputs->values);
        memcpy(outputs->values, from[0], first * sizeof **from);
        memcpy(outputs->values + first, from[1], second * sizeof **from);
    } else if (memcmp(outputs->values, from[0], first * sizeof **from) != 0 ||
               memcmp(outputs->values + first, from[1], second * sizeof **from) != 0) {
        *stable = false;
    }
    return LAYA_OK;
}

laya_status laya_body_time(const laya_subject *subject, laya_body_outputs *outputs, double *seconds, bool *stable,
                           laya_error *error)
{
    const laya_bucket *bucket = &subject->bundle->buckets[0];
    LAYA_TRY(laya_body_prepare(subject, &outputs->allocator, error));
    double start = laya_seconds();
    LAYA_TRY(bucket->executor->run(bucket->executor, error));
    *seconds = laya_seconds() - start;
    return compare_outputs(bucket, outputs, stable, error);
}
