"""A treebank of any size: a real one again and again, each time with other words of open classes.

The words keep their length and their last letter, so that endings stay what they are; the letters
before it are exchanged, vowels for vowels, as differently in each copy.  Run it by hand:
python tests/large_treebank.py UD_Portuguese-Bosque OUTPUT --words 1000000
"""

from __future__ import annotations

import argparse
import random
import string
from collections.abc import Iterator
from pathlib import Path

OPEN = {"ADJ", "ADV", "INTJ", "NOUN", "PROPN", "VERB"}
VOWELS = "aeiou"
CONSONANTS = "".join(letter for letter in string.ascii_lowercase if letter not in VOWELS)


def exchange(copy: int) -> dict[int, str]:
    """Which letter becomes which in a copy: none in the first one."""
    if copy == 0:
        return {}
    rng = random.Random(copy)
    table = {}
    for letters in (VOWELS, CONSONANTS):
        others = "".join(rng.sample(letters, len(letters)))
        table.update(str.maketrans(letters + letters.upper(), others + others.upper()))
    return table


def changed(line: str, table: dict[int, str]) -> str:
    """A line of a word with another FORM and LEMMA, if its class is an open one."""
    columns = line.split("\t")
    if not columns[0].isdigit() or columns[3] not in OPEN:
        return line
    for place in (1, 2):
        columns[place] = columns[place][:-1].translate(table) + columns[place][-1:]
    return "\t".join(columns)


def copies(path: Path, words: int) -> Iterator[str]:
    """Blocks of lines of at least as many words in all."""
    blocks = path.read_text(encoding="utf-8").strip("\n").split("\n\n")
    copy = 0
    while True:
        table = exchange(copy)
        for block in blocks:
            lines = []
            for line in block.split("\n"):
                if line.startswith("# sent_id"):
                    lines.append(f"{line}-{copy}")
                elif not line.startswith("#"):
                    lines.append(changed(line, table))
                    words -= line.split("\t")[0].isdigit()
            yield "\n".join(lines) + "\n\n"
            if words <= 0:
                return
        copy += 1


def main() -> None:
    """Write train, dev and test files, dev and test of at most a tenth of the words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("treebank", type=Path, help="folder with *-train.conllu and the others")
    parser.add_argument("output", type=Path, help="folder to write into")
    parser.add_argument("--words", type=int, default=1_000_000, help="of train")
    parser.add_argument("--held-out", type=int, default=20_000, help="words of dev and of test")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        words = options.words if part == "train" else min(options.held_out, options.words // 10)
        (source,) = options.treebank.glob(f"*-{part}.conllu")
        target = options.output / f"large-ud-{part}.conllu"
        with target.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(copies(source, words))


if __name__ == "__main__":
    main()
