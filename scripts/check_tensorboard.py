#!/usr/bin/env python3
"""Reads a run's event files with TensorBoard and compares them with metrics.jsonl and heads.jsonl.

usage: check_tensorboard.py RUN

Exits with 1 if a value is missing, left over or different. Needs the packages numpy and tensorboard.
"""

import json
import pathlib
import sys

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

METRICS = {
    "loss": "loss/training",
    "validation": "loss/validation",
    "accuracy": "accuracy/validation",
    "training_accuracy": "accuracy/training",
    "exact": "accuracy/whole sequences",
    "in_context": "in-context score",
    "learning_rate": "update/learning rate",
    "gradient_norm": "update/gradient norm",
}


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def expected(run):
    """What the rows say: the value of each tag at each step, in the f32 that TensorBoard keeps."""
    values = {}
    for row in rows(run / "metrics.jsonl"):
        scalars = {tag: row[key] for key, tag in METRICS.items() if row.get(key) is not None}
        scalars |= {f"answers/{kind}": answers["accuracy"] for kind, answers in row.get("breakdown", {}).items()}
        values |= {(tag, row["step"]): value for tag, value in scalars.items()}
    for row in rows(run / "heads.jsonl"):
        if row["on"] == "probe":
            for name, score in row["scores"].items():
                values[f"{name}/{row['head']}", row["step"]] = score["value"]
                values[f"{name}/uniform", row["step"]] = score["null"]
                values[f"{name}/ceiling", row["step"]] = score["ceiling"]
    return {key: float(numpy.float32(value)) for key, value in values.items()}


def found(run):
    """What TensorBoard reads."""
    accumulator = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return {(tag, event.step): event.value for tag in accumulator.Tags()["scalars"] for event in accumulator.Scalars(tag)}


def main():
    run = pathlib.Path(sys.argv[1])
    rows_say, tensorboard_says = expected(run), found(run)
    different = [key for key in rows_say.keys() | tensorboard_says.keys() if rows_say.get(key) != tensorboard_says.get(key)]
    for key in sorted(different)[:10]:
        print(f"{key[0]} at step {key[1]}: {rows_say.get(key)} in the rows, {tensorboard_says.get(key)} in TensorBoard")
    tags = len({tag for tag, _ in rows_say})
    print(f"{len(rows_say)} values of {tags} tags, {len(different)} different")
    sys.exit(bool(different) or not rows_say)


if __name__ == "__main__":
    main()
