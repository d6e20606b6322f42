/* SPDX-License-Identifier: Apache-2.0 */
/* The same elements in another shape or order: transpose, reshape, concat, stack, tile, pad, fill. */
#include "base/error.h"
#include "interpreter/move.h"

#include <inttypes.h>
#include <string.h>

static laya_status run_transpose(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_array *x = laya_step_operand(step, "x")->array, *out = step->outputs[0];
    size_t count;
    const int32_t *perm = laya_step_integers(step, "perm", &count);
    int64_t strides[LAYA_MIL_MAX_RANK];
    laya_layout layout = {.rank = x->type.rank};
    laya_strides(&x->type, strides);
    laya_strides(&out->type, layout.to);
    for (uint32_t axis = 0; axis < layout.rank; axis++) {
        layout.dims[axis] = out->type.dims[axis];
        layout.from[axis] = strides[perm[axis] < 0 ? perm[axis] + (int32_t)layout.rank : perm[axis]];
    }
    laya_move(run, &layout, laya_array_data(x), 0, laya_array_data(out), 0);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ several inputs */

/* Scalars make a vector. Interleaved, the parts' elements of the axis take turns; all parts have one shape then. */
static laya_status run_concat(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_parameter_values *values = laya_step_parameter(step, "values");
    const laya_array *out = step->outputs[0];
    uint32_t axis = laya_step_axis(step, "axis", 0, out->type.rank);
    bool interleave = laya_step_bool(step, "interleave", false);
    int64_t strides[LAYA_MIL_MAX_RANK], first = 0;
    laya_strides(&out->type, strides);
    for (uint32_t at = 0; at < values->count; at++) {
        const laya_array *part = values->operands[at].array;
        laya_mil_type type = part->type;
        if (type.rank == 0) type = laya_mil_vector(type.dtype, 1);
        laya_layout layout = {.rank = type.rank};
        laya_strides(&type, layout.from);
        for (uint32_t i = 0; i < layout.rank; i++) {
            layout.dims[i] = type.dims[i];
            layout.to[i] = strides[i];
        }
        if (interleave) layout.to[axis] *= values->count;
        laya_move(run, &layout, laya_array_data(part), 0, laya_array_data(out), first);
        first += strides[axis] * (interleave ? 1 : type.dims[axis]);
    }
    return LAYA_OK;
}

static laya_status run_stack(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_parameter_values *values = laya_step_parameter(step, "values");
    const laya_array *out = step->outputs[0];
    uint32_t axis = laya_step_axis(step, "axis", 0, out->type.rank);
    int64_t strides[LAYA_MIL_MAX_RANK];
    laya_strides(&out->type, strides);
    for (uint32_t at = 0; at < values->count; at++) {
        const laya_array *part = values->operands[at].array;
        laya_layout layout = {.rank = part->type.rank};
        laya_strides(&part->type, layout.from);
        for (uint32_t i = 0; i < layout.rank; i++) {
            layout.dims[i] = part->type.dims[i];
            layout.to[i] = strides[i < axis ? i : i + 1];
        }
        laya_move(run, &layout, laya_array_data(part), 0, laya_array_data(out), at * strides[axis]);
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ more elements */

/* Each axis becomes two: repetitions, which do not move in x, and the axis itself. */
static laya_status run_tile(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)error;
    const laya_array *x = laya_step_operand(step, "x")->array, *out = step->outputs[0];
    int64_t from[LAYA_MIL_MAX_RANK], to[LAYA_MIL_MAX_RANK];
    laya_layout layout = {.rank = 2 * x->type.rank};
    laya_strides(&x->type, from);
    laya_strides(&out->type, to);
    for (uint32_t axis = 0; axis < x->type.rank; axis++) {
        int64_t size = x->type.dims[axis];
        layout.dims[2 * axis] = size > 0 ? out->type.dims[axis] / size : 0;
        layout.to[2 * axis] = to[axis] * size;
        layout.dims[2 * axis + 1] = size;
        layout.from[2 * axis + 1] = from[axis];
        layout.to[2 * axis + 1] = to[axis];
    }
    laya_move(run, &layout, laya_array_data(x), 0, laya_array_data(out), 0);
    return LAYA_OK;
}

static void fill_array(const laya_array *out, const laya_operand *value)
{
    float number = value && value->array->values ? value->array->values[0] : 0;
    int32_t integer = value && value->array->integers ? value->array->integers[0] : 0;
    for (uint64_t i = 0; i < out->count; i++) {
        if (out->values)
            out->values[i] = number;
        else
            out->integers[i] = integer;
    }
}

static laya_status run_fill(const laya_run *run, const laya_step *step, laya_error *error)
{
    (void)run;
    (void)error;
    fill_array(step->outputs[0], laya_step_operand(step, "value"));
    return LAYA_OK;
}

/* ------------------------------------------------------------------ pad */

typedef struct padding {
    int64_t before[LAYA_MIL_MAX_RANK];
    bool reflect;
} padding;

/* The element of an axis that stands at `at` of the padded axis. */
static int64_t padded_from(const padding *pad, uint32_t axis, int64_t size, int64_t at)
{
    at -= pad->before[axis];
    if (pad->reflect && at < 0) return -at;
    if (pad->reflect && at >= size) return 2 * (size - 1) - at;
    if (at < 0) return 0;
    return at < size ? at : size - 1;
}

/* The rows of the output, each from the row of x that its place says. */
static void pad_from_edges(const laya_array *x, const laya_array *out, const padding *pad)
{
    int64_t strides[LAYA_MIL_MAX_RANK], index[LAYA_MIL_MAX_RANK] = {0};
    uint32_t last = x->type.rank - 1;
    int64_t width = out->type.dims[last], size = x->type.dims[last];
    laya_strides(&x->type, strides);
    for (float *row = out->values; row < out->values + out->count; row += width) {
        int64_t from = 0;
        for (uint32_t axis = 0; axis < last; axis++)
            from += strides[axis] * padded_from(pad, axis, x->type.dims[axis], index[axis]);
        for (int64_t i = 0; i < width; i++) row[i] = x->values[from + padded_from(pad, last, size, i)];
        for (uint32_t axis = last; axis > 0 && ++index[axis - 1] == out->type.dims[axis - 1]; axis--)
            index[axis - 1] = 0;
    }
}

static void pad_with_constant(const laya_run *run, const laya_step *step, const laya_array *x, const padding *pad)
{
    const laya_array *out = step->outputs[0];
    laya_layout layout = {.rank = x->type.rank};
    int64_t first = 0;
    laya_strides(&x->type, layout.from);
    laya_strides(&out->type, layout.to);
    for (uint32_t axis = 0; axis < layout.rank; axis++) {
        layout.dims[axis] = x->type.dims[axis];
        first += pad->before[axis] * layout.to[axis];
    }
    fill_array(out, laya_step_operand(step, "constant_val"));
    laya_move(run, &layout, laya_array_data(x), 0, laya_array_data(out), first);
}

/* Elements that are copied exist: an axis has more elements than it reflects, and one to replicate. */
static laya_status check_edges(const laya_step *step, const laya_mil_type *x, const padding *pad, laya_error *error)
{
    const laya_mil_type *out = &step->outputs[0]->type;
    for (uint32_t axis = 0; axis < x->rank; axis++) {
        int64_t before = pad->before[axis], after = out->dims[axis] - x->dims[axis] - before;
        int64_t largest = before > after ? before : after, size = x->dims[axis];
        if (largest == 0 || (pad->reflect ? largest < size : size > 0)) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "parameter 'pad': expected at most %" PRId64 " reflected elements on axis %" PRIu32
                         ", found %" PRId64,
                         size > 0 ? size - 1 : 0, axis, largest);
    }
    return LAYA_OK;
}

static laya_status run_pad(const laya_run *run, const laya_step *step, laya_error *error)
{
    const laya_array *x = laya_step_operand(step, "x")->array, *out = step->outputs[0];
    const char *mode = laya_step_string(step, "mode", "constant");
    size_t count = 0;
    const int32_t *pads = laya_step_integers(step, "pad", &count);
    padding pad = {.reflect = strcmp(mode, "reflect") == 0};
    uint32_t first = x->type.rank - (uint32_t)(count / 2);
    for (uint32_t axis = first; axis < x->type.rank; axis++) pad.before[axis] = pads[2 * (axis - first)];
    if (strcmp(mode, "constant") == 0) {
        pad_with_constant(run, step, x, &pad);
        return LAYA_OK;
    }
    LAYA_TRY(check_edges(step, &x->type, &pad, error));
    if (count == 0)
        laya_move_all(run, x, out);
    else if (out->count > 0)
        pad_from_edges(x, out, &pad);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ table */

#define MOVES(type_, run_)                                                                                           \
    {                                                                                                                \
        .type = (type_), .run = (run_), .exact = true                                                                \
    }
#define SAME_MEMORY(type_)                                                                                           \
    {                                                                                                                \
        .type = (type_), .exact = true, .alias = true                                                                \
    }

const laya_implementation laya_shape_implementations[] = {
    SAME_MEMORY("reshape"),
    SAME_MEMORY("squeeze"),
    SAME_MEMORY("expand_dims"),
    MOVES("transpose", run_transpose),
    MOVES("concat", run_concat),
    MOVES("stack", run_stack),
    MOVES("tile", run_tile),
    MOVES("fill", run_fill),
    MOVES("pad", run_pad),
    MOVES("split", laya_run_split),
    MOVES("slice_by_index", laya_run_slice_by_index),
    MOVES("slice_by_size", laya_run_slice_by_size),
    {.type = "gather", .run = laya_run_gather, .exact = true, .raw = "x"},
    {0}};
