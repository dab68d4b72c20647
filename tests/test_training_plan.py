"""What a training finds in its input before it begins: parts, parsers and warnings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_training_record import (
    LEAST,
    SIZES,
    rewritten,
    single_trees,
    words,
    write_known,
    write_parts,
)

from tk_spacy.errors import UserError
from tk_spacy.reranker.settings import Settings
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.treebank.data_notes import XPOS_NOTE
from tk_spacy.workflows.train import inputs
from tk_spacy.workflows.train.inputs import check_sources, make_plan, overlap_notes, read_lists
from tk_spacy.workflows.train.options import TrainOptions


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return write_parts(tmp_path / "UD_Owls")


@pytest.fixture
def lists(files: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """Ready lists of five trees, with scores of a parser "a"."""
    made = {name: tmp_path / f"{name}.kbest.conllu" for name in files}
    for name, path in made.items():
        write_known(path, load_treebank(files[name]), known=True)
    return made


def options(files: dict[str, Path], **changes: Any) -> TrainOptions:
    output = files["train"].parent.parent / "model"
    given: dict[str, Any] = {"parsers": ("sampling",), "parser_settings": {"sampling": LEAST}}
    if "parsers" in changes and "sampling" not in changes["parsers"]:
        given = {}
    return TrainOptions(**{**files, "output": output, "folds": 3, **given, **changes})


def ready(lists: dict[str, Path], *names: str) -> dict[str, Path]:
    """Options that give the lists of these parts."""
    return {f"{name}_candidates".removeprefix("train_"): lists[name] for name in names}


@dataclass(frozen=True, kw_only=True)
class Checking:
    """A parser that was trained already; it keeps what it was asked to check."""

    kind: str = "sampling"
    name: str = "checking"
    sources: tuple[str, ...] = ("checking",)
    given: bool = True
    checked: list[list[Sentence]] = field(default_factory=list)

    def check(self, sentences: list[Sentence]) -> None:
        self.checked.append(sentences)


def given_parsers(monkeypatch: pytest.MonkeyPatch, *parsers: Checking) -> list[Any]:
    """The parsers of all trainings; what is asked for is kept in the list."""
    asked: list[Any] = []

    def make(names: Any, **settings: Any) -> tuple[Checking, ...]:
        asked.append((names, settings))
        return parsers

    monkeypatch.setattr(inputs, "make_parsers", make)
    return asked


# Parts


def test_a_plan_has_each_part_with_its_own_file_and_lists(
    files: dict[str, Path], lists: dict[str, Path]
) -> None:
    plan = make_plan(
        TrainOptions(**files, output=files["dev"].parent / "m", k=3, **ready(lists, *files))
    )
    assert list(plan.parts) == ["train", "dev", "test"]
    for name, part in plan.parts.items():
        assert (part.name, part.path) == (name, files[name])
        gold = load_treebank(files[name])
        assert [s.forms for s in part.sentences] == [s.forms for s in gold]
        assert part.words == words(files[name])
        facts = part.facts()
        assert (facts.file, facts.sentences, facts.words) == (
            f"xx_owls-ud-{name}.conllu", SIZES[name], words(files[name]),
        )  # fmt: skip
        assert facts.sha256 == hashlib.sha256(files[name].read_bytes()).hexdigest()
        assert part.lists is not None
        assert [trees.n_words for trees in part.lists] == [len(s) for s in gold]
        assert {len(trees) for trees in part.lists} <= {2, 3}  # the first k
        assert max(len(trees) for trees in part.lists) == 3
        assert all(trees.inventory is plan.inventory for trees in part.lists)
    assert plan.parsers == ()
    assert not plan.needs_lists
    assert not plan.trains_parsers


def test_the_labels_of_train_come_first_and_in_order(files: dict[str, Path]) -> None:
    plan = make_plan(options(files))
    seen = {d for s in load_treebank(files["train"]) for d in s.deprels}
    assert plan.inventory.names == sorted(seen)
    assert (plan.needs_lists, plan.trains_parsers, plan.jackknifes) == (True, True, True)


def test_a_part_that_is_not_given_has_no_lists_to_make(
    files: dict[str, Path], lists: dict[str, Path]
) -> None:
    output = files.pop("test").parent / "m"
    plan = make_plan(TrainOptions(**files, output=output, **ready(lists, "train", "dev")))
    assert list(plan.parts) == ["train", "dev"]
    assert not plan.needs_lists


def test_lists_without_a_choice_are_named_by_their_file(
    files: dict[str, Path], lists: dict[str, Path]
) -> None:
    sentences = load_treebank(files["dev"])
    plan = make_plan(options(files))
    found = read_lists(lists["dev"], sentences, plan.inventory, 2)
    assert {len(trees) for trees in found} == {2}
    with pytest.raises(UserError, match=r"dev\.kbest\.conllu: no list has more than one tree"):
        read_lists(lists["dev"], sentences, plan.inventory, 1)


def test_enough_sentences_for_the_folds_are_two_each(files: dict[str, Path]) -> None:
    assert SIZES["train"] == 17
    assert make_plan(options(files, folds=8)).jackknifes
    write_conllu(files["train"], load_treebank(files["train"])[:16])
    assert make_plan(options(files, folds=8)).jackknifes
    with pytest.raises(UserError) as error:
        make_plan(options(files, folds=9))
    assert str(error.value) == (
        f"{files['train']}: 16 sentences are too few for 9 folds; give at least 18, or fewer folds"
    )
    write_conllu(files["train"], load_treebank(files["train"])[:1])
    with pytest.raises(UserError) as error:
        make_plan(options(files, folds=2))
    # There are no fewer folds than two.
    assert str(error.value) == (
        f"{files['train']}: 1 sentence is too few for 2 folds; give at least 4"
    )


def test_a_treebank_s_size_says_into_how_many_folds_it_is_dealt(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = sum(map(len, load_treebank(files["train"])))
    assert make_plan(options(files, folds=None)).folds == 5
    for size, folds in ((words, 2), (words + 1, 4)):
        monkeypatch.setattr("tk_spacy.workflows.train.arrangement.FOLDS", ((size, 4),))
        assert make_plan(options(files, folds=None)).folds == folds
        assert make_plan(options(files, folds=3)).folds == 3


def test_settings_that_were_the_defaults_are_no_mistake_beside_ready_lists(
    files: dict[str, Path], lists: dict[str, Path]
) -> None:
    earlier = {
        "folds": 5, "parsers": ("sampling", "spacy", "biaffine"), "parser_settings": {},
    }  # fmt: skip
    plan = make_plan(options(files, **earlier, **ready(lists, *lists)))
    assert not plan.needs_lists
    with pytest.raises(UserError, match="folds would have no effect"):
        make_plan(options(files, **{**earlier, "folds": 4}, **ready(lists, *lists)))


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_what_a_pipeline_cannot_hold_is_told_before_anything_is_trained(
    files: dict[str, Path], part: str
) -> None:
    *others, last = load_treebank(files[part])
    write_conllu(files[part], [*others, replace(last, upos=("Nn",) * len(last))])
    made = options(files, parsers=("biaffine", "transition"), parser_settings={})
    with pytest.raises(UserError, match=rf"{files[part]}:\d+: UPOS 'Nn' is no universal"):
        make_plan(made)


def test_folds_do_not_count_where_there_are_none(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    given_parsers(monkeypatch, Checking())
    plan = make_plan(options(files, folds=9))
    assert (plan.needs_lists, plan.trains_parsers, plan.jackknifes) == (True, False, False)


# Warnings


def test_sentences_of_train_in_a_part_are_told_of_above_a_half() -> None:
    def some(*forms: str) -> list[Any]:
        return [SimpleNamespace(forms=(form,), __len__=lambda: 1) for form in forms]

    parts: dict[str, Any] = {"train": some("a", "b", "c"), "dev": some("a", "x"),
                             "test": some("a", "b", "x")}  # fmt: skip
    assert list(overlap_notes(parts)) == [
        "67% of the sentences of test stand in train too: its scores flatter"
    ]
    parts = {"train": some("a"), "test": some("x"), "dev": some("a", "a")}
    assert list(overlap_notes(parts)) == [
        "100% of the sentences of dev stand in train too: its scores flatter"
    ]


@pytest.mark.parametrize("part", ["train", "dev"])
def test_tags_that_are_missing_in_a_part_are_read_by_nobody(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    for path in files.values():
        rewritten(path, 4, lambda number: f"T{number % 5}")
    asked = given_parsers(monkeypatch, Checking())
    assert not any("XPOS" in note for note in make_plan(options(files)).notes)
    assert asked[-1][1]["xpos"] is True
    rewritten(files["test"], 4, lambda number: "_")
    assert any("no word has XPOS" in note for note in make_plan(options(files)).notes)
    # A tenth of the words have none in train or dev: nothing reads the column any more.
    rewritten(files[part], 4, lambda number: "_" if number % 10 == 0 else "T1")
    notes = make_plan(options(files)).notes
    assert [note for note in notes if "XPOS" in note] == [XPOS_NOTE]
    assert asked[-1][1]["xpos"] is False


def test_notes_on_the_data_name_its_files(files: dict[str, Path]) -> None:
    for name in ("dev", "test"):
        rewritten(files[name], 5, lambda number: "_")
    rewritten(files["train"], 5, lambda number: f"A{number % 2}=1")
    notes = make_plan(options(files)).notes
    for name in ("dev", "test"):
        assert sum(note.startswith(f"{files[name]}: no word has FEATS") for note in notes) == 1


def test_properties_that_no_word_has_are_refused(files: dict[str, Path]) -> None:
    settings = Settings(manual_parts=("arc",), properties=("misc:Owl",))
    for changes in (
        {"settings": settings},
        {"parser_settings": {"sampling": {**LEAST, "extra": ["misc:Owl"]}}},
    ):
        with pytest.raises(UserError) as error:
            make_plan(options(files, **changes))
        message = f"{files['train']}: property misc:Owl is asked for, but no word has Owl in MISC"
        assert str(error.value).startswith(message)


def test_a_given_pipeline_may_have_been_trained_on_train(
    files: dict[str, Path], lists: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    spacy = Checking(kind="spacy", name="spacy", sources=("a",))
    given_parsers(monkeypatch, spacy)
    own = {"parsers": ("spacy",), "spacy_pipeline": "xx_owls", "folds": None}
    plan = make_plan(options(files, **own))
    assert plan.notes[-1] == (
        "training lists come from xx_owls itself: right only if it was not trained on "
        "xx_owls-ud-train.conllu (jackknifing needs a spaCy parser trained here)"
    )
    assert plan.parsers == (spacy,)
    for parts in (("train",), ("train", "dev", "test")):
        plan = make_plan(options(files, **own, **ready(lists, *parts)))
        assert not any("xx_owls itself" in note for note in plan.notes)
        assert plan.parsers == (spacy,)  # the model holds it


# Parsers


def test_parsers_are_made_as_the_options_say(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = single_trees(files, tmp_path / "trees")
    asked = given_parsers(monkeypatch, Checking(), Checking(kind="file", sources=("b",)))
    make_plan(
        options(
            files, parsers=("sampling", "spacy", "file:b"), parser_files={"b": trees}, seed=7,
            config=tmp_path / "c.cfg", max_steps=9, backward=False, search="beam",
        )
    )  # fmt: skip
    ((names, settings),) = asked
    assert names == ("sampling", "spacy", "file:b")
    assert settings == {
        "seed": 7, "settings": {"sampling": LEAST}, "spacy_pipeline": None,
        "files": {"b": {name: (files[name], trees[name]) for name in files}},
        "config": tmp_path / "c.cfg", "max_steps": 9, "backward": False, "search": "beam",
        "xpos": True,
    }  # fmt: skip
    given_parsers(monkeypatch, Checking(kind="spacy"))
    asked = given_parsers(monkeypatch, Checking(kind="spacy"))
    make_plan(options(files, parsers=("spacy",), spacy_pipeline="xx_owls", folds=None))
    assert asked[0][1]["spacy_pipeline"] == "xx_owls"


def test_parsers_and_ready_lists_must_have_the_same_scores(
    files: dict[str, Path], lists: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    given_parsers(monkeypatch, Checking(sources=("b",)))
    with pytest.raises(UserError, match="parsers have the scores 'b', the candidates of dev 'a': "):
        make_plan(options(files, **ready(lists, "dev")))


def test_parsers_check_train_and_the_parts_that_they_parse(
    files: dict[str, Path], lists: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Checking(sources=("a",)), Checking(sources=())
    given_parsers(monkeypatch, first, second)
    plan = make_plan(options(files, folds=None, **ready(lists, "dev", "train")))
    wanted = [plan.parts["train"].sentences, plan.parts["test"].sentences]
    for parser in (first, second):
        assert len(parser.checked) == 2
        assert all(a is b for a, b in zip(parser.checked, wanted, strict=True))


def test_components_that_spacy_does_not_know_are_named_before_a_training(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("tk_spacy.pipeline.assembly.check_factories", asked.append)
    given_parsers(monkeypatch, Checking(), Checking(kind="file", sources=("b",)))
    make_plan(options(files))
    assert asked == [["sampling"]]  # trees in files are in no pipeline
    given_parsers(monkeypatch, Checking(kind="file"))
    make_plan(options(files))
    assert len(asked) == 1


def test_trees_in_files_warn_where_they_know_train(files: dict[str, Path], tmp_path: Path) -> None:
    trees = single_trees(files, tmp_path / "trees")
    given = {**trees, "train": files["train"]}
    plan = make_plan(options(files, parsers=("sampling", "file:b"), parser_files={"b": given}))
    assert [note.split(" on train")[0] for note in plan.notes if "file:b" in note] == [
        "file:b has 100.0 UAS"
    ]


def test_a_parser_of_one_tree_is_no_choice_alone(
    files: dict[str, Path], lists: dict[str, Path], tmp_path: Path
) -> None:
    trees = single_trees(files, tmp_path / "trees")
    with pytest.raises(UserError, match="the parser file:b has one tree a sentence, which leaves"):
        make_plan(options(files, folds=None, parsers=("file:b",), parser_files={"b": trees}))
    both = {"b": trees, "c": trees}
    own = {"folds": None, "parsers": ("file:b", "file:c"), "parser_files": both}
    assert [p.name for p in make_plan(options(files, **own)).parsers] == ["file:b", "file:c"]
    alone = make_plan(options(files, folds=None, parsers=("file:a",), parser_files={"a": lists}))
    assert [p.name for p in alone.parsers] == ["file:a"]


def test_two_scores_of_one_name_are_refused(
    files: dict[str, Path], lists: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = r"^two scores would be called {}: give the parser in files another name$"
    for sources, shown in (
        (["b", "a", "b"], "b"), (["combiner"], "combiner"), (["b", "combiner", "b"], "b, combiner"),
    ):  # fmt: skip
        given_parsers(monkeypatch, *(Checking(sources=(name,)) for name in sources))
        with pytest.raises(UserError, match=message.format(shown)):
            make_plan(options(files))


# Sources of scores


def listed(name: str, *sources: tuple[str, ...]) -> Any:
    """A part with ready lists of these scores, or without lists."""
    found = [SimpleNamespace(sources=own) for own in sources]
    return SimpleNamespace(name=name, lists=found or None)


def test_lists_and_parsers_have_the_same_scores() -> None:
    parts = {"train": listed("train", ("a", "b"), ("b", "a")), "dev": listed("dev")}
    check_sources(parts, ["b", "a"])
    check_sources(parts, [])
    check_sources({"train": listed("train")}, ["a"])
    check_sources({"train": listed("train")}, [])
    other = {**parts, "test": listed("test", ("a",))}
    end = ": a reranker is trained and used with the same parsers; give lists of the same ones"
    with pytest.raises(UserError) as error:
        check_sources(other, [])
    assert str(error.value) == (
        f"the candidates of train have the scores 'a' and 'b', the candidates of test 'a'{end}"
    )
    with pytest.raises(UserError) as error:
        check_sources({"dev": listed("dev", ("b",), ("a",))}, ["c"])
    assert str(error.value) == (
        f"the model's parsers have the scores 'c', the candidates of dev 'a' and 'b'{end}"
    )
    with pytest.raises(UserError, match="the candidates of dev of no parser: "):
        check_sources({"dev": listed("dev", ())}, ["c"])
