/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a tensor: split, slice_by_index, slice_by_size. */
#include "base/error.h"
#include "interpreter/move.h"

#include <inttypes.h>

laya_status laya_run_split(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_array *x = laya_step_operand(step, "x")->array;
    uint32_t axis = laya_step_axis(step, "axis", 0, x->type.rank);
    int64_t strides[LAYA_MIL_MAX_RANK], first = 0;
    laya_strides(&x->type, strides);
    for (uint32_t at = 0; at < step->output_count; at++) {
        const laya_array *part = step->outputs[at];
        laya_layout layout = {.rank = x->type.rank};
        laya_strides(&part->type, layout.to);
        for (uint32_t i = 0; i < layout.rank; i++) {
            layout.dims[i] = part->type.dims[i];
            layout.from[i] = strides[i];
        }
        laya_move(run, &layout, laya_array_data(x), first, laya_array_data(part), 0);
        first += strides[axis] * part->type.dims[axis];
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ slice_by_index */

/* Values of an optional list parameter; NULL: not given. */
static const int32_t *list_values(const laya_step *step, const char *name)
{
    size_t count;
    return laya_step_integers(step, name, &count);
}

typedef struct bounds {
    const int32_t *begin, *stride, *begin_mask, *squeeze_mask;
} bounds;

static bool is_set(const int32_t *mask, uint32_t axis)
{
    return mask && mask[axis];
}

/* The first element that is taken; a negative begin counts from the end and stops at the first element. */
static int64_t first_taken(const bounds *at, uint32_t axis, int64_t size)
{
    bool backwards = at->stride && at->stride[axis] < 0 && !is_set(at->squeeze_mask, axis);
    if (is_set(at->begin_mask, axis)) return backwards ? size - 1 : 0;
    int64_t begin = at->begin[axis];
    if (begin >= 0) return begin;
    bool exact = is_set(at->squeeze_mask, axis);
    return begin + size < 0 && !exact ? 0 : begin + size;
}

/* The elements first, first + stride, … are there: `begin` may be data that the types do not show. */
static laya_status check_taken(const laya_array *x, uint32_t axis, int64_t first, int64_t last, laya_error *error)
{
    int64_t size = x->type.dims[axis];
    if (first >= 0 && first < size && last >= 0 && last < size) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT,
                     "elements %" PRId64 " to %" PRId64 " are out of range for the %" PRId64 " of axis %" PRIu32,
                     first, last, size, axis);
}

laya_status laya_run_slice_by_index(const laya_run *run, const laya_step *step, laya_error *error)
{
    const laya_array *x = laya_step_operand(step, "x")->array, *out = step->outputs[0];
    bounds at = {laya_step_operand(step, "begin")->array->integers, list_values(step, "stride"),
                 list_values(step, "begin_mask"), list_values(step, "squeeze_mask")};
    int64_t strides[LAYA_MIL_MAX_RANK], first = 0;
    laya_layout layout = {.rank = x->type.rank};
    uint32_t kept = 0;
    laya_strides(&x->type, strides);
    for (uint32_t axis = 0; axis < x->type.rank; axis++) {
        bool dropped = is_set(at.squeeze_mask, axis);
        int64_t begin = first_taken(&at, axis, x->type.dims[axis]), step_size = at.stride ? at.stride[axis] : 1;
        layout.dims[axis] = dropped ? 1 : out->type.dims[kept++];
        layout.from[axis] = strides[axis] * step_size;
        LAYA_TRY(check_taken(x, axis, begin, begin + (layout.dims[axis] - 1) * step_size, error));
        first += strides[axis] * begin;
    }
    int64_t stride = 1;
    for (uint32_t axis = layout.rank; axis > 0; axis--) {
        layout.to[axis - 1] = stride;
        stride *= layout.dims[axis - 1];
    }
    laya_move(run, &layout, laya_array_data(x), first, laya_array_data(out), 0);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ slice_by_size */

laya_status laya_run_slice_by_size(const laya_run *run, const laya_step *step, laya_error *error)
{
    const laya_array *x = laya_step_operand(step, "x")->array, *out = step->outputs[0];
    const int32_t *begins = laya_step_operand(step, "begin")->array->integers;
    laya_layout layout = {.rank = x->type.rank};
    int64_t first = 0;
    laya_strides(&x->type, layout.from);
    laya_strides(&out->type, layout.to);
    for (uint32_t axis = 0; axis < layout.rank; axis++) {
        int64_t begin = begins[axis];
        if (begin < 0) begin += x->type.dims[axis];
        layout.dims[axis] = out->type.dims[axis];
        LAYA_TRY(check_taken(x, axis, begin, begin + layout.dims[axis] - 1, error));
        first += begin * layout.from[axis];
    }
    laya_move(run, &layout, laya_array_data(x), first, laya_array_data(out), 0);
    return LAYA_OK;
}
