"""Clauses: verb frames, agreement with the subject, word order, subordination, coordination."""

from dataclasses import dataclass, field
from typing import Final

from tk_spacy.treebank.synthetic.dice import Table
from tk_spacy.treebank.synthetic.lexicon import Verb
from tk_spacy.treebank.synthetic.nominal import NounPhrases
from tk_spacy.treebank.synthetic.order import extrapose, split_phrase, steals
from tk_spacy.treebank.synthetic.words import Agreement, Node, WordMaker

_TENSES: Final = ("Past", "Pres", "Fut")


@dataclass(slots=True)
class _Parts:
    """The dependents of a clause's head before they are put in order."""

    subject: Node | None = None
    object: Node | None = None
    indirect: Node | None = None
    obliques: list[Node] = field(default_factory=list)
    adverb: Node | None = None
    auxiliary: Node | None = None
    complement: Node | None = None


@dataclass(frozen=True, slots=True)
class Temper:
    """Tense and mood of a clause; coordinated clauses share them."""

    tense: str
    mood: str = "Ind"


class Clauses:
    """Builds clauses, the sentence's own among them."""

    def __init__(self, words: WordMaker) -> None:
        self._words = words
        self._nouns = NounPhrases(words, self.relative)
        self._orders = Table(
            ["SVO", "SOV", "OVS", "VSO", "OSV", "VOS"], [0.4, 0.22, 0.14, 0.1, 0.08, 0.06]
        )
        self._tense = Table(_TENSES, [5.0, 4.0, 2.0])
        frames = ["intransitive", "transitive", "ditransitive", "clausal", "control"]
        self._frames = Table(frames, [0.24, 0.38, 0.09, 0.17, 0.12])
        self._simple_frames = Table(frames[:3], [0.38, 0.53, 0.09])

    def sentence(self) -> Node:
        """A whole sentence with its final punctuation; returns the root."""
        words, dice = self._words, self._words.dice
        mark = "."
        if dice.chance(0.02):
            root = self._nouns.common("Nom", depth=0)
        elif dice.chance(0.05):
            who = Agreement("Masc", "Plur" if dice.chance(0.5) else "Sing", 2)
            root, mark = self.clause(Temper("Pres", "Imp"), subject=who), "!"
        else:
            temper = Temper(dice.draw(self._tense))
            if words.target > 9 and dice.chance(0.07):
                temper = Temper("_", "Cnd")
            root = self.clause(temper)
            mark = "?" if dice.chance(0.05) else "."
            while words.made < words.target - 4:
                if temper.mood == "Ind" and dice.chance(0.4):
                    self._add_adverbial(root, dice.one_of(words.lexicon.temporal), temper)
                else:
                    self._add_coordinate_clause(root, root.agreement, temper)
        root.after.append(words.particle(mark, "PUNCT", "$.").under(root, "punct"))
        return root

    def clause(self, temper: Temper, *, subject: Agreement | None = None, depth: int = 0) -> Node:
        """A finite clause; its head's `agreement` is that of its subject.

        Args:
            temper: its tense and mood.
            subject: the agreement of a subject understood from elsewhere, or None to make one.
            depth: how many clauses and phrases stand above it.
        """
        words, dice = self._words, self._words.dice
        if temper.mood == "Ind" and subject is None and dice.chance(0.12):
            return self._copular(temper, depth)
        verb = self._choose_verb(depth)
        parts = _Parts()
        if subject is None and dice.chance(0.2):
            subject = words.any_agreement()
        elif subject is None:
            parts.subject = self._nouns.any_phrase("Nom", depth=depth, kind=verb.subject_kind)
            subject = parts.subject.agreement
        assert subject is not None
        head = self._inflect(verb, temper, subject, parts)
        self._add_dependents(head, parts, temper, depth)
        self._arrange(head, parts)
        self._add_subordinates(head, parts.subject, temper, depth)
        return head

    def relative(self, antecedent: Agreement, depth: int) -> Node:
        """A relative clause: its pronoun, and as a subject also its verb, agree with the noun."""
        words, dice = self._words, self._words.dice
        role = dice.unit()
        temper = Temper(dice.draw(self._tense))
        parts = _Parts()
        if role < 0.55:
            verb = dice.draw(words.lexicon.verbs[dice.draw(self._simple_frames)])
            pronoun = words.relative_pronoun(antecedent, "Nom")
            head = self._inflect(
                verb, temper, Agreement(antecedent.gender, antecedent.number), parts
            )
            front = pronoun.under(head, "nsubj")
        else:
            verb = dice.draw(words.lexicon.verbs["transitive" if role < 0.85 else "intransitive"])
            parts.subject = self._nouns.any_phrase("Nom", depth=depth + 1, kind=verb.subject_kind)
            assert parts.subject.agreement is not None
            head = self._inflect(verb, temper, parts.subject.agreement, parts)
            if role < 0.85:
                front = words.relative_pronoun(antecedent, "Acc").under(head, "obj")
            else:
                adposition = words.lexicon.adposition(verb.adpositions, dice)
                case = words.lexicon.adpositions[adposition]
                front = words.relative_pronoun(antecedent, case).under(head, "obl")
                self._nouns.add_adposition(front, adposition)
        self._add_dependents(head, parts, temper, depth, taken=front.deprel)
        self._arrange(head, parts)
        head.before.insert(0, front)
        if dice.chance(0.5):
            head.before.insert(0, words.comma(head))
            head.after.append(words.comma(head))
        return head

    def _choose_verb(self, depth: int) -> Verb:
        words, dice = self._words, self._words.dice
        roomy = depth < 2 and words.made < words.target - 5
        frame = dice.draw(self._frames if roomy else self._simple_frames)
        return dice.draw(words.lexicon.verbs[frame])

    def _inflect(self, verb: Verb, temper: Temper, subject: Agreement, parts: _Parts) -> Node:
        """The clause's verb; some pasts are perfects, with an auxiliary."""
        words = self._words
        if temper.tense == "Past" and words.maybe(0.25):
            head = words.perfect(verb, subject)
            parts.auxiliary = words.auxiliary("Pres", "Ind", subject).under(head, "aux")
        else:
            head = words.finite(verb, temper.tense, temper.mood, subject)
        head.agreement = subject
        if parts.subject is not None:
            parts.subject.under(head, "nsubj")
        return head

    def _add_dependents(
        self, head: Node, parts: _Parts, temper: Temper, depth: int, *, taken: str = ""
    ) -> None:
        """Objects by the verb's frame, obliques by its preferences, adverbs, complements."""
        words, dice, verb = self._words, self._words.dice, head.verb
        assert verb is not None
        if verb.frame in ("transitive", "ditransitive") and taken != "obj":
            found = self._nouns.any_phrase("Acc", depth=depth, kind=verb.object_kind)
            parts.object = found.under(head, "obj")
        if verb.frame == "ditransitive":
            found = self._nouns.any_phrase("Dat", depth=depth + 1)
            parts.indirect = found.under(head, "iobj")
        for probability in (0.6, 0.3):
            if words.maybe(probability * 0.75**depth):
                adposition = words.lexicon.adposition(verb.adpositions, dice)
                found = self._nouns.adpositional(adposition, depth=depth + 1)
                parts.obliques.append(found.under(head, "obl"))
        if words.maybe(0.3):
            timed = temper.mood == "Ind" and dice.chance(0.5)
            adverb = words.adverb(temper.tense if timed else "manner")
            parts.adverb = adverb.under(head, "advmod")
        if verb.frame == "clausal":
            same = temper.mood == "Ind" and dice.chance(0.3)
            other = temper.tense if same else dice.one_of(_TENSES)
            parts.complement = self.clause(Temper(other), depth=depth + 1).under(head, "ccomp")
            if dice.chance(0.7):  # without it, agreement tells whose a noun between two verbs is
                self._add_mark(parts.complement, "dal")
        elif verb.frame == "control":
            parts.complement = self._infinitive(depth + 1).under(head, "xcomp")

    def _infinitive(self, depth: int) -> Node:
        words, dice = self._words, self._words.dice
        verb = dice.draw(words.lexicon.verbs[dice.draw(self._simple_frames)])
        head = words.non_finite(verb, "Inf")
        if verb.frame != "intransitive":
            found = self._nouns.any_phrase("Acc", depth=depth, kind=verb.object_kind)
            (head.before if dice.chance(0.35) else head.after).append(found.under(head, "obj"))
        if words.maybe(0.3):
            adposition = words.lexicon.adposition(verb.adpositions, dice)
            found = self._nouns.adpositional(adposition, depth=depth + 1)
            head.after.insert(0, found.under(head, "obl"))
        return head

    def _copular(self, temper: Temper, depth: int) -> Node:
        """A noun or an agreeing adjective as predicate, with a copula."""
        words, dice = self._words, self._words.dice
        subject = self._nouns.any_phrase("Nom", depth=depth)
        agreement = subject.agreement
        assert agreement is not None
        if dice.chance(0.65):
            head = words.adjective(agreement, "Nom")
            if words.maybe(0.2):
                head.before.append(words.adverb("degree").under(head, "advmod"))
        else:
            head = self._nouns.common("Nom", depth=depth + 1, coordinate=False)
        copula = words.auxiliary(temper.tense, temper.mood, agreement).under(head, "cop")
        subject.under(head, "nsubj")
        head.before[:0] = [copula] if dice.chance(0.15) else [subject, copula]
        if subject not in head.before:
            head.after.append(subject)
        head.agreement = agreement
        return head

    def _arrange(self, head: Node, parts: _Parts) -> None:
        """Puts the dependents before and after the verb: free order, then displacement."""
        dice = self._words.dice
        before: list[Node] = []
        after: list[Node] = []
        side = before
        for letter in dice.draw(self._orders):
            if letter == "V":
                side = after
            elif letter == "S" and parts.subject:
                side.append(parts.subject)
            elif letter == "O":
                objects = [found for found in (parts.indirect, parts.object) if found]
                side.extend(objects if dice.chance(0.6) else objects[::-1])
        if parts.adverb:
            where = dice.unit()
            if where < 0.65:
                before.insert(0 if where < 0.2 else len(before), parts.adverb)
            else:
                after.insert(0 if where < 0.85 else len(after), parts.adverb)
        for phrase in parts.obliques:
            where = dice.unit()
            side = before if where < 0.3 else after
            place = 0 if where < 0.2 or 0.45 < where < 0.6 else len(side)
            if place and steals(side[place - 1], phrase):
                place = 0  # beside a noun that takes it, a phrase would be that noun's
            side.insert(place, phrase)
        if parts.auxiliary:
            if dice.chance(0.75):
                before.append(parts.auxiliary)
            else:
                after.insert(0, parts.auxiliary)
        extrapose(before, after, dice)
        split_phrase(before, after, dice)
        if parts.complement:
            self._place_complement(parts.complement, before, after)
        head.before[:0] = before
        head.after.extend(after)

    def _place_complement(self, clause: Node, before: list[Node], after: list[Node]) -> None:
        dice = self._words.dice
        if clause.deprel == "xcomp":
            objects = [node for node in clause.before + clause.after if node.deprel == "obj"]
            if objects and dice.chance(0.25):  # the infinitive's object climbs to the front
                (clause.before if objects[0] in clause.before else clause.after).remove(objects[0])
                before.insert(0, objects[0])
            after.insert(0 if dice.chance(0.3) else len(after), clause)
            return
        if dice.chance(0.4):
            clause.before.insert(0, self._words.comma(clause))
        after.append(clause)

    def _add_mark(self, clause: Node, word: str) -> None:
        clause.before.insert(0, self._words.particle(word, "SCONJ", "CS").under(clause, "mark"))

    def _add_subordinates(
        self, head: Node, subject: Node | None, temper: Temper, depth: int
    ) -> None:
        """Adverbial clauses (their mood and tense agree with the head's) and conjuncts."""
        words, dice = self._words, self._words.dice
        roomy = words.made < words.target - 4
        if temper.mood == "Cnd" and roomy and depth == 0:
            self._add_adverbial(head, dice.one_of(words.lexicon.conditional), temper)
        elif temper.mood == "Ind" and roomy and words.maybe(0.15):
            self._add_adverbial(head, dice.one_of(words.lexicon.temporal), temper)
        elif words.maybe(0.05):
            verb = dice.draw(words.lexicon.verbs["transitive"])
            converb = words.non_finite(verb, "Conv").under(head, "advcl")
            found = self._nouns.any_phrase("Acc", depth=depth + 2, kind=verb.object_kind)
            converb.before.append(found.under(converb, "obj"))
            self._place_adverbial(head, converb)
        if roomy and depth and words.maybe(0.12):
            self._add_coordinate_clause(head, head.agreement if subject else None, temper)

    def _add_adverbial(self, head: Node, word: str, temper: Temper) -> None:
        clause = self.clause(temper, depth=2).under(head, "advcl")
        self._add_mark(clause, word)
        self._place_adverbial(head, clause)

    def _place_adverbial(self, head: Node, clause: Node) -> None:
        words = self._words
        comma = words.dice.chance(0.7)
        if words.dice.chance(0.45):
            if comma:
                clause.after.append(words.comma(clause))
            head.before.insert(0, clause)
            return
        if comma:
            clause.before.insert(0, words.comma(clause))
        head.after.append(clause)

    def _add_coordinate_clause(self, head: Node, shared: Agreement | None, temper: Temper) -> None:
        """A conjunct of equal tense and mood, half the time with the same subject.

        Behind a subordinate clause, tense and agreement tell which verb it continues.
        """
        words, dice = self._words, self._words.dice
        subject = shared if dice.chance(0.5) or temper.mood == "Imp" else None
        clause = self.clause(temper, subject=subject, depth=1).under(head, "conj")
        clause.before.insert(0, words.conjunction(clause))
        if dice.chance(0.3 if subject else 0.7):
            clause.before.insert(0, words.comma(clause))
        head.after.append(clause)
