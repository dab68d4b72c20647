"""A synthetic treebank of any size: sentences of an invented, morphologically rich language.

THE DATA ARE SYNTHETIC.  No word, sentence or tree here comes from a natural language or from a
treebank.  They serve examples, tests and demonstrations; a score reached on them says nothing
about any real language.

The language, in short:

- Words are made of syllables.  Nouns have six cases, three genders, two numbers and six
  declensions with much syncretism; adjectives, determiners, participles and relative pronouns
  agree with their noun in Case, Gender and Number (relative pronouns in Gender and Number).
- Verbs agree with their subject in Person and Number, in the past in Gender and Number.  There are
  three tenses, a perfect with an auxiliary, conditional, imperative, infinitive and converb.
  Subjects may be left out.  A verb agrees with the first of coordinated subjects.
- Adjectives and participles stand before or after their noun; subject, verb and object stand in
  any of six orders.  Word frequencies are Zipfian.
- Some attachments only agreement resolves: an adjective between two nouns or behind a genitive;
  a relative clause behind a chain of nouns or moved to the clause's end (its pronoun, a dependent
  of the dependent, agrees); a noun between two verbs; a verb coordinated with one of two verbs
  (equal Tense and Mood); the conjuncts of a noun (equal Case).
- Some only the pair of lemmas resolves: an adpositional phrase belongs to the noun before it if
  that noun takes this adposition, else to the verb; in a chain of genitives the second belongs to
  the first if the first is a relational noun.
- Relative clauses, adjectives and an infinitive's object may leave their phrase: these arcs are
  non-projective (between 1% and 3% of all arcs).
- A few percent of the words get one wrong HEAD, DEPREL or feature, as in treebanks made by hand.
  The noise is in all parts, so that no parser can reach 100%.

`generate` yields sentences, `write_treebank` writes train, dev and test files.
"""

from tk_spacy.treebank.synthetic.generator import generate, write_treebank
from tk_spacy.treebank.synthetic.lexicon import LEXICON_SEED, Lexicon

__all__ = ["LEXICON_SEED", "Lexicon", "generate", "write_treebank"]
