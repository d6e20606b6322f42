/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations, softmax and reductions. */
#include "mil/infer.h"

#include <inttypes.h>

/* ------------------------------------------------------------------ normalizations */

/* The framework takes no empty list. */
static laya_status check_not_empty(const laya_mil_inference *in, const char *name)
{
    const laya_mil_type *type = laya_mil_parameter_type(in, name);
    if (!type || type->dims[0] != 0) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected at least one axis", name);
}

/* The framework takes only ascending axes. */
static laya_status check_sorted(const laya_mil_inference *in, const char *name, uint32_t rank)
{
    laya_mil_integers axes;
    LAYA_TRY(laya_mil_get_integers(in, name, &axes));
    for (size_t at = 0; at < axes.count; at++) {
        if (axes.values[at] < 0) axes.values[at] += (int64_t)rank;
        if (at == 0 || axes.values[at] > axes.values[at - 1]) continue;
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected ascending axes", name);
    }
    return LAYA_OK;
}

static laya_status infer_layer_norm(const laya_mil_inference *in, laya_mil_type *outputs)
{
    const laya_mil_type *x = laya_mil_parameter_type(in, "x");
    bool chosen[LAYA_MIL_MAX_RANK], given;
    int64_t dims[LAYA_MIL_MAX_RANK] = {0};
    uint32_t count = 0;
    LAYA_TRY(laya_mil_get_axes(in, "axes", x->rank, chosen, &given));
    LAYA_TRY(check_not_empty(in, "axes"));
    LAYA_TRY(check_sorted(in, "axes", x->rank));
    for (uint32_t axis = 0; axis < x->rank; axis++) {
        if (chosen[axis] || !given) dims[count++] = x->dims[axis];
    }
    LAYA_TRY(laya_mil_check_dims(in, "gamma", count, dims));
    LAYA_TRY(laya_mil_check_dims(in, "beta", count, dims));
    LAYA_TRY(laya_mil_check_scalar(in, "epsilon"));
    return laya_mil_infer_same(in, outputs);
}

/* Vectors with a value per channel, axis 1. */
static laya_status check_channel_vectors(const laya_mil_inference *in)
{
    const int64_t channels = laya_mil_parameter_type(in, "x")->dims[1];
    static const char *const names[] = {"mean", "variance", "gamma", "beta"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        LAYA_TRY(laya_mil_check_dims(in, names[at], 1, &channels));
    return laya_mil_check_scalar(in, "epsilon");
}

static laya_status infer_batch_norm(const laya_mil_inference *in, laya_mil_type *outputs)
{
    LAYA_TRY(laya_mil_check_rank(in, "x", 3, 5));
    LAYA_TRY(check_channel_vectors(in));
    return laya_mil_infer_same(in, outputs);
}

static laya_status infer_instance_norm(const laya_mil_inference *in, laya_mil_type *outputs)
{
    LAYA_TRY(laya_mil_check_rank(in, "x", 3, 4));
    LAYA_TRY(check_channel_vectors(in));
    return laya_mil_infer_same(in, outputs);
}

static laya_status infer_l2_norm(const laya_mil_inference *in, laya_mil_type *outputs)
{
    LAYA_TRY(laya_mil_check_rank(in, "x", 3, LAYA_MIL_MAX_RANK));
    LAYA_TRY(laya_mil_check_scalar(in, "epsilon"));
    return laya_mil_infer_same(in, outputs);
}

static laya_status infer_softmax(const laya_mil_inference *in, laya_mil_type *outputs)
{
    uint32_t axis;
    LAYA_TRY(laya_mil_get_axis(in, "axis", laya_mil_parameter_type(in, "x")->rank, -1, &axis));
    return laya_mil_infer_same(in, outputs);
}

/* ------------------------------------------------------------------ reductions */

static laya_status infer_reduction(const laya_mil_inference *in, laya_mil_type *outputs)
{
    bool chosen[LAYA_MIL_MAX_RANK], given;
    int64_t keep;
    laya_mil_type out = *laya_mil_parameter_type(in, "x");
    LAYA_TRY(laya_mil_check_rank(in, "x", 1, LAYA_MIL_MAX_RANK));
    LAYA_TRY(laya_mil_get_axes(in, "axes", out.rank, chosen, &given));
    LAYA_TRY(check_not_empty(in, "axes"));
    LAYA_TRY(laya_mil_get_integer(in, "keep_dims", 0, &keep));
    for (uint32_t left = out.rank; left > 0; left--) {
        if (given && !chosen[left - 1]) continue;
        if (keep)
            out.dims[left - 1] = 1;
        else
            laya_mil_remove_dim(&out, left - 1);
    }
    outputs[0] = out;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ table */

#define FLOATS LAYA_MIL_FLOATS
#define REQUIRED LAYA_MIL_REQUIRED
#define CONSTANT LAYA_MIL_CONSTANT
#define DEFAULTED (LAYA_MIL_DEFAULTED | LAYA_MIL_CONSTANT)

/* Parameters after x; from CoreML7 on with a dtype of their own. */
#define AFFINE(variable)                                                                                             \
    {"gamma", CONSTANT, FLOATS, variable}, {"beta", CONSTANT, FLOATS, variable},                                     \
    {                                                                                                                \
        "epsilon", DEFAULTED, FLOATS, variable                                                                       \
    }
#define MOMENTS(variable)                                                                                            \
    {"mean", REQUIRED | CONSTANT, FLOATS, variable},                                                                 \
    {                                                                                                                \
        "variance", REQUIRED | CONSTANT, FLOATS, variable                                                            \
    }
#define REDUCTION(type)                                                                                              \
    LAYA_MIL_FORM(type, 5, 9, infer_reduction, {"x", REQUIRED, LAYA_MIL_NUMBERS, 'T'},                               \
                  {"axes", CONSTANT, LAYA_MIL_INT32S, 0}, {"keep_dims", DEFAULTED, LAYA_MIL_BOOLS, 0})

const laya_mil_operation laya_mil_norm_operations[] = {
    LAYA_MIL_FORM("layer_norm", 5, 6, infer_layer_norm, {"x", REQUIRED, FLOATS, 'T'},
                  {"axes", DEFAULTED, LAYA_MIL_INT32S, 0}, AFFINE('T')),
    LAYA_MIL_FORM("layer_norm", 7, 9, infer_layer_norm, {"x", REQUIRED, FLOATS, 'T'},
                  {"axes", DEFAULTED, LAYA_MIL_INT32S, 0}, AFFINE('U')),
    LAYA_MIL_FORM("batch_norm", 5, 6, infer_batch_norm, {"x", REQUIRED, FLOATS, 'T'}, MOMENTS('T'), AFFINE('T')),
    LAYA_MIL_FORM("batch_norm", 7, 9, infer_batch_norm, {"x", REQUIRED, FLOATS, 'T'}, MOMENTS('U'), AFFINE('U')),
    LAYA_MIL_FORM("instance_norm", 5, 6, infer_instance_norm, {"x", REQUIRED, FLOATS, 'T'}, AFFINE('T')),
    LAYA_MIL_FORM("instance_norm", 7, 9, infer_instance_norm, {"x", REQUIRED, FLOATS, 'T'}, AFFINE('U')),
    LAYA_MIL_FORM("l2_norm", 5, 6, infer_l2_norm, {"x", REQUIRED, FLOATS, 'T'}, {"epsilon", DEFAULTED, FLOATS, 'T'}),
    LAYA_MIL_FORM("l2_norm", 7, 9, infer_l2_norm, {"x", REQUIRED, FLOATS, 'T'}, {"epsilon", DEFAULTED, FLOATS, 'U'}),
    LAYA_MIL_FORM("softmax", 5, 9, infer_softmax, {"x", REQUIRED, FLOATS, 'T'},
                  {"axis", DEFAULTED, LAYA_MIL_INT32S, 0}),
    REDUCTION("reduce_mean"),
    REDUCTION("reduce_sum"),
    REDUCTION("reduce_max"),
    REDUCTION("reduce_min"),
    REDUCTION("reduce_prod"),
    REDUCTION("reduce_l1_norm"),
    REDUCTION("reduce_l2_norm"),
    REDUCTION("reduce_sum_square"),
    REDUCTION("reduce_log_sum"),
    REDUCTION("reduce_log_sum_exp"),
    {0}};
