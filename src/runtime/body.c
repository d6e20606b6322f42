/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/body.h"

#include "base/error.h"

#include <string.h>

void laya_body_shape_init(laya_body_shape *shape, uint32_t hidden_size, uint32_t length, uint32_t markers)
{
    int64_t d = hidden_size, l = length, m = markers;
    *shape = (laya_body_shape){.hidden_size = hidden_size,
                               .length = length,
                               .markers = markers,
                               .inputs = {{"embeddings", {1, d, 1, l}},
                                          {"full_mask", {1, l, 1, l}},
                                          {"local_mask", {1, l, 1, l}},
                                          {"type_vectors", {1, d, 1, 1}},
                                          {"marker_map", {1, l, 1, m}}},
                               .outputs = {{"option_logits", {1, 1, 1, m}}, {"cls_column", {1, d, 1, 1}}}};
}

size_t laya_body_count(const laya_body_tensor *tensor)
{
    return (size_t)tensor->shape[1] * (size_t)tensor->shape[2] * (size_t)tensor->shape[3];
}

/* ------------------------------------------------------------------ the interface of a program */

static laya_status check_type(const char *what, const laya_body_tensor *tensor, laya_mil_dtype dtype,
                              const laya_mil_type *type, laya_error *error)
{
    char expected_text[LAYA_MIL_TYPE_TEXT], found_text[LAYA_MIL_TYPE_TEXT];
    const int64_t *s = tensor->shape;
    const laya_mil_type expected = laya_mil_tensor4(dtype, s[0], s[1], s[2], s[3]);
    if (laya_mil_type_equal(&expected, type)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s '%s': expected %s, found %s", what, tensor->name,
                     laya_mil_type_text(&expected, expected_text), laya_mil_type_text(type, found_text));
}

static laya_status check_count(const char *what, uint32_t expected, uint32_t found, laya_error *error)
{
    if (expected == found) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "expected %lu %ss, found %lu", (unsigned long)expected, what,
                     (unsigned long)found);
}

static laya_status check_features(const char *what, const laya_mil_feature *features, uint32_t count,
                                  const laya_body_tensor *tensors, uint32_t expected, laya_mil_dtype dtype,
                                  laya_error *error)
{
    LAYA_TRY(check_count(what, expected, count, error));
    for (uint32_t at = 0; at < expected; at++) {
        const laya_mil_feature *feature = NULL;
        for (uint32_t i = 0; i < count && !feature; i++) {
            if (strcmp(features[i].name, tensors[at].name) == 0) feature = &features[i];
        }
        if (!feature) return laya_fail(error, LAYA_ERROR_FORMAT, "no %s is named '%s'", what, tensors[at].name);
        if (feature->flexible || feature->optional)
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "%s '%s': expected one fixed shape, found a flexible or optional %s", what,
                             feature->name, what);
        LAYA_TRY(check_type(what, &tensors[at], dtype, &feature->type, error));
    }
    return LAYA_OK;
}

static const laya_body_tensor *find_tensor(const laya_body_tensor *tensors, uint32_t count, const char *name)
{
    for (uint32_t at = 0; at < count; at++) {
        if (name && strcmp(tensors[at].name, name) == 0) return &tensors[at];
    }
    return NULL;
}

static laya_status check_value(const char *what, const char *name, const laya_mil_type *type,
                               const laya_body_tensor *tensors, uint32_t count, laya_mil_dtype dtype,
                               laya_error *error)
{
    const laya_body_tensor *tensor = find_tensor(tensors, count, name);
    if (!tensor || !type)
        return laya_fail(error, LAYA_ERROR_FORMAT, "the function has an %s '%s' that the contract lacks", what,
                         name ? name : "");
    return check_type(what, tensor, dtype, type, error);
}

static laya_status check_function(const laya_mil_function *function, const laya_body_shape *shape,
                                  laya_mil_dtype dtype, laya_error *error)
{
    const laya_mil_block *body = &function->body;
    LAYA_TRY(check_count("input", LAYA_BODY_INPUTS, function->input_count, error));
    LAYA_TRY(check_count("output", LAYA_BODY_OUTPUTS, body->output_count, error));
    for (uint32_t at = 0; at < function->input_count; at++) {
        const laya_mil_value *value = function->inputs[at];
        LAYA_TRY(check_value("input", value->name, &value->type, shape->inputs, LAYA_BODY_INPUTS, dtype, error));
    }
    for (uint32_t at = 0; at < body->output_count; at++) {
        const laya_mil_binding *binding = &body->outputs[at];
        LAYA_TRY(check_value("output", binding->name, laya_mil_bound_type(binding), shape->outputs, LAYA_BODY_OUTPUTS,
                             dtype, error));
    }
    return LAYA_OK;
}

laya_status laya_body_check(const laya_mil_program *program, const laya_body_shape *shape, laya_mil_dtype dtype,
                            laya_error *error)
{
    LAYA_TRY(check_count("function", 1, program->function_count, error));
    LAYA_TRY(check_count("interface", 1, program->interface_count, error));
    const laya_mil_interface *interface = &program->interfaces[0];
    LAYA_TRY(check_features("input", interface->inputs, interface->input_count, shape->inputs, LAYA_BODY_INPUTS,
                            dtype, error));
    LAYA_TRY(check_features("output", interface->outputs, interface->output_count, shape->outputs, LAYA_BODY_OUTPUTS,
                            dtype, error));
    return check_function(&program->functions[0], shape, dtype, error);
}
