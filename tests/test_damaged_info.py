"""What a stored model tells of its making, one value of it strange: shown, or refused in a line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from damages import FOREIGN, damaged_values
from test_damaged_models import kernel

from tk_spacy.errors import ModelError, UserError
from tk_spacy.reranker.provenance import Candidates, PartFacts, Provenance
from tk_spacy.utils.serialization import META
from tk_spacy.workflows.info import info, licence_of

SELECTED = {
    "version": "0.1.0",
    "settings": {"space": "quadratic", "threshold": 5.0, "learner": "perceptron"},
    "metric": "las",
    "features": 40,
    "iterations": 3,
    "basic_features": 100,
    "files": {"train": ["train.conllu", "train.kbest.conllu"]},
    "scores": {
        "dev": {
            system: dict.fromkeys(("uas", "las", "uas_nopunct", "las_nopunct"), 80.0)
            for system in ("parsers", "model", "selected")
        }
    },
}


def test_info_tells_all_of_it_or_refuses(tmp_path: Path) -> None:
    place = tmp_path / "told"
    made = Provenance(
        title="UD_Synthetic",
        version="0.1.0",
        treebank={"train": PartFacts(file="train.conllu", sentences=1, words=2, sha256="0")},
        parsers={"biaffine": {"layers": 1, "width": 8, "epochs": 3}},
        parsers_trained=True,
        tagger={"kind": "bilstm", "layers": 1, "width": 8, "epochs": 3, "steps": 0},
        multiword={"al": "a el"},
        folds=5,
        sources=("good", "fair", "poor"),
        candidates=Candidates(k=50, search="beam", files={"train": "train.kbest.conllu"}),
        selected=SELECTED,
        compressed=({"hash_bits": 8, "support_parts_before": {"arc": 10}},),
    )
    replace(kernel(), about=made.to_dict(), combiner=None).to_disk(place)
    meta = json.loads((place / META).read_text())
    assert info(place)
    refused = shown = 0
    for values in damaged_values(meta, lambda path: path[0] in made.to_dict(), few=2):
        (place / META).write_text(json.dumps(values))
        try:
            tables, _ = info(place)
        except UserError as error:
            text = str(error)
            assert text.startswith(f"{place / META}: is not as `tk-spacy train` writes it ("), text
            assert len(text.splitlines()) == 1
            assert not FOREIGN.search(text), text
            refused += 1
        else:
            assert all(table.to_markdown() for table in tables)
            shown += 1
        # Scoring asks for none of it.
        assert Provenance.from_dict(values, strict=False)
    assert refused > 100
    assert shown > 20


@pytest.mark.parametrize("content", ["{", "[1]", ""])
def test_the_licence_of_a_pipeline_whose_meta_is_damaged(tmp_path: Path, content: str) -> None:
    (tmp_path / META).write_text(content)
    with pytest.raises(ModelError, match=r"meta\.json of the spaCy pipeline cannot be read"):
        licence_of(tmp_path)
