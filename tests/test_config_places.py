"""A wrong value in a config is told with FILE:LINE and its dotted name, whatever refuses it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cli import invoke
from test_config import PATHS
from test_config_quotes import refused
from trainings import lists_training, treebank
from treebank_folders import QUICK, write_folder

from tk_spacy.errors import UserError
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.config_text import training_config
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.pipeline import train_pipeline


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tags]\ntagger = "foo"\n', "2: tags.tagger: unknown tagger 'foo'; choose from bilstm,"),
        ('[tags]\ntagger = "bilstm:x=1"\n', "2: tags.tagger 'bilstm:x=1': unknown settings: x;"),
        ('[tags]\ntokenizer = "foo"\n', "2: tags.tokenizer: unknown tokenizer 'foo'; choose from"),
        ('[tags]\ntokenizer = "udpipe:epochs=0"\n', "2: tags.tokenizer 'udpipe:epochs=0': epochs"),
        ('[parsers]\nnames = ["foo"]\n', "2: parsers.names: unknown parser 'foo'; choose from"),
        ("[parsers]\nnames = []\n", "2: parsers.names are none; name one or more"),
        ('[parsers]\nnames = ["file:x"]\n', "2: parsers.names: the parser file:x needs its trees"),
        ('[parsers.sampling]\nextra = ["x"]\n', "2: parsers.sampling.extra: unknown property 'x'"),
        ('[reranker]\nkernel_parts = ["x"]\n', "2: reranker.kernel_parts: unknown part type 'x'"),
        ('[reranker]\nproperties = ["x"]\n', "2: reranker.properties: unknown property 'x'; "),
        ('[reranker]\nskip = ["x"]\n', "2: reranker.skip: unknown slot 'x'; choose from g, h,"),
        ('[reranker]\nlist_features = ["x"]\n', "2: reranker.list_features: unknown list feat"),
        ("[reranker]\nkernel_parts = []\nbudget = 4\n", "3: reranker.budget: a budget without a"),
        ("[reranker]\nkernel_scale = 0\n", "2: reranker.kernel_scale is 0.0; it must be positive"),
        ('[lists]\ntest = "x"\n', "2: lists.test: candidates for test are given, but no test"),
        ("[paths]\ntrain = []\n", "2: paths.train is empty; name at least one file or folder"),
        ('[paths]\ndev = ""\n', '2: paths.dev is ""; expected a file name in quotes, or null'),
    ],
)
def test_a_wrong_value_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    own = {"paths.train": None, "paths.dev": None} if "[paths]" in text else {}
    path = tmp_path / "a.cfg"
    path.write_text(text, encoding="utf-8")
    changes = {name: value for name, value in PATHS.items() if name not in own}
    with pytest.raises(UserError) as error:
        train_options(path, changes)
    assert str(error.value).startswith(f"{path}:{message}")


def test_a_short_name_in_two_sections_has_the_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    text = '[parsers.files.turbo]\ntrain = "x"\n[tags]\nsource = "silver"\n'
    assert refused(path, text).startswith("4: tags.source is 'silver'; choose from own, gold")
    # Seeds stand in four sections, and kernel_scale in two.
    text = "[parsers.sampling]\nseed = 1\n[parsers.biaffine]\nseed = 1\n[training]\nseed = -1\n"
    assert refused(path, text).startswith("6: training.seed is -1; it must be from 0")
    text = "[reranker]\nkernel_scale = 1\n[parsers.sampling]\nkernel_scale = -1\n"
    assert refused(path, text).startswith("4: parsers.sampling.kernel_scale is -1.0; it must be")
    text = "[parsers.sampling]\nkernel_scale = 1\n[reranker]\nkernel_scale = -1\n"
    assert refused(path, text).startswith("4: reranker.kernel_scale is -1.0; it must be positive")
    text = '[parsers.udpipe]\nseed = 1\n[tags]\nsource = "gold"\n[parsers.biaffine]\nseed = -2\n'
    assert refused(path, text).startswith("6: parsers.biaffine.seed is -2; it must be from 0")


def test_what_a_change_is_wrong_in_is_not_the_file_s(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    text = '[tags]\nsource = "gold"\n[parsers]\nnames = ["sampling"]\n[lists]\nk = 8\n'
    for changes, message in (
        ({"tags.tagger": "udpipe"}, "tagger would have no effect: tags is 'gold'"),
        ({"parsers.biaffine.epochs": 3}, "biaffine.epochs concerns the biaffine parser only"),
        ({"lists.k": 1}, "k is 1; a reranker needs lists"),
    ):
        assert refused(path, text, **changes).startswith(message)


@pytest.mark.parametrize(
    ("section", "line", "message"),
    [
        ("parsers", 'names = ["sampling:order=9"]', "parsers.names: parser 'sampling:order=9': or"),
        ("parsers", 'names = ["sampling", "sampling:seed=0"]', "parsers.names: the parsers sampli"),
        ("parsers.spacy", 'config = "no.cfg"', "parsers.spacy.config: no.cfg: not a config that"),
        ("parsers.spacy", 'pipeline = "no"', "parsers.spacy.pipeline: no: neither a directory wi"),
        ("parsers.sampling", 'extra = ["misc:No"]', "parsers.sampling.extra: "),
        ("reranker", 'properties = ["table:no.txt"]', "reranker.properties: no.txt: cannot read"),
        ("lists", "folds = 80", "lists.folds: "),
        ("lists", 'dev = "no.kbest"', "lists.dev: no.kbest: cannot read it: No such file"),
        ("paths", 'test = "no.conllu"', "paths.test: no.conllu: cannot read it: No such file"),
        ("paths", 'dev = "no.conllu"', "paths.dev: no.conllu: cannot read it: No such file"),
        ("paths", 'train = ["no.conllu"]', "paths.train: no.conllu: cannot read it: No such file"),
        ("paths", 'train = "tests-no-treebank"', "paths.train: tests-no-treebank: holds no tree"),
        ("paths", 'output = "a-file"', "paths.output: a-file: a file stands where the model"),
        ("paths", 'workdir = "a-file"', "paths.workdir: a-file: a file stands where the work"),
    ],
)
def test_what_reading_refuses_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str, line: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tests-no-treebank").mkdir()
    Path("a-file").touch()
    files = treebank()
    names = "spacy" if section == "parsers.spacy" else "sampling"
    paths = {"train": str(files["train"]), "dev": str(files["dev"]), "output": "m"}
    own = line.partition(" = ")[0]
    given = [f'{n} = "{p}"' for n, p in paths.items() if section != "paths" or n != own]
    text = "[paths]\n" + "\n".join(given)
    text += f"\n{line}\n" if section == "paths" else "\n"
    if section != "parsers":
        text += f'[parsers]\nnames = ["{names}"]\n'
    text += f"[{section}]\n{line}\n" if section != "paths" else ""
    Path("a.cfg").write_text(text, encoding="utf-8")
    number = text.splitlines().index(line) + 1
    before = sorted(tmp_path.iterdir())
    result = invoke("train", "--config", "a.cfg", "-q")
    assert result.exit_code == 1, result.output
    (said,) = result.stderr.splitlines()
    assert said.startswith(f"Error: a.cfg:{number}: {message}")
    assert sorted(tmp_path.iterdir()) == before


def test_a_path_that_is_given_beside_a_file_is_not_the_file_s_mistake(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    text = '[parsers]\nnames = ["spacy"]\n[parsers.spacy]\nconfig = null\nmax_steps = 3\n'
    path.write_text(text, encoding="utf-8")
    files = {f"paths.{part}": str(treebank()[part]) for part in ("train", "dev")}
    wanted = train_options(path, {**PATHS, **files, "parsers.spacy.pipeline": "no"})
    assert wanted.remarks == (
        f"Not used: {path}:5: parsers.spacy.max_steps: a spaCy pipeline is given, so none is "
        "trained",
    )
    with pytest.raises(UserError, match=r"^no: neither a directory with a spaCy pipeline"):
        train_pipeline(wanted)


def test_a_mistake_within_a_treebank_has_its_own_place_alone(tmp_path: Path) -> None:
    (tmp_path / "bad.conllu").write_text("1\tone\n\n", encoding="utf-8")
    path = tmp_path / "a.cfg"
    path.write_text(f'[paths]\ntrain = "{tmp_path / "bad.conllu"}"\noutput = "m"\n')
    with pytest.raises(UserError) as error:
        train_pipeline(train_options(path))
    assert str(error.value).startswith(f"{tmp_path / 'bad.conllu'}:1: 2 columns instead of 10")


# What a model's own config says that has no effect beside other options


def test_a_file_s_tagger_has_no_effect_beside_gold_tags(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    path.write_text('[tags]\ntagger = "udpipe"\ntokenizer = "none"\n', encoding="utf-8")
    made = train_options(path, {**PATHS, "tags.source": "gold"})
    assert (made.tags, made.tagger, made.tokenizer) == ("gold", "bilstm", "udpipe")
    assert made.remarks == (
        f"Not used: {path}:2: tags.tagger would have no effect: tags is 'gold'",
        f"Not used: {path}:3: tags.tokenizer would have no effect: tags is 'gold', and text has "
        "none",
    )
    assert train_options(path, PATHS).remarks == ()


def test_a_file_s_settings_of_spacy_s_parser_and_of_trees_are_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    path.write_text(
        '[parsers]\nnames = ["spacy", "file:x"]\n[parsers.spacy]\nmax_steps = 9\nbackward = true\n'
        'search = "beam"\n[parsers.files.x]\ntrain = "t"\ndev = "d"\n',
        encoding="utf-8",
    )
    whole = train_options(path, PATHS)
    assert (whole.max_steps, whole.search, whole.remarks) == (9, "beam", ())
    made = train_options(path, {**PATHS, "parsers.names": "sampling"})
    assert (made.max_steps, made.search, made.parser_files) == (None, "discrepancy", {})
    named = (
        (4, "parsers.spacy.max_steps"),
        (6, "parsers.spacy.search"),
        (8, "parsers.files.x.train"),
        (9, "parsers.files.x.dev"),
    )
    said = "; ".join(f"{path}:{line}: {name}" for line, name in named)
    assert made.remarks == (f"No parser is trained that these settings are of: {said}",)


def test_a_file_s_folds_have_no_effect_beside_ready_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    path.write_text("[lists]\nfolds = 3\n[training]\npaper_grid = true\n", encoding="utf-8")
    lists = {"lists.train": "t", "lists.dev": "d", "training.tuning_folds": 0}
    made = train_options(path, {**PATHS, **lists})
    assert (made.folds, made.paper_grid) == (None, False)
    assert [remark.partition(" would")[0] for remark in made.remarks] == [
        f"Not used: {path}:4: training.paper_grid",
        f"Not used: {path}:2: lists.folds",
    ]


def test_cross_validation_in_a_file_has_no_effect_beside_dev(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_T", start=0, test=12)
    quick = {**QUICK, "machine.threads": 1}
    changes = {**quick, "paths.train": str(folder), "lists.folds": 2}
    model = tmp_path / "model"
    train_pipeline(train_options(None, {**changes, "paths.output": str(model)}))
    config = model / "training.cfg"
    place = f"{config}:{config.read_text().splitlines().index('cross_validation = true') + 1}"
    (tmp_path / "more").mkdir()
    parts = write_folder(tmp_path / "more" / "UD_M", start=20, train=8, dev=6)
    again = {"paths.train": str(parts), "paths.output": str(tmp_path / "again")}
    plan = make_plan(train_options(config, again))
    assert plan.options.cross_validation is None
    (told,) = [note for note in plan.told if note.startswith("Not used: ")]
    assert told.startswith(f"Not used: {place}: training.cross_validation would have no effect:")
    with pytest.raises(UserError, match=r"^cross_validation would have no effect: there is a dev"):
        make_plan(train_options(config, {**again, "training.cross_validation": True}))


def test_a_model_s_config_leaves_cross_validation_open_where_it_was_no_choice(
    tmp_path: Path,
) -> None:
    folder = write_folder(tmp_path / "UD_T", start=0, train=20, test=6)
    alone = write_folder(tmp_path / "UD_A", start=0, train=20)
    for files, chosen, decided in (
        (folder, None, None),
        (folder, False, None),
        (alone, None, None),
        (alone, False, False),
        (alone, True, True),
    ):
        changes = {**QUICK, "paths.train": str(files), "paths.output": str(tmp_path / "m")}
        wanted = train_options(None, {**changes, "training.cross_validation": chosen})
        assert make_plan(wanted).options.cross_validation is decided


# A preset that is edited in a model's own config


def test_another_preset_in_a_model_s_own_config_is_told_to_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "training.cfg"
    quick = train_options(None, {**PATHS, "training.preset": "quick"})
    text = training_config(quick)
    path.write_text(text, encoding="utf-8")
    again = {"paths.output": "model"}
    assert train_options(path, again).remarks == ()
    assert train_options(path, {**again, "training.preset": "best"}).remarks == ()

    path.write_text(text.replace('preset = "quick"', 'preset = "best"'), encoding="utf-8")
    line = path.read_text().splitlines().index('preset = "best"') + 1
    edited = train_options(path, again)
    assert (edited.parsers, edited.parser_settings) == (quick.parsers, quick.parser_settings)
    (remark,) = edited.remarks
    assert remark.startswith(f"{path}:{line}: training.preset is 'best' now, but the file has all")
    for name in ("parsers.names", "parsers.biaffine.epochs"):
        assert name in remark
    # The cure: an option, which does count.
    best = train_options(path, {**again, "training.preset": "best"})
    plain = train_options(None, {**PATHS, "training.preset": "best"})
    assert (best.parsers, best.max_steps) == (plain.parsers, 1500)
    assert best.remarks == ()
    # Or the lines that say otherwise are taken out.
    kept = [t for t in path.read_text().splitlines() if not t.startswith(("names =", "epochs ="))]
    kept = [t for t in kept if not t.startswith(("max_steps =", "tokenizer ="))]
    path.write_text("\n".join(kept), encoding="utf-8")
    taken = train_options(path, again)
    assert (taken.parsers, taken.max_steps, taken.remarks) == (plain.parsers, 1500, ())


def test_a_preset_is_told_of_in_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "own.cfg"
    text = '[training]\npreset = "best"\n[parsers]\nnames = ["biaffine", "sampling"]\n'
    path.write_text(text, encoding="utf-8")
    assert train_options(path, PATHS).remarks == ()
    shown = (lists_training()[0] / "training.cfg").read_text(encoding="utf-8")
    path.write_text(shown.replace('preset = "standard"', 'preset = "best"'), encoding="utf-8")
    # With ready lists a preset has nothing to say.
    assert train_options(path, {"paths.output": "model"}).remarks == ()
