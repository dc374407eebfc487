"""What the scripts about exports share: running the programs, and an exported model in TransformerLens."""

import json
import subprocess


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


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
    if sizes["positional_embedding_type"] == "rotary" and not sizes["rotary_adjacent_pairs"]:
        # A native model rotates neighbours; ours, as transformers' Llama, components half a head apart.
        half = sizes["d_head"] // 2
        order = [half * second + pair for pair in range(half) for second in (0, 1)]
        for name in weights:
            if name.endswith(("W_Q", "W_K", "b_Q", "b_K")):
                weights[name] = weights[name][..., order].contiguous()
    model.load_state_dict(convert_tl_checkpoint(weights, config), strict=True)
    return model
