"""Compiles the programs that Tracr has too, and compares outputs, layers and heads.

    python scripts/check_tracr.py [--headlight target/debug/headlight] [--inputs 60]

The packages: tracr-pypi 1.0.0 (with jax) and safetensors; keep them in an environment of their own. The weights that
`headlight compile` writes are run by a decoder of twenty lines below, in numpy.

Tracr's models see both ways, unless they are compiled with causal=True. Headlight's are causal, so what needs the whole
input stands behind a separator. Compared is what both can say:
- at every position: Tracr compiled causal;
- behind the first position: there the token before does not exist. Headlight says "-". Tracr says nothing of an empty
  selection of categories, and its model gives the token itself;
- at the last position: a query there sees the whole input in both;
- as a sequence: Tracr's output at all positions, and the answer behind "=".
"""

import argparse
import json
import random
import subprocess
import tempfile
import tomllib
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tracr.compiler import compiling, lib
from tracr.rasp import rasp

LENGTH = 5
LETTERS = ["a", "b", "c", "d"]
# Tracr sorts numbers only.
NUMBERS = {"a": 1, "b": 2, "c": 3, "d": 4}


class Ours:
    """A program of Headlight, run in numpy."""

    def __init__(self, headlight, name, length):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            command = [headlight, "compile", name, "--to", run, "--length", str(length)]
            subprocess.run(command, check=True, capture_output=True)
            self.weights = load_file(run / "last/weights.safetensors")
            self.names = json.loads((run / "vocabulary.json").read_text())
            model = tomllib.loads((run / "config.toml").read_text())["model"]
            self.heads = json.loads((run / "truth.json").read_text())["heads"]
        self.layers, self.n_heads, self.d_head = model["n_layers"], model["n_heads"], model["d_head"]

    def answers(self, tokens):
        """The likeliest token behind each of `tokens`."""
        ids = [self.names.index(token) for token in ["<s>", *tokens]]
        w = self.weights
        x = w["w_e"][ids] + w["w_pos"][: len(ids)]
        causal = np.tril(np.ones((len(ids), len(ids)), dtype=bool))
        for layer in range(self.layers):
            block = f"blocks.{layer}"
            q, k, v = (self.split(x @ w[f"{block}.attn.{name}.weight"]) for name in ["w_q", "w_k", "w_v"])
            scores = np.where(causal, q @ k.transpose(0, 2, 1), -np.inf)
            pattern = np.exp(scores - scores.max(-1, keepdims=True))
            blend = pattern / pattern.sum(-1, keepdims=True) @ v
            x = x + blend.transpose(1, 0, 2).reshape(len(ids), -1) @ w[f"{block}.attn.w_o.weight"]
            if f"{block}.mlp.w_in.weight" in w:
                middle = np.maximum(x @ w[f"{block}.mlp.w_in.weight"] + w[f"{block}.mlp.w_in.bias"], 0)
                x = x + middle @ w[f"{block}.mlp.w_out.weight"] + w[f"{block}.mlp.w_out.bias"]
        return [self.names[token] for token in (x @ w["w_u"]).argmax(-1)[1:]]

    def split(self, x):
        return x.reshape(len(x), self.n_heads, self.d_head).transpose(1, 0, 2)

    def behind_separator(self, tokens):
        read = [*tokens, "="]
        for _ in tokens:
            read.append(self.answers(read)[-1])
        return read[len(tokens) + 1 :]


def tracr_heads(model):
    """Layers, and heads that write anything."""
    config = model.model_config
    heads = 0
    for layer in range(config.num_layers):
        written = np.asarray(model.params[f"transformer/layer_{layer}/attn/linear"]["w"])
        values = np.asarray(model.params[f"transformer/layer_{layer}/attn/value"]["w"])
        for head in range(config.num_heads):
            of_head = slice(head * config.key_size, (head + 1) * config.key_size)
            heads += bool(np.any(written[of_head]) and np.any(values[:, of_head]))
    return config.num_layers, heads


def compiled(program, vocabulary, causal):
    return compiling.compile_rasp_to_model(
        program, vocab=set(vocabulary), max_seq_len=LENGTH, causal=causal, compiler_bos="bos"
    )


def apply(model, tokens):
    return model.apply(["bos", *tokens]).decoded[1:]


def previous_token():
    one_back = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1)
    return rasp.Aggregate(one_back, rasp.tokens, default=None)


def double_histogram():
    count = lib.make_hist()
    return rasp.SelectorWidth(rasp.Select(count, count, rasp.Comparison.EQ)).named("again")


def quarters(share):
    return f"{np.floor(4 * share + 1e-5) / 4:.2f}"


# Name, Tracr's program, alphabet, what is compared, Tracr's output as ours is written.
PROGRAMS = [
    ("previous_token", previous_token, LETTERS, "behind the first", str),
    ("histogram", lib.make_hist, LETTERS, "every position", str),
    ("histogram", lib.make_hist, LETTERS, "last position", str),
    ("double_histogram", double_histogram, LETTERS, "every position", str),
    ("fraction", lambda: lib.make_frac_prevs(rasp.tokens == "a"), LETTERS, "every position", quarters),
    ("reverse", lambda: lib.make_reverse(rasp.tokens), LETTERS, "sequence", str),
    (
        "sort",
        lambda: lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=LENGTH, min_key=1),
        LETTERS,
        "sequence",
        lambda y: LETTERS[round(y) - 1],
    ),
    ("shuffle_dyck_1", lambda: lib.make_shuffle_dyck(["()"]), ["(", ")"], "last position", lambda y: bool(round(y))),
    ("shuffle_dyck_2", lambda: lib.make_shuffle_dyck(["()", "[]"]), list("()[]"), "last position", lambda y: bool(round(y))),
]


def compare(headlight, inputs, name, write, alphabet, compared, written):
    ours = Ours(headlight, name, LENGTH)
    is_sort = name == "sort"
    vocabulary = NUMBERS.values() if is_sort else alphabet
    theirs = compiled(write(), vocabulary, causal=compared in ("every position", "behind the first"))
    equal = outputs = 0
    rng = random.Random(0)
    for _ in range(inputs):
        tokens = [rng.choice(alphabet) for _ in range(rng.randint(1, LENGTH))]
        there = apply(theirs, [NUMBERS[token] for token in tokens] if is_sort else tokens)
        there = [written(output) for output in there]
        here = ours.behind_separator(tokens) if compared == "sequence" else ours.answers(tokens)
        if name.startswith("shuffle_dyck"):
            here = [answer == "closed" for answer in here]
        if compared == "last position":
            here, there = here[-1:], there[-1:]
        if compared == "behind the first":
            here, there = here[1:], there[1:]
        outputs += len(here)
        equal += sum(a == b for a, b in zip(here, there, strict=True))
        if here != there:
            print(f"  {name}, {compared}: {''.join(tokens)} gives {here} here and {there} in Tracr")
    layers, heads = tracr_heads(theirs)
    print(
        f"| `{name}` | {compared} | {equal} of {outputs} | {ours.layers} | {layers} | {len(ours.heads)} | {heads} |",
        flush=True,
    )
    return equal == outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headlight", default="target/debug/headlight")
    parser.add_argument("--inputs", type=int, default=60, help="random inputs of each program")
    arguments = parser.parse_args()
    print("| program | compared | equal outputs | layers here | in Tracr | heads here | in Tracr |")
    print("|---|---|---|---|---|---|---|")
    same = [compare(arguments.headlight, arguments.inputs, *program) for program in PROGRAMS]
    if not all(same):
        raise SystemExit("outputs differ")


if __name__ == "__main__":
    main()
