"""Noun phrases: agreement, genitive chains, adpositional phrases, coordination, apposition."""

from collections.abc import Callable

from tk_spacy.treebank.synthetic.lexicon import POSTPOSITIONS, Noun
from tk_spacy.treebank.synthetic.words import Agreement, Node, WordMaker

RelativeClause = Callable[[Agreement, int], Node]


class NounPhrases:
    """Builds noun phrases.

    Args:
        words: makes the words.
        relative_clause: given the antecedent's agreement and the depth, builds a clause.  (Noun
            phrases and clauses hold each other.)
    """

    def __init__(self, words: WordMaker, relative_clause: RelativeClause) -> None:
        self._words = words
        self._relative_clause = relative_clause

    def any_phrase(self, case: str, *, depth: int, kind: int | None = None) -> Node:
        """A pronoun, a name or a phrase around a common noun, in this case."""
        dice = self._words.dice
        if case != "Loc" and dice.chance(0.1):
            return self._words.personal_pronoun(case)
        if dice.chance(0.12):
            return self.name(case)
        return self.common(case, depth=depth, kind=kind)

    def name(self, case: str) -> Node:
        """A name of one or two words, both inflected."""
        words = self._words
        head = words.noun(words.dice.draw(words.lexicon.names), "Sing", case, name=True)
        if words.maybe(0.15):
            second = words.noun(words.dice.draw(words.lexicon.names), "Sing", case, name=True)
            head.after.append(second.under(head, "flat"))
        return head

    def adpositional(self, adposition: str, *, depth: int) -> Node:
        """A phrase in the case that the adposition governs, with the adposition."""
        phrase = self.any_phrase(self._words.lexicon.adpositions[adposition], depth=depth)
        self.add_adposition(phrase, adposition)
        return phrase

    def add_adposition(self, phrase: Node, adposition: str) -> None:
        """Puts the adposition before the phrase, a postposition right behind the noun."""
        case = self._words.adposition(adposition).under(phrase, "case")
        if adposition in POSTPOSITIONS:
            phrase.after.insert(0, case)
        else:
            phrase.before.insert(0, case)

    def common(
        self, case: str, *, depth: int, kind: int | None = None, coordinate: bool = True
    ) -> Node:
        """A phrase around a common noun with whatever modifiers the draws bring."""
        words, dice = self._words, self._words.dice
        word = self._choose_noun(kind)
        numeral = words.maybe(0.05)
        number = "Plur" if numeral or dice.chance(0.35) else "Sing"
        head = words.noun(word, number, case)
        if words.maybe(0.22):
            agreement = head.agreement or Agreement(word.gender, number)
            head.before.append(words.determiner(agreement, case).under(head, "det"))
        if numeral:
            head.before.append(words.numeral().under(head, "nummod"))
        late = self._add_adjectives(head)
        self._add_genitives(head, depth)
        # Behind a genitive, only agreement tells whose an adjective is.
        head.after.extend(late)
        if word.adpositions and words.maybe(0.32 * 0.6**depth):
            adposition = words.lexicon.adposition(word.adpositions, dice)
            phrase = self.adpositional(adposition, depth=depth + 1)
            head.after.append(phrase.under(head, "nmod"))
        if words.maybe(0.03):
            name = self.name(case).under(head, "appos")
            name.before.insert(0, words.comma(name))
            name.after.append(words.comma(name))
            head.after.append(name)
        if coordinate and words.maybe(0.1):
            self._add_conjuncts(head, depth)
        elif words.maybe(0.24 * 0.5**depth) and head.agreement:
            clause = self._relative_clause(head.agreement, depth + 1)
            head.after.append(clause.under(head, "acl:relcl"))
        return head

    def _choose_noun(self, kind: int | None) -> Noun:
        lexicon, dice = self._words.lexicon, self._words.dice
        if kind is not None and dice.chance(0.75):
            return dice.draw(lexicon.nouns_of_kind[kind])
        return dice.draw(lexicon.nouns)

    def _add_adjectives(self, head: Node) -> list[Node]:
        """Adds adjectives and participles around the noun; returns those kept for later."""
        words, dice = self._words, self._words.dice
        late: list[Node] = []
        assert head.agreement is not None
        for probability in (0.42, 0.2):
            if not words.maybe(probability):
                break
            adjective = words.adjective(head.agreement, head.case).under(head, "amod")
            if words.maybe(0.1):
                degree = words.adverb("degree").under(adjective, "advmod")
                adjective.before.append(degree)
            if words.maybe(0.06):
                second = words.adjective(head.agreement, head.case).under(adjective, "conj")
                second.before.append(words.conjunction(second))
                adjective.after.append(second)
            if dice.chance(0.5):
                head.before.append(adjective)
            elif dice.chance(0.5):
                head.after.append(adjective)
            else:
                late.append(adjective)
        if words.maybe(0.04):
            participle = words.participle(head.agreement, head.case).under(head, "acl")
            if words.maybe(0.6):
                agent = self.any_phrase("Ins", depth=2)
                participle.after.append(agent.under(participle, "obl"))
            late.append(participle)
        return late

    def _add_genitives(self, head: Node, depth: int) -> None:
        """Genitive modifiers, which only relational nouns take.

        A second genitive belongs to the first one's noun if that noun is relational, else to
        the head: the lemma alone decides.
        """
        words = self._words
        if not (head.noun and head.noun.relational and words.maybe(0.6 * 0.75**depth)):
            return
        first = self.any_phrase("Gen", depth=depth + 1).under(head, "nmod")
        if words.maybe(0.1):
            head.before.insert(0, first)
            return
        head.after.append(first)
        bare = first.noun is None or not first.noun.relational
        if bare and not first.after and words.maybe(0.5):
            second = self.any_phrase("Gen", depth=depth + 1)
            head.after.append(second.under(head, "nmod"))

    def _add_conjuncts(self, head: Node, depth: int) -> None:
        """One or two conjuncts in the head's case, mostly of its semantic kind."""
        words = self._words
        kind = head.noun.kind if head.noun else None
        if words.maybe(0.15):
            middle = self.common(head.case, depth=depth + 1, kind=kind, coordinate=False)
            middle.before.insert(0, words.comma(middle))
            head.after.append(middle.under(head, "conj"))
        last = self.common(head.case, depth=depth + 1, kind=kind, coordinate=False)
        last.before.insert(0, words.conjunction(last))
        head.after.append(last.under(head, "conj"))
