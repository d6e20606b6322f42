"""Re-read a checkpoint folder with an independent implementation and reproduce its golden cases.

    python3 selfcheck.py ../../models/laya-demo ../../tests/golden/laya-demo
    python3 selfcheck.py ../../tests/data/laya-tiny-random ../../tests/golden/laya-tiny-random

Shares no code with the other tools: its own tokenizers (plain "merge the best pair" loop, the splitting rule as a regular
expression), its own prompt building, and the model in NumPy float64, one row at a time without padding.
"""
import json
import math
import os
import re
import struct
import sys
import unicodedata

import numpy as np


# ---------------------------------------------------------------- files

def load_json(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as handle:
        return json.load(handle)


def load_tensors(path):
    raw = open(path, "rb").read()
    size = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:8 + size].decode("utf-8"))
    base, out, covered = 8 + size, {}, 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        kind = {"F16": "<f2", "F32": "<f4"}[entry["dtype"]]
        array = np.frombuffer(raw, kind, count=(end - begin) // int(kind[2]), offset=base + begin)
        out[name] = array.reshape(entry["shape"]).astype(np.float64)
        covered += end - begin
    assert base + covered == len(raw), "the data section has gaps"
    return out


# ---------------------------------------------------------------- tokenizers

WHITE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"


def classes(first):
    """A regular expression class of all characters whose category starts with the letter."""
    ranges, start = [], None
    for code in range(0x110001):
        inside = code < 0x110000 and unicodedata.category(chr(code))[0] == first
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append("\\U%08x-\\U%08x" % (start, code - 1))
            start = None
    return "".join(ranges)


class Tokenizer:
    def __init__(self, path):
        data = load_json(path)
        self.style = data["pre_tokenizer"]["type"]
        self.vocab = data["model"]["vocab"]
        self.rank = {tuple(pair): at for at, pair in enumerate(data["model"]["merges"])}
        self.added = sorted(data["added_tokens"], key=lambda entry: -len(entry["content"]))
        self.nfc = (data["normalizer"] or {}).get("type") == "NFC"
        if self.style == "ByteLevel":
            letters, numbers = classes("L"), classes("N")
            self.rule = re.compile("'s|'t|'re|'ve|'m|'ll|'d| ?[%s]+| ?[%s]+| ?[^%s%s%s]+|[%s]+(?![^%s])|[%s]+" % (letters, numbers, WHITE, letters, numbers, WHITE, WHITE, WHITE))
            plain = [byte for byte in range(256) if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174]
            others = [byte for byte in range(256) if byte not in plain]
            self.shown = {byte: chr(byte) for byte in plain}
            self.shown.update({byte: chr(256 + at) for at, byte in enumerate(others)})

    def id_of(self, content):
        return next(entry["id"] for entry in self.added if entry["content"] == content)

    def encode(self, text):
        if self.nfc:
            text = unicodedata.normalize("NFC", text)
        out, at, start = [], 0, 0
        while at < len(text):
            for entry in self.added:
                if text.startswith(entry["content"], at):
                    end = at
                    while entry["lstrip"] and end > start and re.match("[%s]" % WHITE, text[end - 1]):
                        end -= 1
                    out += self.plain(text[start:end]) + [entry["id"]]
                    at += len(entry["content"])
                    start = at
                    break
            else:
                at += 1
        return out + self.plain(text[start:])

    def plain(self, text):
        if not text:
            return []
        out = []
        if self.style == "Metaspace":
            text = text.replace(" ", "\u2581")
            if text[0] != "\u2581":
                text = "\u2581" + text
            for piece in text[1:].split("\u2581"):
                symbols = []
                for char in "\u2581" + piece:
                    symbols += [char] if char in self.vocab else ["<0x%02X>" % byte for byte in char.encode()]
                out += self.merge(symbols)
            return out
        for match in self.rule.finditer(text):
            out += self.merge([self.shown[byte] for byte in match.group().encode()])
        return out

    def merge(self, symbols):
        while True:
            best, where = None, None
            for at in range(len(symbols) - 1):
                rank = self.rank.get((symbols[at], symbols[at + 1]))
                if rank is not None and (best is None or rank < best):
                    best, where = rank, at
            if where is None:
                return [self.vocab[symbol] for symbol in symbols]
            symbols = symbols[:where] + [symbols[where] + symbols[where + 1]] + symbols[where + 2:]


# ---------------------------------------------------------------- prompt

def as_text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def option_texts(question):
    criteria = question.get("criteria")
    if question["type"] == "choice":
        if isinstance(criteria, list):
            return [str(label) for label in criteria]
        return [label + ("" if desc in (None, "") and not isinstance(desc, bool) else ": " + as_text(desc)) for label, desc in criteria.items()]
    if question["type"] == "score":
        return ["level " + str(at) + ": " + as_text(desc) for at, desc in enumerate(criteria)]
    found = {str(key).lower(): desc for key, desc in (criteria or {}).items() if desc not in (None, "")}
    labels = question.get("labels", {"false": "false", "true": "true"})
    return [labels["false"].strip() + ": " + as_text(found.get("false", "no, the statement does not hold")),
            labels["true"].strip() + ": " + as_text(found.get("true", "yes, the statement holds"))]


def build_row(tokenizer, names, config, state, question):
    limit, head_limit = config["max_len"], config["head_max_len"]
    clean = lambda text: text.replace(names["mask"], " ")
    cls, sep, mask = (tokenizer.id_of(names[key]) for key in ("cls", "sep", "mask"))
    head = tokenizer.encode(clean(question["type"] + " question: " + as_text(question["instructions"])))
    texts = option_texts(question)
    blocks = [[mask] + tokenizer.encode(clean(" " + text))[:48] for text in texts]
    left, share = head_limit - sum(len(block) for block in blocks), None
    if left < 16:
        share = max(4, (head_limit - 16) // len(blocks))
        blocks = [block[:share] for block in blocks]
        left = head_limit - sum(len(block) for block in blocks)
    ids, markers = [cls] + head[:max(8, left)] + [sep], []
    for block in blocks:
        markers.append(len(ids))
        ids = ids + block
    ids.append(sep)
    room = max(0, limit - 1 - len(ids))
    body = tokenizer.encode(clean(as_text(state)))
    dropped = max(0, len(body) - room)
    if dropped:
        body = body[dropped:] if isinstance(state, list) else body[:room]
    collision = dict(total=len(blocks), distinct=len(set(map(tuple, blocks))), tokens_per_option=share)
    return texts, (ids + body + [sep])[:limit], markers, dropped, len(body) + dropped, collision


# ---------------------------------------------------------------- model

ERF = np.vectorize(math.erf)


def gelu(x):
    return .5 * x * (1 + ERF(x / math.sqrt(2)))


def norm(x, weight, bias=0.0, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + eps) * weight + bias


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


class Model:
    def __init__(self, folder):
        self.agent = load_json(folder, "rl_agent_config.json")
        self.shape = load_json(folder, "encoder", "config.json")
        self.w = load_tensors(os.path.join(folder, "model.safetensors"))
        rope = self.shape.get("rope_parameters", {})
        if "full_attention" in rope:
            self.theta = {True: rope["full_attention"]["rope_theta"], False: rope["sliding_attention"]["rope_theta"]}
        else:
            self.theta = {True: self.shape["global_rope_theta"], False: self.shape["local_rope_theta"]}
        self.peak_score = self.peak_activation = 0.0

    def attend(self, q, k, v, allowed=None):
        size = 64
        out = np.empty_like(q)
        for start in range(0, q.shape[1], size):
            part = slice(start, start + size)
            scores = q[:, part] @ k[:, part].T / math.sqrt(size)
            self.peak_score = max(self.peak_score, np.abs(scores).max())
            if allowed is not None:
                scores = np.where(allowed, scores, -np.inf)
            out[:, part] = softmax(scores) @ v[:, part]
        return out

    def turn(self, x, theta):
        out = np.empty_like(x)
        angle = np.arange(len(x))[:, None] * theta ** (-2.0 * np.arange(32) / 64)
        for start in range(0, x.shape[1], 64):
            a, b = x[:, start:start + 32], x[:, start + 32:start + 64]
            out[:, start:start + 32] = a * np.cos(angle) - b * np.sin(angle)
            out[:, start + 32:start + 64] = b * np.cos(angle) + a * np.sin(angle)
        return out

    def run(self, ids, markers, kind):
        w, shape, steps = self.w, self.shape, {}
        width = shape["hidden_size"]
        h = norm(w["encoder.embeddings.tok_embeddings.weight"][ids], w["encoder.embeddings.norm.weight"], eps=shape["norm_eps"])
        steps["embeddings"] = h
        place = np.arange(len(ids))
        window = np.abs(place[:, None] - place[None, :]) <= shape["local_attention"] // 2
        for layer in range(shape["num_hidden_layers"]):
            name = "encoder.layers.%d." % layer
            everywhere = layer % shape["global_attn_every_n_layers"] == 0
            x = norm(h, w[name + "attn_norm.weight"], eps=shape["norm_eps"]) if layer else h
            q, k, v = np.split(x @ w[name + "attn.Wqkv.weight"].T, 3, axis=1)
            theta = self.theta[everywhere]
            mixed = self.attend(self.turn(q, theta), self.turn(k, theta), v, None if everywhere else window)
            h = h + mixed @ w[name + "attn.Wo.weight"].T
            u, gate = np.split(norm(h, w[name + "mlp_norm.weight"], eps=shape["norm_eps"]) @ w[name + "mlp.Wi.weight"].T, 2, axis=1)
            h = h + (gelu(u) * gate) @ w[name + "mlp.Wo.weight"].T
            self.peak_activation = max(self.peak_activation, np.abs(h).max())
            steps["encoder.layer.%d" % layer] = h
        h = steps["encoder.final_norm"] = norm(h, w["encoder.final_norm.weight"], eps=shape["norm_eps"])
        h = steps["head.input"] = h + w["type_emb.weight"][{"choice": 0, "score": 1, "noul": 2}[kind]]
        for layer in range(self.agent["head_layers"]):
            name = "head.layers.%d." % layer
            x = norm(h, w[name + "norm1.weight"], w[name + "norm1.bias"])
            q, k, v = np.split(x @ w[name + "self_attn.in_proj_weight"].T + w[name + "self_attn.in_proj_bias"], 3, axis=1)
            h = h + self.attend(q, k, v) @ w[name + "self_attn.out_proj.weight"].T + w[name + "self_attn.out_proj.bias"]
            x = norm(h, w[name + "norm2.weight"], w[name + "norm2.bias"])
            x = np.maximum(x @ w[name + "linear1.weight"].T + w[name + "linear1.bias"], 0)
            h = steps["head.layer.%d" % layer] = h + x @ w[name + "linear2.weight"].T + w[name + "linear2.bias"]
        marked = steps["scorer.input"] = h[markers]
        x = gelu(norm(marked, w["scorer.0.weight"], w["scorer.0.bias"]) @ w["scorer.1.weight"].T + w["scorer.1.bias"])
        logits = steps["logits"] = (x @ w["scorer.3.weight"].T + w["scorer.3.bias"])[:, 0]
        p = softmax(logits)
        k = max(2, len(p))
        ranked = sorted(p, reverse=True) + [0.0]
        entropy = -sum(value * math.log(max(value, 1e-9)) for value in p) / math.log(k)
        features = np.concatenate([h[0], [ranked[0], ranked[0] - ranked[1], entropy, k / 255]])
        hidden = gelu(w["act_head.0.weight"] @ features + w["act_head.0.bias"])
        steps["act_logits"] = w["act_head.2.weight"] @ hidden + w["act_head.2.bias"]
        assert h.shape[1] == width
        return steps


# ---------------------------------------------------------------- answers

def usable(value):
    if isinstance(value, bool):
        return 1.0
    try:
        value = float(value)
    except (TypeError, ValueError):
        return 1.0
    return min(max(value, .5), 5.0) if math.isfinite(value) else 1.0


def expected_answer(question, logits, act, agent):
    kind, k = question["type"], len(logits)
    group = kind + ":" + ("2" if k < 3 else "3-5" if k < 6 else "6-10" if k < 11 else "11+")
    table = agent.get("temperature_by_options", {})
    t = usable(table[group] if group in table else agent["temperature"][["choice", "score", "noul"].index(kind)])
    p = softmax(np.asarray(logits) / t)
    entropy = -sum(value * math.log(max(value, 1e-12)) for value in p)
    spread = 1.0 if k < 2 else min(1.0, max(0.0, 1 - entropy / math.log(k)))
    out = dict(type=kind, confidence=spread, answer_confidence=max(p), act=softmax(np.asarray(act))[0])
    if kind == "noul":
        out.update(noul=p[1], confidence=max(p[1], 1 - p[1]))
    elif kind == "score":
        out.update(score=float(p @ np.arange(k)), probabilities=dict(zip(map(str, range(k)), p)))
    else:
        labels = [str(label) for label in question["criteria"]]
        out.update(choice=labels[int(np.argmax(p))], probabilities=dict(zip(labels, p)))
    return out


def main():
    folder, goldens = sys.argv[1:3]
    model = Model(folder)
    tokenizer = Tokenizer(os.path.join(folder, "tokenizer", "tokenizer.json"))
    settings = load_json(folder, "tokenizer", "tokenizer_config.json")
    names = {key: settings[key + "_token"] for key in ("cls", "sep", "mask", "pad")}
    index = load_json(goldens, "index.json")
    worst = dict(logits=0.0, act_logits=0.0, act_relative=0.0, answers=0.0)
    rows = flips = 0
    for entry in index["cases"]:
        case = load_json(goldens, entry["name"] + ".json")
        assert case["serialized_state"] == as_text(case["state"]), entry["name"]
        dropped, total, count, collisions = [], 0, 0, {}
        for row in case["rows"]:
            question = case["questions"][row["qid"]]
            texts, ids, markers, lost, count, collision = build_row(tokenizer, names, model.agent, case["state"], question)
            if collision["distinct"] < collision["total"]:
                collisions[row["qid"]] = collision
            assert row["tokens_per_option"] == collision["tokens_per_option"], entry["name"]
            assert texts == row["options"], (entry["name"], texts)
            assert ids == row["input_ids"], (entry["name"], row["qid"])
            assert markers == row["markers"], entry["name"]
            total += len(ids)
            dropped.append(lost)
            steps = model.run(ids, markers, question["type"])
            worst["logits"] = max(worst["logits"], np.abs(steps["logits"] - row["logits"]).max())
            act_gap = np.abs(steps["act_logits"] - row["act_logits"])
            worst["act_logits"] = max(worst["act_logits"], act_gap.max())
            worst["act_relative"] = max(worst["act_relative"], (act_gap / np.maximum(1, np.abs(steps["act_logits"]))).max())
            got, want = expected_answer(question, steps["logits"], steps["act_logits"], model.agent), case["result"]["answers"][row["qid"]]
            pairs = [(got[key], want[key]) for key in ("confidence", "answer_confidence", "noul", "score") if key in want]
            pairs += [(got["act"], want["action"]["act_probability"])]
            pairs += [(got["probabilities"][label], value) for label, value in want.get("probabilities", {}).items()]
            worst["answers"] = max([worst["answers"]] + [abs(a - b) for a, b in pairs])
            flips += want.get("choice", got.get("choice")) != got.get("choice")
            rows += 1
        usage = case["result"]["usage"]
        assert usage["input_tokens"] == total and usage["state_tokens"] == count, entry["name"]
        assert usage["state_tokens_dropped"] == max(dropped) and usage["truncated"] == any(dropped), entry["name"]
        assert usage["truncated_questions"] == [row["qid"] for row, lost in zip(case["rows"], dropped) if lost], entry["name"]
        assert usage.get("options", {}) == collisions, entry["name"]
    trace = load_tensors(os.path.join(goldens, index["trace"]["file"]))
    kind = "choice"
    steps = model.run(trace["input_ids"].astype(int), trace["markers"].astype(int), kind)
    for name in index["trace"]["tensors"]:
        if name in steps:
            gap = np.abs(steps[name] - trace[name]).max()
            print("  %-22s shape %-12s largest value %10.4f  largest difference %.2e" % (name, trace[name].shape, np.abs(trace[name]).max(), gap))
    print("%d cases, %d rows: token ids, markers, option texts and usage are equal" % (len(index["cases"]), rows))
    print("largest differences: logits %.3g, act logits %.3g (relative %.3g), rounded answers %.3g; different choices: %d"
          % (worst["logits"], worst["act_logits"], worst["act_relative"], worst["answers"], flips))
    print("largest attention score %.1f, largest encoder activation %.1f" % (model.peak_score, model.peak_activation))


if __name__ == "__main__":
    main()
