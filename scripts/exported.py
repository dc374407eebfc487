"""What the scripts about exports share: running the programs, and an exported model in TransformerLens."""

import json
import subprocess


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def rotary_order(config):
    """The order of a head's components in a native model, where positions rotate: it rotates neighbours; ours, as
    transformers' Llama, components half a head apart."""
    config = getattr(config, "cfg", config)
    if config.positional_embedding_type != "rotary":
        return None
    half = config.d_head // 2
    return [half * second + pair for pair in range(half) for second in (0, 1)]


def native_bridge(folder):
    """TransformerLens' names in a model of the sizes beside them."""
    import torch
    from safetensors.torch import load_file
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge.bridge import TransformerBridge
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    sizes = json.loads((folder / "transformer_lens.json").read_text())
    ours_alone = {"post_norm", "tie_word_embeddings"}
    sizes = {
        key: value
        for key, value in sizes.items()
        if key not in ours_alone and (value is not None or key == "normalization_type")
    }
    config = TransformerBridgeConfig.from_dict(sizes)
    model = TransformerBridge.boot_native(config, device="cpu", dtype=torch.float32)
    weights = load_file(folder / "transformer_lens.safetensors")
    order = rotary_order(config)
    if order is not None:
        for name in weights:
            if name.endswith(("W_Q", "W_K", "b_Q", "b_K")):
                weights[name] = weights[name][..., order].contiguous()
    model.load_state_dict(convert_tl_checkpoint(weights, config), strict=True)
    return model


def transformers_bridge(folder):
    """The folder for transformers through TransformerLens' bridge."""
    import torch
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoModelForCausalLM

    hf_model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return TransformerBridge.boot_transformers(str(folder), hf_model=hf_model, device="cpu")
