"""The tokenizer as a spaCy pipeline's own: Docs of words that remember the text."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from text_treebank import part, raw, tokenizer

from tk_spacy.errors import ModelError, UserError
from tk_spacy.pipeline.tk_sentences import inner_end
from tk_spacy.pipeline.tk_udpipe_tokenizer import REGISTERED, TkUdpipeTokenizer, set_tokenizer
from tk_spacy.spacy_io.conversion import misc_of_tokens, sentences_from_doc
from tk_spacy.spacy_io.surface import DocToken
from tk_spacy.treebank.conllu import Sentence

TEXT = "Ana viene du mar al lago, Ole.\n\nIda  sale al rio."
CONLLU = """\
# newdoc
# newpar
# sent_id = 1
# text = Ana viene du mar al lago, Ole.
1\tAna\t_
2\tviene\t_
3-4\tdu\t_
3\tde\t_
4\tlo\t_
5\tmar\t_
6-7\tal\t_
6\ta\t_
7\tlo\t_
8\tlago\tSpaceAfter=No
9\t,\t_
10\tOle\tSpaceAfter=No
11\t.\t_

# newpar
# sent_id = 2
# text = Ida sale al rio.
1\tIda\t_
2\tsale\t_
3-4\tal\t_
3\ta\t_
4\tlo\t_
5\trio\tSpaceAfter=No
6\t.\tSpaceAfter=No

"""


def pipeline() -> Language:
    nlp = spacy.blank("xx")
    set_tokenizer(nlp, tokenizer())
    return nlp


def written(doc: Doc) -> str:
    """A Doc as CoNLL-U of which ID, FORM and MISC are left."""
    lines = "".join(s.to_conllu() for s in sentences_from_doc(doc)).split("\n")
    columns = [line.split("\t") for line in lines]
    assert {len(c) for c in columns} == {1, 10}
    return "\n".join("\t".join([c[0], c[1], c[9]]) if len(c) > 1 else c[0] for c in columns)


def test_tokenizer_component_makes_docs_that_remember_the_text() -> None:
    doc = pipeline()(TEXT)
    # Words of a multiword token that do not spell it are parted; other white space is one space.
    assert doc.text == "Ana viene de lo mar a lo lago, Ole. Ida sale a lo rio."
    assert [sent.start for sent in doc.sents] == [0, 11]
    assert all(token.is_sent_start is not None for token in doc)
    tokens = [(t.text, t.start, t.end) for t in doc._.tk_surface]
    assert tokens[2:6] == [("du", 2, 4), ("mar", 4, 5), ("al", 5, 7), ("lago", 7, 8)]
    assert isinstance(doc._.tk_surface[0], DocToken)
    assert written(doc) == CONLLU


def test_tokenizer_component_keeps_the_text_where_it_can() -> None:
    nlp = pipeline()
    for text in ("Ana canta.", "Ana canta. ", "Ole mira. Ida sale?"):
        assert nlp(text).text == text
    assert nlp(" Ana  canta.\n").text == "Ana canta. "
    for text in ("", " ", "\n\n"):
        doc = nlp(text)
        assert (len(doc), doc.text, doc._.tk_surface) == (0, "", [])
        assert sentences_from_doc(doc) == []


@pytest.mark.parametrize("words", [("can", "ta"), ("kan", "ta")])
def test_tokenizer_component_joins_words_that_spell_their_token(words: tuple[str, str]) -> None:
    from tk_spacy.spacy_io.surface import doc_from_text
    from tk_spacy.treebank.surface import Breaks, SurfaceToken, TextSentence

    tokens = (SurfaceToken("canta", words, space=False), SurfaceToken(".", (".",)))
    doc = doc_from_text(
        spacy.blank("xx").vocab, [TextSentence(tokens, Breaks())], ends_in_space=False
    )
    assert doc.text == ("canta." if words == ("can", "ta") else "kan ta.")
    # What follows the token is said on its line alone.
    assert misc_of_tokens(doc) == ["_", "_", "SpaceAfter=No"]
    (sentence,) = sentences_from_doc(doc)
    assert sentence.layout.extras == ((0, "1-2\tcanta" + "\t_" * 7 + "\tSpaceAfter=No"),)
    assert "# text = canta." in sentence.comments


def test_tokenizer_component_survives_storage(tmp_path: Path) -> None:
    nlp = pipeline()
    nlp.to_disk(tmp_path / "nlp")
    blank = spacy.blank("xx", config={"nlp": {"tokenizer": {"@tokenizers": REGISTERED}}})
    own = TkUdpipeTokenizer(nlp.vocab)
    for other in (
        spacy.load(tmp_path / "nlp"),
        blank.from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp.tokenizer)),
        own.from_bytes(nlp.tokenizer.to_bytes()),
    ):
        assert written(other(TEXT)) == CONLLU
    # Written over a pipeline with spaCy's tokenizer, and over its own.
    spacy.blank("xx").to_disk(tmp_path / "other")
    for _ in range(2):
        nlp.to_disk(tmp_path / "other")
        assert written(spacy.load(tmp_path / "other")(TEXT)) == CONLLU
    (tmp_path / "nlp" / "tokenizer" / "meta.json").unlink()
    with pytest.raises(ModelError, match="no tk-spacy UDPipe tokenizer here"):
        spacy.load(tmp_path / "nlp")


def test_tokenizer_component_that_is_not_trained(tmp_path: Path) -> None:
    nlp = spacy.blank("xx", config={"nlp": {"tokenizer": {"@tokenizers": REGISTERED}}})
    with pytest.raises(UserError, match="is not trained: `tk-spacy train` trains one"):
        nlp("Ana")
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp").from_bytes(nlp.to_bytes())
    assert again.tokenizer.tokenizer is None


def test_tokenizer_docs_survive_storage_and_merging() -> None:
    nlp = pipeline()
    doc = nlp(TEXT)
    packed = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (unpacked,) = DocBin().from_bytes(packed).get_docs(nlp.vocab)
    for other in (Doc(nlp.vocab).from_bytes(doc.to_bytes()), unpacked, doc.copy()):
        assert written(other) == CONLLU
        assert other._.tk_surface == doc._.tk_surface
    ends = [Doc.from_docs([doc, nlp("Ole mira.")]), doc.copy()[11:].as_doc(copy_user_data=True)]
    merged, part_of_it = map(written, ends)
    assert merged.startswith(CONLLU.removesuffix("SpaceAfter=No\n\n"))
    assert merged.endswith(
        "# text = Ole mira.\n1\tOle\t_\n2\tmira\tSpaceAfter=No\n3\t.\tSpaceAfter=No\n\n"
    )
    assert part_of_it == CONLLU[CONLLU.index("# newpar\n# sent_id = 2") :]


@pytest.mark.parametrize(
    ("start", "end", "tokens"),
    [(2, 4, "Ana viene|de lo|mar|al"), (3, 5, "Ana viene|de|lo mar|al"), (4, 6, "Ana viene|du")],
)
def test_tokenizer_docs_whose_words_are_merged(start: int, end: int, tokens: str) -> None:
    """A multiword token whose words are others now is none, and takes no other token's words."""
    doc = pipeline()("Ana viene du mar al lago.")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[start:end])
    found = doc._.tk_surface
    assert "|".join(token.text for token in found).replace("Ana|", "Ana ").startswith(tokens)
    assert [token.start for token in found[1:]] == [token.end for token in found[:-1]]
    assert found[-1].end == len(doc)


@pytest.mark.parametrize("processes", [1, 2])
def test_tokenizer_component_in_a_stream(processes: int) -> None:
    nlp = pipeline()
    texts = [raw(part("test")[i : i + 3]) for i in range(0, 30, 3)]
    found = [
        [s.forms for s in sentences_from_doc(doc)]
        for doc in nlp.pipe(["", *texts], n_process=processes)
    ]
    assert found == [[], *([s.forms for s in part("test")[i : i + 3]] for i in range(0, 30, 3))]


@pytest.mark.parametrize(
    "text", ["a\0b c", "x" * 5000, "👩‍👩‍👧 😀", "שלום עולם", "a\x85b\u2028c", "\x1f\x0b"]
)
def test_tokenizer_component_takes_hostile_text(text: str) -> None:
    doc = pipeline()(text)
    assert "".join(doc.text.split()) == "".join(text.replace("\0", " ").split())
    for sentence in sentences_from_doc(doc):
        assert isinstance(sentence, Sentence)
        assert sentence.to_conllu()


# Sentences of ready words

WORDS = "Ana viene . Ole mira a lo mar ? Ida , Una sale .".split()
STARTS = [True, False, False, True, *[False] * 5, True, *[False] * 4]


def bounds(doc: Doc) -> list[bool | None]:
    return [token.is_sent_start for token in doc]


def test_sentences_of_ready_words_are_found() -> None:
    nlp = pipeline()
    assert nlp.pipe_names == ["tk_sentences"]
    assert bounds(nlp(Doc(nlp.vocab, words=WORDS))) == STARTS
    again = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert bounds(again(Doc(again.vocab, words=WORDS))) == STARTS


def test_sentences_that_begin_inside_a_word_begin_at_the_next_one() -> None:
    class Splits:
        def sentence_starts(self, text: str) -> list[int]:
            assert text == "Ana viene.Ole mira."
            return [0, text.index("Ole")]

    nlp = pipeline()
    glued: Any = Splits()
    nlp.tokenizer = glued
    doc = nlp(Doc(nlp.vocab, words=["Ana", "viene.Ole", "mira", "."]))
    assert bounds(doc) == [True, False, True, False]


def test_sentences_leave_other_docs_alone() -> None:
    nlp = pipeline()
    starts = [i == 2 for i in range(len(WORDS))]
    own = Doc(nlp.vocab, words=WORDS, sent_starts=starts)
    expected = bounds(own)
    assert bounds(nlp(own)) == expected
    spaces = [word not in (".", "?") for word in (*WORDS[1:], "")]
    assert not nlp(Doc(nlp.vocab, words=WORDS, spaces=spaces)).has_annotation("SENT_START")
    for words in ([], ["Ana"]):
        assert bounds(nlp(Doc(nlp.vocab, words=words))) == bounds(Doc(nlp.vocab, words=words))
    sentences: Any = nlp.get_pipe("tk_sentences")
    sentences.known_spaces = True
    assert bounds(nlp(Doc(nlp.vocab, words=WORDS, spaces=spaces))) == STARTS


def test_sentences_are_those_of_the_pipeline_that_the_component_is_in() -> None:
    """With spaCy's tokenizer nothing is done."""
    other = spacy.blank("xx")
    nlp = pipeline()
    other.add_pipe("tk_sentences", source=nlp)
    assert not other(Doc(other.vocab, words=WORDS)).has_annotation("SENT_START")
    assert bounds(nlp(Doc(nlp.vocab, words=WORDS))) == STARTS


def test_sentences_inner_end() -> None:
    assert inner_end(WORDS) == "."
    for words in ([], ["Ana"], ["Ana", "viene", "."], ["Ana", ".", '"', ")"], [".", "."]):
        assert inner_end(words) is None
