/* SPDX-License-Identifier: Apache-2.0 */
/* Products: convolution, linear, matmul, einsum, attention. */
#include "mil/infer.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------ conv */

#define MAX_SPATIAL 3

typedef struct convolution {
    laya_mil_integers strides, dilations, pad;
    const char *pad_type;
    int64_t groups;
} convolution;

/* A vector of positive numbers, one a spatial axis; ones when it is left out. */
static laya_status get_steps(const laya_mil_inference *in, const char *name, uint32_t spatial, laya_mil_integers *out)
{
    LAYA_TRY(laya_mil_get_counted(in, name, spatial, out));
    for (uint32_t axis = 0; axis < spatial; axis++) {
        if (!out->given) out->values[axis] = 1;
        if (out->values[axis] < 1) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected positive values, found %" PRId64,
                             name, out->values[axis]);
        }
    }
    return LAYA_OK;
}

static laya_status get_convolution(const laya_mil_inference *in, uint32_t spatial, convolution *conv)
{
    LAYA_TRY(get_steps(in, "strides", spatial, &conv->strides));
    LAYA_TRY(get_steps(in, "dilations", spatial, &conv->dilations));
    LAYA_TRY(laya_mil_get_counted(in, "pad", 2 * (size_t)spatial, &conv->pad));
    LAYA_TRY(laya_mil_get_text(in, "pad_type", "valid", &conv->pad_type));
    LAYA_TRY(laya_mil_get_integer(in, "groups", 1, &conv->groups));
    bool lower = strcmp(conv->pad_type, "same_lower") == 0;
    if (strcmp(conv->pad_type, "valid") != 0 && strcmp(conv->pad_type, "custom") != 0 &&
        strcmp(conv->pad_type, "same") != 0 && !(lower && in->opset >= LAYA_MIL_COREML6)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'pad_type': expected valid, custom, same%s, found '%.50s'",
                         in->opset >= LAYA_MIL_COREML6 ? " or same_lower" : "", conv->pad_type);
    }
    for (uint32_t side = 0; side < 2 * spatial; side++) {
        if (conv->pad.values[side] < 0) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "parameter 'pad': expected no negative value, found %" PRId64, conv->pad.values[side]);
        }
    }
    return LAYA_OK;
}

/* A kernel that is computed cannot be dilated. */
static laya_status check_dilations(const laya_mil_inference *in, const convolution *conv, uint32_t spatial)
{
    const laya_mil_binding *weight = &laya_mil_find_argument(in->op, "weight")->bindings[0];
    bool fixed = laya_mil_bound_constant(weight) || laya_mil_is_expanded(weight);
    for (uint32_t axis = 0; axis < spatial && !fixed; axis++) {
        if (conv->dilations.values[axis] > 1) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "parameter 'dilations': expected ones, as 'weight' is no constant");
        }
    }
    return LAYA_OK;
}

/* Outputs along one spatial axis; unknown when the input is. */
static laya_status convolve_axis(const laya_mil_inference *in, const convolution *conv, uint32_t axis, int64_t input,
                                 int64_t kernel, int64_t *output)
{
    *output = LAYA_MIL_UNKNOWN;
    if (input == LAYA_MIL_UNKNOWN || kernel == LAYA_MIL_UNKNOWN) return LAYA_OK;
    int64_t stride = conv->strides.values[axis], reach = (kernel - 1) * conv->dilations.values[axis] + 1;
    if (strncmp(conv->pad_type, "same", 4) == 0) {
        *output = (input + stride - 1) / stride;
    } else {
        bool custom = strcmp(conv->pad_type, "custom") == 0;
        int64_t padded = input;
        if (custom) padded += conv->pad.values[2 * axis] + conv->pad.values[2 * axis + 1];
        *output = padded < reach ? 0 : (padded - reach) / stride + 1;
    }
    if (*output > 0 && kernel > 0) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "a kernel of %" PRId64 " does not fit into the %" PRId64 " elements of spatial axis %" PRIu32,
                     kernel, input, axis);
}

static laya_status check_channels(const laya_mil_inference *in, const convolution *conv, const laya_mil_type *x,
                                  const laya_mil_type *weight)
{
    int64_t channels = x->dims[1], groups = conv->groups, made = weight->dims[0];
    if (groups < 1 || (channels != LAYA_MIL_UNKNOWN && channels % groups != 0) ||
        (made != LAYA_MIL_UNKNOWN && made % groups != 0)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'groups': %" PRId64 " does not divide the %" PRId64 " input and %" PRId64
                         " output channels",
                         groups, channels, made);
    }
    laya_mil_type expected = *weight;
    if (channels != LAYA_MIL_UNKNOWN) expected.dims[1] = channels / groups;
    LAYA_TRY(laya_mil_check_dims(in, "weight", expected.rank, expected.dims));
    return laya_mil_check_dims(in, "bias", 1, &made);
}

static laya_status infer_conv(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x"), *weight = laya_mil_parameter_type(in, "weight");
    LAYA_TRY(laya_mil_check_rank(in, "x", 3, 2 + MAX_SPATIAL));
    LAYA_TRY(laya_mil_check_rank(in, "weight", x->rank, x->rank));
    uint32_t spatial = x->rank - 2;
    convolution conv;
    LAYA_TRY(get_convolution(in, spatial, &conv));
    LAYA_TRY(check_dilations(in, &conv, spatial));
    LAYA_TRY(check_channels(in, &conv, x, weight));
    outputs[0] = *x;
    outputs[0].dims[1] = weight->dims[0];
    for (uint32_t axis = 0; axis < spatial; axis++) {
        LAYA_TRY(
            convolve_axis(in, &conv, axis, x->dims[2 + axis], weight->dims[2 + axis], &outputs[0].dims[2 + axis]));
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ linear, matmul */

static laya_status infer_linear(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x"), *weight = laya_mil_parameter_type(in, "weight");
    LAYA_TRY(laya_mil_check_rank(in, "x", 1, 3));
    LAYA_TRY(laya_mil_check_rank(in, "weight", 2, 2));
    int64_t expected[] = {weight->dims[0], x->dims[x->rank - 1]};
    LAYA_TRY(laya_mil_check_dims(in, "weight", 2, expected));
    LAYA_TRY(laya_mil_check_dims(in, "bias", 1, &weight->dims[0]));
    outputs[0] = *x;
    outputs[0].dims[x->rank - 1] = weight->dims[0];
    return LAYA_OK;
}

/* A matmul operand as a stack of matrices. */
static laya_status get_matrices(const laya_mil_inference *in, const char *name, const char *flag, laya_mil_type *out)
{
    int64_t transposed;
    LAYA_TRY(laya_mil_get_integer(in, flag, 0, &transposed));
    *out = *laya_mil_parameter_type(in, name);
    if (out->rank >= 2) {
        int64_t last = out->dims[out->rank - 1];
        if (!transposed) return LAYA_OK;
        out->dims[out->rank - 1] = out->dims[out->rank - 2];
        out->dims[out->rank - 2] = last;
        return LAYA_OK;
    }
    if (out->rank == 1 && !transposed) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "parameter '%s': expected a vector that is not transposed, or a matrix", name);
}

/* From CoreML7 on a constant side may have another dtype; the output has that of the other side. */
static laya_status matmul_dtype(const laya_mil_inference *in, laya_mil_dtype *dtype)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x"), *y = laya_mil_parameter_type(in, "y");
    bool x_constant = laya_mil_parameter_constant(in, "x") != NULL;
    bool y_constant = laya_mil_parameter_constant(in, "y") != NULL;
    *dtype = x_constant && !y_constant ? y->dtype : x->dtype;
    if (x->dtype == y->dtype || x_constant != y_constant) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'y': expected %s as 'x', found %s",
                     laya_mil_dtype_name(x->dtype), laya_mil_dtype_name(y->dtype));
}

static laya_status infer_matmul(const laya_mil_inference *in, laya_mil_type *outputs)
{
    laya_mil_type x, y, out = {.kind = LAYA_MIL_TENSOR};
    LAYA_TRY(matmul_dtype(in, &out.dtype));
    LAYA_TRY(get_matrices(in, "x", "transpose_x", &x));
    LAYA_TRY(get_matrices(in, "y", "transpose_y", &y));
    bool x_vector = x.rank == 1, y_vector = y.rank == 1;
    if (x_vector) LAYA_TRY(laya_mil_insert_dim(in, &x, 0, 1));
    if (y_vector) LAYA_TRY(laya_mil_insert_dim(in, &y, 1, 1));
    int64_t rows = x.dims[x.rank - 2], columns = y.dims[y.rank - 1];
    if (!laya_mil_dims_agree(x.dims[x.rank - 1], y.dims[y.rank - 2])) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "the rows of x have %" PRId64 " elements, the columns of y %" PRId64, x.dims[x.rank - 1],
                         y.dims[y.rank - 2]);
    }
    x.rank -= 2;
    y.rank -= 2;
    LAYA_TRY(laya_mil_broadcast(in, &x, &y, &out));
    if (!x_vector) LAYA_TRY(laya_mil_insert_dim(in, &out, out.rank, rows));
    if (!y_vector) LAYA_TRY(laya_mil_insert_dim(in, &out, out.rank, columns));
    outputs[0] = out;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ einsum */

/* "chw,whr->chr" with any letters, and one letter in front of every term for rank 4. */
static bool equation_matches(const char *equation, uint32_t rank)
{
    const char *pattern = rank == 4 ? "nchw,nwhu->nchu" : "chw,whu->chu";
    char renamed[128] = {0}, used[128] = {0};
    size_t length = strlen(pattern);
    if (strlen(equation) != length) return false;
    for (size_t at = 0; at < length; at++) {
        unsigned char wanted = (unsigned char)pattern[at], letter = (unsigned char)equation[at];
        bool is_letter = wanted >= 'a' && wanted <= 'z';
        if (!is_letter) {
            if (letter != wanted) return false;
            continue;
        }
        if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'))) return false;
        if (!renamed[wanted] && !used[letter]) {
            renamed[wanted] = (char)letter;
            used[letter] = 1;
        }
        if ((unsigned char)renamed[wanted] != letter) return false;
    }
    return true;
}

/* A dimension that both operands have, or that is 1 in one of them. */
static bool join_dims(int64_t x, int64_t y, int64_t *out)
{
    *out = x == 1 || (x == LAYA_MIL_UNKNOWN && y != 1) ? y : x;
    return x == 1 || y == 1 || laya_mil_dims_agree(x, y);
}

static laya_status infer_einsum(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_argument *values = laya_mil_find_argument(in->op, "values");
    if (values->count != 2) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'values': expected 2 values, found %" PRIu32,
                         values->count);
    }
    const laya_mil_type *x = laya_mil_bound_type(&values->bindings[0]);
    const laya_mil_type *y = laya_mil_bound_type(&values->bindings[1]);
    const char *equation;
    LAYA_TRY(laya_mil_get_text(in, "equation", "", &equation));
    char first[LAYA_MIL_TYPE_TEXT], second[LAYA_MIL_TYPE_TEXT];
    laya_mil_type_text(x, first);
    laya_mil_type_text(y, second);
    if (x->rank != y->rank || (x->rank != 3 && x->rank != 4)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'values': expected two tensors of rank 3 or 4, found %s and %s", first, second);
    }
    if (!equation_matches(equation, x->rank)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'equation': expected '%s', found '%.50s'",
                         x->rank == 4 ? "nchw,nwhu->nchu" : "chw,whu->chu", equation);
    }
    uint32_t c = x->rank - 3, h = x->rank - 2, w = x->rank - 1;
    outputs[0] = *x;
    bool fits = laya_mil_dims_agree(x->dims[w], y->dims[c]);
    fits = join_dims(x->dims[h], y->dims[h], &outputs[0].dims[h]) && fits;
    if (x->rank == 4) fits = join_dims(x->dims[0], y->dims[0], &outputs[0].dims[0]) && fits;
    outputs[0].dims[w] = y->dims[w];
    if (fits) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'values': shapes that do not fit '%.50s': %s and %s",
                     equation, first, second);
}

/* ------------------------------------------------------------------ attention */

/* attn_mask: [.., L or 1, S], broadcast to the scores [.., L, S]. */
static laya_status check_mask(const laya_mil_inference *in, const laya_mil_type *query, int64_t keys)
{
    const laya_mil_type *mask = laya_mil_parameter_type(in, "attn_mask");
    if (!mask) return LAYA_OK;
    laya_mil_type scores = *query, joined = {.kind = LAYA_MIL_TENSOR};
    scores.dims[scores.rank - 1] = keys;
    LAYA_TRY(laya_mil_check_rank(in, "attn_mask", 1, query->rank));
    laya_mil_type expected = *mask;
    expected.dims[mask->rank - 1] = keys;
    LAYA_TRY(laya_mil_check_dims(in, "attn_mask", mask->rank, expected.dims));
    LAYA_TRY(laya_mil_broadcast(in, &scores, mask, &joined));
    for (uint32_t axis = 0; axis < joined.rank; axis++) {
        if (laya_mil_dims_agree(joined.dims[axis], scores.dims[axis])) continue;
        char found[LAYA_MIL_TYPE_TEXT];
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'attn_mask': larger than the scores, found %s",
                         laya_mil_type_text(mask, found));
    }
    return LAYA_OK;
}

static laya_status infer_attention(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *query = laya_mil_parameter_type(in, "query"), *key = laya_mil_parameter_type(in, "key");
    LAYA_TRY(laya_mil_check_rank(in, "query", 3, LAYA_MIL_MAX_RANK));
    LAYA_TRY(laya_mil_check_rank(in, "key", query->rank, query->rank));
    LAYA_TRY(laya_mil_check_rank(in, "value", query->rank, query->rank));
    const laya_mil_type *value = laya_mil_parameter_type(in, "value");
    uint32_t sequence = query->rank - 2, embedding = query->rank - 1;
    laya_mil_type expected = *query;
    expected.dims[sequence] = key->dims[sequence];
    LAYA_TRY(laya_mil_check_dims(in, "key", expected.rank, expected.dims));
    expected.dims[embedding] = value->dims[embedding];
    LAYA_TRY(laya_mil_check_dims(in, "value", expected.rank, expected.dims));
    LAYA_TRY(check_mask(in, query, key->dims[sequence]));
    outputs[0] = *query;
    outputs[0].dims[embedding] = value->dims[embedding];
    return LAYA_OK;
}

/* ------------------------------------------------------------------ table */

#define FLOATS LAYA_MIL_FLOATS
#define NUMBERS LAYA_MIL_NUMBERS
#define REQUIRED LAYA_MIL_REQUIRED
#define CONSTANT LAYA_MIL_CONSTANT
#define DEFAULTED (LAYA_MIL_DEFAULTED | LAYA_MIL_CONSTANT)

#define CONV_SHAPE                                                                                                   \
    {"strides", DEFAULTED, LAYA_MIL_INT32S, 0}, {"pad_type", DEFAULTED, LAYA_MIL_STRINGS, 0},                        \
        {"pad", DEFAULTED, LAYA_MIL_INT32S, 0}, {"dilations", DEFAULTED, LAYA_MIL_INT32S, 0},                        \
    {                                                                                                                \
        "groups", DEFAULTED, LAYA_MIL_INT32S, 0                                                                      \
    }
#define TRANSPOSES                                                                                                   \
    {"transpose_x", DEFAULTED, LAYA_MIL_BOOLS, 0},                                                                   \
    {                                                                                                                \
        "transpose_y", DEFAULTED, LAYA_MIL_BOOLS, 0                                                                  \
    }

const laya_mil_operation laya_mil_linear_operations[] = {
    LAYA_MIL_FORM("conv", 5, 6, infer_conv, {"x", REQUIRED, FLOATS, 'T'}, {"weight", REQUIRED, FLOATS, 'T'},
                  {"bias", CONSTANT, FLOATS, 'T'}, CONV_SHAPE),
    LAYA_MIL_FORM("conv", 7, 9, infer_conv, {"x", REQUIRED, FLOATS, 'T'}, {"weight", REQUIRED, FLOATS, 'U'},
                  {"bias", 0, FLOATS, 'U'}, CONV_SHAPE),
    LAYA_MIL_FORM("einsum", 5, 9, infer_einsum, {"values", REQUIRED | LAYA_MIL_VARIADIC, FLOATS, 'T'},
                  {"equation", REQUIRED | CONSTANT, LAYA_MIL_STRINGS, 0}),
    LAYA_MIL_FORM("linear", 5, 6, infer_linear, {"x", REQUIRED, NUMBERS, 'T'},
                  {"weight", REQUIRED | CONSTANT, NUMBERS, 'T'}, {"bias", DEFAULTED, NUMBERS, 'T'}),
    LAYA_MIL_FORM("linear", 7, 9, infer_linear, {"x", REQUIRED, NUMBERS, 'T'},
                  {"weight", REQUIRED | CONSTANT, NUMBERS, 'U'}, {"bias", DEFAULTED, NUMBERS, 'U'}),
    LAYA_MIL_FORM("matmul", 5, 6, infer_matmul, {"x", REQUIRED, NUMBERS, 'T'}, {"y", REQUIRED, NUMBERS, 'T'},
                  TRANSPOSES),
    LAYA_MIL_FORM("matmul", 7, 9, infer_matmul, {"x", REQUIRED, NUMBERS, 'T'}, {"y", REQUIRED, NUMBERS, 'U'},
                  TRANSPOSES),
    LAYA_MIL_FORM("scaled_dot_product_attention", 8, 9, infer_attention, {"query", REQUIRED, FLOATS, 'T'},
                  {"key", REQUIRED, FLOATS, 'T'}, {"value", REQUIRED, FLOATS, 'T'},
                  {"attn_mask", 0, FLOATS | LAYA_MIL_BOOLS, 'M'}),
    {0}};
