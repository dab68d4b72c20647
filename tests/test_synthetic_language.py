"""The synthetic language: its agreement, and the ambiguities that it or the lexicon resolves."""

from collections import Counter

import numpy as np
import pytest

from tk_spacy.treebank.conllu import Sentence, parse_feats
from tk_spacy.treebank.synthetic import Lexicon, generate

N = 1500


@pytest.fixture(scope="module")
def clean() -> list[Sentence]:
    return list(generate(N, seed=0, noise=0.0))


@pytest.fixture(scope="module")
def feats(clean: list[Sentence]) -> list[list[dict[str, str]]]:
    return [[parse_feats(column) for column in sentence.feats] for sentence in clean]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon()


def children(sentence: Sentence, head: int) -> list[int]:
    return [int(word) + 1 for word in np.flatnonzero(sentence.heads == head)]


def span(sentence: Sentence, word: int) -> list[int]:
    """The word and everything under it, sorted."""
    found, todo = [], [word]
    while todo:
        found.append(todo.pop())
        todo.extend(children(sentence, found[-1]))
    return sorted(found)


def agree(one: dict[str, str], other: dict[str, str], attributes: str) -> bool:
    """Whether the two have the same value wherever both have one."""
    return all(
        one[name] == other[name] for name in attributes.split() if name in one and name in other
    )


# --- agreement ---


def test_synthetic_modifiers_agree_with_their_noun(clean, feats):
    seen = Counter()
    for sentence, table in zip(clean, feats, strict=True):
        for word, label in enumerate(sentence.deprels):
            head = int(sentence.heads[word]) - 1
            if label in ("amod", "det", "acl"):
                assert agree(table[word], table[head], "Case Gender Number")
            elif label in ("appos", "flat") or (label == "conj" and "Case" in table[word]):
                # A copular clause may be conjoined to a verb, or a predicate to a predicate.
                assert table[word]["Case"] == table[head].get("Case", "Nom")
            else:
                continue
            seen[label] += 1
    assert all(seen[label] > 50 for label in "amod det acl appos flat conj".split())


def test_synthetic_verbs_agree_with_their_subject(clean, feats):
    seen = 0
    for sentence, table in zip(clean, feats, strict=True):
        for word, label in enumerate(sentence.deprels):
            if label != "nsubj":
                continue
            subject = {"Person": "3", **table[word]}
            assert subject["Case"] == "Nom"
            head = int(sentence.heads[word])
            carriers = [head, *children(sentence, head)]
            for carrier in carriers:
                is_verb = sentence.upos[carrier - 1] in ("VERB", "AUX") and (
                    carrier == head or sentence.deprels[carrier - 1] in ("aux", "cop")
                )
                if is_verb:
                    assert agree(subject, table[carrier - 1], "Person Number Gender")
                    seen += 1
    assert seen > N


def test_synthetic_relative_pronouns_agree_with_the_antecedent(clean, feats):
    seen = 0
    for sentence, table in zip(clean, feats, strict=True):
        for word, label in enumerate(sentence.deprels):
            if label == "acl:relcl":
                (pronoun,) = (
                    child
                    for child in children(sentence, word + 1)
                    if table[child - 1].get("PronType") == "Rel"
                )
                antecedent = table[int(sentence.heads[word]) - 1]
                assert agree(table[pronoun - 1], antecedent, "Gender Number")
                seen += 1
    assert seen > 200


def test_synthetic_adpositions_govern_case(clean, feats, lexicon):
    for sentence, table in zip(clean, feats, strict=True):
        for word, label in enumerate(sentence.deprels):
            if label == "case":
                governed = table[int(sentence.heads[word]) - 1]["Case"]
                assert governed == lexicon.adpositions[sentence.lemmas[word]]


# --- ambiguities ---


def test_synthetic_adjectives_between_nouns_need_agreement(clean, feats):
    """Nouns stand on both sides, only one agrees, and it is now the left, now the right one."""
    sides = Counter()
    sentences = set()
    for sentence, table in zip(clean, feats, strict=True):
        for word in range(1, len(sentence) - 1):
            neighbours = (word - 1, word + 1)
            if sentence.deprels[word] != "amod" or any(
                sentence.upos[n] != "NOUN" for n in neighbours
            ):
                continue
            fit = [n for n in neighbours if agree(table[word], table[n], "Case Gender Number")]
            head = int(sentence.heads[word]) - 1
            if len(fit) == 1 and head in neighbours:
                assert fit == [head]
                sides[head - word] += 1
                sentences.add(id(sentence))
    assert len(sentences) > 0.1 * N
    assert min(sides[-1], sides[1]) > 0.25 * sides.total()


def test_synthetic_relative_clauses_behind_chains_need_agreement(clean, feats):
    nearest = farther = 0
    for sentence, table in zip(clean, feats, strict=True):
        for word, label in enumerate(sentence.deprels):
            if label != "acl:relcl":
                continue
            pronoun = next(
                child - 1
                for child in span(sentence, word + 1)
                if table[child - 1].get("PronType") == "Rel"
            )
            nouns = [i for i in range(pronoun) if sentence.upos[i] == "NOUN"][-2:]
            fit = [i for i in nouns if agree(table[pronoun], table[i], "Gender Number")]
            if len(nouns) == 2 and len(fit) == 1:
                nearest += int(sentence.heads[word]) - 1 == nouns[1]
                farther += int(sentence.heads[word]) - 1 == nouns[0]
    assert nearest > 0.03 * N
    assert farther > 0.03 * N


def test_synthetic_adpositional_phrases_need_lemma_pairs(clean, lexicon):
    nouns = {noun.lemma: noun for noun in lexicon.nouns.items}
    verbs = {verb.lemma: verb for table in lexicon.verbs.values() for verb in table.items}
    assert len(nouns) == len(lexicon.nouns.items)
    behind_noun = Counter()
    stolen = 0
    for sentence in clean:
        for word, label in enumerate(sentence.deprels):
            cases = [
                child
                for child in children(sentence, word + 1)
                if sentence.deprels[child - 1] == "case"
            ]
            if label not in ("obl", "nmod") or not cases:
                continue
            (adposition,) = (sentence.lemmas[child - 1] for child in cases)
            head = int(sentence.heads[word]) - 1
            taker = nouns if label == "nmod" else verbs
            assert adposition in taker[sentence.lemmas[head]].adpositions
            before = span(sentence, word + 1)[0] - 2
            if before >= 0 and sentence.upos[before] == "NOUN":
                behind_noun[label] += 1
                stolen += (
                    label == "obl" and adposition in nouns[sentence.lemmas[before]].adpositions
                )
    assert min(behind_noun["obl"], behind_noun["nmod"]) > 0.25 * behind_noun.total() > 50
    assert stolen < 0.05 * behind_noun["obl"]


def test_synthetic_genitive_chains_need_the_relational_noun(clean, feats, lexicon):
    relational = {noun.lemma: noun.relational for noun in lexicon.nouns.items}
    found = Counter()
    for sentence, table in zip(clean, feats, strict=True):
        for word in range(2, len(sentence)):
            nouns = sentence.upos[word - 2 : word + 1] == ("NOUN",) * 3
            if nouns and table[word - 1]["Case"] == table[word]["Case"] == "Gen":
                if sentence.deprels[word] != "nmod" or int(sentence.heads[word - 1]) != word - 1:
                    continue
                head = int(sentence.heads[word]) - 1
                if head in (word - 2, word - 1):
                    assert relational[sentence.lemmas[word - 1]] == (head == word - 1)
                    found[head - word] += 1
    assert min(found[-1], found[-2]) > 10
