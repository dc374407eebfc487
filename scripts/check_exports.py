"""Trains small models, exports them, and compares what transformers and TransformerLens make of the exports.

    python scripts/check_exports.py                 # torch, transformers, safetensors, transformer-lens 4.3
    python scripts/check_exports.py --steps 200 --programs target/debug
    python scripts/check_exports.py --only tokenizers       # needs transformers alone

For every architecture: logits within 5e-5 and attention patterns within 1e-5 of what the exported model itself said
(expected.safetensors), in f32. For every kind of tokens: AutoTokenizer gives each prompt the tokens that
`inspect RUN predict` reads.
"""

import argparse
import json
import tempfile
from pathlib import Path

from exported import native_bridge, run, transformers_bridge

CONFIG = """
[task]
name = "repeat"
vocabulary = 32
[model]
n_layers = 2
n_heads = 4
d_model = 64
n_ctx = 48
{model}
[train]
steps = {steps}
batch_size = 32
learning_rate = 1e-3
shards = 1
"""
GPT2 = 'preset = "gpt2"\n'
LLAMA = 'preset = "llama"\n'
ARCHITECTURES = {
    "attention only": "",
    "attention only, no norm": 'norm = "none"\n',
    "gpt2": GPT2,
    "gpt2, exact gelu, untied": GPT2 + 'feed_forward = "gelu"\ntied_embedding = false\n',
    "gpt2, relu, no biases": GPT2 + 'feed_forward = "relu"\nattention_bias = false\nfeed_forward_bias = false\n',
    "gpt2, unscaled": GPT2 + "attention_scale = 1.0\n",
    "llama": LLAMA,
    "llama, grouped queries, tied": LLAMA + "n_kv_heads = 2\ntied_embedding = true\n",
    "llama, biases, base 500": LLAMA + "attention_bias = true\nfeed_forward_bias = true\nrotary_base = 500.0\n",
}
LOGITS, PATTERNS = 5e-5, 1e-5

TEXT = "the lamp burns well; <s> é 🦀\n" * 60
TEXT_CONFIG = """
task = {{ name = "text", path = "{text}", tokens = {tokens} }}
model = {{ preset = "{preset}", n_layers = 1, n_heads = 2, d_model = 16, n_ctx = 64 }}
train = {{ steps = 1, batch_size = 2, learning_rate = 1e-3, shards = 1 }}
"""
PROMPTS = ["the lamp", "  é🦀\n\n", "w", "lamp <s> burns", "the  lamp; well"]
WORD_PROMPTS = ["the lamp", " lamp burns <s> é", "\nthe", " 🦀\n", " well; <s>"]  # of words in the text


def differences(expected, logits, patterns):
    largest = lambda a, b: (a.float() - b.float()).abs().max().item()
    return largest(logits, expected["logits"]), max(
        largest(pattern, expected[f"pattern.{layer}"]) for layer, pattern in enumerate(patterns)
    )


def with_transformers(folder, expected):
    import torch
    from transformers import AutoModelForCausalLM

    model, report = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
    )
    wrong = {key: value for key, value in report.items() if value}
    assert not wrong, wrong
    with torch.no_grad():
        out = model.eval()(expected["tokens"].long(), output_attentions=True)
    return out.logits, out.attentions


def with_native_bridge(folder, expected):
    return with_cache(native_bridge(folder), expected)


def with_bridge(folder, expected):
    return with_cache(transformers_bridge(folder), expected)


def with_cache(model, expected):
    import torch

    layers = sum(name.startswith("pattern.") for name in expected)
    with torch.no_grad():
        logits, cache = model.run_with_cache(expected["tokens"].long(), prepend_bos=False)
    return logits, [cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(layers)]


def write_tokenizer(path):
    """Byte-pair encoding of the text, which begins every text with a special token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer.save(str(path))


def check_tokenizers(programs, directory):
    from transformers import AutoTokenizer

    text, bpe = directory / "text.txt", directory / "bpe.json"
    text.write_text(TEXT, encoding="utf-8")
    write_tokenizer(bpe)
    failed = 0
    print(f"{'tokens':32}{'beside':22}{'prompts':>10}{'equal':>10}")
    kinds = {"characters": '"characters"', "bytes": '"bytes"', "words": '"words"', "byte-pair encoding": f'"{bpe}"'}
    kinds["trained"] = '{ train = "bpe", size = 280 }'
    for name, tokens in kinds.items():
        for preset in ("gpt2", "llama"):
            place = directory / f"{name}_{preset}"
            config = directory / "text.toml"
            config.write_text(TEXT_CONFIG.format(text=text, tokens=tokens, preset=preset))
            run(programs / "train", config, "--out", place)
            run(programs / "inspect", place, "export", "--to", place / "exported")
            tokenizer = AutoTokenizer.from_pretrained(place / "exported")
            names = json.loads((place / "exported/vocabulary.json").read_text(encoding="utf-8"))
            prompts = WORD_PROMPTS if name == "words" else PROMPTS
            equal = 0
            for prompt in prompts:
                read = json.loads(run(programs / "inspect", place, "predict", "--prompt", prompt, "--json"))["tokens"]
                ids = tokenizer(prompt)["input_ids"]
                equal += [names[id] for id in ids] == read and tokenizer.decode(ids) == prompt
            failed += equal != len(prompts)
            print(f"{name:32}{preset:22}{len(prompts):10}{equal:10}")
    return failed


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=100)
    arguments.add_argument("--programs", type=Path, default=Path("target/debug"))
    arguments.add_argument("--only", choices=["tokenizers"])
    arguments = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        failed = check_tokenizers(arguments.programs.resolve(), Path(directory))
    if arguments.only:
        raise SystemExit(f"{failed} failed" if failed else 0)
    from safetensors.torch import load_file

    print(f"{'architecture':32}{'read by':22}{'logits':>10}{'patterns':>10}")
    with tempfile.TemporaryDirectory() as directory:
        for name, model in ARCHITECTURES.items():
            place = Path(directory) / name.replace(" ", "_").replace(",", "")
            config = place.with_suffix(".toml")
            config.write_text(CONFIG.format(model=model, steps=arguments.steps))
            run(arguments.programs / "train", config, "--out", place)
            exported = place / "exported"
            run(arguments.programs / "inspect", place, "export", "--to", exported)
            expected = load_file(exported / "expected.safetensors")
            # TransformerLens has no gated feed-forward with biases, and no model without a scale.
            beyond = any(key in model for key in ("feed_forward_bias = true", "attention_scale"))
            readers = {} if beyond else {"boot_native": with_native_bridge}
            if (exported / "config.json").exists():
                readers["transformers"] = with_transformers
                # The bridge wants a tokenizer with a Llama, and scales the scores of every GPT-2.
                if model.startswith(GPT2) and "attention_scale" not in model:
                    readers["boot_transformers"] = with_bridge
            for reader, read in readers.items():
                try:
                    logits, patterns = differences(expected, *read(exported, expected))
                except Exception as error:  # another reader may still work
                    failed += 1
                    print(f"{name:32}{reader:22}  {type(error).__name__}: {error}")
                    continue
                good = logits <= LOGITS and patterns <= PATTERNS
                failed += not good
                print(f"{name:32}{reader:22}{logits:10.1e}{patterns:10.1e}{'' if good else '   TOO FAR'}")
    raise SystemExit(f"{failed} failed" if failed else 0)


main()
