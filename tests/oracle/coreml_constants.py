# SPDX-License-Identifier: Apache-2.0
"""Compare every constant of an exported program, bit by bit, with the checkpoint tensor that it must hold.

The operations that carry weights form one chain (each needs the result of the one before), so their order in a
program is the order of the network. Walking it in step with coreml_checkpoint.expected_constants tells which constant
stands for which tensor, without looking at names.
"""
import collections

import numpy as np

from coreml_checkpoint import HEAD, Dense, Norm, Rope, interleaved_rows, rope_angles
from coreml_evaluator import integers, is_pointwise

OPERANDS = {"conv": ("weight", "bias"), "layer_norm": ("gamma", "beta"),
            "batch_norm": ("mean", "variance", "gamma", "beta"), "mul": ("x", "y")}


class Mismatch(ValueError):
    pass


def require(condition, op, message, *values):
    if not condition:
        raise Mismatch("%s '%s': %s" % (op.op_type, op.name, message % values))


def float_constants(op):
    """Parameter name to array, of all floating point constants that are no settings (epsilon)."""
    found = {}
    for name, argument in op.inputs.items():
        for variable in argument if isinstance(argument, (tuple, list)) else [argument]:
            if variable is not None and name != "epsilon" and variable.val is not None:
                value = np.asarray(variable.val)
                if value.dtype.kind == "f":
                    found[name] = value
    return found


class Walk:
    def __init__(self, program, model, graph, dtype, length):
        self.model, self.graph, self.dtype, self.length = model, graph, dtype, length
        self.used = set()
        self.carriers = collections.deque()
        for op in program.functions["main"].operations:
            constants = {} if op.op_type == "const" else float_constants(op)
            if constants:
                require(set(constants) <= set(OPERANDS.get(op.op_type, ())), op, "unexpected constants: %s",
                        sorted(constants))
                self.carriers.append((op, constants))

    def next(self, kind):
        if not self.carriers:
            raise Mismatch("no %s where one must follow" % kind)
        op, constants = self.carriers.popleft()
        require(op.op_type == kind, op, "found where a %s must follow", kind)
        return op, constants

    def same(self, op, got, expected, what):
        """Equal to the last bit; `expected` is in float32 or float64 and is rounded to the program's type."""
        expected = np.ascontiguousarray(expected.astype(self.dtype))
        require(got.dtype == self.dtype, op, "%s is %s", what, got.dtype)
        require(got.shape == expected.shape, op, "%s is %s, expected %s", what, got.shape, expected.shape)
        bits = np.uint16 if self.dtype == np.float16 else np.uint32
        different = np.count_nonzero(np.ascontiguousarray(got).view(bits) != expected.view(bits))
        require(different == 0, op, "%s: %d of %d values differ", what, different, got.size)

    def tensor(self, name):
        self.used.add(name)
        return self.model.tensor(name).astype(np.float32)

    def run(self, events):
        for event in events:
            {Norm: self.norm, Dense: self.dense, Rope: self.rope}[type(event)](event)
        if self.carriers:
            raise Mismatch("%d operations with constants too many, first '%s'"
                           % (len(self.carriers), self.carriers[0][0].name))

    def epsilon(self, op, expected):
        got = op.inputs["epsilon"].val
        require(self.dtype(got) == self.dtype(expected), op, "epsilon %s, expected %s", got, expected)

    def norm(self, event):
        fused = self.graph == "lean"
        op, constants = self.next("layer_norm") if fused else self.bare_norm()
        self.epsilon(op, event.epsilon)
        require(integers(op, "axes") == [1], op, "axes %s", integers(op, "axes"))
        weight = self.tensor(event.weight)
        bias = self.tensor(event.bias) if event.bias else np.zeros_like(weight)
        if fused:
            self.same(op, constants["gamma"], weight, event.weight)
            self.same(op, constants["beta"], bias, "beta (%s)" % (event.bias or "zeros"))
        elif event.bias is None:
            op, constants = self.next("mul")
            (value,) = constants.values()
            self.same(op, value, weight.reshape(1, -1, 1, 1), event.weight)
        else:
            op, constants = self.next("batch_norm")
            self.same(op, constants["gamma"], weight, event.weight)
            self.same(op, constants["beta"], bias, event.bias)
            self.same(op, constants["mean"], np.zeros_like(weight), "mean")
            self.same(op, constants["variance"], np.ones_like(weight), "variance")
            epsilon = float(op.inputs["epsilon"].val)
            require(self.dtype(1) + self.dtype(epsilon) == 1, op, "epsilon %g changes the values", epsilon)

    def bare_norm(self):
        """A layer_norm without constants comes right before the operation that multiplies by the weight."""
        if not self.carriers:
            raise Mismatch("no norm where one must follow")
        after, constants = self.carriers[0]
        before = [after.inputs[name].op for name in ("x", "y") if after.inputs.get(name) is not None
                  and after.inputs[name].val is None]
        require(len(before) == 1 and before[0] is not None and before[0].op_type == "layer_norm", after,
                "does not follow a layer_norm")
        require(before[0].inputs.get("gamma") is None and before[0].inputs.get("beta") is None, before[0],
                "has gamma or beta")
        return before[0], constants

    def dense(self, event):
        op, constants = self.next("conv")
        require(is_pointwise(op), op, "is no 1x1 convolution")
        weight = self.tensor(event.weight)
        bias = self.tensor(event.bias) if event.bias else None
        if self.graph == "lean" and event.form == "qkv":
            scales = self.scales(op, constants["weight"], weight)
            weight = self.lean_rows(weight, scales)
            bias = None if bias is None else self.lean_rows(bias, scales)
        if self.graph == "lean" and event.form == "out":
            weight = weight[:, interleaved_rows(1, self.model.heads)]
        self.same(op, constants["weight"], weight[:, :, None, None], event.weight)
        require(("bias" in constants) == (bias is not None), op, "with or without bias, against the checkpoint")
        if bias is not None:
            self.same(op, constants["bias"], bias, event.bias)

    def scales(self, op, got, weight):
        """Factors of the Q, K and V rows, read off the largest values: powers of two that make 1 / sqrt(64)."""
        d, heads = self.model.hidden, self.model.heads
        got = np.abs(got[:, :, 0, 0].astype(np.float32))
        slots = np.arange(2 * d) % (2 * heads)
        parts = [got[:2 * d][slots < heads], got[:2 * d][slots >= heads], got[2 * d:]]
        factors = [float(part.max() / np.abs(rows).max()) for part, rows in zip(parts, np.split(weight, 3))]
        require(all(np.frexp(factor)[0] == 0.5 for factor in factors), op, "factors %s are no powers of two", factors)
        require(factors[0] * factors[1] * HEAD ** 0.5 == 1 and factors[2] == 1, op, "factors %s", factors)
        return np.repeat(np.float32(factors), d)

    def lean_rows(self, values, scales):
        """Rows so that the reshapes to [1, 64, 2 heads, L] and [1, 64, heads, L] put channels on axis 1."""
        d, heads = self.model.hidden, self.model.heads
        scaled = values * scales.reshape((-1,) + (1,) * (values.ndim - 1))
        return np.concatenate([scaled[:2 * d][interleaved_rows(2, heads)], scaled[2 * d:][interleaved_rows(1, heads)]])

    # -------- rotary tables and the scale

    def rope(self, event):
        tables = {} if event.theta is None else self.tables(event.theta)
        seen = collections.Counter()
        while self.carriers and not self.is_projection(self.carriers[0]):
            op, constants = self.carriers.popleft()
            (value,) = constants.values()
            if op.op_type == "conv":
                self.same(op, value, self.rotation(), "rotation")
                seen["rotation"] += 1
            elif value.ndim == 0:
                require(float(value) == HEAD ** -0.5, op, "factor %s", value)
                seen["scale"] += 1
            else:
                seen[self.which_table(op, value, tables)] += 1
        heads, lean = self.model.heads, self.graph == "lean"
        expected = collections.Counter()
        if not lean:
            expected["scale"] = heads
        if event.theta is not None and lean:
            expected.update(cosine=1, sine=1, rotation=1)
        elif event.theta is not None:
            expected.update(cosine=4 * heads, sine=4 * heads)
        if seen != expected:
            where = self.carriers[0][0].name if self.carriers else "the end"
            raise Mismatch("RoPE before '%s': %s, expected %s" % (where, dict(seen), dict(expected)))

    def is_projection(self, carrier):
        op, constants = carrier
        return op.op_type == "conv" and constants["weight"].shape[:2] != (HEAD, HEAD)

    def tables(self, theta):
        angles = rope_angles(theta, self.length)
        if self.graph == "lean":
            angles = np.concatenate([angles, angles])
        return {"cosine": np.cos(angles)[None, :, None, :], "sine": np.sin(angles)[None, :, None, :]}

    def which_table(self, op, value, tables):
        """Tables are float64 values rounded once (or twice): within half a unit in the last place."""
        require(value.dtype == self.dtype, op, "table is %s", value.dtype)
        for name, exact in tables.items():
            if value.shape == exact.shape:
                bound = 0.51 * np.spacing(np.abs(value)).astype(np.float64) + 1e-12
                if (np.abs(value.astype(np.float64) - exact) <= bound).all():
                    return name
        require(False, op, "a table %s that is neither cosine nor sine of this layer's angles", value.shape)

    def rotation(self):
        """out[c] = -x[c + 32], out[c + 32] = x[c]"""
        half = np.eye(HEAD // 2, dtype=np.float32)
        none = np.zeros_like(half)
        return np.block([[none, -half], [half, none]])[:, :, None, None] + np.float32(0)


def check_constants(program, model, events, graph, dtype, length):
    """Names of the checkpoint tensors that were found; Mismatch says what is wrong."""
    walk = Walk(program, model, graph, dtype, length)
    walk.run(events)
    for op in program.functions["main"].operations:
        if op.op_type == "const" and not any(variable.child_ops for variable in op.outputs):
            require(False, op, "is not used")
    return walk.used
