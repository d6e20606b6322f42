/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are checked first (coreml/wire.h), then unpacked by protobuf-c, then turned into a program whose texts and
 * immediate values are copies in its arena; the unpacked message is released at the end.
 */
#include "coreml/encode.h"

#include "base/error.h"
#include "coreml/weight_file.h"
#include "coreml/wire.h"

#include <inttypes.h>
#include <string.h>

/* Blocks inside each other: an operation and a block take two of the levels that the check allows. */
#define MAX_BLOCKS (LAYA_WIRE_MAX_DEPTH / 2u)

#define MODEL_PATH "@model_path/" /* what file names of weight files begin with */

/* A name that was defined anew: what it meant before, for the end of the block. */
typedef struct shadow {
    const char *name;
    laya_mil_value *older; /* NULL: nothing */
} shadow;

typedef struct decoder {
    laya_mil_program *program;
    laya_arena *arena;
    laya_mil_names texts;  /* every text once: its copy */
    laya_mil_names values; /* what each name means at this place of the function */
    shadow *shadows;       /* a stack */
    size_t shadow_count, shadow_capacity;
    const unsigned char *weights;
    size_t weights_size;
    const char *weights_name;  /* the file that the first reference names */
    const char *function, *op; /* where we are, for messages */
    laya_error *error;
} decoder;

/* ------------------------------------------------------------------ memory and messages */

/* Allocate a cleared list of `count` elements in the arena. */
#define TAKE(d, list, count)                                                                                         \
    do {                                                                                                             \
        (list) = laya_arena_alloc((d)->arena, (count), sizeof *(list));                                              \
        if (!(list)) return laya_fail_memory((d)->error, 0);                                                         \
        memset((list), 0, (count) * sizeof *(list));                                                                 \
    } while (0)

/* A failure with where it is in the program. */
#define FAIL(d, status, ...) (laya_set_error((d)->error, (status), __VA_ARGS__), prefix_place(d), (status))

static void prefix_place(const decoder *d)
{
    if (d->op) laya_error_prefix(d->error, "operation \"%s\": ", d->op);
    if (d->function) laya_error_prefix(d->error, "function \"%s\": ", d->function);
}

/* The program's copy of a text. */
static laya_status copy_text(decoder *d, const char *text, const char **copy)
{
    *copy = laya_mil_names_get(&d->texts, text);
    if (*copy) return LAYA_OK;
    char *made = laya_arena_copy(d->arena, text, strlen(text));
    if (!made || !laya_mil_names_put(&d->texts, made, made, NULL)) return laya_fail_memory(d->error, 0);
    *copy = made;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ names */

/* From here on a name means this value. */
static laya_status define(decoder *d, laya_mil_value *value)
{
    if (d->shadow_count == d->shadow_capacity) {
        size_t capacity = d->shadow_capacity ? d->shadow_capacity * 2 : 256;
        shadow *larger = laya_alloc(&d->program->arena.allocator, capacity, sizeof *larger);
        if (!larger) return laya_fail_memory(d->error, capacity * sizeof *larger);
        if (d->shadow_count > 0) memcpy(larger, d->shadows, d->shadow_count * sizeof *larger);
        laya_release(&d->program->arena.allocator, d->shadows);
        d->shadows = larger;
        d->shadow_capacity = capacity;
    }
    void *older;
    if (!laya_mil_names_put(&d->values, value->name, value, &older)) return laya_fail_memory(d->error, 0);
    d->shadows[d->shadow_count++] = (shadow){value->name, older};
    return LAYA_OK;
}

/* Names mean again what they meant when there were `count` definitions. */
static laya_status forget(decoder *d, size_t count)
{
    while (d->shadow_count > count) {
        const shadow *last = &d->shadows[--d->shadow_count];
        if (!laya_mil_names_put(&d->values, last->name, last->older, NULL)) return laya_fail_memory(d->error, 0);
    }
    return LAYA_OK;
}

static laya_status bind(decoder *d, const char *name, laya_mil_binding *binding)
{
    LAYA_TRY(copy_text(d, name, &binding->name));
    binding->value = laya_mil_names_get(&d->values, name);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ types */

static laya_status decode_dimension(decoder *d, const LayaPb__Dimension *dimension, int64_t *size)
{
    if (dimension->dimension_case == LAYA_PB__DIMENSION__DIMENSION_UNKNOWN) {
        if (dimension->unknown->variadic)
            return FAIL(d, LAYA_ERROR_UNSUPPORTED, "a tensor type whose rank is not fixed");
        *size = LAYA_MIL_UNKNOWN;
        return LAYA_OK;
    }
    if (dimension->dimension_case != LAYA_PB__DIMENSION__DIMENSION_CONSTANT)
        return FAIL(d, LAYA_ERROR_FORMAT, "a dimension without a size");
    if (dimension->constant->size > INT64_MAX)
        return FAIL(d, LAYA_ERROR_FORMAT, "a dimension of %" PRIu64 " elements", dimension->constant->size);
    *size = (int64_t)dimension->constant->size;
    return LAYA_OK;
}

static laya_status decode_tensor_type(decoder *d, const LayaPb__TensorType *tensor, laya_mil_type *type)
{
    if (tensor->rank < 0) return FAIL(d, LAYA_ERROR_UNSUPPORTED, "a tensor type whose rank is not fixed");
    if ((uint64_t)tensor->rank != tensor->n_dimensions) {
        return FAIL(d, LAYA_ERROR_FORMAT, "a tensor type of rank %" PRId64 " has %zu dimensions", tensor->rank,
                    tensor->n_dimensions);
    }
    if (tensor->rank > LAYA_MIL_MAX_RANK) {
        return FAIL(d, LAYA_ERROR_UNSUPPORTED, "a tensor type of rank %" PRId64 "; the limit is %d", tensor->rank,
                    LAYA_MIL_MAX_RANK);
    }
    type->dtype = (laya_mil_dtype)tensor->data_type;
    type->rank = (uint32_t)tensor->rank;
    for (uint32_t axis = 0; axis < type->rank; axis++)
        LAYA_TRY(decode_dimension(d, tensor->dimensions[axis], &type->dims[axis]));
    return LAYA_OK;
}

/* `message` NULL: there is none. */
static laya_status decode_type(decoder *d, const LayaPb__ValueType *message, laya_mil_type *type)
{
    *type = (laya_mil_type){.kind = LAYA_MIL_TENSOR};
    switch (message ? message->type_case : LAYA_PB__VALUE_TYPE__TYPE__NOT_SET) {
    case LAYA_PB__VALUE_TYPE__TYPE_TENSOR_TYPE: return decode_tensor_type(d, message->tensor_type, type);
    case LAYA_PB__VALUE_TYPE__TYPE_LIST_TYPE: type->kind = LAYA_MIL_LIST; return LAYA_OK;
    case LAYA_PB__VALUE_TYPE__TYPE_TUPLE_TYPE: type->kind = LAYA_MIL_TUPLE; return LAYA_OK;
    case LAYA_PB__VALUE_TYPE__TYPE_DICTIONARY_TYPE: type->kind = LAYA_MIL_DICTIONARY; return LAYA_OK;
    case LAYA_PB__VALUE_TYPE__TYPE_STATE_TYPE: {
        const LayaPb__ValueType *wrapped = message->state_type->wrapped_type;
        if (!wrapped || wrapped->type_case != LAYA_PB__VALUE_TYPE__TYPE_TENSOR_TYPE)
            return FAIL(d, LAYA_ERROR_FORMAT, "a state that is not of a tensor");
        type->kind = LAYA_MIL_STATE;
        return decode_tensor_type(d, wrapped->tensor_type, type);
    }
    default: return FAIL(d, LAYA_ERROR_FORMAT, "a value without a type");
    }
}

/* Values that an operation or the caller of a function or block gives. */
static laya_status decode_values(decoder *d, LayaPb__NamedValueType *const *messages, size_t count,
                                 laya_mil_value ***out, uint32_t *out_count)
{
    laya_mil_value *values;
    TAKE(d, *out, count);
    TAKE(d, values, count);
    for (size_t i = 0; i < count; i++) {
        LAYA_TRY(copy_text(d, messages[i]->name, &values[i].name));
        LAYA_TRY(decode_type(d, messages[i]->type, &values[i].type));
        (*out)[i] = &values[i];
    }
    *out_count = (uint32_t)count;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ constants */

static void store(unsigned char *out, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++) out[i] = (unsigned char)(value >> (8 * i));
}

/* How many elements an immediate value has; of packed bytes: how many bytes. */
static size_t immediate_count(const LayaPb__TensorValue *tensor)
{
    switch (tensor->value_case) {
    case LAYA_PB__TENSOR_VALUE__VALUE_FLOATS: return tensor->floats->n_values;
    case LAYA_PB__TENSOR_VALUE__VALUE_INTS: return tensor->ints->n_values;
    case LAYA_PB__TENSOR_VALUE__VALUE_BOOLS: return tensor->bools->n_values;
    case LAYA_PB__TENSOR_VALUE__VALUE_STRINGS: return tensor->strings->n_values;
    case LAYA_PB__TENSOR_VALUE__VALUE_LONG_INTS: return tensor->long_ints->n_values;
    case LAYA_PB__TENSOR_VALUE__VALUE_DOUBLES: return tensor->doubles->n_values;
    case LAYA_PB__TENSOR_VALUE__VALUE_BYTES: return tensor->bytes->values.len;
    default: return 0;
    }
}

static laya_status decode_strings(decoder *d, const LayaPb__RepeatedStrings *strings, laya_mil_constant *constant)
{
    const char **copies;
    TAKE(d, copies, strings->n_values);
    for (size_t i = 0; i < strings->n_values; i++) LAYA_TRY(copy_text(d, strings->values[i], &copies[i]));
    constant->strings = copies;
    constant->string_count = (uint32_t)strings->n_values;
    return LAYA_OK;
}

static laya_status decode_ints(decoder *d, const LayaPb__RepeatedInts *ints, laya_mil_dtype dtype, unsigned char *out)
{
    unsigned width = laya_mil_dtype_bits(dtype) / 8;
    int32_t least = dtype == LAYA_MIL_INT16 ? INT16_MIN : dtype == LAYA_MIL_UINT16 ? 0 : INT32_MIN;
    int32_t most = dtype == LAYA_MIL_INT16 ? INT16_MAX : dtype == LAYA_MIL_UINT16 ? UINT16_MAX : INT32_MAX;
    for (size_t i = 0; i < ints->n_values; i++) {
        int32_t value = ints->values[i];
        if (value < least || value > most) {
            return FAIL(d, LAYA_ERROR_FORMAT, "an element %" PRId32 " of a constant does not fit into %s", value,
                        laya_mil_dtype_name(dtype));
        }
        store(out + width * i, width, (uint32_t)value);
    }
    return LAYA_OK;
}

/* The elements of an immediate value, whose number is right, as little-endian bytes. */
static laya_status decode_elements(decoder *d, const LayaPb__TensorValue *tensor, laya_mil_dtype dtype,
                                   unsigned char *out)
{
    size_t count = immediate_count(tensor);
    uint64_t bits64;
    uint32_t bits32;
    switch (tensor->value_case) {
    case LAYA_PB__TENSOR_VALUE__VALUE_FLOATS:
        for (size_t i = 0; i < count; i++) {
            memcpy(&bits32, &tensor->floats->values[i], sizeof bits32);
            store(out + 4 * i, 4, bits32);
        }
        break;
    case LAYA_PB__TENSOR_VALUE__VALUE_DOUBLES:
        for (size_t i = 0; i < count; i++) {
            memcpy(&bits64, &tensor->doubles->values[i], sizeof bits64);
            store(out + 8 * i, 8, bits64);
        }
        break;
    case LAYA_PB__TENSOR_VALUE__VALUE_INTS: return decode_ints(d, tensor->ints, dtype, out);
    case LAYA_PB__TENSOR_VALUE__VALUE_LONG_INTS:
        for (size_t i = 0; i < count; i++) store(out + 8 * i, 8, (uint64_t)tensor->long_ints->values[i]);
        break;
    case LAYA_PB__TENSOR_VALUE__VALUE_BOOLS:
        for (size_t i = 0; i < count; i++) out[i] = tensor->bools->values[i] != 0;
        break;
    case LAYA_PB__TENSOR_VALUE__VALUE_BYTES: memcpy(out, tensor->bytes->values.data, count); break;
    default: break;
    }
    return LAYA_OK;
}

/* A constant that stands in the model file. */
static laya_status decode_immediate(decoder *d, const LayaPb__TensorValue *tensor, laya_mil_constant *constant)
{
    char text[LAYA_MIL_TYPE_TEXT];
    const laya_mil_type *type = &constant->type;
    LayaPb__TensorValue__ValueCase field = laya_wire_field(type->dtype);
    uint64_t size = 0, expected;
    size_t found = immediate_count(tensor);
    bool string = field == LAYA_PB__TENSOR_VALUE__VALUE_STRINGS;
    if (!laya_mil_type_count(type, &expected) || (!string && !laya_mil_type_size(type, &size))) {
        return FAIL(d, LAYA_ERROR_FORMAT, "a constant of type %s, which has no fixed size",
                    laya_mil_type_text(type, text));
    }
    if (field == LAYA_PB__TENSOR_VALUE__VALUE_BYTES) expected = size;
    if (expected != found) {
        return FAIL(d, LAYA_ERROR_FORMAT, "a constant of type %s has %zu %s; expected %" PRIu64,
                    laya_mil_type_text(type, text), found,
                    field == LAYA_PB__TENSOR_VALUE__VALUE_BYTES ? "bytes" : "elements", expected);
    }
    if (found == 0) return LAYA_OK;
    if (tensor->value_case != field) {
        return FAIL(d, LAYA_ERROR_FORMAT, "a constant of type %s in field %d of its value; expected field %d",
                    laya_mil_type_text(type, text), (int)tensor->value_case, (int)field);
    }
    if (string) return decode_strings(d, tensor->strings, constant);
    unsigned char *bytes;
    TAKE(d, bytes, (size_t)size);
    constant->bytes = bytes;
    constant->size = size;
    return decode_elements(d, tensor, type->dtype, bytes);
}

/* All references must name one file under the model's folder; which one it is, the package knows. */
static laya_status check_weights_name(decoder *d, const char *name)
{
    if (strncmp(name, MODEL_PATH, sizeof MODEL_PATH - 1) != 0) {
        return FAIL(d, LAYA_ERROR_FORMAT, "a constant in file \"%.200s\"; expected a name that begins with %s", name,
                    MODEL_PATH);
    }
    if (!d->weights)
        return FAIL(d, LAYA_ERROR_FORMAT, "a constant in file \"%.200s\", but there is no weight file", name);
    if (!d->weights_name) d->weights_name = name;
    if (strcmp(d->weights_name, name) != 0) {
        return FAIL(d, LAYA_ERROR_UNSUPPORTED,
                    "a constant in file \"%.200s\", others in \"%.200s\"; only one file can be read", name,
                    d->weights_name);
    }
    return LAYA_OK;
}

/* A constant in the weight file. */
static laya_status decode_blob(decoder *d, const LayaPb__BlobFileValue *reference, laya_mil_constant *constant)
{
    char text[LAYA_MIL_TYPE_TEXT];
    laya_blob blob;
    uint64_t size, count;
    LAYA_TRY(check_weights_name(d, reference->file_name));
    if (laya_blob_read(d->weights, d->weights_size, reference->offset, &blob, d->error) != LAYA_OK) {
        prefix_place(d);
        return LAYA_ERROR_FORMAT;
    }
    laya_mil_type_text(&constant->type, text);
    if (blob.dtype != constant->type.dtype) {
        return FAIL(d, LAYA_ERROR_FORMAT,
                    "a constant of type %s at offset %" PRIu64 " of the weight file, which has %s there", text,
                    reference->offset, laya_mil_dtype_name(blob.dtype));
    }
    if (!laya_mil_type_size(&constant->type, &size) || size != blob.size) {
        return FAIL(d, LAYA_ERROR_FORMAT,
                    "a constant of type %s at offset %" PRIu64 " of the weight file, which has %" PRIu64
                    " bytes there",
                    text, reference->offset, blob.size);
    }
    laya_mil_type_count(&constant->type, &count);
    uint64_t padding = size * 8 - count * laya_mil_dtype_bits(blob.dtype);
    if (blob.padding_bits != padding) {
        return FAIL(d, LAYA_ERROR_FORMAT,
                    "a constant of type %s at offset %" PRIu64 " of the weight file: %" PRIu32
                    " bits of padding; expected %" PRIu64,
                    text, reference->offset, blob.padding_bits, padding);
    }
    constant->in_file = true;
    constant->offset = reference->offset;
    constant->bytes = blob.data;
    constant->size = size;
    return LAYA_OK;
}

/* `message` NULL: there is none. */
static laya_status decode_constant(decoder *d, const LayaPb__Value *message, const laya_mil_constant **out)
{
    char text[LAYA_MIL_TYPE_TEXT];
    laya_mil_constant *constant;
    TAKE(d, constant, 1);
    *out = constant;
    LAYA_TRY(decode_type(d, message ? message->type : NULL, &constant->type));
    if (constant->type.kind != LAYA_MIL_TENSOR) return LAYA_OK;
    if (laya_wire_field(constant->type.dtype) == LAYA_PB__TENSOR_VALUE__VALUE__NOT_SET) {
        return FAIL(d, LAYA_ERROR_UNSUPPORTED, "a constant of data type %d, which is not known here",
                    (int)constant->type.dtype);
    }
    if (message->value_case == LAYA_PB__VALUE__VALUE_BLOB_FILE_VALUE)
        return decode_blob(d, message->blob_file_value, constant);
    if (message->value_case == LAYA_PB__VALUE__VALUE_IMMEDIATE_VALUE &&
        message->immediate_value->value_case == LAYA_PB__IMMEDIATE_VALUE__VALUE_TENSOR)
        return decode_immediate(d, message->immediate_value->tensor, constant);
    return FAIL(d, LAYA_ERROR_FORMAT, "a constant of type %s without a tensor value",
                laya_mil_type_text(&constant->type, text));
}

/* ------------------------------------------------------------------ operations */

static laya_status decode_argument(decoder *d, const LayaPb__ArgumentEntry *entry, laya_mil_argument *argument)
{
    LAYA_TRY(copy_text(d, entry->key, &argument->name));
    size_t count = entry->value ? entry->value->n_arguments : 0;
    if (count == 0) return FAIL(d, LAYA_ERROR_FORMAT, "parameter \"%s\" is bound to nothing", argument->name);
    TAKE(d, argument->bindings, count);
    argument->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const LayaPb__Binding *binding = entry->value->arguments[i];
        switch (binding->binding_case) {
        case LAYA_PB__BINDING__BINDING_NAME: LAYA_TRY(bind(d, binding->name, &argument->bindings[i])); break;
        case LAYA_PB__BINDING__BINDING_VALUE:
            LAYA_TRY(decode_constant(d, binding->value, &argument->bindings[i].constant));
            break;
        default: return FAIL(d, LAYA_ERROR_FORMAT, "parameter \"%s\" is bound to nothing", argument->name);
        }
    }
    return LAYA_OK;
}

/* The attribute "name" becomes the operation's name. */
static laya_status decode_attributes(decoder *d, const LayaPb__Operation *message, laya_mil_op *op)
{
    TAKE(d, op->attributes, message->n_attributes);
    for (size_t i = 0; i < message->n_attributes; i++) {
        laya_mil_attribute attribute;
        LAYA_TRY(copy_text(d, message->attributes[i]->key, &attribute.name));
        LAYA_TRY(decode_constant(d, message->attributes[i]->value, &attribute.value));
        if (strcmp(attribute.name, "name") != 0) {
            op->attributes[op->attribute_count++] = attribute;
            continue;
        }
        if (attribute.value->string_count != 1) return FAIL(d, LAYA_ERROR_FORMAT, "attribute \"name\" is not a text");
        op->name = attribute.value->strings[0];
    }
    return LAYA_OK;
}

/* All of an operation but its nested blocks. Its outputs are not defined yet. */
static laya_status decode_op(decoder *d, const LayaPb__Operation *message, laya_mil_op **out)
{
    laya_mil_op *op;
    TAKE(d, op, 1);
    *out = op;
    LAYA_TRY(copy_text(d, message->type, &op->type));
    d->op = message->n_outputs > 0 ? message->outputs[0]->name : op->type;
    TAKE(d, op->inputs, message->n_inputs);
    op->input_count = (uint32_t)message->n_inputs;
    for (size_t i = 0; i < message->n_inputs; i++) LAYA_TRY(decode_argument(d, message->inputs[i], &op->inputs[i]));
    LAYA_TRY(decode_attributes(d, message, op));
    LAYA_TRY(decode_values(d, message->outputs, message->n_outputs, &op->outputs, &op->output_count));
    for (uint32_t i = 0; i < op->output_count; i++) op->outputs[i]->op = op;
    if (laya_mil_is_const(op) && op->output_count > 0) op->outputs[0]->constant = laya_mil_find_attribute(op, "val");
    TAKE(d, op->blocks, message->n_blocks);
    op->block_count = (uint32_t)message->n_blocks;
    d->op = NULL;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ blocks */

/* A block that is being decoded; `op` is the operation whose nested blocks are on, NULL where none is. */
typedef struct frame {
    const LayaPb__Block *message;
    laya_mil_block *block;
    size_t next_op;
    laya_mil_op *op;
    uint32_t next_block;
    size_t outside; /* definitions before the block */
} frame;

static laya_status begin_block(decoder *d, frame *top)
{
    laya_mil_block *block = top->block;
    top->outside = d->shadow_count;
    LAYA_TRY(decode_values(d, top->message->inputs, top->message->n_inputs, &block->inputs, &block->input_count));
    for (uint32_t i = 0; i < block->input_count; i++) LAYA_TRY(define(d, block->inputs[i]));
    return LAYA_OK;
}

static laya_status end_block(decoder *d, const frame *top)
{
    laya_mil_block *block = top->block;
    TAKE(d, block->outputs, top->message->n_outputs);
    block->output_count = (uint32_t)top->message->n_outputs;
    for (uint32_t i = 0; i < block->output_count; i++)
        LAYA_TRY(bind(d, top->message->outputs[i], &block->outputs[i]));
    return forget(d, top->outside);
}

/* The next operation of a block, up to its nested blocks. */
static laya_status next_op(decoder *d, frame *top)
{
    laya_mil_block *block = top->block;
    LAYA_TRY(decode_op(d, top->message->operations[top->next_op++], &top->op));
    top->next_block = 0;
    if (block->last)
        block->last->next = top->op;
    else
        block->first = top->op;
    block->last = top->op;
    block->op_count++;
    return LAYA_OK;
}

static laya_status decode_block(decoder *d, const LayaPb__Block *message, laya_mil_block *block)
{
    frame frames[MAX_BLOCKS];
    uint32_t depth = 1;
    frames[0] = (frame){.message = message, .block = block};
    LAYA_TRY(begin_block(d, &frames[0]));
    while (depth > 0) {
        frame *top = &frames[depth - 1];
        if (top->op && top->next_block < top->op->block_count) {
            const LayaPb__Operation *op = top->message->operations[top->next_op - 1];
            if (depth == MAX_BLOCKS) return FAIL(d, LAYA_ERROR_FORMAT, "blocks inside each other too deep");
            frames[depth] = (frame){.message = op->blocks[top->next_block],
                                    .block = &top->op->blocks[top->next_block]};
            top->next_block++;
            LAYA_TRY(begin_block(d, &frames[depth]));
            depth++;
        } else if (top->op) { /* its outputs are known from here on */
            for (uint32_t i = 0; i < top->op->output_count; i++) LAYA_TRY(define(d, top->op->outputs[i]));
            top->op = NULL;
        } else if (top->next_op < top->message->n_operations) {
            LAYA_TRY(next_op(d, top));
        } else {
            LAYA_TRY(end_block(d, top));
            depth--;
        }
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ functions */

/* The block that is made for the function's opset, else the first. */
static const LayaPb__BlockEntry *choose_block(const LayaPb__Function *message)
{
    for (size_t i = 0; i < message->n_block_specializations; i++) {
        const LayaPb__BlockEntry *entry = message->block_specializations[i];
        if (strcmp(entry->key, message->opset) == 0) return entry;
    }
    return message->n_block_specializations > 0 ? message->block_specializations[0] : NULL;
}

static laya_status decode_function(decoder *d, const LayaPb__FunctionEntry *entry, laya_mil_function *function)
{
    const LayaPb__Function *message = entry->value;
    LAYA_TRY(copy_text(d, entry->key, &function->name));
    d->function = function->name;
    const LayaPb__BlockEntry *body = message ? choose_block(message) : NULL;
    if (!body || !body->value) return FAIL(d, LAYA_ERROR_FORMAT, "the function has no block of operations");
    LAYA_TRY(copy_text(d, message->opset, &function->opset_name));
    laya_mil_opset_parse(function->opset_name, &function->opset);
    LAYA_TRY(copy_text(d, body->key, &function->specialization_name));
    function->specialization_count = (uint32_t)message->n_block_specializations;
    LAYA_TRY(decode_values(d, message->inputs, message->n_inputs, &function->inputs, &function->input_count));
    for (uint32_t i = 0; i < function->input_count; i++) LAYA_TRY(define(d, function->inputs[i]));
    LAYA_TRY(decode_block(d, body->value, &function->body));
    d->function = NULL;
    return forget(d, 0);
}

/* ------------------------------------------------------------------ description */

static laya_status decode_array(decoder *d, const LayaPb__ArrayFeatureType *array, laya_mil_feature *feature)
{
    if (!array) return LAYA_OK;
    if (array->n_shape > LAYA_MIL_MAX_RANK) {
        return FAIL(d, LAYA_ERROR_UNSUPPORTED, "\"%s\" of the description has rank %zu; the limit is %d",
                    feature->name, array->n_shape, LAYA_MIL_MAX_RANK);
    }
    feature->type.dtype = laya_wire_array_dtype(array->data_type);
    feature->type.rank = (uint32_t)array->n_shape;
    for (uint32_t axis = 0; axis < feature->type.rank; axis++) feature->type.dims[axis] = array->shape[axis];
    feature->flexible = array->flexibility_case != LAYA_PB__ARRAY_FEATURE_TYPE__FLEXIBILITY__NOT_SET;
    return LAYA_OK;
}

static laya_status decode_feature(decoder *d, const LayaPb__FeatureDescription *message, laya_mil_feature *feature)
{
    LAYA_TRY(copy_text(d, message->name, &feature->name));
    feature->kind = "unknown";
    if (!message->type) return LAYA_OK;
    feature->optional = message->type->is_optional != 0;
    switch (message->type->type_case) {
    case LAYA_PB__FEATURE_TYPE__TYPE_INT64_TYPE: feature->kind = "int64"; break;
    case LAYA_PB__FEATURE_TYPE__TYPE_DOUBLE_TYPE: feature->kind = "double"; break;
    case LAYA_PB__FEATURE_TYPE__TYPE_STRING_TYPE: feature->kind = "string"; break;
    case LAYA_PB__FEATURE_TYPE__TYPE_IMAGE_TYPE: feature->kind = "image"; break;
    case LAYA_PB__FEATURE_TYPE__TYPE_DICTIONARY_TYPE: feature->kind = "dictionary"; break;
    case LAYA_PB__FEATURE_TYPE__TYPE_SEQUENCE_TYPE: feature->kind = "sequence"; break;
    case LAYA_PB__FEATURE_TYPE__TYPE_MULTI_ARRAY_TYPE:
        feature->kind = "multiArray";
        return decode_array(d, message->type->multi_array_type, feature);
    case LAYA_PB__FEATURE_TYPE__TYPE_STATE_TYPE:
        feature->kind = "state";
        feature->type.kind = LAYA_MIL_STATE;
        return decode_array(d, message->type->state_type->array_type, feature);
    default: break;
    }
    return LAYA_OK;
}

static laya_status decode_features(decoder *d, LayaPb__FeatureDescription *const *messages, size_t count,
                                   laya_mil_feature **out, uint32_t *out_count)
{
    TAKE(d, *out, count);
    for (size_t i = 0; i < count; i++) LAYA_TRY(decode_feature(d, messages[i], &(*out)[i]));
    *out_count = (uint32_t)count;
    return LAYA_OK;
}

static laya_status decode_interface(decoder *d, const LayaPb__FunctionDescription *message,
                                    laya_mil_interface *interface)
{
    LAYA_TRY(copy_text(d, message->name, &interface->name));
    LAYA_TRY(decode_features(d, message->input, message->n_input, &interface->inputs, &interface->input_count));
    LAYA_TRY(decode_features(d, message->output, message->n_output, &interface->outputs, &interface->output_count));
    return decode_features(d, message->state, message->n_state, &interface->states, &interface->state_count);
}

/* The interfaces: the functions' where the description has functions, else its own. */
static laya_status decode_interfaces(decoder *d, const LayaPb__ModelDescription *message)
{
    laya_mil_program *program = d->program;
    LayaPb__FunctionDescription own = LAYA_PB__FUNCTION_DESCRIPTION__INIT;
    own.name = "main";
    own.n_input = message->n_input, own.input = message->input;
    own.n_output = message->n_output, own.output = message->output;
    own.n_state = message->n_state, own.state = message->state;
    bool functions = message->n_functions > 0;
    if (functions && own.n_input + own.n_output + own.n_state > 0) {
        return FAIL(d, LAYA_ERROR_FORMAT,
                    "the description has functions and also inputs, outputs or states outside of them");
    }
    size_t count = functions ? message->n_functions : 1;
    TAKE(d, program->interfaces, count);
    program->interface_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        LAYA_TRY(decode_interface(d, functions ? message->functions[i] : &own, &program->interfaces[i]));
    if (*message->default_function_name == '\0') return LAYA_OK;
    return copy_text(d, message->default_function_name, &program->default_function);
}

static laya_status add_metadata(decoder *d, const char *key, const char *text)
{
    laya_mil_metadata *entry = &d->program->metadata[d->program->metadata_count++];
    LAYA_TRY(copy_text(d, key, &entry->key));
    return copy_text(d, text, &entry->text);
}

static laya_status decode_metadata(decoder *d, const LayaPb__Metadata *message)
{
    const struct {
        const char *key, *text;
    } fields[] = {{"shortDescription", message->short_description},
                  {"versionString", message->version_string},
                  {"author", message->author},
                  {"license", message->license}};
    size_t count = sizeof fields / sizeof *fields;
    TAKE(d, d->program->metadata, count + message->n_user_defined);
    for (size_t i = 0; i < count; i++) {
        if (*fields[i].text) LAYA_TRY(add_metadata(d, fields[i].key, fields[i].text));
    }
    for (size_t i = 0; i < message->n_user_defined; i++)
        LAYA_TRY(add_metadata(d, message->user_defined[i]->key, message->user_defined[i]->value));
    return LAYA_OK;
}

/* ------------------------------------------------------------------ model */

static laya_status decode_model(decoder *d, const LayaPb__Model *model)
{
    laya_mil_program *program = d->program;
    const LayaPb__Program *body = model->ml_program;
    if (!body) return FAIL(d, LAYA_ERROR_UNSUPPORTED, "the model is not an ML Program");
    program->specification_version = model->specification_version;
    program->version = body->version;
    if (model->description) {
        LAYA_TRY(decode_interfaces(d, model->description));
        if (model->description->metadata) LAYA_TRY(decode_metadata(d, model->description->metadata));
    }
    TAKE(d, program->functions, body->n_functions);
    program->function_count = (uint32_t)body->n_functions;
    for (size_t i = 0; i < body->n_functions; i++)
        LAYA_TRY(decode_function(d, body->functions[i], &program->functions[i]));
    return LAYA_OK;
}

/* protobuf-c's allocator over the program's, which is not asked for 0 bytes. */
typedef struct bridge {
    const laya_allocator *allocator;
    bool failed;
} bridge;

static void *bridge_allocate(void *user, size_t size)
{
    bridge *b = user;
    void *block = laya_alloc(b->allocator, size ? size : 1, 1);
    if (!block) b->failed = true;
    return block;
}

static void bridge_release(void *user, void *block)
{
    laya_release(((bridge *)user)->allocator, block);
}

laya_status laya_model_decode(laya_mil_program *program, const unsigned char *message, size_t size,
                              const unsigned char *weights, size_t weights_size, laya_error *error)
{
    const laya_allocator *allocator = &program->arena.allocator;
    bridge b = {.allocator = allocator};
    ProtobufCAllocator hooks = {bridge_allocate, bridge_release, &b};
    LAYA_TRY(laya_wire_check(&laya_pb__model__descriptor, message, size, error));
    LayaPb__Model *model = laya_pb__model__unpack(&hooks, size, message);
    if (!model && b.failed) return laya_fail_memory(error, 0);
    if (!model) return laya_fail(error, LAYA_ERROR_FORMAT, "the model is a malformed protobuf message");
    decoder d = {.program = program,
                 .arena = &program->arena,
                 .weights = weights,
                 .weights_size = weights_size,
                 .error = error};
    laya_mil_names_init(&d.texts, allocator);
    laya_mil_names_init(&d.values, allocator);
    laya_status status = decode_model(&d, model);
    laya_mil_names_close(&d.texts);
    laya_mil_names_close(&d.values);
    laya_release(allocator, d.shadows);
    laya_pb__model__free_unpacked(model, &hooks);
    return status;
}
