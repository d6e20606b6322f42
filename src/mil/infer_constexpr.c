/* SPDX-License-Identifier: Apache-2.0 */
/* Constants, constants that are stored compressed, and states. */
#include "mil/infer.h"

#include <inttypes.h>
#include <string.h>

static laya_status infer_const(const laya_mil_inference *in, laya_mil_type *outputs)
{
    outputs[0] = *laya_mil_parameter_type(in, "val");
    return LAYA_OK;
}

/* ------------------------------------------------------------------ look-up tables */

/* The number of bits whose values are as many as the table's entries; 0: not a power of two up to 256. */
static unsigned index_bits(int64_t entries)
{
    for (unsigned bits = 1; bits <= 8; bits++) {
        if (entries == INT64_C(1) << bits) return bits;
    }
    return 0;
}

/* The shape that a constant lists, into outputs[0], and its number of elements. */
static laya_status get_listed_shape(const laya_mil_inference *in, laya_mil_type *output, uint64_t *count)
{
    laya_mil_integers shape;
    LAYA_TRY(laya_mil_get_integers(in, "shape", &shape));
    for (uint32_t axis = 0; axis < shape.count; axis++)
        LAYA_TRY(laya_mil_insert_dim(in, output, axis, shape.values[axis]));
    if (laya_mil_type_count(output, count) && *count <= INT64_MAX) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'shape': more elements than can be counted");
}

/* A vector of ceil(count * bits / 8) bytes. */
static laya_status check_packed(const laya_mil_inference *in, const char *name, uint64_t count, unsigned bits)
{
    int64_t bytes = (int64_t)(count / 8 * bits + (count % 8 * bits + 7) / 8);
    return laya_mil_check_dims(in, name, 1, &bytes);
}

static laya_status infer_packed_lut(const laya_mil_inference *in, laya_mil_type *outputs)
{
    uint64_t count;
    LAYA_TRY(laya_mil_check_rank(in, "lut", 1, 1));
    const laya_mil_type *lut = laya_mil_parameter_type(in, "lut");
    unsigned bits = index_bits(lut->dims[0]);
    if (bits != 1 && bits != 2 && bits != 4 && bits != 6 && bits != 8) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "attribute 'lut': expected 2, 4, 16, 64 or 256 entries, found %" PRId64, lut->dims[0]);
    }
    outputs[0].dtype = lut->dtype;
    LAYA_TRY(get_listed_shape(in, &outputs[0], &count));
    return check_packed(in, "indices", count, bits);
}

/* The last two axes of a grouped table: entries, and elements of an entry. */
static laya_status check_entries(const laya_mil_inference *in, const laya_mil_type *indices, const laya_mil_type *lut)
{
    int64_t entries = lut->dims[indices->rank];
    unsigned bits = index_bits(entries);
    if (bits == 0 || bits != laya_mil_dtype_bits(indices->dtype)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'lut': expected %u entries for indices of %s, found %" PRId64,
                         1u << laya_mil_dtype_bits(indices->dtype), laya_mil_dtype_name(indices->dtype), entries);
    }
    if (lut->dims[indices->rank + 1] >= 1) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'lut': expected entries of at least one element");
}

/* A number of groups on every axis: each divides the axis. */
static laya_status check_groups(const laya_mil_inference *in, const char *name, const laya_mil_type *groups,
                                const laya_mil_type *data)
{
    for (uint32_t axis = 0; axis < data->rank; axis++) {
        int64_t size = data->dims[axis], parts = groups->dims[axis];
        if (size >= 0 && parts >= 1 && size % parts == 0) continue;
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter '%s': %" PRId64 " groups do not divide the %" PRId64 " elements of axis %" PRIu32,
                         name, parts, size, axis);
    }
    return LAYA_OK;
}

static laya_status infer_grouped_lut(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *indices = laya_mil_parameter_type(in, "indices"), *lut = laya_mil_parameter_type(in, "lut");
    LAYA_TRY(laya_mil_check_rank(in, "indices", 1, LAYA_MIL_MAX_RANK - 2));
    LAYA_TRY(laya_mil_check_rank(in, "lut", indices->rank + 2, indices->rank + 2));
    LAYA_TRY(check_groups(in, "lut", lut, indices));
    LAYA_TRY(check_entries(in, indices, lut));
    outputs[0] = *indices;
    outputs[0].dtype = lut->dtype;
    int64_t elements = lut->dims[indices->rank + 1];
    if (laya_mil_parameter_type(in, "vector_axis")) {
        uint32_t axis;
        LAYA_TRY(laya_mil_get_axis(in, "vector_axis", indices->rank, 0, &axis));
        outputs[0].dims[axis] *= elements;
        return LAYA_OK;
    }
    if (elements == 1) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "parameter 'vector_axis' is missing: entries of 'lut' have %" PRId64 " elements", elements);
}

/* ------------------------------------------------------------------ quantized */

/* A scalar, or a vector with a value for each element of the axis. */
static laya_status check_per_axis(const laya_mil_inference *in, const char *name, int64_t size)
{
    return laya_mil_parameter_type(in, name)->rank == 0 ? LAYA_OK : laya_mil_check_dims(in, name, 1, &size);
}

static laya_status infer_affine(const laya_mil_inference *in, laya_mil_type *outputs)
{
    uint32_t axis;
    outputs[0] = *laya_mil_parameter_type(in, "quantized_data");
    LAYA_TRY(laya_mil_get_axis(in, "axis", outputs[0].rank, 0, &axis));
    LAYA_TRY(check_per_axis(in, "scale", outputs[0].dims[axis]));
    LAYA_TRY(check_per_axis(in, "zero_point", outputs[0].dims[axis]));
    outputs[0].dtype = laya_mil_parameter_type(in, "scale")->dtype;
    return LAYA_OK;
}

static laya_status infer_blockwise(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *data = laya_mil_parameter_type(in, "data"), *scale = laya_mil_parameter_type(in, "scale");
    const laya_mil_type *offset = laya_mil_parameter_type(in, "offset");
    LAYA_TRY(laya_mil_check_rank(in, "data", 1, LAYA_MIL_MAX_RANK));
    LAYA_TRY(laya_mil_check_rank(in, "scale", data->rank, data->rank));
    LAYA_TRY(check_groups(in, "scale", scale, data));
    LAYA_TRY(laya_mil_check_dims(in, "offset", scale->rank, scale->dims));
    bool is_float = offset && (LAYA_MIL_FLOATS >> offset->dtype & 1);
    if (offset && !is_float && offset->dtype != data->dtype) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'offset': expected fp16, fp32 or %s, found %s",
                         laya_mil_dtype_name(data->dtype), laya_mil_dtype_name(offset->dtype));
    }
    outputs[0] = *data;
    outputs[0].dtype = scale->dtype;
    return LAYA_OK;
}

static laya_status infer_constexpr_cast(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const char *dtype;
    LAYA_TRY(laya_mil_get_text(in, "output_dtype", "", &dtype));
    if (strcmp(dtype, "fp32") != 0)
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'output_dtype': expected fp32, found '%.50s'",
                         dtype);
    outputs[0] = *laya_mil_parameter_type(in, "source_val");
    outputs[0].dtype = LAYA_MIL_FP32;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ sparse */

/* The mask has as many ones as there are values; checked where its bytes are at hand. */
static laya_status check_ones(const laya_mil_inference *in)
{
    const laya_mil_constant *mask = laya_mil_parameter_constant(in, "mask");
    int64_t values = laya_mil_parameter_type(in, "nonzero_data")->dims[0], ones = 0;
    if (!mask || !mask->bytes) return LAYA_OK;
    for (uint64_t at = 0; at < mask->size; at++) {
        for (unsigned byte = mask->bytes[at]; byte; byte &= byte - 1) ones++;
    }
    if (laya_mil_dims_agree(ones, values)) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "parameter 'nonzero_data': expected %" PRId64 " values as 'mask' says, found %" PRId64, ones,
                     values);
}

static laya_status infer_packed_sparse(const laya_mil_inference *in, laya_mil_type *outputs)
{
    uint64_t count;
    LAYA_TRY(laya_mil_check_rank(in, "nonzero_data", 1, 1));
    outputs[0].dtype = laya_mil_parameter_type(in, "nonzero_data")->dtype;
    LAYA_TRY(get_listed_shape(in, &outputs[0], &count));
    LAYA_TRY(check_packed(in, "mask", count, 1));
    return check_ones(in);
}

static laya_status infer_sparse(const laya_mil_inference *in, laya_mil_type *outputs)
{
    LAYA_TRY(laya_mil_check_rank(in, "nonzero_data", 1, 1));
    outputs[0] = *laya_mil_parameter_type(in, "mask");
    outputs[0].dtype = laya_mil_parameter_type(in, "nonzero_data")->dtype;
    return check_ones(in);
}

/* ------------------------------------------------------------------ states */

static laya_status infer_read_state(const laya_mil_inference *in, laya_mil_type *outputs)
{
    outputs[0] = *laya_mil_parameter_type(in, "input");
    outputs[0].kind = LAYA_MIL_TENSOR;
    return LAYA_OK;
}

static laya_status infer_write_state(const laya_mil_inference *in, laya_mil_type *outputs)
{
    (void)outputs; /* none */
    const laya_mil_type *state = laya_mil_parameter_type(in, "input");
    return laya_mil_check_dims(in, "data", state->rank, state->dims);
}

/* ------------------------------------------------------------------ table */

#define FLOATS LAYA_MIL_FLOATS
#define BYTES LAYA_MIL_BYTES
#define NIBBLES (LAYA_MIL_DTYPE_BIT(LAYA_MIL_INT4) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT4))
#define UINT32S LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT32)
#define UINT8S LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT8)
#define INDICES                                                                                                      \
    (LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT1) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT2) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT3) |  \
     LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT4) | LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT6) | UINT8S)
#define FIXED (LAYA_MIL_REQUIRED | LAYA_MIL_CONSTANT)
#define CONSTANT LAYA_MIL_CONSTANT
#define STATES LAYA_MIL_ALL_NUMBERS_OR_BOOLS

/* A form of iOS 16, whose parameters are attributes. */
#define ATTRIBUTE_FORM(type_, since_, until_, infer_, ...)                                                           \
    {                                                                                                                \
        .type = (type_), .since = LAYA_MIL_COREML##since_, .until = LAYA_MIL_COREML##until_, .in_attributes = true,  \
        .infer = (infer_), .parameters = {                                                                           \
            __VA_ARGS__                                                                                              \
        }                                                                                                            \
    }

const laya_mil_operation laya_mil_constant_operations[] = {
    ATTRIBUTE_FORM("const", 5, 9, infer_const, {"val", FIXED, 0, 0}),
    ATTRIBUTE_FORM("constexpr_lut_to_dense", 6, 7, infer_packed_lut, {"indices", FIXED, UINT8S, 0},
                   {"lut", FIXED, FLOATS | BYTES, 0}, {"shape", FIXED, UINT32S, 0}),
    LAYA_MIL_FORM("constexpr_lut_to_dense", 8, 9, infer_grouped_lut, {"indices", FIXED, INDICES, 0},
                  {"lut", FIXED, FLOATS | BYTES, 0}, {"vector_axis", CONSTANT, LAYA_MIL_INT32S, 0}),
    ATTRIBUTE_FORM("constexpr_affine_dequantize", 6, 9, infer_affine, {"quantized_data", FIXED, BYTES, 0},
                   {"zero_point", FIXED, BYTES | LAYA_MIL_DTYPE_BIT(LAYA_MIL_FP32), 0}, {"scale", FIXED, FLOATS, 0},
                   {"axis", FIXED, LAYA_MIL_INT32S, 0}),
    LAYA_MIL_FORM("constexpr_blockwise_shift_scale", 8, 9, infer_blockwise,
                  {"data", FIXED, NIBBLES | BYTES | FLOATS, 0}, {"scale", FIXED, FLOATS, 0},
                  {"offset", CONSTANT, NIBBLES | BYTES | FLOATS, 0}),
    ATTRIBUTE_FORM("constexpr_cast", 6, 7, infer_constexpr_cast,
                   {"source_val", FIXED, LAYA_MIL_DTYPE_BIT(LAYA_MIL_FP16), 0},
                   {"output_dtype", FIXED, LAYA_MIL_STRINGS, 0}),
    LAYA_MIL_FORM("constexpr_cast", 8, 9, infer_constexpr_cast,
                  {"source_val", FIXED, LAYA_MIL_DTYPE_BIT(LAYA_MIL_FP16), 0},
                  {"output_dtype", FIXED, LAYA_MIL_STRINGS, 0}),
    ATTRIBUTE_FORM("constexpr_sparse_to_dense", 6, 7, infer_packed_sparse, {"nonzero_data", FIXED, FLOATS | BYTES, 0},
                   {"mask", FIXED, UINT8S, 0}, {"shape", FIXED, UINT32S, 0}),
    LAYA_MIL_FORM("constexpr_sparse_to_dense", 8, 9, infer_sparse,
                  {"nonzero_data", FIXED, NIBBLES | BYTES | FLOATS, 0},
                  {"mask", FIXED, LAYA_MIL_DTYPE_BIT(LAYA_MIL_UINT1), 0}),
    LAYA_MIL_FORM("identity", 5, 9, laya_mil_infer_same, {"x", LAYA_MIL_REQUIRED, 0, 0}),
    LAYA_MIL_FORM("read_state", 8, 9, infer_read_state,
                  {"input", LAYA_MIL_REQUIRED | LAYA_MIL_OF_STATE, STATES, 'T'}),
    {.type = "write_state",
     .since = LAYA_MIL_COREML8,
     .until = LAYA_MIL_COREML9,
     .parameters = {{"input", LAYA_MIL_REQUIRED | LAYA_MIL_OF_STATE, STATES, 'T'},
                    {"data", LAYA_MIL_REQUIRED, STATES, 'T'}},
     .infer = infer_write_state,
     .outputs = LAYA_MIL_NO_OUTPUT},
    {0}};
