"""One trained parser at work on batches of sentences, left to right or right to left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import DependencyParser

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.names import Search
from tk_spacy.parsers.spacy_transition.mirror import mirrored_doc, mirrored_heads
from tk_spacy.parsers.spacy_transition.tree_pool import Pool, PoolMaker

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


class Reading:
    """What one parser of a pipeline finds in sentences and thinks of their trees.

    nlp, component: the pipeline and the parser's name in it.
    mirrored: whether the parser was trained on sentences in reverse order.  Trees go in and come
        out in the sentence's own order.
    search, runs, beam_width: see `SpacySource`.

    Raises UserError where the pipeline has no such parser.
    """

    def __init__(
        self,
        nlp: Language,
        component: str,
        *,
        inventory: LabelInventory,
        search: Search,
        runs: int,
        beam_width: int | None,
        mirrored: bool = False,
    ) -> None:
        parser = find_parser(nlp, component)
        self.maker = PoolMaker(parser, inventory=inventory)
        self.mirrored = mirrored
        self.search = search
        self.runs = runs
        self.beam_width = beam_width
        self.own_beam = int(parser.cfg["beam_width"])
        self._before = listened_pipes(nlp, parser)

    def read(self, docs: Sequence[Doc], *, k: int) -> ReadBatch:
        """Run the model over a batch of Docs of one sentence each, to ask for k trees of each."""
        if self.mirrored:
            docs = [mirrored_doc(doc) for doc in docs]
        for doc in docs:
            for token in doc:
                token.is_sent_start = token.i == 0
        for pipe in self._before:
            pipe.set_annotations(docs, pipe.predict(docs))
        widths = [self.own_beam] if self.own_beam > 1 else []
        if self.search != "discrepancy" and k > 1:
            widths.append(self.beam_width or k)
        return ReadBatch(
            reading=self,
            k=k,
            docs=docs,
            cached=self.maker.vectors(docs),
            starts=np.cumsum([0, *map(len, docs)]).tolist(),
            beams=[self.maker.beam_parses(docs, width=width) for width in widths],
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReadBatch:
    """A batch that a model was run over; its Docs may be asked about in any order."""

    reading: Reading
    k: int
    docs: Sequence[Doc]
    cached: NDArray[np.float32]
    starts: list[int]
    beams: list[list[tuple[NDArray[np.int32], NDArray[np.int32]]]]

    def pool(self, i: int) -> Pool:
        """Trees of Doc i, more than k where there are; the parser's own is row 0."""
        reading = self.reading
        maker = reading.maker
        maker.begin(self.docs[i], self.cached, first=self.starts[i])
        pools = [maker.scored(*beam[i]) for beam in self.beams]
        # A beam parser's own tree heads its own beam; that of all others is the greedy one.
        if self.k > 1 and reading.search != "beam":
            greedy = maker.discrepancies(max_runs=reading.runs * self.k, limit=2 * self.k)
        else:
            greedy = maker.discrepancies(max_runs=1, limit=1)
        pools.insert(1 if reading.own_beam > 1 else 0, greedy)
        pool = Pool.join(pools)
        if reading.mirrored:
            pool.heads = mirrored_heads(pool.heads)
            pool.labels = pool.labels[:, ::-1]
        return pool

    def scores(
        self, i: int, heads: NDArray[np.int32], labels: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Log-probabilities float64[m] of any trees of Doc i.

        heads, labels: int32[m, n], as UD has them and ids of the inventory.  -infinity where a tree
        has a relation that the parser was not trained on.
        """
        maker = self.reading.maker
        if not maker.has_begun(self.docs[i]):
            maker.begin(self.docs[i], self.cached, first=self.starts[i])
        if self.reading.mirrored:
            heads, labels = mirrored_heads(heads), labels[:, ::-1]
        return maker.scores(heads, labels)


def find_parser(nlp: Language, component: str) -> DependencyParser:
    """The parser of that name, whether enabled or not."""
    if component not in nlp.component_names:
        raise UserError(
            f"the pipeline has no component {component!r}; it has: "
            f"{', '.join(nlp.component_names) or 'none'}"
        )
    parser = nlp.get_pipe(component)
    if not isinstance(parser, DependencyParser):
        raise UserError(
            f"component {component!r} is a {type(parser).__name__}; a spaCy 'parser' or "
            f"'beam_parser' is needed"
        )
    return parser


def listened_names(parser: DependencyParser) -> set[str]:
    """Names of the components whose vectors a parser's model listens to, "*" for any."""
    return {node.upstream_name for node in parser.model.walk() if hasattr(node, "upstream_name")}


def listened_pipes(nlp: Language, parser: DependencyParser) -> Sequence:
    """Components before the parser whose vectors its model listens to, in pipeline order."""
    wanted = listened_names(parser)
    if not wanted:
        return []
    before = []
    for name, pipe in nlp.components:
        if pipe is parser:
            break
        if hasattr(pipe, "listener_map") and wanted & {name, "*"}:
            before.append(pipe)
    return before
