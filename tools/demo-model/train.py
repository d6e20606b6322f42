"""Train the demo model.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python3 train.py WORK_DIR --steps 3000 [--resume WORK_DIR/last.pt]

A file WORK_DIR/stop ends a run early; --resume continues it at the same place of the schedule.

Two workers with one thread each share the gradients; rows are sorted by length and batched by token count.  Two helps make a
small budget go far.  A bag-of-words model (warm_start.py) is trained first: it starts the embedding table, and during the
first part of the schedule its text vectors are targets of auxiliary losses at the option markers.  And the first token has to
tell all facts that the generator knows about the message, not only the one that is asked.  The readouts of these losses are
thrown away; an exponential moving average of the model's weights is kept.
"""
import argparse
import copy
import json
import math
import os
import random
import time

import torch
import torch.nn.functional as F

import data
import model as M
import prompt
import tokenizer as tok
import warm_start

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.join(HERE, "..", "..", "models", "laya-demo")
ENCODER = dict(
    architectures=["ModernBertModel"], model_type="modernbert", vocab_size=4096, hidden_size=192, num_hidden_layers=4, num_attention_heads=3,
    intermediate_size=256, hidden_activation="gelu", max_position_embeddings=1024, norm_eps=1e-5, norm_bias=False, attention_bias=False,
    mlp_bias=False, attention_dropout=0.0, embedding_dropout=0.0, mlp_dropout=0.0, global_attn_every_n_layers=3, local_attention=32,
    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
    rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=20000.0), sliding_attention=dict(rope_type="default", rope_theta=1000.0)),
    pad_token_id=0, eos_token_id=1, bos_token_id=2, cls_token_id=2, sep_token_id=1, torch_dtype="float16")
LIMITS = dict(max_len=512, head_max_len=192)


def make_row(builder, sample, with_bags=False):
    state, question, target = sample[:3]
    state_ids = builder.state_ids(state)
    row = builder.row(question, state_ids, isinstance(state, list))
    out = dict(input_ids=row["input_ids"], markers=row["markers"], qtype=prompt.QTYPES[question["type"]], target=target, kind=question["type"])
    if len(sample) > 3:
        out["knowledge"] = sample[3]
    if with_bags:
        out["bags"] = warm_start.bags_of(builder, state_ids, question)
    return out


def batches(rows, budget):
    """Cut length-sorted rows into batches of at most `budget` padded tokens."""
    rows = sorted(rows, key=lambda row: len(row["input_ids"]))
    out, current = [], []
    for row in rows:
        if current and len(row["input_ids"]) * (len(current) + 1) > budget:
            out.append(current)
            current = []
        current.append(row)
    return out + [current]


def to_tensors(rows):
    tensors = M.collate(rows, 0)
    targets = torch.zeros(tensors[2].shape)
    for at, row in enumerate(rows):
        targets[at, :len(row["target"])] = torch.tensor(row["target"])
    return tensors, targets


def training_batches(seed, rank, budget, stage, pool=900):
    """Endless batches for one worker: rows are pooled, sorted by length, batched, and the batches shuffled.
    stage holds the longest row allowed and whether bag vectors are still wanted; the caller changes it over time."""
    builder = prompt.Builder(tok.load(os.path.join(DEMO, "tokenizer", "tokenizer.json")), LIMITS)
    rng = random.Random("order-%s-%d" % (seed, rank))
    source = data.stream("train", "%s-%d" % (seed, rank), with_knowledge=True)
    while True:
        rows = []
        while len(rows) < pool:
            row = make_row(builder, next(source), stage["bags"])
            if len(row["input_ids"]) <= stage["longest"]:
                rows.append(row)
        group = batches(rows, budget)
        rng.shuffle(group)
        yield from group


class Probes(torch.nn.Module):
    """Auxiliary readouts at the markers: the bag vectors of the own option, the state and the instructions."""

    PLACES = ("encoder.final_norm", "head.layer.0")

    def __init__(self, width):
        super().__init__()
        self.out = torch.nn.ModuleList(torch.nn.Linear(width, 3 * warm_start.SIZE) for _ in self.PLACES)

    def forward(self, trace, markers, marker_mask, wanted):
        total = 0.0
        for place, layer in zip(self.PLACES, self.out):
            h = trace[place]
            marked = h.gather(1, markers[:, :, None].expand(-1, -1, h.shape[-1]))
            marked = F.layer_norm(marked, marked.shape[-1:])
            total = total + (((layer(marked) - wanted) ** 2).mean(-1) * marker_mask).sum() / marker_mask.sum()
        return total


class Knowledge(torch.nn.Module):
    """Auxiliary readouts at the first token: all facts, levels and the topic of the state, whatever the question is."""

    PLACES = ("encoder.final_norm", "head.layer.0")

    def __init__(self, width):
        super().__init__()
        self.sizes = [len(data.FACTS), len(data.LEVELS), len(data.TOPIC_KEYS)]
        self.out = torch.nn.ModuleList(torch.nn.Linear(width, sum(self.sizes)) for _ in self.PLACES)

    def forward(self, trace, rows):
        facts, levels, topics = (torch.tensor([row["knowledge"][part] for row in rows]) for part in range(3))
        total = 0.0
        for place, layer in zip(self.PLACES, self.out):
            h = trace[place][:, 0]
            fact, level, topic = layer(F.layer_norm(h, h.shape[-1:])).split(self.sizes, -1)
            known = facts >= 0
            total = total + (F.binary_cross_entropy_with_logits(fact, facts.clamp(min=0), reduction="none") * known).sum() / known.sum() * 2
            total = total + F.mse_loss(level, levels) * 3
            if (topics >= 0).any():
                total = total + F.cross_entropy(topic, topics, ignore_index=-1) * .3
        return total


def bag_targets(bags, rows, width):
    """[row, option, 3 * SIZE], each third scaled to unit mean square."""
    lists, places = [], []
    for at, row in enumerate(rows):
        options, state, head = row["bags"]
        lists += options + [state, head]
        places.append(len(options))
    with torch.no_grad():
        vectors = bags(lists)
        vectors = vectors / vectors.pow(2).mean(-1, keepdim=True).sqrt().clamp(min=.3)
    out, at = torch.zeros(len(rows), width, 3 * warm_start.SIZE), 0
    for row, count in enumerate(places):
        out[row, :count, :warm_start.SIZE] = vectors[at:at + count]
        out[row, :, warm_start.SIZE:2 * warm_start.SIZE] = vectors[at + count]
        out[row, :, 2 * warm_start.SIZE:] = vectors[at + count + 1]
        at += count + 2
    return out


def initialise(network, seed, config, bags=None):
    """Random weights, arranged so that a small budget suffices: token vectors from the bag model, a few heads of the local
    layers that look at the tokens just after or before their own, value and output matrices that copy instead of scramble."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    width, heads = config["hidden_size"], config["num_attention_heads"]
    for name, parameter in network.named_parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=.02 if "emb" in name else .8 * parameter.shape[1] ** -.5)
        elif name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    torch.nn.init.normal_(network.scorer[3].weight, std=.1)

    def orthogonal():
        return torch.linalg.qr(torch.randn(width, width, generator=generator))[0]

    layers = [(layer.attn.Wqkv.weight.data, layer.attn.Wo.weight.data, layer.mlp.Wo.weight.data) for layer in network.encoder.layers]
    layers += [(layer.self_attn.in_proj_weight.data, layer.self_attn.out_proj.weight.data, layer.linear2.weight.data) for layer in network.head.layers]
    for qkv, out, inner in layers:
        copy_matrix = orthogonal()
        qkv[2 * width:] = copy_matrix
        out.copy_(copy_matrix.t() * .7)
        inner.mul_(.5)
    table = network.encoder.embeddings.tok_embeddings.weight.data
    common = torch.randn(width, generator=generator)
    common = (common - common.mean()) / common.norm()
    if bags is not None:
        table += .05 * bags.vectors.weight.data @ orthogonal()[:warm_start.SIZE] * (width / warm_start.SIZE) ** .5
    table += .06 * width ** .5 * common
    table[:5] += .1 * torch.randn(5, width, generator=generator)
    theta = M.rope_thetas(config)[1]
    speed = theta ** (-torch.arange(32).float() / 32)
    channels = (torch.arange(32) < 14).float()
    for index, offsets in ((1, (2, 5, -1)), (2, (1, 3, -3))):
        qkv = layers[index][0]
        for head, offset in zip(range(heads), offsets):
            q = torch.cat((channels, torch.zeros(32)))
            k = torch.cat((channels * torch.cos(-offset * speed), channels * torch.sin(-offset * speed)))
            strength = (40 / 14) ** .5 / (.75 * width ** .5)
            for base, vector in ((0, q), (width, k)):
                rows = qkv[base + 64 * head:base + 64 * head + 64]
                rows.mul_(.5).add_(strength * vector[:, None] * common[None])


def loss_of(network, tensors, targets, trace=None):
    ids, mask, markers, marker_mask, qtype = tensors
    logits, cls = network(ids, mask, markers, marker_mask, qtype, trace)
    log_p = logits.log_softmax(-1)
    smooth = targets * .98 + .02 * marker_mask / marker_mask.sum(-1, keepdim=True)
    cross = -(smooth * log_p.masked_fill(~marker_mask, 0.0)).sum(-1)
    brier = ((log_p.exp() - targets) ** 2 * marker_mask).sum(-1)
    return (cross + .3 * brier).mean(), logits, cls


@torch.no_grad()
def accuracy(network, rows, budget=8000):
    hits = {}
    for group in batches(rows, budget):
        tensors, targets = to_tensors(group)
        logits, _ = network(*tensors)
        right = (logits.argmax(-1) == targets.argmax(-1)).tolist()
        for row, ok in zip(group, right):
            hits.setdefault(row["kind"], []).append(ok)
    return {kind: round(sum(values) / len(values), 4) for kind, values in sorted(hits.items())}


def eval_rows(split, count, seed="eval", wording=None):
    builder = prompt.Builder(tok.load(os.path.join(DEMO, "tokenizer", "tokenizer.json")), LIMITS)
    source = data.stream(split, seed, wording)
    return [make_row(builder, next(source)) for _ in range(count)]


def save(path, network, probes, average, optimiser, step, seen, progress):
    torch.save(dict(network=network.state_dict(), probes=probes.state_dict(), average=average.state_dict(), optimiser=optimiser.state_dict(), step=step, seen=seen, progress=progress), path + ".tmp")
    os.replace(path + ".tmp", path)


def work(rank, world, options, gradients, barrier):
    """One data-parallel worker.  All workers hold the same weights: gradients are averaged through shared memory."""
    torch.set_num_threads(1)
    config = dict(ENCODER, **json.loads(options.encoder or "{}"))
    network = M.DecisionModel(config, 2)
    bags = warm_start.Bags(config["vocab_size"])
    bags.load_state_dict(torch.load(os.path.join(options.work, "bags.pt")))
    initialise(network, options.seed, config, bags)
    probes = torch.nn.ModuleList([Probes(config["hidden_size"]), Knowledge(config["hidden_size"])])
    stored = torch.load(options.resume) if options.resume else None
    average = copy.deepcopy(network)
    parameters = list(network.parameters())
    decay = [p for n, p in network.named_parameters() if p.dim() > 1 and "emb" not in n]
    plain = [p for n, p in network.named_parameters() if not (p.dim() > 1 and "emb" not in n)] + list(probes.parameters())
    optimiser = torch.optim.AdamW([dict(params=decay, weight_decay=.05), dict(params=plain, weight_decay=0.0)], lr=options.rate, betas=(.9, .98), foreach=True)
    step, seen, done = 0, 0, 0.0
    if stored:
        network.load_state_dict(stored["network"])
        average.load_state_dict(stored["average"])
        try:
            probes.load_state_dict(stored["probes"])
            optimiser.load_state_dict(stored["optimiser"])
        except (RuntimeError, ValueError):
            print("the auxiliary readouts changed: they and the optimiser start afresh", flush=True)
        step, seen, done = stored["step"], stored["seen"], stored["progress"]
    stage = dict(longest=80, bags=True)
    source = training_batches("%d-%d" % (options.seed, step), rank, options.budget, stage)
    checks = {split: eval_rows(split, 800) for split in ("train", "test")} if rank == 0 else {}
    used = [p for n, p in network.named_parameters() if not n.startswith("act_head")] + list(probes.parameters())
    started, window = time.time() - done * 60 * options.minutes, []
    last_check = last_save = time.time()
    clock = gradients[world]
    while True:
        if rank == 0:
            clock[0] = step / options.steps if options.steps else (time.time() - started) / 60 / options.minutes
        barrier.wait()
        progress = float(clock[0])
        if progress >= 1 or clock[1] > 0:
            break
        rate = options.rate * min(1.0, (step + 1) / options.warmup) * (.02 + .98 * .5 * (1 + math.cos(math.pi * progress)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        guide = max(0.0, 1 - progress / options.guided)
        stage["longest"] = 80 if progress < options.short else 256
        stage["bags"] = guide > 0
        rows = next(source)
        tensors, targets = to_tensors(rows)
        trace = {}
        loss, _, _ = loss_of(network, tensors, targets, trace)
        known = probes[1](trace, rows)
        hint = 0.0 * sum(p.sum() for p in probes[0].parameters())
        if guide and "bags" in rows[0]:
            hint = probes[0](trace, tensors[2], tensors[3], bag_targets(bags, rows, tensors[2].shape[1]))
        optimiser.zero_grad(set_to_none=True)
        (loss + guide * hint + (1 - .9 * progress) * known).backward()
        torch.cat([p.grad.view(-1) for p in used], out=gradients[rank][:sum(p.numel() for p in used)])
        barrier.wait()
        mean, at = torch.stack(gradients[:world]).mean(0), 0
        for p in used:
            p.grad.copy_(mean[at:at + p.numel()].view_as(p))
            at += p.numel()
        torch.nn.utils.clip_grad_norm_(used, 1.0)
        optimiser.step()
        step += 1
        seen += world * len(rows)
        if rank:
            continue
        keep = min(.995, (step + 1) / (step + 10))
        with torch.no_grad():
            torch._foreach_mul_(list(average.parameters()), keep)
            torch._foreach_add_(list(average.parameters()), parameters, alpha=1 - keep)
        window.append((float(loss), float(hint), float(known)))
        now = time.time()
        if step % 50 == 0:
            print("%5.1f min step %d rows %d loss %.4f hint %.4f known %.4f rate %.2e" % (((now - started) / 60, step, seen) + tuple(sum(part) / len(window) for part in zip(*window)) + (rate,)), flush=True)
            window = []
        if now - last_check > 300:
            print("   train", accuracy(average, checks["train"]), "held out", accuracy(average, checks["test"]), flush=True)
            last_check = time.time()
        if now - last_save > 60:
            save(os.path.join(options.work, "last.pt"), network, probes, average, optimiser, step, seen, progress)
            last_save = now
            if os.path.exists(os.path.join(options.work, "stop")):
                clock[1] = 1
    if rank == 0:
        save(os.path.join(options.work, "last.pt"), network, probes, average, optimiser, step, seen, float(clock[0]))
        print("end: train", accuracy(average, checks["train"]), "held out", accuracy(average, checks["test"]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--minutes", type=float, default=50, help="length of the whole schedule, earlier runs included")
    parser.add_argument("--steps", type=int, help="length of the schedule in steps instead of minutes; this makes a run repeatable")
    parser.add_argument("--rate", type=float, default=1.2e-3)
    parser.add_argument("--warmup", type=int, default=150)
    parser.add_argument("--budget", type=int, default=2600, help="padded tokens in the batch of one worker")
    parser.add_argument("--guided", type=float, default=.35, help="share of the schedule with auxiliary losses")
    parser.add_argument("--short", type=float, default=.2, help="share of the schedule with short rows only")
    parser.add_argument("--bag-rows", type=int, default=100000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume", help="continue from this checkpoint")
    parser.add_argument("--encoder", help="JSON object that overrides fields of the encoder configuration")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    config = dict(ENCODER, **json.loads(options.encoder or "{}"))
    size = sum(p.numel() for p in M.DecisionModel(config, 2).parameters())
    print("parameters", size, flush=True)
    size += sum(p.numel() for kind in (Probes, Knowledge) for p in kind(config["hidden_size"]).parameters())
    if not os.path.exists(os.path.join(options.work, "bags.pt")):
        builder = prompt.Builder(tok.load(os.path.join(DEMO, "tokenizer", "tokenizer.json")), LIMITS)
        torch.save(warm_start.train(builder, config["vocab_size"], options.bag_rows).state_dict(), os.path.join(options.work, "bags.pt"))
    context = torch.multiprocessing.get_context("spawn")
    gradients = [torch.zeros(size).share_memory_() for _ in range(options.workers)] + [torch.zeros(2, dtype=torch.float64).share_memory_()]
    barrier = context.Barrier(options.workers)
    workers = [context.Process(target=work, args=(rank, options.workers, options, gradients, barrier)) for rank in range(options.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
