/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/wire.h"

#include "base/utf8.h"

#include <string.h>

/* ------------------------------------------------------------------ tables */

LayaPb__TensorValue__ValueCase laya_wire_field(laya_mil_dtype dtype)
{
    switch (dtype) {
    case LAYA_MIL_FP32: return LAYA_PB__TENSOR_VALUE__VALUE_FLOATS;
    case LAYA_MIL_FP64: return LAYA_PB__TENSOR_VALUE__VALUE_DOUBLES;
    case LAYA_MIL_INT16:
    case LAYA_MIL_UINT16:
    case LAYA_MIL_INT32: return LAYA_PB__TENSOR_VALUE__VALUE_INTS;
    case LAYA_MIL_INT64:
    case LAYA_MIL_UINT64: return LAYA_PB__TENSOR_VALUE__VALUE_LONG_INTS;
    case LAYA_MIL_BOOL: return LAYA_PB__TENSOR_VALUE__VALUE_BOOLS;
    case LAYA_MIL_STRING: return LAYA_PB__TENSOR_VALUE__VALUE_STRINGS;
    default: break;
    }
    return laya_mil_dtype_bits(dtype) ? LAYA_PB__TENSOR_VALUE__VALUE_BYTES : LAYA_PB__TENSOR_VALUE__VALUE__NOT_SET;
}

static const struct {
    laya_mil_dtype dtype;
    LayaPb__ArrayDataType type;
} array_types[] = {{LAYA_MIL_FP16, LAYA_PB__ARRAY_DATA_TYPE__FLOAT16},
                   {LAYA_MIL_FP32, LAYA_PB__ARRAY_DATA_TYPE__FLOAT32},
                   {LAYA_MIL_FP64, LAYA_PB__ARRAY_DATA_TYPE__DOUBLE},
                   {LAYA_MIL_INT8, LAYA_PB__ARRAY_DATA_TYPE__INT8},
                   {LAYA_MIL_INT32, LAYA_PB__ARRAY_DATA_TYPE__INT32}};

LayaPb__ArrayDataType laya_wire_array_type(laya_mil_dtype dtype)
{
    for (size_t at = 0; at < sizeof array_types / sizeof *array_types; at++) {
        if (array_types[at].dtype == dtype) return array_types[at].type;
    }
    return LAYA_PB__ARRAY_DATA_TYPE__NONE;
}

laya_mil_dtype laya_wire_array_dtype(LayaPb__ArrayDataType type)
{
    for (size_t at = 0; at < sizeof array_types / sizeof *array_types; at++) {
        if (array_types[at].type == type) return array_types[at].dtype;
    }
    return LAYA_MIL_NO_DTYPE;
}

/* ------------------------------------------------------------------ check of a message */

/* A message that is being read. */
typedef struct frame {
    const ProtobufCMessageDescriptor *type;
    const unsigned char *end;
    uint32_t seen; /* bit per field of the type: it occurred; no type of the schema has more than 32 */
} frame;

typedef struct checker {
    const unsigned char *start, *at;
    uint32_t items;
    uint32_t depth;
    frame frames[LAYA_WIRE_MAX_DEPTH];
    laya_error *error;
} checker;

static laya_status fail(const checker *c, const char *what)
{
    return laya_fail(c->error, LAYA_ERROR_FORMAT, "byte %zu of the model: %s in a message %s",
                     (size_t)(c->at - c->start), what, c->frames[c->depth - 1].type->short_name);
}

/* A varint of at most `limit` bytes before `end`; false when it does not end there. */
static bool read_varint(const unsigned char **at, const unsigned char *end, unsigned limit, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < limit && *at < end; i++) {
        unsigned char byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7fu) << (7 * i);
        if (byte < 0x80u) return true;
    }
    return false;
}

static laya_status count_items(checker *c, uint32_t more)
{
    if (more > LAYA_WIRE_MAX_ITEMS - c->items) {
        return laya_fail(c->error, LAYA_ERROR_FORMAT,
                         "the model has more than %u fields and list elements, which is the limit",
                         LAYA_WIRE_MAX_ITEMS);
    }
    c->items += more;
    return LAYA_OK;
}

static ProtobufCWireType wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default: return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

/* The elements of a packed list, c->at to `end`. */
static laya_status check_packed(checker *c, ProtobufCType type, const unsigned char *end)
{
    ProtobufCWireType wire = wire_type(type);
    if (wire != PROTOBUF_C_WIRE_TYPE_VARINT) {
        size_t width = wire == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
        if ((size_t)(end - c->at) % width != 0) return fail(c, "a list that ends within an element");
        c->at = end;
        return LAYA_OK;
    }
    while (c->at < end) {
        uint64_t value;
        LAYA_TRY(count_items(c, 1));
        if (!read_varint(&c->at, end, 10, &value)) return fail(c, "a number that does not end");
    }
    return LAYA_OK;
}

/* A field with a length: a message is entered, all others are passed. `field` NULL: unknown. */
static laya_status check_content(checker *c, const ProtobufCFieldDescriptor *field)
{
    const unsigned char *end = c->frames[c->depth - 1].end;
    uint64_t length;
    if (!read_varint(&c->at, end, 5, &length)) return fail(c, "a length that does not end");
    if (length > (uint64_t)(end - c->at)) return fail(c, "a field longer than the rest");
    end = c->at + length;
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (c->depth == LAYA_WIRE_MAX_DEPTH) {
            return laya_fail(
                c->error, LAYA_ERROR_FORMAT,
                "byte %zu of the model: messages inside each other more than %u deep, which is the limit",
                (size_t)(c->at - c->start), LAYA_WIRE_MAX_DEPTH);
        }
        c->frames[c->depth++] = (frame){.type = field->descriptor, .end = end};
        return LAYA_OK;
    }
    if (field && wire_type(field->type) != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        return check_packed(c, field->type, end);
    if (field && field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = (const char *)c->at;
        if (laya_utf8_valid(text, (size_t)length) != length) return fail(c, "a text that is not UTF-8");
        if (memchr(text, '\0', (size_t)length)) return fail(c, "a text with a NUL byte");
    }
    c->at = end;
    return LAYA_OK;
}

/* Whether a field that may occur once, or another of its oneof, was there already; now it is. */
static bool is_repeated(frame *top, const ProtobufCFieldDescriptor *field)
{
    uint32_t same = 0;
    for (unsigned i = 0; i < top->type->n_fields; i++) {
        const ProtobufCFieldDescriptor *other = &top->type->fields[i];
        bool same_oneof = (field->flags & other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
                          field->quantifier_offset == other->quantifier_offset;
        if (other == field || same_oneof) same |= UINT32_C(1) << i;
    }
    bool repeated = (top->seen & same) != 0;
    top->seen |= same;
    return repeated;
}

/* One field of the innermost message. */
static laya_status check_field(checker *c)
{
    frame *top = &c->frames[c->depth - 1];
    uint64_t tag, value;
    LAYA_TRY(count_items(c, 1));
    if (!read_varint(&c->at, top->end, 5, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return fail(c, "a malformed field number");
    unsigned wire = (unsigned)(tag & 7u);
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(top->type, (unsigned)(tag >> 3));
    if (field) {
        bool packed = field->label == PROTOBUF_C_LABEL_REPEATED && wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
        if (wire != (unsigned)wire_type(field->type) && !packed)
            return fail(c, "a field of another wire type than the format has");
        if (field->label != PROTOBUF_C_LABEL_REPEATED && is_repeated(top, field))
            return fail(c, "a second value of a field that has one");
    }
    size_t rest = (size_t)(top->end - c->at);
    switch (wire) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        if (!read_varint(&c->at, top->end, 10, &value)) return fail(c, "a number that does not end");
        return LAYA_OK;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED: return check_content(c, field);
    case PROTOBUF_C_WIRE_TYPE_64BIT:
    case PROTOBUF_C_WIRE_TYPE_32BIT: {
        size_t width = wire == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
        if (rest < width) return fail(c, "a field longer than the rest");
        c->at += width;
        return LAYA_OK;
    }
    default: return fail(c, "an unknown wire type");
    }
}

laya_status laya_wire_check(const ProtobufCMessageDescriptor *type, const unsigned char *message, size_t size,
                            laya_error *error)
{
    if (size > LAYA_WIRE_MAX_SIZE) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "the model has %zu bytes; protobuf's limit is %zu", size,
                         LAYA_WIRE_MAX_SIZE);
    }
    if (size == 0) return LAYA_OK;
    checker c = {.start = message, .at = message, .depth = 1, .error = error};
    c.frames[0] = (frame){.type = type, .end = message + size};
    while (c.depth > 0) {
        if (c.at == c.frames[c.depth - 1].end)
            c.depth--;
        else
            LAYA_TRY(check_field(&c));
    }
    return LAYA_OK;
}
