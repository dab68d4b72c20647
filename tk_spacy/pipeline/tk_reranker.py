"""The spaCy component `tk_reranker`: reranks the trees that the pipeline's own parsers propose.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from tk_spacy.errors import UserError
from tk_spacy.parsers.names import TK_RERANKER, backward_name
from tk_spacy.pipeline.base import BOUNDS, TrainedComponent, add_component
from tk_spacy.pipeline.checks import check_config, check_count, check_speed, unsplit
from tk_spacy.pipeline.parser_base import check_source
from tk_spacy.pipeline.scorer import (
    DEPENDENCY_SCORER,
    SCORE_WEIGHTS,
    ScoreDict,
    score_dependencies,
)
from tk_spacy.pipeline.tk_udpipe_tokenizer import TkUdpipeTokenizer
from tk_spacy.reranker.speeds import EXACT, Speed
from tk_spacy.spacy_io.extensions import (
    CANDIDATES_EXTENSION,
    EXPLANATIONS,
    EXTENSION,
    HEAD_PROB_EXTENSION,
    LABEL_PROB_EXTENSION,
    register_extension,
)

if TYPE_CHECKING:
    from tk_spacy.kbest.candidates import LabelInventory
    from tk_spacy.kbest.sources import ParserSource
    from tk_spacy.pipeline.doc_reranking import Choice
    from tk_spacy.pipeline.doc_sharing import Request
    from tk_spacy.pipeline.sources import DocSource
    from tk_spacy.reranker.model import Reranker
    from tk_spacy.reranker.provenance import Provenance
    from tk_spacy.spacy_io.doc_trees import DocSentence


logger = logging.getLogger("tk_spacy")

MULTIWORD = "multiword"
"""The kind of warning about multiword tokens that are not split."""


@Language.factory(
    TK_RERANKER,
    assigns=[
        "token.dep",
        "token.head",
        f"doc._.{EXTENSION}",
        f"doc._.{CANDIDATES_EXTENSION}",
        f"token._.{HEAD_PROB_EXTENSION}",
        f"token._.{LABEL_PROB_EXTENSION}",
    ],
    requires=["token.dep", "token.head", "doc.sents"],
    default_config={
        "source": "parser",
        "search": "discrepancy",
        "k": 25,
        "candidates": 0,
        "n_threads": None,
        "well_formed": False,
        "speed": "exact",
        "scorer": DEPENDENCY_SCORER,
    },
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_reranker(
    nlp: Language,
    name: str,
    source: str | list[str],
    search: str,
    k: int,
    candidates: int,
    n_threads: int | None,
    well_formed: bool,
    speed: str,
    scorer: Callable[..., ScoreDict] | None,
) -> "TkReranker":
    """Make the component; its config is described at `TkReranker`."""
    return TkReranker(
        nlp, name, source=source, search=search, k=k, candidates=candidates,
        n_threads=n_threads, well_formed=well_formed, speed=speed, scorer=scorer,
    )  # fmt: skip


def add_reranker(
    nlp: Language,
    reranker: "Reranker | None" = None,
    *,
    name: str = TK_RERANKER,
    source: str | Sequence[str] = "parser",
    search: str = "discrepancy",
    k: int = 25,
    candidates: int = 0,
    n_threads: int | None = None,
    well_formed: bool = False,
    speed: str = "exact",
) -> "TkReranker":
    """Add a `tk_reranker` with a trained model at the end of a pipeline, and return it.

    Raises UserError for a value that `TkReranker` rejects, or a `source` that is no parser.
    """
    sources = [source] if isinstance(source, str) else list(source)
    for parser in sources:
        check_source(nlp, name, parser)
    source = sources[0] if len(sources) == 1 else sources
    config = {
        "source": source, "search": search, "k": k, "candidates": candidates,
        "n_threads": n_threads, "well_formed": well_formed, "speed": speed,
    }  # fmt: skip
    return add_component(nlp, TkReranker, reranker, factory=TK_RERANKER, name=name, config=config)


class TkReranker(TrainedComponent["Reranker", "Choice"]):
    """Replaces the trees of a parsed Doc by the best of those that its parsers propose.

    nlp:       the pipeline; its parsers are looked up whenever Docs are to be reranked.
    source:    name of the `parser`, `beam_parser`, `tk_parser`, `tk_biaffine`, `tk_transition`,
               `tk_projective` or `tk_udpipe` in it, or of several: each then proposes trees and
               scores those of all.  The first is the one whose trees the Docs have; the others may
               be disabled.
    search:    how a spaCy parser's are found: "discrepancy", "beam" or "both" (see `SpacySource`).
    k:         candidates of a sentence, at least 1.  The Doc's own tree is one of them, but where
               the first of several parsers searches longer for a list than it did for that tree.
    candidates: trees of a sentence that `doc._.tk_candidates` keeps, at most; 0 for none.
    n_threads: of the kernel, None for all that are available.
    well_formed: only the candidates that break the fewest of UD's constraints are chosen from,
               repaired ones among them (see `Reranker.decide`); all others are left out of counts,
               margin and `doc._.tk_candidates`.
    speed:     "exact", or "balanced" and "fast", where quick parsers decide alone where they are
               sure (see `tk_spacy.reranker.cascade`), at a small loss; all is exact with a model
               that does not know when they are.  Records of such sentences are not calibrated:
               they tell of the quick parsers' trees and the sums of their scores.
    scorer:    of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    Only heads and labels of words change.  A sentence stays as it is where there is nothing to
    choose from (no parse, a single word, a single candidate) or its tree cannot be used (several
    roots, a white-space root, labels missing or decorated with "||").

    `doc._.tk_reranker` holds a list of dicts, one for each sentence of a parsed Doc, else None (out
    of a DocBin it comes as a tuple):

    start, end, changed: the sentence's tokens; whether the Doc's own tree was replaced.
    n_candidates: trees compared; 1 where there was no choice, 0 where the tree could not be used.
    confidence:   probability that the chosen tree is right, from 0 to 1, where `calibrated`; else
                  the softmax of the final scores, 1.0 for a single candidate.  None where the tree
                  could not be used.
    calibrated:   whether the model's confidence is calibrated (see `reranker.calibration`).
    head_probs, label_probs: where calibrated, the probabilities that the head, and the label, of
                  each token is right (None for white space); else None.  `token._.tk_head_prob` and
                  `token._.tk_label_prob` read them.
    margin:       the chosen tree's final score minus the next best; None without a choice.

    `doc._.tk_candidates` holds, where `candidates` asks for them, for each of these sentences its
    best trees, best first (None where the tree could not be used): dicts of score (the final one),
    probability (as confidence), and heads (as `token.head.i`) and labels of the tokens, None for
    white space.  Of a sentence too long to be parsed whole there is the chosen tree alone, and a
    single word's has no score.

    Where the attribute `explains` is set to True, `doc._.tk_explanation` holds for each of these
    sentences a dict that explains the choice (`Explanation.to_dict`), None where there was none, or
    where the sentence was cut into pieces.  It takes time, so it is False unless it is set.

    The attribute `reranker` is the trained model, None before `initialize`; it may be set.
    `nlp.add_pipe(..., source=other)` raises UserError where `nlp` lacks a parser that it needs;
    then it stands in both pipelines, and Docs with the vocab of `nlp` are reranked by the parsers
    of `nlp`.  Raises UserError for a wrong value.
    """

    ATTRIBUTE = "reranker"

    def __init__(
        self,
        nlp: Language,
        name: str = TK_RERANKER,
        *,
        source: str | Sequence[str] = "parser",
        search: str = "discrepancy",
        k: int = 25,
        candidates: int = 0,
        n_threads: int | None = None,
        well_formed: bool = False,
        speed: str = "exact",
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        self.sources = (source,) if isinstance(source, str) else tuple(source)
        check_config(name, sources=self.sources, search=search, k=k, n_threads=n_threads)
        check_count(name, "candidates", candidates, at_least=0)
        if not isinstance(well_formed, bool):
            raise UserError(f"{name}: well_formed is {well_formed!r}; it must be true or false")
        check_speed(name, speed)
        register_extension()
        super().__init__(nlp, name, scorer=scorer)
        self.search = search
        self.k = k
        self.candidates = candidates
        self.n_threads = n_threads
        self.well_formed = well_formed
        self.speed = cast("Speed", speed)
        self.explains = False
        self._inventory: Any = None

    @property
    def reranker(self) -> "Reranker | None":
        """The trained model."""
        return self._trained

    @reranker.setter
    def reranker(self, value: "Reranker | None") -> None:
        self._take(value)

    @staticmethod
    def _model_class() -> "type[Reranker]":
        from tk_spacy.reranker.model import Reranker  # noqa: PLC0415

        return Reranker

    # Application

    def predict(self, docs: Sequence[Doc]) -> "list[list[Choice]]":
        """The choice for each sentence of each Doc; the Docs stay as they are.

        Raises UserError where the component is not trained or its parser is not in the pipeline.
        """
        sentences, request, sources = self._read(docs)
        choices = iter(self._choose(request, sources))
        return [[next(choices) for _ in own] for own in sentences]

    def pipe(self, stream: Iterable[Doc], *, batch_size: int | None = None) -> Iterator[Doc]:
        """Apply the model to a stream of Docs, in place, in several processes where that may be.

        batch_size: Docs at a time, at most BATCH_SIZE, and fewer of long ones.

        In as many forked ones as `n_threads` says.  With 1, in a process that may not fork (see
        `tk_spacy.parallel.sharing`), in a short stream, and where spaCy's parsers are asked, which
        read Docs, all is done here, with the same results.
        """
        from tk_spacy.parallel.threads import effective_n_threads  # noqa: PLC0415
        from tk_spacy.pipeline.doc_sharing import Steps, shared  # noqa: PLC0415

        processes = effective_n_threads(self.n_threads)
        if processes == 1 or self._trained is None:
            yield from super().pipe(stream, batch_size=batch_size)
            return
        batches = self._batches(stream, batch_size)
        steps = Steps(ask=self._ask, choose=self._answer, write=self._write, alone=self._apply)
        yield from shared(batches, steps, processes=processes)

    def _ask(self, docs: Sequence[Doc]) -> "tuple[list[list[DocSentence]], Request] | None":
        """The sentences of Docs, and what another process is to choose; None where it cannot."""
        if self._home_of(docs) is not self.nlp:
            return None
        sentences, request, sources = self._read(docs)
        if any(source.of_words is None for source in sources):
            return None
        return sentences, request

    def _answer(self, request: "Request") -> "list[Choice]":
        """The choices, in another process."""
        from tk_spacy.pipeline.sources import as_doc_source  # noqa: PLC0415

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # who asks has warned
            sources = self.find_sources(self._needed())
        return self._choose(request, [as_doc_source(source) for source in sources])

    def _write(self, docs: list[Doc], choices: "Sequence[Sequence[Choice]]") -> list[Doc]:
        """Write choices of another process, with the same care for errors as `_apply`."""
        try:
            self.set_annotations(docs, choices)
        except Exception as error:
            self._error_handler(self.name, self, docs, error)
            return []
        return docs

    def _read(
        self, docs: Sequence[Doc]
    ) -> "tuple[list[list[DocSentence]], Request, list[DocSource]]":
        """The sentences of Docs, what is to be chosen for them, and who proposes, with warnings."""
        from tk_spacy.pipeline import long_docs  # noqa: PLC0415
        from tk_spacy.pipeline.doc_sharing import Request, recalled  # noqa: PLC0415
        from tk_spacy.pipeline.sources import as_doc_source  # noqa: PLC0415
        from tk_spacy.spacy_io import doc_trees  # noqa: PLC0415

        reranker = self._needed()
        nlp = self._home_of(docs)
        sources = self.find_sources(reranker, nlp=nlp)
        self._warn_of_parsers(nlp, docs)
        sentences = [doc_trees.read_sentences(doc) for doc in docs]
        for doc, own in zip(docs, sentences, strict=True):
            # After a parser sentence bounds are there in any case; what has one sentence had none.
            if len(own) == 1 and not self._is_warned_of():
                self._warn_of_length(long_docs.long_words(own[0]))
            if own:
                self._warn_of_missing(reranker.schema, doc, reader="model", verb="choose")
                self._warn_of_multiword(reranker.provenance, nlp, doc)
        everything = [sentence for own in sentences for sentence in own]
        request = Request(
            sentences=everything,
            recalled=recalled(sources[0], everything),
            kept=self.candidates,
            explains=self.explains,
            well_formed=self.well_formed,
            speed=self._usable_speed(reranker, sources),
        )
        return sentences, request, [as_doc_source(source) for source in sources]

    def _choose(self, request: "Request", sources: "Sequence[DocSource]") -> "list[Choice]":
        """The choices that are asked for."""
        from tk_spacy.pipeline import doc_reranking  # noqa: PLC0415

        request.remind(sources)
        return list(
            doc_reranking.choose_trees(
                self._needed(),
                sources,
                request.sentences,
                inventory=self._inventory,
                k=self.k,
                kept=request.kept,
                n_threads=self.n_threads,
                explains=request.explains,
                well_formed=request.well_formed,
                speed=request.speed,
            )
        )

    def _usable_speed(self, reranker: "Reranker", sources: "Sequence[ParserSource]") -> Speed:
        """The speed that is asked for; the exact one, with a warning, where the model has no other.

        The quick parsers must be among the sources, and some others, too.
        """
        names, cascade = [source.names for source in sources], reranker.cascade
        if self.speed == EXACT or (cascade is not None and cascade.places(names)):
            return self.speed
        self._warn(
            "speed",
            f"speed is {self.speed!r}, but the model does not know when quick parsers of this "
            "pipeline are sure: it is exact",
        )
        return EXACT

    def _warn_of_multiword(self, made: "Provenance", nlp: Language, doc: Doc) -> None:
        """Warn where a Doc has a word that was never one, but several, in the treebank.

        Not where the pipeline's tokenizer splits such: then the words are somebody's choice.
        """
        if not made.multiword or MULTIWORD in self._warned:
            return
        tokenizer: Any = nlp.tokenizer
        if isinstance(tokenizer, TkUdpipeTokenizer):
            return
        words = (token.text for token in doc)
        text = unsplit(made.multiword, words, has_tokenizer=made.tokenizer is not None)
        if text is not None:
            self._warn(MULTIWORD, text)

    def _is_warned_of(self) -> bool:
        """Whether a parser before it has warned of Docs without sentence bounds already."""
        return any(
            isinstance(pipe, TrainedComponent) and BOUNDS in pipe._warned
            for _, pipe in self.nlp.components
        )

    def set_annotations(self, docs: Sequence[Doc], choices: "Sequence[Sequence[Choice]]") -> None:
        """Write the chosen trees, and the records about them.

        Raises ValueError, before it writes to the Doc, for a choice that is no tree.
        """
        from tk_spacy.spacy_io.doc_trees import write_trees  # noqa: PLC0415

        for doc, own in zip(docs, choices, strict=True):
            write_trees(doc, [(c.sentence, *c.tree) for c in own if c.tree is not None])
            if own:
                doc._.set(EXTENSION, [choice.to_record() for choice in own])
                if self.candidates:
                    doc._.set(CANDIDATES_EXTENSION, [choice.candidates for choice in own])
            if own and self.explains:
                doc._.set(EXPLANATIONS, [choice.explanation for choice in own])

    def find_sources(
        self,
        reranker: "Reranker",
        inventory: "LabelInventory | None" = None,
        *,
        nlp: Language | None = None,
        elsewhere: Sequence[str] = (),
    ) -> "list[ParserSource]":
        """The pipeline's parsers as sources of candidates for a model.

        inventory: table of labels for their lists, by default the component's own.
        nlp: the pipeline, by default the component's.
        elsewhere: names of scores that the model gets from other sources.
        Raises UserError where one is not there, or not trained.
        """
        from tk_spacy.kbest.candidates import LabelInventory  # noqa: PLC0415
        from tk_spacy.pipeline.sources import pipeline_sources  # noqa: PLC0415

        if self._inventory is None:
            self._inventory = LabelInventory()
        # Made anew each time: they copy weights of parsers, and a training changes them.
        sources = pipeline_sources(
            nlp or self.nlp, self.sources, reranker=reranker, user=self.name, search=self.search,
            inventory=self._inventory if inventory is None else inventory,
            n_threads=self.n_threads,
        )  # fmt: skip
        for source in sources:
            source.in_company = len(sources) + len(elsewhere) > 1
        from tk_spacy.ensemble.combiner.model import COMBINER  # noqa: PLC0415

        names = [name for source in sources for name in source.names]
        weighed = list(reranker.combination.betas) if reranker.combination else names
        known = set(weighed) - {COMBINER}
        missing = [name for name in weighed if name not in {*names, *elsewhere, COMBINER}]
        if missing and set(names) < known:
            self._warn(
                "source",
                f"the model learnt from the trees of {', '.join(missing)} too, which are missing "
                f"here: it will choose worse (`tk-spacy rerank` takes trees in files)",
            )
        elif set(names) | set(elsewhere) != known:
            self._warn(
                "source",
                f"the model knows scores of {', '.join(weighed)} only, not this parser's"
                if len(sources) == 1
                else f"the model knows scores of {', '.join(weighed)}, these parsers have those of "
                f"{', '.join(names)}",
            )
        return sources

    def _check_home(self, nlp: Language, name: str) -> None:
        if self.reranker is None:
            for source in self.sources:
                check_source(nlp, name, source)
            return
        from tk_spacy.pipeline.sources import known_parsers  # noqa: PLC0415

        made = self.reranker.provenance
        parsers = known_parsers(nlp, self.sources, made)
        for source, parser in zip(self.sources, parsers, strict=True):
            check_source(nlp, name, source, twin=bool(made.has_twin(parser)))

    def _warn_of_parsers(self, nlp: Language, docs: Sequence[Doc]) -> None:
        """Warn where a Doc has no parse, or a parser's that is to be asked for candidates only."""
        first = self.sources[0]
        order = nlp.component_names
        place = {name: order.index(name) for name in order}
        own = place.get(self.name, len(order))
        if any(len(doc) and not doc.has_annotation("DEP") for doc in docs):
            if first in nlp.disabled:
                cure = f"{first!r} is disabled; enable it by nlp.enable_pipe({first!r})"
            elif place[first] > own:
                cure = f"{first!r} stands behind {self.name!r}; put it before"
            else:
                cure = f"apply {first!r} before, as nlp(doc) does"
            self._warn("unparsed", f"a Doc has no parse to rerank, and is left as it is: {cure}")
        asked = {*self.sources[1:], *map(backward_name, self.sources)}
        late = [n for n in nlp.pipe_names if n in asked and place[first] < place[n] < own]
        if late:
            self._warn(
                "late",
                f"{late[-1]!r} replaces the trees of {first!r}, though it need only be asked for "
                f"candidates: disable it by nlp.disable_pipe({late[-1]!r})",
            )

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        model: str | Path | None = None,
        candidates: str | Path | None = None,
        folds: int = 5,
        max_steps: int | None = None,
        processes: int | None = 1,
        workdir: str | Path | None = None,
        seed: int = 0,
        examples: bool = True,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Load a trained model, or train one from the examples.

        Training needs candidates for each gold tree from parsers that did not see it: ready-made,
        or by jackknifing, where the folds' parsers are trained by the config of this pipeline's
        parsers and (spaCy's) its [training] section.  The pipeline's own need not be trained yet.

        get_examples: gives the training data; not called with a model.
        nlp: the pipeline that is initialized, by default the one that the component was made for.
        model: directory of a reranker, or of a pipeline with a component of this one's name.
        candidates: a k-best file with lists for all examples, instead of jackknifing.
        folds, max_steps: of jackknifing, and of the training of each fold's spaCy parser; None for
            1000, or 50 passes over its sentences where these are fewer.
        processes: folds trained at a time, None for as many as there are CPUs; more than one need a
            main module that can be imported, as that of `spacy train` can.
        workdir: keeps finished folds, so that a stopped training can go on; None keeps none.
        seed: of the split for tuning.
        examples: whether the model keeps the words of training sentences, for explanations.
        settings: the reranker's, by the names in `tk_spacy.reranker.settings.Settings`.

        Raises UserError for values that do not fit, or examples without trees.
        """
        from tk_spacy.pipeline import from_examples  # noqa: PLC0415
        from tk_spacy.reranker.settings import LEFT_OPEN, Settings  # noqa: PLC0415

        nlp = self.nlp if nlp is None else nlp
        for source in self.sources:
            check_source(nlp, self.name, source)
        if model is not None:
            if candidates is not None or settings:
                raise UserError(f"{self.name}: a model is loaded as it is: give no more than model")
            self._load(model)
            return
        check_count(self.name, "folds", folds if candidates is None else 2, at_least=2)
        check_count(self.name, "max_steps", 1 if max_steps is None else max_steps)
        check_count(self.name, "processes", 1 if processes is None else processes)
        self.reranker = from_examples.train_from_examples(
            nlp, get_examples(),
            sources=self.sources, search=self.search, k=self.k,  # type: ignore[arg-type]
            candidates=candidates, folds=folds, max_steps=max_steps, processes=processes,
            workdir=workdir, seed=seed, keep_examples=examples,
            settings=Settings.from_dict(settings or {}),
            left_open=LEFT_OPEN - (settings or {}).keys(),
            n_threads=self.n_threads,
            report=lambda text: logger.info("%s: %s", self.name, text),
        )  # fmt: skip

    # Pickling

    def __getstate__(self) -> dict[str, Any]:
        # The label table is only a cache.
        return {**self.__dict__, "_inventory": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        register_extension()
