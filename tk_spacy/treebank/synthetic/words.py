"""Nodes of a growing tree, and the maker of single words with their columns filled."""

from dataclasses import dataclass, field

from tk_spacy.treebank.synthetic.dice import Dice
from tk_spacy.treebank.synthetic.lexicon import POSTPOSITIONS, Lexicon, Noun, Verb
from tk_spacy.treebank.synthetic.morphology import Morphology


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a subject passes on to its verb, and a noun to its modifiers."""

    gender: str
    number: str
    person: int = 3


@dataclass(slots=True, eq=False)
class Node:
    """A word, its head, and what stands before and after it.

    `before` and `after` hold whole phrases in their order.  Usually these are the word's own
    dependents; a displaced phrase (an extraposed relative clause, a split adjective) stands in
    the lists of another word than its head, which is what makes its arc non-projective.
    """

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str = "_"
    deprel: str = "_"
    head: "Node | None" = None
    before: "list[Node]" = field(default_factory=list)
    after: "list[Node]" = field(default_factory=list)
    agreement: Agreement | None = None
    case: str = ""
    noun: Noun | None = None
    verb: Verb | None = None

    def under(self, head: "Node", deprel: str) -> "Node":
        """This node, made a dependent of `head`; its place is for the caller to choose."""
        self.head, self.deprel = head, deprel
        return self


class WordMaker:
    """Makes single words, and keeps count of them against the sentence's intended length."""

    def __init__(self, lexicon: Lexicon, dice: Dice) -> None:
        self.lexicon = lexicon
        self.dice = dice
        self.morphology = Morphology()
        self.made = 0
        self.target = 0

    def begin(self, target: int) -> None:
        """Starts a sentence of about `target` words."""
        self.made, self.target = 0, target

    def maybe(self, probability: float) -> bool:
        """Whether to add something optional: never once the intended length is reached."""
        return self.made < self.target and self.dice.chance(probability)

    def noun(self, word: Noun, number: str, case: str, *, name: bool = False) -> Node:
        """A noun or name with its agreement."""
        form, feats = self.morphology.noun(word.stem, word.declension, number, case)
        self.made += 1
        return Node(
            form,
            word.lemma,
            "PROPN" if name else "NOUN",
            "NP" if name else "NC",
            feats,
            agreement=Agreement(word.gender, number),
            case=case,
            noun=word,
        )

    def adjective(self, agreement: Agreement, case: str) -> Node:
        """An adjective that agrees; one in twelve is a comparative."""
        stem = self.dice.draw(self.lexicon.adjectives)
        degree = "Cmp" if self.dice.chance(0.08) else "Pos"
        form, feats = self.morphology.adjective(
            stem, agreement.gender, agreement.number, case, degree=degree
        )
        self.made += 1
        xpos = "AC" if degree == "Cmp" else "AJ"
        return Node(form, stem + "er", "ADJ", xpos, feats, agreement=agreement, case=case)

    def participle(self, agreement: Agreement, case: str) -> Node:
        """A passive participle that agrees like an adjective."""
        verb = self.dice.draw(self.lexicon.verbs["transitive"])
        form, feats = self.morphology.participle(
            verb.stem, agreement.gender, agreement.number, case
        )
        self.made += 1
        return Node(form, verb.lemma, "VERB", "VA", feats, case=case, verb=verb)

    def determiner(self, agreement: Agreement, case: str) -> Node:
        """A determiner that agrees."""
        stem, kind = self.dice.draw(self.lexicon.determiners)
        form, feats = self.morphology.pronominal(
            stem, agreement.gender, agreement.number, case, kind
        )
        self.made += 1
        return Node(form, stem + "er", "DET", "D" + kind[0], feats, case=case)

    def relative_pronoun(self, agreement: Agreement, case: str) -> Node:
        """A relative pronoun: gender and number of its antecedent, case of its own role."""
        form, feats = self.morphology.pronominal(
            "kv", agreement.gender, agreement.number, case, "Rel"
        )
        self.made += 1
        agreement = Agreement(agreement.gender, agreement.number)
        return Node(form, "kver", "PRON", "PR", feats, agreement=agreement, case=case)

    def personal_pronoun(self, case: str) -> Node:
        """A personal pronoun; the third person shows its gender."""
        who = self.any_agreement()
        if who.person == 3:
            lemma = "oner"
            form, feats = self.morphology.pronominal("on", who.gender, who.number, case, "Prs")
        else:
            lemma, form, feats = self.morphology.personal(who.person, who.number, case)
        self.made += 1
        return Node(form, lemma, "PRON", "PP", feats, agreement=who, case=case)

    def any_agreement(self) -> Agreement:
        """The agreement of a pronoun or of a subject that is left out."""
        dice = self.dice
        person = 3 if dice.chance(0.6) else 1 + dice.below(2)
        number = "Plur" if dice.chance(0.4) else "Sing"
        return Agreement(dice.one_of(("Masc", "Fem", "Neut")), number, person)

    def finite(self, verb: Verb, tense: str, mood: str, subject: Agreement) -> Node:
        """A finite verb agreeing with its subject."""
        form, feats = self.morphology.finite(
            verb.stem, tense, mood, subject.person, subject.number, subject.gender
        )
        self.made += 1
        return Node(form, verb.lemma, "VERB", "VF", feats, verb=verb)

    def perfect(self, verb: Verb, subject: Agreement) -> Node:
        """The participle of the perfect, agreeing with its subject."""
        form, feats = self.morphology.perfect(verb.stem, subject.number, subject.gender)
        self.made += 1
        return Node(form, verb.lemma, "VERB", "VP", feats, verb=verb)

    def non_finite(self, verb: Verb, verb_form: str) -> Node:
        """An infinitive (Inf) or a converb (Conv)."""
        self.made += 1
        ending, xpos = ("t", "VI") if verb_form == "Inf" else ("do", "VC")
        feats = f"VerbForm={verb_form}"
        return Node(verb.stem + ending, verb.lemma, "VERB", xpos, feats, verb=verb)

    def auxiliary(self, tense: str, mood: str, subject: Agreement) -> Node:
        """The verb "to be" as auxiliary or copula."""
        form, feats = self.morphology.finite(
            "bi", tense, mood, subject.person, subject.number, subject.gender
        )
        self.made += 1
        return Node(form, "bit", "AUX", "AX", feats)

    def numeral(self) -> Node:
        """A number from two to nine in letters, or a larger one in digits."""
        dice = self.dice
        self.made += 1
        if dice.chance(0.4):
            digits = str(2 + dice.below(98))
            return Node(digits, digits, "NUM", "ND", "NumForm=Digit|NumType=Card")
        word = dice.draw(self.lexicon.numerals)
        return Node(word, word, "NUM", "NU", "NumForm=Word|NumType=Card")

    def adverb(self, table: str) -> Node:
        """An adverb of manner or degree, or one that wants a tense (Past, Pres, Fut)."""
        word = self.dice.draw(self.lexicon.adverbs[table])
        return self.particle(word, "ADV", "AD" if table == "degree" else "AV")

    def adposition(self, word: str) -> Node:
        """An adposition."""
        return self.particle(word, "ADP", "PO" if word in POSTPOSITIONS else "PE")

    def particle(self, word: str, upos: str, xpos: str) -> Node:
        """A word that is not inflected: SCONJ, CCONJ, ADP, ADV, PUNCT."""
        self.made += 1
        return Node(word, word, upos, xpos)

    def comma(self, head: Node) -> Node:
        """A comma, hung under `head`."""
        return self.particle(",", "PUNCT", "$,").under(head, "punct")

    def conjunction(self, head: Node) -> Node:
        """A coordinating conjunction, hung under the conjunct `head`."""
        word = self.dice.draw(self.lexicon.conjunctions)
        return self.particle(word, "CCONJ", "CC").under(head, "cc")
