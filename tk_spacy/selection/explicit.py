"""Linear models over listed features, by kinds: what a reranker may have in its kernel's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.selection.combinations.model import CombinationModel
from tk_spacy.selection.model import SelectedFeatures
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.serialization import META, reading
from tk_spacy.utils.stored_values import shown, stored_entry
from tk_spacy.utils.tables import show


class ExplicitModel(Protocol):
    """Features that are listed, each with a weight; see `SelectedFeatures`."""

    def __len__(self) -> int:
        """The number of features."""
        ...

    def encode(self, sentence: Sentence, candidates: CandidateList) -> Any:
        """What `scores` reads of a sentence and its candidates."""
        ...

    def encode_all(self, pairs: Sequence[tuple[Sentence, CandidateList]]) -> list[Any]:
        """As `encode`, for several sentences in one go."""
        ...

    def scores(self, encoded: Sequence[Any], *, n_threads: int | None = None) -> list[Float64]:
        """The score of every candidate of some lists: float64[k] for each."""
        ...

    def listed(self) -> Iterator[tuple[str, float]]:
        """Each feature in words and its weight."""
        ...

    def n_templates(self) -> int:
        """The number of different templates: features without their values."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """What meta.json says of it."""
        ...

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for an .npz file."""
        ...


KINDS: Mapping[str, Any] = {
    "selected": SelectedFeatures,
    "combinations": CombinationModel,
}
"""What models are called in meta.json."""


def explicit_to_dict(model: ExplicitModel) -> dict[str, Any]:
    """What meta.json says of a model, its kind too."""
    (kind,) = (name for name, made in KINDS.items() if isinstance(model, made))
    return {"kind": kind, **model.to_dict()}


def explicit_facts(model: ExplicitModel) -> dict[str, Any]:
    """What there is to tell of a model: JSON values."""
    return {
        **explicit_to_dict(model),
        "features": len(model),
        "templates": model.n_templates(),
    }


def explicit_line(facts: Mapping[str, Any]) -> str:
    """The same for readers."""
    what = "slot combinations"
    if facts["kind"] == "selected":
        what = "parts of trees" if facts["trees"] else "sets of features of an arc"
    return f"{show(facts['features'])} {what}, of {show(facts['templates'])} templates"


def read_explicit(
    data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], schema: Schema
) -> ExplicitModel:
    """A stored model.  Raises KeyError or ValueError where it is damaged."""
    with reading(META):
        kind = stored_entry(data, "kind", "explicit")
        if kind not in list(KINDS):
            raise ValueError(
                f"explicit features of kind {shown(kind)}, expected one of {list(KINDS)}"
            )
    model: ExplicitModel = KINDS[kind].from_stored(data, arrays, schema)
    return model
