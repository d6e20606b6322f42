#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the tables of laya_group_make with coremltools' palettization of the same tensors.

    palette_oracle.py --driver PATH [--jobs N] [--only NAME]

For every tensor, bit width and group size, coremltools' own pass (palettize_weights.blockwise_compress) makes tables
and indices, and so does laya-palettize-tensor:

kmeans    where coremltools is exact (fp16, groups of 10,000 elements and more; its dynamic programme kmeans1d): equal
          to the last bit. Where two divisions are equally good, which fractions show, its float64 sums decide by
          chance; ours must have the last border further left. Elsewhere (scikit-learn): our squared error is not
          above its.
uniform   indices equal; tables equal to those that its formula gives with a scale in float64, as under NumPy 1
          (NumPy 2 rounds the scale to the weights' type first).
unique    equal, and the same number of bits.
weighted  kmeans1d on the same values with sums of energies as weights: equal to the last bit, or errors whose exact
          difference (fractions) is below the 2^-49 of the energy that float64 sums leave open.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # the work is spread over processes

import argparse  # noqa: E402
import collections  # noqa: E402
import concurrent.futures  # noqa: E402
import fractions  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import warnings  # noqa: E402

import numpy as np  # noqa: E402

import coreml_package  # noqa: E402,F401  silences coremltools
from coreml_checkpoint import Tensors  # noqa: E402
from coremltools._deps import _kmeans1d as kmeans1d  # noqa: E402
from coremltools.optimize.coreml._quantization_passes import palettize_weights  # noqa: E402

BITS = (1, 2, 3, 4, 6, 8)
EXACT = 10000  # elements from which on coremltools' k-means of fp16 values is exact
TYPES = {np.dtype(np.float16): "fp16", np.dtype(np.float32): "fp32"}

Outcome = collections.namedtuple("Outcome", "kind label message figure")


# ---------------------------------------------------------------- tensors

def named_tensors():
    """Name to [rows, row] in fp16 or fp32."""
    rng = np.random.default_rng(17)
    demo = Tensors("models/laya-demo/model.safetensors")
    tiny = Tensors("tests/data/laya-tiny-random/model.safetensors")
    tensors = {
        "demo Wqkv": demo.tensor("encoder.layers.0.attn.Wqkv.weight"),
        "demo Wi": demo.tensor("encoder.layers.2.mlp.Wi.weight"),
        "demo Wo": demo.tensor("encoder.layers.3.mlp.Wo.weight"),
        "tiny Wqkv": tiny.tensor("encoder.layers.1.attn.Wqkv.weight"),
        "tiny attention Wo": tiny.tensor("encoder.layers.4.attn.Wo.weight"),
        "tiny linear1": tiny.tensor("head.layers.0.linear1.weight"),
        "normal": (rng.standard_normal((128, 768)) * 0.05).astype(np.float16),
        "outliers": (rng.standard_t(2, (64, 512)) * 0.02).astype(np.float16),
        "uniform": rng.uniform(-1, 1, (64, 256)).astype(np.float16),
        "positive": rng.uniform(1, 2, (64, 256)).astype(np.float16),
        "grid": (rng.integers(-300, 301, (64, 256)) / 256).astype(np.float16),
        "few values": rng.choice(np.float16([-0.5, -0.25, 0.125, 3, 7]), (64, 192)),
        "two hundred values": rng.choice(np.float16(rng.standard_normal(200)), (64, 192)),
        "zeros of both signs": rng.choice(np.float16([-1, -0.0, 0.0, 2]), (64, 192)),
        "constant": np.full((64, 192), 0.3, np.float16),
        "subnormal": (rng.integers(-1000, 1001, (64, 192)) * 2.0 ** -24).astype(np.float16),
        "large": (rng.standard_normal((64, 192)) * 6000).astype(np.float16),
        "sparse": (rng.standard_normal((64, 192)) * (rng.random((64, 192)) < 0.2)).astype(np.float16),
    }
    tensors["demo Wi, fp32"] = tensors["demo Wi"].astype(np.float32)[:64]
    tensors["normal, fp32"] = (rng.standard_normal((64, 160)) * 0.05).astype(np.float32)
    tensors["few values, fp32"] = tensors["few values"].astype(np.float32)
    return tensors


def group_sizes(tensor):
    rows = tensor.shape[0]
    return [size for size in (rows, 64, 32, 8) if rows % size == 0 and (size < rows or size == rows)]


# ---------------------------------------------------------------- the two sides

class Tables:
    """[groups, 2^bits] tables, [groups, elements] indices."""

    def __init__(self, luts, indices):
        self.luts, self.indices = luts, indices

    def dense(self):
        return np.take_along_axis(self.luts, self.indices.astype(np.int64), 1)


class Driver:
    def __init__(self, program, folder):
        self.program = program
        self.paths = [os.path.join(folder, name) for name in ("input", "output", "energy")]

    def run(self, tensor, group, mode, bits, energy=None):
        """Tables, or the text of the error."""
        rows, row = tensor.shape
        tensor.tofile(self.paths[0])
        command = [self.program, TYPES[tensor.dtype], str(rows), str(row), str(group), mode, str(bits)]
        command += self.paths[:2]
        if energy is not None:
            energy.astype(np.float32).tofile(self.paths[2])
            command.append(self.paths[2])
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            return result.stderr.strip() or "exit code %d" % result.returncode, None
        groups = rows // group
        with open(self.paths[1], "rb") as handle:
            luts = np.frombuffer(handle.read(tensor.itemsize * groups << bits), tensor.dtype)
            indices = np.frombuffer(handle.read(), np.uint8)
        said = np.array([line.split() for line in result.stdout.splitlines()], float)
        return Tables(luts.reshape(groups, -1), indices.reshape(groups, -1)), said


def coremltools_tables(tensor, group, mode, bits):
    """What the pass makes of a convolution's weight; None: it leaves the weight as it is."""
    weight = tensor.reshape(tensor.shape + (1, 1)).copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = palettize_weights.blockwise_compress(weight, mode.upper(), bits, [group, 0, 0, 0], channel_axis=0)
    if made is None:
        return None
    groups = tensor.shape[0] // group
    return Tables(made.lut.reshape(groups, -1), np.asarray(made.indices).astype(np.uint8).reshape(groups, -1))


def same_bits(got, expected, what):
    """-0 and +0 are one value."""
    kind = np.uint16 if got.dtype == np.float16 else np.uint32 if got.dtype == np.float32 else got.dtype
    got, expected = got + got.dtype.type(0), expected + expected.dtype.type(0)
    different = np.count_nonzero(np.ascontiguousarray(got).view(kind) != np.ascontiguousarray(expected).view(kind))
    if got.dtype != expected.dtype or got.shape != expected.shape or different:
        raise ValueError("%s: %d of %d differ" % (what, different, got.size))


def squared_error(values, dense):
    return float(((values.astype(np.float64) - dense.astype(np.float64)) ** 2).sum())


def partition_error(values, indices):
    """The squared error with the float64 mean of each cluster."""
    error = 0.0
    for group, labels in zip(values.astype(np.float64), indices):
        counts, sums = np.bincount(labels), np.bincount(labels, group)
        means = sums / np.maximum(counts, 1)
        error += ((group - means[labels]) ** 2).sum()
    return float(error)


def exact_gain(distinct, weights, labels):
    """Sum of S^2 / W over the clusters, which is larger the smaller the squared error is; without rounding."""
    sums, totals = collections.Counter(), collections.Counter()
    for value, weight, label in zip(distinct.tolist(), weights.tolist(), labels.tolist()):
        sums[label] += fractions.Fraction(weight) * fractions.Fraction(value)
        totals[label] += fractions.Fraction(weight)
    return sum(sums[label] ** 2 / totals[label] for label in totals)


def equal_bits(values, ours, theirs):
    """Whether tables and indices are equal; False: another division, equally well, ours the one that it must be."""
    equal = True
    for at, group in enumerate(values):
        if (ours.indices[at] == theirs.indices[at]).all():
            same_bits(ours.luts[at], theirs.luts[at], "tables")
            continue
        equal = False
        distinct, first, counts = np.unique(group, return_index=True, return_counts=True)
        mine, other = ours.indices[at][first].astype(int), theirs.indices[at][first].astype(int)
        same_bits(mine[np.searchsorted(distinct, group)], ours.indices[at].astype(int), "indices of equal values")
        if exact_gain(distinct, counts, mine) != exact_gain(distinct, counts, other):
            raise ValueError("indices: %d of %d values differ" % (np.count_nonzero(mine != other), len(distinct)))
        last = np.nonzero(mine != other)[0][-1]
        if mine[last] < other[last]:
            raise ValueError("of equal divisions the last border is not the leftmost")
        for entry in range(ours.luts.shape[1]):
            if ((mine == entry) == (other == entry)).all():
                same_bits(ours.luts[at][entry:entry + 1], theirs.luts[at][entry:entry + 1], "tables")
    return equal


# ---------------------------------------------------------------- modes

def check_said(values, ours, said):
    """Distinct values and errors that the driver printed, against NumPy."""
    for group, dense, (distinct, error) in zip(values, ours.dense(), said):
        if distinct != len(np.unique(group)):
            raise ValueError("%d distinct values are stated" % distinct)
        expected = squared_error(group, dense)
        if abs(error - expected) > 1e-9 * expected:
            raise ValueError("error %.17g, NumPy %.17g" % (error, expected))


def check_kmeans(tensor, group, bits, driver):
    ours, said = driver.run(tensor, group, "kmeans", bits)
    if isinstance(ours, str):
        raise ValueError(ours)
    theirs = coremltools_tables(tensor, group, "kmeans", bits)
    values = tensor.reshape(ours.indices.shape)
    check_said(values, ours, said)
    if tensor.dtype == np.float16 and values.shape[1] >= EXACT:
        equal = equal_bits(values, ours, theirs)
        return "kmeans, " + ("equal bits" if equal else "an equally good division"), None
    mine, other = squared_error(values, ours.dense()), squared_error(values, theirs.dense())
    best, reached = partition_error(values, ours.indices), partition_error(values, theirs.indices)
    if not best <= reached * (1 + 1e-12) + 1e-30:
        raise ValueError("squared error of the division %.17g, scikit-learn reaches %.17g" % (best, reached))
    if not mine <= other * (1 + 1e-12) + 1e-30:
        raise ValueError("squared error %.17g, scikit-learn reaches %.17g" % (mine, other))
    return "kmeans, error of scikit-learn's over ours", other / mine if mine else None


def uniform_tables(values, bits):
    """The pass's formula with a scale in float64, group by group."""
    luts = []
    for group in values:
        low, high = group.min(), group.max()
        scale = float(high - low) / ((1 << bits) - 1)
        luts.append((np.arange(1 << bits) * scale + float(low)).astype(values.dtype))
    return np.stack(luts)


def check_uniform(tensor, group, bits, driver):
    ours, said = driver.run(tensor, group, "uniform", bits)
    if isinstance(ours, str):
        raise ValueError(ours)
    theirs = coremltools_tables(tensor, group, "uniform", bits)
    values = tensor.reshape(ours.indices.shape)
    check_said(values, ours, said)
    same_bits(ours.indices, theirs.indices, "indices")
    same_bits(ours.luts, uniform_tables(values, bits), "tables")
    other = np.count_nonzero(ours.luts != theirs.luts) / ours.luts.size
    return "uniform, part of entries that a rounded scale changes", other


def check_unique(tensor, group, driver):
    theirs = coremltools_tables(tensor, group, "unique", None)
    if theirs is None:
        text, _ = driver.run(tensor, group, "unique", 8)
        if not isinstance(text, str) or "distinct values" not in text:
            raise ValueError("more than 256 distinct values, but: %s" % text)
        return "unique, too many values", None
    bits = int(np.log2(theirs.luts.shape[1]))
    ours, said = driver.run(tensor, group, "unique", bits)
    if isinstance(ours, str):
        raise ValueError(ours)
    check_said(tensor.reshape(ours.indices.shape), ours, said)
    same_bits(ours.luts, theirs.luts, "tables")
    same_bits(ours.indices, theirs.indices, "indices")
    if said[:, 1].any() or bits != min(width for width in BITS if said[:, 0].max() <= 1 << width):
        raise ValueError("not lossless, or %d bits for %d values" % (bits, said[:, 0].max()))
    return "unique, equal bits", None


def energies(row):
    """Mean squares over several magnitudes, and a channel without activation."""
    rng = np.random.default_rng(row)
    energy = np.exp(3 * rng.standard_normal(row)).astype(np.float32)
    energy[row // 3] = 0
    return energy


def check_weighted(tensor, group, bits, driver):
    rows, row = tensor.shape
    energy = energies(row)
    ours, _ = driver.run(tensor, group, "weighted", bits, energy)
    if isinstance(ours, str):
        raise ValueError(ours)
    floor = energy.astype(np.float64).sum() / row * 1e-6
    column = np.tile(np.maximum(energy.astype(np.float64), floor), group)
    worst = 0.0
    for at, values in enumerate(tensor.reshape(rows // group, -1)):
        distinct, places = np.unique(values, return_inverse=True)
        weights = np.bincount(places, column)
        solved = kmeans1d.cluster(distinct, min(len(distinct), 1 << bits), weights=weights)
        theirs, mine = np.array(solved.clusters), np.zeros(len(distinct), int)
        mine[places] = ours.indices[at]
        same_bits(mine[places], ours.indices[at].astype(int), "indices of equal values")
        if (mine == theirs).all():
            table = np.zeros(1 << bits)
            table[:len(solved.centroids)] = solved.centroids
            same_bits(ours.luts[at], table.astype(tensor.dtype), "tables")
            continue
        lost = exact_gain(distinct, weights, theirs) - exact_gain(distinct, weights, mine)
        worst = max(worst, float(lost) / float((weights * distinct.astype(np.float64) ** 2).sum()))
    if worst > 2 ** -49:
        raise ValueError("error above the optimum by %.2g of the energy" % worst)
    return "weighted, error above kmeans1d's as a part of the energy", worst


# ---------------------------------------------------------------- main

def all_checks():
    for name, tensor in named_tensors().items():
        for group in group_sizes(tensor):
            yield name, tensor, group, "unique", None
            for bits in BITS:
                yield name, tensor, group, "uniform", bits
                yield name, tensor, group, "kmeans", bits
                if name in ("demo Wi", "normal", "outliers") and group >= 32:
                    yield name, tensor, group, "weighted", bits


def run_check(check, driver):
    name, tensor, group, mode, bits = check
    label = "%s [%d, %d], groups of %d, %s" % (name, tensor.shape[0], tensor.shape[1], group, mode)
    label += "" if bits is None else " %d" % bits
    try:
        if mode == "unique":
            kind, figure = check_unique(tensor, group, driver)
        else:
            kind, figure = {"kmeans": check_kmeans, "uniform": check_uniform,
                            "weighted": check_weighted}[mode](tensor, group, bits, driver)
        return Outcome(kind, label, None, figure)
    except Exception as error:  # pylint: disable=broad-except
        return Outcome(mode, label, "%s: %s" % (type(error).__name__, error), None)


def run_part(arguments):
    program, part, parts, only = arguments
    checks = [check for check in all_checks() if only in (None, check[0])]
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(program, folder)
        return [run_check(check, driver) for at, check in enumerate(checks) if at % parts == part]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True, help="laya-palettize-tensor")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="tensor")
    arguments = parser.parse_args()
    driver = os.path.abspath(arguments.driver)
    parts = [(driver, part, arguments.jobs, arguments.only) for part in range(arguments.jobs)]
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        outcomes = [outcome for part in pool.map(run_part, parts) for outcome in part]
    failed = [outcome for outcome in outcomes if outcome.message]
    for kind in sorted({outcome.kind for outcome in outcomes if not outcome.message}):
        figures = [outcome.figure for outcome in outcomes if outcome.kind == kind and outcome.figure is not None]
        text = ": %.4g to %.4g, mean %.4g" % (min(figures), max(figures), np.mean(figures)) if figures else ""
        print("%4d %s%s" % (sum(outcome.kind == kind and not outcome.message for outcome in outcomes), kind, text))
    for outcome in failed:
        print("FAIL %s: %s" % (outcome.label, outcome.message))
    print("%d comparisons with coremltools, %d failed" % (len(outcomes), len(failed)))
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
