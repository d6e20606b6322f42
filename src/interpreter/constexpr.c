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
#include "coreml/weight_file.h"
#include "interpreter/step.h"

#include <inttypes.h>
#include <string.h>

/* An operation to expand: its form, its parameters' constants, the output. */
typedef struct expansion {
    const laya_mil_op *op;
    const laya_mil_operation *form;
    const laya_mil_constant *constants[LAYA_MIL_MAX_PARAMETERS]; /* in the order of the form's parameters */
    laya_mil_type type;                                          /* of the output */
    uint64_t count;                                              /* elements of the output */
    unsigned char *out;                                          /* bytes of the output */
    laya_error *error;
} expansion;

/* ------------------------------------------------------------------ parameters */

/* The constant of one of the form's parameters; NULL: not given, of those that are not required. */
static const laya_mil_constant *parameter(const expansion *in, const char *name)
{
    size_t at = 0;
    while (strcmp(in->form->parameters[at].name, name) != 0) at++;
    return in->constants[at];
}

/* A scalar axis of `rank` axes, counted from the first; 0 where it is not given. */
static uint32_t axis_parameter(const expansion *in, const char *name, uint32_t rank)
{
    const laya_mil_constant *constant = parameter(in, name);
    int64_t axis = 0;
    size_t count;
    if (constant && laya_mil_constant_integers(constant, &axis, 1, &count) && axis < 0) axis += rank;
    return (uint32_t)axis;
}

/* Find a parameter's constant. Its bytes are at hand and as many as its type says. */
static laya_status find_constant(const expansion *in, const laya_mil_parameter *wanted,
                                 const laya_mil_constant **constant)
{
    uint64_t size;
    const laya_mil_argument *argument = laya_mil_find_argument(in->op, wanted->name);
    *constant = argument ? laya_mil_bound_constant(&argument->bindings[0]) : NULL;
    if (in->form->in_attributes) *constant = laya_mil_find_attribute(in->op, wanted->name);
    if (*constant ? (*constant)->strings != NULL : !(wanted->flags & LAYA_MIL_REQUIRED)) return LAYA_OK;
    bool known = *constant && laya_mil_type_size(&(*constant)->type, &size) && size == (*constant)->size;
    if (known && ((*constant)->bytes || size == 0)) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': its bytes cannot be read", wanted->name);
}

/* ------------------------------------------------------------------ packed elements */

#define PART 4096u /* elements that are unpacked at once */

/* Eight elements are `bits` whole bytes. */
static void unpack_eight(const unsigned char *packed, unsigned bits, unsigned char *out)
{
    uint64_t window = 0;
    for (unsigned byte = 0; byte < bits; byte++) window |= (uint64_t)packed[byte] << (8 * byte);
    for (unsigned i = 0; i < 8; i++) out[i] = (unsigned char)(window >> (i * bits) & ((1u << bits) - 1));
}

/* Elements first … first + count - 1, one a byte; first is a multiple of eight, or count is less than eight. */
static void unpack(const unsigned char *packed, unsigned bits, uint64_t first, size_t count, unsigned char *out)
{
    if (bits == 8) {
        memcpy(out, packed + first, count);
        return;
    }
    size_t at = 0;
    for (; count - at >= 8; at += 8) unpack_eight(packed + (first + at) / 8 * bits, bits, out + at);
    for (; at < count; at++) out[at] = (unsigned char)laya_unpack_bits(packed, first + at, bits);
}

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
        unpack(constant->bytes, 4, first, count, nibbles);
        for (size_t i = 0; i < count; i++) out[i] = (float)((nibbles[i] ^ 8) - 8);
        return;
    case LAYA_MIL_UINT4:
        unpack(constant->bytes, 4, first, count, nibbles);
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
    bool half = in->type.dtype == LAYA_MIL_FP16;
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

/* ------------------------------------------------------------------ blocks */

/*
 * A walk over the elements of a tensor that is divided into `groups` blocks on every axis. Elements that follow each
 * other and belong to one block are a run. Blocks are counted in C order.
 */
typedef struct walk {
    uint32_t rank;                    /* up to the last axis with more than one block */
    int64_t sides[LAYA_MIL_MAX_RANK]; /* steps inside of a block; 1 on the last axis, whose side is part of a run */
    int64_t groups[LAYA_MIL_MAX_RANK];
    int64_t inside[LAYA_MIL_MAX_RANK], group[LAYA_MIL_MAX_RANK]; /* where it stands */
    uint64_t run, left;                                          /* elements of a run, and those still to come */
    uint64_t block;                                              /* that the run belongs to */
} walk;

/* groups NULL: one block. */
static walk start_walk(const laya_mil_type *type, const int64_t *groups)
{
    walk at = {.rank = type->rank, .run = 1};
    while (at.rank > 0 && (!groups || groups[at.rank - 1] == 1)) at.run *= (uint64_t)type->dims[--at.rank];
    for (uint32_t axis = 0; axis < at.rank; axis++) {
        at.groups[axis] = groups[axis];
        at.sides[axis] = type->dims[axis] / groups[axis];
    }
    if (at.rank > 0) {
        at.run *= (uint64_t)at.sides[at.rank - 1];
        at.sides[at.rank - 1] = 1;
    }
    at.left = at.run;
    return at;
}

static void next_run(walk *at)
{
    uint64_t stride = 1;
    at->left = at->run;
    for (uint32_t axis = at->rank; axis > 0; axis--) {
        if (++at->inside[axis - 1] < at->sides[axis - 1]) return;
        at->inside[axis - 1] = 0;
        at->block += stride;
        if (++at->group[axis - 1] < at->groups[axis - 1]) return;
        at->group[axis - 1] = 0;
        stride *= (uint64_t)at->groups[axis - 1];
        at->block -= stride;
    }
}

/* The elements of the current run, at most `limit`; the walk moves on behind them in step_over. */
static size_t run_ahead(const walk *at, size_t limit)
{
    return at->left < limit ? (size_t)at->left : limit;
}

static void step_over(walk *at, size_t count)
{
    at->left -= count;
    if (at->left == 0) next_run(at);
}

/* ------------------------------------------------------------------ palettes */

/* Tables of entries of `vector` elements of `width` bytes, and the indices into them. */
typedef struct palette {
    const laya_mil_constant *lut, *indices;
    uint64_t count; /* of indices */
    unsigned bits;  /* of an index */
    unsigned width;
    size_t vector;
    uint64_t table; /* bytes of a table */
    uint64_t inner; /* elements of the output from one element of an entry to the next */
} palette;

/* Copy the elements that indices name; a loop for each width, so that copies are single moves. */
static void look_up(const unsigned char *entries, unsigned width, const unsigned char *indices, size_t count,
                    unsigned char *out)
{
    if (width == 1) {
        for (size_t i = 0; i < count; i++) out[i] = entries[indices[i]];
    } else if (width == 2) {
        for (size_t i = 0; i < count; i++) memcpy(out + 2 * i, entries + 2 * (size_t)indices[i], 2);
    } else {
        for (size_t i = 0; i < count; i++) memcpy(out + 4 * i, entries + 4 * (size_t)indices[i], 4);
    }
}

/* The same for entries of several elements, which lie `inner` apart; `first` is the place of the first index. */
static void look_up_vectors(const palette *from, const unsigned char *entries, const unsigned char *indices,
                            uint64_t first, size_t count, unsigned char *out)
{
    size_t width = from->width, entry = from->vector * width;
    for (size_t i = 0; i < count; i++) {
        uint64_t outer = (first + i) / from->inner, rest = (first + i) % from->inner;
        unsigned char *place = out + (outer * from->vector * from->inner + rest) * width;
        for (size_t e = 0; e < from->vector; e++)
            memcpy(place + e * from->inner * width, entries + indices[i] * entry + e * width, width);
    }
}

static void expand_palette(const expansion *in, const palette *from, walk at)
{
    unsigned char indices[PART];
    for (uint64_t first = 0; first < from->count; first += PART) {
        size_t part = from->count - first < PART ? (size_t)(from->count - first) : PART, taken;
        unpack(from->indices->bytes, from->bits, first, part, indices);
        for (size_t i = 0; i < part; i += taken) {
            const unsigned char *entries = from->lut->bytes + at.block * from->table;
            taken = run_ahead(&at, part - i);
            if (from->vector == 1)
                look_up(entries, from->width, indices + i, taken, in->out + (first + i) * from->width);
            else
                look_up_vectors(from, entries, indices + i, first + i, taken, in->out);
            step_over(&at, taken);
        }
    }
}

static void expand_packed_lut(const expansion *in)
{
    palette from = {
        .lut = parameter(in, "lut"), .indices = parameter(in, "indices"), .count = in->count, .vector = 1};
    from.width = laya_mil_dtype_bits(in->type.dtype) / 8;
    while (INT64_C(1) << from.bits < from.lut->type.dims[0]) from.bits++;
    expand_palette(in, &from, start_walk(&in->type, NULL));
}

static void expand_grouped_lut(const expansion *in)
{
    palette from = {.lut = parameter(in, "lut"), .indices = parameter(in, "indices"), .inner = 1};
    const laya_mil_type *type = &from.indices->type;
    from.bits = laya_mil_dtype_bits(type->dtype);
    from.width = laya_mil_dtype_bits(in->type.dtype) / 8;
    from.vector = (size_t)from.lut->type.dims[type->rank + 1];
    from.count = in->count / from.vector;
    from.table = ((uint64_t)1 << from.bits) * from.vector * from.width;
    for (uint32_t after = axis_parameter(in, "vector_axis", type->rank) + 1; after < type->rank; after++)
        from.inner *= (uint64_t)type->dims[after];
    expand_palette(in, &from, start_walk(type, from.lut->type.dims));
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

static void expand_values(const expansion *in, const affine *by, walk at)
{
    float values[PART];
    for (uint64_t first = 0; first < in->count; first += PART) {
        size_t part = in->count - first < PART ? (size_t)(in->count - first) : PART, taken;
        widen(by->data, first, part, values);
        for (size_t i = 0; i < part; i += taken) {
            float scale = element(by->scale, by->scale->type.rank == 0 ? 0 : at.block);
            float shift = by->shift ? element(by->shift, by->shift->type.rank == 0 ? 0 : at.block) : 0;
            taken = run_ahead(&at, part - i);
            scale_values(by, scale, shift, taken, values + i);
            step_over(&at, taken);
        }
        store(in, first, part, values);
    }
}

/* Scale and zero point are a scalar each, or have an element for each element of the axis. */
static void expand_affine(const expansion *in)
{
    affine by = {parameter(in, "quantized_data"), parameter(in, "scale"), parameter(in, "zero_point"), false, false};
    int64_t groups[LAYA_MIL_MAX_RANK];
    uint32_t chosen = axis_parameter(in, "axis", in->type.rank);
    for (uint32_t axis = 0; axis < in->type.rank; axis++) groups[axis] = axis == chosen ? in->type.dims[axis] : 1;
    expand_values(in, &by, start_walk(&in->type, groups));
}

/* In the scale's type. An offset of fp32 makes a computation in float32 of the rounded value, as NumPy promotes it. */
static void expand_blockwise(const expansion *in)
{
    affine by = {.data = parameter(in, "data"), .scale = parameter(in, "scale"), .shift = parameter(in, "offset")};
    bool half = by.scale->type.dtype == LAYA_MIL_FP16;
    by.half_data = half && by.data->type.dtype == LAYA_MIL_FP32;
    by.half = half && by.shift && by.shift->type.dtype != LAYA_MIL_FP32;
    expand_values(in, &by, start_walk(&in->type, by.scale->type.dims));
}

static void expand_cast(const expansion *in)
{
    const laya_mil_constant *source = parameter(in, "source_val");
    float values[PART];
    for (uint64_t first = 0; first < in->count; first += PART) {
        size_t part = in->count - first < PART ? (size_t)(in->count - first) : PART;
        widen(source, first, part, values);
        store(in, first, part, values);
    }
}

/* ------------------------------------------------------------------ sparse values */

/* Values in order where the mask has ones, zeros elsewhere. The output is cleared. */
static void expand_sparse(const expansion *in)
{
    const laya_mil_constant *mask = parameter(in, "mask"), *values = parameter(in, "nonzero_data");
    unsigned bits = laya_mil_dtype_bits(values->type.dtype), width = bits / 8;
    uint64_t used = 0;
    for (uint64_t i = 0; i < in->count; i++) {
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
    const laya_mil_constant *mask = parameter(in, "mask");
    uint64_t ones = 0, values = (uint64_t)parameter(in, "nonzero_data")->type.dims[0];
    for (uint64_t i = 0; i < in->count; i++) ones += laya_unpack_bits(mask->bytes, i, 1);
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
    {"constexpr_lut_to_dense", true, expand_packed_lut, NULL},
    {"constexpr_lut_to_dense", false, expand_grouped_lut, NULL},
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

/* Types are right and are the declared ones, which users of the output rely on; all bytes are there. */
static laya_status check_expansion(expansion *in, laya_mil_opset opset)
{
    const laya_mil_op *op = in->op;
    LAYA_TRY(laya_mil_infer(op, opset, &in->type, in->error));
    if (!laya_mil_type_equal(&in->type, &op->outputs[0]->type)) {
        char wanted[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "the output is declared as %s, expected %s",
                         laya_mil_type_text(&op->outputs[0]->type, found), laya_mil_type_text(&in->type, wanted));
    }
    for (size_t at = 0; in->form->parameters[at].name; at++)
        LAYA_TRY(find_constant(in, &in->form->parameters[at], &in->constants[at]));
    if (laya_mil_type_count(&in->type, &in->count)) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "more elements than can be counted");
}

laya_status laya_constexpr_expand(const laya_mil_op *op, laya_mil_opset opset, const laya_allocator *allocator,
                                  unsigned char **bytes, uint64_t *size, laya_error *error)
{
    expansion in = {.op = op, .form = laya_mil_operation_find(op->type, opset), .error = error};
    const struct expander *expander = in.form && op->output_count == 1 ? find_expander(op, in.form) : NULL;
    if (!expander) {
        const char *name = laya_mil_opset_name(opset);
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%.200s (%.100s): this operation cannot be expanded in %s",
                         laya_mil_op_label(op), op->type, name ? name : "this opset");
    }
    LAYA_TRY(check_expansion(&in, opset));
    if (expander->check) LAYA_TRY(expander->check(&in));
    if (!laya_mil_type_size(&in.type, size) || *size > SIZE_MAX) return laya_fail_memory(error, 0);
    in.out = laya_alloc_zero(allocator, 1, *size > 0 ? (size_t)*size : 1);
    if (!in.out) return laya_fail_memory(error, (size_t)*size);
    expander->expand(&in);
    *bytes = in.out;
    return LAYA_OK;
}
