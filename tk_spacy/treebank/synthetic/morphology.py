"""The inflection of the synthetic language: suffix tables, and the FEATS that go with each form.

Syncretism is deliberate.  Neuters, two masculine classes and the *is* stems write nominative and
accusative alike, feminine genitive and dative singular fall together, and oblique plurals of
adjectives hide the gender.  FEATS always tell the forms apart, as a gold treebank's would.
"""

from typing import Final

CASES: Final = ("Nom", "Acc", "Gen", "Dat", "Loc", "Ins")
GENDERS: Final = ("Masc", "Fem", "Neut")
NUMBERS: Final = ("Sing", "Plur")

# Declension classes: gender, then the six case endings of each number in the order of CASES.
DECLENSIONS: Final[dict[str, tuple[str, str, str]]] = {
    "m1": ("Masc", "- - u ek en om", "i i or im eth omi"),
    "m2": ("Masc", "os on u ek en om", "oi ous or im eth omi"),
    "f1": ("Fem", "a an ai ai ane asa", "ar ar arun aim aneth asi"),
    "f2": ("Fem", "is is ei ei ine isa", "eir eir erun eim ineth isi"),
    "n1": ("Neut", "o o u ok on om", "e e er em ith omi"),
    "n2": ("Neut", "um um am aim une uma", "una una unar unim uneth umi"),
}
_ADJECTIVE: Final[dict[str, tuple[str, str]]] = {
    "Masc": ("er ero ej emu el ir", "eri ere eris erim eril irmi"),
    "Fem": ("ya yo ye ye yel yor", "yar yar eris erim eril irmi"),
    "Neut": ("et et ej emu el ir", "eta eta eris erim eril irmi"),
}
_PERSONAL: Final[dict[tuple[int, str], tuple[str, str]]] = {
    (1, "Sing"): ("jun", "jun jumo jue jumi juel juvor"),
    (2, "Sing"): ("tun", "tun tumo tue tumi tuel tuvor"),
    (1, "Plur"): ("nash", "nash nas nashe nami nashel nashor"),
    (2, "Plur"): ("vash", "vash vas vashe vami vashel vashor"),
}
_PRESENT: Final = {"1Sing": "m", "2Sing": "sh", "3Sing": "", "1Plur": "mos", "2Plur": "te",
                   "3Plur": "n"}  # fmt: skip
_FUTURE: Final = {"1Sing": "o", "2Sing": "esh", "3Sing": "e", "1Plur": "emos", "2Plur": "este",
                  "3Plur": "en"}  # fmt: skip
_PAST: Final = {"MascSing": "", "FemSing": "a", "NeutSing": "o", "MascPlur": "i", "FemPlur": "e",
                "NeutPlur": "e"}  # fmt: skip


def _endings(text: str) -> list[str]:
    return ["" if ending == "-" else ending for ending in text.split()]


class Morphology:
    """The paradigms, unpacked once.  Methods give (form, FEATS); no state but the tables."""

    def __init__(self) -> None:
        self._noun: dict[tuple[str, str, str], str] = {}
        self._adjective: dict[tuple[str, str, str], str] = {}
        for name, (_, *rows) in DECLENSIONS.items():
            for number, row in zip(NUMBERS, rows, strict=True):
                for case, ending in zip(CASES, _endings(row), strict=True):
                    self._noun[name, number, case] = ending
        for gender, pair in _ADJECTIVE.items():
            for number, row in zip(NUMBERS, pair, strict=True):
                for case, ending in zip(CASES, _endings(row), strict=True):
                    self._adjective[gender, number, case] = ending
        self._personal = {
            (person, number, case): (lemma, form)
            for (person, number), (lemma, row) in _PERSONAL.items()
            for case, form in zip(CASES, row.split(), strict=True)
        }

    def noun(self, stem: str, declension: str, number: str, case: str) -> tuple[str, str]:
        """A noun or a name; its gender is its declension's."""
        gender = DECLENSIONS[declension][0]
        form = stem + self._noun[declension, number, case]
        return form, f"Case={case}|Gender={gender}|Number={number}"

    def adjective(
        self, stem: str, gender: str, number: str, case: str, *, degree: str = "Pos"
    ) -> tuple[str, str]:
        """An adjective in the positive (Pos) or comparative (Cmp) degree."""
        infix = "osh" if degree == "Cmp" else ""
        form = stem + infix + self._adjective[gender, number, case]
        return form, f"Case={case}|Degree={degree}|Gender={gender}|Number={number}"

    def pronominal(
        self, stem: str, gender: str, number: str, case: str, pron_type: str
    ) -> tuple[str, str]:
        """A determiner, a relative pronoun or a third-person pronoun: adjectival endings."""
        form = stem + self._adjective[gender, number, case]
        person = "|Person=3" if pron_type == "Prs" else ""
        return form, f"Case={case}|Gender={gender}|Number={number}{person}|PronType={pron_type}"

    def personal(self, person: int, number: str, case: str) -> tuple[str, str, str]:
        """A first- or second-person pronoun as (lemma, form, FEATS): no gender."""
        lemma, form = self._personal[person, number, case]
        return lemma, form, f"Case={case}|Number={number}|Person={person}|PronType=Prs"

    def participle(self, stem: str, gender: str, number: str, case: str) -> tuple[str, str]:
        """A past passive participle, which agrees with its noun like an adjective."""
        form = stem + "ent" + self._adjective[gender, number, case]
        return form, (
            f"Case={case}|Gender={gender}|Number={number}|Tense=Past|VerbForm=Part|Voice=Pass"
        )

    def finite(
        self, stem: str, tense: str, mood: str, person: int, number: str, gender: str
    ) -> tuple[str, str]:
        """A finite verb or auxiliary.

        The past agrees with the subject in Gender and Number, every other form in Person and
        Number, as in the Slavic languages.

        Args:
            stem: ends in the theme vowel of its conjugation.
            tense: Pres, Past or Fut; not used where mood is Cnd or Imp.
            mood: Ind, Cnd or Imp (second person only).
            person, number, gender: the subject's.
        """
        if mood == "Imp":
            ending = "jte" if number == "Plur" else "j"
            return stem + ending, f"Mood=Imp|Number={number}|Person={person}|VerbForm=Fin"
        if mood == "Cnd":
            form = f"{stem}r{_FUTURE[f'{person}{number}']}"
            return form, f"Mood=Cnd|Number={number}|Person={person}|VerbForm=Fin"
        if tense == "Past":
            form = f"{stem}l{_PAST[gender + number]}"
            return form, f"Gender={gender}|Mood=Ind|Number={number}|Tense=Past|VerbForm=Fin"
        ending = (
            _PRESENT[f"{person}{number}"] if tense == "Pres" else "v" + _FUTURE[f"{person}{number}"]
        )
        return stem + ending, (
            f"Mood=Ind|Number={number}|Person={person}|Tense={tense}|VerbForm=Fin"
        )

    def perfect(self, stem: str, number: str, gender: str) -> tuple[str, str]:
        """The participle of the perfect, beside an auxiliary; agrees in Gender and Number."""
        form = f"{stem}n{_PAST[gender + number]}"
        return form, f"Gender={gender}|Number={number}|Tense=Past|VerbForm=Part|Voice=Act"
