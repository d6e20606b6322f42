# SPDX-License-Identifier: Apache-2.0
"""Run a program that coremltools loaded, in NumPy, in one float type throughout.

Stored constants keep their values (fp16 weights are what they are), the arithmetic is done in the type asked for.
Only the operations and the forms of them that an exported graph may use are known; anything else is an error.
"""
import math

import numpy as np

ERF = np.vectorize(math.erf, otypes=[np.float64])


def require(condition, op, message):
    if not condition:
        raise ValueError("%s '%s': %s" % (op.op_type, op.name, message))


def constant(op, name):
    """The value of a parameter that is known at compile time, None when it is not given."""
    value = op.inputs.get(name)
    if value is None:
        return None
    require(value.val is not None, op, "'%s' is no constant" % name)
    return value.val


def integers(op, name):
    value = constant(op, name)
    return None if value is None else [int(item) for item in np.atleast_1d(value)]


def is_pointwise(op):
    """A 1x1 convolution of stride 1 without padding or groups."""
    rank = len(op.inputs["weight"].shape) - 2
    pads = integers(op, "pad")
    return (list(op.inputs["weight"].shape[2:]) == [1] * rank
            and integers(op, "strides") in (None, [1] * rank) and integers(op, "dilations") in (None, [1] * rank)
            and integers(op, "groups") in (None, [1]) and constant(op, "pad_type") in (None, "valid")
            and (pads is None or not any(pads)))


def conv(op, x, weight, bias):
    require(is_pointwise(op), op, "only 1x1 convolutions of stride 1 are known")
    batch, channels = x.shape[:2]
    out = weight.reshape(len(weight), channels) @ x.reshape(batch, channels, -1)
    if bias is not None:
        out = out + bias[:, None]
    return out.reshape((batch, len(weight)) + x.shape[2:])


def einsum(op, x, y):
    require(constant(op, "equation") == "nchw,nwhu->nchu", op, "unknown equation")
    return np.matmul(x.transpose(0, 2, 1, 3), y.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def layer_norm(x, axes, gamma, beta, epsilon):
    axes = tuple(axis % x.ndim for axis in axes)
    centred = x - x.mean(axis=axes, keepdims=True)
    out = centred / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + epsilon)
    shape = [size if axis in axes else 1 for axis, size in enumerate(x.shape)]
    if gamma is not None:
        out = out * gamma.reshape(shape)
    return out if beta is None else out + beta.reshape(shape)


def batch_norm(x, mean, variance, gamma, beta, epsilon):
    def channel(values):
        return values.reshape((1, -1) + (1,) * (x.ndim - 2))
    out = (x - channel(mean)) / np.sqrt(channel(variance) + epsilon)
    if gamma is not None:
        out = out * channel(gamma)
    return out if beta is None else out + channel(beta)


def split(op, x):
    axis, sizes = integers(op, "axis")[0], integers(op, "split_sizes")
    if sizes is None:
        return np.split(x, integers(op, "num_splits")[0], axis=axis)
    require(sum(sizes) == x.shape[axis], op, "sizes that do not add up")
    return np.split(x, np.cumsum(sizes)[:-1], axis=axis)


def slice_by_index(op, x):
    for name in ("begin_mask", "end_mask", "squeeze_mask"):
        require(not np.any(constant(op, name) or False), op, "'%s' is not known" % name)
    stride = integers(op, "stride") or [1] * x.ndim
    return x[tuple(slice(*bounds) for bounds in zip(integers(op, "begin"), integers(op, "end"), stride))]


def slice_by_size(op, x):
    return x[tuple(slice(begin, begin + size) for begin, size in zip(integers(op, "begin"), integers(op, "size")))]


class Evaluator:
    """Runs the function "main"; inputs and outputs are dictionaries of arrays."""

    def __init__(self, program, dtype=np.float64):
        self.function, self.dtype = program.functions["main"], dtype

    def run(self, inputs):
        if set(inputs) != set(self.function.inputs):
            raise ValueError("inputs %s, expected %s" % (sorted(inputs), sorted(self.function.inputs)))
        values, uses = {}, {}
        for name, variable in self.function.inputs.items():
            array = np.asarray(inputs[name], self.dtype)
            if array.shape != tuple(variable.shape):
                raise ValueError("input %s: %s, expected %s" % (name, array.shape, tuple(variable.shape)))
            values[variable.name] = array
        for op in self.function.operations:
            if op.op_type == "const":
                continue
            results = self.step(op, values)
            for variable, result in zip(op.outputs, results if isinstance(results, list) else [results]):
                require(result.shape == tuple(variable.shape), op, "a result of another shape than declared")
                values[variable.name] = result
                uses[variable.name] = len(variable.child_ops)
            for name in {name for argument in op.inputs.values() for name in self.names(argument)}:
                if name in uses:
                    uses[name] -= 1
                    if uses[name] == 0 and name not in {out.name for out in self.function.outputs}:
                        del values[name]
        return {variable.name: values[variable.name] for variable in self.function.outputs}

    @staticmethod
    def names(argument):
        return [item.name for item in (argument if isinstance(argument, (tuple, list)) else [argument])
                if item is not None]

    def tensor(self, argument, values):
        """An operand: a result, or a constant in the type of the arithmetic."""
        if argument is None:
            return None
        if argument.name in values:
            return values[argument.name]
        if argument.val is None:
            raise ValueError("'%s' has no value" % argument.name)
        return np.asarray(argument.val, self.dtype)

    def step(self, op, values):
        kind, at = op.op_type, op.inputs

        def get(name):
            return self.tensor(at.get(name), values)
        if kind == "conv":
            return conv(op, get("x"), get("weight"), get("bias"))
        if kind == "einsum":
            return einsum(op, *[self.tensor(item, values) for item in at["values"]])
        if kind == "softmax":
            return softmax(get("x"), integers(op, "axis")[0])
        if kind == "layer_norm":
            return layer_norm(get("x"), integers(op, "axes"), get("gamma"), get("beta"), get("epsilon"))
        if kind == "batch_norm":
            return batch_norm(get("x"), get("mean"), get("variance"), get("gamma"), get("beta"), get("epsilon"))
        if kind == "split":
            return split(op, get("x"))
        if kind == "concat":
            require(not constant(op, "interleave"), op, "interleaved")
            return np.concatenate([self.tensor(item, values) for item in at["values"]], axis=integers(op, "axis")[0])
        if kind == "add":
            return get("x") + get("y")
        if kind == "sub":
            return get("x") - get("y")
        if kind == "mul":
            return get("x") * get("y")
        if kind == "relu":
            return np.maximum(get("x"), 0)
        if kind == "gelu":
            require(constant(op, "mode") == "EXACT", op, "not the exact form")
            x = get("x")
            return (0.5 * x * (1 + ERF(x / math.sqrt(2)))).astype(self.dtype)
        if kind == "transpose":
            return get("x").transpose(integers(op, "perm"))
        if kind == "reshape":
            return get("x").reshape(integers(op, "shape"))
        if kind == "slice_by_index":
            return slice_by_index(op, get("x"))
        if kind == "slice_by_size":
            return slice_by_size(op, get("x"))
        raise ValueError("operation '%s' is not known here" % kind)
