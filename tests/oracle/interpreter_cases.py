# SPDX-License-Identifier: Apache-2.0
"""The programs of interpreter_oracle.py, by operation."""
import functools
import itertools

import numpy as np

import interpreter_reference as reference
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types
from interpreter_oracle import Case

RANDOM = np.random.default_rng(11)
FROM16, FROM17, FROM18 = ("iOS16", "iOS18"), ("iOS17", "iOS18"), ("iOS18",)
OLD = ("iOS15", "iOS16")


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def uniform(low, high, *shape):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def integers(low, high, *shape):
    return RANDOM.integers(low, high, shape).astype(np.int32)


def bools(*shape):
    return RANDOM.integers(0, 2, shape).astype(bool)


def call(op, *names, **constants):
    """make for mb.op with the inputs under these names; floats of `constants` in the program's type."""
    def make(T, *variables):
        named = dict(zip(names, variables))
        for name, value in constants.items():
            is_float = isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
            named[name] = T(value) if is_float else value
        return getattr(mb, op)(**named)
    return make


ONE_TYPE = {"dtypes": ("fp32",)}  # the inputs have no floats: one run is enough
MOVES = {"exact": True}


# -------------------------------------------------------------------------------- elementwise

PAIRS = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (1, 3, 1)), ((3, 1), (2, 1, 1, 5)), ((1,), (1,)),
         ((1, 64, 1, 33), (1, 64, 1, 1)), ((1, 64, 1, 33), (1, 1, 1, 33)), ((7,), ())]


def binary_cases():
    domains = {"pow": (0.3, 3, -2, 2), "real_div": (-3, 3, 0.5, 3), "floor_div": (-9, 9, 0.5, 3),
               "mod": (-9, 9, 0.5, 3)}
    for op in ("add", "sub", "mul", "real_div", "maximum", "minimum", "pow", "floor_div", "mod"):
        low, high, low_y, high_y = domains.get(op, (-3, 3, -3, 3))
        for a, b in PAIRS:
            yield Case(op, call(op, "x", "y"), uniform(low, high, *a), uniform(low_y, high_y, *b), targets=("iOS16",))
        yield Case(op, call(op, "x", y=2.5), uniform(low, high, 5, 3))
        yield Case(op, call(op, "y", x=2.5), uniform(low_y, high_y, 5, 3))
        yield Case(op, call(op, "y", x=uniform(low, high, 2, 3, 1)), uniform(low_y, high_y, 3, 5))
        for a, b in PAIRS[:3]:
            yield Case(op, call(op, "x", "y"), integers(0 if op == "pow" else -20, 4 if op == "pow" else 20, *a),
                       integers(1, 5, *b), exact=True, **ONE_TYPE)
    # whole numbers, negative divisors
    for op in ("floor_div", "mod"):
        yield Case(op, call(op, "x", "y"), np.float32([7, -7, 7, -7, 6, -6, 0]), np.float32([2, 2, -2, -2, 3, -3, 5]))
        yield Case(op, call(op, "x", "y"), np.int32([7, -7, 7, -7, 6, -6, 0]), np.int32([2, 2, -2, -2, 3, -3, 5]),
                   exact=True, **ONE_TYPE)
    yield Case("real_div", call("real_div", "x", "y"), np.int32([7, -7, 7, -7, 6]), np.int32([2, 2, -2, -2, 3]),
               reference=lambda T, x, y: np.trunc(x / y).astype(np.int32), exact=True, **ONE_TYPE)


def comparison_cases():
    for op in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
        for a, b in PAIRS[:5]:
            yield Case(op, call(op, "x", "y"), integers(-2, 3, *a).astype(np.float32),
                       integers(-2, 3, *b).astype(np.float32), exact=True)
            yield Case(op, call(op, "x", "y"), integers(-2, 3, *a), integers(-2, 3, *b), exact=True, **ONE_TYPE)
    for op in ("logical_and", "logical_or", "logical_xor"):
        for a, b in PAIRS[:5]:
            yield Case(op, call(op, "x", "y"), bools(*a), bools(*b), exact=True, **ONE_TYPE)
    yield Case("logical_not", call("logical_not", "x"), bools(3, 5), exact=True, **ONE_TYPE)


def unary_cases():
    halves = np.float32([-2.5, -1.5, -0.5, -0.2, 0, 0.2, 0.5, 1.5, 2.5, 3.5])
    wide = np.concatenate([uniform(-4, 4, 60), np.float32([0, 6, 6.5, -8, 9])])
    domains = {"sqrt": uniform(0, 50, 65), "exp": uniform(-9, 9, 65), "exp2": uniform(-9, 9, 65),
               "tan": uniform(-1.4, 1.4, 65), "ceil": halves, "floor": halves, "round": halves}
    for op in ("relu", "relu6", "softplus", "softsign", "sigmoid", "tanh", "erf", "exp", "exp2", "sqrt", "square",
               "abs", "sign", "sin", "cos", "tan", "ceil", "floor", "round"):
        values = domains.get(op, wide)
        exact = with_constants(reference.softplus) if op == "softplus" else None  # coremltools' loses small values
        yield Case(op, call(op, "x"), values, reference=exact)
        yield Case(op, call(op, "x"), values.reshape(1, 5, 1, -1), reference=exact)
        yield Case(op, call(op, "x"), values[0], reference=exact)
    for op in ("square", "abs", "sign"):
        yield Case(op, call(op, "x"), integers(-9, 9, 3, 4), exact=True, **ONE_TYPE)
    yield Case("silu", call("silu", "x"), wide, reference=lambda T, x: reference.silu(x))
    for mode in ("EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"):
        for x in (wide, uniform(-9, 9, 2, 5, 7)):
            yield Case("gelu", call("gelu", "x", mode=mode), x, sums=True,  # its error is absolute where it is near 0
                       reference=with_constants(functools.partial(reference.gelu, mode=mode)))
    for epsilon in (1e-3, 0.5):
        yield Case("rsqrt", call("rsqrt", "x", epsilon=epsilon), uniform(0, 9, 30))
        yield Case("log", call("log", "x", epsilon=epsilon), uniform(0, 9, 30))
        yield Case("inverse", call("inverse", "x", epsilon=epsilon), uniform(0.5, 9, 30))
    yield Case("rsqrt", call("rsqrt", "x"), uniform(0.5, 9, 30))
    yield Case("log", call("log", "x"), uniform(0.5, 9, 30))
    yield Case("inverse", call("inverse", "x"), uniform(0.5, 9, 30))
    yield Case("clip", call("clip", "x", alpha=-1.5, beta=2.25), wide)
    yield Case("leaky_relu", call("leaky_relu", "x", alpha=0.1), wide)
    yield Case("identity", call("identity", "x"), wide.reshape(5, -1), **MOVES)
    yield Case("identity", call("identity", "x"), integers(-5, 5, 3, 4), **MOVES, **ONE_TYPE)


def cast_cases():
    floats = np.float32([-2.75, -1, -0.5, 0, 0.25, 1.5, 100.75])
    for dtype in ("int32", "bool"):
        yield Case("cast", call("cast", "x", dtype=dtype), floats, exact=True)
    for dtype in ("fp32", "fp16", "bool", "int32"):
        yield Case("cast", call("cast", "x", dtype=dtype), integers(-3, 4, 3, 5), exact=True, targets=FROM16,
                   **ONE_TYPE)
        yield Case("cast", call("cast", "x", dtype=dtype), bools(3, 5), exact=True, targets=FROM16, **ONE_TYPE)
    yield Case("cast", lambda T, x: mb.cast(x=mb.cast(x=x, dtype="fp16"), dtype="fp32"), normal(200),
               reference=lambda T, x: x.astype(np.float32).astype(np.float16), exact=True, dtypes=("fp16",))
    for dtype in ("int8", "uint8", "int16", "uint16"):
        values = np.abs(floats) if dtype[0] == "u" else floats
        yield Case("cast", call("cast", "x", dtype=dtype), values, exact=True, targets=FROM17)
        yield Case("cast", call("cast", "x", dtype=dtype), integers(0, 100, 9), exact=True, targets=FROM17,
                   **ONE_TYPE)


def select_cases():
    yield Case("select", call("select", "cond", "a", "b"), bools(2, 3, 4), normal(2, 3, 4), normal(2, 3, 4), **MOVES)
    yield Case("select", call("select", "cond", "a", "b"), bools(3, 1), normal(2, 3, 4), normal(4), **MOVES)
    yield Case("select", call("select", "cond", "a", b=-10000.0), bools(1, 1, 5, 5), normal(1, 2, 5, 5), **MOVES)
    yield Case("select", call("select", "cond", "a", "b"), bools(4), integers(-5, 5, 3, 4), integers(-5, 5, 1, 4),
               **MOVES, **ONE_TYPE)
    yield Case("select", call("select", "cond", "a", "b"), bools(3, 4), bools(3, 4), bools(3, 4), **MOVES, **ONE_TYPE)


# -------------------------------------------------------------------------------- reductions, norms

def reduction_cases():
    axes = [None, [0], [-1], [1, 2], [0, -2], [2, 0, 1]]
    for op in ("reduce_mean", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1_norm",
               "reduce_l2_norm", "reduce_sum_square", "reduce_log_sum", "reduce_log_sum_exp"):
        x = uniform(0.8, 1.25, 3, 4, 5) if op in ("reduce_prod", "reduce_log_sum") else normal(3, 4, 5)
        for chosen, keep in itertools.product(axes, (False, True)):
            parameters = {"keep_dims": keep} if chosen is None else {"axes": chosen, "keep_dims": keep}
            yield Case(op, call(op, "x", **parameters), x, sums=True, targets=("iOS16",))
        yield Case(op, call(op, "x", axes=[1], keep_dims=True), np.abs(normal(1, 96, 1, 17)) + 0.1, sums=True,
                   strict=op != "reduce_prod")
        if op in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum_square", "reduce_l1_norm"):
            yield Case(op, call(op, "x", axes=[1], keep_dims=False), integers(-4, 5, 3, 4, 2), exact=True, **ONE_TYPE)
    yield Case("reduce_log_sum_exp", call("reduce_log_sum_exp", "x", axes=[-1], keep_dims=False),
               uniform(500, 600, 3, 8), reference=lambda T, x: reference.log_sum_exp(x, (-1,), False), sums=True)
    yield Case("reduce_sum", call("reduce_sum", "x", axes=[1]), uniform(0, 3, 2, 3000), sums=True, strict=False)


def norm_cases():
    for shape, axes in (((2, 3, 8), [-1]), ((2, 3, 8), [1, 2]), ((1, 48, 1, 17), [1]), ((2, 4, 3, 5), [2, 3]),
                        ((6, 8), [1]), ((2, 3, 4), [0, 1, 2])):
        size = [shape[axis] for axis in axes]
        x = normal(*shape) * 3 + 1
        affine = {"gamma": normal(*size), "beta": normal(*size)}
        yield Case("layer_norm", call("layer_norm", "x", axes=axes, epsilon=1e-5, **affine), x, sums=True)
        yield Case("layer_norm", call("layer_norm", "x", axes=axes, epsilon=1e-3), x, sums=True)
    yield Case("layer_norm", lambda T, x: mb.layer_norm(x=x, axes=[-1], gamma=np.float32([1, 2, 3, 4]),
                                                        beta=np.float32([0, 1, 0, 2]), epsilon=np.float32(1e-5)),
               normal(3, 4), sums=True, targets=FROM17)
    for shape in ((2, 5, 7), (2, 5, 3, 4), (1, 5, 2, 3, 4)):
        moments = {"mean": normal(5), "variance": uniform(0.2, 3, 5)}
        affine = {"gamma": normal(5), "beta": normal(5)}
        for parameters in (moments, {**moments, **affine}):
            yield Case("batch_norm", call("batch_norm", "x", epsilon=1e-3, **parameters), normal(*shape), sums=True,
                       reference=with_constants(reference.batch_norm, epsilon=1e-3, **parameters))
        if len(shape) < 5:
            for parameters in ({}, affine):
                yield Case("instance_norm", call("instance_norm", "x", epsilon=1e-3, **parameters), normal(*shape),
                           sums=True, reference=with_constants(reference.instance_norm, epsilon=1e-3, **parameters))
    for shape in ((2, 3, 4), (2, 3, 4, 5)):
        yield Case("l2_norm", call("l2_norm", "x", epsilon=1e-3), normal(*shape), sums=True)
    for shape, axis in (((2, 3, 9), -1), ((1, 40, 1, 13), 1), ((4, 5), 0), ((2, 3, 4, 5), -2), ((9,), 0),
                        ((3, 1), 1)):
        yield Case("softmax", call("softmax", "x", axis=axis), normal(*shape) * 4)
    masked = normal(1, 12, 1, 7)
    masked[:, 5:] -= 10000
    yield Case("softmax", call("softmax", "x", axis=1), masked)
    yield Case("softmax", call("softmax", "x", axis=-1), uniform(900, 1000, 3, 8))


def with_constants(function, **constants):
    """reference of an operation whose other parameters are constants of the program's type."""
    def evaluate(T, *values):
        held = {}
        for name, value in constants.items():
            is_float = isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
            held[name] = T(value).astype(np.float64) if is_float else value
        return function(*values, **held)
    return evaluate


# -------------------------------------------------------------------------------- products

def conv_cases():
    def case(shape, weight, bias=True, targets=("iOS15", "iOS18"), **parameters):
        constants = {"weight": normal(*weight), **({"bias": normal(weight[0])} if bias else {}), **parameters}
        return Case("conv", call("conv", "x", **constants), normal(*shape), sums=True, targets=targets,
                    reference=with_constants(reference.conv, **constants))
    yield case((1, 24, 1, 17), (40, 24, 1, 1))
    yield case((1, 24, 1, 17), (40, 24, 1, 1), bias=False)
    yield case((2, 96, 1, 33), (70, 96, 1, 1))
    yield case((1, 300, 1, 20), (9, 300, 1, 1))
    yield case((2, 6, 9), (4, 6, 3))
    yield case((2, 6, 9), (4, 6, 3), strides=[2], pad_type="same")
    yield case((1, 4, 7, 8), (6, 4, 3, 3))
    yield case((1, 4, 7, 8), (6, 4, 3, 2), strides=[2, 1], dilations=[1, 2])
    yield case((1, 4, 7, 8), (6, 4, 3, 2), strides=[2, 3], pad_type="same")
    yield case((1, 4, 7, 8), (6, 4, 4, 2), strides=[2, 3], pad_type="same_lower", targets=FROM16)
    yield case((1, 4, 7, 8), (6, 4, 3, 3), pad_type="custom", pad=[1, 2, 0, 3])
    yield case((1, 6, 5, 5), (9, 2, 3, 3), groups=3)
    yield case((1, 6, 5, 5), (6, 1, 3, 3), groups=6, pad_type="same")
    yield case((1, 6, 4, 5), (8, 3, 1, 1), groups=2, strides=[2, 2])
    yield case((1, 3, 4, 5, 4), (2, 3, 2, 3, 2), pad_type="custom", pad=[1, 0, 0, 1, 1, 1])
    weight, bias = normal(4, 3, 1, 1), normal(4)
    yield Case("conv", call("conv", "x", "weight"), normal(1, 3, 1, 5), weight, sums=True, targets=FROM18,
               reference=lambda T, x, w: reference.conv(x, w))
    yield Case("conv", lambda T, x: mb.conv(x=x, weight=weight, bias=bias), normal(1, 3, 1, 5), sums=True,
               targets=FROM17, reference=lambda T, x: reference.conv(x, weight.astype(float), bias.astype(float)))


def product_cases():
    for shape in ((7,), (5, 7), (2, 5, 7), (3, 260)):
        weight = normal(6, shape[-1])
        yield Case("linear", call("linear", "x", weight=weight, bias=normal(6)), normal(*shape), sums=True)
        yield Case("linear", call("linear", "x", weight=weight), normal(*shape), sums=True)
    held = normal(6, 7)
    yield Case("linear", lambda T, x: mb.linear(x=x, weight=held), normal(5, 7), sums=True, targets=FROM17,
               reference=lambda T, x: x @ held.astype(float).T)
    yield Case("linear", call("linear", "x", weight=integers(-3, 4, 2, 5), bias=integers(-3, 4, 2)),
               integers(-3, 4, 3, 5), exact=True, **ONE_TYPE)
    shapes = [((4, 5), (5, 6)), ((2, 4, 5), (2, 5, 6)), ((2, 4, 5), (5, 6)), ((2, 1, 4, 5), (3, 5, 6)),
              ((4, 5), (2, 3, 5, 6)), ((1, 300), (300, 1)), ((1, 2, 17, 64), (1, 2, 64, 33))]
    for a, b in shapes:
        for first, second in itertools.product((False, True), repeat=2):
            x, y = normal(*a), normal(*b)
            x = np.swapaxes(x, -1, -2).copy() if first else x
            y = np.swapaxes(y, -1, -2).copy() if second else y
            yield Case("matmul", call("matmul", "x", "y", transpose_x=first, transpose_y=second), x, y, sums=True,
                       targets=("iOS16",))
    yield Case("matmul", call("matmul", "x", y=normal(5, 6)), normal(3, 4, 5), sums=True)
    yield Case("matmul", call("matmul", "y", x=normal(4, 5)), normal(3, 5, 6), sums=True)
    yield Case("matmul", call("matmul", "x", "y"), integers(-3, 4, 2, 3, 4), integers(-3, 4, 4, 2), exact=True,
               **ONE_TYPE)
    other = normal(5, 6)
    yield Case("matmul", lambda T, x: mb.matmul(x=x, y=other), normal(4, 5), sums=True, targets=FROM17,
               reference=lambda T, x: x @ other.astype(float))
    for equation, a, b in (("nchw,nwhu->nchu", (2, 3, 4, 5), (2, 5, 4, 6)),
                           ("nchw,nwhu->nchu", (1, 40, 1, 33), (1, 33, 1, 17)),
                           ("nchw,nwhu->nchu", (1, 3, 1, 5), (2, 5, 4, 6)),
                           ("abcd,adce->abce", (2, 3, 4, 5), (2, 5, 4, 6)),
                           ("chw,whr->chr", (3, 4, 5), (5, 4, 6)), ("chw,whr->chr", (3, 1, 5), (5, 4, 6))):
        yield Case("einsum", lambda T, x, y, e=equation: mb.einsum(values=(x, y), equation=e), normal(*a), normal(*b),
                   sums=True)
    for shape in ((2, 5, 8), (2, 3, 5, 8), (1, 2, 3, 5, 8)):
        keys = shape[:-2] + (7, 8)
        values = shape[:-2] + (7, 6)
        tensors = normal(*shape), normal(*keys), normal(*values)
        make = call("scaled_dot_product_attention", "query", "key", "value", "attn_mask")
        yield Case("scaled_dot_product_attention", make, *tensors, sums=True, targets=FROM18)
        yield Case("scaled_dot_product_attention", make, *tensors, normal(*shape[:-1], 7), sums=True, targets=FROM18)
        yield Case("scaled_dot_product_attention", make, *tensors, normal(5, 7), sums=True, targets=FROM18)
        mask = bools(*([1] * (len(shape) - 2)), 5, 7)
        mask[..., 2] = True
        yield Case("scaled_dot_product_attention", make, *tensors, mask, sums=True, targets=FROM18)


# -------------------------------------------------------------------------------- shapes

def order_cases():
    for perm in itertools.permutations(range(4)):
        yield Case("transpose", call("transpose", "x", perm=list(perm)), normal(2, 3, 4, 5), dtypes=("fp32",),
                   targets=("iOS16",), **MOVES)
    for shape, perm in (((70, 100), [1, 0]), ((1, 100, 1, 37), [0, 3, 2, 1]), ((2, 3, 4), [-1, -3, -2]), ((5,), [0]),
                        ((2, 3, 1, 4, 2), [4, 2, 0, 3, 1]), ((3, 33, 65), [0, 2, 1]), ((33, 2, 65), [2, 1, 0])):
        yield Case("transpose", call("transpose", "x", perm=perm), normal(*shape), **MOVES)
    yield Case("transpose", call("transpose", "x", perm=[1, 0]), integers(-9, 9, 3, 4), **MOVES, **ONE_TYPE)
    yield Case("transpose", call("transpose", "x", perm=[1, 0]), bools(3, 4), **MOVES, **ONE_TYPE)
    for shape, new in (((2, 3, 4), [4, 6]), ((2, 3, 4), [-1]), ((2, 3, 4), [3, -1, 2]), ((2, 3, 4), [0, -1, 2]),
                       ((6,), [1, 2, 1, 3])):
        yield Case("reshape", call("reshape", "x", shape=new), normal(*shape), **MOVES)
    yield Case("reshape", lambda T, x: mb.add(x=mb.reshape(x=x, shape=[6]), y=mb.reshape(x=mb.relu(x=x), shape=[6])),
               normal(2, 3))
    for axes in ([0], [-1], [0, 3], [1, -1]):
        yield Case("expand_dims", call("expand_dims", "x", axes=axes), normal(3, 4), **MOVES)
    for axes in (None, [0], [-2], [0, 2]):
        parameters = {} if axes is None else {"axes": axes}
        yield Case("squeeze", call("squeeze", "x", **parameters), normal(1, 3, 1, 4), **MOVES)


def part_cases():
    for shape, axis, parts in (((2, 6, 3), 1, 3), ((2, 6, 3), -1, 3), ((6,), 0, 2), ((1, 96, 1, 17), 1, 12),
                               ((4, 5), 0, 1), ((1, 64, 1, 30), 1, 2)):
        yield Case("split", call("split", "x", num_splits=parts, axis=axis), normal(*shape), **MOVES)
    for shape, axis, sizes in (((2, 6, 3), 1, [1, 2, 3]), ((2, 6, 3), -1, [2, 1]), ((7,), 0, [3, 4])):
        yield Case("split", call("split", "x", split_sizes=sizes, axis=axis), normal(*shape), **MOVES)
    yield Case("split", call("split", "x", num_splits=2, axis=1), integers(-9, 9, 2, 4), **MOVES, **ONE_TYPE)
    for shape, parameters in (
            ((4, 5), {"begin": [1, 2], "end": [3, 5]}), ((4, 5), {"begin": [-3, -2], "end": [-1, 5]}),
            ((9, 8), {"begin": [1, 0], "end": [8, 8], "stride": [3, 2]}),
            ((9, 8), {"begin": [8, 7], "end": [0, 2], "stride": [-2, -1]}),
            ((9, 8), {"begin": [5, 0], "end": [0, 0], "stride": [-1, -3], "begin_mask": [False, True],
                      "end_mask": [True, True]}),
            ((4, 5, 6), {"begin": [1, 2, 0], "end": [0, 4, 0], "squeeze_mask": [True, False, False],
                         "end_mask": [False, False, True]}),
            ((4, 5, 6), {"begin": [-1, 2, 3], "end": [0, 0, 0], "squeeze_mask": [True, False, True],
                         "begin_mask": [False, True, False], "end_mask": [False, True, False]}),
            ((4, 5), {"begin": [-9, 0], "end": [9, 3]}),
            ((1, 32, 1, 20), {"begin": [0, 16, 0, 0], "end": [1, 32, 1, 20]}),
            ((1, 32, 1, 20), {"begin": [0, 0, 0, 3], "end": [1, 32, 1, 4]})):
        yield Case("slice_by_index", call("slice_by_index", "x", **parameters), normal(*shape), **MOVES)
    yield Case("slice_by_index", call("slice_by_index", "x", begin=[1], end=[3]), integers(-9, 9, 6), **MOVES,
               **ONE_TYPE)
    yield Case("slice_by_index", call("slice_by_index", "x", begin=[1], end=[3]), bools(6), **MOVES, **ONE_TYPE)
    row = call("slice_by_index", "x", "begin", end=[0, 0], squeeze_mask=[True, False], begin_mask=[False, True],
               end_mask=[False, True])
    yield Case("slice_by_index", row, normal(4, 5), np.int32([2, 0]), **MOVES)
    yield Case("slice_by_index", row, normal(4, 5), np.int32([4, 0]), refusal="out of range")
    for shape, begin, size in (((4, 5), [1, 2], [2, 3]), ((4, 5), [1, 2], [-1, 1]), ((4, 5), [-2, 0], [1, -1]),
                               ((2, 3, 4), [0, 1, 2], [2, 1, 2])):
        yield Case("slice_by_size", call("slice_by_size", "x", begin=begin, size=size), normal(*shape), **MOVES)
    box = call("slice_by_size", "x", "begin", size=[2, 3])
    yield Case("slice_by_size", box, normal(4, 5), np.int32([2, 1]), **MOVES)
    yield Case("slice_by_size", box, normal(4, 5), np.int32([3, 1]), refusal="out of range")


def join_cases():
    for axis, shapes in ((0, [(2, 3), (1, 3), (4, 3)]), (-1, [(2, 3), (2, 1)]), (1, [(1, 32, 1, 17), (1, 16, 1, 17)]),
                         (0, [(3,), (2,)]), (2, [(2, 1, 3, 2), (2, 1, 1, 2)]), (0, [(2, 3)])):
        yield Case("concat", lambda T, *values, at=axis: mb.concat(values=values, axis=at),
                   *[normal(*shape) for shape in shapes], **MOVES)
    for axis, shape in ((0, (3, 2)), (1, (3, 2)), (-1, (2, 3, 4)), (1, (1, 16, 1, 9))):
        yield Case("concat", lambda T, *values, at=axis: mb.concat(values=values, axis=at, interleave=True),
                   normal(*shape), normal(*shape), normal(*shape), **MOVES,
                   reference=lambda T, *values, at=axis: reference.interleaved(values, at % values[0].ndim))
    yield Case("concat", lambda T, x, y: mb.concat(values=(x, y, T([1, 2])), axis=0), normal(2), normal(3), **MOVES)
    yield Case("concat", lambda T, x, y: mb.concat(values=(x, y), axis=0), integers(-9, 9, 2), integers(-9, 9, 2),
               **MOVES, **ONE_TYPE)
    yield Case("concat", lambda T, x, y: mb.concat(values=(x, y), axis=0), np.float32(2), np.float32(3), **MOVES)
    for axis, shape in ((0, (2, 3)), (1, (2, 3)), (-1, (2, 3)), (2, (2, 3)), (0, (4,)), (0, ())):
        yield Case("stack", lambda T, *values, at=axis: mb.stack(values=values, axis=at),
                   normal(*shape), normal(*shape), normal(*shape), **MOVES)


def larger_cases():
    for shape, reps in (((2, 3), [2, 1]), ((2, 3), [1, 3]), ((2, 3), [3, 2]), ((4,), [5]),
                        ((1, 3, 1, 2), [2, 1, 4, 2])):
        yield Case("tile", call("tile", "x", reps=reps), normal(*shape), **MOVES)
    yield Case("tile", call("tile", "x", reps=[2, 2]), integers(-9, 9, 2, 3), **MOVES, **ONE_TYPE)
    for mode, shape, pad in (("constant", (3, 4), [1, 2, 0, 3]), ("constant", (3, 4), [2, 1]),
                             ("constant", (2, 3, 4), [0, 0, 0, 0, 1, 0]), ("reflect", (4, 5), [3, 2, 4, 1]),
                             ("reflect", (1, 4, 5), [1, 2]), ("replicate", (3, 4), [2, 3, 1, 4]),
                             ("reflect", (2, 3, 4, 5), [1, 2, 3, 1]), ("replicate", (2, 3, 4, 5), [0, 1, 3, 0])):
        yield Case("pad", call("pad", "x", pad=pad, mode=mode, constant_val=-1.5), normal(*shape), **MOVES)
    yield Case("pad", call("pad", "x", pad=[4, 0], mode="reflect", constant_val=0.0), normal(2, 4),
               refusal="at most 3")
    for shape in ([2, 3], [5], [1, 2, 1, 3]):
        yield Case("fill", lambda T, x, shape=shape: mb.add(x=x, y=mb.fill(shape=shape, value=T(2.5))),
                   np.float32([1]))
    yield Case("fill", lambda T, x: mb.add(x=x, y=mb.fill(shape=[2, 2], value=np.int32(-7))), np.int32([1]),
               exact=True, **ONE_TYPE)


def gather_cases():
    for shape, indices, axis in (((5, 3), (4,), 0), ((5, 3), (2, 3), 0), ((4, 5, 3), (2,), 1),
                                 ((4, 5, 3), (2, 2), -1), ((6,), (4,), 0), ((5, 3), (), 0), ((6,), (), 0),
                                 ((4, 5, 3), (), 1)):
        size, make = shape[axis], call("gather", "x", "indices", axis=axis)
        yield Case("gather", make, normal(*shape), integers(0, size, *indices), **MOVES)
        yield Case("gather", make, normal(*shape), integers(-size, size, *indices), targets=OLD, **MOVES)
        constant = call("gather", "x", indices=integers(0, size, *indices), axis=axis)
        yield Case("gather", constant, normal(*shape), **MOVES)
    for shape, indices, axis, batch in (((2, 5, 3), (2, 4), 1, 1), ((2, 3, 4, 5), (2, 3, 2), 2, 2),
                                        ((2, 3, 4), (2, 6), 2, 1), ((2, 3, 4), (2,), 1, 1)):
        yield Case("gather", call("gather", "x", "indices", axis=axis, batch_dims=batch), normal(*shape),
                   integers(0, shape[axis], *indices), targets=("iOS16", "iOS17", "iOS18"), **MOVES)
    for validate in (False, True):
        make = call("gather", "x", "indices", axis=0, validate_indices=validate)
        yield Case("gather", make, normal(5, 3), integers(0, 5, 4), targets=FROM17, **MOVES)
        yield Case("gather", make, normal(5, 3), integers(0, 5, 4).astype(np.uint16), targets=FROM17, **MOVES)
        yield Case("gather", make, normal(5, 3), integers(0, 5, 4).astype(np.int8), targets=FROM17, **MOVES)
        yield Case("gather", make, normal(5, 3), np.int32([1, -1]), targets=FROM17,
                   refusal="expected 0 to 4, found -1")
        yield Case("gather", make, normal(5, 3), np.int32([1, 5]), targets=FROM17, refusal="expected 0 to 4, found 5")
    yield Case("gather", call("gather", "x", "indices", axis=0), normal(5, 3), np.int32([-6]), targets=OLD,
               refusal="expected -5 to 4, found -6")
    yield Case("gather", call("gather", "x", "indices", axis=0), integers(-9, 9, 5, 3), integers(0, 5, 2, 2),
               **MOVES, **ONE_TYPE)
    table = normal(300, 40)
    for axis in (0, 1):
        yield Case("gather", call("gather", "indices", x=table, axis=axis), integers(0, 40, 3, 5), **MOVES)


# -------------------------------------------------------------------------------- compressed constants

def dense(compressed, targets, dtypes=("fp32", "fp16"), kind="f"):
    """A case that moves a constexpr operation's value to the output."""
    def make(T, x, weight):
        if weight.dtype in (types.int8, types.uint8):
            weight = mb.cast(x=weight, dtype="int32")
        return mb.concat(values=(x, mb.reshape(x=weight, shape=[-1])), axis=0)
    return lambda op: Case(op, make, np.float32([1]) if kind == "f" else np.int32([1]), compressed=compressed,
                           targets=targets, dtypes=dtypes, exact=True)


def packed(values, bits):
    """Least significant bit first."""
    stream = (values.reshape(-1, 1) >> np.arange(bits) & 1).astype(np.uint8).reshape(-1)
    return np.packbits(stream, bitorder="little")


def special(*shape):
    """Values with zeros of both signs, subnormal and large ones."""
    values = normal(*shape).reshape(-1)
    values[:4] = [0.0, -0.0, 6e-8, 60000][:len(values[:4])]
    return values.reshape(shape)


def palette_cases():
    op = "constexpr_lut_to_dense"
    for bits, shape in itertools.product((1, 2, 4, 6, 8), ((3, 5), (7, 4, 1, 1), (97, 101))):
        indices = RANDOM.integers(0, 2 ** bits, shape)
        lut = special(2 ** bits)
        yield dense(lambda T, i=indices, b=bits, t=lut: mb.constexpr_lut_to_dense(
            indices=packed(i, b), lut=T(t), shape=np.uint32(i.shape)), ("iOS16", "iOS17"))(op)
    forms = [((6, 8), (1, 1), 1, None), ((6, 8), (3, 1), 1, None), ((6, 8), (1, 4), 1, None),
             ((6, 8), (2, 8), 1, None), ((6, 8, 1, 1), (1, 8, 1, 1), 1, None),
             ((6, 8, 2, 3), (3, 2, 1, 3), 1, None), ((64, 70), (8, 1), 1, None),
             ((6, 8), (1, 1), 2, 0), ((6, 8), (2, 1), 2, 0), ((6, 8), (3, 2), 3, 1), ((6, 8, 2), (2, 1, 2), 4, -3),
             ((6, 8, 2), (1, 4, 1), 2, -1), ((5, 1000), (1, 1), 1, None), ((6, 8), (2, 1), 1, 0)]
    for bits, (shape, groups, vector, axis) in itertools.product((1, 2, 3, 4, 6, 8), forms):
        indices = RANDOM.integers(0, 2 ** bits, shape).astype(
            np.uint8 if bits == 8 else getattr(types, "np_uint%d_dtype" % bits))
        lut = special(*groups, 2 ** bits, vector)
        options = {} if axis is None else {"vector_axis": axis}
        yield dense(lambda T, i=indices, t=lut, o=options: mb.constexpr_lut_to_dense(indices=i, lut=T(t), **o),
                    FROM18, dtypes=("fp32", "fp16") if bits in (3, 4) else ("fp16",))(op)
    for kind in (np.int8, np.uint8):
        indices = RANDOM.integers(0, 16, (4, 6)).astype(types.np_uint4_dtype)
        lut = RANDOM.integers(0 if kind == np.uint8 else -128, 128, (2, 1, 16, 1)).astype(kind)
        yield dense(lambda T, i=indices, t=lut: mb.constexpr_lut_to_dense(indices=i, lut=t),
                    FROM18, ("fp32",), "i")(op)


def quantized_cases():
    op = "constexpr_affine_dequantize"
    for kind, axis, per_axis in itertools.product((np.int8, np.uint8), (0, 1, -1), (False, True)):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
        data = RANDOM.integers(low, high, (5, 6, 4)).astype(kind)
        size = data.shape[axis] if per_axis else None
        scale = uniform(1e-4, 2, size) if per_axis else np.float32(0.0123)
        for zero in (RANDOM.integers(low, high, size).astype(kind) if per_axis else kind(3), kind(0)):
            yield dense(lambda T, d=data, s=scale, z=zero, a=axis: mb.constexpr_affine_dequantize(
                quantized_data=d, zero_point=z, scale=T(s), axis=np.int32(a)), ("iOS16", "iOS18"))(op)
    data = RANDOM.integers(-128, 128, (4, 5)).astype(np.int8)
    yield dense(lambda T: mb.constexpr_affine_dequantize(
        quantized_data=data, zero_point=np.float32(0.37), scale=T(0.011), axis=np.int32(0)), ("iOS16", "iOS18"))(op)
    op = "constexpr_blockwise_shift_scale"
    ranges = {"int4": (-8, 8, types.np_int4_dtype), "uint4": (0, 16, types.np_uint4_dtype),
              "int8": (-128, 128, np.int8), "uint8": (0, 256, np.uint8)}
    for name, blocks in itertools.product(ranges, ((1, 1), (6, 1), (2, 4), (1, 8), (6, 8), (3, 2))):
        low, high, kind = ranges[name]
        data = RANDOM.integers(low, high, (6, 8)).astype(kind)
        offset = RANDOM.integers(low, high, blocks).astype(kind)
        scale = uniform(1e-3, 1, *blocks)
        for options in ({}, {"offset": offset}, {"offset": normal(*blocks).astype(np.float16)}):
            yield dense(lambda T, d=data, s=scale, o=options: mb.constexpr_blockwise_shift_scale(
                data=d, scale=T(s), **o), FROM18)(op)
    floats, scale, shift = normal(6, 8), uniform(0.1, 2, 3, 2), normal(3, 2)
    for kind in (np.float16, np.float32):
        for options in ({}, {"offset": shift.astype(np.float16)}):
            yield dense(lambda T, k=kind, o=options: mb.constexpr_blockwise_shift_scale(
                data=floats.astype(k), scale=T(scale), **o), FROM18)(op)


def sparse_cases():
    op = "constexpr_sparse_to_dense"
    for shape in ((3, 5), (8, 8), (5, 7, 3), (97, 31)):
        mask = RANDOM.integers(0, 2, shape)
        values = normal(int(mask.sum()))
        yield dense(lambda T, m=mask, v=values: mb.constexpr_sparse_to_dense(
            nonzero_data=T(v), mask=packed(m, 1), shape=np.uint32(m.shape)), ("iOS16", "iOS17"))(op)
        yield dense(lambda T, m=mask, v=values: mb.constexpr_sparse_to_dense(
            nonzero_data=T(v), mask=m.astype(types.np_uint1_dtype)), FROM18)(op)
    op = "constexpr_cast"
    values = special(3, 7).astype(np.float16)
    for target in ("iOS16", "iOS17", "iOS18"):
        yield dense(lambda T: mb.constexpr_cast(source_val=values, output_dtype="fp32"), (target,), ("fp32",))(op)


def chained_cases():
    """The parameters of a constexpr operation made by others."""
    indices = RANDOM.integers(0, 16, (6, 8)).astype(types.np_uint4_dtype)
    lut = RANDOM.integers(-128, 128, (2, 1, 16, 1)).astype(np.int8)
    scale, table = uniform(0.01, 1, 6, 2), uniform(0.01, 1, 1, 1, 16, 1)
    op = "constexpr_blockwise_shift_scale"
    yield dense(lambda T: mb.constexpr_blockwise_shift_scale(
        data=mb.constexpr_lut_to_dense(indices=indices, lut=lut), scale=T(scale)), FROM18)(op)
    yield dense(lambda T: mb.constexpr_blockwise_shift_scale(
        data=RANDOM.integers(-8, 8, (6, 8)).astype(np.int8),
        scale=mb.constexpr_lut_to_dense(indices=indices, lut=T(table))), FROM18, ("fp32",))(op)
    mask = RANDOM.integers(0, 2, (6, 8))
    values = RANDOM.integers(-128, 128, int(mask.sum())).astype(np.int8)
    yield dense(lambda T: mb.constexpr_blockwise_shift_scale(
        data=mb.constexpr_sparse_to_dense(nonzero_data=values, mask=mask.astype(types.np_uint1_dtype)),
        scale=T(scale)), FROM18)(op)


# -------------------------------------------------------------------------------- a network

def encoder(T, ids, mask, fused):
    """Embeddings, two layers of attention and GELU, mean of the unmasked tokens. ids and mask are [1, L]."""
    random = np.random.default_rng(5)
    width, heads, length = 32, 4, ids.shape[1]

    def weight(*shape):
        return T(random.standard_normal(shape) / np.sqrt(shape[-1]))

    def norm(x):
        return mb.layer_norm(x=x, axes=[-1], gamma=T(1 + 0.1 * random.standard_normal(width)),
                             beta=T(0.1 * random.standard_normal(width)), epsilon=T(1e-5))

    def split_heads(x):
        return mb.transpose(x=mb.reshape(x=x, shape=[1, length, heads, width // heads]), perm=[0, 2, 1, 3])

    def attend(x):
        q, k, v = [split_heads(part) for part in mb.split(x=mb.linear(x=x, weight=weight(3 * width, width)),
                                                           num_splits=3, axis=-1)]
        bias = mb.mul(x=mb.sub(x=mb.expand_dims(x=mask, axes=[1, 2]), y=T(1)), y=T(10000))
        if fused:
            bias = mb.tile(x=bias, reps=[1, 1, length, 1])
            mixed = mb.scaled_dot_product_attention(query=q, key=k, value=v, attn_mask=bias)
        else:
            scores = mb.mul(x=mb.matmul(x=q, y=k, transpose_y=True), y=T(1 / np.sqrt(width // heads)))
            mixed = mb.matmul(x=mb.softmax(x=mb.add(x=scores, y=bias), axis=-1), y=v)
        mixed = mb.reshape(x=mb.transpose(x=mixed, perm=[0, 2, 1, 3]), shape=[1, length, width])
        return mb.linear(x=mixed, weight=weight(width, width), bias=weight(width))

    def feed_forward(x):
        wide = mb.gelu(x=mb.linear(x=x, weight=weight(4 * width, width), bias=weight(4 * width)), mode="EXACT")
        return mb.linear(x=wide, weight=weight(width, 4 * width), bias=weight(width))

    x = norm(mb.gather(x=weight(200, width), indices=ids, axis=0))
    for _ in range(2):
        x = mb.add(x=x, y=attend(norm(x)))
        x = mb.add(x=x, y=feed_forward(norm(x)))
    kept = mb.expand_dims(x=mask, axes=[-1])
    total = mb.reduce_sum(x=mb.mul(x=x, y=kept), axes=[1], keep_dims=False)
    return x, mb.real_div(x=total, y=mb.reduce_sum(x=kept, axes=[1], keep_dims=False))


def network_cases():
    ids, mask = integers(0, 200, 1, 24), (np.arange(24) < 17).astype(np.float32)[None]
    for fused in (False, True):
        yield Case("encoder, %s attention" % ("fused" if fused else "composed"),
                   functools.partial(encoder, fused=fused), ids, mask, sums=True, deep=True,
                   targets=FROM18 if fused else ("iOS15", "iOS16", "iOS17", "iOS18"))


def all_cases():
    """The same ones on every call."""
    global RANDOM  # pylint: disable=global-statement
    RANDOM = np.random.default_rng(11)
    for family in (binary_cases, comparison_cases, unary_cases, cast_cases, select_cases, reduction_cases, norm_cases,
                   conv_cases, product_cases, order_cases, part_cases, join_cases, larger_cases, gather_cases,
                   palette_cases, quantized_cases, sparse_cases, chained_cases, network_cases):
        yield from family()
