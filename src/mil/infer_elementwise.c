/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element: arithmetic, comparisons, logic, activations, cast, select. */
#include "mil/infer.h"

#include <string.h>

static laya_status infer_unary(const laya_mil_inference *in, laya_mil_type *outputs)
{
    LAYA_TRY(laya_mil_check_scalar(in, "epsilon"));
    LAYA_TRY(laya_mil_check_scalar(in, "alpha"));
    LAYA_TRY(laya_mil_check_scalar(in, "beta"));
    return laya_mil_infer_same(in, outputs);
}

static laya_status infer_binary(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x");
    outputs[0].dtype = x->dtype;
    return laya_mil_broadcast(in, x, laya_mil_parameter_type(in, "y"), &outputs[0]);
}

static laya_status infer_comparison(const laya_mil_inference *in, laya_mil_type *outputs)
{
    outputs[0].dtype = LAYA_MIL_BOOL;
    return laya_mil_broadcast(in, laya_mil_parameter_type(in, "x"), laya_mil_parameter_type(in, "y"), &outputs[0]);
}

static laya_status infer_gelu(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const char *mode;
    LAYA_TRY(laya_mil_get_text(in, "mode", "EXACT", &mode));
    if (strcmp(mode, "EXACT") != 0 && strcmp(mode, "TANH_APPROXIMATION") != 0 &&
        strcmp(mode, "SIGMOID_APPROXIMATION") != 0) {
        return laya_fail(
            in->error, LAYA_ERROR_FORMAT,
            "parameter 'mode': expected EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION, found '%.50s'", mode);
    }
    return laya_mil_infer_same(in, outputs);
}

static laya_status infer_cast(const laya_mil_inference *in, laya_mil_type *outputs)
{
    static const laya_mil_dtype dtypes[] = {LAYA_MIL_FP16, LAYA_MIL_FP32,  LAYA_MIL_INT32, LAYA_MIL_BOOL,
                                            LAYA_MIL_INT8, LAYA_MIL_UINT8, LAYA_MIL_INT16, LAYA_MIL_UINT16};
    size_t count = in->opset >= LAYA_MIL_COREML7 ? sizeof dtypes / sizeof *dtypes : 4, at = 0;
    const char *name;
    LAYA_TRY(laya_mil_get_text(in, "dtype", "", &name));
    while (at < count && strcmp(laya_mil_dtype_name(dtypes[at]), name) != 0) at++;
    if (at == count) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter 'dtype': expected fp16, fp32, int32, bool%s, found '%.50s'",
                         count > 4 ? ", int8, uint8, int16 or uint16" : "", name);
    }
    outputs[0] = *laya_mil_parameter_type(in, "x");
    outputs[0].dtype = dtypes[at];
    return LAYA_OK;
}

/* The shape is that of a and b; cond must fit into it, as the definition leaves its broadcast out. */
static laya_status infer_select(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *a = laya_mil_parameter_type(in, "a"), *cond = laya_mil_parameter_type(in, "cond");
    laya_mil_type joined = {.kind = LAYA_MIL_TENSOR};
    outputs[0].dtype = a->dtype;
    LAYA_TRY(laya_mil_broadcast(in, a, laya_mil_parameter_type(in, "b"), &outputs[0]));
    LAYA_TRY(laya_mil_broadcast(in, cond, &outputs[0], &joined));
    bool fits = joined.rank == outputs[0].rank;
    for (uint32_t axis = 0; fits && axis < joined.rank; axis++)
        fits = laya_mil_dims_agree(joined.dims[axis], outputs[0].dims[axis]);
    if (fits) return LAYA_OK;
    char found[LAYA_MIL_TYPE_TEXT], shape[LAYA_MIL_TYPE_TEXT];
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter 'cond': expected a shape that fits into %s, found %s",
                     laya_mil_type_text(&outputs[0], shape), laya_mil_type_text(cond, found));
}

/* ------------------------------------------------------------------ table */

#define FLOATS LAYA_MIL_FLOATS
#define NUMBERS LAYA_MIL_NUMBERS
#define REQUIRED LAYA_MIL_REQUIRED
#define CONSTANT LAYA_MIL_CONSTANT
#define DEFAULTED (LAYA_MIL_DEFAULTED | LAYA_MIL_CONSTANT)

#define UNARY(type, dtypes) LAYA_MIL_FORM(type, 5, 9, infer_unary, {"x", REQUIRED, dtypes, 'T'})
/* With an epsilon, which from CoreML7 on has a dtype of its own. */
#define UNARY_EPSILON(type)                                                                                          \
    LAYA_MIL_FORM(type, 5, 6, infer_unary, {"x", REQUIRED, FLOATS, 'T'}, {"epsilon", DEFAULTED, FLOATS, 'T'}),       \
        LAYA_MIL_FORM(type, 7, 9, infer_unary, {"x", REQUIRED, FLOATS, 'T'}, {"epsilon", DEFAULTED, FLOATS, 'U'})
#define BINARY(type, infer, dtypes)                                                                                  \
    LAYA_MIL_FORM(type, 5, 9, infer, {"x", REQUIRED, dtypes, 'T'}, {"y", REQUIRED, dtypes, 'T'})

const laya_mil_operation laya_mil_elementwise_operations[] = {
    BINARY("add", infer_binary, NUMBERS),
    BINARY("mul", infer_binary, NUMBERS),
    BINARY("sub", infer_binary, NUMBERS),
    BINARY("real_div", infer_binary, NUMBERS),
    BINARY("maximum", infer_binary, NUMBERS),
    BINARY("minimum", infer_binary, NUMBERS),
    BINARY("pow", infer_binary, NUMBERS),
    BINARY("floor_div", infer_binary, NUMBERS),
    BINARY("mod", infer_binary, NUMBERS),
    BINARY("logical_and", infer_binary, LAYA_MIL_BOOLS),
    BINARY("logical_or", infer_binary, LAYA_MIL_BOOLS),
    BINARY("logical_xor", infer_binary, LAYA_MIL_BOOLS),
    BINARY("equal", infer_comparison, NUMBERS),
    BINARY("not_equal", infer_comparison, NUMBERS),
    BINARY("greater", infer_comparison, NUMBERS),
    BINARY("greater_equal", infer_comparison, NUMBERS),
    BINARY("less", infer_comparison, NUMBERS),
    BINARY("less_equal", infer_comparison, NUMBERS),
    UNARY("relu", FLOATS),
    UNARY("relu6", FLOATS),
    UNARY("silu", FLOATS),
    UNARY("sigmoid", FLOATS),
    UNARY("softplus", FLOATS),
    UNARY("softsign", FLOATS),
    UNARY("tanh", FLOATS),
    UNARY("erf", FLOATS),
    UNARY("exp", FLOATS),
    UNARY("exp2", NUMBERS),
    UNARY("sqrt", FLOATS),
    UNARY("square", NUMBERS),
    UNARY("abs", NUMBERS),
    UNARY("sign", NUMBERS),
    UNARY("sin", FLOATS),
    UNARY("cos", FLOATS),
    UNARY("tan", FLOATS),
    UNARY("ceil", FLOATS),
    UNARY("floor", FLOATS),
    UNARY("round", FLOATS),
    UNARY("logical_not", LAYA_MIL_BOOLS),
    UNARY_EPSILON("rsqrt"),
    UNARY_EPSILON("inverse"),
    UNARY_EPSILON("log"),
    LAYA_MIL_FORM("gelu", 5, 9, infer_gelu, {"x", REQUIRED, FLOATS, 'T'}, {"mode", DEFAULTED, LAYA_MIL_STRINGS, 0}),
    LAYA_MIL_FORM("clip", 5, 9, infer_unary, {"x", REQUIRED, FLOATS, 'T'},
                  {"alpha", REQUIRED | CONSTANT, FLOATS, 'T'}, {"beta", REQUIRED | CONSTANT, FLOATS, 'T'}),
    LAYA_MIL_FORM("leaky_relu", 5, 6, infer_unary, {"x", REQUIRED, FLOATS, 'T'},
                  {"alpha", REQUIRED | CONSTANT, FLOATS, 'T'}),
    LAYA_MIL_FORM("leaky_relu", 7, 9, infer_unary, {"x", REQUIRED, FLOATS, 'T'},
                  {"alpha", REQUIRED | CONSTANT, FLOATS, 'U'}),
    LAYA_MIL_FORM("cast", 5, 6, infer_cast, {"x", REQUIRED, LAYA_MIL_NUMBERS_OR_BOOLS, 'T'},
                  {"dtype", REQUIRED | CONSTANT, LAYA_MIL_STRINGS, 0}),
    LAYA_MIL_FORM("cast", 7, 9, infer_cast, {"x", REQUIRED, LAYA_MIL_ALL_NUMBERS_OR_BOOLS, 'T'},
                  {"dtype", REQUIRED | CONSTANT, LAYA_MIL_STRINGS, 0}),
    LAYA_MIL_FORM("select", 5, 9, infer_select, {"cond", REQUIRED, LAYA_MIL_BOOLS, 0},
                  {"a", REQUIRED, LAYA_MIL_NUMBERS_OR_BOOLS, 'T'}, {"b", REQUIRED, LAYA_MIL_NUMBERS_OR_BOOLS, 'T'}),
    {0}};
