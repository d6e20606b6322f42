"""Record the layout test model: tests/golden/layout.

    python3 record.py ../../tests/golden/layout

The encoder is ModernBertModel of transformers (pip install torch==2.2.2 "numpy<2" transformers==4.49.0), with its
explicit ("eager") attention or with PyTorch's scaled_dot_product_attention ("sdpa"); the decision head is that of
../demo-model/model.py, whose attention is PyTorch's MultiheadAttention, with weights (explicit) or without (SDPA).
Both are run in float32 and in float64 (where the tables of RoPE stay float32). Nothing of laya.c takes part.

model.safetensors          all tensors but the next ones, every value an fp16 value
norm_biases.safetensors    biases of the encoder's norms
cases.json                 shapes, variants of the configuration, token rows, outputs
"""
import json
import math
import os
import sys
import unittest.mock

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "demo-model"))
import model as M  # noqa: E402

VOCABULARY, WIDTH, INNER, LAYERS, HEADS, WINDOW, LENGTH, ACTIONS = 40, 32, 48, 3, 4, 4, 17, 3
HEAD_LAYERS = 2
PADDING = (0, 7, 39)  # ids that fill a row up to LENGTH; outputs may not depend on them

# Token rows: every length as a question of every type, 0 choice, 1 score, 2 noul.
LENGTHS = [(17, [3, 6, 9, 16]), (12, [2, 4, 5, 7, 11]), (7, [1, 6])]  # tokens, positions of the markers
VARIANTS = [
    {"name": "base", "norm_eps": 3e-4, "global_theta": 100.0, "local_theta": 10000.0},
    {"name": "other_bases", "norm_eps": 2e-2, "global_theta": 20000.0, "local_theta": 30.0},
    {"name": "one_base", "norm_eps": 3e-4, "global_theta": 10000.0, "local_theta": 10000.0},
    {"name": "published_bases", "norm_eps": 1e-5, "global_theta": 160000.0, "local_theta": 160000.0},
    {"name": "alternating", "norm_eps": 3e-4, "global_theta": 1000.0, "local_theta": 100.0, "every": 2,
     "head_heads": 4},
]


def make_state():
    """Weights that make every part matter: peaked attention, uneven gains, large biases."""
    generator = torch.Generator().manual_seed(28)

    def normal(shape, mean, deviation):
        return (mean + deviation * torch.randn(shape, generator=generator)).half().float()

    state = {}
    for name, tensor in sorted(build(VARIANTS[0], "eager").state_dict().items()):
        shape = tuple(tensor.shape)
        if name == "temperature":
            state[name] = torch.ones(3)
        elif "norm" in name or name.startswith("scorer.0"):
            state[name] = normal(shape, 1.0, 0.4) if name.endswith("weight") else normal(shape, 0.0, 0.4)
        elif len(shape) == 1:
            state[name] = normal(shape, 0.0, 0.3)
        elif "Wqkv" in name or "in_proj" in name:
            state[name] = normal(shape, 0.0, 1.6 * WIDTH ** -0.5)
        else:
            state[name] = normal(shape, 0.0, 1.0 if "emb" in name else shape[1] ** -0.5)
    return state


def build(variant, attention):
    config = transformers.ModernBertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, local_attention=WINDOW, norm_eps=variant["norm_eps"], norm_bias=True,
        global_rope_theta=variant["global_theta"], local_rope_theta=variant["local_theta"],
        global_attn_every_n_layers=variant.get("every", 3), max_position_embeddings=64, hidden_activation="gelu",
        attention_bias=False, mlp_bias=False, pad_token_id=0, bos_token_id=2, eos_token_id=1, cls_token_id=2,
        sep_token_id=1, reference_compile=False, attn_implementation=attention)
    network = M.DecisionModel({**config.to_dict(), "hidden_size": WIDTH}, HEAD_LAYERS, ACTIONS)
    network.encoder = transformers.ModernBertModel(config)
    for layer in network.head.layers:
        heads = variant.get("head_heads", 1)
        layer.self_attn.num_heads, layer.self_attn.head_dim = heads, WIDTH // heads
    return network.eval()


@torch.no_grad()
def forward(network, explicit, row, padding):
    """Outputs of one row that is filled up to LENGTH."""
    count = row["tokens"]
    ids = torch.tensor([row["ids"] + [padding] * (LENGTH - count)])
    mask = torch.arange(LENGTH)[None, :] < count
    h = network.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    h = h + network.type_emb.weight[row["type"]]
    for layer in network.head.layers:
        x = layer.norm1(h)
        h = h + layer.self_attn(x, x, x, key_padding_mask=~mask, need_weights=explicit)[0]
        h = h + layer.linear2(F.relu(layer.linear1(layer.norm2(h))))
    logits = network.scorer(h[:, row["markers"]]).squeeze(-1)
    actions = network.act(logits, torch.ones_like(logits, dtype=torch.bool), h[:, 0])
    return {"logits": logits[0].tolist(), "cls": h[0, 0].tolist(), "actions": actions[0].tolist()}


def make_rows():
    generator = torch.Generator().manual_seed(17)
    rows = []
    for tokens, markers in LENGTHS:
        ids = [2] + torch.randint(3, VOCABULARY, (tokens - 1,), generator=generator).tolist()
        rows += [{"type": type, "tokens": tokens, "markers": markers, "ids": ids} for type in range(3)]
    return rows


def softmax(x, dim, dtype=None):
    """Of the type of x: transformers asks for float32, in which the mask's finfo(float64).min would be infinite."""
    return torch.softmax(x, dim)


def gap(left, right):
    differences = [abs(a - b) for key in left for a, b in zip(left[key], right[key])]
    if not all(map(math.isfinite, differences)):
        raise ArithmeticError("an output is not finite")
    return max(differences)


def record(variant, state, rows, at, worst):
    row = rows[at]
    outputs = {}
    for name, attention in (("explicit", "eager"), ("sdpa", "sdpa")):
        network = build(variant, attention)
        network.load_state_dict(state)
        for dtype in (torch.float32, torch.float64):
            network.to(dtype)
            with unittest.mock.patch("torch.nn.functional.softmax", softmax):
                runs = [forward(network, name == "explicit", row, padding) for padding in PADDING]
            worst["padding"] = max(worst["padding"], *(gap(runs[0], run) for run in runs))
            outputs[name + ("32" if dtype == torch.float32 else "64")] = runs[0]
    worst["precision"] = max(worst["precision"], gap(outputs["explicit32"], outputs["explicit64"]))
    worst["oracles"] = max(worst["oracles"], gap(outputs["explicit64"], outputs["sdpa64"]))
    digits = {"32": "%.9g", "64": "%.12g"}
    return {"row": at, **{key: {part: [float(digits[key[-2:]] % value) for value in values]
                                         for part, values in output.items()} for key, output in outputs.items()}}


def main(folder):
    torch.set_num_threads(1)
    state = make_state()
    rows = make_rows()
    worst = {"padding": 0.0, "precision": 0.0, "oracles": 0.0}
    variants = []
    for variant in VARIANTS:  # the first with every row, the others with one of each length and type
        chosen = range(len(rows)) if not variants else range(0, len(rows), 4)
        variants.append({"every": 3, "head_heads": 1, **variant,
                         "cases": [record(variant, state, rows, at, worst) for at in chosen]})
    document = {"made_with": {"torch": torch.__version__, "transformers": transformers.__version__},
                "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": INNER, "layers": LAYERS,
                "heads": HEADS, "local_attention": WINDOW, "head_layers": HEAD_LAYERS, "actions": ACTIONS,
                "length": LENGTH, "rows": rows, "variants": variants}
    biases = {name for name in state if name.startswith("encoder.") and name.endswith("norm.bias")}
    with open(os.path.join(folder, "cases.json"), "w") as out:
        json.dump(document, out, separators=(",", ":"))
        out.write("\n")
    half = {name: tensor.half() for name, tensor in state.items()}
    save_file({name: half[name] for name in half if name not in biases}, os.path.join(folder, "model.safetensors"))
    save_file({name: half[name] for name in biases}, os.path.join(folder, "norm_biases.safetensors"))
    for name in ("model.safetensors", "norm_biases.safetensors"):
        os.chmod(os.path.join(folder, name), 0o644)
    print("largest differences:", worst)
    if worst["padding"] != 0 or worst["precision"] > 1e-5 or worst["oracles"] > 1e-12:
        sys.exit("the oracles disagree")


if __name__ == "__main__":
    main(sys.argv[1])
