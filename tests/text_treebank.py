"""A made-up treebank with a text to learn from, multiword tokens in it, and what is trained on it.

"du" and "al" are always two words ("de lo", "a lo"), so the right splitting of every text is known.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainings import folder, sampling_options

from tk_spacy.tokenizing.settings import TokenizerSettings
from tk_spacy.tokenizing.training import train_udpipe_tokenizer
from tk_spacy.tokenizing.udpipe import UdpipeTokenizer
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.surface import Breaks, SurfaceToken, sentence_of_tokens
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

QUICK = TokenizerSettings(epochs=1, dimension=16)
NAMES = ("Ana", "Ole", "Ida", "Una", "Rolo", "Mila")
NOUNS = ("mar", "lago", "monte", "prado", "rio", "valle")
VERBS = ("canta", "mira", "viene", "sale", "duerme")


def one(rng: random.Random, number: int, name: str) -> Sentence:
    """NAME VERB ("du" NOUN)? ("al" NOUN)? (, NAME)? and a full stop or a question mark."""
    tokens = [SurfaceToken(rng.choice(NAMES), ()), SurfaceToken(rng.choice(VERBS), ())]
    tags, heads, deprels = ["PROPN", "VERB"], [2, 0], ["nsubj", "root"]
    for form, words in (("du", ("de", "lo")), ("al", ("a", "lo"))):
        if rng.random() < 0.6:
            noun = len(tags) + 3
            tokens += [SurfaceToken(form, words), SurfaceToken(rng.choice(NOUNS), ())]
            tags += ["ADP", "DET", "NOUN"]
            heads += [noun, noun, 2]
            deprels += ["case", "det", "obl"]
    if rng.random() < 0.3:
        tokens[-1] = tokens[-1]._replace(space=False)
        tokens += [SurfaceToken(",", ()), SurfaceToken(rng.choice(NAMES), ())]
        tags += ["PUNCT", "PROPN"]
        heads += [len(tags), 2]
        deprels += ["punct", "vocative"]
    tokens[-1] = tokens[-1]._replace(space=False)
    tokens.append(SurfaceToken(rng.choice(".?"), ()))
    tags.append("PUNCT")
    heads.append(2)
    deprels.append("punct")
    tokens = [t if t.words else t._replace(words=(t.form,)) for t in tokens]
    breaks = Breaks(document=number % 20 == 0, paragraph=number % 20 == 0)
    made = sentence_of_tokens(tokens, sent_id=f"{name}-{number}", breaks=breaks)
    made = replace(made, upos=tuple(tags), lemmas=tuple(form.lower() for form in made.forms))
    return made.with_tree(heads, deprels)


@functools.cache
def part(name: str) -> list[Sentence]:
    """The sentences of train (120), dev or test (40 each), none of which stands in another part."""
    rng = random.Random(7)
    names = ["train"] * 120 + ["dev"] * 40 + ["test"] * 40
    sentences: dict[tuple[str, ...], Sentence] = {}
    counts = dict.fromkeys(("train", "dev", "test"), 0)
    while len(sentences) < len(names):
        own = names[len(sentences)]
        sentence = one(rng, counts[own], own)
        if sentence.forms not in sentences:
            sentences[sentence.forms] = sentence
            counts[own] += 1
    return [s for s in sentences.values() if (s.sent_id or "").startswith(f"{name}-")]


@functools.cache
def files() -> dict[str, Path]:
    """The parts as files."""
    place = folder() / "UD_Text"
    place.mkdir()
    for name in ("train", "dev", "test"):
        write_conllu(place / f"{name}.conllu", part(name))
    return {name: place / f"{name}.conllu" for name in ("train", "dev", "test")}


def raw(sentences: Sequence[Sentence]) -> str:
    """The text of sentences: blank lines between paragraphs, else spaces."""
    text = ""
    for sentence in sentences:
        comments = dict(c[2:].partition(" = ")[::2] for c in sentence.comments)
        text += ("\n\n" if "newpar" in comments and text else "") + comments["text"] + " "
    return text.replace(" \n", "\n").rstrip() + "\n"


@functools.cache
def tokenizer() -> UdpipeTokenizer:
    """Trained on train with dev; some seconds."""
    return train_udpipe_tokenizer(part("train"), part("dev"), settings=QUICK)


def text_options(output: Path, **changes: object) -> TrainOptions:
    """Options of a training of the whole path from words to trees, quick parts all."""
    return sampling_options(
        output,
        **{
            "train": files()["train"], "dev": files()["dev"], "test": files()["test"],
            "tags": "own", "tagger": "udpipe:iterations=3", "folds": 2,
            "tokenizer": "udpipe:epochs=1:dimension=16", **changes,
        },
    )  # fmt: skip


@functools.cache
def model() -> Path:
    """A model with a tokenizer, a tagger and a quick sampling parser."""
    path = folder() / "text-model"
    train_pipeline(text_options(path))
    return path
