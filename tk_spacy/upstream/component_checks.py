"""What the spaCy component checks, declares and scores; light, as the component itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.errors import Errors
from spacy.scorer import Scorer
from spacy.tokens import Doc, Token

from tk_spacy.errors import UserError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

EXTENSION = "tk_reranker"
"""`doc._.tk_reranker` holds the records of a Doc's sentences."""

MISC_EXTENSION = "tk_misc"
"""`token._.tk_misc` holds a word's MISC column, as CoNLL-U has it."""

SEARCHES = ("discrepancy", "beam", "both")
SCORE_WEIGHTS: dict[str, float | None] = {
    "dep_uas": 0.5,
    "dep_las": 0.5,
    "dep_las_per_type": None,
    "dep_uas_with_punct": None,
    "dep_las_with_punct": None,
}
"""What `spacy train` makes of the scores of `score_dependencies`: part of its score, or shown."""

PUNCTUATION_LABELS = ("p", "punct")  # as spaCy's parser leaves them out of its scores


def check_config(
    name: str, *, sources: Sequence[str], search: str, k: int, n_threads: int | None
) -> None:
    """Raise UserError for a config value that the component `name` cannot use."""
    from tk_spacy.candidates import MAX_K  # noqa: PLC0415  (heavy)

    check_count(name, "k", k, at_most=MAX_K)
    if n_threads is not None:
        check_count(name, "n_threads", n_threads)
    if search not in SEARCHES:
        raise UserError(f"{name}: search is {search!r}; choose {' or '.join(SEARCHES)}")
    for source in sources or ("",):
        if not source or source == name or list(sources).count(source) > 1:
            raise UserError(
                f"{name}: source is {source!r}; it must name the pipeline's parser, or several "
                f"different ones"
            )


def check_count(
    name: str, setting: str, value: object, *, at_least: int = 1, at_most: int | None = None
) -> None:
    """Raise UserError for anything but an int within the bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise UserError(f"{name}: {setting} is {value!r}; it must be {at_least} or more")
    if at_most is not None and value > at_most:
        raise UserError(f"{name}: {setting} is {value}; it must be {at_most} or less")


def check_source(nlp: Language, name: str, source: str) -> None:
    """Raise UserError where `source` is no parser of the pipeline."""
    from spacy.pipeline import DependencyParser  # noqa: PLC0415

    from tk_spacy.upstream.parser_base import ParserComponent  # noqa: PLC0415

    if source not in nlp.component_names:
        raise UserError(
            f"{name}: the pipeline has no component {source!r} to propose trees (it has: "
            f"{', '.join(nlp.component_names) or 'none'}); add it, or set source to its name"
        )
    parser = nlp.get_pipe(source)
    if not isinstance(parser, DependencyParser | ParserComponent):
        raise UserError(
            f"{name}: source {source!r} is a {type(parser).__name__}, but must be a 'parser', "
            f"'beam_parser', 'tk_parser', 'tk_biaffine' or 'tk_udpipe'"
        )


def untrained(name: str, attribute: str = "reranker") -> str:
    """What to say where the component is used before it has a model."""
    return (
        f"{Errors.E109.format(name=name)} Or load a trained model: name it as model in "
        f"[initialize.components.{name}], or set the component's `{attribute}`."
    )


def register_extension() -> None:
    """Declare `doc._.tk_reranker`, unless it is.  Raises UserError where it is something else."""
    if not Doc.has_extension(EXTENSION):
        Doc.set_extension(EXTENSION, default=None)
    elif Doc.get_extension(EXTENSION)[1:] != (None, None, None):
        raise UserError(
            f"doc._.{EXTENSION} is declared as a method or property by other code, but must hold "
            f"the reranker's records; rename that one"
        )


def register_misc() -> None:
    """Declare `token._.tk_misc`, unless it is.  Raises UserError where it is something else."""
    if not Token.has_extension(MISC_EXTENSION):
        Token.set_extension(MISC_EXTENSION, default="_")
    elif Token.get_extension(MISC_EXTENSION)[1:] != (None, None, None):
        raise UserError(
            f"token._.{MISC_EXTENSION} is declared as a method or property by other code, but must "
            f"hold a word's MISC column; rename that one"
        )


def score_dependencies(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Attachment scores by spaCy's Scorer, without punctuation and (`..._with_punct`) with it."""
    examples = list(examples)
    kwargs = {**kwargs, "getter": _lower_label}
    scores = Scorer.score_deps(examples, "dep", **{**kwargs, "ignore_labels": PUNCTUATION_LABELS})
    with_punct = Scorer.score_deps(examples, "dep", **{**kwargs, "ignore_labels": ()})
    for name in ("dep_uas", "dep_las"):
        scores[f"{name}_with_punct"] = with_punct[name]
    return scores


def _lower_label(token: Token, attr: str) -> str:
    return token.vocab.strings.as_string(getattr(token, attr)).lower()
