"""Word order: displacement of phrases, and the flattening of a tree into its sentence."""

from tk_spacy.treebank.synthetic.dice import Dice
from tk_spacy.treebank.synthetic.words import Node


def steals(previous: Node, phrase: Node) -> bool:
    """Whether a noun at the end of the previous phrase takes this adpositional phrase."""
    adpositions = [node.form for node in (*phrase.before, *phrase.after) if node.deprel == "case"]
    node: Node | None = previous
    while node is not None:
        if node.noun and any(word in node.noun.adpositions for word in adpositions):
            return True
        node = node.after[-1] if node.after else None
    return False


def extrapose(before: list[Node], after: list[Node], dice: Dice) -> None:
    """Moves relative clauses out of their noun phrases to the end of the clause, in place.

    Only the pronoun's gender and number then tell whose the relative clause is.
    """
    for phrase in before + after[:-1]:
        if phrase.after and phrase.after[-1].deprel == "acl:relcl" and dice.chance(0.75):
            after.append(phrase.after.pop())


def split_phrase(before: list[Node], after: list[Node], dice: Dice) -> None:
    """Splits an adjective or determiner off its noun, to the clause's front or end, in place."""
    for place, phrase in enumerate(before + after):
        if phrase.deprel not in ("nsubj", "obj") or not phrase.before:
            continue
        first = phrase.before[0]
        if place and first.deprel in ("amod", "det") and dice.chance(0.3):
            before.insert(0, phrase.before.pop(0))
            return
    for phrase in after[:-1]:
        if phrase.after and phrase.after[0].deprel == "amod" and dice.chance(0.3):
            after.append(phrase.after.pop(0))
            return


def flatten(root: Node) -> list[Node]:
    """The words of the tree in their order, without commas that other punctuation makes idle."""
    words: list[Node] = []

    def visit(node: Node) -> None:
        for child in node.before:
            visit(child)
        words.append(node)
        for child in node.after:
            visit(child)

    visit(root)
    kept: list[Node] = []
    for word in words:
        if word.form == "," and not kept:
            continue
        if word.upos == "PUNCT" and kept and kept[-1].form == ",":
            kept.pop()  # of two commas the later one stays: it opens what follows
        kept.append(word)
    return kept
