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


def weight(name, bits, groups):
    return {"name": name, "shape": [64, 64, 1, 1], "bits": bits, "groups": groups, "sse": 0.0125,
            "relative_error": 1e-5, "weighted_relative_error": 2e-5, "largest_error": 0.03125, "bytes_before": 8192,
            "bytes_after": 512 * bits + groups * (2 << bits)}


def palettized(mode="kmeans", bits=8, group_size=32, form="CoreML8"):
    """The manifest of a bundle whose weights are palettes; `bits` None: of each weight its own."""
    palette = {"parent_package_sha256": sha256("parent"), "mode": mode, "algorithm": "exact 1-D k-means",
               "bits": bits or "per weight", "group_size": group_size, "form": form,
               "target_error": None if bits else 0.02,
               "energy": {"fixture_sha256": sha256("f"), "cases": 2, "questions": 4, "tokens": 99,
                          "class": "native fp32 engine"} if mode == "weighted" else None,
               "weights": [weight("a", bits or 3, 64 // (group_size or 64)), weight("b", bits or 6, 1)],
               "skipped": [{"name": "c", "reason": "more than 256 distinct values"}], "weight_bytes_before": 16384,
               "weight_bytes_after": 9000, "package_bytes_before": 20000, "package_bytes_after": 12000,
               "gate": "not_measured" if bits else {
                   "passed": True, "probability_error": 0.01, "action_logit_error": 0.5, "executor": "interpreter",
                   "class": "executed by the interpreter", "reference_sha256": sha256("r"), "evaluated": 4,
                   "unvalidated": 0}, "seconds": 0.5}
    return {**manifest(False), "palette": palette}


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


def replaced(document, path, value):
    spoiled = copy.deepcopy(document)
    parent = spoiled
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return spoiled


def palette_seeds():
    """Every mode, width and group; every member of the palette lost, or of another kind."""
    for bits in (1, 2, 3, 4, 6, 8):
        for group_size in (None, 32):
            form = "CoreML8" if group_size or bits == 3 else "CoreML6"
            yield "bits_%d_%s" % (bits, group_size), palettized(bits=bits, group_size=group_size, form=form)
    for mode in ("uniform", "unique", "weighted", "median"):
        yield mode, palettized(mode)
    whole = palettized("weighted", None)
    yield "per_weight", whole
    members = [path for path in places(whole) if path[0] == "palette"]
    for at, path in enumerate(members):
        if "weights" not in path or path[:3] == ("palette", "weights", 0):
            yield "without_%d" % at, without(whole, path)
            yield "other_%d" % at, replaced(whole, path, [-1, "x", None, 4.5, {}][at % 5])


def seeds():
    documents = [("manifest", MANIFEST, manifest(False)), ("standalone", MANIFEST, manifest(True)),
                 ("fixture", FIXTURE, fixture()), ("reference", REFERENCE, reference())]
    for name, kind, document in documents:
        for fail_at in (0, 1, 3, 7):
            yield "%s_%d" % (name, fail_at), fail_at, kind, json.dumps(document)
    for name, kind, document in documents[0:1] + documents[2:]:
        for at, path in enumerate(list(places(document))[::2]):
            yield "%s_without_%d" % (name, at), 0, kind, json.dumps(without(document, path))
    for name, document in palette_seeds():
        yield "palette_" + name, 0, MANIFEST, json.dumps(document)
    for fail_at in (1, 4, 9):
        yield "palette_memory_%d" % fail_at, fail_at, MANIFEST, json.dumps(palettized())
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
