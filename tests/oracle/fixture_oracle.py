#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check fixtures/questions.json with full-size tokenizers:

    fixture_oracle.py [--mmbert TOKENIZER.JSON] [--modernbert TOKENIZER.JSON] [--verbose]

The rows are built here, by Hugging Face's tokenizers and tools/demo-model/prompt.py, with the published limits of 1,024
tokens a row and 256 for question and options. The lengths must be as the fixture promises: each question of `long` fills
1,024 tokens, `twenty_options` has more than 96 and at most 192, every other row at most 96. Thus 59 of the 63 questions
fit 96 tokens, 60 fit 192, and 63 fit 1,024. Exit code 1 when they are not.
"""
import argparse
import json
import os
import sys

import tokenizers

REPO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(REPO, "tools", "demo-model"))
import prompt  # noqa: E402

LIMITS = {"max_len": 1024, "head_max_len": 256}
SPECIALS = {"mmbert": ("<bos>", "<eos>", "<mask>", "<pad>"), "modernbert": ("[CLS]", "[SEP]", "[MASK]", "[PAD]")}
FITTING = {96: 59, 192: 60, 1024: 63}
SHARES = {"many_questions": 20, "twenty_options": 1}  # questions of a case; 3 where it is not listed


class Tokenizer:
    """A tokenizer.json as prompt.Builder expects it."""

    def __init__(self, path, specials):
        self.own = tokenizers.Tokenizer.from_file(path)
        self.cls_token, self.sep_token, self.mask_token, self.pad_token = specials
        self.special = {token: self.own.token_to_id(token) for token in specials}

    def encode(self, text):
        return self.own.encode(text, add_special_tokens=False).ids


def expected(case, length):
    if case == "long":
        return length == 1024
    return 96 < length <= 192 if case == "twenty_options" else length <= 96


def check_structure(cases):
    names = [case["name"] for case in cases]
    faults = [] if len(names) == len(set(names)) == 16 else ["%d cases, %d names" % (len(names), len(set(names)))]
    for case in cases:
        kinds = [question["type"] for question in case["questions"].values()]
        if len(kinds) != SHARES.get(case["name"], 3):
            faults.append("%s: %d questions" % (case["name"], len(kinds)))
        if len(kinds) > 1 and set(kinds) != {"choice", "score", "noul"}:
            faults.append("%s: types %s" % (case["name"], kinds))
    return faults


def check_lengths(name, path, cases, verbose):
    builder = prompt.Builder(Tokenizer(path, SPECIALS[name]), LIMITS)
    faults, all_lengths = [], []
    for case in cases:
        state = builder.state_ids(case["state"])
        rows = [builder.row(question, state, isinstance(case["state"], list)) for question in case["questions"].values()]
        lengths = [len(row["input_ids"]) for row in rows]
        all_lengths += lengths
        if verbose:
            print("%-10s %-16s %s" % (name, case["name"], lengths))
        if not all(expected(case["name"], length) for length in lengths):
            faults.append("%s, %s: rows of %s tokens" % (name, case["name"], lengths))
        if (case["name"] == "long") != any(row["dropped"] for row in rows):
            faults.append("%s, %s: the state is cut, or is not" % (name, case["name"]))
    for limit, count in FITTING.items():
        fitting = sum(length <= limit for length in all_lengths)
        if fitting != count:
            faults.append("%s: %d questions fit %d tokens, expected %d" % (name, fitting, limit, count))
    print("%-10s %d questions, %d tokens, longest row but `long` and `twenty_options`: %d" %
          (name, len(all_lengths), sum(all_lengths), max(n for n in all_lengths if n <= 96)))
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mmbert", metavar="FILE")
    parser.add_argument("--modernbert", metavar="FILE")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with open(os.path.join(REPO, "fixtures", "questions.json"), encoding="utf-8") as handle:
        cases = json.load(handle)["cases"]
    faults = check_structure(cases)
    for name in SPECIALS:
        if getattr(options, name):
            faults += check_lengths(name, getattr(options, name), cases, options.verbose)
    for fault in faults:
        print("FAULT", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
