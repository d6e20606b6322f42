"""Write the tiny random checkpoint: a stress test, not a model.

    python3 make_tiny.py ../../tests/data/laya-tiny-random

Random weights with a few outlier channels (activations in the thousands), sharp attention (scores around 50), uneven norm
weights, action logits in the thousands, three actions, temperatures that must be clamped or replaced, and the older spelling
of the encoder configuration.  Every tensor is float16, the temperature buffer included.
"""
import os
import sys

import numpy as np

import export
import model as M
import tokenizer as tok

ENCODER = dict(
    architectures=["ModernBertModel"], model_type="modernbert", hidden_size=128, num_hidden_layers=5, num_attention_heads=2, intermediate_size=80,
    hidden_activation="gelu", max_position_embeddings=512, norm_eps=1e-5, norm_bias=False, attention_bias=False, mlp_bias=False,
    attention_dropout=0.0, embedding_dropout=0.0, mlp_dropout=0.0, global_attn_every_n_layers=3, local_attention=16, global_rope_theta=160000.0,
    local_rope_theta=10000.0, torch_dtype="float16")
AGENT = dict(encoder="laya-tiny-random", head_layers=1, max_len=256, head_max_len=96, max_prefixes=6, act_costs={"escalate": .5, "ask": .2},
             cost_wrong_act=3.0, amp_dtype="bf16", model_name="laya-tiny-random", temperature=[1.5, True, "2.5"],
             temperature_by_options={"choice:2": .1, "choice:3-5": 9.0, "choice:11+": "1.75", "score:6-10": 2})
OUTLIERS = (7, 93)


def main():
    folder = sys.argv[1]
    rng = np.random.default_rng(20)
    tokenizer = tok.load(os.path.join(folder, "tokenizer", "tokenizer.json"))
    special = tokenizer.special
    encoder = dict(ENCODER, vocab_size=max(max(tokenizer.vocab.values()), max(special.values())) + 1, pad_token_id=special["[PAD]"], cls_token_id=special["[CLS]"],
                   sep_token_id=special["[SEP]"], bos_token_id=special["[CLS]"], eos_token_id=special["[SEP]"])
    network = M.DecisionModel(encoder, AGENT["head_layers"], len(AGENT["act_costs"]) + 1)
    weights = {}
    for name, tensor in network.state_dict().items():
        shape = tuple(tensor.shape)
        if name == "temperature":
            weights[name] = np.array([1.0, 1.25, 1.5])
        elif len(shape) == 2:
            weights[name] = rng.normal(size=shape) * (1.0 if "emb" in name else shape[1] ** -.5)
        elif name.endswith("bias"):
            weights[name] = rng.normal(size=shape) * .1
        else:
            weights[name] = np.exp(rng.normal(size=shape) * .35)
        if "attn.Wqkv" in name:
            weights[name][:256] *= 2.6
        if "in_proj_weight" in name:
            weights[name][:256] *= 1.6
        if name.endswith(("attn_norm.weight", "mlp_norm.weight", "norm1.weight", "norm2.weight")):
            weights[name][list(OUTLIERS)] *= .05
        if name.endswith("mlp.Wo.weight"):
            layer = int(name.split(".")[2])
            if layer in (1, 3):
                weights[name][OUTLIERS[0]] *= 700.0
                weights[name][OUTLIERS[1]] *= -300.0
    weights["encoder.final_norm.weight"][list(OUTLIERS)] *= .3
    weights["scorer.3.weight"] *= 6.0
    weights["act_head.2.weight"] *= 900.0
    export.write_json(os.path.join(folder, "rl_agent_config.json"), AGENT)
    export.write_json(os.path.join(folder, "encoder", "config.json"), encoder)
    export.write_safetensors(os.path.join(folder, "model.safetensors"), [(name, array.astype(np.float16)) for name, array in weights.items()])
    print("model.safetensors", os.path.getsize(os.path.join(folder, "model.safetensors")), "bytes,", sum(array.size for array in weights.values()), "values")


if __name__ == "__main__":
    main()
