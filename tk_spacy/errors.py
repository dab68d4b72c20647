"""The error types that mean "the user can put this right"."""

import re
from os import PathLike, fspath

_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u2028\u2029]")


class UserError(ValueError):
    """A mistake of the user: a bad file, a wrong option, an unfit model.

    The command line prints its text as one line and exits with code 1; a program that calls
    tk-spacy can catch it.  Every other exception is a fault of the program.

    A text may quote what stands in a stranger's file: characters that would end the line, or tell a
    terminal something, are escaped.
    """

    def __str__(self) -> str:
        return _CONTROL.sub(lambda match: repr(match[0])[1:-1], self._said())

    def _said(self) -> str:
        return super().__str__()


class OptionError(UserError):
    """An option that cannot be, as the command line itself finds them: exit code 2."""


class SettingError(UserError):
    """A setting of a wrong value: the text begins with its name.

    setting: the name of the field.  reason: what is wrong, and what would be right.
    """

    def __init__(self, setting: str, reason: str) -> None:
        self.setting, self.reason = setting, reason
        super().__init__(setting, reason)

    def _said(self) -> str:
        return f"{self.setting} {self.reason}"


class IdleError(UserError):
    """A setting that has no effect beside the others: a mistake where the user asked for it.

    In a file, which may have been another training's, it is worth a note.  option: the field of
    TrainOptions.
    """

    def __init__(self, option: str, reason: str) -> None:
        self.option, self.reason = option, reason
        super().__init__(option, reason)

    def _said(self) -> str:
        return self.reason


class CandidateError(UserError):
    """Candidates that cannot be used: a broken k-best file, or lists that fit no sentence."""


class ModelError(UserError):
    """A model that cannot be read."""


class TreebankError(UserError):
    """A CoNLL-U file that cannot be read or written; the text names file, line and cure.

    ``line`` counts from 1; 0 where the fault concerns the whole file.  ``path`` is empty where the
    sentences come from no file.
    """

    def __init__(self, path: str | PathLike[str], line: int, reason: str) -> None:
        self.path, self.line, self.reason = fspath(path), line, reason
        super().__init__(self.path, line, reason)

    def _said(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.reason}" if place else self.reason
