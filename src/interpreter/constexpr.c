/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expansion of constants that are stored compressed: palettes, quantized values, sparse values.
 *
 * The precision of each is that of coremltools' evaluator, so that expanded bytes are equal to its: palettes and sparse
 * values are copied; affine values are computed in float32 and rounded to the scale's type; blockwise ones are computed
 * in the scale's type, every operation rounded.
 */
#include "base/error.h"
#include "base/half.h"
#include "coreml/lut.h"
#include "coreml/weight_file.h"
#include "interpreter/step.h"

#include <inttypes.h>
#include <string.h>

#define PART 4096u /* elements that are widened at once */

/* An operation to expand, into the bytes of its output. */
typedef struct expansion {
    const laya_constexpr *from;
    unsigned char *out;
    laya_error *error;
} expansion;

/* ------------------------------------------------------------------ values */

static void widen_bytes(const unsigned char *bytes, bool is_signed, size_t count, float *out)
{
    if (is_signed)
        for (size_t i = 0; i < count; i++) out[i] = (float)((bytes[i] ^ 128) - 128);
    else
        for (size_t i = 0; i < count; i++) out[i] = (float)bytes[i];
}

/* Elements first … first + count - 1, at most PART, of an integer or floating type, exactly. */
static void widen(const laya_mil_constant *constant, uint64_t first, size_t count, float *out)
{
    unsigned char nibbles[PART];
    switch (constant->type.dtype) {
    case LAYA_MIL_FP16: laya_widen(constant->bytes + 2 * first, LAYA_F16, count, out); return;
    case LAYA_MIL_FP32: laya_widen(constant->bytes + 4 * first, LAYA_F32, count, out); return;
    case LAYA_MIL_INT4:
        laya_unpack_range(constant->bytes, 4, first, count, nibbles);
        for (size_t i = 0; i < count; i++) out[i] = (float)((nibbles[i] ^ 8) - 8);
        return;
    case LAYA_MIL_UINT4:
        laya_unpack_range(constant->bytes, 4, first, count, nibbles);
        widen_bytes(nibbles, false, count, out);
        return;
    default: widen_bytes(constant->bytes + first, constant->type.dtype == LAYA_MIL_INT8, count, out);
    }
}

/* One element. */
static float element(const laya_mil_constant *constant, uint64_t at)
{
    const unsigned char *bytes = constant->bytes;
    float value;
    if (constant->type.dtype == LAYA_MIL_FP16)
        return laya_half_to_float((uint16_t)(bytes[2 * at] | bytes[2 * at + 1] << 8));
    widen(constant, at, 1, &value);
    return value;
}

static float round_half(float value)
{
    return laya_half_to_float(laya_float_to_half(value));
}

/* Store values in the type of the output, fp16 or fp32. */
static void store(const expansion *in, uint64_t first, size_t count, const float *values)
{
    bool half = in->from->type.dtype == LAYA_MIL_FP16;
    unsigned char *out = in->out + first * (half ? 2 : 4);
    for (size_t i = 0; half && i < count; i++) {
        uint16_t bits = laya_float_to_half(values[i]);
        *out++ = (unsigned char)bits;
        *out++ = (unsigned char)(bits >> 8);
    }
    for (size_t i = 0; !half && i < count; i++) {
        uint32_t bits = laya_bits_of_float(values[i]);
        for (unsigned byte = 0; byte < 4; byte++) *out++ = (unsigned char)(bits >> (8 * byte));
    }
}

/* ------------------------------------------------------------------ palettes */

static void expand_lut(const expansion *in)
{
    laya_lut lut = laya_lut_of(in->from);
    laya_lut_expand(&lut, in->out);
}

/* ------------------------------------------------------------------ quantized values */

/* scale * (value - shift), both of the element's block. */
typedef struct affine {
    const laya_mil_constant *data, *scale, *shift; /* shift NULL: 0 */
    bool half_data, half;                          /* the value, and the difference, are rounded to fp16 */
} affine;

/* `count` values of one block, in place. */
static void scale_values(const affine *by, float scale, float shift, size_t count, float *values)
{
    for (size_t i = 0; i < count; i++) {
        float value = (by->half_data ? round_half(values[i]) : values[i]) - shift;
        values[i] = scale * (by->half ? round_half(value) : value);
    }
}

static void expand_values(const expansion *in, const affine *by, laya_block_walk at)
{
    float values[PART];
    for (uint64_t first = 0; first < in->from->count; first += PART) {
        size_t part = in->from->count - first < PART ? (size_t)(in->from->count - first) : PART, taken;
        widen(by->data, first, part, values);
        for (size_t i = 0; i < part; i += taken) {
            float scale = element(by->scale, by->scale->type.rank == 0 ? 0 : at.block);
            float shift = by->shift ? element(by->shift, by->shift->type.rank == 0 ? 0 : at.block) : 0;
            taken = laya_block_walk_ahead(&at, part - i);
            scale_values(by, scale, shift, taken, values + i);
            laya_block_walk_over(&at, taken);
        }
        store(in, first, part, values);
    }
}

/* Scale and zero point are a scalar each, or have an element for each element of the axis. */
static void expand_affine(const expansion *in)
{
    affine by = {laya_constexpr_parameter(in->from, "quantized_data"), laya_constexpr_parameter(in->from, "scale"),
                 laya_constexpr_parameter(in->from, "zero_point"), false, false};
    int64_t groups[LAYA_MIL_MAX_RANK];
    uint32_t chosen = laya_constexpr_axis(in->from, "axis", in->from->type.rank);
    for (uint32_t axis = 0; axis < in->from->type.rank; axis++)
        groups[axis] = axis == chosen ? in->from->type.dims[axis] : 1;
    expand_values(in, &by, laya_block_walk_start(&in->from->type, groups));
}

/* In the scale's type. An offset of fp32 makes a computation in float32 of the rounded value, as NumPy promotes it. */
static void expand_blockwise(const expansion *in)
{
    affine by = {.data = laya_constexpr_parameter(in->from, "data"),
                 .scale = laya_constexpr_parameter(in->from, "scale"),
                 .shift = laya_constexpr_parameter(in->from, "offset")};
    bool half = by.scale->type.dtype == LAYA_MIL_FP16;
    by.half_data = half && by.data->type.dtype == LAYA_MIL_FP32;
    by.half = half && by.shift && by.shift->type.dtype != LAYA_MIL_FP32;
    expand_values(in, &by, laya_block_walk_start(&in->from->type, by.scale->type.dims));
}

static void expand_cast(const expansion *in)
{
    const laya_mil_constant *source = laya_constexpr_parameter(in->from, "source_val");
    float values[PART];
    for (uint64_t first = 0; first < in->from->count; first += PART) {
        size_t part = in->from->count - first < PART ? (size_t)(in->from->count - first) : PART;
        widen(source, first, part, values);
        store(in, first, part, values);
    }
}

/* ------------------------------------------------------------------ sparse values */

/* Values in order where the mask has ones, zeros elsewhere. The output is cleared. */
static void expand_sparse(const expansion *in)
{
    const laya_mil_constant *mask = laya_constexpr_parameter(in->from, "mask"),
                            *values = laya_constexpr_parameter(in->from, "nonzero_data");
    unsigned bits = laya_mil_dtype_bits(values->type.dtype), width = bits / 8;
    uint64_t used = 0;
    for (uint64_t i = 0; i < in->from->count; i++) {
        if (!laya_unpack_bits(mask->bytes, i, 1)) continue;
        if (width > 0) {
            memcpy(in->out + i * width, values->bytes + used * width, width);
        } else {
            unsigned nibble = laya_unpack_bits(values->bytes, used, bits);
            in->out[i / 2] = (unsigned char)(in->out[i / 2] | nibble << (i % 2 * 4));
        }
        used++;
    }
}

/* The sparse forms' number of ones, which the types show only where the mask's bytes were at hand. */
static laya_status check_ones(const expansion *in)
{
    const laya_mil_constant *mask = laya_constexpr_parameter(in->from, "mask");
    uint64_t ones = 0, values = (uint64_t)laya_constexpr_parameter(in->from, "nonzero_data")->type.dims[0];
    for (uint64_t i = 0; i < in->from->count; i++) ones += laya_unpack_bits(mask->bytes, i, 1);
    if (ones == values) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "parameter 'nonzero_data': expected %" PRIu64 " values as 'mask' says, found %" PRIu64, ones,
                     values);
}

/* ------------------------------------------------------------------ operations */

static const struct expander {
    const char *type;
    bool in_attributes; /* the form that it is for */
    void (*expand)(const expansion *in);
    laya_status (*check)(const expansion *in); /* of the values; NULL: any are right */
} expanders[] = {
    {"constexpr_lut_to_dense", true, expand_lut, NULL},
    {"constexpr_lut_to_dense", false, expand_lut, NULL},
    {"constexpr_affine_dequantize", true, expand_affine, NULL},
    {"constexpr_blockwise_shift_scale", false, expand_blockwise, NULL},
    {"constexpr_cast", true, expand_cast, NULL},
    {"constexpr_cast", false, expand_cast, NULL},
    {"constexpr_sparse_to_dense", true, expand_sparse, check_ones},
    {"constexpr_sparse_to_dense", false, expand_sparse, check_ones},
};

static const struct expander *find_expander(const laya_mil_op *op, const laya_mil_operation *form)
{
    for (size_t at = 0; at < sizeof expanders / sizeof *expanders; at++) {
        if (expanders[at].in_attributes == form->in_attributes && strcmp(expanders[at].type, op->type) == 0)
            return &expanders[at];
    }
    return NULL;
}

laya_status laya_constexpr_expand(const laya_mil_op *op, laya_mil_opset opset, const laya_allocator *allocator,
                                  unsigned char **bytes, uint64_t *size, laya_error *error)
{
    laya_constexpr from;
    LAYA_TRY(laya_constexpr_read(op, opset, &from, error));
    const struct expander *expander = find_expander(op, from.form);
    if (!expander) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "%.200s (%.100s): the interpreter cannot expand this operation", laya_mil_op_label(op),
                         op->type);
    }
    expansion in = {.from = &from, .error = error};
    if (expander->check) LAYA_TRY(expander->check(&in));
    if (!laya_mil_type_size(&from.type, size) || *size > SIZE_MAX) return laya_fail_memory(error, 0);
    in.out = laya_alloc_zero(allocator, 1, *size > 0 ? (size_t)*size : 1);
    if (!in.out) return laya_fail_memory(error, (size_t)*size);
    expander->expand(&in);
    *bytes = in.out;
    return LAYA_OK;
}
