"""A sentence's tree before and after."""

import pytest

from tk_spacy.evaluation.before_after import BeforeAfter, most_mended
from tk_spacy.treebank.conllu import Sentence


def tree(heads: list[int], deprels: list[str], sent_id: str = "s1") -> Sentence:
    """The old cat slept there, with a tree."""
    return Sentence.from_columns(
        forms=["The", "old", "cat", "slept", "there"],
        upos=["DET", "ADJ", "NOUN", "VERB", "ADV"],
        heads=heads,
        deprels=deprels,
        sent_id=sent_id,
    )


GOLD = tree([3, 3, 4, 0, 4], ["det", "amod", "nsubj", "root", "advmod"])
# Wrong: the second word's head, the third's relation, the fifth's head.
BEFORE = tree([3, 4, 4, 0, 3], ["det", "amod", "obj", "root", "advmod"])
# Mended: the second and the third.  Spoilt: the first.  The fifth is wrong in another way.
AFTER = tree([4, 3, 4, 0, 4], ["det", "amod", "nsubj", "root", "obl"])


def test_before_after_tells_each_word() -> None:
    example = BeforeAfter.compare(GOLD, BEFORE, AFTER)
    assert [w.verdict for w in example.words] == ["spoilt", "mended", "mended", "right", "wrong"]
    assert example.gain == 2 - 1
    assert example.lines() == [
        "   form   UPOS  head    relation",
        "1  The    DET   3 -> 4  det            spoilt, gold: 3 det",
        "2  old    ADJ   4 -> 3  amod           mended",
        "3  cat    NOUN  4       obj -> nsubj   mended",
        "4  slept  VERB  0       root",
        "5  there  ADV   3 -> 4  advmod -> obl  wrong, gold: 4 advmod",
    ]


def test_before_after_gives_json_values() -> None:
    document = BeforeAfter.compare(GOLD, BEFORE, AFTER).to_dict()
    assert (document["sent_id"], document["mended"], document["spoilt"]) == ("s1", 2, 1)
    assert document["words"][4] == {
        "id": 5,
        "form": "there",
        "upos": "ADV",
        "before": {"head": 3, "deprel": "advmod"},
        "after": {"head": 4, "deprel": "obl"},
        "gold": {"head": 4, "deprel": "advmod"},
        "verdict": "wrong",
    }


def test_before_after_fits_80_columns() -> None:
    n = 12
    deprels = ["root", *["acl:relcl"] * (n - 1)]
    chain = [0, *range(1, n)]
    forms = ["x" * 40, "\u732b" * 20, *["y" * 15] * (n - 2)]  # wide characters take two columns

    def words(heads: list[int], relations: list[str]) -> Sentence:
        return Sentence.from_columns(
            forms=forms, upos=["SCONJ"] * n, heads=heads, deprels=relations
        )

    after = words([0, *[1] * (n - 1)], ["root", *["parataxis"] * (n - 1)])
    lines = BeforeAfter.compare(words(chain, deprels), words(chain, deprels), after).lines()
    assert max(map(len, lines)) <= 80
    assert lines[12].split() == [
        "12", "yyyyyyyy", "SCONJ", "11", "->", "1", "acl:relcl", "->", "parataxis",
        "spoilt,", "gold:", "11", "acl:relcl",
    ]  # fmt: skip
    assert lines[2].split()[1] == "\u732b" * 4


def test_before_after_refuses_other_words() -> None:
    other = Sentence.from_columns(forms=["Yes"], heads=[0], deprels=["root"])
    with pytest.raises(ValueError, match="trees of 5, 5 and 1 words"):
        BeforeAfter.compare(GOLD, BEFORE, other)


def test_before_after_chooses_what_gained_most() -> None:
    half = tree([3, 3, 4, 0, 3], ["det", "amod", "obj", "root", "advmod"], "half")
    names = ["worse", "little", "first", "second"]
    gold = [tree(GOLD.heads.tolist(), list(GOLD.deprels), name) for name in names]
    before = [GOLD, half, BEFORE, BEFORE]
    chosen = most_mended(gold, before, [BEFORE, GOLD, GOLD, GOLD])
    assert chosen is not None
    assert (chosen.sent_id, chosen.gain) == ("first", 3)
    # Nothing short enough: whichever gained most; nothing that gained: none.
    assert most_mended(gold, before, [BEFORE, GOLD, GOLD, GOLD], max_words=4) == chosen
    # A short sentence that gains a little goes before a long one that gains more.
    short = Sentence.from_columns(forms=["Go", "!"], heads=[0, 1], deprels=["root", "punct"])
    wrong = short.with_tree([0, 1], ["root", "dep"])
    mixed = most_mended([*gold, short], [*before, wrong], [GOLD] * 4 + [short], max_words=4)
    assert mixed is not None
    assert (len(mixed.words), mixed.gain) == (2, 1)
    assert most_mended(gold, [GOLD] * 4, [GOLD, BEFORE, GOLD, GOLD]) is None
    assert most_mended([], [], []) is None
