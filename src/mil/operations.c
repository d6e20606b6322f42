/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations, the checks that all of them share, and reading parameters. */
#include "mil/operations.h"

#include "base/half.h"
#include "mil/infer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Core ML counts elements of an axis in 32 bits. */
#define MAX_DIM INT32_MAX

static const laya_mil_operation *const tables[] = {
    laya_mil_constant_operations, laya_mil_elementwise_operations, laya_mil_linear_operations,
    laya_mil_norm_operations,     laya_mil_shape_operations,       laya_mil_slice_operations,
};

const laya_mil_operation *laya_mil_operation_find(const char *type, laya_mil_opset opset)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++) {
        for (const laya_mil_operation *at = tables[table]; at->type; at++) {
            if (opset >= at->since && opset <= at->until && strcmp(at->type, type) == 0) return at;
        }
    }
    return NULL;
}

laya_mil_opset laya_mil_operation_since(const char *type)
{
    laya_mil_opset since = (laya_mil_opset)0;
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++) {
        for (const laya_mil_operation *at = tables[table]; at->type; at++) {
            if (strcmp(at->type, type) == 0 && (since == 0 || at->since < since)) since = at->since;
        }
    }
    return since;
}

const char *laya_mil_op_label(const laya_mil_op *op)
{
    if (op->name) return op->name;
    return op->output_count > 0 ? op->outputs[0]->name : op->type;
}

/* ------------------------------------------------------------------ constants */

bool laya_mil_constant_integer(const laya_mil_constant *constant, uint64_t index, int64_t *out)
{
    uint64_t size, count, bits = 0;
    unsigned width = laya_mil_dtype_bits(constant->type.dtype) / 8;
    if (!laya_mil_type_size(&constant->type, &size) || !laya_mil_type_count(&constant->type, &count)) return false;
    if (width == 0 || !constant->bytes || constant->size != size || index >= count) return false;
    const unsigned char *at = constant->bytes + index * width;
    for (unsigned byte = 0; byte < width; byte++) bits |= (uint64_t)at[byte] << (8 * byte);
    uint64_t sign = UINT64_C(1) << (8 * width - 1);
    switch (constant->type.dtype) {
    case LAYA_MIL_BOOL: *out = bits != 0; return true;
    case LAYA_MIL_INT8:
    case LAYA_MIL_INT16:
    case LAYA_MIL_INT32:
    case LAYA_MIL_INT64: *out = (int64_t)((bits ^ sign) - sign); return true;
    case LAYA_MIL_UINT8:
    case LAYA_MIL_UINT16:
    case LAYA_MIL_UINT32:
    case LAYA_MIL_UINT64: *out = (int64_t)bits; return bits <= INT64_MAX;
    default: return false;
    }
}

bool laya_mil_constant_integers(const laya_mil_constant *constant, int64_t *out, size_t capacity, size_t *count)
{
    uint64_t length;
    *count = 0;
    if (constant->type.kind != LAYA_MIL_TENSOR || !laya_mil_type_count(&constant->type, &length)) return false;
    if (length > capacity) return false;
    for (uint64_t at = 0; at < length; at++) {
        if (!laya_mil_constant_integer(constant, at, &out[at])) return false;
    }
    *count = (size_t)length;
    return true;
}

bool laya_mil_constant_number(const laya_mil_constant *constant, double *out)
{
    uint64_t count, size, bits = 0;
    if (!constant->bytes || !laya_mil_type_count(&constant->type, &count) || count != 1) return false;
    if (!laya_mil_type_size(&constant->type, &size) || size != constant->size || size > sizeof bits) return false;
    for (uint64_t byte = 0; byte < size; byte++) bits |= (uint64_t)constant->bytes[byte] << (8 * byte);
    switch (constant->type.dtype) {
    case LAYA_MIL_FP16: *out = (double)laya_half_to_float((uint16_t)bits); return true;
    case LAYA_MIL_FP32: *out = (double)laya_float_of_bits((uint32_t)bits); return true;
    case LAYA_MIL_FP64: memcpy(out, &bits, sizeof *out); return true;
    default: return false;
    }
}

const char *laya_mil_constant_string(const laya_mil_constant *constant)
{
    bool scalar = constant->type.kind == LAYA_MIL_TENSOR && constant->type.dtype == LAYA_MIL_STRING &&
                  constant->type.rank == 0;
    return scalar && constant->strings && constant->string_count == 1 ? constant->strings[0] : NULL;
}

/* ------------------------------------------------------------------ parameters */

/* The entry that ends the form's parameters when there is none of that name. */
static const laya_mil_parameter *find_parameter(const laya_mil_operation *operation, const char *name)
{
    const laya_mil_parameter *at = operation->parameters;
    while (at->name && strcmp(at->name, name) != 0) at++;
    return at;
}

const laya_mil_constant *laya_mil_parameter_constant(const laya_mil_inference *in, const char *name)
{
    if (in->operation->in_attributes) return laya_mil_find_attribute(in->op, name);
    const laya_mil_argument *argument = laya_mil_find_argument(in->op, name);
    return argument ? laya_mil_bound_constant(&argument->bindings[0]) : NULL;
}

const laya_mil_type *laya_mil_parameter_type(const laya_mil_inference *in, const char *name)
{
    if (in->operation->in_attributes) {
        const laya_mil_constant *constant = laya_mil_find_attribute(in->op, name);
        return constant ? &constant->type : NULL;
    }
    const laya_mil_argument *argument = laya_mil_find_argument(in->op, name);
    return argument ? laya_mil_bound_type(&argument->bindings[0]) : NULL;
}

bool laya_mil_is_expanded(const laya_mil_binding *binding)
{
    return binding->name && binding->value && binding->value->op && laya_mil_is_constexpr(binding->value->op);
}

laya_status laya_mil_get_integers(const laya_mil_inference *in, const char *name, laya_mil_integers *out)
{
    *out = (laya_mil_integers){0};
    const laya_mil_type *type = laya_mil_parameter_type(in, name);
    if (!type) return LAYA_OK;
    out->given = true;
    LAYA_TRY(laya_mil_check_rank(in, name, 1, 1));
    if (type->dims[0] == LAYA_MIL_UNKNOWN) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter '%s': expected a fixed length, found an unknown one", name);
    }
    if (type->dims[0] > LAYA_MIL_MAX_INTEGERS) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected at most %d values, found %" PRId64,
                         name, LAYA_MIL_MAX_INTEGERS, type->dims[0]);
    }
    out->count = (size_t)type->dims[0];
    const laya_mil_constant *constant = laya_mil_parameter_constant(in, name);
    out->known = constant || (find_parameter(in->operation, name)->flags & LAYA_MIL_CONSTANT);
    if (!out->known) return LAYA_OK;
    if (constant && laya_mil_constant_integers(constant, out->values, LAYA_MIL_MAX_INTEGERS, &out->count))
        return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': its values cannot be read", name);
}

laya_status laya_mil_get_counted(const laya_mil_inference *in, const char *name, size_t count, laya_mil_integers *out)
{
    LAYA_TRY(laya_mil_get_integers(in, name, out));
    if (!out->given || out->count == count) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected %zu values, found %zu", name, count,
                     out->count);
}

/* The constant of a scalar parameter; NULL when it is left out. */
static laya_status get_scalar(const laya_mil_inference *in, const char *name, const laya_mil_constant **constant)
{
    *constant = laya_mil_parameter_constant(in, name);
    if (!laya_mil_parameter_type(in, name)) return LAYA_OK;
    LAYA_TRY(laya_mil_check_scalar(in, name));
    if (*constant) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected a const operation or a value", name);
}

laya_status laya_mil_get_integer(const laya_mil_inference *in, const char *name, int64_t fallback, int64_t *out)
{
    const laya_mil_constant *constant;
    *out = fallback;
    LAYA_TRY(get_scalar(in, name, &constant));
    if (!constant || laya_mil_constant_integer(constant, 0, out)) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': its value cannot be read", name);
}

laya_status laya_mil_get_text(const laya_mil_inference *in, const char *name, const char *fallback, const char **out)
{
    const laya_mil_constant *constant;
    *out = fallback;
    LAYA_TRY(get_scalar(in, name, &constant));
    if (!constant) return LAYA_OK;
    const char *text = laya_mil_constant_string(constant);
    if (!text) return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': its value cannot be read", name);
    *out = text;
    return LAYA_OK;
}

/* -rank … rank - 1 as 0 … rank - 1. */
static laya_status normalize_axis(const laya_mil_inference *in, const char *name, uint32_t rank, int64_t value,
                                  uint32_t *axis)
{
    *axis = 0;
    int64_t limit = (int64_t)rank;
    if (value < -limit || value >= limit) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter '%s': axis %" PRId64 " is out of range for %" PRIu32 " axes", name, value, rank);
    }
    *axis = (uint32_t)(value < 0 ? value + limit : value);
    return LAYA_OK;
}

laya_status laya_mil_get_axis(const laya_mil_inference *in, const char *name, uint32_t rank, int64_t fallback,
                              uint32_t *axis)
{
    int64_t value;
    *axis = 0;
    LAYA_TRY(laya_mil_get_integer(in, name, fallback, &value));
    return normalize_axis(in, name, rank, value, axis);
}

laya_status laya_mil_get_axes(const laya_mil_inference *in, const char *name, uint32_t rank, bool *chosen,
                              bool *given)
{
    laya_mil_integers axes;
    for (uint32_t axis = 0; axis < rank; axis++) chosen[axis] = false;
    LAYA_TRY(laya_mil_get_integers(in, name, &axes));
    *given = axes.given;
    for (size_t at = 0; at < axes.count; at++) {
        uint32_t axis;
        LAYA_TRY(normalize_axis(in, name, rank, axes.values[at], &axis));
        if (chosen[axis]) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': axis %" PRIu32 " occurs twice", name,
                             axis);
        }
        chosen[axis] = true;
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ shapes */

laya_status laya_mil_check_rank(const laya_mil_inference *in, const char *name, uint32_t first, uint32_t last)
{
    const laya_mil_type *type = laya_mil_parameter_type(in, name);
    if (type->rank >= first && type->rank <= last) return LAYA_OK;
    char found[LAYA_MIL_TYPE_TEXT];
    laya_mil_type_text(type, found);
    if (first == last) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected rank %" PRIu32 ", found %s", name,
                         first, found);
    }
    return laya_fail(in->error, LAYA_ERROR_FORMAT,
                     "parameter '%s': expected a rank of %" PRIu32 " to %" PRIu32 ", found %s", name, first, last,
                     found);
}

laya_status laya_mil_check_scalar(const laya_mil_inference *in, const char *name)
{
    return laya_mil_parameter_type(in, name) ? laya_mil_check_rank(in, name, 0, 0) : LAYA_OK;
}

bool laya_mil_dims_agree(int64_t a, int64_t b)
{
    return a == b || a == LAYA_MIL_UNKNOWN || b == LAYA_MIL_UNKNOWN;
}

laya_status laya_mil_check_dims(const laya_mil_inference *in, const char *name, uint32_t rank, const int64_t *dims)
{
    const laya_mil_type *type = laya_mil_parameter_type(in, name);
    if (!type) return LAYA_OK;
    laya_mil_type expected = {.kind = type->kind, .dtype = type->dtype, .rank = rank};
    bool fits = type->rank == rank;
    for (uint32_t axis = 0; axis < rank; axis++) {
        expected.dims[axis] = dims[axis];
        fits = fits && laya_mil_dims_agree(type->dims[axis], dims[axis]);
    }
    if (fits) return LAYA_OK;
    char wanted[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected %s, found %s", name,
                     laya_mil_type_text(&expected, wanted), laya_mil_type_text(type, found));
}

laya_status laya_mil_insert_dim(const laya_mil_inference *in, laya_mil_type *type, uint32_t at, int64_t size)
{
    if (type->rank >= LAYA_MIL_MAX_RANK) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "the output has more than %d axes", LAYA_MIL_MAX_RANK);
    }
    for (uint32_t axis = type->rank; axis > at; axis--) type->dims[axis] = type->dims[axis - 1];
    type->dims[at] = size;
    type->rank++;
    return LAYA_OK;
}

void laya_mil_remove_dim(laya_mil_type *type, uint32_t at)
{
    type->rank--;
    for (uint32_t axis = at; axis < type->rank; axis++) type->dims[axis] = type->dims[axis + 1];
    type->dims[type->rank] = 0;
}

laya_status laya_mil_broadcast(const laya_mil_inference *in, const laya_mil_type *a, const laya_mil_type *b,
                               laya_mil_type *out)
{
    laya_mil_type joined = {.kind = LAYA_MIL_TENSOR, .dtype = out->dtype};
    joined.rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t axis = 0; axis < joined.rank; axis++) { /* counted from the last one */
        int64_t x = axis < a->rank ? a->dims[a->rank - 1 - axis] : 1;
        int64_t y = axis < b->rank ? b->dims[b->rank - 1 - axis] : 1;
        if (x != 1 && y != 1 && !laya_mil_dims_agree(x, y)) {
            char first[LAYA_MIL_TYPE_TEXT], second[LAYA_MIL_TYPE_TEXT];
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "shapes that cannot be broadcast to each other: %s and %s",
                             laya_mil_type_text(a, first), laya_mil_type_text(b, second));
        }
        bool take_y = x == 1 || (x == LAYA_MIL_UNKNOWN && y != 1);
        joined.dims[joined.rank - 1 - axis] = take_y ? y : x;
    }
    *out = joined;
    return LAYA_OK;
}

laya_status laya_mil_infer_same(const laya_mil_inference *in, laya_mil_type *outputs)
{
    outputs[0] = *laya_mil_parameter_type(in, "x");
    return LAYA_OK;
}

/* ------------------------------------------------------------------ what all operations share */

/* "fp16 or fp32" */
static void write_dtypes(uint64_t dtypes, char text[LAYA_MIL_TYPE_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned dtype = 0; dtype < 64 && used < LAYA_MIL_TYPE_TEXT; dtype++) {
        if (!(dtypes >> dtype & 1)) continue;
        const char *before = used == 0 ? "" : " or ";
        int size = snprintf(text + used, LAYA_MIL_TYPE_TEXT - used, "%s%s", before,
                            laya_mil_dtype_name((laya_mil_dtype)dtype));
        used += size > 0 ? (size_t)size : 0;
    }
}

/* The type of a value that is bound to a parameter: kind, dtype, dimensions. */
static laya_status check_type(const laya_mil_inference *in, const laya_mil_parameter *parameter,
                              const laya_mil_type *type)
{
    if (parameter->dtypes == 0) return LAYA_OK;
    char wanted[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
    bool of_state = parameter->flags & LAYA_MIL_OF_STATE;
    bool known = (unsigned)type->dtype < 64 && (parameter->dtypes >> type->dtype & 1);
    if (type->kind != (of_state ? LAYA_MIL_STATE : LAYA_MIL_TENSOR) || !known) {
        write_dtypes(parameter->dtypes, wanted);
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected %s%s, found %s", parameter->name,
                         of_state ? "a state of " : "", wanted, laya_mil_type_text(type, found));
    }
    bool fits = type->rank <= LAYA_MIL_MAX_RANK;
    for (uint32_t axis = 0; fits && axis < type->rank; axis++) {
        fits = type->dims[axis] >= LAYA_MIL_UNKNOWN && type->dims[axis] <= MAX_DIM;
    }
    if (fits) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': an axis of more than 2147483647 elements",
                     parameter->name);
}

static laya_status check_binding(const laya_mil_inference *in, const laya_mil_parameter *parameter,
                                 const laya_mil_binding *binding)
{
    const laya_mil_type *type = laya_mil_bound_type(binding);
    if (!type) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': '%.200s' is not defined before",
                         parameter->name, binding->name ? binding->name : "");
    }
    if ((parameter->flags & LAYA_MIL_CONSTANT) && !laya_mil_is_expanded(binding) &&
        !laya_mil_bound_constant(binding)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT,
                         "parameter '%s': expected a constant, found the value '%.200s'", parameter->name,
                         binding->name ? binding->name : "");
    }
    return check_type(in, parameter, type);
}

/* The bindings of one parameter. */
static laya_status check_argument(const laya_mil_inference *in, const laya_mil_parameter *parameter,
                                  const laya_mil_argument *argument)
{
    bool variadic = parameter->flags & LAYA_MIL_VARIADIC;
    if (argument->count == 0 || (argument->count > 1 && !variadic)) {
        return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected %s, found %" PRIu32 " values",
                         parameter->name, variadic ? "one value or more" : "one value", argument->count);
    }
    for (uint32_t at = 0; at < argument->count; at++) {
        LAYA_TRY(check_binding(in, parameter, &argument->bindings[at]));
    }
    return LAYA_OK;
}

static laya_status check_parameter(const laya_mil_inference *in, const laya_mil_parameter *parameter)
{
    bool found;
    if (in->operation->in_attributes) {
        const laya_mil_constant *constant = laya_mil_find_attribute(in->op, parameter->name);
        found = constant != NULL;
        if (found) LAYA_TRY(check_type(in, parameter, &constant->type));
    } else {
        const laya_mil_argument *argument = laya_mil_find_argument(in->op, parameter->name);
        found = argument != NULL;
        if (found) LAYA_TRY(check_argument(in, parameter, argument));
    }
    if (found || !(parameter->flags & LAYA_MIL_REQUIRED)) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "%s '%s' is missing",
                     in->operation->in_attributes ? "attribute" : "parameter", parameter->name);
}

/* All values of parameters with one letter have one dtype. */
static laya_status check_variables(const laya_mil_inference *in)
{
    struct {
        const char *name;
        laya_mil_dtype dtype;
    } first[128] = {{NULL, LAYA_MIL_NO_DTYPE}};
    for (const laya_mil_parameter *at = in->operation->parameters; at->name; at++) {
        const laya_mil_argument *argument = laya_mil_find_argument(in->op, at->name);
        uint32_t count = argument ? argument->count : 0;
        unsigned letter = (unsigned char)at->variable & 127u;
        for (uint32_t binding = 0; letter && binding < count; binding++) {
            laya_mil_dtype dtype = laya_mil_bound_type(&argument->bindings[binding])->dtype;
            if (!first[letter].name) {
                first[letter].name = at->name;
                first[letter].dtype = dtype;
            }
            if (dtype == first[letter].dtype) continue;
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%s': expected %s as '%s', found %s", at->name,
                             laya_mil_dtype_name(first[letter].dtype), first[letter].name,
                             laya_mil_dtype_name(dtype));
        }
    }
    return LAYA_OK;
}

/* Nothing but the form's parameters, each once, in the place where the form has them. */
static laya_status check_names(const laya_mil_inference *in)
{
    bool in_attributes = in->operation->in_attributes;
    const char *opset = laya_mil_opset_name(in->opset);
    for (uint32_t at = 0; at < in->op->input_count; at++) {
        const char *name = in->op->inputs[at].name;
        if (in_attributes || !find_parameter(in->operation, name)->name) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "unknown parameter '%.200s': in %s %s", name, opset,
                             in_attributes ? "its parameters are attributes" : "it has no such parameter");
        }
        if (laya_mil_find_argument(in->op, name) != &in->op->inputs[at])
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "parameter '%.200s' occurs twice", name);
    }
    for (uint32_t at = 0; at < in->op->attribute_count; at++) {
        const char *name = in->op->attributes[at].name;
        if (!in_attributes || !find_parameter(in->operation, name)->name) {
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "unknown attribute '%.200s': in %s %s", name, opset,
                             in_attributes ? "it has no such attribute" : "its parameters are inputs");
        }
        if (laya_mil_find_attribute(in->op, name) != in->op->attributes[at].value)
            return laya_fail(in->error, LAYA_ERROR_FORMAT, "attribute '%.200s' occurs twice", name);
    }
    return LAYA_OK;
}

static laya_status check_output_count(const laya_mil_inference *in)
{
    if (in->operation->outputs == LAYA_MIL_MANY_OUTPUTS) return LAYA_OK;
    uint32_t expected = in->operation->outputs == LAYA_MIL_ONE_OUTPUT;
    if (in->op->output_count == expected) return LAYA_OK;
    return laya_fail(in->error, LAYA_ERROR_FORMAT, "expected %s, found %" PRIu32 " outputs",
                     expected ? "one output" : "no output", in->op->output_count);
}

/* Dimensions that the inference computed. */
static laya_status check_outputs(const laya_mil_inference *in, const laya_mil_type *outputs)
{
    for (uint32_t at = 0; at < in->op->output_count; at++) {
        for (uint32_t axis = 0; axis < outputs[at].rank; axis++) {
            if (outputs[at].dims[axis] <= MAX_DIM) continue;
            return laya_fail(in->error, LAYA_ERROR_FORMAT,
                             "axis %" PRIu32 " of the output has %" PRId64 " elements, more than 2147483647", axis,
                             outputs[at].dims[axis]);
        }
    }
    return LAYA_OK;
}

static laya_status infer_checked(const laya_mil_inference *in, laya_mil_type *outputs)
{
    LAYA_TRY(check_names(in));
    for (const laya_mil_parameter *at = in->operation->parameters; at->name; at++) LAYA_TRY(check_parameter(in, at));
    LAYA_TRY(check_variables(in));
    LAYA_TRY(check_output_count(in));
    LAYA_TRY(in->operation->infer(in, outputs));
    return check_outputs(in, outputs);
}

/* An operation that the opset does not have, or that is not known here. */
static laya_status refuse_unknown(const laya_mil_op *op, laya_mil_opset opset, laya_error *error)
{
    laya_mil_opset since = laya_mil_operation_since(op->type);
    const char *name = laya_mil_opset_name(opset);
    if (since == 0) return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "this operation is not known here");
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "this operation needs %s, the opset is %s",
                     laya_mil_opset_name(since), name ? name : "not known");
}

laya_status laya_mil_infer(const laya_mil_op *op, laya_mil_opset opset, laya_mil_type *outputs, laya_error *error)
{
    laya_mil_inference in = {
        .op = op, .operation = laya_mil_operation_find(op->type, opset), .opset = opset, .error = error};
    for (uint32_t at = 0; at < op->output_count; at++) outputs[at] = (laya_mil_type){.kind = LAYA_MIL_TENSOR};
    laya_status status = in.operation ? infer_checked(&in, outputs) : refuse_unknown(op, opset, error);
    if (status != LAYA_OK) laya_error_prefix(error, "%.200s (%.100s): ", laya_mil_op_label(op), op->type);
    return status;
}
