"""From trees to Sentences and treebank files."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.synthetic.clausal import Clauses
from tk_spacy.treebank.synthetic.dice import Dice
from tk_spacy.treebank.synthetic.lexicon import LEXICON_SEED, Lexicon
from tk_spacy.treebank.synthetic.noise import add_noise
from tk_spacy.treebank.synthetic.order import flatten
from tk_spacy.treebank.synthetic.words import Node, WordMaker

SHORTEST, LONGEST = 3, 40
_NOISE_SEED = 1_000_000_007  # keeps the noise's draws apart: the sentences are the same without it


def generate(
    n_sentences: int,
    *,
    seed: int = 0,
    noise: float = 0.03,
    lexicon_seed: int = LEXICON_SEED,
    prefix: str | None = None,
    distinct: bool = False,
) -> Iterator[Sentence]:
    """Sentences of the synthetic language, one at a time.

    The same arguments give the same sentences everywhere, and the first sentences of a longer run
    are those of a shorter one.  Sentences have 3 to 40 words and carry ``# sent_id`` and
    ``# text``.

    Args:
        n_sentences: how many.
        seed: of the sentences, not of the language: other seeds speak the same language.
        noise: share, from 0 to 1, of the words other than punctuation that get one wrong value
            (HEAD, DEPREL or FEATS).  Noise changes no form and no order.
        lexicon_seed: another one gives another language with the same grammar.
        prefix: what sent_ids start with; by default ``synthetic-SEED``.
        distinct: leave out sentences whose text came before.  Memory then grows by some 100 bytes
            a sentence; without it, memory is constant.

    Raises:
        ValueError: for a negative number or a noise outside 0..1.
    """
    if n_sentences < 0:
        raise ValueError(f"n_sentences is {n_sentences}, expected 0 or more")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise is {noise}, expected a share from 0 to 1")
    prefix = f"synthetic-{seed}" if prefix is None else prefix
    stream = _stream(seed, noise, lexicon_seed, distinct)
    numbered = enumerate(islice(stream, n_sentences), 1)
    return (_named(sentence, f"{prefix}-{number}") for number, sentence in numbered)


def write_treebank(
    directory: str | Path,
    *,
    train: int = 4000,
    dev: int = 500,
    test: int = 500,
    seed: int = 0,
    noise: float = 0.03,
    lexicon_seed: int = LEXICON_SEED,
) -> dict[str, Path]:
    """Writes ``train.conllu``, ``dev.conllu`` and ``test.conllu``, each atomically.

    All three share the language, and no two sentences of the three have the same text.  The other
    arguments are as for `generate`.

    Args:
        directory: made if it is missing.
        train, dev, test: numbers of sentences.
        seed, noise, lexicon_seed: as for `generate`.

    Returns:
        The files by the names train, dev and test.

    Raises:
        ValueError: as `generate`, or for a number of sentences below 1.
    """
    sizes = {"train": train, "dev": dev, "test": test}
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size} sentences, expected 1 or more")
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    stream = generate(
        train + dev + test, seed=seed, noise=noise, lexicon_seed=lexicon_seed, distinct=True
    )
    paths: dict[str, Path] = {}
    for name, size in sizes.items():
        paths[name] = folder / f"{name}.conllu"
        part = (
            _named(sentence, f"synthetic-{name}-{number}")
            for number, sentence in enumerate(islice(stream, size), 1)
        )
        write_conllu(paths[name], part)
    return paths


def _stream(seed: int, noise: float, lexicon_seed: int, distinct: bool) -> Iterator[Sentence]:
    dice = Dice(seed)
    noise_dice = Dice(seed + _NOISE_SEED)
    words = WordMaker(Lexicon(lexicon_seed), dice)
    clauses = Clauses(words)
    seen: set[bytes] = set()
    while True:
        # Room for 3 to 30 words, less being likelier; phrases already begun run on.
        words.begin(SHORTEST + int(28 * dice.unit() * (0.4 + 0.6 * dice.unit())))
        nodes = flatten(clauses.sentence())
        if not SHORTEST <= len(nodes) <= LONGEST:
            continue
        first = nodes[0].form
        nodes[0].form = first[0].upper() + first[1:]
        text = _text(nodes)
        if distinct:
            digest = blake2b(text.encode(), digest_size=8).digest()
            if digest in seen:
                continue
            seen.add(digest)
        yield _sentence(nodes, text, noise, noise_dice)


def _text(nodes: list[Node]) -> str:
    return "".join(n.form if n.upos == "PUNCT" else " " + n.form for n in nodes)[1:]


def _sentence(nodes: list[Node], text: str, noise: float, dice: Dice) -> Sentence:
    places = {id(node): place for place, node in enumerate(nodes, 1)}
    heads = [0 if node.head is None else places[id(node.head)] for node in nodes]
    deprels = ["root" if node.head is None else node.deprel for node in nodes]
    feats = [node.feats for node in nodes]
    upos = [node.upos for node in nodes]
    add_noise(heads, deprels, feats, upos, rate=noise, dice=dice)
    followers = [*upos[1:], ""]
    sentence = Sentence.from_columns(
        forms=[node.form for node in nodes],
        lemmas=[node.lemma for node in nodes],
        upos=upos,
        xpos=[node.xpos for node in nodes],
        feats=feats,
        heads=heads,
        deprels=deprels,
        misc=["SpaceAfter=No" if mark == "PUNCT" else "_" for mark in followers],
    )
    return sentence.with_comments([f"# text = {text}"])


def _named(sentence: Sentence, sent_id: str) -> Sentence:
    others = [line for line in sentence.comments if not line.startswith("# sent_id")]
    return sentence.with_comments([f"# sent_id = {sent_id}", *others])
