"""The extension attributes of Doc and Token that tk-spacy registers."""

from __future__ import annotations

from bisect import bisect_right

from spacy.tokens import Doc, Token

from tk_spacy.errors import UserError

EXTENSION = "tk_reranker"
"""`doc._.tk_reranker` holds the records of a Doc's sentences."""
HEAD_PROB_EXTENSION, LABEL_PROB_EXTENSION = "tk_head_prob", "tk_label_prob"
"""`token._.tk_head_prob` and `token._.tk_label_prob` read these records."""
CANDIDATES_EXTENSION = "tk_candidates"
"""`doc._.tk_candidates` holds the best trees of a Doc's sentences, where they are asked for."""
HEAD_PROBS, LABEL_PROBS = "head_probs", "label_probs"
"""Where a record has them, of each token of its sentence; None for white space."""
EXPLANATIONS = "tk_explanation"
"""`doc._.tk_explanation` explains the choices of a Doc's trees, where that is asked for."""
MISC_EXTENSION = "tk_misc"
"""`token._.tk_misc` holds a word's MISC column, as CoNLL-U has it."""


def register_extension() -> None:
    """Declare the reranker's attributes, unless they are.

    Raises UserError where one is something else.
    """
    for name, what in (
        (EXTENSION, "records"),
        (CANDIDATES_EXTENSION, "trees"),
        (EXPLANATIONS, "explanations"),
    ):
        if not Doc.has_extension(name):
            Doc.set_extension(name, default=None)
        elif Doc.get_extension(name)[1:] != (None, None, None):
            raise UserError(
                f"doc._.{name} is declared as a method or property by other code, but must hold "
                f"the reranker's {what}; rename that one"
            )
    for name, getter in (
        (HEAD_PROB_EXTENSION, head_prob),
        (LABEL_PROB_EXTENSION, label_prob),
    ):
        if not Token.has_extension(name):
            Token.set_extension(name, getter=getter)
        elif Token.get_extension(name)[2] is not getter:
            raise UserError(
                f"token._.{name} is declared by other code, but must read the reranker's records; "
                "rename that one"
            )


def head_prob(token: Token) -> float | None:
    """The probability that a token's head is right; None where there is none."""
    return _from_record(token, HEAD_PROBS)


def label_prob(token: Token) -> float | None:
    """The probability that a token's label is right; None where there is none."""
    return _from_record(token, LABEL_PROBS)


def _from_record(token: Token, name: str) -> float | None:
    records = token.doc._.get(EXTENSION) or ()
    place = bisect_right(records, token.i, key=lambda record: record["start"]) - 1
    if place < 0 or token.i >= records[place]["end"]:
        return None
    values = records[place].get(name)
    return None if values is None else values[token.i - records[place]["start"]]


def register_misc() -> None:
    """Declare `token._.tk_misc`, unless it is.  Raises UserError where it is something else."""
    if not Token.has_extension(MISC_EXTENSION):
        Token.set_extension(MISC_EXTENSION, default="_")
    elif Token.get_extension(MISC_EXTENSION)[1:] != (None, None, None):
        raise UserError(
            f"token._.{MISC_EXTENSION} is declared as a method or property by other code, but must "
            f"hold a word's MISC column; rename that one"
        )
