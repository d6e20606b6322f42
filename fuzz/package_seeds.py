#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seeds of the fuzz target `package`: package_seeds.py [FOLDER]     (fuzz/corpus/package)
or, of the same form, those of the target `interpreter`: package_seeds.py --interpreter [FOLDER]

Each seed is the allocation that fails (one byte), the sizes of Manifest.json and model.mlmodel (32 bits each,
little-endian), these two files, and weight.bin. The messages are put together here byte by byte, without any
protobuf library and without code of this project. Names of seeds say what they hold; other files of the folder are
left as they are.
"""
import json
import os
import struct
import sys

FP16, FP32, INT32, BOOL, STRING = 10, 11, 23, 1, 2
UINT8, UINT32, INT4, UINT4, UINT3, INT8 = 31, 33, 25, 35, 39, 21
UINT2, UINT1, UINT6 = 36, 37, 38
BLOB_CODES = {FP16: 1, FP32: 2, UINT8: 3, INT8: 4, INT4: 8, UINT1: 9, UINT2: 10, UINT4: 11, UINT3: 12, UINT6: 13}
BITS = {FP16: 16, FP32: 32, UINT8: 8, INT8: 8, INT4: 4, UINT1: 1, UINT2: 2, UINT4: 4, UINT3: 3, UINT6: 6}
WEIGHT_FILE = "@model_path/weights/weight.bin"

# ---------------------------------------------------------------- protobuf


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, *parts):
    body = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


# ---------------------------------------------------------------- types and values


def dimension(size):
    return message(1, number(1, size)) if size >= 0 else message(2)


def tensor_type(dtype, shape=()):
    rank = number(2, len(shape)) if shape else b""
    return message(1, number(1, dtype), rank, *(message(3, dimension(size)) for size in shape))


def named(name, type_bytes):
    return message(1, name) + message(2, type_bytes)


def immediate(dtype, shape, tensor):
    return message(2, tensor_type(dtype, shape)) + message(3, message(1, tensor))


def text_value(text):
    return immediate(STRING, (), message(4, message(1, text)))


def ints_value(values, shape=None):
    values = [values] if isinstance(values, int) else values
    shape = (len(values),) if shape is None else shape
    return immediate(INT32, shape, message(2, message(1, *map(varint, values))))


def bool_value(value):
    return immediate(BOOL, (), message(3, message(1, varint(value))))


def bytes_value(dtype, shape, data):
    return immediate(dtype, shape, message(7, message(1, data)))


def float_value(value):
    return immediate(FP32, (), message(1, message(1, struct.pack("<f", value))))


def blob_value(dtype, shape, offset, name=WEIGHT_FILE):
    return message(2, tensor_type(dtype, shape)) + message(5, message(1, name), number(2, offset))


# ---------------------------------------------------------------- operations


def entry(field, key, value):
    return message(field, message(1, key), message(2, value))


def by_name(*names):
    return b"".join(message(1, message(1, name)) for name in names)


def in_place(value):
    return message(1, message(2, value))


def operation(kind, outputs, inputs=(), attributes=(), blocks=(), name=None):
    """outputs: (name, type) pairs; inputs and attributes: (name, bytes) pairs."""
    name = outputs[0][0] if name is None else name
    return message(3, message(1, kind), *(entry(2, key, value) for key, value in inputs),
                   *(message(3, named(*output)) for output in outputs), *(message(4, block) for block in blocks),
                   entry(5, "name", text_value(name)), *(entry(5, key, value) for key, value in attributes))


def const(name, dtype, shape, value):
    return operation("const", [(name, tensor_type(dtype, shape))], attributes=[("val", value)])


def block(operations, outputs, inputs=()):
    return b"".join(message(1, named(*item)) for item in inputs) + b"".join(
        message(2, name) for name in outputs) + b"".join(operations)


def function(inputs, opset, body, specializations=None):
    keys = [opset] if specializations is None else specializations
    return b"".join(message(1, named(*item)) for item in inputs) + message(2, opset) + b"".join(
        entry(3, key, body) for key in keys)


# ---------------------------------------------------------------- models

ARRAY_TYPES = {FP16: 65552, FP32: 65568, INT32: 131104}


def array(dtype, shape, extra=b""):
    return message(1, *map(varint, shape)) + number(2, ARRAY_TYPES[dtype]) + extra


def feature(field, name, dtype, shape, extra=b""):
    return message(field, message(1, name), message(3, message(5, array(dtype, shape, extra))))


def model(version, description, functions, extra=b""):
    program = number(1, 1) + b"".join(entry(2, name, body) for name, body in functions)
    return number(1, version) + message(2, description) + extra + message(502, program)


def simple(version, opset, operations, shape=(1, 4, 1, 8), out=(1, 4, 1, 8), dtype=FP16, outputs=("y",), extra=b""):
    """A model of one function from x to y."""
    description = feature(1, "x", dtype, shape) + feature(10, "y", dtype, out) + extra
    body = block(operations, outputs)
    return model(version, description, [("main", function([("x", tensor_type(dtype, shape))], opset, body))])


def relu(x="x", y="y", shape=(1, 4, 1, 8)):
    return operation("relu", [(y, tensor_type(FP16, shape))], [("x", by_name(x))])


# ---------------------------------------------------------------- weight.bin


def weight_file(*blobs):
    """blobs: (dtype, elements, data)"""
    out = bytearray(struct.pack("<II56x", len(blobs), 2))
    offsets = []
    for dtype, elements, data in blobs:
        out += bytes(-len(out) % 64)
        offsets.append(len(out))
        padding = len(data) * 8 - elements * BITS[dtype]
        out += struct.pack("<IIQQQ32x", 0xDEADBEEF, BLOB_CODES[dtype], len(data), len(out) + 64, padding) + data
    return bytes(out), offsets


# ---------------------------------------------------------------- Manifest.json


def item(path, name, author="com.apple.CoreML", description="CoreML Model Specification"):
    return {"author": author, "description": description, "name": name, "path": path}


MODEL_ID, WEIGHTS_ID = "0B8A1E0C-3F0D-8A52-9B4E-2C7D6F11A001", "5D2C77AA-90B1-8C3E-8F00-1B2D3C4E5F60"
MODEL_ITEM = item("com.apple.CoreML/model.mlmodel", "model.mlmodel")
WEIGHTS_ITEM = item("com.apple.CoreML/weights", "weights", description="CoreML Model Weights")


def manifest(items, root=MODEL_ID, version="1.0.0"):
    document = {"fileFormatVersion": version, "itemInfoEntries": items, "rootModelIdentifier": root}
    return json.dumps(document, indent=4, sort_keys=True).encode() + b"\n"


PLAIN = manifest({MODEL_ID: MODEL_ITEM})
FULL = manifest({MODEL_ID: MODEL_ITEM, WEIGHTS_ID: WEIGHTS_ITEM})

# ---------------------------------------------------------------- good packages

# The 204 bytes that Apple's coremltools writes for relu on fp16 [1, 4, 1, 8], input x, output y.
GOLDEN = bytes.fromhex(
    "080712260a110a01781a0c2a0a0a04010401081090800452110a01791a0c2a0a0a040104010810908004b21f9e01"
    "08011299010a046d61696e1290010a230a0178121e0a1c080a10041a040a0208011a040a0208041a040a0208011a"
    "040a0208081207436f72654d4c361a600a07436f72654d4c3612551201791a500a0472656c75120a0a017812050a"
    "030a01781a230a0179121e0a1c080a10041a040a0208011a040a0208041a040a0208011a040a0208082a170a046e"
    "616d65120f12040a0208021a070a0522030a0179")


def conv_operations(weight, out=(1, 4, 1, 8)):
    """y = conv(x, weight): parameters partly const operations, partly in place."""
    return [
        weight,
        const("pad_type", STRING, (), text_value("valid")),
        const("pad", INT32, (4,), ints_value([0, 0, 0, 0])),
        operation("conv", [("y", tensor_type(FP16, out))],
                  [("x", by_name("x")), ("weight", by_name("weight")), ("pad_type", by_name("pad_type")),
                   ("pad", by_name("pad")), ("strides", in_place(ints_value([1, 1]))),
                   ("dilations", in_place(ints_value([1, 1]))), ("groups", in_place(ints_value(1, ())))]),
    ]


WEIGHT_SHAPE = (4, 4, 1, 1)
WEIGHT_TYPE = tensor_type(FP16, WEIGHT_SHAPE)
HALVES = struct.pack("<16e", *(i / 4 - 2 for i in range(16)))


def conv():
    weights, offsets = weight_file((FP16, 16, HALVES), (FP32, 10, struct.pack("<10f", *range(10))))
    operations = conv_operations(const("weight", FP16, WEIGHT_SHAPE, blob_value(FP16, WEIGHT_SHAPE, offsets[0])))
    unused = const("unused", FP32, (10,), blob_value(FP32, (10,), offsets[1]))
    metadata = message(100, message(1, "a conv"), entry(100, "laya.kind", "test"))
    return simple(7, "CoreML6", [unused] + operations, extra=metadata), weights


def lut_attributes():
    """The iOS16 form: 4-bit indices as a uint8 blob, parameters are attributes."""
    weights, offsets = weight_file((UINT8, 16, bytes(range(16))))
    lut = operation("constexpr_lut_to_dense", [("weight", tensor_type(FP16, (8, 4, 1, 1)))], attributes=[
        ("indices", blob_value(UINT8, (16,), offsets[0])),
        ("lut", bytes_value(FP16, (16,), HALVES)),
        ("shape", bytes_value(UINT32, (4,), struct.pack("<4I", 8, 4, 1, 1)))])
    conv_op = operation("conv", [("y", tensor_type(FP16, (1, 8, 1, 8)))], [("x", by_name("x")),
                                                                         ("weight", by_name("weight"))])
    return simple(7, "CoreML6", [lut, conv_op], out=(1, 8, 1, 8)), weights


def lut_inputs():
    """The iOS18 form: sub-byte indices of 3 and 4 bits, a LUT in groups, parameters in place."""
    weights, offsets = weight_file((UINT4, 16, bytes(range(8))), (UINT3, 16, bytes(range(6))))
    four = operation("constexpr_lut_to_dense", [("weight", WEIGHT_TYPE)], [
        ("indices", in_place(blob_value(UINT4, WEIGHT_SHAPE, offsets[0]))),
        ("lut", in_place(bytes_value(FP16, (1, 1, 1, 1, 16, 1), HALVES)))])
    three = operation("constexpr_lut_to_dense", [("grouped", WEIGHT_TYPE)], [
        ("indices", in_place(blob_value(UINT3, WEIGHT_SHAPE, offsets[1]))),
        ("lut", in_place(bytes_value(FP16, (2, 1, 1, 1, 8, 1), HALVES)))])
    add = operation("add", [("sum", WEIGHT_TYPE)], [("x", by_name("weight")), ("y", by_name("grouped"))])
    conv_op = operation("conv", [("y", tensor_type(FP16, (1, 4, 1, 8)))], [("x", by_name("x")),
                                                                         ("weight", by_name("sum"))])
    return simple(9, "CoreML8", [four, three, add, conv_op]), weights


INDICES = {1: UINT1, 2: UINT2, 3: UINT3, 4: UINT4, 6: UINT6, 8: UINT8}


def indices(bits, count):
    """Some indices, packed with the first in the lowest bits."""
    packed = sum((at * 37 % (1 << bits)) << at * bits for at in range(count))
    return packed.to_bytes((count * bits + 7) // 8, "little")


def table(dtype, dims, entries):
    form = {FP16: "e", FP32: "f", INT8: "b", UINT8: "B"}[dtype]
    data = struct.pack("<%d%s" % (entries, form), *(at * 11 % 101 for at in range(entries)))
    return immediate(FP32, dims, message(1, message(1, data))) if dtype == FP32 else bytes_value(dtype, dims, data)


def palette_model(version, opset, lut, dtype, out):
    """The palette is the weight of a conv, where it is of its type."""
    if dtype == FP16:
        return simple(version, opset, conv_operations(lut, out), out=out)
    return simple(version, opset, [lut, relu()])


def packed_palette(bits, dtype=FP16, shape=(6, 4, 1, 1), changes=()):
    """The form of iOS16; `changes` replaces attributes."""
    count = shape[0] * shape[1]
    data = indices(bits, count)
    weights, offsets = weight_file((UINT8, len(data), data))
    attributes = {"indices": blob_value(UINT8, (len(data),), offsets[0]),
                  "lut": table(dtype, (1 << bits,), 1 << bits),
                  "shape": bytes_value(UINT32, (4,), struct.pack("<4I", *shape))}
    attributes.update(changes)
    lut = operation("constexpr_lut_to_dense", [("weight", tensor_type(dtype, shape))],
                    attributes=[item for item in attributes.items() if item[1] is not None])
    return palette_model(7, "CoreML6", lut, dtype, (1, shape[0], 1, 8)), weights


def grouped_palette(bits, groups=(3, 1), dtype=FP16, vector=1, shape=(6, 4, 1, 1), changes=()):
    """The form of iOS18, tables on the first two axes, vectors along the first; `changes` replaces inputs."""
    count, kind = shape[0] * shape[1], INDICES[bits]
    weights, offsets = weight_file((kind, count, indices(bits, count)))
    dims = groups + (1, 1, 1 << bits, vector)
    entries = groups[0] * groups[1] * vector << bits
    inputs = {"indices": in_place(blob_value(kind, shape, offsets[0])),
              "lut": in_place(table(dtype, dims, entries))}
    if vector > 1:
        inputs["vector_axis"] = in_place(ints_value(0, ()))
    inputs.update(changes)
    out = (shape[0] * vector,) + shape[1:]
    lut = operation("constexpr_lut_to_dense", [("weight", tensor_type(dtype, out))],
                    [item for item in inputs.items() if item[1] is not None])
    return palette_model(9, "CoreML8", lut, dtype, (1, out[0], 1, 8)), weights


def chained_palette():
    """A table that another palette makes."""
    first = operation("constexpr_lut_to_dense", [("table", tensor_type(FP16, (1, 1, 1, 1, 4, 1)))], [
        ("indices", in_place(bytes_value(UINT1, (1, 1, 1, 1, 4, 1), b"\x05"))),
        ("lut", in_place(bytes_value(FP16, (1, 1, 1, 1, 1, 1, 2, 1), HALVES[:4])))])
    second = operation("constexpr_lut_to_dense", [("weight", tensor_type(FP16, WEIGHT_SHAPE))], [
        ("indices", in_place(bytes_value(UINT2, WEIGHT_SHAPE, indices(2, 16)))), ("lut", by_name("table"))])
    return simple(9, "CoreML8", [first] + conv_operations(second))


def palettes():
    """Both forms in every width, all types of entries, groups and vectors."""
    for bits in (1, 2, 4, 6, 8):
        yield "packed_%d" % bits, *packed_palette(bits)
    for bits in (1, 2, 3, 4, 6, 8):
        yield "grouped_%d" % bits, *grouped_palette(bits)
        yield "tensor_%d" % bits, *grouped_palette(bits, (1, 1))
    for name, dtype in (("fp32", FP32), ("int8", INT8), ("uint8", UINT8)):
        yield "packed_" + name, *packed_palette(2, dtype)
        yield "grouped_" + name, *grouped_palette(3, (1, 2), dtype)
    yield "channel", *grouped_palette(2, (6, 1))
    yield "both_axes", *grouped_palette(2, (2, 4))
    yield "vectors", *grouped_palette(2, (3, 2), vector=3)
    yield "chained", chained_palette(), b""


def broken_palettes():
    shape, lut_shape = (6, 4, 1, 1), (3, 1, 1, 1, 4, 1)
    yield "packed_short", *packed_palette(4, changes={"indices": bytes_value(UINT8, (11,), bytes(11))})
    yield "packed_three_bits", *packed_palette(3)
    yield "packed_no_shape", *packed_palette(4, changes={"shape": None})
    yield "packed_huge_shape", *packed_palette(4, changes={
        "shape": bytes_value(UINT32, (4,), struct.pack("<4I", *[0xffffffff] * 4))})
    yield "packed_no_elements", *packed_palette(4, changes={
        "shape": bytes_value(UINT32, (4,), bytes(16)), "indices": bytes_value(UINT8, (0,), b"")})
    yield "packed_text", *packed_palette(4, changes={"lut": text_value("0 1 2")})
    yield "packed_no_file", packed_palette(4)[0], b""
    yield "grouped_odd", *grouped_palette(2, (4, 1))
    yield "grouped_no_groups", *grouped_palette(2, (0, 1))
    yield "grouped_entries", *grouped_palette(2, changes={
        "lut": in_place(table(FP16, (3, 1, 1, 1, 8, 1), 24))})
    yield "grouped_short", *grouped_palette(2, changes={"lut": in_place(bytes_value(FP16, lut_shape, b"\0\0"))})
    yield "grouped_rank", *grouped_palette(2, changes={"lut": in_place(table(FP16, (4, 1), 4))})
    yield "grouped_no_indices", *grouped_palette(2, changes={"indices": None})
    yield "grouped_other_indices", *grouped_palette(2, changes={"indices": by_name("x")})
    yield "grouped_wide_indices", *grouped_palette(2, changes={
        "indices": in_place(bytes_value(INT32, shape, bytes(96)))})
    yield "vectors_no_axis", *grouped_palette(2, vector=2, changes={"vector_axis": None})
    yield "vectors_axis", *grouped_palette(2, vector=2, changes={"vector_axis": in_place(ints_value(4, ()))})
    yield "vectors_huge", *grouped_palette(2, changes={
        "lut": in_place(bytes_value(FP16, (3, 1, 1, 1, 4, (1 << 31) - 1), b"\0\0")),
        "vector_axis": in_place(ints_value(0, ()))})


def palette_records():
    """Manifests of the bundle that the package lies in, which record its palettes."""
    record = {"name": "weight", "bits": 4, "groups": 1, "sse": 0.25, "relative_error": 1e-3, "largest_error": 0.5}
    document = {"format": "laya-ane-research", "version": 1, "package": "fuzz.mlpackage", "palette": {
        "parent_package_sha256": "ab" * 32, "mode": "kmeans", "weights": [{"name": "other", "bits": 4}, record]}}
    yield "whole", document
    yield "other_bits", {**document, "palette": {"weights": [{**record, "bits": 6}]}}
    yield "other_types", {**document, "palette": {"mode": 4, "weights": [4, {}, {"name": 4}, {
        "name": "weight", "bits": "4", "sse": "1", "relative_error": [], "largest_error": float("inf")}]}}
    yield "no_weights", {**document, "palette": {"weights": {"name": "weight"}}}
    yield "no_object", {**document, "palette": [document]}
    yield "other_package", {**document, "package": "other.mlpackage"}


def quantized():
    weights, offsets = weight_file((INT4, 16, bytes(range(8))), (INT8, 16, bytes(range(16))))
    shift = operation("constexpr_blockwise_shift_scale", [("weight", WEIGHT_TYPE)], [
        ("data", in_place(blob_value(INT4, WEIGHT_SHAPE, offsets[0]))),
        ("scale", in_place(bytes_value(FP16, (4, 1, 1, 1), HALVES[:8])))])
    affine = operation("constexpr_affine_dequantize", [("affine", WEIGHT_TYPE)], attributes=[
        ("quantized_data", blob_value(INT8, WEIGHT_SHAPE, offsets[1])),
        ("zero_point", bytes_value(INT8, (), b"\0")), ("scale", bytes_value(FP16, (), b"\0\x3c")),
        ("axis", ints_value(0, ()))])
    conv_op = operation("conv", [("y", tensor_type(FP16, (1, 4, 1, 8)))], [("x", by_name("x")),
                                                                         ("weight", by_name("weight"))])
    return simple(9, "CoreML8", [shift, affine, conv_op]), weights


def attention():
    t = tensor_type
    operations = [
        operation("transpose", [("k", t(FP16, (1, 8, 1, 4)))], [("x", by_name("x")),
                                                              ("perm", in_place(ints_value([0, 3, 2, 1])))]),
        operation("einsum", [("scores", t(FP16, (1, 8, 1, 8)))], [
            ("values", by_name("k", "x")), ("equation", in_place(text_value("nchw,nwhu->nchu")))]),
        operation("softmax", [("p", t(FP16, (1, 8, 1, 8)))], [("x", by_name("scores")),
                                                            ("axis", in_place(ints_value(1, ())))]),
        operation("split", [("a_0", t(FP16, (1, 4, 1, 8))), ("a_1", t(FP16, (1, 4, 1, 8)))], [
            ("x", by_name("p")), ("axis", in_place(ints_value(1, ()))),
            ("num_splits", in_place(ints_value(2, ())))], name="a"),
        operation("concat", [("c", t(FP16, (1, 8, 1, 8)))], [
            ("values", by_name("a_1", "a_0")), ("axis", in_place(ints_value(-3, ()))),
            ("interleave", in_place(bool_value(0)))]),
        operation("layer_norm", [("n", t(FP16, (1, 8, 1, 8)))], [
            ("x", by_name("c")), ("axes", in_place(ints_value([1]))),
            ("epsilon", in_place(bytes_value(FP16, (), b"\xa8\0")))]),
        operation("reshape", [("r", t(FP16, (1, 4, 2, 8)))], [("x", by_name("n")),
                                                            ("shape", in_place(ints_value([1, 4, -1, 8])))]),
        operation("slice_by_index", [("s", t(FP16, (1, 4, 1, 8)))], [
            ("x", by_name("r")), ("begin", in_place(ints_value([0, 0, 0, 0]))),
            ("end", in_place(ints_value([1, 4, 1, 8])))]),
        operation("gelu", [("g", t(FP16, (1, 4, 1, 8)))], [("x", by_name("s")),
                                                         ("mode", in_place(text_value("EXACT")))]),
        operation("mul", [("y", t(FP16, (1, 4, 1, 8)))], [("x", by_name("g")),
                                                        ("y", in_place(bytes_value(FP16, (), b"\0\x30")))]),
    ]
    return simple(7, "CoreML6", operations)


def nested():
    """A condition and a loop."""
    t = tensor_type(FP16, (1, 4, 1, 8))
    yes, no = block([relu("x", "z1")], ["z1"]), block([], ["x"])
    cond = operation("cond", [("y", t)], [("pred", by_name("flag"))], blocks=[yes, no])
    inside = [relu("i", "i2")]
    test = block([const("go", BOOL, (), bool_value(0))], ["go"], [("i1", t)])
    loop = operation("while_loop", [("w", t)], [("loop_vars", by_name("x"))],
                     blocks=[test, block(inside, ["i2"], [("i", t)])])
    return simple(7, "CoreML6", [const("flag", BOOL, (), bool_value(1)), loop, cond])


def several_functions():
    """Two functions and a state."""
    t = tensor_type(FP16, (1, 4, 1, 8))
    state = message(5, message(1, t))
    read = operation("read_state", [("held", t)], [("input", by_name("memory"))])
    body = block([read, operation("add", [("y", t)], [("x", by_name("x")), ("y", by_name("held"))])], ["y"])
    held = message(3, message(8, message(1, array(FP16, (1, 4, 1, 8)))))
    parts = b""
    for name in ("short", "long"):
        parts += message(20, message(1, name), feature(2, "x", FP16, (1, 4, 1, 8)),
                         feature(3, "y", FP16, (1, 4, 1, 8)), message(6, message(1, "memory"), held))
    one = function([("memory", state), ("x", t)], "CoreML8", body)
    return model(9, parts + message(21, "short"), [("short", one), ("long", one)])


def kinds():
    """Features and types that are read but not looked into, unknown operations and fields."""
    shapes = message(21, message(1, message(1, varint(1), varint(4))), message(1, message(1, varint(1), varint(8))))
    ranges = message(31, message(1, number(1, 1), number(2, -1)))
    extra = feature(1, "e", FP32, (1, 4), shapes) + feature(1, "r", INT32, (1,), ranges)
    extra += message(1, message(1, "image"), message(3, message(4, number(1, 8)), number(1000, 1)))
    extra += message(10, message(1, "label"), message(3, message(3)))
    t = tensor_type(FP16, (1, 4, 1, 8))
    listed = message(2, message(1, tensor_type(INT32)), message(2, dimension(2)))
    pair = message(3, message(1, tensor_type(INT32)), message(1, tensor_type(FP16, (-1, 4))))
    table = message(4, message(1, tensor_type(STRING)), message(2, tensor_type(STRING)))
    value = message(2, listed) + message(3, message(3, message(1, ints_value(1, ())), message(1, ints_value(2, ()))))
    text = message(2, table) + message(3, message(4, message(1, message(1, text_value("a")),
                                                              message(2, text_value("b")))))
    operations = [
        operation("make_list", [("l", listed)], [("init", in_place(value))], attributes=[("build", text)]),
        operation("no_such_operation", [("u", pair)], [("x", by_name("x", "l"))]),
        operation("relu", [("y", t)], [("x", by_name("x"))]) + message(99, "unknown field"),
    ]
    return simple(7, "CoreML6", operations, extra=extra)


# ---------------------------------------------------------------- broken ones


def deep(levels):
    body = block([relu("x", "z")], ["z"])
    for level in range(levels):
        outer = operation("cond", [("c%d" % level, tensor_type(FP16, (1,)))], [("pred", by_name("x"))], blocks=[body])
        body = block([outer], ["c%d" % level])
    return simple(7, "CoreML6", [operation("cond", [("y", tensor_type(FP16, (1,)))], blocks=[body])])


def deep_lists(levels):
    value, kind = ints_value(1, ()), tensor_type(INT32)
    for _ in range(levels):
        value = message(2, message(2, message(1, kind))) + message(3, message(3, message(1, value)))
    return simple(7, "CoreML6", [const("l", INT32, (), value), relu()])


def broken_models():
    shape = (1, 4, 1, 8)
    yield "empty", b""
    yield "no_program", number(1, 7) + message(500, b"")
    yield "truncated", GOLDEN[:150]
    yield "long_varint", b"\x08" + b"\xff" * 11
    yield "length_beyond", b"\x12\xff\xff\xff\xff\x0f" + GOLDEN
    yield "no_function", model(7, b"", [])
    yield "no_block", model(7, b"", [("main", function([], "CoreML6", b"", []))])
    yield "other_block", model(7, b"", [("main", function([], "CoreML6", block([relu()], ["y"]), ["a", "b"]))])
    yield "twice_the_same_function", model(7, b"", [("main", b""), ("main", function([], "CoreML6", b""))])
    yield "undefined", simple(7, "CoreML6", [relu("nothing")])
    yield "later", simple(7, "CoreML6", [relu("z"), relu("x", "z")])
    yield "duplicate", simple(7, "CoreML6", [relu(), relu("y", "y"), relu("y", "x")])
    yield "bad_names", simple(7, "CoreML6", [relu("x", "1 a"), relu("x", "true"), relu("x", ""), relu("x", "y")])
    yield "not_utf8", simple(7, "CoreML6", [relu("x", b"\xff\xc0".decode("latin1")), relu()]).replace(b"\xc3\xbf",
                                                                                                    b"\xff\xff")
    yield "nul_in_name", simple(7, "CoreML6", [relu("x", "a\0b"), relu()])
    yield "same_parameter_twice", simple(7, "CoreML6", [operation(
        "add", [("y", tensor_type(FP16, shape))], [("x", by_name("x")), ("y", by_name("x")), ("y", by_name("x"))])])
    yield "wrong_shape", simple(7, "CoreML6", [relu(shape=(1, 4, 1, 9))])
    yield "huge_shape", simple(7, "CoreML6", [relu(shape=(1 << 62, 1 << 62, -1, 0))])
    yield "rank_six", simple(7, "CoreML6", [relu(shape=(1, 1, 1, 4, 1, 8))])
    yield "rank_forty", simple(7, "CoreML6", [relu(shape=(1,) * 40)])
    yield "constant_output", simple(7, "CoreML6", [const("y", FP16, shape, bytes_value(FP16, shape, HALVES * 4))])
    yield "infinite", simple(7, "CoreML6", [const("i", FP16, (2,), bytes_value(FP16, (2,), b"\0\x7c\1\x7e")), relu()])
    yield "short_constant", simple(7, "CoreML6", [const("c", FP16, (3,), bytes_value(FP16, (3,), b"\0\0")), relu()])
    yield "no_value", simple(7, "CoreML6", [operation("const", [("c", tensor_type(FP16, (3,)))]), relu()])
    yield "other_opset", simple(7, "CoreML8", [relu()])
    yield "unknown_opset", simple(77, "CoreML77", [relu()])
    yield "other_interface", simple(7, "CoreML6", [relu()], out=(1, 4, 1, 7), outputs=("y", "z", "y"))
    yield "no_outputs", simple(7, "CoreML6", [operation("relu", [], [("x", by_name("x"))], name="r")], outputs=())
    yield "deep_blocks", deep(30)
    yield "too_deep_blocks", deep(300)
    yield "too_deep_lists", deep_lists(300)


def conv_model(weight):
    return simple(7, "CoreML6", conv_operations(const("weight", FP16, WEIGHT_SHAPE, weight)))


def broken_weights():
    """A conv whose weight file or reference is damaged."""
    good, weights = conv()
    yield "missing", good, b""
    yield "unused", GOLDEN, weights
    yield "short", good, weights[:100]
    yield "cut_data", good, weights[:140]
    yield "version", good, weights[:4] + b"\3" + weights[5:]
    yield "count", good, b"\xff\xff\xff\xff" + weights[4:]
    yield "sentinel", good, weights[:64] + b"\0" + weights[65:]
    yield "type", good, weights[:68] + b"\2" + weights[69:]
    yield "size", good, weights[:72] + b"\xff" * 8 + weights[80:]
    yield "place", good, weights[:80] + b"\xff" * 8 + weights[88:]
    yield "padding", good, weights[:88] + b"\7" + weights[89:]
    yield "gap", good, weights[:165] + b"\1" + weights[166:]
    for offset in (0, 1, 65, 128, 1 << 20, 1 << 63, (1 << 64) - 64):
        value = blob_value(FP16, WEIGHT_SHAPE, offset)
        yield "offset_%x" % offset, conv_model(value), weights
    yield "file_name", conv_model(blob_value(FP16, WEIGHT_SHAPE, 64, "@model_path/../other.bin")), weights


def manifests():
    """Manifests of other writers, and one for each rule that is broken."""
    onnx = "com.microsoft.OnnxRuntime"
    yield "onnxruntime", manifest({MODEL_ID: item(onnx + "/model.mlmodel", "model.mlmodel", onnx),
                                   WEIGHTS_ID: item(onnx + "/weights", "weights", onnx)})
    yield "chromium", manifest({MODEL_ID.lower(): item("model.mlmodel", "model.mlmodel", "Chromium", ""),
                                WEIGHTS_ID.lower(): item("weights", "weights", "Chromium", "")}, MODEL_ID.lower())
    yield "newer", manifest({MODEL_ID: MODEL_ITEM}, version="1.1.0")
    yield "version_text", manifest({MODEL_ID: MODEL_ITEM}, version="1.0")
    yield "version_number", manifest({MODEL_ID: MODEL_ITEM}, version=1)
    yield "no_author", manifest({MODEL_ID: {key: MODEL_ITEM[key] for key in ("path", "name", "description")}})
    yield "outside", manifest({MODEL_ID: item("com.apple.CoreML/../../model.mlmodel", "m")})
    yield "absolute", manifest({MODEL_ID: item("/etc/passwd", "m")})
    yield "other_root", manifest({MODEL_ID: MODEL_ITEM}, root=WEIGHTS_ID)
    yield "no_items", manifest({})
    yield "item_text", manifest({MODEL_ID: "text"})
    yield "list", b"[1, {}]"
    yield "not_json", b"{\"fileFormatVersion\": "
    yield "empty", b""


# ---------------------------------------------------------------- operations that the interpreter runs

SHAPE = (1, 4, 1, 8)
HALF = bytes_value(FP16, (), b"\0\x38")


def ints(values, shape=None):
    return in_place(ints_value(values, shape))


def integer(value):
    return in_place(ints_value(value, ()))


def halves(*values):
    return in_place(bytes_value(FP16, (len(values),), struct.pack("<%de" % len(values), *values)))


def flag(value):
    return in_place(bool_value(value))


def step(kind, shape, *inputs, y="y", dtype=FP16, x="x"):
    first = [("x", by_name(x))] if x else []
    return operation(kind, [(y, tensor_type(dtype, shape))], first + list(inputs))


def single(kind, shape, *inputs, x="x", opset="CoreML6"):
    version = {"CoreML6": 7, "CoreML8": 9}[opset]
    return simple(version, opset, [step(kind, shape, *inputs, x=x)], out=shape)


def moves():
    """Operations that move data."""
    tail = [("squeeze_mask", in_place(immediate(BOOL, (4,), message(3, message(1, *map(varint, (0, 0, 1, 0)))))))]
    yield "transpose", single("transpose", (8, 1, 4, 1), ("perm", ints([3, 2, 1, 0])))
    yield "reshape", single("reshape", (2, 16), ("shape", ints([-1, 16])))
    yield "squeeze", single("squeeze", (4, 1, 8), ("axes", ints([0])))
    yield "expand_dims", single("expand_dims", (1, 4, 1, 1, 8), ("axes", ints([2])))
    yield "identity", single("identity", SHAPE)
    yield "concat", single("concat", (1, 8, 1, 8), ("values", by_name("x", "x")), ("axis", integer(1)),
                           ("interleave", flag(1)), x=None)
    yield "stack", single("stack", (2, 1, 4, 1, 8), ("values", by_name("x", "x")), ("axis", integer(0)), x=None)
    yield "tile", single("tile", (1, 4, 3, 16), ("reps", ints([1, 1, 3, 2])))
    yield "pad", single("pad", (1, 4, 3, 12), ("pad", ints([1, 1, 2, 2])), ("mode", in_place(text_value("constant"))),
                        ("constant_val", in_place(HALF)))
    yield "slice_by_index", single("slice_by_index", (1, 2, 4), ("begin", ints([0, 3, 0, -1])),
                                   ("end", ints([1, 0, 1, 0])), ("stride", ints([1, -2, 1, -2])), *tail)
    yield "slice_by_size", single("slice_by_size", (1, 2, 1, 5), ("begin", ints([0, 1, 0, 3])),
                                  ("size", ints([1, 2, 1, -1])))
    yield "gather", single("gather", (1, 4, 1, 3), ("indices", ints([7, 0, -2])), ("axis", integer(3)))
    yield "fill", single("fill", (2, 3), ("shape", ints([2, 3])), ("value", in_place(HALF)), x=None)


def arithmetic():
    for kind in ("relu", "tanh", "sigmoid", "exp", "sqrt", "abs", "erf", "square"):
        yield kind, single(kind, SHAPE)
    for kind in ("add", "sub", "mul", "real_div", "maximum", "minimum", "pow"):
        yield kind, single(kind, SHAPE, ("y", halves(1, -2, 0.5, 4, 0, 6, 7, 8)))
        yield kind + "_self", single(kind, SHAPE, ("y", by_name("x")))
    yield "gelu", single("gelu", SHAPE, ("mode", in_place(text_value("TANH_APPROXIMATION"))))
    yield "clip", single("clip", SHAPE, ("alpha", in_place(HALF)), ("beta", in_place(HALF)))
    yield "softmax", single("softmax", SHAPE, ("axis", integer(-1)))
    yield "batch_norm", single("batch_norm", SHAPE, ("mean", halves(1, 2, 3, 4)), ("variance", halves(1, 2, 3, 4)),
                               ("epsilon", in_place(HALF)))
    for kind in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_l2_norm", "reduce_log_sum_exp"):
        yield kind, single(kind, (1, 4, 1, 1), ("axes", ints([3])), ("keep_dims", flag(1)))


def products():
    yield "matmul", single("matmul", (1, 4, 1, 1), ("y", by_name("x")), ("transpose_x", flag(0)),
                           ("transpose_y", flag(1)))
    weight = in_place(bytes_value(FP16, (2, 8), HALVES))
    yield "linear", simple(7, "CoreML6", [step("linear", (4, 2), ("weight", weight), ("bias", halves(1, 2)))],
                           shape=(4, 8), out=(4, 2))
    yield "attention", single("scaled_dot_product_attention", SHAPE, ("query", by_name("x")), ("key", by_name("x")),
                              ("value", by_name("x")), x=None, opset="CoreML8")
    kernel = in_place(bytes_value(FP16, (8, 1, 1, 2), HALVES))
    yield "conv_groups", single("conv", (1, 8, 1, 3), ("weight", kernel), ("groups", integer(4)),
                                ("strides", ints([1, 3])), ("dilations", ints([1, 2])),
                                ("pad_type", in_place(text_value("custom"))), ("pad", ints([0, 0, 1, 0])))


def chains():
    """Memory that is used again: results in place, aliases, values that live long."""
    yield "chain", simple(7, "CoreML6", [
        step("exp", SHAPE, y="a"), step("reshape", (2, 16), ("shape", ints([2, 16])), x="a", y="b"),
        step("square", (2, 16), x="b", y="c"), step("add", (2, 16), ("y", by_name("b")), x="c", y="d"),
        step("reshape", SHAPE, ("shape", ints([1, 4, 1, 8])), x="d", y="e"),
        step("mul", SHAPE, ("y", by_name("x")), x="e")], outputs=("y", "a", "y"))
    yield "cast", simple(7, "CoreML6", [
        step("cast", SHAPE, ("dtype", in_place(text_value("int32"))), y="i", dtype=INT32),
        step("greater", SHAPE, ("y", ints(1, ())), x="i", y="b", dtype=BOOL),
        step("select", SHAPE, ("cond", by_name("b")), ("a", by_name("x")), ("b", in_place(HALF)), x=None)])


def huge():
    shape = (1, 1 << 20, 1 << 12, 1)
    yield "huge_input", simple(7, "CoreML6", [relu(shape=shape)], shape=shape, out=shape)
    yield "huge_tile", single("tile", (1 << 20, 4, 1, 8), ("reps", ints([1 << 20, 1, 1, 1])))
    yield "huge_fill", single("fill", (1 << 30,), ("shape", ints([1 << 30])), ("value", in_place(HALF)), x=None)


def interpreter_seeds():
    for name, bytes_of_model, weights in good_packages():
        yield name, 0, b"", bytes_of_model, weights
        yield name + "_memory", 60, b"", bytes_of_model, weights
    for name, bytes_of_model, weights in palettes():
        yield "palette_" + name, 0, b"", bytes_of_model, weights
    for name, bytes_of_model, weights in broken_palettes():
        yield "palette_bad_" + name, 0, b"", bytes_of_model, weights
    for group in (moves, arithmetic, products, chains, huge):
        for name, bytes_of_model in group():
            yield "op_" + name, 0, b"", bytes_of_model, b""


# ---------------------------------------------------------------- seeds


def good_packages():
    return [("relu", GOLDEN, b""), ("conv", *conv()), ("lut_attributes", *lut_attributes()),
            ("lut_inputs", *lut_inputs()), ("quantized", *quantized()), ("attention", attention(), b""),
            ("nested", nested(), b""), ("functions", several_functions(), b""), ("kinds", kinds(), b"")]


def package_seeds():
    for name, bytes_of_model, weights in good_packages():
        yield name, 0, FULL if weights else PLAIN, bytes_of_model, weights
        for fail_at in (2, 9, 30):
            yield "%s_memory_%d" % (name, fail_at), fail_at, b"", bytes_of_model, weights
    for name, bytes_of_model, weights in palettes():
        yield "palette_" + name, 0, FULL if weights else PLAIN, bytes_of_model, weights
    for fail_at in range(40, 56, 3):
        yield "palette_memory_%d" % fail_at, fail_at, b"", *grouped_palette(3)
    for name, bytes_of_model, weights in broken_palettes():
        yield "palette_bad_" + name, 0, b"", bytes_of_model, weights
    for name, document in palette_records():
        yield "palette_record_" + name, 0, json.dumps(document).encode(), *packed_palette(4)
    for name, bytes_of_model in broken_models():
        yield "model_" + name, 0, b"", bytes_of_model, b""
    for name, bytes_of_model, weights in broken_weights():
        yield "weights_" + name, 0, b"", bytes_of_model, weights
    for name, text in manifests():
        yield "manifest_" + name, 0, text, b"", b""


def main():
    arguments = sys.argv[1:]
    target, seeds = "package", package_seeds
    if arguments[:1] == ["--interpreter"]:
        target, seeds = "interpreter", interpreter_seeds
        del arguments[0]
    here = os.path.dirname(os.path.abspath(__file__))
    folder = arguments[0] if arguments else os.path.join(here, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    for name, fail_at, text, bytes_of_model, weights in seeds():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(struct.pack("<BII", fail_at, len(text), len(bytes_of_model)) + text + bytes_of_model + weights)


if __name__ == "__main__":
    main()
