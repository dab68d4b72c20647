"""Tokens of the text and the words they are made of, from CoNLL-U and to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tk_spacy.tokenizing.training_text import has_text, multiword_tokens, training_text
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.surface import (
    Breaks,
    SurfaceToken,
    breaks_of,
    sentence_of_tokens,
    surface_tokens,
    text_of,
)

SEA = """\
# newpar
# sent_id = 7
# text = Ça va du bar à l'Etat (10 000).
1\tÇa\tça\tPRON\t_\t_\t2\tnsubj\t_\t_
2\tva\taller\tVERB\t_\t_\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\tGloss=of
3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_
5\tbar\tbar\tNOUN\t_\t_\t2\tobl\t_\t_
6\tà\tà\tADP\t_\t_\t8\tcase\t_\t_
7\tl'\tle\tDET\t_\t_\t8\tdet\t_\tSpaceAfter=No
8\tEtat\tétat\tNOUN\t_\t_\t2\tobl\t_\t_
8.1\tx\tx\tX\t_\t_\t_\t_\t_\t_
9\t(\t(\tPUNCT\t_\t_\t10\tpunct\t_\tSpaceAfter=No
10\t10 000\t10 000\tNUM\t_\t_\t2\tdep\t_\tSpaceAfter=No
11\t)\t)\tPUNCT\t_\t_\t10\tpunct\t_\tSpaceAfter=No
12\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""
TOKENS = [
    SurfaceToken("Ça", ("Ça",)), SurfaceToken("va", ("va",)),
    SurfaceToken("du", ("de", "le"), misc="Gloss=of"), SurfaceToken("bar", ("bar",)),
    SurfaceToken("à", ("à",)), SurfaceToken("l'", ("l'",), space=False),
    SurfaceToken("Etat", ("Etat",)), SurfaceToken("(", ("(",), space=False),
    SurfaceToken("10 000", ("10 000",), space=False), SurfaceToken(")", (")",), space=False),
    SurfaceToken(".", (".",)),
]  # fmt: skip


def read(tmp_path: Path, text: str) -> Sentence:
    (tmp_path / "in.conllu").write_text(text, encoding="utf-8")
    (sentence,) = load_treebank(tmp_path / "in.conllu")
    return sentence


def test_surface_tokens_of_a_sentence(tmp_path: Path) -> None:
    sentence = read(tmp_path, SEA)
    assert surface_tokens(sentence) == TOKENS
    assert text_of(TOKENS) == "Ça va du bar à l'Etat (10 000)."
    assert breaks_of(sentence) == Breaks(document=False, paragraph=True)


@pytest.mark.parametrize("lost", ["misc", "text", "wrong text"])
def test_surface_spaces_are_known_from_either_place(tmp_path: Path, lost: str) -> None:
    text = SEA
    if lost == "misc":
        text = SEA.replace("SpaceAfter=No", "_")
    elif lost == "text":
        text = SEA.replace("# text = ", "# told = ")
    else:
        text = SEA.replace("# text = Ça", "# text = Cela")
    assert surface_tokens(read(tmp_path, text)) == TOKENS


def test_surface_of_a_new_sentence_is_what_it_was_made_of(tmp_path: Path) -> None:
    made = sentence_of_tokens(TOKENS, sent_id="7", breaks=Breaks(paragraph=True))
    lines = made.to_conllu().splitlines()
    assert lines[:3] == SEA.splitlines()[:3]
    assert lines[5] == "3-4\tdu" + "\t_" * 7 + "\tGloss=of"
    assert lines[6] == "3\tde" + "\t_" * 8
    assert lines[9].split("\t")[1::8] == ["à", "_"]
    assert surface_tokens(made) == TOKENS
    no_space = TOKENS[2]._replace(space=False, misc="_")
    assert no_space.line(3).endswith("\tSpaceAfter=No")
    assert TOKENS[2]._replace(space=False).line(3).endswith("\tGloss=of|SpaceAfter=No")
    with pytest.raises(ValueError, match="at least one word"):
        sentence_of_tokens([])


def test_surface_that_a_tokenizer_learns_from(tmp_path: Path) -> None:
    sentence = read(tmp_path, SEA)
    assert has_text([sentence])
    assert multiword_tokens([sentence, sentence]) == {SurfaceToken("du", ("de", "le")): 2}
    (learnt,) = training_text([sentence])
    # No tag, no lemma, no tree; the words, the ranges and the spaces stay.
    assert "VERB" not in learnt
    assert "aller" not in learnt
    assert surface_tokens(read(tmp_path, learnt)) == [t._replace(misc="_") for t in TOKENS]
    retagged = read(tmp_path, SEA.replace("VERB", "NOUN").replace("nsubj", "obj"))
    assert list(training_text([retagged])) == [learnt]
    bare = SEA.replace("SpaceAfter=No", "_").replace("# text = ", "# told = ")
    assert not has_text([read(tmp_path, bare)])
    # What follows the last token says nothing of how words stand together.
    last = bare.replace("punct\t_\t_\n\n", "punct\t_\tSpaceAfter=No\n\n")
    assert not has_text([read(tmp_path, last)])
