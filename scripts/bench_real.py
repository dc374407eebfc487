#!/usr/bin/env python3
"""Times of a real model in transformers and TransformerLens, on two threads. Run by scripts/bench real.

usage: bench_real.py FOLDER REPEATS HEADS     FOLDER: what `inspect MODEL export` wrote; HEADS: L0H1,L3H2,…

Prints one number a line, as crates/watch/benches/real.rs:

1. the milliseconds of a forward pass of transformers over 256 tokens, attention as it is by default,
2. of TransformerLens' pass over 256 tokens that keeps all patterns,
3. of every head's pattern on 16 sequences of 64 tokens, and its scores from them,
4. of ablating each of HEADS alone by its mean on 4 sequences of 64 tokens, whose second halves are scored: the mean of a
   head,
5. and then the loss without each of them.

1 to 3 are medians of the repeats.
"""

import sys
import time
from pathlib import Path

import torch
from bench_lens import median, scores
from exported import transformers_bridge
from transformers import AutoModelForCausalLM

FORWARD, SCORED, ABLATED, LENGTH = 256, 16, 4, 64


def row(sequence, length):
    return [1000 + 7919 * (sequence * LENGTH + at) % 40000 for at in range(length)]


def without(model, layer, head, tokens):
    """The loss on the second halves without a head."""
    def by_mean(z, hook):
        z = z.clone()
        z[:, :, head] = z[:, :, head].mean((0, 1))
        return z

    logits = model.run_with_hooks(tokens[:, :-1], fwd_hooks=[(f"blocks.{layer}.attn.hook_z", by_mean)], prepend_bos=False)
    scored = slice(LENGTH // 2, LENGTH)
    targets = tokens[:, 1:][:, scored]
    return torch.nn.functional.cross_entropy(logits[:, scored].flatten(0, 1), targets.flatten()).item()


def main():
    folder, repeats = Path(sys.argv[1]), int(sys.argv[2])
    heads = [tuple(map(int, name[1:].split("H"))) for name in sys.argv[3].split(",")]
    torch.set_num_threads(2)
    with torch.no_grad():
        tokens = torch.tensor([row(0, FORWARD)])
        plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        print(f"{median(repeats, lambda: plain(tokens).logits):.1f}")
        del plain
        model = transformers_bridge(folder)
        keeps = lambda name: name.endswith("hook_pattern")
        print(f"{median(repeats, lambda: model.run_with_cache(tokens, names_filter=keeps, prepend_bos=False)):.1f}")
        scored = torch.tensor([row(sequence, LENGTH) for sequence in range(SCORED)])
        print(f"{median(repeats, lambda: scores(model, scored)):.1f}")
        ablated = torch.tensor([row(sequence, LENGTH + 1) for sequence in range(ABLATED)])
        without(model, *heads[0], ablated)
        started = time.perf_counter()
        losses = [without(model, layer, head, ablated) for layer, head in heads]
        print(f"{(time.perf_counter() - started) * 1e3 / len(heads):.1f}")
        for loss in losses:
            print(f"{loss:.6f}")


if __name__ == "__main__":
    main()
