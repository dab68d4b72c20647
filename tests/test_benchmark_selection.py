"""The benchmark of selected features: what its rows learn from, and its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import benchmark_selection
import numpy as np
import pytest
from benchmark_selection import PARTS, app, of_kernel
from samples import sentence
from test_select import inputs, lists_training
from typer.testing import CliRunner

from tk_spacy.evaluation.attachment import count_sentences
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.matching import matched_pairs
from tk_spacy.selection.basic import ArcLists
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.model import main_source, open_model


class SomeData:
    """As the benchmark's Data, of the lists of a small training."""

    def __init__(self) -> None:
        self.model = open_model(lists_training()[0]).reranker
        inventory, files = LabelInventory(), inputs()
        self.gold, self.pairs = {}, {}
        for part, name in (("train", "train"), *((part, "dev") for part in PARTS)):
            gold = self.gold[part] = load_treebank(files[name])
            self.pairs[part] = list(
                matched_pairs(
                    files[f"{name} lists"], gold, inventory=inventory,
                    source=main_source(self.model), k=1000,
                )
            )  # fmt: skip

    def tuned(self, own: Any) -> Any:
        return own

    def scored(self, final: Any) -> dict[str, Any]:
        return {part: len(final[part]) for part in PARTS}


@pytest.mark.parametrize("add_gold", [False, True])
def test_kernels_learn_from_right_trees_where_the_spaces_do(
    add_gold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = SomeData()
    seen: list[Any] = []
    train = benchmark_selection.Committee.train

    def spy(make: Any, lists: list[ArcLists], oracles: list[int], **options: Any) -> Any:
        seen.append((lists, oracles))
        return train(make, lists, oracles, **options, iterations=1)

    monkeypatch.setattr(benchmark_selection.Committee, "train", spy)
    found = of_kernel(data, "2", {"add_gold": add_gold}, 1)
    ((lists, oracles),) = seen
    right = [
        bool(np.array_equal(arcs.heads[row], gold.heads))
        for arcs, row, gold in zip(lists, oracles, data.gold["train"], strict=True)
    ]
    assert all(right) == add_gold
    assert found["test"] == len(data.gold["test"])


def test_the_table_has_rows_of_any_name(tmp_path: Path) -> None:
    scores = {"uas": 1.5, "las": 2.5, "uas_nopunct": 3.5, "las_nopunct": 4.5}
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(
            json.dumps(
                {
                    "row": name,
                    "treebank": "UD_X",
                    "peak_bytes": 1 << 29,
                    "dev": scores,
                    "test": scores,
                }
            )
            + "\n"
            for name in ("eighth:l1", "oracle", "base")
        ),
        encoding="utf-8",
    )
    result = CliRunner().invoke(app, ["table", str(file)])
    assert result.exit_code == 0, result.output
    assert [line.split(" | ")[0] for line in result.stdout.splitlines()[5:]] == [
        "| the parser's own tree",
        "| best tree of each list, by heads",
        "| features of the kernel of degree 8, weights of the L1 model",
    ]
    row = "| 1.50 / 2.50 | 1.50 / 2.50 | 3.50 / 4.50 | - | - | - | 0.50 | - |"
    assert f"| the parser's own tree {row}" in result.stdout


def test_rows_are_compared_by_what_is_right_in_each_sentence(tmp_path: Path) -> None:
    gold = [sentence("a/VERB/0/root b/NOUN/1/obj")] * 40
    half = [sentence("a/VERB/0/root b/NOUN/1/obl")] * 20 + gold[20:]
    file = tmp_path / "rows.jsonl"
    lines = [
        {"row": name, "test": {"counts": count_sentences(gold, trees).tolist()}}
        for name, trees in (("tree", half), ("kernel:tree", gold))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    missing = CliRunner().invoke(app, ["compare", str(file), "tree", "kernel:9"])
    assert missing.exit_code == 2
    assert "has no row kernel:9; it has " in " ".join(missing.output.replace("│", " ").split())
    result = CliRunner().invoke(app, ["compare", str(file), "tree", "kernel:tree"])
    assert result.exit_code == 0, result.output
    uas, las = result.stdout.splitlines()
    assert uas == "UAS +0.00 (+0.00 to +0.00), p = 1.0000"
    assert las.startswith("LAS +25.00 (+1")
    assert las.endswith("p = 0.0002")
