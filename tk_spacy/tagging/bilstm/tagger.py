"""A trained neural tagger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import Any, Self

import numpy as np
import srsly
from thinc.api import Model

from tk_spacy.parallel.blas import one_thread
from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.batches import make_batches
from tk_spacy.parsers.biaffine.weights import take_weights
from tk_spacy.tagging.base import Tags
from tk_spacy.tagging.bilstm.kind import FORMAT
from tk_spacy.tagging.bilstm.labels import Labels, Tag
from tk_spacy.tagging.bilstm.lemmas import EditRule, SeenLemmas
from tk_spacy.tagging.bilstm.model import check_weights, model_of
from tk_spacy.tagging.bilstm.settings import BilstmSettings
from tk_spacy.tagging.bilstm.vocabulary import FormVocabulary
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import META, StoredModel, read_msgpack, reading, stored_file
from tk_spacy.utils.validation import check_names_of

LABELS, LEMMAS, MODEL = "labels.msgpack", "lemmas.msgpack", "model"
"""Names of files."""
TAGGED_ROWS = 1000
"""Rows that are tagged at a time."""
MOST_WORDS = 1000
"""Words that are read at a time: a longer sentence is tagged in pieces."""
SENTENCES = 1000
"""Sentences from which batches are made."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BilstmTagger(StoredModel):
    """A trained neural tagger: a `Tagger`.

    model: as `model.model_of` makes it, initialized.  labels: what it decides.
    seen: lemmas of the words that it was trained on.  settings: as trained.
    columns: of LEMMA, UPOS, XPOS and FEATS those that the treebank had filled.
    about: further facts for meta.json, JSON values.
    """

    FORMAT = FORMAT
    VERSION = OLDEST = 1
    FILES = (META, LABELS, LEMMAS, MODEL)

    model: Model[Batch, Any]
    labels: Labels
    seen: SeenLemmas
    settings: BilstmSettings
    columns: tuple[str, ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def upos_tags(self) -> tuple[str, ...]:
        """The UPOS tags that it can give."""
        return tuple(sorted({tag.upos for tag in self.labels.tags}))

    def tag(self, sentences: Iterable[Sentence]) -> Iterator[Tags]:
        """The tags of each sentence from its words alone, in order."""
        stream = iter(sentences)
        while some := list(islice(stream, SENTENCES)):
            yield from self._tag(some)

    def _tag(self, sentences: Sequence[Sentence]) -> list[Tags]:
        pieces: list[Sentence] = []
        ends: list[int] = []
        for sentence in sentences:
            if len(sentence) <= MOST_WORDS:
                pieces.append(sentence)
            else:
                for start in range(0, len(sentence), MOST_WORDS):
                    forms = sentence.forms[start : start + MOST_WORDS]
                    pieces.append(Sentence.from_columns(forms=forms))
            ends.append(len(pieces))
        found: dict[int, Tags] = {}
        with one_thread():
            for ids in make_batches([len(piece) + 1 for piece in pieces], TAGGED_ROWS):
                raise_if_stopped()
                batch = [pieces[i] for i in ids]
                found.update(zip(ids, self._tag_batch(batch), strict=True))
        return [
            _joined([found[i] for i in range(start, end)])
            for start, end in zip([0, *ends[:-1]], ends, strict=True)
        ]

    def _tag_batch(self, sentences: Sequence[Sentence]) -> Iterator[Tags]:
        scores = np.asarray(self.model.predict(Batch(sentences)))
        forms = [form for sentence in sentences for form in sentence.forms]
        tags = self.labels.best_tags(scores)
        lemmas = self._lemmas(forms, tags, self.labels.rules_of(forms, scores))
        start = 0
        for sentence in sentences:
            own = slice(start, start + len(sentence))
            upos, xpos, feats = zip(*tags[own], strict=True)
            yield Tags(tuple(lemmas[own]), upos, xpos, feats)
            start = own.stop

    def _lemmas(
        self, forms: Sequence[str], tags: Sequence[Tag], by_rules: Sequence[str | None]
    ) -> list[str]:
        """Of a word that was seen with its tags the lemma it had, of others that of the rules."""
        if "LEMMA" not in self.columns:
            return ["_"] * len(forms)
        return [
            self.seen.find(form, tag.upos, tag.feats) or lemma or form
            for form, tag, lemma in zip(forms, tags, by_rules, strict=True)
        ]

    # Storage

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        more = {"columns": list(self.columns), **self.about}
        labels = {
            "tags": list(map(list, self.labels.tags)),
            "rules": list(map(list, self.labels.rules)),
        }
        return {
            META: self._meta(asdict(self.settings), more),
            LABELS: srsly.msgpack_dumps(labels),
            LEMMAS: srsly.msgpack_dumps(list(map(list, self.seen.rows))),
            MODEL: self.model.to_bytes(),
        }

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        settings = BilstmSettings(**check_names_of(BilstmSettings, meta["settings"]))
        stored = read_msgpack(files, LABELS)
        with reading(LABELS):
            labels = Labels(
                [Tag(*map(str, tag)) for tag in stored["tags"]],
                [EditRule(*rule) for rule in stored["rules"]],
            )
        rows = read_msgpack(files, LEMMAS)
        with reading(LEMMAS):
            seen = SeenLemmas(rows)
        content = stored_file(files, MODEL)
        with reading(MODEL):
            model = model_of(settings, FormVocabulary({}, {}), sum(labels.sizes))
            take_weights(model, content)
            check_weights(model, sum(labels.sizes))
        return cls(
            model=model,
            labels=labels,
            seen=seen,
            settings=settings,
            columns=tuple(map(str, meta["columns"])),
            about=cls._about(meta, "columns"),
        )


def _joined(pieces: Sequence[Tags]) -> Tags:
    return Tags(*(tuple(chain.from_iterable(p[i] for p in pieces)) for i in range(4)))
