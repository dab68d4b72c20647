"""A spaCy pipeline that somebody else trained, as spaCy's parser."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import spacy
import srsly
from confection import Config
from spacy.language import Language
from spacy.pipeline import DependencyParser
from spacy.util import load_model_from_config

from tk_spacy.errors import UserError
from tk_spacy.parsers.names import backward_name
from tk_spacy.parsers.spacy_transition.training import load_spacy_config
from tk_spacy.utils.claimed_sizes import ClaimError, check_msgpack, check_npy, check_thinc_model
from tk_spacy.utils.model_bounds import check_inside, check_stored_config, leads_out
from tk_spacy.utils.model_dirs import format_of
from tk_spacy.utils.serialization import reason_of

MSGPACK = ("model", "moves", "key2row", "lookups.bin")
"""Files of spaCy's in a pipeline that are msgpack."""

Pipeline = Language
"""For modules that name a pipeline's type but must not import spaCy themselves."""


def load_pipeline(name: str | os.PathLike[str]) -> Language:
    """A spaCy pipeline by its directory or package name.  Raises UserError where there is none."""
    name = os.fspath(name)
    if Path(name, "meta.json").is_file() and not Path(name, "config.cfg").is_file():
        raise UserError(
            f"{name}: no spaCy pipeline: config.cfg is missing; give the directory of a whole one"
        )
    if Path(name).is_dir():
        check_pipeline(Path(name))
    try:
        return spacy.load(name)
    except OSError as error:
        if Path(name).is_dir():
            raise UserError(f"{name}: no spaCy pipeline: {_first_line(error)}") from error
        raise UserError(
            f"{name}: neither a directory with a spaCy pipeline nor an installed pipeline package"
        ) from error
    except Exception as error:
        # A damaged directory, or one of another version, fails in whatever part reads it.
        _check_meta(Path(name, "meta.json"))
        raise UserError(
            f"{name}: spaCy cannot load it ({type(error).__name__}: {_first_line(error)})"
        ) from error


def check_pipeline(path: Path) -> None:
    """Raises UserError for a pipeline's directory that reads what lies outside, or claims too much.

    What spaCy reads of it; the models of ours in it are checked when they are opened.
    """
    check_inside(path)
    try:
        config = Config().from_disk(path / "config.cfg", interpolate=False)
    except Exception:
        return  # spaCy reads it in the same way, and says what is wrong with it
    try:
        _check_components(config)
        for file in sorted(path.rglob("*")):
            if file.is_file() and format_of(file.parent) is None:
                _check_file(file)
    except ClaimError as error:
        raise UserError(f"{path}: {error}; get the model anew from whom it is of") from error
    except OSError as error:
        raise UserError(f"{error.filename}: cannot read it: {error.strerror}") from error


def _check_components(config: Config) -> None:
    components = config.get("components")
    named = components if isinstance(components, dict) else {}
    for name, component in named.items():
        if leads_out(name) or re.search(r"[\\/]", name):
            raise ClaimError(f"config.cfg has a component {name!r}, which is no name of a folder")
        if isinstance(component, dict) and "source" in component and "factory" not in component:
            raise ClaimError(
                f"config.cfg takes the component {name!r} from another pipeline, "
                f"{component['source']!r}, outside of the model"
            )
    for section in ("nlp", "components"):
        try:
            check_stored_config(config.get(section) or {}, section)
        except ValueError as error:
            raise ClaimError(f"config.cfg: {error}") from error


def _check_file(file: Path) -> None:
    """Of a file by its kind; what is none of these is read as it stands, no larger than it is."""
    content = file.read_bytes()
    try:
        if content.startswith(b"\x93NUMPY"):
            check_npy(content)
        elif file.name in MSGPACK:
            check_msgpack(content)
            if file.name == "model":
                check_thinc_model(srsly.msgpack_loads(content))
    except ClaimError as error:
        raise ClaimError(f"{file.name}: {error}") from error
    except Exception as error:  # whatever damage does to the readers of headers
        raise ClaimError(f"{file.name} is damaged: {reason_of(error)}") from error


def _check_meta(path: Path) -> None:
    """Raise UserError with the place where a pipeline's description is damaged."""
    try:
        meta = json.loads(path.read_bytes())
    except OSError:
        return  # a package, or what spaCy has told of
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: is damaged: {error.msg}; copy the model anew"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is damaged: no UTF-8; copy the model anew") from error
    if not isinstance(meta, dict):
        raise UserError(f"{path}:1: is damaged: no object in braces; copy the model anew")


def find_parser(nlp: Language, *, where: str) -> str:
    """Name of the pipeline's dependency parser.  Raises UserError where it has none, or several."""
    found = [name for name, pipe in nlp.pipeline if isinstance(pipe, DependencyParser)]
    if len(found) == 1:
        return found[0]
    if "parser" in found:
        return "parser"
    names = ", ".join(nlp.pipe_names) or "nothing"
    which = "no dependency parser" if not found else "several dependency parsers"
    raise UserError(f"{where}: the pipeline has {which}; it has: {names}")


def has_twin(nlp: Language, parser: str) -> bool:
    """Whether a pipeline has the right-to-left twin of its parser (see `train_spacy_parser`)."""
    return backward_name(parser) in nlp.component_names


def check_config(
    path: str | os.PathLike[str] | None, *, max_steps: int | None = None, seed: int | None = None
) -> str:
    """Name of the parser that a training config makes.  Raises UserError where it makes none."""
    config = load_spacy_config(path, max_steps=max_steps, seed=seed)
    where = "the default config" if path is None else os.fspath(path)
    try:
        nlp = load_model_from_config(config, auto_fill=True)
    except Exception as error:
        # Unknown factories, architectures and settings each have an error type of their own.
        reason = " ".join(str(error).split())
        raise UserError(f"{where}: spaCy cannot build this config: {reason}") from error
    return find_parser(nlp, where=where)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]
