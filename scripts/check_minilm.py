#!/usr/bin/env python3
"""Compares the example `minilm` with PyTorch: embeddings and one head's pattern, sentence by sentence.

usage: check_minilm.py FOLDER      (with all-MiniLM-L6-v2, as the example takes it; from the repository root)

Exits with 1 if a number differs by more than 1e-5. Needs the packages torch and transformers.
"""

import json
import os
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoModel, AutoTokenizer

SENTENCES = [
    "The cat sat down",
    "Hello",
    "Ça va? Naïve café-goers paid 12,50 € — really!",
    "A head that attends to a token with a value near zero writes nothing, so a pattern alone does not tell what a "
    "head does; one has to look at the values, and then to switch the head off and see what is lost.",
    "unbelievably tokenizable [SEP] snow⽔man 水 🙂",
    "word after word " * 120,  # longer than the model reads
]
LAYER, HEAD = 0, 8
BOUND = 1e-5


def ours(folder):
    arguments = ["cargo", "run", "--quiet", "--example", "minilm", "--", folder, "--json"]
    arguments += ["--layer", str(LAYER), "--head", str(HEAD)]
    for sentence in SENTENCES:
        arguments += ["--sentence", sentence]
    return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def theirs(folder):
    # A special token written in the text is text: nobody may close a sentence from inside it.
    tokenizer = AutoTokenizer.from_pretrained(folder, split_special_tokens=True)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with open(os.path.join(folder, "sentence_bert_config.json"), encoding="utf-8") as file:
        longest = json.load(file)["max_seq_length"]
    batch = tokenizer(SENTENCES, padding=True, truncation=True, max_length=longest, return_tensors="pt")
    with torch.no_grad():
        output = model(**batch, output_attentions=True)
    keep = batch["attention_mask"].unsqueeze(-1).float()
    embeddings = torch.nn.functional.normalize((output.last_hidden_state * keep).sum(1) / keep.sum(1), dim=1)
    first = int(batch["attention_mask"][0].sum())
    real = [ids[mask.bool()] for ids, mask in zip(batch["input_ids"], batch["attention_mask"])]
    tokens = [tokenizer.convert_ids_to_tokens(ids) for ids in real]
    return tokens, embeddings, output.attentions[LAYER][0, HEAD, :first, :first]


def main():
    folder = sys.argv[1]
    found = ours(folder)
    tokens, embeddings, pattern = theirs(folder)
    for own, other in zip(found["tokens"], tokens):
        print("tokens", f"same, {len(own)}" if own == other else f"differ: {own} {other}")
    worst = {
        "embeddings": (torch.tensor(found["embeddings"]) - embeddings).abs().max().item(),
        "pattern": (torch.tensor(found["pattern"]) - pattern).abs().max().item(),
    }
    for name, difference in worst.items():
        print(f"{name}: largest difference {difference:.1e}")
    sys.exit(found["tokens"] != tokens or max(worst.values()) > BOUND)


if __name__ == "__main__":
    main()
