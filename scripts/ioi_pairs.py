#!/usr/bin/env python3
"""100 pairs of prompts that ask who was given something (indirect object identification, Wang et al. 2023).

The clean prompt names two people, and one of them again; the answer is the other one. The corrupted prompt
names the other one again, so that its answer is the clean prompt's wrong one. Nothing else differs.

    python3 scripts/ioi_pairs.py > ioi.jsonl
    inspect SmolLM2-135M-Instruct.Q4_1.gguf circuit --pairs ioi.jsonl

Needs no package. A name of more than one token is refused by `inspect`, with its line. Names and sentences
were written for this script.
"""

import argparse
import json
import random

NAMES = (
    "Mary John Tom Anna Paul Lisa Mark Sarah Peter Laura David Emma James Kate Simon Alice "
    "Michael Jane Robert Rose Daniel Lucy Adam Julia Henry Grace Frank Helen"
).split()
TEMPLATES = [
    "After {a} and {b} had lunch at the {place}, {s} gave a {thing} to",
    "When {a} and {b} met at the {place}, {s} handed a {thing} to",
    "While {a} and {b} were walking to the {place}, {s} passed a {thing} to",
    "Before {a} and {b} left the {place}, {s} showed a {thing} to",
    "Since {a} and {b} both worked at the {place}, {s} lent a {thing} to",
]
PLACES = "school market station office museum garden library hospital".split()
THINGS = "book ticket letter key map coin flower cup".split()


def pair(random):
    """One pair: who is named first is left to chance."""
    template, place, thing = (random.choice(words) for words in (TEMPLATES, PLACES, THINGS))
    a, b = random.sample(NAMES, 2)
    giver, receiver = random.sample([a, b], 2)
    prompt = lambda s: template.format(a=a, b=b, s=s, place=place, thing=thing)
    return {
        "clean": prompt(giver),
        "corrupted": prompt(receiver),
        "answer": f" {receiver}",
        "wrong": f" {giver}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    for _ in range(arguments.pairs):
        print(json.dumps(pair(draw)))


if __name__ == "__main__":
    main()
