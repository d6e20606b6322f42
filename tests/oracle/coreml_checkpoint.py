# SPDX-License-Identifier: Apache-2.0
"""What an exported package must hold and compute, from the checkpoint's files alone.

Reads model.safetensors itself and states, for both graphs, which constants stand in which order, what operations
there are, and what the graph computes (NumPy float64). Shares no code with the library.
"""
import collections
import json
import math
import os
import struct

import numpy as np

from coreml_evaluator import ERF, softmax

HEAD = 64  # channels of an attention head, fixed in all published shapes


class Tensors:
    """A safetensors file."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as handle:
            size = struct.unpack("<Q", handle.read(8))[0]
            self.header = json.loads(handle.read(size))
        self.start = 8 + size

    def tensor(self, name):
        """As stored."""
        entry = self.header[name]
        kind = {"F16": "<f2", "F32": "<f4"}[entry["dtype"]]
        count = int(np.prod(entry["shape"], dtype=np.int64))
        return np.fromfile(self.path, kind, count, offset=self.start + entry["data_offsets"][0]).reshape(entry["shape"])

    def double(self, name):
        return self.tensor(name).astype(np.float64)


class Checkpoint(Tensors):
    def __init__(self, folder):
        super().__init__(os.path.join(folder, "model.safetensors"))
        self.folder = folder
        self.shape = self.read_json("encoder", "config.json")
        self.agent = self.read_json("rl_agent_config.json")
        self.hidden = self.shape["hidden_size"]
        self.inner = self.shape["intermediate_size"]
        self.layers = self.shape["num_hidden_layers"]
        self.heads = self.hidden // HEAD
        self.head_layers = self.agent["head_layers"]
        self.epsilon = self.shape["norm_eps"]
        self.radius = self.shape["local_attention"] // 2
        rope = self.shape.get("rope_parameters", {})
        self.theta = {True: rope["full_attention"]["rope_theta"] if rope else self.shape["global_rope_theta"],
                      False: rope["sliding_attention"]["rope_theta"] if rope else self.shape["local_rope_theta"]}

    def read_json(self, *parts):
        with open(os.path.join(self.folder, *parts), encoding="utf-8") as handle:
            return json.load(handle)

    def is_global(self, layer):
        return layer % self.shape["global_attn_every_n_layers"] == 0

    def body_tensors(self):
        """Names of all tensors that are constants of a body: the rest belongs to the host."""
        host = ("act_head.", "encoder.embeddings.tok_embeddings.", "type_emb.", "temperature")
        return {name for name in self.header if not name.startswith(host)}


# ---------------------------------------------------------------- constants, in the order of the data flow

Norm = collections.namedtuple("Norm", "weight bias epsilon")
Dense = collections.namedtuple("Dense", "weight bias form")  # form: plain, qkv (of a head or encoder layer) or out
Rope = collections.namedtuple("Rope", "theta")


def expected_layer(model, layer):
    name = "encoder.layers.%d." % layer
    if layer > 0:
        yield Norm(name + "attn_norm.weight", None, model.epsilon)
    yield Dense(name + "attn.Wqkv.weight", None, "qkv")
    yield Rope(model.theta[model.is_global(layer)])
    yield Dense(name + "attn.Wo.weight", None, "out")
    yield from expected_mlp(model, layer)


def expected_mlp(model, layer):
    name = "encoder.layers.%d." % layer
    yield Norm(name + "mlp_norm.weight", None, model.epsilon)
    yield Dense(name + "mlp.Wi.weight", None, "plain")
    yield Dense(name + "mlp.Wo.weight", None, "plain")


def expected_head_layer(layer):
    name = "head.layers.%d." % layer
    yield Norm(name + "norm1.weight", name + "norm1.bias", 1e-5)
    yield Dense(name + "self_attn.in_proj_weight", name + "self_attn.in_proj_bias", "qkv")
    yield Rope(None)
    yield Dense(name + "self_attn.out_proj.weight", name + "self_attn.out_proj.bias", "out")
    yield Norm(name + "norm2.weight", name + "norm2.bias", 1e-5)
    yield Dense(name + "linear1.weight", name + "linear1.bias", "plain")
    yield Dense(name + "linear2.weight", name + "linear2.bias", "plain")


def expected_body(model):
    yield Norm("encoder.embeddings.norm.weight", None, model.epsilon)
    for layer in range(model.layers):
        yield from expected_layer(model, layer)
    yield Norm("encoder.final_norm.weight", None, model.epsilon)
    for layer in range(model.head_layers):
        yield from expected_head_layer(layer)
    yield Norm("scorer.0.weight", "scorer.0.bias", 1e-5)
    yield Dense("scorer.1.weight", "scorer.1.bias", "plain")
    yield Dense("scorer.3.weight", "scorer.3.bias", "plain")


def expected_constants(model, kind, layer):
    if kind == "body":
        return list(expected_body(model))
    return list(expected_layer(model, layer) if kind == "layer" else expected_mlp(model, layer))


def rope_angles(theta, length):
    """[32, length]: position * theta^(-2c / 64)"""
    return theta ** (-2.0 * np.arange(HEAD // 2)[:, None] / HEAD) * np.arange(length)[None, :]


def interleaved_rows(parts, heads):
    """Rows of `parts` stacked [parts * heads * 64, ...] matrices so that row c * slots + slot is channel c of slot."""
    slots = parts * heads
    return (np.arange(slots)[None, :] * HEAD + np.arange(HEAD)[:, None]).reshape(-1)


# ---------------------------------------------------------------- operation counts

def expected_histogram(model, graph, kind, layer):
    """Operations by kind, as the study counts them (per-head) and as the lean graph is described."""
    count = collections.Counter()
    events = expected_constants(model, kind, layer)
    dense = sum(isinstance(event, Dense) for event in events)
    norms = [event for event in events if isinstance(event, Norm)]
    encoder = {"body": model.layers, "layer": 1, "mlp": 0}[kind]
    head = model.head_layers if kind == "body" else 0
    blocks, h = encoder + head, model.heads
    glu = encoder or 1
    count.update(conv=dense, layer_norm=len(norms), gelu=glu, mul=glu, split=glu, add=glu)
    if kind != "mlp":
        count.update(add=blocks)
    if kind == "body":  # feed-forward residual and ReLU of the head, type, markers, scorer, CLS column
        count.update(add=head + 1, relu=head, einsum=1, gelu=1, slice=1)
    if graph == "per-head":
        biased = sum(event.bias is not None for event in norms)
        count.update(batch_norm=biased, mul=len(norms) - biased)
        count.update(split=4 * blocks, concat=blocks, einsum=2 * h * blocks, softmax=h * blocks,
                     transpose=h * blocks, mul=h * blocks, add=h * blocks)
        rope = 2 * h * encoder
        count.update(split=rope, mul=4 * rope, sub=rope, add=rope, concat=rope)
    else:
        count.update(split=2 * blocks, reshape=3 * blocks, transpose=blocks, einsum=2 * blocks, add=blocks,
                     softmax=blocks)
        count.update(conv=encoder, mul=2 * encoder, add=encoder)
    return +count


# ---------------------------------------------------------------- what the graph computes

def gelu(x):
    return 0.5 * x * (1 + ERF(x / math.sqrt(2)))


def norm(x, weight, epsilon):
    """Over the channels of [channels, length]."""
    centred = x - x.mean(axis=0)
    return centred / np.sqrt((centred ** 2).mean(axis=0) + epsilon) * weight[:, None]


class Network:
    """The network in float64, of constants as a package of some precision holds them: the rotary tables and the
    epsilons are float32 numbers rounded to it."""

    def __init__(self, model, dtype):
        self.model, self.dtype, self.weight = model, dtype, model.double

    def round(self, values):
        return np.asarray(values).astype(np.float32).astype(self.dtype).astype(np.float64)

    def norm(self, x, name, epsilon):
        out = norm(x, self.weight(name + ".weight"), self.round(epsilon))
        return out + self.weight(name + ".bias")[:, None] if name + ".bias" in self.model.header else out

    def mlp(self, layer, x):
        name = "encoder.layers.%d." % layer
        y = self.weight(name + "mlp.Wi.weight") @ self.norm(x, name + "mlp_norm", self.model.epsilon)
        return x + self.weight(name + "mlp.Wo.weight") @ (gelu(y[:self.model.inner]) * y[self.model.inner:])

    def attend(self, q, k, v, bias):
        """Heads [heads, 64, length] to [channels, length]; bias[key, query] is added to the scores."""
        scores = np.einsum("hck,hcq->hkq", k, q) / math.sqrt(HEAD) + bias
        return np.einsum("hck,hkq->hcq", v, softmax(scores, 1)).reshape(self.model.hidden, -1)

    def layer(self, layer, x, bias):
        """One encoder layer on [channels, length]."""
        name, length = "encoder.layers.%d." % layer, x.shape[1]
        y = self.norm(x, name + "attn_norm", self.model.epsilon) if layer > 0 else x
        q, k, v = (self.weight(name + "attn.Wqkv.weight") @ y).reshape(3, self.model.heads, HEAD, length)
        angles = rope_angles(self.model.theta[self.model.is_global(layer)], length)
        turn = self.round(np.cos(angles)) + 1j * self.round(np.sin(angles))
        q, k = ((part[:, :HEAD // 2] + 1j * part[:, HEAD // 2:]) * turn for part in (q, k))
        q, k = (np.concatenate([part.real, part.imag], axis=1) for part in (q, k))
        return self.mlp(layer, x + self.weight(name + "attn.Wo.weight") @ self.attend(q, k, v, bias))

    def head_layer(self, layer, x, bias):
        name, length = "head.layers.%d." % layer, x.shape[1]

        def dense(weight, offset, y):
            return self.weight(name + weight) @ y + self.weight(name + offset)[:, None]
        y = dense("self_attn.in_proj_weight", "self_attn.in_proj_bias", self.norm(x, name + "norm1", 1e-5))
        q, k, v = y.reshape(3, self.model.heads, HEAD, length)
        x = x + dense("self_attn.out_proj.weight", "self_attn.out_proj.bias", self.attend(q, k, v, bias))
        y = np.maximum(dense("linear1.weight", "linear1.bias", self.norm(x, name + "norm2", 1e-5)), 0)
        return x + dense("linear2.weight", "linear2.bias", y)

    def body(self, inputs):
        """Option logits [markers] and CLS column [channels] from the inputs of a body."""
        x, full, local, types, markers = (inputs[name][0, :, 0].astype(np.float64) for name in (
            "embeddings", "full_mask", "local_mask", "type_vectors", "marker_map"))
        x = self.norm(x, "encoder.embeddings.norm", self.model.epsilon)
        for layer in range(self.model.layers):
            x = self.layer(layer, x, full if self.model.is_global(layer) else local)
        x = self.norm(x, "encoder.final_norm", self.model.epsilon) + types
        for layer in range(self.model.head_layers):
            x = self.head_layer(layer, x, full)
        y = self.weight("scorer.1.weight") @ self.norm(x @ markers, "scorer.0", 1e-5)
        y = gelu(y + self.weight("scorer.1.bias")[:, None])
        return (self.weight("scorer.3.weight") @ y + self.weight("scorer.3.bias")[:, None])[0], x[:, 0]


def masks(model, length, valid):
    """Additive masks [key, query]: every valid key; valid keys near the query, or any for a padded query."""
    place = np.arange(length)
    key, query = place[:, None], place[None, :]
    near = (np.abs(key - query) <= model.radius) | (query >= valid)
    full = np.where((key < valid) & (query >= 0), 0.0, -1e4)
    return full, np.where((key < valid) & near, 0.0, -1e4)


def act_logits(model, logits, column):
    """The host's action head on the raw option logits and the CLS column."""
    p = softmax(np.asarray(logits, np.float64), 0)
    ranked, k = sorted(p, reverse=True) + [0.0], max(2, len(p))
    entropy = -sum(value * math.log(max(value, 1e-9)) for value in p) / math.log(k)
    features = np.concatenate([column, [ranked[0], ranked[0] - ranked[1], entropy, k / 255]])
    inner = gelu(model.double("act_head.0.weight") @ features + model.double("act_head.0.bias"))
    return model.double("act_head.2.weight") @ inner + model.double("act_head.2.bias")
