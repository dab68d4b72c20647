"""A stream of Docs reranked in several forked processes, in order, with the same results.

spaCy's own way, `nlp.pipe(n_process=...)`, sends whole Docs there and back, which takes as long as
to choose their trees.  Here the pipeline stays in its process: sentences go out as plain data, and
choices come back, while the components before go on with the next Docs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tk_spacy.kbest.sources import ParserSource, Recalling, Remembering
from tk_spacy.parallel.sharing import in_order
from tk_spacy.pipeline.doc_reranking import Choice
from tk_spacy.pipeline.sources import DocSource
from tk_spacy.reranker.speeds import Speed
from tk_spacy.spacy_io.doc_trees import NOBODY, DocSentence

if TYPE_CHECKING:
    from spacy.tokens import Doc

UNDER_WAY = 2
"""Batches of Docs for each process that may be read ahead."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What is to be chosen for a batch of Docs, and how.

    sentences: of all its Docs.
    recalled: what the first parser, whose trees the Docs have, remembers of them, else None.
    kept, explains, well_formed, speed: as `choose_trees` takes them.
    """

    sentences: Sequence[DocSentence]
    recalled: Any
    kept: int
    explains: bool
    well_formed: bool
    speed: Speed

    def alone(self) -> Request:
        """The same without Docs, as plain data."""
        return replace(self, sentences=[sentence.alone() for sentence in self.sentences])

    def remind(self, sources: Sequence[DocSource]) -> None:
        """Let the first parser remember what was recalled, and all others nothing.

        The last digits of what a parser says of a sentence depend on what else it reads with it:
        so nothing may depend on the batches that this process has done before.
        """
        for place, source in enumerate(sources):
            if self.recalled is not None and not place and isinstance(source.of_words, Recalling):
                source.of_words.remember(self.recalled)
            elif isinstance(source.of_words, Remembering):
                source.of_words.forget()


def recalled(source: ParserSource, sentences: Iterable[DocSentence]) -> Any:
    """What a parser remembers of sentences with trees, None of one that remembers nothing."""
    if not isinstance(source, Recalling):
        return None
    return source.recall([sentence.plain for sentence in sentences if sentence.heads is not None])


@dataclass(frozen=True, slots=True)
class Steps:
    """What is done with a batch of Docs.

    ask: the sentences of each, and what is to be chosen for them; None where another process could
        not tell.
    choose: the choices, in the process that is asked.
    write: what is chosen for each sentence of each Doc into the Docs; returns those that go on.
    alone: all in this process, with whatever is to be done about errors.
    """

    ask: Callable[[list[Doc]], tuple[list[list[DocSentence]], Request] | None]
    choose: Callable[[Request], list[Choice]]
    write: Callable[[list[Doc], Sequence[Sequence[Choice]]], Iterable[Doc]]
    alone: Callable[[list[Doc]], Iterable[Doc]]


def shared(batches: Iterable[list[Doc]], steps: Steps, *, processes: int) -> Iterator[Doc]:
    """The Docs of all batches, in order, chosen for in so many processes.

    A batch that fails in another process is done again in this one, which knows what is to become
    of errors.  Raises TaskError where a process is killed.
    """
    waiting: deque[tuple[list[Doc], list[list[DocSentence]]]] = deque()

    def requests() -> Iterator[Request | None]:
        for docs in batches:
            try:
                asked = steps.ask(docs)
            except Exception:  # it is raised again where the batch is done here
                asked = None
            sentences, request = ([], None) if asked is None else asked
            waiting.append((docs, sentences))
            yield None if request is None else request.alone()

    def choose(request: Request | None) -> list[Choice] | None:
        if request is None:
            return None
        try:
            return [replace(choice, sentence=NOBODY) for choice in steps.choose(request)]
        except Exception:  # as above
            return None

    found = in_order(
        requests(), choose, processes=processes, what="the reranker", under_way=UNDER_WAY
    )
    with closing(found):
        for choices in found:
            docs, sentences = waiting.popleft()
            if choices is None:
                yield from steps.alone(docs)
                continue
            left = iter(choices)
            chosen = [[replace(next(left), sentence=s) for s in own] for own in sentences]
            yield from steps.write(docs, chosen)
