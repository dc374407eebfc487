#!/usr/bin/env python3
"""Runs the blocks of docs/notebooks.md one after the other, and compares what they compute with what the run logged.

    python scripts/check_notebooks.py               # pandas, safetensors, numpy
    python scripts/check_notebooks.py --programs target/debug --set train.steps=300
"""

import argparse
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def blocks(page):
    """The blocks of a page in their order: their language, their text."""
    return re.findall(r"^```(sh|python)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def run_command(line, programs, settings):
    """`cargo train …` and `cargo inspect …` as the programs that are built already."""
    words = shlex.split(line)
    assert words[:1] == ["cargo"], line
    command = [programs / words[1], *words[2:]]
    if words[1] == "train":
        command[1] = ROOT / command[1]
        for setting in settings:
            command += ["--set", setting]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--programs", type=Path, default=ROOT / "target/debug")
    arguments.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = arguments.parse_args()
    programs = arguments.programs.resolve()
    names = {}
    page = (ROOT / "docs/notebooks.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for language, text in blocks(page):
            if language == "python":
                exec(text, names)
                continue
            for line in text.splitlines():
                run_command(line, programs, arguments.set)
        os.chdir(ROOT)
    # The page computes the induction scores of layer 1 by itself.
    scores = names["scores"].loc["probe"]
    last = scores.index.get_level_values("step").max()
    logged = scores.loc[last].xs("induction", level="name")["value"]
    computed = names["weight"] / names["count"]
    for head, value in enumerate(computed):
        difference = abs(value - logged[f"L1H{head}"])
        assert difference < 1e-5, (head, value, logged[f"L1H{head}"])
    print(f"the induction scores of layer 1 are those of the run: {len(computed)} heads within 1e-5")


if __name__ == "__main__":
    main()
