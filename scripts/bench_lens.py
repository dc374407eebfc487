#!/usr/bin/env python3
"""Times of a look at the heads of a run in TransformerLens, on two threads. Run by scripts/bench.

usage: bench_lens.py RUN EXPORTED REPEATS      EXPORTED: what `inspect RUN export` wrote

Prints two medians of milliseconds, as crates/watch/benches/look.rs, and then the accuracy without each head:

1. every head's pattern on 64 validation sequences, and its scores from them,
2. every head ablated alone on 128 validation sequences, by its mean.

Only the five scores themselves are computed here; the Rust side computes nulls, ceilings and intervals too.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from exported import native_bridge

SCORED, ABLATED = 64, 128


def validation(run):
    """Inputs, targets and what is scored, each [sequences, positions]."""
    rows = [json.loads(line) for line in (run / "validation.jsonl").open()][:ABLATED]
    tokens = torch.tensor([row["tokens"] for row in rows])
    scored = torch.zeros(len(rows), tokens.shape[1] - 1, dtype=torch.bool)
    for sequence, row in zip(scored, rows):
        sequence[torch.tensor(row["scored"])] = True
    return tokens[:, :-1], tokens[:, 1:], scored


def targets_of(tokens):
    """The target keys of five scores, [score, sequence, query, key]."""
    length = tokens.shape[1]
    query, key = torch.arange(length)[:, None], torch.arange(length)[None, :]
    same = tokens[:, :, None] == tokens[:, None, :]
    earlier = same & (key < query)
    after = torch.zeros_like(earlier)
    after[:, :, 1:] = earlier[:, :, :-1]
    everywhere = torch.ones_like(same)
    masks = [everywhere & (key == query - 1), everywhere & (key == query), everywhere & (key == 0) & (query > 0), earlier,
             after & (key <= query)]
    return torch.stack(masks).float()


def scores(model, tokens):
    """The mean weight of every head on the targets of every score, over the queries that have one: [score, layer, head]."""
    _, cache = model.run_with_cache(tokens, names_filter=lambda name: name.endswith("hook_pattern"))
    patterns = torch.stack([cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(model.cfg.n_layers)])
    targets = targets_of(tokens)
    counts = (targets.sum(-1) > 0).sum((1, 2))
    return torch.einsum("lbhqk,sbqk->slh", patterns, targets) / counts[:, None, None]


def without_each_head(model, tokens, targets, scored):
    """The accuracy without each head, first layer first."""
    found = []
    for layer in range(model.cfg.n_layers):
        for head in range(model.cfg.n_heads):
            def by_mean(z, hook, head=head):
                z = z.clone()
                z[:, :, head] = z[:, :, head].mean((0, 1))
                return z

            logits = model.run_with_hooks(tokens, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", by_mean)])
            losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
            right = logits.argmax(-1) == targets
            found.append((right[scored].float().mean().item(), losses.view_as(targets)[scored].mean().item()))
    return found


def median(repeats, look):
    """The median milliseconds of some repeats, after one that does not count."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        look()
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times[1:])


def main():
    run, exported, repeats = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(2)
    tokens, targets, scored = validation(run)
    model = native_bridge(exported)
    with torch.no_grad():
        of_scores = median(repeats, lambda: scores(model, tokens[:SCORED]))
        of_ablations = median(repeats, lambda: without_each_head(model, tokens, targets, scored))
        print(f"{of_scores:.3f} {of_ablations:.3f}")
        for accuracy, _ in without_each_head(model, tokens, targets, scored):
            print(f"{accuracy:.6f}")


if __name__ == "__main__":
    main()
