# SPDX-License-Identifier: Apache-2.0
"""Packages that coremltools' own writer makes: what an inspector and a verifier must take.

Each maker writes one package into a path. Together they hold every opset from CoreML5 to CoreML8, weights in the file
and in place, all forms of compressed constants, nested blocks, states, several functions, flexible shapes.
"""
import contextlib
import os
import shutil

import numpy as np

from coreml_package import ct
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import get_new_symbol, types
import coremltools.optimize.coreml as compress

TARGET = ct.target
RANDOM = np.random.default_rng(7)


def write(program, target, path, **options):
    model = ct.convert(program, source="milinternal", convert_to="mlprogram", skip_model_load=True,
                       minimum_deployment_target=target, pass_pipeline=ct.PassPipeline.EMPTY, **options)
    shutil.rmtree(path, ignore_errors=True)
    model.save(path)


def plain(target, dtype):
    """conv, layer_norm, attention by einsum, gelu: the operations of our graphs."""
    weight = RANDOM.standard_normal((64, 64, 1, 1)).astype(dtype)
    kind = types.fp16 if dtype == np.float16 else types.fp32

    def make(path):
        @mb.program(input_specs=[mb.TensorSpec((1, 64, 1, 16), dtype=kind)], opset_version=target)
        def program(x):
            y = mb.conv(x=x, weight=weight, bias=np.ones(64, dtype))
            y = mb.layer_norm(x=y, axes=[1], gamma=np.ones(64, dtype), beta=np.zeros(64, dtype), epsilon=dtype(1e-5))
            scores = mb.einsum(values=(mb.transpose(x=y, perm=[0, 3, 2, 1]), y), equation="nchw,nwhu->nchu")
            y = mb.einsum(values=(y, mb.softmax(x=scores, axis=1)), equation="nchw,nwhu->nchu")
            return mb.gelu(x=y, mode="EXACT", name="out")
        write(program, target, path)
    return make


PLAIN = {"ios15": plain(TARGET.iOS15, np.float32), "ios16": plain(TARGET.iOS16, np.float16),
         "ios17": plain(TARGET.iOS17, np.float16), "ios18": plain(TARGET.iOS18, np.float16)}


def compressed(source, apply, config):
    """A plain package with its weights compressed."""
    def make(path):
        PLAIN[source](path)
        model = ct.models.MLModel(path, skip_model_load=True)
        model = apply(model, compress.OptimizationConfig(global_config=config))
        shutil.rmtree(path)
        model.save(path)
    return make


def palettized(source, **options):
    return compressed(source, compress.palettize_weights,
                      compress.OpPalettizerConfig(mode="uniform", weight_threshold=100, **options))


def quantized(source, **options):
    return compressed(source, compress.linear_quantize_weights,
                      compress.OpLinearQuantizerConfig(weight_threshold=100, **options))


def pruned(source):
    return compressed(source, compress.prune_weights,
                      compress.OpMagnitudePrunerConfig(target_sparsity=0.5, weight_threshold=100))


def jointly_compressed(apply, config):
    def make(path):
        pruned("ios18")(path)
        model = ct.models.MLModel(path, skip_model_load=True)
        model = apply(model, compress.OptimizationConfig(global_config=config), joint_compression=True)
        shutil.rmtree(path)
        model.save(path)
    return make


def vector_palette(path):
    indices = RANDOM.integers(0, 16, (32, 64, 1, 1)).astype(types.np_uint4_dtype)
    table = RANDOM.standard_normal((1, 1, 1, 1, 16, 2)).astype(np.float16)

    @mb.program(input_specs=[mb.TensorSpec((1, 64, 1, 16), dtype=types.fp16)], opset_version=TARGET.iOS18)
    def program(x):
        weight = mb.constexpr_lut_to_dense(indices=indices, lut=table, vector_axis=0)
        return mb.conv(x=x, weight=weight, name="out")
    write(program, TARGET.iOS18, path)


def conditional(path):
    @mb.program(input_specs=[mb.TensorSpec((1, 4)), mb.TensorSpec((1,))], opset_version=TARGET.iOS16)
    def program(x, flag):
        positive = mb.squeeze(x=mb.greater(x=flag, y=np.float32(0)))
        return mb.cond(pred=positive, _true_fn=lambda: mb.add(x=x, y=np.float32(1)), _false_fn=lambda: mb.relu(x=x),
                       name="out")
    write(program, TARGET.iOS16, path)


def loop(path):
    @mb.program(input_specs=[mb.TensorSpec((1, 4))], opset_version=TARGET.iOS16)
    def program(x):
        result, _ = mb.while_loop(_cond=lambda y, i: mb.less(x=i, y=3),
                                  _body=lambda y, i: (mb.add(x=y, y=np.float32(1)), mb.add(x=i, y=1)),
                                  loop_vars=(x, np.int32(0)))
        return mb.relu(x=result, name="out")
    write(program, TARGET.iOS16, path)


def stateful(path):
    @mb.program(input_specs=[mb.TensorSpec((1, 4), dtype=types.fp16), mb.StateTensorSpec((1, 4), dtype=types.fp16)],
                opset_version=TARGET.iOS18)
    def program(x, memory):
        total = mb.add(x=mb.read_state(input=memory), y=x)
        return mb.relu(x=mb.coreml_update_state(state=memory, value=total), name="out")
    write(program, TARGET.iOS18, path)


def two_functions(path):
    parts = [path + ".first", path + ".second"]
    PLAIN["ios18"](parts[0] + ".mlpackage")
    palettized("ios18", nbits=4)(parts[1] + ".mlpackage")
    functions = ct.utils.MultiFunctionDescriptor()
    for name, part in zip(("first", "second"), parts):
        functions.add_function(part + ".mlpackage", "main", name)
    functions.default_function_name = "first"
    ct.utils.save_multifunction(functions, path)
    for part in parts:
        shutil.rmtree(part + ".mlpackage")


def flexible(path):
    weight = RANDOM.standard_normal((8, 64, 1, 1)).astype(np.float32)

    @mb.program(input_specs=[mb.TensorSpec((1, 64, 1, get_new_symbol()))], opset_version=TARGET.iOS16)
    def program(x):
        return mb.softmax(x=mb.conv(x=x, weight=weight), axis=1, name="out")
    shape = ct.Shape((1, 64, 1, ct.RangeDim(1, 32, default=8)))
    write(program, TARGET.iOS16, path, inputs=[ct.TensorType("x", shape=shape)])


def many_operations(path):
    """Most operations that a transformer's conversion may hold, in their iOS18 forms."""
    half = np.float16

    @mb.program(input_specs=[mb.TensorSpec((1, 64, 1, 16), dtype=types.fp16), mb.TensorSpec((4,), dtype=types.int32)],
                opset_version=TARGET.iOS18)
    def program(x, ids):
        _, right = mb.split(x=x, num_splits=2, axis=1)
        first, second, third = mb.split(x=x, split_sizes=[16, 16, 32], axis=1)
        y = mb.gelu(x=mb.concat(values=[second, first], axis=1), mode="EXACT")
        y = mb.sub(x=y, y=mb.gelu(x=third, mode="TANH_APPROXIMATION"))
        y = mb.real_div(x=mb.mul(x=y, y=half(2)), y=mb.maximum(x=mb.exp(x=right), y=half(1)))
        y = mb.reshape(x=y, shape=[1, 4, 8, 16])
        y = mb.slice_by_index(x=y, begin=[0, 0, 0, 0], end=[1, 2, 4, 16], end_mask=[True, False, False, True])
        y = mb.slice_by_size(x=y, begin=[0, 0, 0, 0], size=[1, 2, -1, 8])
        product = mb.matmul(x=y, y=y, transpose_y=True)
        y = mb.reduce_mean(x=mb.scaled_dot_product_attention(query=y, key=y, value=y), axes=[-1], keep_dims=True)
        y = mb.batch_norm(x=y, mean=np.zeros(2, half), variance=np.ones(2, half), gamma=np.ones(2, half),
                          beta=np.zeros(2, half), epsilon=half(1e-3))
        y = mb.add(x=y, y=mb.rsqrt(x=product, epsilon=half(1e-3)))
        z = mb.gather(x=RANDOM.standard_normal((32, 4)).astype(half), indices=ids, axis=0)
        z = mb.linear(x=z, weight=RANDOM.standard_normal((8, 4)).astype(half), bias=np.zeros(8, half))
        z = mb.squeeze(x=mb.tile(x=mb.expand_dims(x=z, axes=[0, 1]), reps=[1, 1, 1, 2]), axes=[0])
        z = mb.select(cond=mb.greater(x=z, y=half(0)), a=z, b=mb.sub(x=z, y=z))
        z = mb.cast(x=mb.cast(x=z, dtype="fp32"), dtype="fp16")
        z = mb.clip(x=z, alpha=half(0), beta=half(1))
        z = mb.pad(x=z, pad=[0, 0, 1, 1], mode="constant", constant_val=half(0))
        z = mb.concat(values=[
            mb.pow(x=z, y=half(2)), mb.sigmoid(x=z), mb.silu(x=z), mb.tanh(x=z), mb.erf(x=z), mb.sin(x=z), mb.cos(x=z),
            mb.sqrt(x=z), mb.square(x=z), mb.abs(x=z), mb.inverse(x=z, epsilon=half(1e-3)),
            mb.floor_div(x=z, y=half(3)), mb.minimum(x=z, y=half(3)), mb.reduce_sum(x=z, axes=[0], keep_dims=True),
            mb.l2_norm(x=z, epsilon=half(1e-4))], axis=-1, interleave=False)
        return mb.identity(x=y, name="first"), mb.identity(x=z, name="second")
    write(program, TARGET.iOS18, path)


def makers():
    """Name to maker."""
    table = dict(PLAIN)
    for bits in (1, 2, 4, 6, 8):
        table["ios16-palette-%d-bit" % bits] = palettized("ios16", nbits=bits)
    for bits in (1, 2, 3, 4, 6, 8):
        table["ios18-palette-%d-bit-grouped" % bits] = palettized("ios18", nbits=bits, group_size=16,
                                                                 granularity="per_grouped_channel")
    table["ios18-palette-scaled"] = palettized("ios18", nbits=4, group_size=16, enable_per_channel_scale=True,
                                               granularity="per_grouped_channel")
    table["ios18-palette-vectors"] = vector_palette
    table["ios16-linear"] = quantized("ios16", mode="linear")
    table["ios16-linear-symmetric"] = quantized("ios16", mode="linear_symmetric")
    table["ios18-linear"] = quantized("ios18", mode="linear")
    table["ios18-linear-blocks-4-bit"] = quantized("ios18", mode="linear", dtype="uint4", granularity="per_block",
                                                   block_size=16)
    table["ios18-linear-symmetric-4-bit"] = quantized("ios18", mode="linear_symmetric", dtype="int4",
                                                      granularity="per_block", block_size=32)
    table["ios16-sparse"], table["ios18-sparse"] = pruned("ios16"), pruned("ios18")
    palette = compress.OpPalettizerConfig(mode="uniform", nbits=4, weight_threshold=100)
    table["ios18-sparse-palette"] = jointly_compressed(compress.palettize_weights, palette)
    linear = compress.OpLinearQuantizerConfig(mode="linear_symmetric", weight_threshold=100)
    table["ios18-sparse-linear"] = jointly_compressed(compress.linear_quantize_weights, linear)
    table.update({"cond": conditional, "while-loop": loop, "state": stateful, "two-functions": two_functions,
                  "flexible-shape": flexible, "many-operations": many_operations})
    return table


@contextlib.contextmanager
def quiet():
    """Without coremltools' progress bars."""
    with open(os.devnull, "w", encoding="utf-8") as sink:
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            yield


def make(name, folder):
    """Path of the package."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".mlpackage")
    with quiet():
        makers()[name](path)
    return path


def rewrite(package, path):
    """Write the program of a package again."""
    with quiet():
        write(package.program, {6: TARGET.iOS15, 7: TARGET.iOS16}[package.spec.specificationVersion], path)
