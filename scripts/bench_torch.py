#!/usr/bin/env python3
"""Times in PyTorch, on two threads; needs the package torch. Run by scripts/bench.

usage: bench_torch.py MODEL STEPS [--compile] [--device cuda]   a training step of a model of crates/trainer/benches/step
       bench_torch.py attention LENGTH RUNS                     causal attention as in crates/attention/benches/attention.rs

Prints the median milliseconds and the process's peak memory in MB; for attention, by how much it grew.
"""

import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

MODELS = {  # layers, heads, width, length, feed-forward, batch
    "toy": (2, 4, 64, 64, False, 64),
    "S": (2, 4, 64, 64, True, 64),
    "M": (4, 4, 128, 64, True, 12),
    "L": (6, 6, 384, 256, True, 4),
}
VOCABULARY = 64


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(z.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, feed_forward):
        super().__init__()
        self.ln1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.mlp = None
        if feed_forward:
            self.ln2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x if self.mlp is None else x + self.mlp(self.ln2(x))


class Decoder(nn.Module):
    def __init__(self, layers, heads, width, length, feed_forward):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads, feed_forward) for _ in range(layers)])
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        return self.head(self.ln(self.blocks(x)))


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def attention(length, runs):
    torch.set_num_threads(2)
    q, k, v = (torch.randn(1, 8, length, 64, requires_grad=True) for _ in range(3))
    before, times = peak_megabytes(), []
    for _ in range(runs):
        q.grad = k.grad = v.grad = None
        started = time.perf_counter()
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
        times.append((time.perf_counter() - started) * 1e3)
    print(f"{statistics.median(times):.2f} {peak_megabytes() - before}")


def step():
    name, steps = sys.argv[1], int(sys.argv[2])
    layers, heads, width, length, feed_forward, batch = MODELS[name]
    device = sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else "cpu"
    finish = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(device, lambda: None)
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = Decoder(layers, heads, width, length, feed_forward).to(device)
    run = torch.compile(model) if "--compile" in sys.argv else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.0, fused=device != "mps")
    times = []
    for step in range(steps + 3):
        started = time.perf_counter()
        tokens = torch.randint(VOCABULARY, (batch, length + 1), device=device)
        logits = run(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        finish()
        if step >= 3:
            times.append((time.perf_counter() - started) * 1e3)
    print(f"{statistics.median(times):.3f} {peak_megabytes()}")


if __name__ == "__main__":
    if sys.argv[1] == "attention":
        attention(int(sys.argv[2]), int(sys.argv[3]))
    else:
        step()
