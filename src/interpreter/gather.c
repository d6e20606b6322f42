/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a tensor chosen by indices. */
#include "base/error.h"
#include "interpreter/move.h"

#include <inttypes.h>
#include <string.h>

/* x is [batches, between, size, inner], indices [batches, chosen], the output [batches, between, chosen, inner]. */
typedef struct gathering {
    const laya_operand *x;
    const int32_t *indices;
    unsigned char *out;
    size_t between, size, inner, chosen;
} gathering;

static size_t product(const laya_mil_type *type, uint32_t first, uint32_t end)
{
    size_t count = 1;
    for (uint32_t axis = first; axis < end; axis++) count *= (size_t)type->dims[axis];
    return count;
}

/* One row of inner elements into the output; of a constant that is as stored, widened. */
static void copy_row(const gathering *work, size_t from, size_t to)
{
    const laya_array *x = work->x->array;
    const void *data = laya_array_data(x);
    unsigned char *out = work->out + to * LAYA_ELEMENT;
    if (data) {
        memcpy(out, (const unsigned char *)data + from * LAYA_ELEMENT, work->inner * LAYA_ELEMENT);
        return;
    }
    laya_dtype dtype = work->x->constant->type.dtype == LAYA_MIL_FP16 ? LAYA_F16 : LAYA_F32;
    /* the output of a raw constant is of a floating type: its memory holds floats */
    laya_widen(work->x->constant->bytes + from * laya_dtype_size(dtype), dtype, work->inner, (float *)(void *)out);
}

static void gather_rows(const void *argument, size_t begin, size_t end)
{
    const gathering *work = argument;
    for (size_t row = begin; row < end; row++) {
        size_t chosen = row % work->chosen, outer = row / work->chosen;
        size_t batch = outer / work->between;
        int64_t at = work->indices[batch * work->chosen + chosen];
        if (at < 0) at += (int64_t)work->size;
        copy_row(work, (outer * work->size + (size_t)at) * work->inner, row * work->inner);
    }
}

/* Up to CoreML6 negative indices count from the end; later they are out of range. */
static laya_status check_indices(const laya_run *run, const laya_array *indices, size_t size, laya_error *error)
{
    int64_t least = run->opset >= LAYA_MIL_COREML7 ? 0 : -(int64_t)size;
    for (uint64_t i = 0; i < indices->count; i++) {
        int64_t index = indices->integers[i];
        if (index >= least && index < (int64_t)size) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "parameter 'indices': expected %" PRId64 " to %" PRId64 ", found %" PRId64
                         " at element %" PRIu64,
                         least, (int64_t)size - 1, index, i);
    }
    return LAYA_OK;
}

laya_status laya_run_gather(const laya_run *run, const laya_step *step, laya_error *error)
{
    const laya_operand *x = laya_step_operand(step, "x");
    const laya_array *indices = laya_step_operand(step, "indices")->array;
    const laya_mil_type *type = &x->array->type;
    uint32_t axis = laya_step_axis(step, "axis", 0, type->rank);
    uint32_t batch_dims = (uint32_t)laya_step_integer(step, "batch_dims", 0);
    gathering work = {.x = x,
                      .indices = indices->integers,
                      .out = laya_array_data(step->outputs[0]),
                      .between = product(type, batch_dims, axis),
                      .size = (size_t)type->dims[axis],
                      .inner = product(type, axis + 1, type->rank),
                      .chosen = product(&indices->type, batch_dims, indices->type.rank)};
    LAYA_TRY(check_indices(run, indices, work.size, error));
    if (step->outputs[0]->count == 0) return LAYA_OK;
    laya_run_ranges(run, product(type, 0, axis) * work.chosen, work.inner, gather_rows, &work);
    return LAYA_OK;
}
