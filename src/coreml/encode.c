/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages are built as protobuf-c's structs in an arena of their own, then packed in one go. Their pointers go
 * to the program's names and bytes, which are not copied.
 */
#include "coreml/encode.h"

#include "base/error.h"
#include "coreml/weight_file.h"
#include "coreml/wire.h"

#include <string.h>

/* Blocks inside each other: beyond it a constant in the innermost block would be too deep for the reader. */
#define MAX_BLOCKS ((LAYA_WIRE_MAX_DEPTH - 12u) / 2u)

#define SLAB_SIZE ((size_t)64 * 1024)

typedef struct encoder {
    laya_arena arena;
    unsigned char *slab; /* the arena aligns to 64 bytes: small structs are carved off slabs */
    size_t left;
    laya_error *error;
} encoder;

/* count * size bytes for structs, not cleared; NULL when there is no memory. */
static void *take(encoder *e, size_t count, size_t size)
{
    size_t bytes;
    if (!laya_mul_size(count, size, &bytes)) return NULL;
    if (bytes > SLAB_SIZE / 8) return laya_arena_alloc(&e->arena, bytes, 1);
    bytes = (bytes + 15) & ~(size_t)15;
    if (!e->slab || bytes > e->left) {
        e->slab = laya_arena_alloc(&e->arena, SLAB_SIZE, 1);
        e->left = e->slab ? SLAB_SIZE : 0;
        if (!e->slab) return NULL;
    }
    void *block = e->slab;
    e->slab += bytes;
    e->left -= bytes;
    return block;
}

/* Allocate a list of `count` elements. */
#define TAKE(e, list, count)                                                                                         \
    do {                                                                                                             \
        (list) = take((e), (count), sizeof *(list));                                                                 \
        if (!(list)) return laya_fail_memory((e)->error, 0);                                                         \
    } while (0)

/* Allocate and initialise one message. */
#define MAKE(e, pointer, message)                                                                                    \
    do {                                                                                                             \
        TAKE(e, pointer, 1);                                                                                         \
        laya_pb__##message##__init(pointer);                                                                         \
    } while (0)

/* protobuf-c's structs have no const; packing does not write. */
static char *text_of(const char *text)
{
    return (char *)text;
}

/* ------------------------------------------------------------------ types */

static laya_status encode_tensor_type(encoder *e, const laya_mil_type *type, LayaPb__ValueType **out)
{
    LayaPb__TensorType *tensor;
    MAKE(e, *out, value_type);
    MAKE(e, tensor, tensor_type);
    (*out)->type_case = LAYA_PB__VALUE_TYPE__TYPE_TENSOR_TYPE;
    (*out)->tensor_type = tensor;
    tensor->data_type = (int32_t)type->dtype;
    tensor->rank = type->rank;
    tensor->n_dimensions = type->rank;
    TAKE(e, tensor->dimensions, type->rank);
    for (uint32_t axis = 0; axis < type->rank; axis++) {
        LayaPb__Dimension *dimension;
        MAKE(e, dimension, dimension);
        if (type->dims[axis] < 0) {
            dimension->dimension_case = LAYA_PB__DIMENSION__DIMENSION_UNKNOWN;
            MAKE(e, dimension->unknown, unknown_dimension);
        } else {
            dimension->dimension_case = LAYA_PB__DIMENSION__DIMENSION_CONSTANT;
            MAKE(e, dimension->constant, constant_dimension);
            dimension->constant->size = (uint64_t)type->dims[axis];
        }
        tensor->dimensions[axis] = dimension;
    }
    return LAYA_OK;
}

static laya_status encode_type(encoder *e, const laya_mil_type *type, LayaPb__ValueType **out)
{
    char text[LAYA_MIL_TYPE_TEXT];
    if (type->kind == LAYA_MIL_TENSOR) return encode_tensor_type(e, type, out);
    if (type->kind != LAYA_MIL_STATE) {
        return laya_fail(e->error, LAYA_ERROR_UNSUPPORTED, "a value of type %s cannot be written; only tensors can",
                         laya_mil_type_text(type, text));
    }
    MAKE(e, *out, value_type);
    (*out)->type_case = LAYA_PB__VALUE_TYPE__TYPE_STATE_TYPE;
    MAKE(e, (*out)->state_type, state_type);
    return encode_tensor_type(e, type, &(*out)->state_type->wrapped_type);
}

static laya_status encode_named_types(encoder *e, laya_mil_value *const *values, uint32_t count,
                                      LayaPb__NamedValueType ***out, size_t *out_count)
{
    TAKE(e, *out, count);
    for (uint32_t i = 0; i < count; i++) {
        MAKE(e, (*out)[i], named_value_type);
        (*out)[i]->name = text_of(values[i]->name);
        LAYA_TRY(encode_type(e, &values[i]->type, &(*out)[i]->type));
    }
    *out_count = count;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ values */

/* A little-endian integer of `width` bytes. */
static uint64_t load(const unsigned char *bytes, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static laya_status encode_floats(encoder *e, const unsigned char *bytes, size_t size, LayaPb__TensorValue *out)
{
    size_t count = size / 4;
    MAKE(e, out->floats, repeated_floats);
    TAKE(e, out->floats->values, count);
    out->floats->n_values = count;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)load(bytes + 4 * i, 4);
        memcpy(&out->floats->values[i], &bits, sizeof bits);
    }
    return LAYA_OK;
}

static laya_status encode_doubles(encoder *e, const unsigned char *bytes, size_t size, LayaPb__TensorValue *out)
{
    size_t count = size / 8;
    MAKE(e, out->doubles, repeated_doubles);
    TAKE(e, out->doubles->values, count);
    out->doubles->n_values = count;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = load(bytes + 8 * i, 8);
        memcpy(&out->doubles->values[i], &bits, sizeof bits);
    }
    return LAYA_OK;
}

static laya_status encode_ints(encoder *e, laya_mil_dtype dtype, const unsigned char *bytes, size_t size,
                               LayaPb__TensorValue *out)
{
    unsigned width = laya_mil_dtype_bits(dtype) / 8;
    size_t count = size / width;
    MAKE(e, out->ints, repeated_ints);
    TAKE(e, out->ints->values, count);
    out->ints->n_values = count;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)load(bytes + width * i, width);
        out->ints->values[i] = dtype == LAYA_MIL_INT16 ? (int16_t)bits : (int32_t)bits;
    }
    return LAYA_OK;
}

static laya_status encode_long_ints(encoder *e, const unsigned char *bytes, size_t size, LayaPb__TensorValue *out)
{
    size_t count = size / 8;
    MAKE(e, out->long_ints, repeated_long_ints);
    TAKE(e, out->long_ints->values, count);
    out->long_ints->n_values = count;
    for (size_t i = 0; i < count; i++) out->long_ints->values[i] = (int64_t)load(bytes + 8 * i, 8);
    return LAYA_OK;
}

static laya_status encode_bools(encoder *e, const unsigned char *bytes, size_t count, LayaPb__TensorValue *out)
{
    MAKE(e, out->bools, repeated_bools);
    TAKE(e, out->bools->values, count);
    out->bools->n_values = count;
    for (size_t i = 0; i < count; i++) out->bools->values[i] = bytes[i] != 0;
    return LAYA_OK;
}

static laya_status encode_strings(encoder *e, const char *const *strings, size_t count, LayaPb__TensorValue *out)
{
    MAKE(e, out->strings, repeated_strings);
    TAKE(e, out->strings->values, count);
    out->strings->n_values = count;
    for (size_t i = 0; i < count; i++) out->strings->values[i] = text_of(strings[i]);
    return LAYA_OK;
}

/* The bytes of a constant in memory, read from its source where it has one. */
static laya_status constant_bytes(encoder *e, const laya_mil_constant *constant, const unsigned char **bytes,
                                  size_t *byte_count)
{
    const laya_mil_source *source = constant->source;
    char text[LAYA_MIL_TYPE_TEXT];
    uint64_t size;
    *bytes = constant->bytes;
    if (!laya_mil_type_size(&constant->type, &size) || size > LAYA_WIRE_MAX_SIZE ||
        (size > 0 && !*bytes && !source)) {
        return laya_fail(e->error, LAYA_ERROR_UNSUPPORTED, "a constant of type %s cannot be written in place",
                         laya_mil_type_text(&constant->type, text));
    }
    *byte_count = (size_t)size;
    if (*bytes || size == 0) return LAYA_OK;
    unsigned char *copy;
    TAKE(e, copy, (size_t)size);
    *bytes = copy;
    uint64_t rows = constant->type.rank > 0 ? (uint64_t)constant->type.dims[0] : 1;
    return source->read(source->user, 0, rows, copy, e->error);
}

static laya_status encode_elements(encoder *e, const laya_mil_constant *constant, LayaPb__TensorValue *out)
{
    const unsigned char *bytes;
    size_t size;
    laya_mil_dtype dtype = constant->type.dtype;
    out->value_case = laya_wire_field(dtype);
    if (out->value_case == LAYA_PB__TENSOR_VALUE__VALUE_STRINGS)
        return encode_strings(e, constant->strings, constant->string_count, out);
    LAYA_TRY(constant_bytes(e, constant, &bytes, &size));
    switch (out->value_case) {
    case LAYA_PB__TENSOR_VALUE__VALUE_FLOATS: return encode_floats(e, bytes, size, out);
    case LAYA_PB__TENSOR_VALUE__VALUE_DOUBLES: return encode_doubles(e, bytes, size, out);
    case LAYA_PB__TENSOR_VALUE__VALUE_INTS: return encode_ints(e, dtype, bytes, size, out);
    case LAYA_PB__TENSOR_VALUE__VALUE_LONG_INTS: return encode_long_ints(e, bytes, size, out);
    case LAYA_PB__TENSOR_VALUE__VALUE_BOOLS: return encode_bools(e, bytes, size, out);
    default: break;
    }
    MAKE(e, out->bytes, repeated_bytes);
    out->bytes->values = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)bytes};
    return LAYA_OK;
}

static laya_status encode_value(encoder *e, const laya_mil_constant *constant, LayaPb__Value **out)
{
    MAKE(e, *out, value);
    LAYA_TRY(encode_type(e, &constant->type, &(*out)->type));
    if (constant->in_file) {
        LayaPb__BlobFileValue *blob;
        MAKE(e, blob, blob_file_value);
        blob->file_name = text_of(LAYA_WEIGHT_FILE_NAME);
        blob->offset = constant->offset;
        (*out)->value_case = LAYA_PB__VALUE__VALUE_BLOB_FILE_VALUE;
        (*out)->blob_file_value = blob;
        return LAYA_OK;
    }
    LayaPb__ImmediateValue *immediate;
    MAKE(e, immediate, immediate_value);
    immediate->value_case = LAYA_PB__IMMEDIATE_VALUE__VALUE_TENSOR;
    MAKE(e, immediate->tensor, tensor_value);
    (*out)->value_case = LAYA_PB__VALUE__VALUE_IMMEDIATE_VALUE;
    (*out)->immediate_value = immediate;
    return encode_elements(e, constant, immediate->tensor);
}

/* ------------------------------------------------------------------ operations */

static laya_status encode_argument(encoder *e, const laya_mil_argument *argument, LayaPb__ArgumentEntry **out)
{
    LayaPb__Argument *value;
    MAKE(e, *out, argument_entry);
    MAKE(e, value, argument);
    (*out)->key = text_of(argument->name);
    (*out)->value = value;
    value->n_arguments = argument->count;
    TAKE(e, value->arguments, argument->count);
    for (uint32_t i = 0; i < argument->count; i++) {
        LayaPb__Binding *binding;
        MAKE(e, binding, binding);
        value->arguments[i] = binding;
        if (argument->bindings[i].name) {
            binding->binding_case = LAYA_PB__BINDING__BINDING_NAME;
            binding->name = text_of(argument->bindings[i].name);
        } else {
            binding->binding_case = LAYA_PB__BINDING__BINDING_VALUE;
            LAYA_TRY(encode_value(e, argument->bindings[i].constant, &binding->value));
        }
    }
    return LAYA_OK;
}

static laya_status encode_attribute(encoder *e, const char *name, const laya_mil_constant *value,
                                    LayaPb__ValueEntry **out)
{
    MAKE(e, *out, value_entry);
    (*out)->key = text_of(name);
    return encode_value(e, value, &(*out)->value);
}

static laya_status encode_attributes(encoder *e, const laya_mil_op *op, LayaPb__Operation *out)
{
    size_t count = op->attribute_count + (op->name ? 1u : 0u);
    TAKE(e, out->attributes, count);
    if (op->name) {
        laya_mil_constant name = {.type = laya_mil_scalar(LAYA_MIL_STRING), .strings = &op->name, .string_count = 1};
        LAYA_TRY(encode_attribute(e, "name", &name, &out->attributes[out->n_attributes++]));
    }
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        LAYA_TRY(encode_attribute(e, op->attributes[i].name, op->attributes[i].value,
                                  &out->attributes[out->n_attributes++]));
    }
    return LAYA_OK;
}

/* All of an operation but its nested blocks, which are made empty. */
static laya_status encode_op(encoder *e, const laya_mil_op *op, LayaPb__Operation **out)
{
    MAKE(e, *out, operation);
    (*out)->type = text_of(op->type);
    TAKE(e, (*out)->inputs, op->input_count);
    for (uint32_t i = 0; i < op->input_count; i++) LAYA_TRY(encode_argument(e, &op->inputs[i], &(*out)->inputs[i]));
    (*out)->n_inputs = op->input_count;
    LAYA_TRY(encode_named_types(e, op->outputs, op->output_count, &(*out)->outputs, &(*out)->n_outputs));
    TAKE(e, (*out)->blocks, op->block_count);
    for (uint32_t i = 0; i < op->block_count; i++) MAKE(e, (*out)->blocks[i], block);
    (*out)->n_blocks = op->block_count;
    return encode_attributes(e, op, *out);
}

/* ------------------------------------------------------------------ blocks */

/* A block that is being encoded; `op` is the operation whose nested blocks are on, NULL before the first. */
typedef struct frame {
    const laya_mil_block *block;
    LayaPb__Block *out;
    const laya_mil_op *op;
    uint32_t next_block;
} frame;

/* All of a block but its operations, for which room is made. */
static laya_status begin_block(encoder *e, frame *top)
{
    const laya_mil_block *block = top->block;
    LayaPb__Block *out = top->out;
    LAYA_TRY(encode_named_types(e, block->inputs, block->input_count, &out->inputs, &out->n_inputs));
    TAKE(e, out->outputs, block->output_count);
    for (uint32_t i = 0; i < block->output_count; i++) out->outputs[i] = text_of(block->outputs[i].name);
    out->n_outputs = block->output_count;
    TAKE(e, out->operations, block->op_count);
    return LAYA_OK;
}

static laya_status encode_block(encoder *e, const laya_mil_block *block, LayaPb__Block *out)
{
    frame frames[MAX_BLOCKS];
    uint32_t depth = 1;
    frames[0] = (frame){.block = block, .out = out};
    LAYA_TRY(begin_block(e, &frames[0]));
    while (depth > 0) {
        frame *top = &frames[depth - 1];
        if (top->op && top->next_block < top->op->block_count) {
            if (depth == MAX_BLOCKS) {
                return laya_fail(e->error, LAYA_ERROR_UNSUPPORTED,
                                 "blocks inside each other more than %u deep, which is the limit", MAX_BLOCKS);
            }
            LayaPb__Operation *op = top->out->operations[top->out->n_operations - 1];
            frames[depth] = (frame){.block = &top->op->blocks[top->next_block], .out = op->blocks[top->next_block]};
            top->next_block++;
            LAYA_TRY(begin_block(e, &frames[depth]));
            depth++;
            continue;
        }
        top->op = top->op ? top->op->next : top->block->first;
        top->next_block = 0;
        if (top->op)
            LAYA_TRY(encode_op(e, top->op, &top->out->operations[top->out->n_operations++]));
        else
            depth--;
    }
    return LAYA_OK;
}

static laya_status encode_function(encoder *e, const laya_mil_function *function, LayaPb__FunctionEntry **out)
{
    LayaPb__Function *value;
    LayaPb__BlockEntry *body;
    MAKE(e, *out, function_entry);
    MAKE(e, value, function);
    (*out)->key = text_of(function->name);
    (*out)->value = value;
    LAYA_TRY(encode_named_types(e, function->inputs, function->input_count, &value->inputs, &value->n_inputs));
    value->opset = text_of(function->opset_name);
    TAKE(e, value->block_specializations, 1);
    value->n_block_specializations = 1;
    MAKE(e, body, block_entry);
    value->block_specializations[0] = body;
    body->key = text_of(function->specialization_name);
    MAKE(e, body->value, block);
    return encode_block(e, &function->body, body->value);
}

/* ------------------------------------------------------------------ description */

static laya_status encode_array(encoder *e, const laya_mil_type *type, LayaPb__ArrayFeatureType **out)
{
    MAKE(e, *out, array_feature_type);
    (*out)->data_type = laya_wire_array_type(type->dtype);
    TAKE(e, (*out)->shape, type->rank);
    for (uint32_t axis = 0; axis < type->rank; axis++) (*out)->shape[axis] = type->dims[axis];
    (*out)->n_shape = type->rank;
    return LAYA_OK;
}

static laya_status encode_feature(encoder *e, const laya_mil_feature *feature, LayaPb__FeatureDescription **out)
{
    LayaPb__FeatureType *type;
    bool state = feature->type.kind == LAYA_MIL_STATE;
    if (strcmp(feature->kind, state ? "state" : "multiArray") != 0 || feature->flexible) {
        return laya_fail(
            e->error, LAYA_ERROR_UNSUPPORTED,
            "\"%s\" cannot be written as an input or output: it is of kind %s%s; only arrays of one shape "
            "and states can",
            feature->name, feature->kind, feature->flexible ? " with several shapes" : "");
    }
    MAKE(e, *out, feature_description);
    MAKE(e, type, feature_type);
    (*out)->name = text_of(feature->name);
    (*out)->type = type;
    type->is_optional = feature->optional;
    if (!state) {
        type->type_case = LAYA_PB__FEATURE_TYPE__TYPE_MULTI_ARRAY_TYPE;
        return encode_array(e, &feature->type, &type->multi_array_type);
    }
    type->type_case = LAYA_PB__FEATURE_TYPE__TYPE_STATE_TYPE;
    MAKE(e, type->state_type, state_feature_type);
    return encode_array(e, &feature->type, &type->state_type->array_type);
}

static laya_status encode_features(encoder *e, const laya_mil_feature *features, uint32_t count,
                                   LayaPb__FeatureDescription ***out, size_t *out_count)
{
    TAKE(e, *out, count);
    for (uint32_t i = 0; i < count; i++) LAYA_TRY(encode_feature(e, &features[i], &(*out)[i]));
    *out_count = count;
    return LAYA_OK;
}

static laya_status encode_function_description(encoder *e, const laya_mil_interface *interface,
                                               LayaPb__FunctionDescription **out)
{
    MAKE(e, *out, function_description);
    (*out)->name = text_of(interface->name);
    LAYA_TRY(encode_features(e, interface->inputs, interface->input_count, &(*out)->input, &(*out)->n_input));
    LAYA_TRY(encode_features(e, interface->outputs, interface->output_count, &(*out)->output, &(*out)->n_output));
    return encode_features(e, interface->states, interface->state_count, &(*out)->state, &(*out)->n_state);
}

/* The field of Metadata that a key names; NULL: the key is the user's own. */
static char **metadata_field(LayaPb__Metadata *metadata, const char *key)
{
    if (strcmp(key, "shortDescription") == 0) return &metadata->short_description;
    if (strcmp(key, "versionString") == 0) return &metadata->version_string;
    if (strcmp(key, "author") == 0) return &metadata->author;
    if (strcmp(key, "license") == 0) return &metadata->license;
    return NULL;
}

static laya_status encode_metadata(encoder *e, const laya_mil_program *program, LayaPb__Metadata **out)
{
    MAKE(e, *out, metadata);
    TAKE(e, (*out)->user_defined, program->metadata_count);
    for (uint32_t i = 0; i < program->metadata_count; i++) {
        char **field = metadata_field(*out, program->metadata[i].key);
        if (field) {
            *field = text_of(program->metadata[i].text);
            continue;
        }
        LayaPb__MetadataEntry *entry;
        MAKE(e, entry, metadata_entry);
        entry->key = text_of(program->metadata[i].key);
        entry->value = text_of(program->metadata[i].text);
        (*out)->user_defined[(*out)->n_user_defined++] = entry;
    }
    return LAYA_OK;
}

static laya_status encode_description(encoder *e, const laya_mil_program *program, LayaPb__ModelDescription **out)
{
    MAKE(e, *out, model_description);
    if (program->interface_count == 1) {
        const laya_mil_interface *interface = &program->interfaces[0];
        LAYA_TRY(encode_features(e, interface->inputs, interface->input_count, &(*out)->input, &(*out)->n_input));
        LAYA_TRY(encode_features(e, interface->outputs, interface->output_count, &(*out)->output, &(*out)->n_output));
        LAYA_TRY(encode_features(e, interface->states, interface->state_count, &(*out)->state, &(*out)->n_state));
    } else if (program->interface_count > 1) {
        TAKE(e, (*out)->functions, program->interface_count);
        for (uint32_t i = 0; i < program->interface_count; i++)
            LAYA_TRY(encode_function_description(e, &program->interfaces[i], &(*out)->functions[i]));
        (*out)->n_functions = program->interface_count;
        if (program->default_function) (*out)->default_function_name = text_of(program->default_function);
    }
    if (program->metadata_count > 0) LAYA_TRY(encode_metadata(e, program, &(*out)->metadata));
    return LAYA_OK;
}

/* ------------------------------------------------------------------ model */

static laya_status encode_model(encoder *e, const laya_mil_program *program, LayaPb__Model **out)
{
    MAKE(e, *out, model);
    (*out)->specification_version = program->specification_version;
    LAYA_TRY(encode_description(e, program, &(*out)->description));
    MAKE(e, (*out)->ml_program, program);
    LayaPb__Program *body = (*out)->ml_program;
    body->version = program->version;
    TAKE(e, body->functions, program->function_count);
    for (uint32_t i = 0; i < program->function_count; i++)
        LAYA_TRY(encode_function(e, &program->functions[i], &body->functions[i]));
    body->n_functions = program->function_count;
    return LAYA_OK;
}

static laya_status pack(const LayaPb__Model *model, laya_buffer *out, laya_error *error)
{
    size_t size = laya_pb__model__get_packed_size(model);
    if (size > LAYA_WIRE_MAX_SIZE) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "the model would have %zu bytes; protobuf's limit is %zu",
                         size, LAYA_WIRE_MAX_SIZE);
    }
    if (!laya_buffer_reserve(out, size)) return laya_fail_memory(error, size);
    laya_pb__model__pack(model, (uint8_t *)out->data + out->size);
    out->size += size;
    out->data[out->size] = '\0';
    return LAYA_OK;
}

laya_status laya_model_encode(const laya_mil_program *program, laya_buffer *out, laya_error *error)
{
    encoder e = {.error = error};
    LayaPb__Model *model;
    laya_arena_init(&e.arena, &program->arena.allocator);
    laya_status status = encode_model(&e, program, &model);
    if (status == LAYA_OK) status = pack(model, out, error);
    laya_arena_close(&e.arena);
    return status;
}
