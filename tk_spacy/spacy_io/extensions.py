"""The extension attributes of Doc and Token that tk-spacy registers."""

from __future__ import annotations

from spacy.tokens import Doc, Token

from tk_spacy.errors import UserError

EXTENSION = "tk_reranker"
"""`doc._.tk_reranker` holds the records of a Doc's sentences."""
MISC_EXTENSION = "tk_misc"
"""`token._.tk_misc` holds a word's MISC column, as CoNLL-U has it."""


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
