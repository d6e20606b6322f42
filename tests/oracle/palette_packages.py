#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check packages that `layac palettize` writes with coremltools, without a Mac.

    palette_packages.py --layac PATH --expander PATH [--jobs N] [--only CHECKPOINT]

For two checkpoints of the repository, both graphs, fp16 and fp32, all bit widths, one table a tensor and groups:

1. coremltools opens the package, finds the weights, infers the type of every operation again; `layac inspect` counts
   the same and `layac inspect --verify` passes.
2. The form is the one that bits and groups ask for: attributes and the parent's version, or inputs and version 9.
3. coremltools' decompression of every palette gives, to the last bit, what laya-expand-palettes writes.
4. Operations and all other constants are the parent's, to the last bit; exactly the convolution weights above 2,048
   elements that are no rotation of RoPE have palettes.
5. manifest.json: the parent's digest, errors, bytes and shapes of the weights.
6. Packages with one table a tensor of 4 and 8 bits: tables and indices are those of coremltools' own palettization of
   the parent (k-means where it is exact; of uniform ones the indices, since NumPy 2 rounds the tables' scale).
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # the work is spread over processes
os.environ["TQDM_DISABLE"] = "1"  # coremltools' progress bars

import argparse  # noqa: E402
import collections  # noqa: E402
import concurrent.futures  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import struct  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import warnings  # noqa: E402

import numpy as np  # noqa: E402

from coreml_checkpoint import Tensors  # noqa: E402
from coreml_package import Package, ct  # noqa: E402
from palette_oracle import EXACT, Tables, equal_bits  # noqa: E402
import coremltools.optimize.coreml as compress  # noqa: E402
from coremltools.optimize._utils import restore_elements_from_packed_bits  # noqa: E402

CHECKPOINTS = {"demo": "models/laya-demo", "tiny": "tests/data/laya-tiny-random"}
BITS = (1, 2, 3, 4, 6, 8)
THRESHOLD = 2048

Parent = collections.namedtuple("Parent", "checkpoint graph precision")
Variant = collections.namedtuple("Variant", "mode bits group")  # group None: one table a tensor


def all_tasks():
    """Parents with the variants that are made of them."""
    variants = [Variant("kmeans", bits, group) for bits in BITS for group in (None, 32)]
    others = [Variant("uniform", bits, group) for bits in (3, 4, 8) for group in (None, 4)]
    for checkpoint in CHECKPOINTS:
        for graph in ("per-head", "lean"):
            yield Parent(checkpoint, graph, "fp16"), variants + others
    yield Parent("tiny", "lean", "fp32"), [Variant("kmeans", 4, None), Variant("kmeans", 3, 16),
                                           Variant("uniform", 8, 8)]
    unique = [Variant("unique", None, None), Variant("unique", None, 32)]
    yield Parent("few", "per-head", "fp16"), unique
    yield Parent("few", "lean", "fp32"), unique


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        raise ValueError("%s: exit code %d: %s" % (" ".join(command[:2]), result.returncode, result.stderr.strip()))
    return result.stdout


def make_few(folder):
    """The random checkpoint with few distinct values in most of its weights, a number of its own in each."""
    shutil.copytree(CHECKPOINTS["tiny"], folder)
    path = os.path.join(folder, "model.safetensors")
    tensors, rng = Tensors(path), np.random.default_rng(5)
    with open(path, "r+b") as handle:
        for at, name in enumerate(sorted(name for name in tensors.header if name.endswith("weight"))):
            values = tensors.tensor(name)
            if values.ndim != 2 or at % 5 == 0:
                continue
            table = rng.choice(values.ravel(), 3 + 17 * at % 253)
            handle.seek(tensors.start + tensors.header[name]["data_offsets"][0])
            handle.write(rng.choice(table, values.shape).astype(values.dtype).tobytes())


# ---------------------------------------------------------------- programs

def bits_of(array):
    array = np.ascontiguousarray(array)
    return array.view("u%d" % array.itemsize) if array.dtype.kind == "f" else array


def same(got, expected, what):
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape or not (bits_of(got) == bits_of(expected)).all():
        raise ValueError("%s differs" % what)


def computing(program):
    """Operations in order, without constants."""
    return [op for op in program.functions["main"].operations
            if op.op_type != "const" and not op.op_type.startswith("constexpr")]


def operands(op):
    for name, argument in op.inputs.items():
        parts = argument if isinstance(argument, (tuple, list)) else [argument]
        for at, variable in enumerate(parts):
            if variable is not None:
                yield (name, at), variable


def is_rotation(value):
    """out[c] = -x[c + 32], out[c + 32] = x[c]"""
    return value.shape == (64, 64, 1, 1) and set(np.unique(value)) <= {-1, 0, 1}


def is_wanted(op, name, value):
    return op.op_type == "conv" and name == "weight" and value.size > THRESHOLD and not is_rotation(value)


def compare_programs(parent, made):
    """Name of each palettized weight to (the parent's value, the constexpr operation); all else is equal."""
    weights = {}
    before, after = computing(parent), computing(made)
    if [(op.op_type, op.name) for op in before] != [(op.op_type, op.name) for op in after]:
        raise ValueError("other operations than the parent's")
    for old, new in zip(before, after):
        olds, news = dict(operands(old)), dict(operands(new))
        if olds.keys() != news.keys():
            raise ValueError("'%s' has other parameters" % old.name)
        for key, variable in olds.items():
            place = "'%s', %s" % (old.name, key[0])
            maker = news[key].op
            palettized = maker is not None and maker.op_type == "constexpr_lut_to_dense"
            if variable.val is None:
                if news[key].name != variable.name or palettized:
                    raise ValueError("%s: another operand" % place)
            elif not palettized:
                same(news[key].val, variable.val, place)
            if palettized or (variable.val is not None and is_wanted(old, key[0], np.asarray(variable.val))):
                value = np.asarray(variable.val)
                if palettized and not is_wanted(old, key[0], value):
                    raise ValueError("%s: %s has a palette" % (place, value.shape))
                if news[key].name != variable.name:
                    raise ValueError("%s: the weight has another name" % place)
                weights[variable.name] = value, maker if palettized else None
    return weights


def decompress(op):
    return np.asarray(op.materialized_val_inference())


# ---------------------------------------------------------------- checks

def expanded(expander, package, folder):
    """Name to bytes, as the interpreter expands them."""
    path, weights = os.path.join(folder, "expanded"), {}
    run(expander, package, path)
    with open(path, "rb") as handle:
        while size := handle.read(4):
            name = handle.read(struct.unpack("<I", size)[0]).decode()
            weights[name] = handle.read(struct.unpack("<Q", handle.read(8))[0])
    return weights


def check_form(variant, parent, made, weights):
    """Bits and tables of every palette; returns the bits of each."""
    three = variant.bits == 3
    grouped_form = variant.group is not None or three
    version = 9 if grouped_form else parent.spec.specificationVersion
    version = max(version, 7)
    if made.spec.specificationVersion != version:
        raise ValueError("specification version %d, expected %d" % (made.spec.specificationVersion, version))
    function, = made.spec.mlProgram.functions.values()
    for op in function.block_specializations[function.opset].operations:
        if op.type == "constexpr_lut_to_dense" and bool(op.inputs) != grouped_form:
            raise ValueError("'%s': not in the form of %s" % (op.outputs[0].name, function.opset))
    bits = {}
    for name, (value, op) in weights.items():
        if op is None:
            continue
        table = np.asarray(op.lut.val)
        group = variant.group or value.shape[0]
        bits[name] = int(np.log2(table.shape[-2] if grouped_form else table.shape[0]))
        expected = ((value.shape[0] // group, 1, 1, 1, 1 << bits[name], 1) if grouped_form else (1 << bits[name],))
        if table.shape != expected or table.dtype != value.dtype or variant.bits not in (None, bits[name]):
            raise ValueError("'%s': table %s, expected %s" % (name, table.shape, expected))
    return bits


def check_unique(variant, weights, bits):
    """Lossless with the fewest bits; weights with more values than 256 in a group are left."""
    for name, (value, op) in weights.items():
        groups = value.reshape(-1, (variant.group or value.shape[0]) * value.shape[1])
        most = max(len(np.unique(group)) for group in groups)
        widths = [width for width in BITS if most <= 1 << width and (width != 3 or variant.group)]
        if bits.get(name) != (widths[0] if widths else None):
            raise ValueError("'%s': %d values, but %s bits" % (name, most, bits.get(name)))
        if op is not None:
            same(decompress(op) + value.dtype.type(0), value + value.dtype.type(0), "'%s'" % name)  # -0 is +0


def check_manifest(bundle, parent_bundle, variant, weights, bits):
    manifests = []
    for folder in (bundle, parent_bundle):
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as handle:
            manifests.append(json.load(handle))
    palette = manifests[0]["palette"]
    facts = {"parent_package_sha256": manifests[1]["package_sha256"], "mode": variant.mode,
             "bits": variant.bits or "per weight", "group_size": variant.group, "gate": "not_measured"}
    for key, expected in facts.items():
        if palette[key] != expected:
            raise ValueError("manifest.json: %s is %s, expected %s" % (key, palette[key], expected))
    listed = {entry["name"]: entry for entry in palette["weights"]}
    if set(listed) != set(bits) or len(listed) != len(palette["weights"]):
        raise ValueError("manifest.json lists other weights")
    if {entry["name"] for entry in palette["skipped"]} != set(weights) - set(bits):
        raise ValueError("manifest.json: %s are said to be skipped" % palette["skipped"])
    sizes = [sum(weights[name][0].nbytes for name in weights), palette["weight_bytes_before"]]
    if sizes[0] != sizes[1]:
        raise ValueError("manifest.json: %d bytes of weights, expected %d" % (sizes[1], sizes[0]))
    for name, entry in listed.items():
        value, op = weights[name]
        away = value.astype(np.float64) - decompress(op).astype(np.float64)
        groups = value.shape[0] // (variant.group or value.shape[0])
        size = -(-value.size * bits[name] // 8) + (groups * value.itemsize << bits[name])
        stated = {"shape": list(value.shape), "bits": bits[name], "groups": groups, "bytes_before": value.nbytes,
                  "bytes_after": size}
        for key, expected in stated.items():
            if entry[key] != expected:
                raise ValueError("manifest.json: %s: %s is %s, expected %s" % (name, key, entry[key], expected))
        sse, energy = float((away ** 2).sum()), float((value.astype(np.float64) ** 2).sum())
        for key, expected in (("sse", sse), ("relative_error", sse / energy), ("largest_error", np.abs(away).max())):
            if abs(entry[key] - expected) > 1e-9 * expected:
                raise ValueError("manifest.json: %s: %s is %.17g, NumPy %.17g" % (name, key, entry[key], expected))


def tables_of(op, count):
    """Of an operation in the form of CoreML6."""
    lut = np.asarray(op.lut.val)
    indices = restore_elements_from_packed_bits(np.asarray(op.indices.val), int(np.log2(lut.size)), count)
    return Tables(lut.reshape(1, -1), np.asarray(indices).astype(np.uint8).reshape(1, -1))


def check_own(parent_package, variant, weights):
    """The same weights from coremltools' palettization; returns how many were compared."""
    config = compress.OpPalettizerConfig(mode=variant.mode, nbits=variant.bits, weight_threshold=THRESHOLD)
    model = ct.models.MLModel(parent_package.path, skip_model_load=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of weights that are not compared
        model = compress.palettize_weights(model, compress.OptimizationConfig(op_type_configs={"conv": config}))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "own.mlpackage")
        model.save(path)
        program = Package(path).program
    compared = 0
    theirs = {old.name: dict(operands(old))["weight", 0].op for old in computing(program) if old.op_type == "conv"}
    for conv in computing(parent_package.program):
        if conv.op_type != "conv" or conv.weight.name not in weights:
            continue
        value, op = weights[conv.weight.name]
        if variant.mode == "kmeans" and value.size < EXACT:
            continue
        ours, own = tables_of(op, value.size), tables_of(theirs[conv.name], value.size)
        try:
            if variant.mode == "uniform":
                same(ours.indices, own.indices, "one index or more")
            else:
                equal_bits(value.reshape(1, -1), ours, own)
        except ValueError as error:
            raise ValueError("'%s' against coremltools' palettization: %s" % (conv.name, error)) from error
        compared += 1
    if not compared:
        raise ValueError("nothing to compare with coremltools' palettization")
    return "%d weights as coremltools palettizes them" % compared


def check_variant(tools, parent_bundle, parent, variant, folder):
    layac, expander = tools
    bundle = os.path.join(folder, "bundle")
    command = [layac, "palettize", "--package", parent_bundle, "--mode", variant.mode, "--workers", "1",
               "--group-size", str(variant.group or "tensor"), "--output", bundle]
    run(*command, *([] if variant.bits is None else ["--bits", str(variant.bits)]))
    try:
        made = Package(os.path.join(bundle, "model.mlpackage"))
        made.check_form()
        made.check_inspection(json.loads(run(layac, "inspect", "--json", made.path)))
        run(layac, "inspect", "--verify", made.path)
        if made.features() != parent.features():
            raise ValueError("other inputs or outputs than the parent's")
        weights = compare_programs(parent.program, made.program)
        bits = check_form(variant, parent, made, weights)
        if variant.mode == "unique":
            check_unique(variant, weights, bits)
        elif len(bits) != len(weights):
            raise ValueError("%d of %d weights have palettes" % (len(bits), len(weights)))
        ours = expanded(expander, made.path, folder)
        if set(ours) != set(bits):
            raise ValueError("the interpreter expands other weights")
        for name in bits:
            dense = decompress(weights[name][1])
            if ours[name] != dense.tobytes() or dense.shape != weights[name][0].shape:
                raise ValueError("'%s': coremltools decompresses it to other values" % name)
        check_manifest(bundle, parent_bundle, variant, weights, bits)
        text = "%d palettes" % len(bits)
        if variant.group is None and variant.bits in (4, 8) and parent.spec.specificationVersion == 7:
            text += ", " + check_own(parent, variant, weights)
        return text
    finally:
        shutil.rmtree(bundle, ignore_errors=True)


# ---------------------------------------------------------------- main

def run_task(arguments):
    tools, parent, variants = arguments
    lines, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = CHECKPOINTS.get(parent.checkpoint)
        if checkpoint is None:
            checkpoint = os.path.join(folder, "few")
            make_few(checkpoint)
        bundle = os.path.join(folder, "parent")
        run(tools[0], "export", "--model", checkpoint, "--graph", parent.graph, "--precision", parent.precision,
            "--length", "32", "--output", bundle)
        package = Package(os.path.join(bundle, "model.mlpackage"))
        for variant in variants:
            bits = "" if variant.bits is None else " %d" % variant.bits
            group = "tensor" if variant.group is None else "groups of %d" % variant.group
            label = "%s %s %s, %s%s, %s" % (*parent, variant.mode, bits, group)
            try:
                lines.append("%s: %s" % (label, check_variant(tools, bundle, package, variant, folder)))
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                lines.append("FAIL %s: %s: %s" % (label, type(error).__name__, error))
    return lines, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layac", required=True)
    parser.add_argument("--expander", required=True, help="laya-expand-palettes")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="checkpoint")
    arguments = parser.parse_args()
    tools = os.path.abspath(arguments.layac), os.path.abspath(arguments.expander)
    tasks = [(tools, parent, variants) for parent, variants in all_tasks()
             if arguments.only in (None, parent.checkpoint)]
    total = failed = 0
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for lines, failures in pool.map(run_task, tasks):
            print("\n".join(lines), flush=True)
            total, failed = total + len(lines), failed + failures
    print("%d palettized packages, %d failed" % (total, failed))
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
