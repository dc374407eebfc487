"""Compares the tokenizer of a GGUF file with the SentencePiece model that the file was converted from.

    python scripts/check_sentencepiece.py MODEL.gguf TOKENIZER.model --text FILE [--programs target/debug]

The packages: sentencepiece, tokenizers, transformers. `inspect` opens the file and exports its tokenizer. The text, its
lines, and lines of code, emoji, CJK and spaces must have SentencePiece's ids.
"""

import argparse
import tempfile
from pathlib import Path

from exported import run
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer

LINES = [
    "", " ", "   ", "\n", " a", "a  b   c ", "\tfn main() {\n\t\tprintln!(\"{x:?}\"); // 2026-01-02\n\t}\n",
    "Lamp 💡, family 👨‍👩‍👧‍👦, flag 🇯🇵; it's 25°C — isn't it?   ", "灯塔在海边。日本語のテキストと한국어 텍스트, 第12章",
    "नमस्ते दुनिया", "<s> </s> <unk> <0x0A> [INST]", "▁▁ a sign of its own ▁", "\u0000\u007f\u00a0\u3000\ufeff",
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gguf", type=Path)
    parser.add_argument("model")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--programs", type=Path, default=Path("target/debug"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "exported"
        run(arguments.programs / "inspect", arguments.gguf, "export", "--to", out)
        tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    # SentencePiece reads the names of control tokens as text.
    tokenizer.encode_special_tokens = True
    theirs = SentencePieceProcessor(model_file=arguments.model)
    text = arguments.text.read_text()
    cases = LINES + text.splitlines() + [text]
    wrong = [case for case in cases if tokenizer.encode(case, add_special_tokens=False).ids != theirs.encode(case)]
    count = sum(len(theirs.encode(case)) for case in cases)
    print(f"{len(cases)} texts, {count} tokens: {len(wrong)} texts have other ids")
    for case in wrong[:5]:
        print(repr(case[:80]))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
