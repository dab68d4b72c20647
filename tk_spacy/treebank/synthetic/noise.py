"""Annotation noise: single wrong values, as a tired annotator would leave them."""

from collections.abc import Sequence
from typing import Final

from tk_spacy.treebank.synthetic.dice import Dice

_VALUES: Final = {
    "Case": ("Nom", "Acc", "Gen", "Dat", "Loc", "Ins"),
    "Gender": ("Masc", "Fem", "Neut"),
    "Number": ("Sing", "Plur"),
    "Person": ("1", "2", "3"),
    "Tense": ("Past", "Pres", "Fut"),
}
_MISTAKEN: Final = {
    "nsubj": ("obj", "obl"),
    "obj": ("nsubj", "iobj", "obl"),
    "iobj": ("obl", "obj"),
    "obl": ("nmod", "obj", "advmod"),
    "nmod": ("obl", "appos", "conj"),
    "amod": ("acl", "det", "nmod"),
    "det": ("amod", "nummod"),
    "nummod": ("amod", "det"),
    "case": ("mark", "advmod"),
    "mark": ("cc", "advmod"),
    "cc": ("mark", "advmod"),
    "advmod": ("obl", "discourse"),
    "advcl": ("acl", "ccomp", "conj"),
    "acl": ("amod", "advcl"),
    "acl:relcl": ("acl", "advcl"),
    "ccomp": ("advcl", "xcomp", "conj"),
    "xcomp": ("ccomp", "advcl"),
    "conj": ("appos", "nmod", "parataxis"),
    "aux": ("cop", "xcomp"),
    "cop": ("aux",),
    "appos": ("nmod", "conj", "flat"),
    "flat": ("appos", "nmod"),
}


def add_noise(
    heads: list[int],
    deprels: list[str],
    feats: list[str],
    upos: Sequence[str],
    *,
    rate: float,
    dice: Dice,
) -> None:
    """Gives each word that is no punctuation, with probability `rate`, one wrong value, in place.

    A third each: a wrong HEAD (near the right one; the tree stays a tree with the same root), a
    wrong DEPREL, a wrong value in FEATS.  A word that has no other possible head or no FEATS gets
    a wrong DEPREL instead, the root always a wrong feature.

    Args:
        heads: int, 0..n, of n words, a valid tree.
        deprels, feats, upos: the same words' columns.
        rate: from 0 to 1.
        dice: where the draws come from.
    """
    for word in range(1, len(heads) + 1):
        if upos[word - 1] == "PUNCT" or not dice.chance(rate):
            continue
        choice = dice.below(3)
        if heads[word - 1] == 0 or (choice == 0 and feats[word - 1] != "_"):
            feats[word - 1] = _wrong_feats(feats[word - 1], dice)
        elif choice == 1 and (others := _other_heads(heads, word, upos)):
            heads[word - 1] = dice.one_of(others)
        else:
            right = deprels[word - 1]
            deprels[word - 1] = dice.one_of(_MISTAKEN.get(right, ("dep",)))


def _wrong_feats(column: str, dice: Dice) -> str:
    """One attribute with another of its values; without a variable attribute, none at all."""
    items = column.split("|")
    places = [i for i, item in enumerate(items) if item.partition("=")[0] in _VALUES]
    if not places:
        return "_"
    place = dice.one_of(places)
    name, _, right = items[place].partition("=")
    items[place] = f"{name}={dice.one_of([v for v in _VALUES[name] if v != right])}"
    return "|".join(items)


def _other_heads(heads: list[int], word: int, upos: Sequence[str]) -> list[int]:
    """The usual wrong heads: the head's own head and the three nearest fellow dependents.

    None of them hangs under the word, so that no cycle can arise.
    """
    right = heads[word - 1]
    siblings = [
        other
        for other, head in enumerate(heads, 1)
        if head == right and other != word and upos[other - 1] != "PUNCT"
    ]
    siblings.sort(key=lambda other: abs(other - word))
    above = heads[right - 1]
    return siblings[:3] + ([above] if above else [])
