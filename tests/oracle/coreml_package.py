# SPDX-License-Identifier: Apache-2.0
"""Load packages with coremltools (on Linux: its package, weight file and MIL readers) and check them op by op."""
import collections
import logging
import os
import re
import struct

logging.getLogger("coremltools").setLevel(logging.CRITICAL)  # its warnings that macOS libraries are missing

import coremltools as ct  # noqa: E402
from coremltools.converters.mil.frontend.milproto import load as milproto  # noqa: E402
from coremltools.libmodelpackage import ModelPackage  # noqa: E402

TYPES = {65568: "fp32", 65552: "fp16", 131104: "int32", 65600: "fp64", 131080: "int8"}
LEGAL = re.compile("[A-Za-z_][A-Za-z0-9_@]*")


class Package:
    """A package that coremltools accepts: its specification and its program."""

    def __init__(self, path, weights=True):
        self.path = path
        root = ModelPackage(path).getRootModel().path()
        self.spec = ct.utils.load_spec(path)
        model = ct.models.MLModel(path, skip_model_load=True)
        self.weights_folder = model.weights_dir
        if weights and not self.weights_folder:
            raise ValueError("coremltools finds no weights folder")
        with open(root, "rb") as handle:
            self.model_bytes = handle.read()
        # Infers the type of every output again and compares it with the declared one.
        self.program = milproto.load(self.spec, self.spec.specificationVersion, self.weights_folder)
        self.program.validate()

    def histogram(self):
        """Operations of the loaded program by kind, constants too."""
        return collections.Counter(op.op_type for op in operations(self.program))

    def written(self):
        """Operations by kind as the file has them, by function; those of nested blocks too."""
        return {name: collections.Counter(op.type for op in written_operations(function))
                for name, function in self.spec.mlProgram.functions.items()}

    def features(self):
        """Inputs and outputs as the model's description declares them: name to (type, shape)."""
        description = self.spec.description
        return feature_types(description.input), feature_types(description.output)

    def check_inspection(self, facts):
        """What layac says of the package is what coremltools' classes hold."""
        if facts["specification_version"] != self.spec.specificationVersion:
            raise ValueError("layac inspect: specification version %s" % facts["specification_version"])
        counts = {function["name"]: collections.Counter(function["operations"]["kinds"])
                  for function in facts["functions"]}
        if counts != self.written():
            raise ValueError("layac inspect counts %s, coremltools %s" % (counts, self.written()))
        descriptions = {item.name: item for item in self.spec.description.functions}
        for function in facts["functions"]:
            description = descriptions.get(function["name"], self.spec.description)
            for key, features in (("inputs", description.input), ("outputs", description.output)):
                got = {item["name"]: (item["dtype"], item["shape"]) for item in function.get(key, [])
                       if not item.get("flexible")}
                expected = {name: feature for name, feature in feature_types(features).items() if name in got}
                if got != expected:
                    raise ValueError("layac inspect: %s %s, coremltools %s" % (key, got, expected))

    def check_form(self):
        """What coremltools accepts silently: unknown fields, names, the interface, the weight file's header."""
        copy = type(self.spec)()
        copy.ParseFromString(self.model_bytes)
        copy.DiscardUnknownFields()
        if copy.ByteSize() != len(self.model_bytes):
            raise ValueError("model.mlmodel has fields that Apple's schema does not know, or is encoded wastefully")
        (name, function), = copy.mlProgram.functions.items()
        (key, block), = function.block_specializations.items()
        if name != "main" or key != function.opset or copy.mlProgram.version != 1:
            raise ValueError("function '%s', opset '%s', specialization '%s'" % (name, function.opset, key))
        names = [item.name for item in function.inputs]
        offsets = set()
        for op in block.operations:
            names += [output.name for output in op.outputs]
            if op.attributes["name"].immediateValue.tensor.strings.values[:] == []:
                raise ValueError("an operation '%s' without a name" % op.type)
            for value in list(op.attributes.values()) + [b.value for a in op.inputs.values() for b in a.arguments]:
                if value.HasField("blobFileValue"):
                    offsets.add(value.blobFileValue.offset)
        if len(names) != len(set(names)) or not all(LEGAL.fullmatch(name) for name in names):
            raise ValueError("names that are not legal or not unique")
        inputs, outputs = self.features()
        if [item.name for item in function.inputs] != list(inputs) or list(block.outputs) != list(outputs):
            raise ValueError("the function's interface is not the description's")
        path = os.path.join(self.weights_folder, "weight.bin")
        with open(path, "rb") as handle:
            count, version = struct.unpack("<II", handle.read(8))
        if count != len(offsets) or version != 2 or any(offset % 64 for offset in offsets):
            raise ValueError("weight.bin: count %d, version %d, %d offsets" % (count, version, len(offsets)))


def feature_types(features):
    return {feature.name: (TYPES[feature.type.multiArrayType.dataType], list(feature.type.multiArrayType.shape))
            for feature in features}


def written_operations(function):
    waiting = list(function.block_specializations.values())
    while waiting:
        for op in waiting.pop().operations:
            yield op
            waiting += op.blocks


def operations(program):
    """All operations of all functions, those of nested blocks too."""
    waiting = list(program.functions.values())
    while waiting:
        for op in waiting.pop().operations:
            yield op
            waiting += op.blocks
