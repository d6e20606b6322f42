# SPDX-License-Identifier: Apache-2.0
"""Operations that coremltools' value inference lacks (or gets wrong), in NumPy float64."""
import itertools
import math

import numpy as np


def padding(pad_type, sizes, kernel, strides, dilations, pad):
    """(before, after) of every spatial axis."""
    pairs = []
    for axis, size in enumerate(sizes):
        if pad_type == "valid":
            pairs.append((0, 0))
        elif pad_type == "custom":
            pairs.append((pad[2 * axis], pad[2 * axis + 1]))
        else:
            out = -(-size // strides[axis])
            total = max(0, (out - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 - size)
            small, large = total // 2, total - total // 2
            pairs.append((small, large) if pad_type == "same" else (large, small))
    return pairs


def conv(x, weight, bias=None, strides=None, pad_type="valid", pad=None, dilations=None, groups=1):
    """One window position at a time."""
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    kernel = weight.shape[2:]
    x = np.pad(x, [(0, 0), (0, 0)] + padding(pad_type, x.shape[2:], kernel, strides, dilations, pad))
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations)]
    counts = [(size - span) // stride + 1 for size, span, stride in zip(x.shape[2:], spans, strides)]
    inputs, outputs = x.shape[1] // groups, weight.shape[0] // groups
    out = np.zeros((x.shape[0], weight.shape[0]) + tuple(counts))
    for place in itertools.product(*map(range, counts)):
        window = x[(slice(None), slice(None)) + tuple(
            slice(at * stride, at * stride + span, dilation)
            for at, stride, span, dilation in zip(place, strides, spans, dilations))]
        for group in range(groups):
            part = window[:, group * inputs:(group + 1) * inputs].reshape(len(x), -1)
            rows = weight[group * outputs:(group + 1) * outputs].reshape(outputs, -1)
            out[(slice(None), slice(group * outputs, (group + 1) * outputs)) + place] = part @ rows.T
    return out if bias is None else out + bias.reshape((1, -1) + (1,) * rank)


def per_channel(values, rank):
    return values.reshape((1, -1) + (1,) * (rank - 2))


def batch_norm(x, mean, variance, gamma=None, beta=None, epsilon=1e-5):
    out = (x - per_channel(mean, x.ndim)) / np.sqrt(per_channel(variance, x.ndim) + epsilon)
    out = out if gamma is None else out * per_channel(gamma, x.ndim)
    return out if beta is None else out + per_channel(beta, x.ndim)


def instance_norm(x, gamma=None, beta=None, epsilon=1e-5):
    axes = tuple(range(2, x.ndim))
    out = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    out = out if gamma is None else out * per_channel(gamma, x.ndim)
    return out if beta is None else out + per_channel(beta, x.ndim)


def silu(x):
    return x / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def gelu(x, mode):
    if mode == "EXACT":
        return 0.5 * x * np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2))
    if mode == "SIGMOID_APPROXIMATION":
        return x / (1 + np.exp(-1.702 * x))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def log_sum_exp(x, axes, keep_dims):
    most = x.max(axis=axes, keepdims=True)
    out = np.log(np.exp(x - most).sum(axis=axes, keepdims=True)) + most
    return out if keep_dims else np.squeeze(out, axis=axes)


def attention(query, key, value, mask=None):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype.kind == "b" else mask)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ value


def interleaved(values, axis):
    """Elements of the axis take turns."""
    stacked = np.stack(values, axis=axis + 1)
    shape = list(values[0].shape)
    shape[axis] *= len(values)
    return stacked.reshape(shape)
