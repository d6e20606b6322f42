#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check packages that `layac export` writes with coremltools and NumPy, without a Mac.

    coreml_oracle.py --layac PATH --make-checkpoint PATH --data FOLDER [--repo PATH] [--only REGEX]

For kinds body, layer and mlp, both graphs, both precisions and the checkpoints demo, tiny (in the repository) and
multilingual, large (full-size layers, random weights, made in FOLDER):

1. coremltools opens the package, finds the weights, infers the type of every operation again.
2. Names, interface and the weight file's header, which coremltools does not look at; manifest.json.
3. Operations by kind are those that the architecture gives (coreml_checkpoint.expected_histogram).
4. Every constant equals its checkpoint tensor to the last bit; rotary tables equal float64 tables, rounded.
5. `layac inspect` counts the same and `layac inspect --verify` passes.
6. The program, run by coreml_evaluator, gives what it must: for demo and tiny the option logits and, from the CLS
   column, the action logits that PyTorch recorded in the golden cases; for full-size shapes and the small kinds the
   values of a NumPy float64 implementation, and the layer outputs that PyTorch recorded.

7. What coremltools writes of the loaded program has no difference for `layac inspect --diff`.

Then packages that coremltools itself writes are read by layac (coreml_foreign.py). Exit code 1 when anything fails.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # the work is spread over processes

import argparse  # noqa: E402
import collections  # noqa: E402
import concurrent.futures  # noqa: E402
import contextlib  # noqa: E402
import gc  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import multiprocessing  # noqa: E402
import re  # noqa: E402
import resource  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402

import numpy as np  # noqa: E402

import coreml_checkpoint as reference  # noqa: E402
import coreml_foreign  # noqa: E402
from coreml_constants import check_constants  # noqa: E402
from coreml_evaluator import Evaluator  # noqa: E402
from coreml_package import Package  # noqa: E402

REPOSITORY = {"demo": ("models/laya-demo", "tests/golden/laya-demo"),
              "tiny": ("tests/data/laya-tiny-random", "tests/golden/laya-tiny-random")}
MADE = {"multilingual": "22,768,1152,4096,2", "large": "28,1024,2624,4096,2"}  # the vocabulary does not enter a body
STUDY = {"multilingual": 6390, "large": 10594}
TYPES = {"fp16": np.float16, "fp32": np.float32}

# Largest differences, of max(1, |x|); the arithmetic is float64.
# Against PyTorch's recordings: its float32 arithmetic, and in fp16 packages the rounding of the rotary tables.
GOLDEN = {("demo", "fp32"): 1e-5, ("demo", "fp16"): 5e-3, ("tiny", "fp32"): 1e-4, ("tiny", "fp16"): 2e-2}
# Against NumPy with the same constants: the epsilon of batch_norm (per-head), and weights that become subnormal when
# 1 / sqrt(64) is folded into them (lean, fp16).
COMPUTED = {("per-head", "fp32"): 1e-6, ("per-head", "fp16"): 1e-6, ("lean", "fp32"): 1e-9, ("lean", "fp16"): 3e-5}

Task = collections.namedtuple("Task", "checkpoint kind graph precision length markers layer")


def name_of(task):
    text = "%s-%s-%s-%s-L%d" % (task.checkpoint, task.kind, task.graph, task.precision, task.length)
    return text + ("" if task.markers == 32 else "-M%d" % task.markers) + ("-N%d" % task.layer if task.layer else "")


def label(task):
    return "coremltools-" + task if isinstance(task, str) else name_of(task)


def is_heavy(task):
    """coremltools needs 3 GiB to load it: one at a time."""
    return not isinstance(task, str) and (task.checkpoint, task.kind, task.precision) == ("large", "body", "fp32")


def spread(tasks):
    """The same tasks, heavy ones apart from each other."""
    heavy, others = [task for task in tasks if is_heavy(task)], [task for task in tasks if not is_heavy(task)]
    for at, task in enumerate(heavy):
        others.insert(6 * at, task)
    return others


def all_tasks():
    """Large packages first: they take longest."""
    tasks = []

    def add(checkpoint, kind, lengths, layers=(0,), markers=32):
        tasks.extend(Task(checkpoint, kind, graph, precision, length, markers, layer)
                     for precision in ("fp32", "fp16") for graph in ("per-head", "lean")
                     for length in lengths for layer in layers)
    for checkpoint in ("large", "multilingual"):
        add(checkpoint, "body", (96, 97))
        add(checkpoint, "layer", (96, 192), (1,))
        add(checkpoint, "mlp", (96, 192), (1,))
    for checkpoint, longest in (("demo", 512), ("tiny", 256)):
        add(checkpoint, "body", (longest,), markers=64)
        add(checkpoint, "body", (16, 96, 163))
        add(checkpoint, "body", (97,), markers=5)
        add(checkpoint, "layer", (61, 96), (0, 1, 3))
        add(checkpoint, "mlp", (61, 96), (0, 2))
    return tasks


class Largest:
    """The largest difference seen."""

    def __init__(self):
        self.value = 0.0

    def see(self, got, expected):
        got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
        if got.shape != expected.shape or not np.isfinite(got).all():
            raise ValueError("%s values instead of %s, or one is not finite" % (got.shape, expected.shape))
        self.value = max(self.value, float((np.abs(got - expected) / np.maximum(1, np.abs(expected))).max()))

    def within(self, bound, what):
        if not self.value <= bound:
            raise ValueError("%s: %.2e away, at most %.0e is expected" % (what, self.value, bound))
        return "%s %.1e" % (what, self.value)


# ---------------------------------------------------------------- form

def check_interface(package, model, task):
    d, length = model.hidden, task.length
    hidden, mask = [1, d, 1, length], [1, length, 1, length]
    if task.kind == "body":
        inputs = {"embeddings": hidden, "full_mask": mask, "local_mask": mask, "type_vectors": [1, d, 1, 1],
                  "marker_map": [1, length, 1, task.markers]}
        outputs = {"option_logits": [1, 1, 1, task.markers], "cls_column": [1, d, 1, 1]}
    else:
        inputs, outputs = {"hidden": hidden}, {"hidden_out": hidden}
        if task.kind == "layer":
            inputs["full_mask" if model.is_global(task.layer) else "local_mask"] = mask
    expected = tuple({name: (task.precision, shape) for name, shape in table.items()} for table in (inputs, outputs))
    got = package.features()
    if got != expected or [list(table) for table in got] != [list(table) for table in expected]:
        raise ValueError("inputs and outputs %s, expected %s" % (got, expected))
    version = {"fp16": 7, "fp32": 6}[task.precision]
    if package.spec.specificationVersion != version:
        raise ValueError("specification version %d, expected %d" % (package.spec.specificationVersion, version))
    for op in package.program.functions["main"].operations:
        if any(len(variable.shape) > 4 for variable in op.outputs):
            raise ValueError("'%s' has more than four dimensions" % op.name)


def check_counts(package, model, task):
    counts = package.histogram()
    del counts["const"]
    for name in ("slice_by_index", "slice_by_size"):
        counts["slice"] += counts.pop(name, 0)
    counts, expected = +counts, reference.expected_histogram(model, task.graph, task.kind, task.layer)
    if counts != expected:
        raise ValueError("too many %s, too few %s" % (dict(counts - expected), dict(expected - counts)))
    total = sum(counts.values())
    if task.kind == "body" and task.graph == "per-head" and total != STUDY.get(task.checkpoint, total):
        raise ValueError("%d operations, the study has %d" % (total, STUDY[task.checkpoint]))
    if task.kind == "body" and task.graph == "lean" and task.checkpoint == "multilingual" and total > 600:
        raise ValueError("%d operations, at most 600 are allowed" % total)
    return "%d operations" % total


def check_weights(package, model, task):
    events = reference.expected_constants(model, task.kind, task.layer)
    used = check_constants(package.program, model, events, task.graph, TYPES[task.precision], task.length)
    if task.kind == "body" and used != model.body_tensors():
        raise ValueError("tensors left out: %s" % sorted(model.body_tensors() - used))
    return "%d tensors" % len(used)


def sha256(path):
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def check_manifest(output, package, folder, task):
    """manifest.json says what is there. Hashes of large files are taken as they are."""
    with open(os.path.join(output, "manifest.json"), encoding="utf-8") as handle:
        manifest = json.load(handle)
    body = task.kind == "body"
    expected = {"kind": task.kind, "graph": task.graph, "precision": task.precision,
                "shape": {"batch": 1, "length": task.length, "options": task.markers if body else None},
                "layer": None if body else task.layer, "specification_version": package.spec.specificationVersion}
    counts = package.histogram()
    del counts["const"]
    expected["operations"] = {"total": sum(counts.values()), "constants": package.written()["main"]["const"],
                              "constexpr": 0, "by_kind": dict(counts)}
    for key, value in expected.items():
        if manifest[key] != value:
            raise ValueError("manifest.json: %s is %s, expected %s" % (key, manifest[key], value))
    files = {path: (os.path.join(output, path), entry["sha256"]) for path, entry in manifest["files"].items()}
    present = {os.path.relpath(os.path.join(place, name), output) for place, _, names in os.walk(output)
               for name in names}
    if present != set(files) | {"manifest.json"}:
        raise ValueError("manifest.json: files %s, there are %s" % (sorted(files), sorted(present)))
    for key, name in (("weights", "model.safetensors"), ("config", "rl_agent_config.json"),
                      ("encoder_config", "encoder/config.json"), ("tokenizer", "tokenizer/tokenizer.json"),
                      ("tokenizer_config", "tokenizer/tokenizer_config.json")):
        files["source " + name] = (os.path.join(folder, name), manifest["source"][key + "_sha256"])
    for name, (path, digest) in files.items():
        size = os.path.getsize(path)
        stated = manifest["files"].get(name, {"bytes": size})["bytes"]
        if stated != size or (size < 2 ** 26 and sha256(path) != digest):
            raise ValueError("manifest.json: %s has another hash or size" % name)


# ---------------------------------------------------------------- numbers

def bc1s(array):
    """[a, b] as [1, a, 1, b]"""
    return array[None, :, None, :]


def body_inputs(model, task, ids, markers, kind, rng):
    """What a host gives to the body; columns beyond the tokens are noise, which the masks must keep out."""
    embeddings = rng.standard_normal((model.hidden, task.length)) * 3
    embeddings[:, :len(ids)] = model.tensor("encoder.embeddings.tok_embeddings.weight")[ids].astype(np.float64).T
    selector = np.zeros((task.length, task.markers))
    selector[markers, np.arange(len(markers))] = 1
    full, local = reference.masks(model, task.length, len(ids))
    row = model.double("type_emb.weight")[{"choice": 0, "score": 1, "noul": 2}[kind]]
    return {"embeddings": bc1s(embeddings), "full_mask": bc1s(full), "local_mask": bc1s(local),
            "type_vectors": row[None, :, None, None], "marker_map": bc1s(selector)}


def golden_rows(folder):
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as handle:
        index = json.load(handle)
    for entry in index["cases"]:
        with open(os.path.join(folder, entry["name"] + ".json"), encoding="utf-8") as handle:
            case = json.load(handle)
        for row in case["rows"]:
            yield row, case["questions"][row["qid"]]["type"]


def read_trace(folder):
    """The traced case: values after every layer, as [positions, channels]."""
    return reference.Tensors(os.path.join(folder, "trace.safetensors"))


def check_golden(program, model, task, folder):
    """All recorded rows that fit this package and no shorter one; some for a package with few marker slots."""
    shorter = [other.length for other in all_tasks() if other.checkpoint == task.checkpoint and other.kind == "body"
               and other.markers == 32 and other.length < task.length]
    rows, logits, actions, rng = 0, Largest(), Largest(), np.random.default_rng(task.length)
    evaluator = Evaluator(program)
    for row, kind in golden_rows(folder):
        ids, markers = row["input_ids"], row["markers"]
        if len(ids) > task.length or len(markers) > task.markers or (rows == 10 and task.markers < 32):
            continue
        if task.markers >= 32 and len(markers) <= 32 and len(ids) <= max(shorter, default=0):
            continue
        out = evaluator.run(body_inputs(model, task, ids, markers, kind, rng))
        got = out["option_logits"][0, 0, 0, :len(markers)]
        logits.see(got, row["logits"])
        actions.see(reference.act_logits(model, got, out["cls_column"][0, :, 0, 0]), row["act_logits"])
        rows += 1
    if not rows and task.length > 16:
        raise ValueError("no recorded row fits")
    bound = GOLDEN[task.checkpoint, task.precision]
    return "PyTorch's %d rows: %s, %s" % (rows, logits.within(bound, "logits"), actions.within(bound, "action logits"))


def check_cls(program, model, task, folder):
    """The CLS column of the traced case."""
    trace, column, logits = read_trace(folder), Largest(), Largest()
    ids = trace.tensor("input_ids").astype(int)
    if len(ids) > task.length:
        return "trace does not fit"
    inputs = body_inputs(model, task, ids, trace.tensor("markers").astype(int), "choice", np.random.default_rng(0))
    out = Evaluator(program).run(inputs)
    column.see(out["cls_column"][0, :, 0, 0], trace.tensor("head.layer.%d" % (model.head_layers - 1))[0])
    logits.see(out["option_logits"][0, 0, 0, :3], trace.tensor("logits"))
    return column.within(GOLDEN[task.checkpoint, task.precision], "trace's CLS column")


def check_random_body(program, model, task):
    rng, column, logits = np.random.default_rng(task.length), Largest(), Largest()
    ids = rng.integers(0, model.shape["vocab_size"], task.length - 7)
    inputs = body_inputs(model, task, ids, np.sort(rng.choice(len(ids), 20, replace=False)), "score", rng)
    out = Evaluator(program).run(inputs)
    expected_logits, expected_column = reference.Network(model, TYPES[task.precision]).body(inputs)
    logits.see(out["option_logits"][0, 0, 0], expected_logits)
    column.see(out["cls_column"][0, :, 0, 0], expected_column)
    bound = COMPUTED[task.graph, task.precision]
    return "NumPy: %s, %s" % (logits.within(bound, "logits"), column.within(bound, "CLS column"))


def check_block(program, model, task):
    """Kinds layer and mlp on random states."""
    rng, seen = np.random.default_rng(task.length), Largest()
    x = rng.standard_normal((model.hidden, task.length)) * 2
    full, local = reference.masks(model, task.length, task.length - 9)
    inputs, network = {"hidden": bc1s(x)}, reference.Network(model, TYPES[task.precision])
    if task.kind == "layer":
        name = "full_mask" if model.is_global(task.layer) else "local_mask"
        mask = full if model.is_global(task.layer) else local
        inputs[name] = bc1s(mask)
        expected = network.layer(task.layer, x, mask)
    else:
        expected = network.mlp(task.layer, x)
    seen.see(Evaluator(program).run(inputs)["hidden_out"][0, :, 0], expected)
    return "NumPy: " + seen.within(COMPUTED[task.graph, task.precision], "layer output")


def check_traced_layer(program, model, task, folder):
    """Kind layer from PyTorch's recorded input of the layer to its recorded output."""
    trace, seen = read_trace(folder), Largest()
    before = trace.tensor("encoder.layer.%d" % (task.layer - 1) if task.layer else "embeddings").astype(np.float64).T
    if before.shape[1] > task.length:
        return "trace does not fit"
    valid = before.shape[1]
    x = np.random.default_rng(0).standard_normal((model.hidden, task.length))
    x[:, :valid] = before
    full, local = reference.masks(model, task.length, valid)
    name, mask = ("full_mask", full) if model.is_global(task.layer) else ("local_mask", local)
    out = Evaluator(program).run({"hidden": bc1s(x), name: bc1s(mask)})["hidden_out"][0, :, 0, :valid]
    seen.see(out, trace.tensor("encoder.layer.%d" % task.layer).T)
    return "PyTorch: " + seen.within(GOLDEN[task.checkpoint, task.precision], "layer output")


def check_numbers(package, model, task, golden):
    program = package.program
    if task.kind != "body":
        yield check_block(program, model, task)
        if golden and task.kind == "layer":
            yield check_traced_layer(program, model, task, golden)
    elif golden:
        yield check_golden(program, model, task, golden)
        yield check_cls(program, model, task, golden)
    elif task.length == 96:
        yield check_random_body(program, model, task)


# ---------------------------------------------------------------- one package

def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        text = (done.stderr + done.stdout).decode("utf-8", "replace").strip()
        raise ValueError("%s: exit code %d: %s" % (" ".join(command[1:3]), done.returncode, text[-2000:]))
    return done.stdout.decode("utf-8")


def inspect(arguments, package):
    """layac reads the package as coremltools does, and its verifier finds nothing."""
    package.check_inspection(json.loads(run(arguments.layac, "inspect", "--json", package.path)))
    run(arguments.layac, "inspect", "--verify", package.path)


def check_rewriting(arguments, package):
    """What coremltools writes of the same program means the same to layac."""
    path = package.path[:-len(".mlpackage")] + "-rewritten.mlpackage"
    coreml_foreign.rewrite(package, path)
    run(arguments.layac, "inspect", "--diff", package.path, path)
    return "equal when coremltools writes it"


def export(arguments, task, folder, output):
    run(arguments.layac, "export", "--model", folder, "--kind", task.kind, "--length", str(task.length), "--graph",
        task.graph, "--precision", task.precision, "--markers", str(task.markers), "--layer", str(task.layer),
        "--threads", "1", "--output", output)


def check_export(arguments, task):
    """What was found, a text at a time."""
    output = os.path.join(arguments.data, "coreml", name_of(task))
    folder, golden = arguments.folders[task.checkpoint]
    shutil.rmtree(output, ignore_errors=True)
    try:
        export(arguments, task, folder, output)
        package, model = Package(os.path.join(output, "model.mlpackage")), reference.Checkpoint(folder)
        package.check_form()
        check_interface(package, model, task)
        check_manifest(output, package, folder, task)
        yield check_counts(package, model, task)
        yield check_weights(package, model, task)
        inspect(arguments, package)
        yield from check_numbers(package, model, task, golden)
        if golden and task.length == 96:
            yield check_rewriting(arguments, package)
    finally:
        shutil.rmtree(output, ignore_errors=True)


def check_foreign(arguments, name):
    path = coreml_foreign.make(name, os.path.join(arguments.data, "coreml", "foreign"))
    package = Package(path, weights=False)
    inspect(arguments, package)
    yield "%d operations" % sum(package.histogram().values())
    shutil.rmtree(path)


def check(arguments, task):
    """(name, passed, what was found, seconds)"""
    foreign, start, found, passed = isinstance(task, str), time.monotonic(), [], False
    try:
        with arguments.lock if is_heavy(task) else contextlib.nullcontext():
            for text in check_foreign(arguments, task) if foreign else check_export(arguments, task):
                found.append(text)
        passed = True
    except Exception as error:  # whatever goes wrong is this package's failure
        expected = isinstance(error, ValueError)
        found.append("%s: %s" % (type(error).__name__, error if expected else traceback.format_exc()))
    gc.collect()  # a program refers to itself
    return label(task), passed, "; ".join(found), time.monotonic() - start


def make_checkpoints(arguments):
    """Folders of all checkpoints and of their golden cases."""
    folders = {name: tuple(os.path.join(arguments.repo, folder) for folder in pair)
               for name, pair in REPOSITORY.items()}
    tokenizer = os.path.join(arguments.repo, "models", "laya-demo", "tokenizer")
    for name, shape in MADE.items():
        folder = os.path.join(arguments.data, "checkpoint-" + name)
        shutil.rmtree(folder, ignore_errors=True)
        run(arguments.make_checkpoint, shape, tokenizer, folder)
        folders[name] = (folder, None)
    return folders


def check_all(arguments, tasks):
    """Names of the packages that failed."""
    failed = []
    with multiprocessing.Manager() as manager, concurrent.futures.ProcessPoolExecutor(arguments.processes) as pool:
        arguments.lock = manager.Lock()
        running = [pool.submit(check, arguments, task) for task in tasks]
        for at, future in enumerate(concurrent.futures.as_completed(running), 1):
            name, passed, text, seconds = future.result()
            print("%s %d/%d %s: %s (%.1f s)" % ("PASS" if passed else "FAIL", at, len(tasks), name, text, seconds),
                  flush=True)
            failed += [] if passed else [name]
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layac", required=True, help="the command to test")
    parser.add_argument("--make-checkpoint", required=True, help="laya-make-checkpoint")
    parser.add_argument("--data", required=True, help="folder for checkpoints and packages: 5 GB for a while")
    parser.add_argument("--repo", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."),
                        help="the source tree (default: the one of this script)")
    parser.add_argument("--only", default="", help="regular expression: check only packages whose name it finds")
    parser.add_argument("--processes", type=int, default=2, help="packages at a time (default 2)")
    arguments = parser.parse_args()
    tasks = [task for task in spread(all_tasks()) + list(coreml_foreign.makers())
             if re.search(arguments.only, label(task))]
    start = time.monotonic()
    os.makedirs(arguments.data, exist_ok=True)
    try:
        arguments.folders = make_checkpoints(arguments)
        failed = check_all(arguments, tasks)
    finally:
        for folder in ["checkpoint-" + name for name in MADE] + ["coreml"]:
            shutil.rmtree(os.path.join(arguments.data, folder), ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2 ** 20
    print("%d packages, %d failed, %.0f s, largest process %.1f GiB"
          % (len(tasks), len(failed), time.monotonic() - start, peak))
    for name in failed:
        print("  FAILED " + name)
    return 1 if failed or not tasks else 0


if __name__ == "__main__":
    sys.exit(main())
