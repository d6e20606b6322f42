/* SPDX-License-Identifier: Apache-2.0 */
/* The same elements in another shape or order: transpose, reshape, concat, stack, tile, pad, fill. */
#include "mil/infer.h"

#include <inttypes.h>
#include <string.h>

static laya_status infer_transpose(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x");
    laya_mil_integers perm;
    bool chosen[LAYA_MIL_MAX_RANK], given;
    LAYA_TRY(laya_mil_get_counted(in, "perm", x->rank, &perm));
    LAYA_TRY(laya_mil_get_axes(in, "perm", x->rank, chosen, &given)); /* every axis once */
    outputs[0] = *x;
    for (uint32_t axis = 0; axis < x->rank; axis++) {
        int64_t from = perm.values[axis] < 0 ? perm.values[axis] + x->rank : perm.values[axis];
        outputs[0].dims[axis] = x->dims[from];
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ reshape */

/* The size of the axis that is given as -1, and whether the numbers of elements agree. */
static bool solve_reshape(const laya_mil_type *x, laya_mil_type *out, uint32_t open, bool has_open)
{
    uint64_t elements, rest;
    if (has_open) out->dims[open] = 1;
    bool known = laya_mil_type_count(x, &elements) && laya_mil_type_count(out, &rest);
    if (has_open) out->dims[open] = LAYA_MIL_UNKNOWN;
    for (uint32_t axis = 0; axis < x->rank; axis++) {
        if (x->dims[axis] == LAYA_MIL_UNKNOWN) return true;
    }
    if (!known) return false; /* more elements than can be counted */
    if (!has_open) return elements == rest;
    if (rest == 0 || elements % rest != 0 || elements / rest > INT64_MAX) return false;
    out->dims[open] = (int64_t)(elements / rest);
    return true;
}

static laya_status infer_reshape(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x");
    laya_mil_integers shape;
    laya_mil_type out = {.kind = LAYA_MIL_TENSOR, .dtype = x->dtype};
    uint32_t open = 0, open_count = 0;
    bool fits = true;
    LAYA_TRY(laya_mil_get_integers(in, "shape", &shape));
    for (uint32_t axis = 0; axis < shape.count; axis++) {
        int64_t size = shape.known ? shape.values[axis] : LAYA_MIL_UNKNOWN;
        if (size == 0 && shape.count == x->rank) size = x->dims[axis];
        if (shape.known && shape.values[axis] == -1) {
            open = axis;
            open_count++;
        }
        fits = fits && size >= LAYA_MIL_UNKNOWN;
        LAYA_TRY(laya_mil_insert_dim(in, &out, axis, size));
    }
    outputs[0] = out;
    if (!shape.known) return LAYA_OK;
    if (fits && open_count <= 1 && solve_reshape(x, &outputs[0], open, open_count == 1)) return LAYA_OK;
    char wanted[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'shape': %s cannot be reshaped to %s",
                     laya_mil_type_text(x, found), laya_mil_type_text(&out, wanted));
}

static laya_status infer_expand_dims(const laya_mil_inference *in, laya_mil_type *outputs)
{
    laya_mil_integers axes;
    bool chosen[LAYA_MIL_MAX_RANK], given;
    outputs[0] = *laya_mil_parameter_type(in, "x");
    LAYA_TRY(laya_mil_get_integers(in, "axes", &axes));
    uint32_t rank = outputs[0].rank + (uint32_t)axes.count;
    if (rank > LAYA_MIL_MAX_RANK) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "the output has %" PRIu32 " axes, more than %d", rank,
                         LAYA_MIL_MAX_RANK);
    }
    LAYA_TRY(laya_mil_get_axes(in, "axes", rank, chosen, &given));
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (chosen[axis]) LAYA_TRY(laya_mil_insert_dim(in, &outputs[0], axis, 1));
    }
    return LAYA_OK;
}

/* Axes of other sizes than 1 stay, as the definition says. */
static laya_status infer_squeeze(const laya_mil_inference *in, laya_mil_type *outputs)
{
    bool chosen[LAYA_MIL_MAX_RANK], given;
    outputs[0] = *laya_mil_parameter_type(in, "x");
    LAYA_TRY(laya_mil_get_axes(in, "axes", outputs[0].rank, chosen, &given));
    for (uint32_t left = outputs[0].rank; left > 0; left--) {
        if ((chosen[left - 1] || !given) && outputs[0].dims[left - 1] == 1)
            laya_mil_remove_dim(&outputs[0], left - 1);
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ several inputs */

static laya_status refuse_shapes(const laya_mil_inference *in, const laya_mil_type *first, const laya_mil_type *other)
{
    char wanted[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'values': shapes that do not fit: %s and %s",
                     laya_mil_type_text(first, wanted), laya_mil_type_text(other, found));
}

/* All values have the shape of *joined but for the axis `except`; dimensions unknown there are taken from others. */
static laya_status join_values(const laya_mil_inference *in, uint32_t except, laya_mil_type *joined)
{
    const laya_mil_argument *values = laya_mil_find_argument(in->op, "values");
    for (uint32_t at = 1; at < values->count; at++) {
        const laya_mil_type *type = laya_mil_bound_type(&values->bindings[at]);
        if (type->rank != joined->rank) return refuse_shapes(in, joined, type);
        for (uint32_t axis = 0; axis < type->rank; axis++) {
            if (axis == except) continue;
            if (!laya_mil_dims_agree(type->dims[axis], joined->dims[axis])) return refuse_shapes(in, joined, type);
            if (joined->dims[axis] == LAYA_MIL_UNKNOWN) joined->dims[axis] = type->dims[axis];
        }
    }
    return LAYA_OK;
}

/* Scalars make a vector. */
static laya_status infer_concat(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_argument *values = laya_mil_find_argument(in->op, "values");
    uint32_t axis;
    int64_t interleave, total = 0;
    outputs[0] = *laya_mil_bound_type(&values->bindings[0]);
    bool scalars = outputs[0].rank == 0;
    LAYA_TRY(laya_mil_get_axis(in, "axis", scalars ? 1 : outputs[0].rank, 0, &axis));
    LAYA_TRY(laya_mil_get_integer(in, "interleave", 0, &interleave));
    LAYA_TRY(join_values(in, interleave ? LAYA_MIL_MAX_RANK : axis, &outputs[0]));
    for (uint32_t at = 0; at < values->count; at++) {
        int64_t size = scalars ? 1 : laya_mil_bound_type(&values->bindings[at])->dims[axis];
        total = size == LAYA_MIL_UNKNOWN || total == LAYA_MIL_UNKNOWN ? LAYA_MIL_UNKNOWN : total + size;
    }
    if (scalars) return laya_mil_insert_dim(in, &outputs[0], 0, total);
    outputs[0].dims[axis] = total;
    return LAYA_OK;
}

static laya_status infer_stack(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_argument *values = laya_mil_find_argument(in->op, "values");
    uint32_t axis;
    outputs[0] = *laya_mil_bound_type(&values->bindings[0]);
    LAYA_TRY(laya_mil_get_axis(in, "axis", outputs[0].rank + 1, 0, &axis));
    LAYA_TRY(join_values(in, LAYA_MIL_MAX_RANK, &outputs[0]));
    return laya_mil_insert_dim(in, &outputs[0], axis, values->count);
}

/* ------------------------------------------------------------------ more elements */

static laya_status infer_tile(const laya_mil_inference *in, laya_mil_type *outputs)
{
    laya_mil_integers reps;
    outputs[0] = *laya_mil_parameter_type(in, "x");
    LAYA_TRY(laya_mil_check_rank(in, "x", 1, LAYA_MIL_MAX_RANK));
    LAYA_TRY(laya_mil_get_counted(in, "reps", outputs[0].rank, &reps));
    for (uint32_t axis = 0; axis < outputs[0].rank; axis++) {
        int64_t *size = &outputs[0].dims[axis];
        if (reps.known && reps.values[axis] < 1) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "parameter 'reps': expected positive values, found %" PRId64, reps.values[axis]);
        }
        bool once = reps.known && reps.values[axis] == 1;
        if (!once) *size = reps.known && *size != LAYA_MIL_UNKNOWN ? *size * reps.values[axis] : LAYA_MIL_UNKNOWN;
    }
    return LAYA_OK;
}

static laya_status infer_fill(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *value = laya_mil_parameter_type(in, "value");
    laya_mil_integers shape;
    LAYA_TRY(laya_mil_get_integers(in, "shape", &shape));
    LAYA_TRY(laya_mil_check_scalar(in, "value"));
    outputs[0].dtype = value ? value->dtype : LAYA_MIL_FP32;
    for (uint32_t axis = 0; axis < shape.count; axis++) {
        int64_t size = shape.known ? shape.values[axis] : LAYA_MIL_UNKNOWN;
        if (shape.known && size < 0) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "parameter 'shape': expected no negative value, found %" PRId64, size);
        }
        LAYA_TRY(laya_mil_insert_dim(in, &outputs[0], axis, size));
    }
    return LAYA_OK;
}

/* Pairs before and after, for the last axes. */
static laya_status get_pads(const laya_mil_inference *in, uint32_t rank, laya_mil_integers *pad)
{
    LAYA_TRY(laya_mil_get_integers(in, "pad", pad));
    bool all = pad->count == 2 * (size_t)rank;
    if (pad->count % 2 != 0 || pad->count > 2 * (size_t)rank || (!pad->known && !all)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'pad': expected two values for each of at most %" PRIu32 " axes, found %zu", rank,
                         pad->count);
    }
    for (size_t at = 0; at < pad->count; at++) {
        if (pad->values[at] < 0) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "parameter 'pad': expected no negative value, found %" PRId64, pad->values[at]);
        }
    }
    return LAYA_OK;
}

static laya_status infer_pad(const laya_mil_inference *in, laya_mil_type *outputs)
{
    laya_mil_integers pad;
    const char *mode;
    outputs[0] = *laya_mil_parameter_type(in, "x");
    LAYA_TRY(get_pads(in, outputs[0].rank, &pad));
    LAYA_TRY(laya_mil_get_text(in, "mode", "constant", &mode));
    LAYA_TRY(laya_mil_check_scalar(in, "constant_val"));
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "replicate") != 0) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'mode': expected constant, reflect or replicate, found '%.50s'", mode);
    }
    uint32_t first = outputs[0].rank - (uint32_t)(pad.count / 2);
    for (uint32_t axis = first; axis < outputs[0].rank; axis++) {
        int64_t *size = &outputs[0].dims[axis];
        const int64_t *sides = &pad.values[2 * (axis - first)];
        *size = pad.known && *size != LAYA_MIL_UNKNOWN ? *size + sides[0] + sides[1] : LAYA_MIL_UNKNOWN;
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ table */

#define OLD LAYA_MIL_NUMBERS_OR_BOOLS
#define NEW LAYA_MIL_ALL_NUMBERS_OR_BOOLS
#define FLOATS LAYA_MIL_FLOATS
#define REQUIRED LAYA_MIL_REQUIRED
#define CONSTANT LAYA_MIL_CONSTANT
#define DEFAULTED (LAYA_MIL_DEFAULTED | LAYA_MIL_CONSTANT)

const laya_mil_operation laya_mil_shape_operations[] = {
    LAYA_MIL_FORM("transpose", 5, 6, infer_transpose, {"x", REQUIRED, OLD, 'T'},
                  {"perm", REQUIRED | CONSTANT, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("transpose", 7, 9, infer_transpose, {"x", REQUIRED, NEW, 'T'},
                  {"perm", REQUIRED | CONSTANT, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("reshape", 5, 6, infer_reshape, {"x", REQUIRED, OLD, 'T'}, {"shape", REQUIRED, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("reshape", 7, 9, infer_reshape, {"x", REQUIRED, NEW, 'T'},
                  {"shape", REQUIRED, LAYA_MIL_INDEXES, 0}),
    LAYA_MIL_FORM("expand_dims", 5, 6, infer_expand_dims, {"x", REQUIRED, OLD, 'T'},
                  {"axes", REQUIRED | CONSTANT, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("expand_dims", 7, 9, infer_expand_dims, {"x", REQUIRED, NEW, 'T'},
                  {"axes", REQUIRED | CONSTANT, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("squeeze", 5, 6, infer_squeeze, {"x", REQUIRED, OLD, 'T'}, {"axes", CONSTANT, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("squeeze", 7, 9, infer_squeeze, {"x", REQUIRED, NEW, 'T'}, {"axes", CONSTANT, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("concat", 5, 9, infer_concat, {"values", REQUIRED | LAYA_MIL_VARIADIC, NEW, 'T'},
                  {"axis", REQUIRED | CONSTANT, LAYA_MIL_INT32S, 0}, {"interleave", DEFAULTED, LAYA_MIL_BOOLS, 0}),
    LAYA_MIL_FORM("stack", 5, 9, infer_stack, {"values", REQUIRED | LAYA_MIL_VARIADIC, NEW, 'T'},
                  {"axis", REQUIRED | CONSTANT, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("tile", 5, 9, infer_tile, {"x", REQUIRED, OLD, 'T'}, {"reps", REQUIRED, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("fill", 5, 9, infer_fill, {"shape", REQUIRED, LAYA_MIL_INT32S, 0}, {"value", DEFAULTED, OLD, 'T'}),
    LAYA_MIL_FORM("pad", 5, 9, infer_pad, {"x", REQUIRED, FLOATS, 'T'}, {"pad", REQUIRED, LAYA_MIL_INT32S, 0},
                  {"mode", DEFAULTED, LAYA_MIL_STRINGS, 0}, {"constant_val", DEFAULTED, FLOATS, 'T'}),
    {0}};
