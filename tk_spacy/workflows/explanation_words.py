"""An explanation in words: lines that the terminal and the page share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tk_spacy.reranker.explain import ExplainedTree, Explanation
from tk_spacy.reranker.influences import Influence
from tk_spacy.utils.short_names import short_names
from tk_spacy.workflows.explain import ExplainedSentence

MOST_FEATURES = 10
"""Features of the list, and selected ones, that are told."""
FEATURES: Mapping[str, Callable[[ExplainedTree], Mapping[str, float]]] = {
    "Features of the list that differ most": lambda tree: tree.details,
    "Selected features that differ most": lambda tree: tree.selected,
}
"""What is told of features, and where a tree has them."""


def sentence_name(made: ExplainedSentence) -> str:
    """Which sentence is explained: its sent_id, else its number in the file."""
    return made.explanation.sent_id or f"sentence {made.number} of {short_names([made.file])[0]}"


def given_line(explanation: Explanation) -> str:
    """That the tree to compare with is the winner itself; empty where it is not."""
    if not explanation.given_wins:
        return ""
    if len(explanation.trees) < 2:
        return "The given tree is the winner; there is no other one to compare it with."
    return "The given tree is the winner; compared with the runner-up."


def source_line(made: ExplainedSentence) -> str:
    """Where sentence and model come from, in one line."""
    (file,), (model,) = short_names([made.file]), short_names([made.model])
    parts = [f"sentence of {file}", f"model {model}"]
    if made.treebank:
        parts.append(f"examples of {made.treebank}")
    if made.licence:
        parts.append(f"licence {made.licence}")
    return ", ".join(parts)


def arc_line(explanation: Explanation, number: int, word: int) -> str:
    """An arc of the number-th tree in words: head and relation."""
    tree = explanation.trees[number]
    head = tree.heads[word - 1]
    to = f"{head} {explanation.forms[head - 1]}" if head else "the root"
    return f"{tree.deprels[word - 1]} of {to}"


def split_line(explanation: Explanation, number: int, word: int) -> str:
    """What each component gives an arc of the number-th tree."""
    parts = explanation.trees[number].by_arc
    return ", ".join(f"{name} {values[word - 1]:+.4f}" for name, values in parts.items())


def share_line(item: Influence) -> str:
    """A support part's share as a product."""
    factors = " * ".join(str(agreement.factor) for agreement in item.agreements)
    return f"{item.share:+.4f} = weight {item.weight:+.6f} * kernel {item.kernel} ({factors})"


def what_line(item: Influence) -> str:
    """What a support part is and where it came from."""
    source = item.source
    if source is None:
        return f"{item.part_type}, of a sentence that is not known"
    name = f"training sentence {source.sentence + 1}"
    if source.example is not None and source.example.sent_id:
        name = source.example.sent_id
    tree = "the right tree, or the nearest to it" if source.wanted else "a wrongly preferred tree"
    more = f", and of {source.others} other updates" if source.others else ""
    labels = ", ".join(item.labels.values())
    return f"{item.part_type} ({labels}) of {tree} of {name}{more}"


def shared_line(item: Influence) -> str:
    """The properties that agree, slot by slot; pairs of properties are counted only."""
    parts = []
    for agreement in item.agreements:
        single = [name for name in agreement.properties if "|" not in name.partition("=")[0]]
        pairs = len(agreement.properties) - len(single)
        names = ", ".join(single) + (f" and {pairs} pairs" if pairs else "")
        if agreement.properties:
            parts.append(f"{agreement.slot}: {names}")
    return "; ".join(parts) or "that they are of one type"


def marked_words(item: Influence) -> list[tuple[str, tuple[str, ...]]]:
    """The words of a support part's sentence, each with the slots that it stands in."""
    source = item.source
    if source is None or source.example is None:
        return []
    forms = ["ROOT"] if 0 in source.words.values() else []
    first = 0 if forms else 1
    return [
        (form, tuple(slot for slot, word in source.words.items() if word == number))
        for number, form in enumerate([*forms, *source.example.forms], start=first)
    ]


def broken_words(tree: ExplainedTree) -> str:
    """Which constraints a tree breaks; empty where none."""
    return ", ".join(f"{count} {kind}" for kind, count in tree.violations.items())


def strongest_features(
    explanation: Explanation,
) -> dict[str, list[tuple[str, tuple[float, ...]]]]:
    """Those in which the two trees differ most and what they give each, by the titles above."""
    if len(explanation.trees) < 2:
        return {}
    found: dict[str, list[tuple[str, tuple[float, ...]]]] = {}
    for title, of_tree in FEATURES.items():
        first, second = map(of_tree, explanation.trees)
        both = {n: (first.get(n, 0.0), second.get(n, 0.0)) for n in (*first, *second)}
        names = sorted(both, key=lambda name: -abs(both[name][0] - both[name][1]))
        told: list[tuple[str, tuple[float, ...]]] = [
            (n, both[n]) for n in names[:MOST_FEATURES] if both[n][0] != both[n][1]
        ]
        if told:
            found[title] = told
    return found
