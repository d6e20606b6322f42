#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record a reference file with upstream's Python package, for those who have a published checkpoint:

    record_upstream.py --model DIR --output FILE [--fixture FILE] [--name NAME] [--threads N]

Answers every case of the fixture with upstream's Agent on the CPU in float32 and writes what `layac reference` writes, with
the class "upstream PyTorch fp32": token rows, markers, unrounded logits and action logits, results, and the SHA-256 of
weights, configuration and fixture. `layac validate` takes either file.

Needs the package `laya` with its dependencies (torch, transformers, safetensors). DIR is a local checkpoint directory.
Upstream may rewrite DIR/tokenizer/tokenizer_config.json when it loads; give it a copy where that matters. FILE must not
exist; it is complete or absent. Exit codes: 0 success, 2 usage, 4 unusable checkpoint or fixture, 5 a file.
"""
import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile

REPO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
QTYPES = {"choice": 0, "score": 1, "noul": 2}


class Refused(Exception):
    """A problem for the user, with the exit code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


# ---------------------------------------------------------------- the fixture

def read_fixture(path):
    try:
        with open(path, encoding="utf-8") as handle:
            fixture = json.load(handle)
    except ValueError as problem:
        raise Refused(4, "%s: not JSON: %s" % (path, problem)) from problem
    if not isinstance(fixture, dict) or fixture.get("format") != "laya-fixture" or fixture.get("version") != 1:
        raise Refused(4, "%s: expected an object with \"format\": \"laya-fixture\" and \"version\": 1" % path)
    cases = fixture.get("cases")
    if not isinstance(cases, list) or not cases:
        raise Refused(4, "%s: cases: expected a list of at least one case" % path)
    for at, case in enumerate(cases):
        questions = case.get("questions") if isinstance(case, dict) else None
        if not isinstance(questions, dict) or not questions or case.get("state") is None or not case.get("name"):
            raise Refused(4, "%s: cases[%d]: expected name, state and questions" % (path, at))
        if any("option_order" in question for question in questions.values()):
            raise Refused(4, "%s: cases[%d]: option_order is not supported here" % (path, at))
    return cases


# ---------------------------------------------------------------- upstream

class Upstream:
    """Upstream's agent, with an eye on what goes into its network and what comes out."""

    def __init__(self, folder, threads):
        os.environ.pop("LAYA_CPU_AMP", None)  # upstream's switch to bfloat16
        try:
            import torch
            from laya import Agent
        except ImportError as problem:
            raise Refused(2, "upstream's package cannot be imported: %s; install laya, torch, transformers and safetensors"
                          % problem) from problem
        if threads:
            torch.set_num_threads(threads)
        self.agent = Agent(folder, device="cpu")
        kinds = {str(parameter.dtype) for parameter in self.agent.model.parameters()}
        if kinds != {"torch.float32"}:
            raise Refused(4, "%s: upstream computes with %s, expected torch.float32" % (folder, ", ".join(sorted(kinds))))
        self.calls = []
        self.agent.model.register_forward_hook(lambda module, inputs, outputs: self.calls.append((inputs, outputs)))

    def rows(self):
        """(ids, markers, qtype, logits, action logits) of every row since the last call, padding taken off."""
        rows = []
        for (ids, ids_mask, markers, markers_mask, qtypes), (logits, actions) in self.calls:
            for at in range(len(ids)):
                count, options = int(ids_mask[at].sum()), int(markers_mask[at].sum())
                rows.append((ids[at, :count].tolist(), markers[at, :options].tolist(), int(qtypes[at]),
                             logits[at, :options].float().tolist(), actions[at].float().tolist()))
        self.calls.clear()
        return rows

    def record(self, case):
        self.calls.clear()
        result = self.agent.system_one(case["state"], case["questions"])
        rows = self.rows()
        questions = case["questions"]
        if [row[2] for row in rows] != [QTYPES[question["type"]] for question in questions.values()]:
            raise Refused(4, "case '%s': upstream computed %d rows that do not match the %d questions"
                          % (case["name"], len(rows), len(questions)))
        if result["usage"]["input_tokens"] != sum(len(row[0]) for row in rows):
            raise Refused(4, "case '%s': upstream's input_tokens are not the tokens of its rows" % case["name"])
        items = [dict(id=name, ids=ids, markers=markers, qtype=qtype)
                 for name, (ids, markers, qtype, _, _) in zip(questions, rows)]
        return dict(name=case["name"], state=case["state"], questions=questions, items=items,
                    logits=[row[3] for row in rows], action_logits=[row[4] for row in rows],
                    result=dict(answers=result["answers"], usage=result["usage"]))


def versions():
    found = {"name": "laya"}
    for key, package in (("version", "laya"), ("torch", "torch"), ("transformers", "transformers")):
        try:
            found[key] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[key] = "unknown"
    found["device"] = "cpu"
    return found


# ---------------------------------------------------------------- the file

def write_new(path, text):
    """Write beside the target, then give it the name, which fails when there is such a file."""
    descriptor, temporary = tempfile.mkstemp(prefix=os.path.basename(path) + ".partial-", dir=os.path.dirname(path) or ".")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(temporary, 0o644)
        os.link(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def document(options, cases):
    weights = sha256(os.path.join(options.model, "model.safetensors"))
    config = sha256(os.path.join(options.model, "rl_agent_config.json"))
    upstream = Upstream(options.model, options.threads)
    recorded = []
    for at, case in enumerate(cases):
        print("%2d/%d %s" % (at + 1, len(cases), case["name"]), file=sys.stderr)
        recorded.append(upstream.record(case))
    name = options.name or os.path.basename(os.path.abspath(options.model)) or "model"
    model = dict(source_weights_sha256=weights, source_config_sha256=config, cases=recorded)
    return {"format": "laya-reference", "version": 1, "class": "upstream PyTorch fp32", "tool": versions(),
            "fixture_sha256": sha256(options.fixture), "models": {name: model}}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, metavar="DIR", help="local checkpoint directory")
    parser.add_argument("--output", required=True, metavar="FILE", help="file to make; it must not exist")
    parser.add_argument("--fixture", default=os.path.join(REPO, "fixtures", "questions.json"), metavar="FILE",
                        help="cases with states and questions (default: fixtures/questions.json)")
    parser.add_argument("--name", help="name of the model in the file (default: that of its directory)")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads (default: PyTorch's choice)")
    return parser.parse_args()


def main():
    options = parse_arguments()
    try:
        if os.path.lexists(options.output):
            raise Refused(5, "%s: exists already and is not overwritten; give another name or remove it" % options.output)
        if not os.path.isfile(os.path.join(options.model, "model.safetensors")):
            raise Refused(4, "%s: no model.safetensors there; expected a checkpoint directory" % options.model)
        text = json.dumps(document(options, read_fixture(options.fixture)), ensure_ascii=False, allow_nan=False)
        write_new(options.output, text + "\n")
    except Refused as problem:
        print("record_upstream: %s" % problem, file=sys.stderr)
        return problem.code
    except OSError as problem:
        print("record_upstream: %s: %s" % (problem.filename, problem.strerror), file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
