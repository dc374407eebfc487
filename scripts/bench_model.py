#!/usr/bin/env python3
"""Times of transformers and TransformerLens on a model in a folder, on two threads. Run by scripts/bench.

usage: bench_model.py FOLDER WHAT REPEATS

Prints the median of milliseconds and the largest resident memory in MB, as crates/inspect/benches/model.rs:

load      transformers, the model in memory
forward   transformers, all logits of one sequence of 256 tokens
scores    TransformerLens, all patterns on 16 sequences of 256 tokens, without logits, and five scores from them
ablate    TransformerLens, one head of each of five layers ablated alone by its mean on 32 sequences of 64 tokens, with
          loss and accuracy; the time is that of all heads at this rate
"""

import resource
import statistics
import sys
import time
from pathlib import Path

import torch
from bench_lens import targets_of
from transformers import AutoModelForCausalLM

LENGTH, SCORED, ABLATED, LAYERS = 256, 16, 32, 5


def tokens_of(sequences, vocabulary, length=LENGTH):
    """Random tokens of which the second half repeats the first."""
    at = torch.arange(length) % (length // 2)
    return torch.stack([(7919 * at + 104729 * sequence) % vocabulary for sequence in range(sequences)])


def scores(bridge, tokens):
    """The mean weight of every head on the targets of five scores: [score, layer, head]."""
    _, cache = bridge.run_with_cache(tokens, names_filter=lambda name: name.endswith("hook_pattern"), return_type=None)
    targets = targets_of(tokens)
    counts = (targets.sum(-1) > 0).sum((1, 2))
    found = []
    for layer in range(bridge.cfg.n_layers):
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"]
        found.append(torch.einsum("bhqk,sbqk->sh", pattern, targets) / counts[:, None])
    return torch.stack(found, 1)


def ablate(bridge, tokens):
    """The loss without the first head of some layers, on the second half of the positions."""
    last = bridge.cfg.n_layers - 1
    inputs, targets, scored = tokens[:, :-1], tokens[:, 1:], tokens.shape[1] // 2
    losses = []
    for index in range(LAYERS):
        layer = index * last // (LAYERS - 1)

        def by_mean(z, hook):
            z = z.clone()
            z[:, :, 0] = z[:, :, 0].mean((0, 1))
            return z

        logits = bridge.run_with_hooks(inputs, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", by_mean)])
        logits, wanted = logits[:, scored:].flatten(0, 1), targets[:, scored:].flatten()
        losses.append((torch.nn.functional.cross_entropy(logits, wanted), (logits.argmax(-1) == wanted).float().mean()))
    return losses


def median(repeats, look):
    """The median milliseconds of some repeats, after one that does not count."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        look()
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times[1:])


def main():
    folder, what, repeats = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(2)
    started = time.perf_counter()
    eager = "sdpa" if what in ("load", "forward") else "eager"
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation=eager, dtype=torch.float32)
    milliseconds = (time.perf_counter() - started) * 1e3
    vocabulary = model.config.vocab_size
    with torch.no_grad():
        if what == "forward":
            tokens = tokens_of(1, vocabulary)
            milliseconds = median(repeats, lambda: model(tokens, use_cache=False).logits)
        if what in ("scores", "ablate"):
            from transformer_lens.model_bridge import TransformerBridge

            bridge = TransformerBridge.boot_transformers(str(folder), hf_model=model, device="cpu")
        if what == "scores":
            tokens = tokens_of(SCORED, vocabulary)
            milliseconds = median(repeats, lambda: scores(bridge, tokens))
        if what == "ablate":
            tokens = tokens_of(ABLATED, vocabulary, 65)
            heads = bridge.cfg.n_layers * bridge.cfg.n_heads
            milliseconds = median(repeats, lambda: ablate(bridge, tokens)) * heads / LAYERS
    print(f"{milliseconds:.3f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.024e-3:.0f}")


if __name__ == "__main__":
    main()
