#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seeds of the fuzz target `bundle`: bundle_seeds.py [FOLDER]     (fuzz/corpus/bundle)

Each seed is the allocation that fails, which file it is (0 manifest.json, 1 fixture, 2 reference), and its text. No
code of this project is used. Other files of the folder are left as they are.
"""
import copy
import hashlib
import json
import os
import sys

MANIFEST, FIXTURE, REFERENCE = range(3)
PACKAGE = ["Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin", "Manifest.json"]
COPIES = {"rl_agent_config.json": "config", "encoder/config.json": "encoder_config",
          "tokenizer/tokenizer.json": "tokenizer", "tokenizer/tokenizer_config.json": "tokenizer_config"}


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def manifest(standalone):
    files = {"model.mlpackage/" + path: {"sha256": sha256(path), "bytes": 100} for path in PACKAGE}
    lines = "".join("%s  %s\n" % (sha256(path), path) for path in PACKAGE)
    source = {name + "_sha256": sha256(name) for name in ("weights", *COPIES.values())}
    if standalone:
        files["host_weights.safetensors"] = {"sha256": sha256("host"), "bytes": 9}
        for path, name in COPIES.items():
            files[path] = {"sha256": sha256(name), "bytes": 7}
    return {"format": "laya-ane-research", "version": 1, "kind": "body", "graph": "lean", "precision": "fp16",
            "shape": {"batch": 1, "length": 96, "options": 32}, "package": "model.mlpackage",
            "package_sha256": sha256(lines), "source": {"directory": None if standalone else "/checkpoint", **source},
            "files": files, "host": {"by": "standalone" if standalone else "reference"}, "operations": {"total": 9}}


def case(name):
    return {"name": name, "state": {"a": [1, "\u00e4"]},
            "questions": {"p": {"type": "score"}, "q": {"type": "noul"}}}


def fixture():
    return {"format": "laya-fixture", "version": 1, "cases": [case("one"), case("two")]}


def reference():
    recorded = {**case("one"), "items": [{"id": "p", "ids": [5, 6, 7, 8], "markers": [0, 3], "qtype": 1},
                                         {"id": "q", "ids": [9], "markers": [0], "qtype": 2}],
                "logits": [[1.5, -2], [1e-3]], "action_logits": [[7, 8], [9.25, 10]],
                "result": {"answers": {"p": {"score": 0.25}, "q": {}}, "usage": {"input_tokens": 5}}}
    model = {"source_weights_sha256": sha256("w"), "source_config_sha256": sha256("c"), "cases": [recorded]}
    return {"format": "laya-reference", "version": 1, "class": "native fp32 engine", "fixture_sha256": sha256("f"),
            "models": {"m": model}}


def places(value, path=()):
    """The path of every member and element."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield path + (key,)
        if isinstance(item, (dict, list)):
            yield from places(item, path + (key,))


def without(document, path):
    spoiled = copy.deepcopy(document)
    parent = spoiled
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return spoiled


def seeds():
    documents = [("manifest", MANIFEST, manifest(False)), ("standalone", MANIFEST, manifest(True)),
                 ("fixture", FIXTURE, fixture()), ("reference", REFERENCE, reference())]
    for name, kind, document in documents:
        for fail_at in (0, 1, 3, 7):
            yield "%s_%d" % (name, fail_at), fail_at, kind, json.dumps(document)
    for name, kind, document in documents[0:1] + documents[2:]:
        for at, path in enumerate(list(places(document))[::2]):
            yield "%s_without_%d" % (name, at), 0, kind, json.dumps(without(document, path))
    for kind in range(3):
        yield "empty_%d" % kind, 0, kind, ""
        yield "list_%d" % kind, 0, kind, "[1]"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "corpus", "bundle")
    os.makedirs(folder, exist_ok=True)
    for name, fail_at, kind, text in seeds():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes([fail_at, kind]) + text.encode())


if __name__ == "__main__":
    main()
