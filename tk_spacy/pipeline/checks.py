"""What the spaCy components check; light, as the components themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spacy.errors import Errors

from tk_spacy.errors import UserError
from tk_spacy.parsers.names import SEARCHES
from tk_spacy.reranker.speeds import SPEEDS

if TYPE_CHECKING:
    from spacy.language import Language


def check_config(
    name: str, *, sources: Sequence[str], search: str, k: int, n_threads: int | None
) -> None:
    """Raise UserError for a config value that the component `name` cannot use."""
    from tk_spacy.kbest.candidates import MAX_K  # noqa: PLC0415  (heavy)

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


def check_speed(name: str, speed: str) -> None:
    """Raise UserError for a speed that there is none of."""
    if speed not in SPEEDS:
        raise UserError(f"{name}: speed is {speed!r}; choose {', '.join(SPEEDS)}")


def check_count(
    name: str, setting: str, value: object, *, at_least: int = 1, at_most: int | None = None
) -> None:
    """Raise UserError for anything but an int within the bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise UserError(f"{name}: {setting} is {value!r}; it must be {at_least} or more")
    if at_most is not None and value > at_most:
        raise UserError(f"{name}: {setting} is {value}; it must be {at_most} or less")


def check_listener(nlp: Language, name: str, component: str) -> None:
    """Raise UserError where a parser listens to a tok2vec that the pipeline has not before it."""
    from tk_spacy.parsers.spacy_transition.directed_parser import (  # noqa: PLC0415
        listened_names,
        listened_pipes,
    )

    parser = nlp.get_pipe(component)
    wanted = listened_names(parser)
    if wanted and not listened_pipes(nlp, parser):
        which = "a tok2vec" if "*" in wanted else " or ".join(sorted(wanted))
        raise UserError(
            f"{name}: {component!r} listens to {which}, which the pipeline lacks before it; add "
            f"it, or give the parser its own before it is taken: "
            f"other.replace_listeners('tok2vec', {component!r}, ['model.tok2vec'])"
        )


def untrained(name: str, attribute: str = "reranker") -> str:
    """What to say where the component is used before it has a model."""
    return (
        f"{Errors.E109.format(name=name)} Or load a trained model: name it as model in "
        f"[initialize.components.{name}], or set the component's `{attribute}`."
    )


def unsplit(
    known: Mapping[str, str], words: Iterable[str], *, has_tokenizer: bool = False
) -> str | None:
    """What to say of the first word that is a multiword token; None where there is none.

    known: multiword tokens in lower case, and their words.  has_tokenizer: whether one that splits
        them was trained with the model.
    """
    found = next((word for word in words if word.lower() in known), None)
    if found is None:
        return None
    cure = (
        "take the tokenizer of the pipeline that the component comes from"
        if has_tokenizer
        else "train a model with a tokenizer of its own"
    )
    return (
        f"{found!r} is a multiword token in the treebank ({known[found.lower()]}), which the "
        "tokenizer does not split: such sentences are parsed worse; give Docs with the treebank's "
        f"words, or {cure}"
    )
