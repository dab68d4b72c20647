"""What a model directory holds: the names of its files, and what kind of model it is."""

from __future__ import annotations

import json
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.utils.serialization import META, PARSER_FORMAT, RERANKER_FORMAT

PIPELINE_CONFIG = "config.cfg"


def format_of(path: Path) -> str | None:
    """What the meta.json of a model calls its format, None where there is none that can be read."""
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return meta.get("format") if isinstance(meta, dict) else None


def kind_of(path: Path) -> str | None:
    """The format of a model, by its other files where meta.json is damaged or missing."""
    found = format_of(path)
    if found is not None or not (path / SCHEMA).is_file():
        return found
    return RERANKER_FORMAT if (path / SUPPORT).is_file() else PARSER_FORMAT


def model_places(path: Path, kind: str, *, maker: str, factory: str) -> list[Path]:
    """Where models of a kind may be: in the directory itself, or in a pipeline's components.

    maker: command that makes such a directory.  factory: of such components.
    Raises UserError where the directory is missing, or a pipeline without such a component.
    """
    if not path.is_dir():
        what = "a file, not a model directory" if path.exists() else "no such model directory"
        raise UserError(f"{path}: {what}; `tk-spacy {maker}` makes one")
    if not is_pipeline(path):
        return [path]
    inside = [child for child in sorted(path.iterdir()) if kind_of(child) == kind]
    if not inside:
        raise UserError(
            f"{path}: a spaCy pipeline without a trained {factory}; `tk-spacy {maker}` makes one"
        )
    return inside


def component_place(path: Path, component: str, kind: str) -> Path:
    """Where the model of a kind is that a component is to load: in `path` itself, or a pipeline's.

    component: whose model it is in a pipeline; where it has none of that name, it is that of the
        only component of the kind.
    Raises UserError where a pipeline has no such component, or several.
    """
    if not is_pipeline(path):
        return path
    if (path / component).is_dir():
        return path / component
    others = [child for child in sorted(path.iterdir()) if kind_of(child) == kind]
    if len(others) == 1:
        return others[0]
    what = (
        f"but several with a {kind} ({', '.join(child.name for child in others)})"
        if others
        else f"or any other with a {kind}"
    )
    raise UserError(
        f"{path}: a spaCy pipeline without a component {component!r}, {what}; give the directory "
        "of one"
    )


def is_pipeline(path: Path) -> bool:
    """Whether a directory is a spaCy pipeline."""
    return (path / PIPELINE_CONFIG).is_file()


def is_reranker(path: Path) -> bool:
    """Whether a directory holds a reranker alone, perhaps a damaged one."""
    return not is_pipeline(path) and kind_of(path) == RERANKER_FORMAT


COMBINER_WEIGHTS, KERNEL_MAP, EXPLICIT = "combiner.npz", "kernel_map.npz", "explicit.npz"
SCHEMA, SUPPORT, WEIGHTS = "schema.msgpack", "support.npz", "weights.npz"
EXAMPLES = "examples.npz"
