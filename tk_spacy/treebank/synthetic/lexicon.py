"""The invented lexicon: words made of syllables, with the preferences that decide attachment.

A word's preferences (which adpositions it takes, whether it takes a genitive, which kinds of
nouns a verb wants) show in no column of the treebank.  They can be learnt only from lemma pairs.
"""

from dataclasses import dataclass
from typing import Final

from tk_spacy.treebank.synthetic.dice import Dice, Table
from tk_spacy.treebank.synthetic.morphology import DECLENSIONS

KINDS: Final = 6  # semantic kinds of nouns, which verbs select for
LEXICON_SEED: Final = 20_111

_ONSETS: Final = "b d f g k l m n p r s t v z br dr gr kl kr pl sk st tr".split()
_VOWELS: Final = "a e i o u".split()
_CODAS: Final = "l n r s m k t".split()

# Adpositions with the case that each governs; the last two stand after their noun.
_ADPOSITIONS: Final = (
    ("na", "Loc"), ("vu", "Loc"), ("ok", "Loc"), ("iz", "Gen"), ("bez", "Gen"), ("do", "Gen"),
    ("kro", "Acc"), ("po", "Acc"), ("ke", "Dat"), ("pri", "Dat"), ("ses", "Ins"), ("med", "Ins"),
    ("radi", "Gen"), ("vesh", "Dat"),
)  # fmt: skip
POSTPOSITIONS: Final = ("radi", "vesh")


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun, or a name (UPOS PROPN), with its declension and its preferences."""

    lemma: str
    stem: str
    declension: str
    gender: str
    kind: int
    adpositions: frozenset[str]
    """The adpositional phrases that it takes as nmod; any other beside it is the verb's."""
    relational: bool
    """Whether it takes a genitive: decides to which noun of a chain the next genitive belongs."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with its stem (ending in the theme vowel), frame and preferences."""

    lemma: str
    stem: str
    frame: str
    """intransitive, transitive, ditransitive, clausal (ccomp) or control (xcomp)."""
    subject_kind: int
    object_kind: int
    adpositions: tuple[str, ...]
    """The adpositional phrases that it takes as obl."""


class Lexicon:
    """All words, in tables with Zipfian weights.

    Args:
        seed: another seed makes another language with the same grammar.
    """

    def __init__(self, seed: int = LEXICON_SEED) -> None:
        self._dice = Dice(seed)
        self._taken: set[str] = set()
        self.adpositions: dict[str, str] = dict(_ADPOSITIONS)
        self._taken.update(self.adpositions)
        self._adposition_table = Table(list(self.adpositions))
        nouns = [self._make_noun() for _ in range(600)]
        self.nouns = Table(nouns)
        self.nouns_of_kind = [Table([n for n in nouns if n.kind == k]) for k in range(KINDS)]
        self.relational_nouns = Table([n for n in nouns if n.relational])
        self.plain_nouns = Table([n for n in nouns if not n.relational])
        self.names = Table([self._make_name() for _ in range(150)])
        self.verbs = {
            frame: Table([self._make_verb(frame) for _ in range(size)])
            for frame, size in (
                ("intransitive", 70),
                ("transitive", 140),
                ("ditransitive", 30),
                ("clausal", 25),
                ("control", 20),
            )
        }
        self.adjectives = Table([self._word(1, 2) for _ in range(180)])
        self.determiners = Table(
            [(self._word(1, 1), kind) for kind in ("Dem", "Dem", "Ind", "Tot", "Ind", "Neg")]
        )
        self.adverbs = {
            name: Table([self._word(1, 2) + ending for _ in range(size)])
            for name, ending, size in (
                ("manner", "ish", 50),
                ("Past", "or", 8),
                ("Pres", "ut", 6),
                ("Fut", "ey", 6),
                ("degree", "", 6),
            )
        }
        self.numerals = Table([self._word(1, 1) for _ in range(9)])
        # Subordinators: "if" wants Cnd in both clauses; the others want equal tenses.
        self.conditional = [self._word(1, 1) for _ in range(2)]
        self.temporal = [self._word(1, 1) for _ in range(4)]
        self.conjunctions = Table(["i", "ta", "abo"], [6.0, 2.0, 1.0])

    def adposition(self, allowed: frozenset[str] | tuple[str, ...], dice: Dice) -> str:
        """One of the allowed adpositions, the commonest most often."""
        while True:
            found = dice.draw(self._adposition_table)
            if found in allowed:
                return found

    def _syllable(self) -> str:
        return self._dice.one_of(_ONSETS) + self._dice.one_of(_VOWELS)

    def _word(self, least: int, most: int) -> str:
        """A new stem of `least` to `most` syllables, the last one closed."""
        while True:
            length = least + self._dice.below(most - least + 1)
            stem = "".join(self._syllable() for _ in range(length))
            stem += self._dice.one_of(_CODAS)
            if stem not in self._taken:
                self._taken.add(stem)
                return stem

    def _adpositions(self, n: int) -> list[str]:
        chosen: list[str] = []
        while len(chosen) < n:
            found = self._dice.draw(self._adposition_table)
            if found not in chosen:
                chosen.append(found)
        return chosen

    def _make_noun(self) -> Noun:
        dice = self._dice
        declension = dice.one_of(list(DECLENSIONS))
        stem, lemma = self._nominal(declension)
        return Noun(
            lemma=lemma,
            stem=stem,
            declension=declension,
            gender=DECLENSIONS[declension][0],
            kind=dice.below(KINDS),
            adpositions=frozenset(self._adpositions(2)) if dice.chance(0.6) else frozenset(),
            relational=dice.chance(0.45),
        )

    def _make_name(self) -> Noun:
        dice = self._dice
        declension = dice.one_of(("m1", "m2", "f1", "f2"))
        stem, lemma = (part.capitalize() for part in self._nominal(declension))
        gender = DECLENSIONS[declension][0]
        return Noun(lemma, stem, declension, gender, dice.below(KINDS), frozenset(), False)

    def _nominal(self, declension: str) -> tuple[str, str]:
        """A stem and its lemma, the nominative singular; both new."""
        ending = DECLENSIONS[declension][1].split()[0].strip("-")
        while True:
            stem = self._word(1, 2)
            if not ending or stem + ending not in self._taken:
                self._taken.add(stem + ending)
                return stem, stem + ending

    def _make_verb(self, frame: str) -> Verb:
        dice = self._dice
        stem = self._word(1, 2) + dice.one_of(("a", "e", "i"))
        return Verb(
            lemma=stem + "t",
            stem=stem,
            frame=frame,
            subject_kind=dice.below(KINDS),
            object_kind=dice.below(KINDS),
            adpositions=tuple(self._adpositions(3)),
        )
