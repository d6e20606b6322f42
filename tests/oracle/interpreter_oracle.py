# SPDX-License-Identifier: Apache-2.0
"""Compare the interpreter, operation by operation, with coremltools' own evaluation of the same small programs.

Each case builds a MIL program with coremltools' builder, writes it as a package without any pass, runs it with
laya-run-package and compares with the value that coremltools' value inference gives for the same operation on
constant inputs (operations without one: NumPy in float64, interpreter_reference.py). fp32 packages: within 1e-5.
fp16 packages: the expected value is that of float32 on the same fp16 inputs, rounded once; within two units in the
last place. Operations that move data and constexpr operations: equal.
"""
import argparse
import collections
import concurrent.futures
import gc
import itertools
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings

os.environ["TQDM_DISABLE"] = "1"  # coremltools' progress bars

import numpy as np  # noqa: E402

from coreml_package import ct  # noqa: E402
from coremltools.converters.mil import Builder as mb  # noqa: E402
from coremltools.converters.mil.mil import Function, Program, types  # noqa: E402

FLOATS = {"fp32": (np.float32, types.fp32), "fp16": (np.float16, types.fp16)}
MIL_CODES = {types.fp16: 10, types.fp32: 11, types.int32: 23}
TARGETS = {"iOS15": ct.target.iOS15, "iOS16": ct.target.iOS16, "iOS17": ct.target.iOS17, "iOS18": ct.target.iOS18}


class Case:
    """One program. make(T, *variables) builds it; T(value) is a constant in the floating type of the program."""

    def __init__(self, op, make, *inputs, exact=False, sums=False, targets=("iOS15", "iOS18"),
                 dtypes=("fp32", "fp16"), reference=None, compressed=None, refusal=None, strict=True, deep=False):
        self.op, self.make, self.inputs = op, make, [np.asarray(value) for value in inputs]
        self.exact = exact              # moves data, or makes integers
        self.sums = sums                # errors count against the typical size of a result, not the single one
        self.targets, self.dtypes = targets, dtypes
        self.reference = reference      # of the inputs in float64; None: coremltools' value inference
        self.compressed = compressed    # (T) -> a constexpr variable, given to make after the inputs
        self.refusal = refusal          # text of the error that the run must end with
        self.strict = strict            # sums in fp16 come near the exact ones
        self.deep = deep                # many operations: fp16 errors add up


Outcome = collections.namedtuple("Outcome", "op label message error32 error16 strict_differs")


# -------------------------------------------------------------------------------- programs

def rounded(value, dtype):
    """float32 values that `dtype` holds; other kinds as they are."""
    value = np.asarray(value)
    return value.astype(FLOATS[dtype][0]).astype(np.float32) if value.dtype.kind == "f" else value


def placeholder(value, dtype, target):
    kind = types.int32 if value.dtype.kind != "f" else types.fp32 if target == "iOS15" else FLOATS[dtype][1]
    return mb.placeholder(shape=value.shape or (1,), dtype=kind)


def as_operand(variable, value, dtype):
    """A function's input, as the operation takes it: bool, fp16 under CoreML5, scalars."""
    if value.shape == ():
        variable = mb.squeeze(x=variable, axes=[0])
    if value.dtype.kind == "f":
        wanted = dtype
    elif value.dtype.kind == "b":
        wanted = "bool"
    else:
        wanted = {2: "int16" if value.dtype.kind == "i" else "uint16",
                  1: "int8" if value.dtype.kind == "i" else "uint8"}.get(value.dtype.itemsize, "int32")
    return variable if types.builtin_to_string(variable.dtype) == wanted else mb.cast(x=variable, dtype=wanted)


def as_output(variable, target):
    """What a function may give back."""
    if variable.dtype in (types.fp32, types.int32) or (variable.dtype == types.fp16 and target != "iOS15"):
        return variable
    return mb.cast(x=variable, dtype="fp32" if variable.dtype == types.fp16 else "int32")


def variables_of(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def build(case, dtype, target):
    """The program, and the dense value of its constexpr operation where it has one."""
    program, dense = Program(), None
    placeholders = {"input_%d" % at: placeholder(value, dtype, target) for at, value in enumerate(case.inputs)}
    with Function(placeholders, opset_version=TARGETS[target]) as function:
        def constant(value):
            return np.asarray(value, np.float32).astype(FLOATS[dtype][0])
        operands = [as_operand(variable, value, dtype)
                    for variable, value in zip(function.inputs.values(), case.inputs)]
        if case.compressed:
            operands.append(case.compressed(constant))
            dense = np.asarray(operands[-1].op.materialized_val_inference())
        outputs = [as_output(variable, target) for variable in variables_of(case.make(constant, *operands))]
        function.set_outputs(outputs)
        program.add_function("main", function)
    return program, dense


def write(program, target, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ct.convert(program, source="milinternal", convert_to="mlprogram", skip_model_load=True,
                           minimum_deployment_target=TARGETS[target], pass_pipeline=ct.PassPipeline.EMPTY)
    model.save(path)


def expected_values(case, dtype, target, dense):
    """In float32 (or float64), on inputs that are rounded to the type of the program."""
    inputs = [rounded(value, dtype) for value in case.inputs]
    if case.reference:
        arguments = [value.astype(np.float64) if value.dtype.kind == "f" else value for value in inputs]
        arguments += [] if dense is None else [dense.astype(np.float64)]
        results = case.reference(lambda value: rounded(np.asarray(value, np.float32), dtype), *arguments)
        return [np.asarray(value) for value in (results if isinstance(results, list) else [results])]
    results = []
    with Function({}, opset_version=TARGETS[target]):
        def constant(value):
            return rounded(np.asarray(value, np.float32), dtype)
        operands = inputs + ([] if dense is None else [dense.astype(np.float32)
                             if dense.dtype.kind == "f" else dense])
        operands = [mb.const(val=value) for value in operands]
        for variable in variables_of(case.make(constant, *operands)):
            if variable.val is None:
                raise ValueError("coremltools has no value inference for it")
            results.append(np.asarray(variable.val))
    return results


# -------------------------------------------------------------------------------- driver

def pack_tensors(arrays):
    """The driver's file: floats as float32, all else as int32."""
    parts = [struct.pack("<I", len(arrays))]
    for name, code, array in arrays:
        parts.append(struct.pack("<I", len(name)) + name.encode() + struct.pack("<II", code, array.ndim))
        parts.append(struct.pack("<%dq" % array.ndim, *array.shape))
        parts.append(array.astype("<f4" if array.dtype.kind == "f" else "<i4").tobytes())
    return b"".join(parts)


def unpack_tensors(data):
    found, at = [], 4
    for _ in range(struct.unpack_from("<I", data)[0]):
        size, = struct.unpack_from("<I", data, at)
        code, rank = struct.unpack_from("<II", data, at + 4 + size)
        at += 12 + size
        shape = struct.unpack_from("<%dq" % rank, data, at)
        at += 8 * rank
        array = np.frombuffer(data, "<f4" if code in (10, 11) else "<i4", int(np.prod(shape)), at).reshape(shape)
        at += 4 * array.size
        found.append(array)
    return found


class Driver:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def operations(self):
        return subprocess.run([self.program, "--operations"], check=True,
                              capture_output=True, text=True).stdout.split()

    def run(self, package, inputs, numerics, threads=1):
        """(outputs, None), or (None, message)."""
        files = [os.path.join(self.folder, name) for name in ("inputs", "outputs")]
        with open(files[0], "wb") as file:
            file.write(pack_tensors(inputs))
        done = subprocess.run([self.program, package, "--numerics", numerics, "--inputs", files[0], "--outputs",
                               files[1], "--threads", str(threads)], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            return None, done.stderr.strip() or "exit status %d" % done.returncode
        with open(files[1], "rb") as file:
            return unpack_tensors(file.read()), None


# -------------------------------------------------------------------------------- comparison

def units_of_half(value):
    exponent = np.maximum(np.floor(np.log2(np.maximum(np.abs(value), 2.0 ** -24))), -14)
    return 2.0 ** (exponent - 10)


def typical(value):
    finite = value[np.isfinite(value)]
    return float(np.sqrt(np.mean(finite * finite))) if finite.size else 0.0


def compare(case, got, expected, half):
    """(message or None, largest error: in units of the tolerance's kind)."""
    if got.shape != expected.shape:
        return "shape %s, expected %s" % (got.shape, expected.shape), 0.0
    wanted = expected.astype(np.float64)
    if half and not case.exact:
        with np.errstate(over="ignore"):
            wanted = expected.astype(np.float32).astype(np.float16).astype(np.float64)
    found = got.astype(np.float64)
    if case.exact:
        same = np.array_equal(found, wanted, equal_nan=True) and np.array_equal(np.signbit(found), np.signbit(wanted))
        return None if same else "differs: %s, expected %s" % first_difference(found, wanted, found != wanted), 0.0
    special = ~np.isfinite(wanted)
    if not np.array_equal(found[special], wanted[special], equal_nan=True) or not np.isfinite(found[~special]).all():
        return "infinities or NaN in other places", 0.0
    size = typical(wanted) if case.sums else 0.0
    with np.errstate(invalid="ignore"):
        difference = np.where(special, 0, np.abs(found - wanted))
        base = np.where(special, 1, wanted)
    if half:
        unit = 2.0 ** -10 * size if case.deep else units_of_half(base) + 1e-6 * size
        errors, limit = difference / unit, 4.0 if case.deep else 2.0
    else:
        errors = difference / np.maximum(np.maximum(np.abs(base), size), 1e-6)
        limit = 1e-5
    largest = float(errors.max()) if errors.size else 0.0
    if largest <= limit:
        return None, largest
    return "%s, expected %s" % first_difference(found, wanted, errors > limit), largest


def first_difference(found, wanted, where):
    at = tuple(np.argwhere(where)[0]) if np.any(where) else (0,) * found.ndim
    return "%r at %s" % (found[at], list(map(int, at))), "%r" % wanted[at]


# -------------------------------------------------------------------------------- a case

def check_strict(case, driver, package, inputs, expected, plain):
    """Sums in fp16 stay near the exact ones. True where they are not those of fp32 sums."""
    got, message = driver.run(package, inputs, "fp16-strict")
    if message:
        raise ValueError("fp16-strict: " + message)
    for found, other, wanted in zip(got, plain, expected):
        wanted = wanted.astype(np.float64)
        if not np.all(np.abs(found - wanted) <= 0.05 * np.maximum(np.abs(wanted), typical(wanted))):
            raise ValueError("fp16-strict: far from the exact value: %s, expected %s" % first_difference(
                found, wanted, np.abs(found - wanted) > 0.05 * np.abs(wanted)))
        if not np.array_equal(found, other):
            return True
    return False


def run_case(case, dtype, target, driver):
    label = "%s %s" % (target, dtype)
    package = os.path.join(driver.folder, "case.mlpackage")
    errors, strict = {"fp32": 0.0, "fp16": 0.0}, False
    try:
        program, dense = build(case, dtype, target)
        names = list(program.functions["main"].inputs.items())
        inputs = [(name, MIL_CODES[variable.dtype], rounded(value, dtype).reshape(variable.shape))
                  for (name, variable), value in zip(names, case.inputs)]
        shutil.rmtree(package, ignore_errors=True)
        write(program, target, package)
        got, message = driver.run(package, inputs, dtype)
        if case.refusal:
            refused = message is not None and case.refusal in message
            return Outcome(case.op, label, None if refused else "expected a refusal with '%s', found %s" % (
                case.refusal, message), 0, 0, False)
        if message:
            return Outcome(case.op, label, message, 0, 0, False)
        expected = expected_values(case, dtype, target, dense)
        if len(got) != len(expected):
            return Outcome(case.op, label, "%d outputs, expected %d" % (len(got), len(expected)), 0, 0, False)
        for found, wanted in zip(got, expected):
            message, error = compare(case, found, wanted, dtype == "fp16")
            errors[dtype] = max(errors[dtype], error)
            if message:
                return Outcome(case.op, label, message, errors["fp32"], errors["fp16"], False)
        if dtype == "fp16" and case.sums and case.strict:
            strict = check_strict(case, driver, package, inputs, expected, got)
        if dtype == "fp16" and not case.exact:
            got, message = driver.run(package, inputs, "fp32")
            for found, wanted in zip(got or [], expected):
                if message is None:
                    message, error = compare(case, found, wanted, False)
                    errors["fp32"] = max(errors["fp32"], error)
            if message:
                return Outcome(case.op, label + " without rounding", message, errors["fp32"], errors["fp16"], strict)
    except Exception as error:  # pylint: disable=broad-except
        return Outcome(case.op, label, "%s: %s" % (type(error).__name__, error), 0, 0, False)
    return Outcome(case.op, label, None, errors["fp32"], errors["fp16"], strict)


def run_part(arguments):
    """A part of the cases, in a process of its own."""
    program, part, parts, only = arguments
    from interpreter_cases import all_cases
    gc.freeze()  # coremltools collects garbage after every package
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(program, folder)
        number = 0
        for case in all_cases():
            for dtype, target in itertools.product(case.dtypes, case.targets):
                number += 1
                if number % parts == part and (not only or case.op in only):
                    outcomes.append(run_case(case, dtype, target, driver))
    return outcomes


# -------------------------------------------------------------------------------- main

def report(outcomes, operations):
    by_op = collections.OrderedDict((op, []) for op in operations)
    for outcome in outcomes:
        by_op.setdefault(outcome.op, []).append(outcome)
    print("%-34s %6s %12s %12s" % ("operation", "cases", "fp32 error", "fp16 ulp"))
    failed = 0
    for op, found in by_op.items():
        bad = [outcome for outcome in found if outcome.message]
        failed += bool(bad) or not found
        print("%-34s %6d %12.1e %12.2f  %s" % (
            op, len(found), max([outcome.error32 for outcome in found], default=0),
            max([outcome.error16 for outcome in found], default=0),
            "FAIL" if bad else "PASS" if found else "FAIL (no case)"))
        for outcome in bad[:5]:
            print("    %s: %s" % (outcome.label, outcome.message))
        if len(bad) > 5:
            print("    and %d more" % (len(bad) - 5))
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True, help="laya-run-package")
    parser.add_argument("--only", nargs="*", help="operations to check; all when not given")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    driver = os.path.abspath(arguments.driver)
    operations = [op for op in Driver(driver, None).operations() if not arguments.only or op in arguments.only]
    parts = [(driver, part, arguments.jobs, arguments.only) for part in range(arguments.jobs)]
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        outcomes = [outcome for part in pool.map(run_part, parts) for outcome in part]
    failed = report(outcomes, operations)
    strict = sum(outcome.strict_differs for outcome in outcomes)
    print("%d cases, %d of %d operations failed; fp16-strict differs from fp16 in %d cases" %
          (len(outcomes), failed, len({outcome.op for outcome in outcomes} | set(operations)), strict))
    if not arguments.only and strict == 0:
        print("fp16-strict never differs: its sums are not those of fp16")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
