"""What is installed is whole: version, typing marker, stubs, configs, entry points, licence."""

from __future__ import annotations

import os
import re
from importlib import machinery, metadata
from pathlib import Path

import pytest

import tk_spacy

PACKAGE = Path(tk_spacy.__file__).parent
CHECKOUT = Path(__file__).parent.parent
EXTENSIONS = sorted(
    path for suffix in machinery.EXTENSION_SUFFIXES for path in PACKAGE.rglob(f"*{suffix}")
)


@pytest.mark.skipif(
    "TK_SPACY_TEST_INSTALLED" not in os.environ, reason="TK_SPACY_TEST_INSTALLED is not set"
)
def test_packaging_tests_import_the_installed_package() -> None:
    assert PACKAGE != CHECKOUT / "tk_spacy"
    assert PACKAGE.parent.name == "site-packages"


def test_packaging_version_is_the_metadata_version() -> None:
    assert metadata.version("tk-spacy") == tk_spacy.__version__


def test_packaging_metadata_names_licence_and_python() -> None:
    about = metadata.metadata("tk-spacy")
    assert about["License-Expression"] == "MIT"
    assert about["Requires-Python"] == ">=3.11"


def test_packaging_every_source_is_built() -> None:
    sources = (CHECKOUT / "tk_spacy").rglob("*.pyx")
    expected = {path.relative_to(CHECKOUT / "tk_spacy").with_suffix("") for path in sources}
    built = {path.relative_to(PACKAGE).with_name(path.name.split(".")[0]) for path in EXTENSIONS}
    assert expected <= built


def test_packaging_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
    called = re.compile(r"^(cp?def class|def|cpdef) ", re.M)  # what Python can see of a module
    without = [
        str(source)
        for source in (CHECKOUT / "tk_spacy").rglob("*.pyx")
        if called.search(source.read_text(encoding="utf-8"))
        and not (PACKAGE / source.relative_to(CHECKOUT / "tk_spacy").with_suffix(".pyi")).exists()
    ]
    assert without == []


def test_packaging_configs_are_installed() -> None:
    offered = {path.name for path in (CHECKOUT / "configs").glob("*.cfg")}
    assert offered == {path.name for path in (CHECKOUT / "tk_spacy" / "configs").glob("*.cfg")}
    for path in (CHECKOUT / "tk_spacy").rglob("*.cfg"):
        installed = PACKAGE / path.relative_to(CHECKOUT / "tk_spacy")
        assert installed.read_bytes() == path.read_bytes()


def test_packaging_templates_of_pages_are_installed() -> None:
    templates = CHECKOUT / "tk_spacy" / "pages" / "templates"
    for path in templates.iterdir():
        assert (PACKAGE / "pages" / "templates" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("console_scripts", "tk-spacy"),
        ("spacy_architectures", "tk_spacy.BiLSTM.v1"),
        ("spacy_architectures", "tk_spacy.BiaffineParser.v1"),
        ("spacy_architectures", "tk_spacy.TreebankEmbed.v1"),
        ("spacy_factories", "tk_biaffine"),
        ("spacy_callbacks", "tk_spacy.resolve_config.v1"),
        ("spacy_callbacks", "tk_spacy.take_parser.v1"),
        ("spacy_cli", "tk"),
        ("spacy_factories", "tk_columns"),
        ("spacy_factories", "tk_parser"),
        ("spacy_factories", "tk_projective"),
        ("spacy_factories", "tk_sentences"),
        ("spacy_factories", "tk_reranker"),
        ("spacy_factories", "tk_transition"),
        ("spacy_factories", "tk_udpipe"),
        ("spacy_factories", "tk_udpipe_tagger"),
        ("spacy_readers", "tk_spacy.ConlluCorpus.v1"),
        ("spacy_tokenizers", "tk_spacy.UdpipeTokenizer.v1"),
    ],
)
def test_packaging_entry_point_loads(group: str, name: str) -> None:
    (point,) = metadata.entry_points(group=group, name=name)
    assert callable(point.load())
