"""Trains a small model and compares the effects of its edges and parts with TransformerLens' attribution patching.

    python scripts/check_attribution.py                 # torch, transformers, transformer-lens 4.3
    python scripts/check_attribution.py --steps 600 --programs target/debug

TransformerLens takes the gradient at the corrupted run and looks towards the clean one: `--direction denoise`. It has
an edge for each position; here the positions are added up. Its positions are no source of their own: they write the
same on both prompts. Effects must agree within 1e-4 of the largest one. `inspect circuit --effects-only`, from the
start of the program to its end, must take at most a third of the time of the other tool's edges.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch
from exported import run, transformers_bridge
from transformer_lens.tools.analysis.attribution_patching import EdgeAttributionConfig, attribution_patch

CONFIG = """
[task]
name = "repeat"
vocabulary = 32
[model]
preset = "gpt2"
n_layers = 2
n_heads = 4
d_model = 64
n_ctx = 48
[train]
steps = {steps}
batch_size = 32
learning_rate = 1e-3
shards = 1
"""
LARGEST = 1e-4


def source(node):
    """A writer, as we name it."""
    if node.kind == "embed":
        return "embedding"
    return f"feed-forward {node.layer}" if node.kind == "mlp_out" else f"L{node.layer}H{node.head}"


def destination(node):
    """A reader, as we name it."""
    names = {"q_input": "queries", "k_input": "keys", "v_input": "values"}
    if node.kind in names:
        return f"{names[node.kind]} of L{node.layer}H{node.head}"
    return "logits" if node.kind == "logits" else f"feed-forward {node.layer}"


def theirs(model, pairs, tokens, granularity):
    """The mean effects over pairs, by name, and the seconds that they took."""
    effects, config = {}, EdgeAttributionConfig(granularity=granularity)
    began = time.perf_counter()
    for pair in pairs:
        rows = [torch.tensor([[tokens[name] for name in pair[prompt]]]) for prompt in ("clean", "corrupted")]
        answer, wrong = tokens[pair["answer"]], tokens[pair["wrong"]]
        metric = lambda logits: logits[0, -1, answer] - logits[0, -1, wrong]
        found = attribution_patch(model, *rows, metric, config)
        scores = [((source(node),), score) for node, score in found.node_scores.items()]
        if granularity == "edge":
            scores = [((source(one), destination(other)), score) for (one, other), score in found.edge_scores.items()]
        for name, score in scores:
            effects[name] = effects.get(name, 0.0) + score / len(pairs)
    return effects, time.perf_counter() - began


def compare(what, ours, others):
    """Whether all effects agree, relative to the largest."""
    assert ours and ours.keys() == others.keys(), (what, sorted(ours.keys() ^ others.keys())[:5])
    size = max(abs(score) for score in others.values())
    worst = max(ours, key=lambda name: abs(ours[name] - others[name]))
    difference = abs(ours[worst] - others[worst]) / size
    print(f"{what:6} {len(ours):4} effects, largest {size:.3f}, largest difference {difference:.1e} ({' → '.join(worst)})")
    return difference <= LARGEST


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=600)
    arguments.add_argument("--programs", type=Path, default=Path("target/debug"))
    arguments = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place, config = Path(directory) / "run", Path(directory) / "run.toml"
        config.write_text(CONFIG.format(steps=arguments.steps))
        run(arguments.programs / "train", config, "--out", place)
        exported = place / "exported"
        run(arguments.programs / "inspect", place, "export", "--to", exported)
        names = json.loads((exported / "vocabulary.json").read_text())
        tokens = {name: token for token, name in enumerate(names)}
        began = time.perf_counter()
        command = ("circuit", "--method", "eap", "--direction", "denoise", "--effects-only", "--json")
        found = json.loads(run(arguments.programs / "inspect", place, *command))
        seconds = time.perf_counter() - began
        model, pairs = transformers_bridge(exported), found["prompts"]
        model.eval()
        edges, edge_seconds = theirs(model, pairs, tokens, "edge")
        nodes, node_seconds = theirs(model, pairs, tokens, "node")
    # Positions write the same on both prompts.
    ours = {(edge["source"], edge["destination"]): edge["mean"] for edge in found["edges"]}
    ours = {name: effect for name, effect in ours.items() if name[0] != "positions"}
    parts = {(part["source"],): part["mean"] for part in found["parts"] if part["source"] != "positions"}
    good = [compare("edges", ours, edges), compare("parts", parts, nodes)]
    print(f"{len(pairs)} pairs: {edge_seconds:.1f} s for edges and {node_seconds:.1f} s for parts there")
    print(f"the whole program here: {seconds:.2f} s, {seconds / edge_seconds:.2f} of their edges")
    raise SystemExit(0 if all(good) and 3 * seconds <= edge_seconds else "too far, or too slow")


main()
