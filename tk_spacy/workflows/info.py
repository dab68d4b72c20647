"""What a model is: its facts, as tables and as JSON values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tk_spacy.about import __version__
from tk_spacy.errors import ModelError, UserError
from tk_spacy.evaluation.report import fast_table, speeds_table, table_2, tags_table
from tk_spacy.parsers.kinds import parser_line, stored_kind
from tk_spacy.parsers.names import SPACY
from tk_spacy.reranker.cascade import Cascade
from tk_spacy.reranker.provenance import Provenance
from tk_spacy.reranker.speeds import EXACT, SPEEDS
from tk_spacy.selection.explicit import explicit_facts, explicit_line
from tk_spacy.tagging.kinds import tagger_line
from tk_spacy.tokenizing.spec import tokenizer_line
from tk_spacy.utils.serialization import META, reason_of
from tk_spacy.utils.stored_values import stored_entry, stored_table, stored_texts, stored_whole
from tk_spacy.utils.tables import MEBIBYTE, Column, Table, check_shown, show
from tk_spacy.workflows.model import REPORT_JSON, Model, open_model, open_stored_parser
from tk_spacy.workflows.selected import (
    features_table,
    selection_line,
    selection_scores,
    strongest_features,
)


def info(path: Path, *, features: int | None = None) -> tuple[list[Table], dict[str, Any]]:
    """Tables about a model directory, and the same as JSON values.

    features: list that many of those that were selected, the strongest; None for none.
    Raises UserError where there is no model, or none whose features can be listed.
    """
    if stored_kind(path) is not None:
        _check_listed(path, features is None)
        return _about_parser(path)
    model = open_model(path)
    reranker = model.reranker
    _check_listed(
        path,
        features is None or reranker.explicit is not None,
        templates=bool(reranker.provenance.selected),
    )
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
        "explicit": None if reranker.explicit is None else explicit_facts(reranker.explicit),
        "manual_weights": 0 if reranker.weights is None else int((reranker.weights != 0).sum()),
        "combination": reranker.combination.to_dict() if reranker.combination else None,
        "penalties": reranker.penalties.to_dict(),
        "cascade": None if reranker.cascade is None else reranker.cascade.to_dict(),
        "strongest": strongest_features(reranker, features or 0),
        "about": dict(reranker.about),
        "examples": None if reranker.examples is None else len(reranker.examples),
        "licence": None if model.component is None else licence_of(path),
        "report": model.report.to_dict() if model.report else None,
        "tk_spacy": __version__,
    }
    meta = path / META if model.component is None else path / model.component / META
    with _told_by(meta, "train"):
        json.dumps(facts["about"], allow_nan=False)
        of, selected = "Settings", reranker.provenance.selected
        if facts["explicit"]:  # the kernel and the manual features of these settings are no more
            of = "Settings of the model that the features were selected for"
        tables = [_facts_table(model, facts), _settings_table(facts["settings"], of)]
        if selected:
            tables.append(selection_scores(stored_entry(selected, "scores", "selected")))
        if facts["strongest"]:
            tables.append(features_table(facts["strongest"]))
        check_shown(tables)
    with _told_by(path / REPORT_JSON, "train"):
        json.dumps(facts, allow_nan=False)
        if model.report is not None:
            title = str(model.report.about.get("title", ""))
            tables += [
                table_2(name, part, title, tags=model.report.kind_of_tags)
                for name, part in model.report.parts.items()
            ]
            if model.report.tags:
                tables.append(tags_table(model.report.tags))
            tables += [
                speeds_table(f"Speeds on {title} {name}", part.speeds)
                for name, part in model.report.parts.items()
                if part.speeds
            ]
            if model.report.fast is not None:
                tables.append(fast_table(model.report.fast))
        check_shown(tables)
    return tables, facts


@contextmanager
def _told_by(file: Path, maker: str) -> Iterator[None]:
    """What is told about a model is not ours where anything goes wrong within: a ModelError.

    The model itself may be sound: it never reads this.  maker: the command that writes the file.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"{file}: is not as `tk-spacy {maker}` writes it ({reason_of(error)})"
        ) from error


def _check_listed(path: Path, fine: bool, *, templates: bool = False) -> None:
    """Raises UserError unless features need not be listed, or can be.

    templates: whether they are manual ones, which are hashed and have no names.
    """
    if fine:
        return
    what = "no model of selected features, which could be listed"
    if templates:
        what = "its features are hashed and cannot be listed; choose another space"
    raise UserError(
        f"{path}: {what}; `tk-spacy select` makes one, from a kernel's combinations with the space "
        "kernel"
    )


def licence_of(path: Path) -> str:
    """The licence in the meta.json of a pipeline, empty for none.

    Raises ModelError where it cannot be read.
    """
    try:
        stored = stored_table(json.loads((path / META).read_text(encoding="utf-8")), META)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{path}: {META} of the spaCy pipeline cannot be read ({reason_of(error)}); train it "
            "again"
        ) from error
    return str(stored.get("license") or "")


def _about_parser(path: Path) -> tuple[list[Table], dict[str, Any]]:
    """The same for a directory with a parser alone."""
    kind, parser = open_stored_parser(path)
    facts: dict[str, Any] = {
        "path": str(path),
        "kind": f"{kind.name} parser alone",
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "settings": parser.settings.to_dict(),
        "labels": len(parser.labels),
        **parser.facts(),
        "about": dict(parser.about),
        "tk_spacy": __version__,
    }
    rows = [("kind", facts["kind"]), ("size on disk", f"{facts['bytes'] / MEBIBYTE:,.1f} MB")]
    with _told_by(path / META, "train-parser"):
        json.dumps(facts, allow_nan=False)
        rows += _treebank(facts["about"].get("treebank", {}))
        for row in facts["about"].get("epochs", []):
            rows.append(
                (f"epoch {row['epoch']}", f"UAS {row['uas']:.2f}, LAS {row['las']:.2f} on dev")
            )
    if "properties" in facts:
        properties = facts["properties"]
        rows += [
            ("node properties", f"{len(properties)}: {', '.join(properties)}"),
            ("pos is", facts["pos"]),
        ]
    rows.append(("labels", show(facts["labels"])))
    if facts.get("kernel"):
        rows.append(("kernel's support parts", _counts(facts["kernel"]["support_parts"])))
        rows.append(("kernel's gamma", f"{facts['kernel']['gamma']:.4g}"))
        if "kernel_of" in facts["about"]:
            rows.append(("kernel of", str(facts["about"]["kernel_of"])))
    tables = [_pairs(f"Model {path}", rows), _settings_table(facts["settings"])]
    return tables, facts


def _treebank(parts: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [
        (name, f"{part['file']}: {part['sentences']:,} sentences, {part['words']:,} words")
        for name, part in parts.items()
    ]


def _facts_table(model: Model, facts: dict[str, Any]) -> Table:
    made = Provenance.from_dict(model.reranker.about)
    rows: list[tuple[str, str]] = [
        ("kind", facts["kind"]),
        ("size on disk", f"{facts['bytes'] / MEBIBYTE:,.1f} MB"),
    ]
    if made.title is not None:
        rows.append(("treebank", made.title))
    rows += _treebank({name: part.to_dict() for name, part in made.treebank.items()})
    if facts["licence"] is not None:
        rows.append(("licence", facts["licence"] or "none stated"))
    if made.tagger is not None:
        rows.append(("tagger", tagger_line(str(made.tagger.get("kind")), made.tagger)))
    elif made.parsers_trained:
        rows.append(("tagger", "none: learnt from the files' gold tags"))
    if made.tokenizer is not None:
        rows.append(("tokenizer", tokenizer_line(made.tokenizer)))
    elif made.parsers_trained:
        rows.append(("tokenizer", "spaCy's" + (", no multiword tokens" if made.multiword else "")))
    rows += _parsers(made)
    if made.candidates is not None:
        lists = made.candidates
        files = "".join(f", {name} from {file}" for name, file in lists.files.items())
        # Of spaCy's parser alone it is that there are ways to search.
        spacys = any(name.split("-")[0] == SPACY for name in made.parsers or made.sources)
        search = f" by {lists.search} search" if spacys else ""
        rows.append(("candidates", f"{lists.k}{search}{files}"))
    support = _counts(facts["support_parts"])
    properties = facts["properties"]
    if facts["kernel_map"]:
        of = facts["kernel_map"]
        parts = show(of["support_parts"])
        support = f"none: a hashed map of {of['bits']} bits, made of {parts}"
    for step in made.compressed:
        before = _counts(
            {
                name: stored_whole(n, f"support_parts_before.{name}")
                for name, n in stored_table(
                    stored_entry(step, "support_parts_before", "a step of compressed"),
                    "support_parts_before",
                ).items()
            }
        )
        rows.append(("compressed", f"from support parts: {before}"))
    if made.selected:
        rows.append(("selected by", selection_line(made.selected)))
        inputs = stored_table(stored_entry(made.selected, "files", "selected"), "selected.files")
        for name, names in inputs.items():
            listed = stored_texts(names, f"selected.files.{name}")
            rows.append((f"selection's {name}", ", ".join(listed)))
    if facts["explicit"]:
        rows.append(("selected features", explicit_line(facts["explicit"])))
    else:
        rows += [
            ("support parts", support or "none"),
            ("training sentences kept", show(facts["examples"]) if facts["examples"] else "none"),
            ("manual weights", show(facts["manual_weights"])),
        ]
    rows += [
        ("node properties", f"{len(properties)}: {', '.join(properties)}"),
        ("pos is", facts["pos"]),
        ("labels", show(facts["labels"])),
    ]
    if facts["combination"]:
        betas = facts["combination"]["betas"]
        rows.append(("beta", ", ".join(f"{name} {beta:g}" for name, beta in betas.items())))
    rows.append(("penalties", _penalties(facts["penalties"])))
    calibrated = model.reranker.calibration is not None
    rows.append(("confidence", "calibrated" if calibrated else "not calibrated"))
    rows.append(("speeds", _speeds(model.reranker.cascade)))
    if made.version is not None:
        rows.append(("made by", f"tk-spacy {made.version}, seed {made.seed}"))
    if model.report is not None:
        rows.append(("trained in", f"{model.report.run_time.total_seconds:,.0f} s"))
    return _pairs(f"Model {facts['path']}", rows)


def _speeds(cascade: Cascade | None) -> str:
    if cascade is None:
        return EXACT
    return f"{', '.join(SPEEDS)}; quick: {', '.join(cascade.quick)}"


def _penalties(weights: Mapping[str, float]) -> str:
    """The kinds of violations by what one of them costs."""
    kinds: dict[str, list[str]] = {}
    for kind, weight in weights.items():
        kinds.setdefault(f"{weight:.3g}", []).append(kind)
    return (
        "; ".join(f"{cost} each for {', '.join(names)}" for cost, names in kinds.items()) or "none"
    )


def _counts(parts: dict[str, int]) -> str:
    return ", ".join(f"{show(n)} {name}" for name, n in parts.items())


def _settings_table(settings: dict[str, Any], title: str = "Settings") -> Table:
    rows = []
    for name, value in settings.items():
        if isinstance(value, list | tuple):
            text = ", ".join(value) or "none"
        elif name == "C" and value is None:
            text = "infinite"
        else:
            text = "none" if value is None else str(value)
        rows.append((name.replace("_", " "), text))
    return _pairs(title, rows)


def _parsers(made: Provenance) -> list[tuple[str, str]]:
    """One row for each parser."""
    if made.parsers is None:
        return []
    if not made.parsers:
        return [("parsers", "none: ready lists")]
    folds = f", {made.folds} folds" if made.folds else ""
    return [
        (f"{name} parser", parser_line(name, about) + ("" if "files" in about else folds))
        for name, about in made.parsers.items()
    ]


def _pairs(title: str, rows: list[tuple[str, str]]) -> Table:
    return Table(
        title=title,
        columns=(Column("", "name", align="left"), Column("", "value", align="left")),
        rows=tuple(rows),
    )
