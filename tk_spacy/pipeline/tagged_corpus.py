"""A CoNLL-U file as a corpus of `spacy train` whose words have tags as they will be met in use.

Annotations are not postponed: spaCy checks the settings of a reader by them.
"""

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from tk_spacy.errors import UserError

if TYPE_CHECKING:
    from tk_spacy.treebank.conllu import Sentence

logger = logging.getLogger("tk_spacy")

REGISTERED = "tk_spacy.JackknifedCorpus.v1"


@registry.readers(REGISTERED)
def create_jackknifed_reader(
    path: Path | None,
    tagger: str = "bilstm",
    folds: int = 5,
    processes: int | None = None,
    workdir: Path | None = None,
    seed: int = 0,
    limit: int = 0,
) -> Callable[[Language], Iterator[Example]]:
    """Corpus reader for `spacy train`: a sentence a Doc, tagged by taggers that did not see it.

    Parsers and the reranker learn from these tags, taggers from those of the references, the
    file's.  The taggers are trained when the corpus is first read.

    path:      the file.
    tagger:    what tags it: "bilstm", "udpipe" or "spacy", with settings as "bilstm:epochs=20"; the
               same that the pipeline has.
    folds:     into which the sentences are dealt, at least 2.
    processes: taggers trained at a time, null for as many as there are CPUs.
    workdir:   keeps the taggers, so that a stopped training can go on; null keeps none.
    seed:      of the taggers.
    limit:     number of sentences, 0 for all.

    Raises UserError for values that do not fit, and where the file has no tags.
    """
    from tk_spacy.pipeline.checks import check_count  # noqa: PLC0415
    from tk_spacy.spacy_io.corpus import check_limit  # noqa: PLC0415
    from tk_spacy.tagging.kinds import make_tagger  # noqa: PLC0415

    check_limit(REGISTERED, limit)
    check_count(REGISTERED, "folds", folds, at_least=2)
    check_count(REGISTERED, "processes", 1 if processes is None else processes)
    make_tagger(tagger, seed=seed)  # what is wrong is said at once

    def read(nlp: Language) -> Iterator[Example]:
        from tk_spacy.spacy_io.conversion import doc_from_sentence  # noqa: PLC0415

        if path is None:
            raise UserError(f"{REGISTERED}: path is null; give it the CoNLL-U file to train on")
        file = Path(path)
        pairs = _tagged_file(
            file, _state(file), tagger=tagger, folds=folds, processes=processes, workdir=workdir,
            seed=seed, limit=limit,
        )  # fmt: skip
        for met, sentence in pairs:
            yield Example(
                doc_from_sentence(nlp.vocab, met),
                doc_from_sentence(nlp.vocab, sentence, with_tree=True),
            )

    return read


def _state(path: Path) -> tuple[int, int] | None:
    """What tells whether a file has changed; None where it is not there, as is said in time."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


# `spacy train` makes its readers twice, to initialize the pipeline and for the loop.
@functools.lru_cache(maxsize=1)
def _tagged_file(
    path: Path,
    state: tuple[int, int] | None,
    *,
    tagger: str,
    folds: int,
    processes: int | None,
    workdir: Path | None,
    seed: int,
    limit: int,
) -> "list[tuple[Sentence, Sentence]]":
    """The file's sentences with predicted tags and with its own."""
    from tk_spacy.parsers.biaffine.chance import chance_kept  # noqa: PLC0415
    from tk_spacy.tagging.jackknife import jackknifed_tags  # noqa: PLC0415
    from tk_spacy.tagging.kinds import make_tagger  # noqa: PLC0415
    from tk_spacy.treebank.conllu import load_treebank  # noqa: PLC0415
    from tk_spacy.utils.leftovers import temporary_directory  # noqa: PLC0415
    from tk_spacy.utils.workdir import work_directory  # noqa: PLC0415

    gold = load_treebank(path)[: limit or None]
    spec = make_tagger(tagger, seed=seed)
    try:
        spec.check(gold)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    if len(gold) < folds:
        raise UserError(
            f"{path}: {len(gold)} sentences cannot be dealt into {folds} folds; give more, or set "
            f"folds of {REGISTERED} lower"
        )
    logger.info("%s: training the %s taggers of %s folds", REGISTERED, spec.name, folds)
    with ExitStack() as stack:
        stack.enter_context(chance_kept())  # the training around it goes on with the generators
        if workdir is None:
            place = stack.enter_context(temporary_directory("tags"))
        else:
            place = Path(workdir) / "tags"
            stack.enter_context(work_directory(place))
        tagged = jackknifed_tags(
            gold, spec, workdir=place, folds=folds, processes=processes, note=logger.info
        )
    return list(zip(tagged, gold, strict=True))
