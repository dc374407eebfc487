"""Trains small models and compares what `inspect` says of their heads with TransformerLens.

    python scripts/check_lens.py                 # torch, safetensors, transformer-lens 4.3
    python scripts/check_lens.py --steps 400 --programs target/debug

For every architecture, within 1e-4: every activation on a few prompts, site by site; `detect_head` on a few prompts
(both error measures), all composition scores, and the logit attribution of embedding, positions, heads and
feed-forwards. TransformerLens reads the exported weights and folds norms and centres by its own code.
"""

import argparse
import json
import random
import tempfile
from pathlib import Path

import torch
from exported import native_bridge, rotary_order, run, transformers_bridge
from safetensors.torch import load_file
from transformer_lens.head_detector import HEAD_NAMES, detect_head

CONFIG = """
[task]
name = "repeat"
vocabulary = 32
[model]
n_layers = 3
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
ARCHITECTURES = {
    "attention only": "",
    "attention only, no norm": 'norm = "none"\n',
    "attention only, wide heads": "d_head = 24\n",
    "gpt2": 'preset = "gpt2"\n',
    "llama, grouped queries": 'preset = "llama"\nn_kv_heads = 2\n',
}
PROMPTS, SEEN, LARGEST = 16, 4, 1e-4


def activations(inspect, file, model, row, prompt):
    """Every site of ours, and what TransformerLens has there, for one prompt."""
    file.unlink(missing_ok=True)
    inspect("activations", "--prompt", prompt, "--to", file)
    ours = load_file(file)
    assert ours.pop("tokens").tolist() == [row]
    with torch.no_grad():
        _, cache = model.run_with_cache(torch.tensor([row]), prepend_bos=False)
    theirs = {name: site(model, cache, name) for name in ours}
    is_native = "blocks.0.attn.hook_result" not in cache
    order = rotary_order(model) if is_native else None
    for name, activation in ours.items():
        if theirs[name].ndim == activation.ndim + 1:
            # The inputs of queries, keys and values are by head there: ours holds for all heads.
            ours[name] = activation.unsqueeze(2).expand_as(theirs[name])
        if theirs[name].ndim + 1 == activation.ndim:
            # What stands there for all heads.
            theirs[name] = theirs[name].unsqueeze(2).expand_as(activation)
        if name.endswith("hook_attn_scores") and is_native:
            ours[name] = activation.softmax(-1)  # there this hook has the pattern
        elif name.endswith("hook_attn_scores"):
            # Masked scores are -inf here, and some very small number there.
            masked = activation.isneginf()
            assert (theirs[name][masked] < -1e4).all(), name
            theirs[name] = theirs[name].masked_fill(masked, 0.0)
            ours[name] = activation.masked_fill(masked, 0.0)
        if order is not None and name.endswith(("attn.hook_q", "attn.hook_k")):
            ours[name] = activation[..., order]
        assert ours[name].shape == theirs[name].shape, (name, ours[name].shape, theirs[name].shape)
    return ours, theirs


def site(model, cache, name):
    """What TransformerLens has at a site. A native model has no hook at some of them: there it is what the other hooks
    make of it."""
    name = name.removesuffix("_by_head")
    if name in cache:
        found = cache[name]
        return found.expand(cache["hook_embed"].shape) if name == "hook_pos_embed" else found
    block, _, hook = name.rpartition(".")
    if hook in ("hook_q_input", "hook_k_input", "hook_v_input"):
        return cache[f"{block}.hook_resid_pre"]
    if hook == "hook_mlp_in":
        return cache[f"{block}.hook_resid_mid"]
    assert hook == "hook_result", name
    layer = int(name.split(".")[1])
    return torch.einsum("bphd,hdm->bphm", cache[f"{block}.hook_z"], model.W_O[layer])


def largest_activation(ours, theirs):
    """The largest difference over all numbers of all sites, each relative to the largest number of its site."""
    differences = {}
    for name in ours:
        size = max(1.0, theirs[name].abs().max().item())
        differences[name] = (ours[name] - theirs[name]).abs().max().item() / size
    worst = max(differences, key=differences.get)
    return differences[worst], worst


def largest(ours, theirs):
    """The largest difference over the names we have."""
    assert ours and ours.keys() <= theirs.keys(), (sorted(ours), sorted(theirs))
    return max(abs(ours[name] - theirs[name]) for name in ours)


def prompts(vocabulary):
    """A block of random tokens and its beginning again, shorter than the context: the other tool wants that."""
    draw = random.Random(0)
    for _ in range(PROMPTS):
        block = [draw.randrange(len(vocabulary)) for _ in range(draw.randint(8, 24))]
        yield (block + block)[: draw.randint(len(block) + 4, 46)]


def detected(inspect, model, tokens, names):
    """`detect_head` of both, by head, kind and error measure: means over all prompts, since abs is rounded in each."""
    ours, theirs = {}, {}
    for row, prompt in zip(tokens, names):
        for head in inspect("detect", "--prompt", prompt):
            for kind in HEAD_NAMES:
                for error, value in head[kind].items():
                    place = head["head"], kind, error
                    ours[place] = ours.get(place, 0) + value / PROMPTS
        for kind in HEAD_NAMES:
            for error in ("mul", "abs"):
                found = detect_head(model, torch.tensor([row]), kind, error_measure=error)
                for layer, heads in enumerate(found.tolist()):
                    for head, value in enumerate(heads):
                        place = f"L{layer}H{head}", kind, error
                        theirs[place] = theirs.get(place, 0) + value / PROMPTS
    return ours, theirs


def composed(inspect, model):
    """Composition scores of both, by writer, reader and input."""
    found = inspect("circuits")["compositions"]
    ours = {(pair["writer"], pair["reader"], pair["input"]): pair["score"]["value"] for pair in found}
    theirs = {}
    for mode, name in (("Q", "query"), ("K", "key"), ("V", "value")):
        scores = model.all_composition_scores(mode).scores.tolist()
        for layer, heads in enumerate(scores):
            for head, readers in enumerate(heads):
                for later in range(layer + 1, len(readers)):
                    for reader, value in enumerate(readers[later]):
                        theirs[f"L{layer}H{head}", f"L{later}H{reader}", name] = value
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    return ours, theirs


def attributed(inspect, model, row, prompt):
    """What parts add to the right next token's logit above the mean logit, mean over the prompt, by part."""
    contributions = inspect("lens", "--prompt", prompt)["contributions"]
    beyond = ("attention bias", "final biases")
    ours = {part["name"]: part["logit"] for part in contributions if not part["name"].startswith(beyond)}
    with torch.no_grad():
        _, cache = model.run_with_cache(torch.tensor([row[:-1]]))
        stack, names = cache.stack_head_results(return_labels=True)
        parts = dict(zip(names, stack)) | {"embedding": cache["hook_embed"]}
        if "hook_pos_embed" in cache:
            parts["positions"] = cache["hook_pos_embed"].expand_as(cache["hook_embed"])
        for layer in range(model.cfg.n_layers):
            if f"blocks.{layer}.hook_mlp_out" in cache:
                parts[f"feed-forward {layer}"] = cache[f"blocks.{layer}.hook_mlp_out"]
        attributions = cache.logit_attrs(torch.stack(list(parts.values())), torch.tensor([row[1:]]))
    return ours, dict(zip(parts, attributions.mean(dim=(1, 2)).tolist()))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--programs", type=Path, default=Path("target/debug"))
    arguments = arguments.parse_args()
    failed = 0
    columns = "".join(f"{name:>12}" for name in ("activations", "detect_head", "composition", "attribution"))
    print(f"largest difference          {columns}")
    with tempfile.TemporaryDirectory() as directory:
        for name, architecture in ARCHITECTURES.items():
            place = Path(directory) / name.replace(" ", "_").replace(",", "")
            config = place.with_suffix(".toml")
            config.write_text(CONFIG.format(model=architecture, steps=arguments.steps))
            run(arguments.programs / "train", config, "--out", place)
            exported = place / "exported"
            run(arguments.programs / "inspect", place, "export", "--to", exported)
            inspect = lambda *what: json.loads(run(arguments.programs / "inspect", place, *what, "--json"))
            vocabulary = json.loads((exported / "vocabulary.json").read_text())
            tokens = list(prompts(vocabulary))
            names = [" ".join(vocabulary[token] for token in row) for row in tokens]

            model = native_bridge(exported)
            model.to_tokens = lambda tokens: tokens  # it has no tokenizer
            looked_at = [model]
            if (exported / "config.json").exists():
                complete = transformers_bridge(exported)
                complete.set_use_attn_result(True)
                complete.set_use_split_qkv_input(True)
                looked_at.append(complete)
            file = place / "activations.safetensors"
            worst = max(
                largest_activation(*activations(inspect, file, other, row, prompt))
                for other in looked_at
                for row, prompt in list(zip(tokens, names))[:SEEN]
            )
            differences = [worst[0], largest(*detected(inspect, model, tokens, names))]
            # Values keep their biases: so do the heads' results here.
            model.process_weights(fold_value_biases=False)
            differences.append(largest(*composed(inspect, model)))
            pairs = [attributed(inspect, model, row, prompt) for row, prompt in zip(tokens, names)]
            differences.append(max(largest(ours, theirs) for ours, theirs in pairs))
            good = max(differences) <= LARGEST
            failed += not good
            numbers = "".join(f"{x:12.1e}" for x in differences)
            print(f"{name:28}{numbers}{'' if good else f'   TOO FAR (activations: {worst[1]})'}", flush=True)
    raise SystemExit(f"{failed} failed" if failed else 0)


main()
