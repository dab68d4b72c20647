"""From a template to a file: all text escaped, nothing that HTML cannot hold, written whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tk_spacy.errors import OptionError, UserError
from tk_spacy.utils.atomic_files import atomic_output, names_stdout

if TYPE_CHECKING:
    from jinja2 import Environment

_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""What HTML forbids, and UTF-8 or readers cannot show."""
_PICTURES = 0x2400  # of control characters, in their order
_DELETE, _REPLACEMENT = "\u2421", "\ufffd"


def render(template: str, **values: Any) -> str:
    """A page, as text, from a template of this package; the same for the same values.

    Strings among the values are escaped, `Markup` is not.  Control characters become pictures of
    them.  Raises jinja2.UndefinedError where the template asks for a value that is not given.
    """
    text: str = _environment().get_template(template).render(**values)
    return _UNFIT.sub(_picture, text)


def check_page(path: Path, *, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Raises OptionError where a page must not be written: to be known before a long run.

    overwrite: a page that is there may be replaced.  inputs: files that are read, never replaced.
    """
    if names_stdout(path):
        return
    if any(path.resolve() == other.resolve() for other in inputs):
        raise OptionError(f"{path}: is read, and cannot be the page too; name another page")
    if path.exists() and not overwrite:
        raise OptionError(f"{path}: is there already; name another page, or replace it (overwrite)")
    if not path.resolve().parent.is_dir():
        raise OptionError(f"{path}: its folder is not there; make it, or name another page")


def write_page(path: Path, text: str) -> None:
    """Write a page, whole or not at all.  Raises UserError where it cannot be written."""
    try:
        with atomic_output(path) as out:
            out.write(text.encode("utf-8"))
    except BrokenPipeError:
        raise  # whoever reads it has enough
    except OSError as error:
        raise UserError(
            f"{path}: cannot write the page: {error.strerror or error}; write it elsewhere"
        ) from error


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  (slow)

    return Environment(
        loader=PackageLoader("tk_spacy.pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,  # a program that runs on while it is replaced has its own templates
    )


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return _DELETE if code == 0x7F else _REPLACEMENT
