/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a tensor: split, slices, gather. */
#include "mil/infer.h"

#include <inttypes.h>

/* ------------------------------------------------------------------ split */

/* num_splits equal parts. */
static laya_status split_evenly(const laya_mil_inference *in, uint32_t axis, int64_t parts, laya_mil_type *outputs)
{
    int64_t size = laya_mil_parameter_type(in, "x")->dims[axis];
    if (parts < 1 || (size != LAYA_MIL_UNKNOWN && size % parts != 0)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'num_splits': %" PRId64 " elements cannot be split into %" PRId64 " equal parts",
                         size, parts);
    }
    for (uint32_t at = 0; at < in->op->output_count; at++)
        outputs[at].dims[axis] = size == LAYA_MIL_UNKNOWN ? size : size / parts;
    return LAYA_OK;
}

/* Parts of the sizes that split_sizes lists. */
static laya_status split_by_sizes(const laya_mil_inference *in, uint32_t axis, laya_mil_type *outputs)
{
    const laya_mil_constant *sizes = laya_mil_parameter_constant(in, "split_sizes");
    int64_t whole = laya_mil_parameter_type(in, "x")->dims[axis], total = 0;
    for (uint32_t at = 0; at < in->op->output_count; at++) {
        int64_t size;
        if (!sizes || !laya_mil_constant_integer(sizes, at, &size))
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'split_sizes': its values cannot be read");
        if (size < 0) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "parameter 'split_sizes': expected no negative value, found %" PRId64, size);
        }
        outputs[at].dims[axis] = size;
        total += size;
    }
    if (laya_mil_dims_agree(whole, total)) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "parameter 'split_sizes': expected a sum of %" PRId64 ", found %" PRId64, whole, total);
}

static laya_status infer_split(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x"), *sizes = laya_mil_parameter_type(in, "split_sizes");
    bool even = laya_mil_parameter_type(in, "num_splits") != NULL;
    uint32_t axis;
    int64_t parts = 0;
    LAYA_TRY(laya_mil_get_axis(in, "axis", x->rank, 0, &axis));
    LAYA_TRY(laya_mil_get_integer(in, "num_splits", 0, &parts));
    if (!even && !sizes)
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "one of 'num_splits' and 'split_sizes' is missing");
    if (sizes) LAYA_TRY(laya_mil_check_rank(in, "split_sizes", 1, 1));
    if ((even && parts != in->op->output_count) || (sizes && sizes->dims[0] != in->op->output_count)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "expected %" PRId64 " outputs, found %" PRIu32,
                         even ? parts : sizes->dims[0], in->op->output_count);
    }
    for (uint32_t at = 0; at < in->op->output_count; at++) outputs[at] = *x;
    return sizes ? split_by_sizes(in, axis, outputs) : split_evenly(in, axis, parts, outputs);
}

/* ------------------------------------------------------------------ slice_by_index */

typedef struct slice {
    laya_mil_integers begin, end, stride, begin_mask, end_mask, squeeze_mask;
} slice;

static laya_status get_slice(const laya_mil_inference *in, uint32_t rank, slice *out)
{
    LAYA_TRY(laya_mil_get_counted(in, "begin", rank, &out->begin));
    LAYA_TRY(laya_mil_get_counted(in, "end", rank, &out->end));
    LAYA_TRY(laya_mil_get_counted(in, "stride", rank, &out->stride));
    LAYA_TRY(laya_mil_get_counted(in, "begin_mask", rank, &out->begin_mask));
    LAYA_TRY(laya_mil_get_counted(in, "end_mask", rank, &out->end_mask));
    LAYA_TRY(laya_mil_get_counted(in, "squeeze_mask", rank, &out->squeeze_mask));
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (!out->stride.given) out->stride.values[axis] = 1;
        if (out->stride.values[axis] == 0)
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'stride': expected no zero");
    }
    return LAYA_OK;
}

/*
 * The number of elements that begin, begin + stride, … before end takes from an axis. Bounds below the first element are
 * moved to it, an end behind the last one to there; 0: nothing is taken, or begin lies behind the last element.
 */
static int64_t count_taken(const slice *bounds, uint32_t axis, int64_t size)
{
    int64_t stride = bounds->stride.values[axis], begin = bounds->begin.values[axis], end = bounds->end.values[axis];
    if (begin < 0) begin = begin + size > 0 ? begin + size : 0;
    if (end < 0) end = end + size > 0 ? end + size : 0;
    if (bounds->begin_mask.values[axis]) begin = stride > 0 ? 0 : size - 1;
    if (begin >= size) return 0;
    if (bounds->end_mask.values[axis]) end = stride > 0 ? size : -1;
    if (end > size) end = size;
    int64_t distance = stride > 0 ? end - begin : begin - end, step = stride > 0 ? stride : -stride;
    return distance > 0 ? (distance + step - 1) / step : 0;
}

static laya_status slice_axis(const laya_mil_inference *in, const slice *bounds, uint32_t axis, int64_t size,
                              int64_t *taken)
{
    bool all = bounds->begin_mask.values[axis] && bounds->end_mask.values[axis];
    int64_t stride = bounds->stride.values[axis];
    *taken = LAYA_MIL_UNKNOWN;
    if (size == LAYA_MIL_UNKNOWN) {
        bool known = bounds->begin.known && bounds->end.known && !all;
        int64_t begin = bounds->begin.values[axis], end = bounds->end.values[axis];
        bool inside = !bounds->begin_mask.values[axis] && !bounds->end_mask.values[axis];
        if (known && inside && begin >= 0 && end == begin + 1 && stride > 0) *taken = 1;
        return LAYA_OK;
    }
    bool begin_known = bounds->begin.known || bounds->begin_mask.values[axis];
    bool end_known = bounds->end.known || bounds->end_mask.values[axis];
    if (!begin_known || !end_known) return LAYA_OK;
    *taken = count_taken(bounds, axis, size);
    if (*taken > 0) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "begin %" PRId64 ", end %" PRId64 ", stride %" PRId64 " take nothing from the %" PRId64
                     " elements of axis %" PRIu32,
                     bounds->begin.values[axis], bounds->end.values[axis], stride, size, axis);
}

/* An axis of which one element is taken and which is dropped. */
static laya_status check_squeezed(const laya_mil_inference *in, const slice *bounds, uint32_t axis, int64_t size)
{
    int64_t begin = bounds->begin.values[axis];
    if (!bounds->begin.known || bounds->begin_mask.values[axis] || size == LAYA_MIL_UNKNOWN) return LAYA_OK;
    if (begin >= -size && begin < size) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "parameter 'begin': %" PRId64 " is out of range for the %" PRId64 " elements of axis %" PRIu32,
                     begin, size, axis);
}

static laya_status infer_slice_by_index(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x");
    slice bounds;
    laya_mil_type out = {.kind = LAYA_MIL_TENSOR, .dtype = x->dtype};
    LAYA_TRY(laya_mil_check_rank(in, "x", 1, LAYA_MIL_MAX_RANK));
    LAYA_TRY(get_slice(in, x->rank, &bounds));
    for (uint32_t axis = 0; axis < x->rank; axis++) {
        int64_t taken;
        if (bounds.squeeze_mask.values[axis]) {
            LAYA_TRY(check_squeezed(in, &bounds, axis, x->dims[axis]));
            continue;
        }
        LAYA_TRY(slice_axis(in, &bounds, axis, x->dims[axis], &taken));
        LAYA_TRY(laya_mil_insert_dim(in, &out, out.rank, taken));
    }
    outputs[0] = out;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ slice_by_size */

static laya_status infer_slice_by_size(const laya_mil_inference *in, laya_mil_type *outputs)
{
    laya_mil_integers begin, size;
    outputs[0] = *laya_mil_parameter_type(in, "x");
    LAYA_TRY(laya_mil_get_counted(in, "begin", outputs[0].rank, &begin));
    LAYA_TRY(laya_mil_get_counted(in, "size", outputs[0].rank, &size));
    for (uint32_t axis = 0; axis < outputs[0].rank; axis++) {
        int64_t whole = outputs[0].dims[axis], from = begin.values[axis], taken = LAYA_MIL_UNKNOWN;
        bool fixed = begin.known && whole != LAYA_MIL_UNKNOWN;
        if (from < 0 && fixed) from += whole;
        if (size.known && size.values[axis] != -1)
            taken = size.values[axis];
        else if (size.known && fixed)
            taken = whole - from;
        bool outside = (taken != LAYA_MIL_UNKNOWN && taken < 1) || (whole != LAYA_MIL_UNKNOWN && taken > whole);
        if (outside || (fixed && (from < 0 || from >= whole || taken > whole - from))) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "begin %" PRId64 ", size %" PRId64 " are out of range for the %" PRId64
                             " elements of axis %" PRIu32,
                             begin.values[axis], size.values[axis], whole, axis);
        }
        outputs[0].dims[axis] = taken;
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ gather */

/* Constant indices lie inside the axis; up to CoreML6 negative ones count from the end. */
static laya_status check_indices(const laya_mil_inference *in, int64_t size)
{
    const laya_mil_constant *indices = laya_mil_parameter_constant(in, "indices");
    int64_t least = in->opset >= LAYA_MIL_COREML7 ? 0 : -size, index;
    if (!indices || size == LAYA_MIL_UNKNOWN) return LAYA_OK;
    for (uint64_t at = 0; laya_mil_constant_integer(indices, at, &index); at++) {
        if (index >= least && index < size) continue;
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'indices': expected %" PRId64 " to %" PRId64 ", found %" PRId64, least, size - 1,
                         index);
    }
    return LAYA_OK;
}

static laya_status infer_gather(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x"), *indices = laya_mil_parameter_type(in, "indices");
    uint32_t axis;
    int64_t batch;
    LAYA_TRY(laya_mil_check_rank(in, "x", 1, LAYA_MIL_MAX_RANK));
    LAYA_TRY(laya_mil_get_axis(in, "axis", x->rank, 0, &axis));
    LAYA_TRY(laya_mil_get_integer(in, "batch_dims", 0, &batch));
    LAYA_TRY(laya_mil_check_scalar(in, "validate_indices"));
    if (batch < 0 || batch > axis || batch > indices->rank) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'batch_dims': expected 0 to the axis %" PRIu32 " and the indices' rank %" PRIu32
                         ", found %" PRId64,
                         axis, indices->rank, batch);
    }
    for (uint32_t at = 0; at < batch; at++) {
        if (laya_mil_dims_agree(x->dims[at], indices->dims[at])) continue;
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'indices': expected %" PRId64 " elements on batch axis %" PRIu32
                         ", found %" PRId64,
                         x->dims[at], at, indices->dims[at]);
    }
    LAYA_TRY(check_indices(in, x->dims[axis]));
    laya_mil_type out = {.kind = LAYA_MIL_TENSOR, .dtype = x->dtype};
    for (uint32_t at = 0; at < axis; at++) LAYA_TRY(laya_mil_insert_dim(in, &out, out.rank, x->dims[at]));
    for (uint32_t at = (uint32_t)batch; at < indices->rank; at++)
        LAYA_TRY(laya_mil_insert_dim(in, &out, out.rank, indices->dims[at]));
    for (uint32_t at = axis + 1; at < x->rank; at++) LAYA_TRY(laya_mil_insert_dim(in, &out, out.rank, x->dims[at]));
    outputs[0] = out;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ table */

#define OLD LAYA_MIL_NUMBERS_OR_BOOLS
#define NEW LAYA_MIL_ALL_NUMBERS_OR_BOOLS
#define REQUIRED LAYA_MIL_REQUIRED
#define CONSTANT LAYA_MIL_CONSTANT
#define DEFAULTED (LAYA_MIL_DEFAULTED | LAYA_MIL_CONSTANT)

#define MASKS                                                                                                        \
    {"begin_mask", CONSTANT, LAYA_MIL_BOOLS, 0}, {"end_mask", CONSTANT, LAYA_MIL_BOOLS, 0},                          \
    {                                                                                                                \
        "squeeze_mask", CONSTANT, LAYA_MIL_BOOLS, 0                                                                  \
    }

const laya_mil_operation laya_mil_slice_operations[] = {
    LAYA_MIL_FORM("slice_by_index", 5, 6, infer_slice_by_index, {"x", REQUIRED, OLD, 'T'},
                  {"begin", REQUIRED, LAYA_MIL_INT32S, 'U'}, {"end", REQUIRED, LAYA_MIL_INT32S, 'U'},
                  {"stride", CONSTANT, LAYA_MIL_INT32S, 'U'}, MASKS),
    LAYA_MIL_FORM("slice_by_index", 7, 9, infer_slice_by_index, {"x", REQUIRED, NEW, 'T'},
                  {"begin", REQUIRED, LAYA_MIL_INDEXES, 'U'}, {"end", REQUIRED, LAYA_MIL_INDEXES, 'U'},
                  {"stride", CONSTANT, LAYA_MIL_INDEXES, 'U'}, MASKS),
    LAYA_MIL_FORM("slice_by_size", 5, 6, infer_slice_by_size, {"x", REQUIRED, OLD, 'T'},
                  {"begin", REQUIRED, LAYA_MIL_INT32S, 'U'}, {"size", REQUIRED, LAYA_MIL_INT32S, 'U'}),
    LAYA_MIL_FORM("slice_by_size", 7, 9, infer_slice_by_size, {"x", REQUIRED, NEW, 'T'},
                  {"begin", REQUIRED, LAYA_MIL_INDEXES, 'U'}, {"size", REQUIRED, LAYA_MIL_INDEXES, 'U'}),
    LAYA_MIL_FORM("gather", 5, 5, infer_gather, {"x", REQUIRED, LAYA_MIL_NUMBERS, 'T'},
                  {"indices", REQUIRED, LAYA_MIL_INT32S, 'I'}, {"axis", DEFAULTED, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("gather", 6, 6, infer_gather, {"x", REQUIRED, LAYA_MIL_NUMBERS, 'T'},
                  {"indices", REQUIRED, LAYA_MIL_INT32S | LAYA_MIL_WORDS, 'I'},
                  {"axis", DEFAULTED, LAYA_MIL_INT32S, 0}, {"batch_dims", DEFAULTED, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("gather", 7, 9, infer_gather, {"x", REQUIRED, LAYA_MIL_ALL_NUMBERS, 'T'},
                  {"indices", REQUIRED, LAYA_MIL_INT32S | LAYA_MIL_WORDS | LAYA_MIL_BYTES, 'I'},
                  {"axis", DEFAULTED, LAYA_MIL_INT32S, 0}, {"batch_dims", DEFAULTED, LAYA_MIL_INT32S, 0},
                  {"validate_indices", DEFAULTED, LAYA_MIL_BOOLS, 0}),
    {.type = "split",
     .since = LAYA_MIL_COREML5,
     .until = LAYA_MIL_COREML9,
     .parameters = {{"x", REQUIRED, OLD, 'T'},
                    {"num_splits", CONSTANT, LAYA_MIL_INT32S, 0},
                    {"split_sizes", CONSTANT, LAYA_MIL_INT32S, 0},
                    {"axis", REQUIRED | CONSTANT, LAYA_MIL_INT32S, 0}},
     .infer = infer_split,
     .outputs = LAYA_MIL_MANY_OUTPUTS},
    {0}};
