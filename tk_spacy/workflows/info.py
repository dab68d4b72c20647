"""What a model is: its facts, as tables and as JSON values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tk_spacy.about import __version__
from tk_spacy.errors import ModelError
from tk_spacy.evaluation.report import table_2
from tk_spacy.parsers.sampling.parser import read_parser
from tk_spacy.utils.model_dirs import is_parser
from tk_spacy.utils.tables import Column, Table, show
from tk_spacy.workflows.model import Model, open_model


def info(path: Path) -> tuple[list[Table], dict[str, Any]]:
    """Tables about a model directory, and the same as JSON values.

    Raises UserError where there is no model.
    """
    if is_parser(path):
        return _about_parser(path)
    model = open_model(path)
    reranker = model.reranker
    facts: dict[str, Any] = {
        "path": str(path),
        "kind": "reranker alone" if model.component is None else "spaCy pipeline with reranker",
        "component": model.component,
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "settings": reranker.settings.to_dict(),
        "properties": [prop.name for prop in reranker.schema.properties],
        "pos": reranker.schema.pos_column,
        "labels": len(reranker.schema.labels),
        "support_parts": {name: len(parts) for name, parts in reranker.support.types.items()},
        "kernel_map": reranker.kernel_map.to_dict() if reranker.kernel_map else None,
        "manual_weights": 0 if reranker.weights is None else int((reranker.weights != 0).sum()),
        "combination": reranker.combination.to_dict() if reranker.combination else None,
        "about": dict(reranker.about),
        "report": model.report.to_dict() if model.report else None,
        "tk_spacy": __version__,
    }
    try:
        json.dumps(facts, allow_nan=False)
        tables = [_facts_table(model, facts), _settings_table(facts["settings"])]
        if model.report is not None:
            title = str(model.report.about.get("title", ""))
            tables += [table_2(name, part, title) for name, part in model.report.parts.items()]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # The model is sound, but what is told about it is not ours: a reranker never reads it.
        raise ModelError(
            f"{path}: its meta.json or report.json is not as `tk-spacy train` writes it "
            f"({type(error).__name__}: {error})"
        ) from error
    return tables, facts


def _about_parser(path: Path) -> tuple[list[Table], dict[str, Any]]:
    """The same for a directory with a sampling parser alone."""
    parser = read_parser(path)
    facts: dict[str, Any] = {
        "path": str(path),
        "kind": "sampling parser alone",
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "settings": parser.settings.to_dict(),
        "properties": [prop.name for prop in parser.schema.properties],
        "pos": parser.schema.pos_column,
        "labels": len(parser.labels),
        "kernel": None
        if parser.kernel is None
        else {
            "gamma": parser.kernel.gamma,
            "support_parts": {name: len(p) for name, p in parser.kernel.support.types.items()},
        },
        "about": dict(parser.about),
        "tk_spacy": __version__,
    }
    rows = [("kind", facts["kind"]), ("size on disk", f"{facts['bytes'] / 2**20:,.1f} MB")]
    try:
        json.dumps(facts, allow_nan=False)
        rows += _treebank(facts["about"])
        for row in facts["about"].get("epochs", []):
            rows.append(
                (f"epoch {row['epoch']}", f"UAS {row['uas']:.2f}, LAS {row['las']:.2f} on dev")
            )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path}: its meta.json is not as `tk-spacy train-parser` writes it "
            f"({type(error).__name__}: {error})"
        ) from error
    properties = facts["properties"]
    rows += [
        ("node properties", f"{len(properties)}: {', '.join(properties)}"),
        ("pos is", facts["pos"]),
        ("labels", show(facts["labels"])),
    ]
    if facts["kernel"]:
        rows.append(("kernel's support parts", _counts(facts["kernel"]["support_parts"])))
        rows.append(("kernel's gamma", f"{facts['kernel']['gamma']:.4g}"))
        if "kernel_of" in facts["about"]:
            rows.append(("kernel of", str(facts["about"]["kernel_of"])))
    tables = [_pairs(f"Model {path}", rows), _settings_table(facts["settings"])]
    return tables, facts


def _treebank(about: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, f"{part['file']}: {part['sentences']:,} sentences, {part['words']:,} words")
        for name, part in about.get("treebank", {}).items()
    ]


def _facts_table(model: Model, facts: dict[str, Any]) -> Table:
    about = facts["about"]
    rows: list[tuple[str, str]] = [
        ("kind", facts["kind"]),
        ("size on disk", f"{facts['bytes'] / 2**20:,.1f} MB"),
    ]
    rows += _treebank(about)
    if "upstream" in about:
        rows += _parsers(about)
    if "candidates" in about:
        lists = about["candidates"]
        files = "".join(f", {name} from {file}" for name, file in lists["files"].items())
        rows.append(("candidates", f"{lists['k']} by {lists['search']} search{files}"))
    support = _counts(facts["support_parts"])
    properties = facts["properties"]
    if facts["kernel_map"]:
        of = facts["kernel_map"]
        parts = show(of["support_parts"])
        support = f"none: a hashed map of {of['bits']} bits, made of {parts}"
    for step in about.get("compressed", []):
        before = _counts(step["support_parts_before"])
        rows.append(("compressed", f"from support parts: {before}"))
    rows += [
        ("support parts", support or "none"),
        ("manual weights", show(facts["manual_weights"])),
        ("node properties", f"{len(properties)}: {', '.join(properties)}"),
        ("pos is", facts["pos"]),
        ("labels", show(facts["labels"])),
    ]
    if facts["combination"]:
        betas = facts["combination"]["betas"]
        rows.append(("beta", ", ".join(f"{name} {beta:g}" for name, beta in betas.items())))
    if "tk_spacy" in about:
        rows.append(("made by", f"tk-spacy {about['tk_spacy']}, seed {about.get('seed')}"))
    if model.report is not None:
        rows.append(("trained in", f"{model.report.run_time.total_seconds:,.0f} s"))
    return _pairs(f"Model {facts['path']}", rows)


def _counts(parts: dict[str, int]) -> str:
    return ", ".join(f"{show(n)} {name}" for name, n in parts.items())


def _settings_table(settings: dict[str, Any]) -> Table:
    rows = []
    for name, value in settings.items():
        if isinstance(value, list | tuple):
            text = ", ".join(value) or "none"
        elif name == "C" and value is None:
            text = "infinite"
        else:
            text = "none" if value is None else str(value)
        rows.append((name.replace("_", " "), text))
    return _pairs("Settings", rows)


def _parsers(about: dict[str, Any]) -> list[tuple[str, str]]:
    """One row for each parser; models of an earlier version have one spaCy parser instead."""
    spacy_pipeline = about["upstream"]
    folds = f", {spacy_pipeline['folds']} folds" if spacy_pipeline.get("folds") else ""
    trained = spacy_pipeline["trained"]
    if "views" not in about:
        if not trained:
            return [("spaCy parser", spacy_pipeline["pipeline"] or "none: ready lists")]
        twin = ", with right-to-left twin" if about.get("backward") else ""
        steps = f", {spacy_pipeline['max_steps']} steps" if spacy_pipeline["max_steps"] else ""
        return [("spaCy parser", f"trained, config {spacy_pipeline['config']}{steps}{twin}{folds}")]
    if not about["views"]:
        return [("parsers", "none: ready lists")]
    return [
        (f"{name} parser", parser_line(parser) + ("" if "files" in parser else folds))
        for name, parser in about["views"].items()
    ]


def parser_line(parser: dict[str, Any]) -> str:
    """The settings of a parser that tell most."""
    if "pipeline" in parser:
        return str(parser["pipeline"])
    if "config" in parser:
        twin = ", with right-to-left twin" if parser["backward"] else ""
        steps = f", {parser['max_steps']} steps" if parser["max_steps"] else ""
        return f"trained, config {parser['config']}{steps}{twin}"
    if "files" in parser:
        kind = "k-best lists" if parser["scored"] else "one tree a sentence"
        return f"trees from {', '.join(parser['files'].values())} ({kind})"
    if "transition_system" in parser:
        return f"UDPipe, trained, {parser['transition_system']}, {parser['iterations']} iterations"
    if "tag_width" in parser:
        size = f"{parser['layers']} layers of width {parser['width']}"
        return f"trained, {size}, {parser['epochs']} epochs"
    extra = f", with {', '.join(parser['extra'])}" if parser.get("extra") else ""
    return f"trained, order {parser['order']}, {parser['epochs']} epochs{extra}"


def _pairs(title: str, rows: list[tuple[str, str]]) -> Table:
    return Table(
        title=title,
        columns=(Column("", "name", align="left"), Column("", "value", align="left")),
        rows=tuple(rows),
    )
