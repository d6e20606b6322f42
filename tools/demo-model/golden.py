"""Record golden outputs of a checkpoint folder with PyTorch in fp32.

    python3 golden.py demo ../../models/laya-demo ../../tests/golden/laya-demo
    python3 golden.py tiny ../../tests/data/laya-tiny-random ../../tests/golden/laya-tiny-random

One JSON file a case (fields in the README), an index.json, and for one short case a safetensors file with the tensor after
every step of the model.  Numbers are written with 9 significant digits, which identifies a float32.
"""
import json
import os
import sys

import numpy as np
import torch

import cases
import export
import model as M
import prompt
import tokenizer as tok


class Nine(float):
    """A float that prints with 9 significant digits."""

    def __repr__(self):
        return "%.9g" % self


def nine(values):
    return [Nine(value) for value in values]


def dump(value):
    """Compact JSON, UTF-8, with Nine floats kept short (json itself would call float.__repr__)."""
    if isinstance(value, Nine):
        text = repr(value)
        return text if any(mark in text for mark in ".en") else text + ".0"
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(str(key), ensure_ascii=False) + ":" + dump(item) for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


class Runner:
    def __init__(self, folder):
        self.network, self.config, self.encoder = export.load_checkpoint(folder)
        self.builder = prompt.Builder(tok.load(os.path.join(folder, "tokenizer", "tokenizer.json")), self.config)

    @torch.no_grad()
    def forward(self, rows, trace=None):
        batch = M.collate(rows, self.builder.pad)
        logits, cls = self.network(*batch, trace=trace)
        act = self.network.act(logits, batch[3], cls)
        return logits, act, batch

    def predict(self, state, questions):
        """The whole call: every question of one state in one padded batch."""
        state_ids = self.builder.state_ids(state)
        rows, answers = [], {}
        usage = dict(input_tokens=0, output_tokens=0, state_tokens=len(state_ids), state_tokens_dropped=0, truncated=False, truncated_questions=[])
        collided = {}
        for name, question in questions.items():
            row = self.builder.row(question, state_ids, isinstance(state, list))
            row.update(qid=name, qtype=prompt.QTYPES[question["type"]])
            rows.append(row)
            usage["input_tokens"] += len(row["input_ids"])
            usage["state_tokens_dropped"] = max(usage["state_tokens_dropped"], row["dropped"])
            if row["dropped"]:
                usage["truncated"] = True
                usage["truncated_questions"].append(name)
            if row["distinct"] < len(row["options"]):
                collided[name] = dict(total=len(row["options"]), distinct=row["distinct"], tokens_per_option=row["tokens_per_option"])
        logits, act, _ = self.forward(rows)
        for at, row in enumerate(rows):
            row["logits"] = logits[at, :len(row["markers"])].tolist()
            row["act_logits"] = act[at].tolist()
            answers[row["qid"]] = prompt.answer(questions[row["qid"]], row["logits"], row["act_logits"], self.config)
        if collided:
            usage["options"] = collided
        return dict(model="laya-rl-agent", answers=answers, usage=usage), rows

    def single_differences(self, rows):
        """Largest difference between the padded batch and each row alone."""
        worst = 0.0
        for row in rows:
            logits, act, _ = self.forward([row])
            worst = max(worst, float((logits[0] - torch.tensor(row["logits"])).abs().max()), float((act[0] - torch.tensor(row["act_logits"])).abs().max()))
        return worst


def record(runner, name, state, questions, about):
    result, rows = runner.predict(state, questions)
    fields = ("qid", "head_text", "options", "input_ids", "markers", "tokens_per_option")
    kept = [dict({field: row[field] for field in fields}, logits=nine(row["logits"]), act_logits=nine(row["act_logits"])) for row in rows]
    return dict(name=name, about=about, state=state, serialized_state=prompt.text_of(state), questions=questions, rows=kept, result=result), rows


def main():
    kind, folder, out = sys.argv[1:4]
    torch.set_num_threads(1)
    os.makedirs(out, exist_ok=True)
    for old in os.listdir(out):
        if old.endswith((".json", ".safetensors")):
            os.remove(os.path.join(out, old))
    runner = Runner(folder)
    index, worst = [], 0.0
    for name, about, state, questions in cases.build(kind, runner.builder):
        case, rows = record(runner, name, state, questions, about)
        worst = max(worst, runner.single_differences(rows))
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as handle:
            handle.write(dump(case) + "\n")
        index.append(dict(name=name, about=about, rows=len(rows), tokens=case["result"]["usage"]["input_tokens"]))
    name, state, questions = cases.traced(kind)
    row = runner.builder.row(list(questions.values())[0], runner.builder.state_ids(state), isinstance(state, list))
    row["qtype"] = prompt.QTYPES[list(questions.values())[0]["type"]]
    trace = {}
    logits, act, _ = runner.forward([row], trace)
    tensors = [(key, value[0].numpy()) for key, value in trace.items()]
    tensors += [("logits", logits[0].numpy()), ("act_logits", act[0].numpy()), ("input_ids", np.array(row["input_ids"], np.float32)), ("markers", np.array(row["markers"], np.float32))]
    export.write_safetensors(os.path.join(out, "trace.safetensors"), tensors)
    meta = dict(checkpoint=os.path.basename(os.path.normpath(folder)), torch=torch.__version__, precision="fp32, one thread, weights as stored (fp16)",
                batch_against_single=Nine(worst), trace=dict(case=name, file="trace.safetensors", tensors=sorted(key for key, _ in tensors)), cases=index)
    with open(os.path.join(out, "index.json"), "w", encoding="utf-8") as handle:
        handle.write(dump(meta) + "\n")
    print(len(index), "cases; batch against single rows: largest difference %.3g" % worst)


if __name__ == "__main__":
    main()
