#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare layac's logits with an independent implementation: double_oracle.py --layac PATH [--repo PATH]

On every golden case of the two checkpoints in the repository:

- `layac predict --precision double --raw` against tools/demo-model/selfcheck.py, which shares no code with the library and
  computes the model in NumPy float64 (rows built by selfcheck too): option and action logits within 1e-9 of
  max(1, |x|). This is a check; a difference fails.
- `layac predict --precision float --raw` against the same and against the numbers that PyTorch recorded in float32. These
  are printed for the record.

Needs numpy. Exit code 1 when a check fails.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

TOLERANCE = 1e-9  # measured: 1e-13; float32 arithmetic anywhere would show as 1e-7
CHECKPOINTS = (("models/laya-demo", "tests/golden/laya-demo"),
               ("tests/data/laya-tiny-random", "tests/golden/laya-tiny-random"))


class Largest:
    """The largest difference seen, absolute and relative to max(1, |expected|), and where."""

    def __init__(self):
        self.absolute, self.relative, self.where = 0.0, 0.0, "-"

    def see(self, got, expected, where):
        got, expected = np.asarray(got, float), np.asarray(expected, float)
        if got.shape != expected.shape or not np.isfinite(got).all():
            raise SystemExit("%s: %s values instead of %s, or one is not finite" % (where, got.shape, expected.shape))
        gap = np.abs(got - expected)
        relative = float((gap / np.maximum(1, np.abs(expected))).max())
        self.absolute = max(self.absolute, float(gap.max()))
        if relative > self.relative:
            self.relative, self.where = relative, where

    def __str__(self):
        return "%.2e absolute, %.2e relative (%s)" % (self.absolute, self.relative, self.where)


def predict(layac, model, precision, state, questions):
    """The raw numbers of every question, as layac prints them."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, value in (("state", state), ("questions", questions)):
            paths[name] = os.path.join(folder, name + ".json")
            with open(paths[name], "w", encoding="utf-8") as handle:
                json.dump(value, handle, ensure_ascii=False)
        run = subprocess.run([layac, "predict", "--model", model, "--state-json-file", paths["state"], "--questions",
                              paths["questions"], "--precision", precision, "--raw"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if run.returncode:
        raise SystemExit("layac: exit code %d: %s" % (run.returncode, run.stderr.decode("utf-8", "replace").strip()))
    answers = json.loads(run.stdout.decode("utf-8"))["answers"]
    return {qid: answer["raw"] for qid, answer in answers.items()}


def check(selfcheck, layac, repo, checkpoint, golden):
    folder = os.path.join(repo, checkpoint)
    cases = os.path.join(repo, golden)
    model = selfcheck.Model(folder)
    tokenizer = selfcheck.Tokenizer(os.path.join(folder, "tokenizer", "tokenizer.json"))
    settings = selfcheck.load_json(folder, "tokenizer", "tokenizer_config.json")
    names = {key: settings[key + "_token"] for key in ("cls", "sep", "mask", "pad")}
    seen = {(pair, kind): Largest() for pair in ("double", "float", "pytorch") for kind in ("logits", "act_logits")}
    rows, index = 0, selfcheck.load_json(cases, "index.json")["cases"]
    for entry in index:
        case = selfcheck.load_json(cases, entry["name"] + ".json")
        double = predict(layac, folder, "double", case["state"], case["questions"])
        single = predict(layac, folder, "float", case["state"], case["questions"])
        for recorded in case["rows"]:
            qid = recorded["qid"]
            question, where = case["questions"][qid], entry["name"] + "/" + qid
            _, ids, markers, *_ = selfcheck.build_row(tokenizer, names, model.agent, case["state"], question)
            if len(ids) != double[qid]["input_tokens"]:
                raise SystemExit("%s: %d tokens, expected %d" % (where, double[qid]["input_tokens"], len(ids)))
            steps = model.run(ids, markers, question["type"])
            for kind, ours in (("logits", "logits"), ("act_logits", "action_logits")):
                seen["double", kind].see(double[qid][ours], steps[kind], where)
                seen["float", kind].see(single[qid][ours], steps[kind], where)
                seen["pytorch", kind].see(single[qid][ours], recorded[kind], where)
            rows += 1
    good = rows > 0 and all(seen["double", kind].relative <= TOLERANCE for kind in ("logits", "act_logits"))
    print("%s: %d cases, %d rows" % (checkpoint, len(index), rows))
    for pair, text in (("double", "layac double - NumPy float64"), ("float", "layac float - NumPy float64"),
                       ("pytorch", "layac float - PyTorch float32")):
        for kind in ("logits", "act_logits"):
            print("  %-30s %-10s %s" % (text, kind, seen[pair, kind]))
    print("  %s: double within %g" % ("good" if good else "BAD", TOLERANCE))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layac", required=True, help="the command to test")
    parser.add_argument("--repo", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."),
                        help="the source tree (default: the one of this script)")
    arguments = parser.parse_args()
    sys.path.insert(0, os.path.join(arguments.repo, "tools", "demo-model"))
    import selfcheck
    results = [check(selfcheck, arguments.layac, arguments.repo, *pair) for pair in CHECKPOINTS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
