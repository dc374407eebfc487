#!/usr/bin/env python3
"""Are the heads of a circuit those whose removal costs most? Compares what `circuit` and `ablate` say of the same pairs.

    inspect SUBJECT circuit --pairs pairs.jsonl --json > circuit.json
    inspect SUBJECT ablate --pairs pairs.jsonl --json > ablate.json
    python3 scripts/compare_effects.py circuit.json ablate.json

Of each head: its effect in the circuit (of all its edges together, `parts`) and the logit difference that is lost when it
is ablated alone. Both are signed: above 0, the head works for the answer. Printed are Spearman's rank correlation over all
heads, with its 95 % interval by bootstrap over heads, and how many of the first heads of both lists are the same, beside
what chance gives. Needs no package.
"""

import argparse
import json
import random

SHOWN = 12
RESAMPLES = 1000


def ranks(values):
    """Ranks from 1; equal values share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, first = [0.0] * len(values), 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in order[first : last + 1]:
            found[place] = (first + last) / 2 + 1
        first = last + 1
    return found


def correlation(a, b):
    """Spearman's rank correlation; 0 where a list has one value only."""
    a, b = ranks(a), ranks(b)
    middle = (len(a) + 1) / 2
    product = lambda a, b: sum((x - middle) * (y - middle) for x, y in zip(a, b))
    size = (product(a, a) * product(b, b)) ** 0.5
    return product(a, b) / size if size else 0.0


def interval(a, b):
    """The 95 % interval of the correlation by bootstrap over heads."""
    draw, found = random.Random(0), []
    for _ in range(RESAMPLES):
        places = [draw.randrange(len(a)) for _ in a]
        found.append(correlation([a[i] for i in places], [b[i] for i in places]))
    found.sort()
    return found[round(0.025 * (RESAMPLES - 1))], found[round(0.975 * (RESAMPLES - 1))]


def is_head(name):
    """L0H1, and no `feed-forward 0` or `embedding`."""
    return name.startswith("L") and "H" in name


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("circuit")
    arguments.add_argument("ablate")
    arguments = arguments.parse_args()
    with open(arguments.circuit) as file:
        circuit = json.load(file)
    with open(arguments.ablate) as file:
        ablate = json.load(file)
    assert circuit["metric"] == "logit-difference", "circuit: the metric must be logit-difference"
    untouched = ablate["untouched"]["logit_difference"]
    assert untouched, "ablate: needs --pairs"
    lost = {
        one["heads"][0]: untouched["mean"] - one["performance"]["logit_difference"]["mean"]
        for one in ablate["alone"]
    }
    sign = 1 if circuit["direction"] == "denoise" else -1
    effect = {part["source"]: sign * part["mean"] for part in circuit["parts"] if is_head(part["source"])}
    heads = sorted(effect)
    assert heads == sorted(lost), "the two files are of different models"
    a, b = [effect[head] for head in heads], [lost[head] for head in heads]
    sizes = [[abs(x) for x in values] for values in (a, b)]
    for name, (x, y) in (("signed", (a, b)), ("by size", sizes)):
        low, high = interval(x, y)
        print(f"{len(heads)} heads, {name}: Spearman {correlation(x, y):.2f} ({low:.2f} to {high:.2f})")
    by = lambda values: sorted(heads, key=lambda head: -values[head])
    for count in (count for count in (5, 10, 20) if count < len(heads)):
        shared = set(by(effect)[:count]) & set(by(lost)[:count])
        print(f"of the first {count} heads {len(shared)} are the same, {count * count / len(heads):.1f} by chance")
    rank = {head: place + 1 for place, head in enumerate(by(lost))}
    print("\nhead   in the circuit  ablated  rank when ablated")
    for head in by(effect)[:SHOWN]:
        print(f"{head:6} {effect[head]:14.2f} {lost[head]:8.2f} {rank[head]:8}")
    rank = {head: place + 1 for place, head in enumerate(by(effect))}
    print("\nhead    ablated  in the circuit  rank in the circuit")
    for head in by(lost)[:SHOWN]:
        print(f"{head:6} {lost[head]:8.2f} {effect[head]:14.2f} {rank[head]:8}")


if __name__ == "__main__":
    main()
