/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What encoder and decoder of the model file share: the schema's structs, the check of a message before protobuf-c
 * unpacks it, and the tables of the format.
 */
#ifndef LAYA_COREML_WIRE_H
#define LAYA_COREML_WIRE_H

#include "base/error.h"
#include "mil/type.h"

#include "coreml/coreml.pb-c.h"

#define LAYA_WIRE_MAX_DEPTH 64u                /* messages inside each other */
#define LAYA_WIRE_MAX_ITEMS 8388608u           /* fields, and elements of packed lists of varints, in all */
#define LAYA_WIRE_MAX_SIZE ((size_t)INT32_MAX) /* bytes of a message, protobuf's own limit */

/*
 * Check a message of a type and all messages in it, so that protobuf_c_message_unpack of it recurses to at most
 * LAYA_WIRE_MAX_DEPTH and needs memory in proportion to LAYA_WIRE_MAX_ITEMS and the message's size: tags, wire types,
 * lengths; strings are UTF-8 without NUL. A field that is not repeated, and a oneof, must not occur twice (protobuf
 * would merge, and readers could disagree). Unknown fields are allowed and not looked into. Errors: FORMAT.
 */
laya_status laya_wire_check(const ProtobufCMessageDescriptor *type, const unsigned char *message, size_t size,
                            laya_error *error);

/* Which field of TensorValue holds immediate values of a type; NOT_SET: the type is not known. */
LayaPb__TensorValue__ValueCase laya_wire_field(laya_mil_dtype dtype);

/* The element type of a model input or output; ...NONE and LAYA_MIL_NO_DTYPE where the other side has no such type. */
LayaPb__ArrayDataType laya_wire_array_type(laya_mil_dtype dtype);
laya_mil_dtype laya_wire_array_dtype(LayaPb__ArrayDataType type);

#endif
