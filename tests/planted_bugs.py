"""Dishonest bugs, planted one by one: each must make the tests named with it fail.

    python tests/planted_bugs.py [--only TEXT] [--keep FOLDER]

Works on a copy of this checkout, compiled there, so the checkout itself is never changed; it takes
some minutes.  mutmut changes .py files only and knows no meaning (see docs/mutation-testing.md):
here stand the bugs that flatter or falsify scores on purpose, also in compiled modules.
A bug is a text of the source that occurs once, wherever it stands, and what is put in its place.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTS, LEARNING = "test_honest_lists.py", "test_honest_learning.py"
REPORT, STOPPING = "test_honest_report.py", "test_honest_stopping.py"
CROSSED, ARRANGED = "test_cross_validation.py", "test_arrangement.py"
TAGS = "test_tagging.py"
SELECT, SELECTED, SELECTING = "test_select.py", "test_selected_model.py", "test_selecting.py"
MINING = "test_gradient_mining.py"
PROJECTIVE = "test_projective.py"
CASCADE = "test_cascade.py"


@dataclass(frozen=True)
class Bug:
    """what: the lie.  old, new: texts of the source.  tests: modules one of which must fail."""

    what: str
    old: str
    new: str
    tests: tuple[str, ...]


BUGS = [
    # Candidate lists
    Bug(
        "a fold's parser is trained on its own sentences too",
        '".train.conllu"), (s for s, number in pairs if number != job.fold))',
        '".train.conllu"), (s for s, number in pairs))',
        (LISTS,),
    ),
    Bug(
        "a fold's parser stops early by the sentences that it parses",
        "parser, load_treebank(job.file(\".train.conllu\")), [], job.directory(parser),",
        'parser, load_treebank(job.file(".train.conllu")), '
        'load_treebank(job.file(".held-out.conllu")), job.directory(parser),',
        (LISTS,),
    ),
    Bug(
        "lists of train come from the parser of all of train",
        'lists["train"] = train_lists',
        "pass",
        (LISTS,),
    ),
    Bug(
        "the whole parser learns from dev",
        "self._data = train, dev",
        "self._data = [*train, *dev], dev",
        (LISTS,),
    ),
    Bug(
        "the whole parser stops early by test",
        'WholeTraining(train, dev, plan.parsers, directory=work)',
        'WholeTraining(train, plan.parts["test"].sentences, plan.parsers, directory=work)',
        (LISTS,),
    ),
    Bug(
        "a parser trained on other sentences is taken over",
        "        for text in part:\n            total.update(text.encode())",
        "        for text in part:\n            pass",
        (LISTS,),
    ),
    Bug(
        "a parser with another dev part is taken over",
        '(("train", train), ("dev", dev)):\n        total.update(name.encode())',
        '(("train", train),):\n        total.update(name.encode())',
        (LISTS,),
    ),
    Bug(
        "the best-scored tree passes for the parser's own",
        "rows[trees.sources[0]] = start + trees.base",
        "rows[trees.sources[0]] = start",
        (LISTS, "test_parsers.py"),
    ),
    Bug(
        "sentences after the first batch are dropped",
        "yield from self.joined(batch, self.proposed(batch, k=k), k=k)",
        "yield from self.joined(batch, self.proposed(batch, k=k), k=k)\n            break",
        (LISTS,),
    ),
    Bug(
        "the scores of parsers that work side by side are swapped",
        "return [future.result() for future in asked]",
        "return [future.result() for future in asked][::-1]",
        (LISTS,),
    ),
    Bug(
        "a fold's parser that was trained on other sentences is taken over",
        "seen = [text for text, number in pairs if number != fold]",
        "seen = [text for text, number in pairs if number == fold]",
        (LISTS,),
    ),
    Bug(
        "a fold's lists that somebody changed are taken over",
        'return "kept" if known and digest(job.file(".conllu")) == known else "damaged"',
        'return "kept"',
        (LISTS,),
    ),
    Bug(
        "folds are not dealt at random where that is asked for",
        "fold_of_sentences(len(sentences), folds=folds, seed=fold_seed)",
        "fold_of_sentences(len(sentences), folds=folds, seed=None)",
        (LISTS,),
    ),
    # The combiner
    Bug(
        "combiners learn from the lists that they extend",
        "rest = [i for i in range(len(lessons)) if i not in away]",
        "rest = list(range(len(lessons)))",
        (LEARNING,),
    ),
    Bug(
        "combiners learn from the lists that they extend, and from no others",
        "yield cls._learn(features, lessons, rest, epochs=epochs), held.tolist()",
        "yield cls._learn(features, lessons, held.tolist(), epochs=epochs), held.tolist()",
        (LEARNING,),
    ),
    Bug(
        "the combiner's lists are extended by the one that saw all",
        "combiner = cls._learn(features, lessons, range(len(lists)), epochs=epochs)",
        "combiner = cls._learn(features, lessons, range(len(lists)), epochs=epochs)\n"
        "        extended = [combiner.extended(*pair) for pair in zip(gold, lists, strict=True)]",
        (LEARNING,),
    ),
    Bug(
        "weights of standardised features are used for raw ones",
        "weights=weights * factors, hashed=hashed",
        "weights=weights, hashed=hashed",
        (LEARNING,),
    ),
    Bug(
        "the combiner learns one arc too late",
        "1.0 if a == gold[i] else 0.0",
        "1.0 if a == start else 0.0",
        ("test_combiner.py", LEARNING),
    ),
    Bug(
        "the combiner's average lacks a step",
        "us[j] -= step * change",
        "us[j] -= (step + 1.0) * change",
        ("test_combiner.py",),
    ),
    Bug(
        "the combiner's average of dense weights lacks a step",
        "                    u[j] -= step * change",
        "                    u[j] -= (step + 1.0) * change",
        ("test_combiner.py",),
    ),
    Bug(
        "the reranker learns from lists without the combiner's trees",
        "run, plan, train_lists, dev, settings, arcs, unseen, quick, quick_dev",
        'run, plan, lists["train"], dev, settings, arcs, unseen, quick, quick_dev',
        (LISTS,),
    ),
    # Learning and tuning
    Bug(
        "losses are counted against gold, not against y1",
        "wrong = (trees.heads != trees.heads[oracle])",
        "wrong = (trees.heads != sentence.heads)",
        (LEARNING,),
    ),
    Bug(
        "the loss ignores labels",
        "wrong += (trees.labels != trees.labels[oracle]).sum(axis=1)",
        "wrong += 0",
        (LEARNING,),
    ),
    Bug(
        "the loss ignores heads",
        "wrong = (trees.heads != trees.heads[oracle]).sum(axis=1).astype(np.float64)",
        "wrong = np.zeros(len(trees))",
        (LEARNING,),
    ),
    Bug(
        "the first tree passes for y1",
        "oracle = trees.oracle(sentence)\n",
        "oracle = 0\n",
        (LEARNING,),
    ),
    Bug(
        "a tuning part was learned from",
        "rest = items.without(set(held.tolist()))",
        "rest = items",
        (LEARNING,),
    ),
    Bug(
        "the tuning parts are those of another split than the one left out",
        "rest = items.without(set(held.tolist()))",
        "rest = items.without(set(parts[number - 1].tolist()))",
        (LEARNING,),
    ),
    Bug(
        "tuning ignores labels",
        "[(heads & labels).sum(axis=1), heads.sum(axis=1)]",
        "[heads.sum(axis=1), heads.sum(axis=1)]",
        (LEARNING,),
    ),
    Bug(
        "of two ends of tuning the first is taken",
        "betas = max(ends, key=correct)",
        "betas = ends[0]",
        (LEARNING,),
    ),
    Bug(
        "the final reranker learns from half of the lists, as a scout would",
        "reranker, stats = learn(\n        schema, items, settings,",
        "reranker, stats = learn(\n        schema, items[::2], settings,",
        (LEARNING,),
    ),
    Bug(
        "the average of w lacks a step",
        "((T + 1) * np.asarray(weights)",
        "(T * np.asarray(weights)",
        ("test_learning.py",),
    ),
    Bug(
        "the average of alpha lacks a step",
        "weight * (self.total_steps - self.steps + 1) / self.total_steps",
        "weight * (self.total_steps - self.steps) / self.total_steps",
        ("test_learning.py",),
    ),
    Bug(
        "a step does not make up for the loss",
        "scores[best] - scores[item.oracle] + item.loss[best])",
        "scores[best] - scores[item.oracle] + 1.0)",
        ("test_learning.py",),
    ),
    Bug(
        "the competitor is chosen with its loss where it should not",
        "item.loss if self.add_loss else np.zeros(len(scores))",
        "item.loss",
        ("test_learning.py",),
    ),
    Bug(
        "C bounds nothing",
        "else min(self.C, violation / norm)",
        "else violation / norm",
        ("test_learning.py",),
    ),
    Bug(
        "ties between candidates go to the last",
        "if scores[j] + extra[j] > scores[best] + extra[best]:",
        "if scores[j] + extra[j] >= scores[best] + extra[best]:",
        ("test_learning.py",),
    ),
    Bug(
        "a head's best rival is the last one",
        "rival = max(rival, share[i])",
        "rival = share[i]",
        ("test_list_features.py",),
    ),
    Bug(
        "shares of labels are those of heads",
        "and labels[first_arc[j] * n + m] == labels[i * n + m]",
        "and True",
        ("test_list_features.py",),
    ),
    Bug(
        "the kernel's norm lacks its factor",
        "norm += self.kernel_scale * squared",
        "norm += squared",
        ("test_learning.py",),
    ),
    Bug(
        "the norm lacks the features of the list",
        "norm += _square(listed)",
        "norm += 0.0 * _square(listed)",
        ("test_learning.py",),
    ),
    Bug(
        "the kernel's weights lack its factor",
        "weight = tau * self.kernel_scale",
        "weight = tau",
        ("test_learning.py",),
    ),
    Bug(
        "the combiner's gradient is that of the last arc",
        "gradient[j] += slope * dense[a, j]",
        "gradient[j] = slope * dense[a, j]",
        ("test_combiner.py",),
    ),
    Bug(
        "a sum of logarithms of labelled arcs is that of heads",
        "own[2] += log_labelled[arc_of[i]]",
        "own[2] += log_share[head_of[i]]",
        ("test_list_features.py",),
    ),
    Bug(
        "words whose labels alone differ count as agreed on",
        "if heads[j * n + m] != heads[m] or labels[j * n + m] != labels[m]:",
        "if heads[j * n + m] != heads[m]:",
        ("test_list_features.py",),
    ),
    # Oracle and lists
    Bug(
        "the oracle forgets labels among equals",
        "return int(np.argmin(first * (self.n_words + 1) + second))",
        "return int(np.argmin(first))",
        ("test_candidates.py",),
    ),
    Bug(
        "the labelled oracle is the one by heads",
        "first = (wrong_head | wrong_label).sum(axis=1)",
        "first = wrong_head.sum(axis=1)",
        ("test_candidates.py", REPORT),
    ),
    Bug(
        "equal trees keep the worse score",
        "if not (to[start + i] >= given[i] or given[i] != given[i]):",
        "if not (to[start + i] <= given[i] or given[i] != given[i]):",
        ("test_candidates.py", "test_list_arrays.py"),
    ),
    Bug(
        "new scores leave the base tree's row where it was",
        "places.append(x.place[first + x.own[i]])",
        "places.append(x.own[i])",
        ("test_candidates.py", "test_list_arrays.py", LISTS, LEARNING, "test_parsers.py"),
    ),
    # Report
    Bug(
        "the base parser's row is the first of the list",
        "chosen[BASE_PARSER] += [trees.base for _, trees in batch]",
        "chosen[BASE_PARSER] += [0 for _, trees in batch]",
        (REPORT,),
    ),
    Bug(
        "the first of the list is the base parser",
        "chosen[FIRST] += [0] * len(batch)",
        "chosen[FIRST] += [trees.base for _, trees in batch]",
        (REPORT,),
    ),
    Bug(
        "further parsers have the base parser's trees",
        "trees.bases.get(name, trees.base) for",
        "trees.base for",
        (REPORT,),
    ),
    Bug(
        "the base reranker's row is the kernel reranker's",
        "_best(base.batch_scores(batch, n_threads=n_threads))",
        "_best(kernel.batch_scores(batch, n_threads=n_threads))",
        (REPORT,),
    ),
    Bug(
        "the final system's row is the reranker's alone",
        "chosen[FINAL] += [decision.row for decision in decisions]",
        "chosen[FINAL] += _best(scores)",
        (REPORT,),
    ),
    Bug(
        "the reranker's row is the final system's",
        "chosen[own] += _best(scores)",
        "chosen[own] += _best(final)",
        (REPORT,),
    ),
    Bug(
        "the oracle's labelled score is that of the oracle by heads",
        "trees.oracle(sentence, labelled=True)",
        "trees.oracle(sentence)",
        (REPORT,),
    ),
    Bug(
        "the oracle is the final system",
        "chosen[ORACLE].append(trees.oracle(sentence))",
        "chosen[ORACLE].append(trees.base)",
        (REPORT,),
    ),
    Bug(
        "the bootstrap is of base parser and oracle",
        "compare(counts[BASE_PARSER], counts[FINAL], metric=metric, seed=seed)",
        "compare(counts[BASE_PARSER], counts[ORACLE], metric=metric, seed=seed)",
        (REPORT,),
    ),
    Bug(
        "the vote's bootstrap has its sides swapped",
        "compare(counts[VOTE], counts[FINAL], metric=metric, seed=seed)",
        "compare(counts[FINAL], counts[VOTE], metric=metric, seed=seed)",
        (REPORT,),
    ),
    Bug(
        "a test of one reranker: the base reranker has a kernel",
        "without = replace(settings, kernel_parts=(), budget=None)",
        "without = replace(settings, budget=None)",
        (REPORT,),
    ),
    Bug(
        "the final system does without the reranker's scores in the report",
        "kernel.decide(*pair, own_scores, n_threads=n_threads)",
        "kernel.decide(*pair, 0 * own_scores, n_threads=n_threads)",
        (REPORT,),
    ),
    Bug(
        "labels count without their head",
        "full = [h and g == s for h, g, s in",
        "full = [g == s for h, g, s in",
        ("test_evaluation.py",),
    ),
    Bug(
        "scores without punctuation have it",
        'scored = [tag != "PUNCT" for tag in gold.upos]',
        "scored = [True for tag in gold.upos]",
        ("test_evaluation.py", REPORT),
    ),
    Bug(
        "UAS and LAS are swapped in tables",
        'Column("UAS", "uas"),\n    Column("LAS", "las"),',
        'Column("UAS", "las"),\n    Column("LAS", "uas"),',
        (REPORT,),
    ),
    Bug(
        "LAS compares universal labels",
        '"las": ("labelled", 1, ("words",)),',
        '"las": ("labelled_universal", 1, ("words",)),',
        ("test_evaluation.py",),
    ),
    Bug(
        "ties count as gains",
        "worse = (1 + int((differences <= 0).sum())) / (1 + samples)",
        "worse = (1 + int((differences < 0).sum())) / (1 + samples)",
        ("test_bootstrap.py",),
    ),
    Bug(
        "the two-sided p-value is one-sided",
        "p_two_sided=min(1.0, 2 * min(worse, better)),",
        "p_two_sided=min(worse, better),",
        ("test_bootstrap.py",),
    ),
    Bug(
        "a and b are resampled apart",
        "differences = _percent(sums[:, 2], sums[:, 3]) - _percent(sums[:, 0], sums[:, 1])",
        "differences = _percent(sums[::-1, 2], sums[::-1, 3]) - _percent(sums[:, 0], sums[:, 1])",
        ("test_bootstrap.py",),
    ),
    Bug(
        "the costs are beside dev's scores",
        "part = list(report.parts)[-1]",
        "part = list(report.parts)[0]",
        (REPORT,),
    ),
    # Early stopping
    Bug(
        "the sampling parser learns from dev",
        "corpus = encode(schema, train, **options)",
        "corpus = encode(schema, [*train, *dev], **options)",
        (STOPPING,),
    ),
    Bug(
        "the sampling parser's last epoch is kept",
        "    return best[2:]",
        "    return learner.averaged(), None",
        (STOPPING,),
    ),
    Bug(
        "the sampling parser's best epoch is that by UAS",
        "if best is None or uas + las > best[0]:",
        "if best is None or uas > best[0]:",
        (STOPPING,),
    ),
    Bug(
        "the sampling parser's weights on dev are not the averaged ones",
        "            averaged = learner.averaged()\n",
        "            averaged = learner.weights.copy()\n",
        (STOPPING,),
    ),
    Bug(
        "LAS on dev counts labels without heads",
        "    labelled = right & (labels[:, 0] == dev.labels)[words]\n    return",
        "    labelled = (labels[:, 0] == dev.labels)[words]\n    return",
        (STOPPING,),
    ),
    Bug(
        "the sampling parser's loss ignores labels",
        "loss = float(wrong.sum()) + settings.label_cost * float(",
        "loss = float(wrong.sum()) + 0.0 * float(",
        (STOPPING,),
    ),
    Bug(
        "gamma is chosen by UAS",
        "key=lambda row: (row.las, row.uas, -row.gamma)",
        "key=lambda row: (row.uas, row.las, -row.gamma)",
        (STOPPING,),
    ),
    Bug(
        "spaCy's parser: the last state passes for the best",
        '"model-best" if dev else "model-last"',
        '"model-last"',
        (STOPPING,),
    ),
    Bug(
        "spaCy's parser stops early by its training sentences",
        '_write(data / "dev.conllu", dev)',
        '_write(data / "dev.conllu", train)',
        (STOPPING,),
    ),
    Bug(
        "spaCy's parser learns from dev",
        '_write(data / "train.conllu", train)',
        '_write(data / "train.conllu", [*train, *(dev or ())])',
        (STOPPING,),
    ),
    Bug(
        "UDPipe stops early by its training sentences",
        "        list(map(_columns, dev)),\n        parser=",
        "        list(map(_columns, ordered)),\n        parser=",
        (STOPPING,),
    ),
    Bug(
        "UDPipe learns from dev",
        "ordered = list(train)",
        "ordered = [*train, *dev]",
        (STOPPING,),
    ),
    Bug(
        "the biaffine parser leaves out the last batch of an epoch",
        "    for _ in range(epochs - 1):\n"
        "        batches += make_batches(lengths, settings.batch, rng=rng)\n    done",
        "    for _ in range(epochs - 1):\n"
        "        batches += make_batches(lengths, settings.batch, rng=rng)[:-1]\n    done",
        (STOPPING,),
    ),
    # Treebanks as they come
    Bug(
        "a cross-validated system is trained on what it is scored on",
        "            [sentence for sentence, number in pairs if number != fold],",
        "            [sentence for sentence, number in pairs],",
        (CROSSED,),
    ),
    Bug(
        "cross-validation scores its first fold alone",
        "np.concatenate([found.counts[name] for found in choices])",
        "choices[0].counts[name]",
        (CROSSED,),
    ),
    Bug(
        "the labels of a cross-validated fold are known",
        "{label for s in train for label in s.deprels}",
        "{label for s in [*train, *held_out] for label in s.deprels}",
        (CROSSED,),
    ),
    Bug(
        "the tenth of train that is dev is learnt from",
        "[sentence for i, sentence in enumerate(sentences) if i not in out]",
        "list(sentences)",
        (ARRANGED,),
    ),
    Bug(
        "a fold of joined treebanks is one of them",
        "joined = dealt(learnt, folds=folds)",
        "joined = [sentence for sentences in learnt for sentence in sentences]",
        (ARRANGED,),
    ),
    # Predicted tags
    Bug(
        "a fold's tagger is trained on its own sentences too",
        "seen = [s for s, number in zip(train, numbers, strict=True) if number != fold - 1]",
        "seen = [s for s, number in zip(train, numbers, strict=True)]",
        (TAGS,),
    ),
    Bug(
        "train is tagged by the tagger of all of train",
        'tagged["train"] = _tagged_by_folds(train, jobs[1:])',
        'tagged["train"] = _tagged(tagger, train)',
        (TAGS,),
    ),
    Bug(
        "dev and test are tagged by the tagger of a fold",
        "tagged[name] = _tagged(tagger, sentences)",
        "tagged[name] = _tagged(jobs[1].open(), sentences)",
        (TAGS,),
    ),
    Bug(
        "the final tagger learns from dev",
        "spec=spec, train=train, dev=dev, directory=workdir / spec.name,",
        "spec=spec, train=[*train, *dev], dev=dev, directory=workdir / spec.name,",
        (TAGS,),
    ),
    Bug(
        "a tagger that learnt from other tags is taken over",
        "return (sentence.to_conllu() for sentence in sentences)",
        'return (" ".join(sentence.forms) for sentence in sentences)',
        (TAGS,),
    ),
    Bug(
        "the tagger of a cross-validated fold has its sentences as dev part",
        'train, dev = parts["train"], parts.get("dev", [])',
        'train, dev = parts["train"], parts.get("dev", parts.get("held-out", []))',
        (CROSSED,),
    ),
    Bug(
        "parsers are shown gold tags, and predicted ones are reported",
        "replace(part, sentences=made.parts[name], gold=part.sentences)",
        "replace(part, gold=part.sentences)",
        (LISTS,),
    ),
    Bug(
        "train has predicted tags, and what is scored has gold ones",
        "replace(part, sentences=made.parts[name], gold=part.sentences)",
        'replace(part, sentences=made.parts[name] if name == "train" else part.sentences)',
        (LISTS,),
    ),
    Bug(
        "predicted tags are scored against themselves",
        "score_tags(gold[name], part) for name, part in made.parts.items()",
        "score_tags(part, part) for name, part in made.parts.items()",
        (LISTS,),
    ),
    Bug(
        "a cross-validated fold is scored with the gold tags",
        "held_out = system.plan.parts[HELD_OUT].sentences",
        "held_out = here.parts[HELD_OUT].sentences",
        (CROSSED,),
    ),
    Bug(
        "a model's own scores of tags are against the predicted ones",
        "gold = scored.gold or gold",
        "gold = gold or scored.gold",
        ("test_own_tags.py",),
    ),
    Bug(
        "predicted tags are called gold",
        'return "predicted tags" if self.tags else "gold tags"',
        'return "gold tags"',
        (REPORT,),
    ),
    Bug(
        "XPOS and features are swapped in the table of tags",
        "(name, row.upos, row.xpos, row.ufeats, row.lemmas) for name, row in scores.items()",
        "(name, row.upos, row.ufeats, row.xpos, row.lemmas) for name, row in scores.items()",
        (REPORT,),
    ),
    Bug(
        "the neural tagger learns from dev",
        "tagger = train_bilstm_tagger(\n            train, settings",
        "tagger = train_bilstm_tagger(\n            [*train, *dev], settings",
        ("test_bilstm_tagger.py",),
    ),
    Bug(
        "the neural tagger takes over the tags that a sentence has",
        "upos, xpos, feats = zip(*tags[own], strict=True)",
        "upos, xpos, feats = zip(*tags[own], strict=True)\n"
        '            upos = tuple(b if a == "_" else a for a, b in zip(sentence.upos, upos))',
        ("test_bilstm_tagger.py",),
    ),
    Bug(
        "spaCy's tagger takes over the tags that a sentence has",
        "doc_from_sentence(self.nlp.vocab, sentence, gold_tags=False) for",
        "doc_from_sentence(self.nlp.vocab, sentence) for",
        ("test_own_tags.py",),
    ),
    Bug(
        "UDPipe's tagger keeps the iteration that does best on train",
        "list(map(_columns, dev)),\n        tagger=",
        "list(map(_columns, train)),\n        tagger=",
        (STOPPING,),
    ),
    Bug(
        "spaCy's taggers learn from dev",
        "return train_by_config(\n        train, dev, config,",
        "return train_by_config(\n        [*train, *dev], dev, config,",
        (STOPPING,),
    ),
    Bug(
        "the tokenizer keeps the epoch that does best on train",
        "list(training_text(dev)),",
        "list(training_text(train if dev else dev)),",
        ("test_tokenizer.py",),
    ),
    Bug(
        "features that a tagger left out count as right",
        "ufeats += _equal(map(_universal, right.feats), map(_universal, given.feats))",
        "ufeats += sum(\n"
        "            _universal(a).startswith(_universal(b))\n"
        "            for a, b in zip(right.feats, given.feats, strict=True)\n"
        "        )",
        (TAGS,),
    ),
    Bug(
        "lemmas that a tagger left out count as right",
        'a in ("_", b) for a, b in zip(right.lemmas',
        'b == "_" or a in ("_", b) for a, b in zip(right.lemmas',
        (TAGS,),
    ),
    Bug(
        "the tags of a file are replaced where it has them",
        "            if value == NO_VALUE\n            and (",
        "            if True\n            and (",
        (TAGS,),
    ),
    Bug(
        "own tags are asked for and the file's are kept",
        "            yield own.put(sentence)",
        "            yield sentence",
        (TAGS,),
    ),
    Bug(
        "a word without UPOS among others stays without",
        "                sentence.upos[i] == NO_VALUE\n                or",
        "                False\n                or",
        (TAGS,),
    ),
    Bug(
        "the tagger's tags are said to be the file's",
        'found = [join(whole, "and")] if whole else []',
        "found: list[str] = []",
        (TAGS,),
    ),
    # The transition parser
    Bug(
        "the transition parser's score of a tree lacks its labels",
        "label_score = space.scores.labels.rows[<size_t>of_labels * model.n_labels + label]",
        "label_score = 0",
        ("test_transition.py",),
    ),
    Bug(
        "the transition parser's tree is the beam's last",
        "best = &space.search.beam[0]\n        for m in",
        "best = &space.search.beam[space.search.size - 1]\n        for m in",
        ("test_transition.py",),
    ),
    Bug(
        "the transition parser learns where the beam was least ahead",
        "if not (found and i == 0) and violation > most:",
        "if not (found and i == 0) and (at < 0 or violation <= most):",
        ("test_transition.py",),
    ),
    Bug(
        "the transition parser learns from the beam's last state",
        "most, at, at_node = violation, t, self.search.beam[0].node",
        "most, at, at_node = violation, t, self.search.beam[self.search.size - 1].node",
        ("test_transition.py",),
    ),
    Bug(
        "the transition parser's average lacks a step",
        "cdef float when = step * <float>(self.steps - 1)",
        "cdef float when = step * <float>self.steps",
        ("test_transition.py",),
    ),
    Bug(
        "a wrong label is right to the transition parser",
        "was_gold and candidate.move == gold_move and candidate.label == gold_label",
        "was_gold and candidate.move == gold_move",
        ("test_transition.py",),
    ),
    Bug(
        "heads that were read backward are not turned back",
        "to[at] = n + 1 - head if backward and head else head",
        "to[at] = head",
        ("test_transition.py", "test_list_arrays.py"),
    ),
    Bug(
        "the backward parser learns the labels of the other end's words",
        "labels[words_of] = ids[::-1] if self.backward else ids",
        "labels[words_of] = ids",
        ("test_transition.py",),
    ),
    # The projective parser
    Bug(
        "the projective parser's score of a tree lacks its labels",
        "return [(scores + less)[a:b] for a, b in",
        "return [(scores + 0 * less)[a:b] for a, b in",
        (PROJECTIVE,),
    ),
    Bug(
        "trees whose arcs the projective parser took back keep their scores from before",
        "changed = [i for i, item in enumerate(found) if item[3]]",
        "changed: list[int] = []",
        (PROJECTIVE,),
    ),
    Bug(
        "arcs that the projective parser lifted stay lifted",
        "heads[row] = back\n",
        "heads[row] = heads[row]\n",
        (PROJECTIVE,),
    ),
    Bug(
        "the projective parser scores given trees with their crossing arcs",
        "heads[row], marked = projectivize(heads[row], names, SCHEME)",
        "_, marked = projectivize(heads[row], names, SCHEME)",
        (PROJECTIVE,),
    ),
    Bug(
        "the projective parser's list has trees twice",
        "            if last.left == 0:\n                follow(x, node, last, 0, last.right + 1)",
        "            follow(x, node, last, last.left, last.right + 1)",
        (PROJECTIVE,),
    ),
    Bug(
        "wrong arcs gain nothing where the projective parser's rivals are looked for",
        "s.arcs[a] += <float>cost",
        "s.arcs[a] += 0 * <float>cost",
        (PROJECTIVE,),
    ),
    Bug(
        "a given tree lacks its tri-siblings' scores",
        "whole += part_score(x, model, ids, TRI_SIBLING, -1, h, nearer[s], s, m)",
        "whole += 0",
        (PROJECTIVE,),
    ),
    Bug(
        "one wrong head costs the projective parser as much as many",
        "missing[count] = wrong - margin",
        "missing[count] = 1 - margin",
        (PROJECTIVE,),
    ),
    Bug(
        "the projective parser's average lacks a step",
        "self.sums[self.touched[i]] += (self.steps - 1) * <double>change",
        "self.sums[self.touched[i]] += self.steps * <double>change",
        (PROJECTIVE,),
    ),
    Bug(
        "labels that are given are judged beside those that the projective parser would give",
        "count = label_ids(x, model, at, given if given != NULL else labels, m, space.ids)",
        "count = label_ids(x, model, at, labels, m, space.ids)",
        (PROJECTIVE,),
    ),
    # The biaffine parser
    Bug(
        "the biaffine parser's loss ignores labels",
        "label_loss = _to_slopes(found, labels[known][labelled])",
        "label_loss, found = 0.0, 0 * found",
        ("test_biaffine_network.py",),
    ),
    Bug(
        "the biaffine parser learns labels of the heads that it finds",
        "heads = (rows - place + gold)[labelled]",
        "heads = (rows - place + scores.arcs[layout.owner[rows], place].argmax(axis=-1))[labelled]",
        ("test_biaffine_network.py",),
    ),
    Bug(
        "the biaffine parser leaves activations out in use",
        'rate = model.attrs["dropout_rate"] if is_train else 0.0\n    rows: Any = X.dataXd\n'
        "    masks: list",
        'rate = model.attrs["dropout_rate"]\n    rows: Any = X.dataXd\n    masks: list',
        ("test_biaffine_network.py",),
    ),
    Bug(
        "the biaffine parser leaves embeddings out in use",
        'if is_train and model.attrs["dropout_rate"]:',
        'if model.attrs["dropout_rate"]:',
        ("test_biaffine_network.py",),
    ),
    Bug(
        "the biaffine parser leaves states of its LSTM out in use",
        'rate = model.attrs["dropout_rate"] if is_train else 0.0\n    mask: Any',
        'rate = model.attrs["dropout_rate"]\n    mask: Any',
        ("test_biaffine_network.py",),
    ),
    Bug(
        "the biaffine parser's score of a tree lacks its labels",
        "return (of_heads + of_labels).sum(axis=1)",
        "return (of_heads + 0 * of_labels).sum(axis=1)",
        ("test_biaffine_parser.py",),
    ),
    Bug(
        "the biaffine parser's lists may call the root's arc anything",
        "shift_labels(ops.to_numpy(scores), self._roots.forbidden)",
        "shift_labels(ops.to_numpy(scores), 0 * self._roots.forbidden)",
        ("test_root_relations.py",),
    ),
    Bug(
        "the biaffine parser scores trees as if any arc might be called root",
        "shift_arc_labels(scores, governors, self._roots.forbidden)",
        "shift_arc_labels(scores, governors, 0 * self._roots.forbidden)",
        ("test_root_relations.py",),
    ),
    # What a training is said to cost
    Bug(
        "a cross-validation is said to cost no more than one training",
        "others = plan.folds - 1",
        "others = 0",
        (CROSSED,),
    ),
    Bug(
        "a cross-validation is said to train a tokenizer in each fold",
        "in _stages(replace(plan, tokenizer=None), words, cores):",
        "in _stages(plan, words, cores):",
        (CROSSED,),
    ),
    Bug(
        "a preset goes before what the user says",
        "return {**defaults, **of_preset, **said, PRESET: preset}",
        "return {**defaults, **said, **of_preset, PRESET: preset}",
        ("test_presets.py",),
    ),
    # Feature selection in kernel space
    Bug(
        "a perceptron's updates are as long as the loss asks for",
        "1.0 if self.perceptron else min(",
        "min(",
        (SELECTED,),
    ),
    Bug(
        "the linear model's average lacks a step",
        "((total + 1) * weights - stepped) / max(total, 1)",
        "(total * weights - stepped) / max(total, 1)",
        (SELECTING,),
    ),
    Bug(
        "the linear model does not move away from the tree that it chose",
        "lists.move(at, best, -1.0, weights, stepped, step)",
        "pass",
        (SELECTING,),
    ),
    Bug(
        "mining looks for samples without their loss",
        "np.where(alike, -np.inf, row + 1.0)",
        "np.where(alike, -np.inf, row)",
        (SELECTING,),
    ),
    Bug(
        "a tree with the right arcs counts as wrong",
        "np.where(alike, -np.inf, row + 1.0)",
        "np.where(np.arange(len(row)) == gold, -np.inf, row + 1.0)",
        (SELECTING,),
    ),
    Bug(
        "at the limit of memory what was selected before is lost",
        'what it had before is kept"\n            break',
        'what it had before is kept"\n'
        "            table, weights = joined(nothing_carried(), trees=settings.trees)\n"
        "            break",
        (SELECTING, SELECT),
    ),
    Bug(
        "the limit of memory bounds nothing",
        "return left // BYTES_OF_A_PATTERN",
        "return left * BYTES_OF_A_PATTERN",
        (SELECT,),
    ),
    Bug(
        "what a selected pattern grows from is left out",
        "        for node in range(len(keep) - 1, -1, -1):  # what they grow from",
        "        for node in ():  # what they grow from",
        (SELECTED,),
    ),
    Bug(
        "patterns keep the numbers of features that were left out",
        "steps - steps % MAX_FEATURES + new,",
        "steps,",
        (SELECTED,),
    ),
    Bug(
        "patterns of trees lose their depths with the features that were left out",
        "steps - steps % MAX_FEATURES + new,",
        "new,",
        (SELECTED,),
    ),
    Bug(
        "a model of selected features is scored by the templates of its settings",
        "encoder = self._encoder if self.explicit is None else self.explicit",
        "encoder = self._encoder",
        (SELECTED,),
    ),
    Bug(
        "the tree to learn is the first of each list",
        "oracles = [trees.oracle(s) for s, trees in zip(sentences, lists, strict=True)]",
        "oracles = [0 for _ in lists]",
        (SELECT,),
    ),
    Bug(
        "features are selected from the lists of a combiner that saw them",
        "pairs = [(s, trees) for (s, _), trees in zip(pairs, combined, strict=True)]",
        "pairs = [(s, before.completed(s, trees)) for s, trees in pairs]",
        (SELECT,),
    ),
    Bug(
        "features are tuned on the lists that they were selected from",
        'before, gold, pairs, *ready["dev"], settings, metric=metric',
        "before, gold, pairs, gold, pairs, settings, metric=metric",
        (SELECT,),
    ),
    Bug(
        "confidence is adjusted to lists without repaired trees",
        "for sentence, decision in reranker.decisions(pairs, n_threads=n_threads)",
        "for sentence, decision in replace(reranker, penalties=Penalties()).decisions(pairs)",
        ("test_calibration.py",),
    ),
    Bug(
        "an audit's neighbours are of the same sentence, too",
        "likeness[self._words.sentence == number] = -1.0",
        "likeness[self._words.sentence == -1] = -1.0",
        ("test_audit_neighbours.py",),
    ),
    Bug(
        "a proposal may break a rule in the place of another one",
        "return not any((at & ~known.get(kind, nowhere)).any() for kind, at in new.items())",
        "return sum(a.sum() for a in new.values()) <= sum(a.sum() for a in known.values())",
        ("test_audit.py",),
    ),
    Bug(
        "a feature's share does not count how often the tree has it",
        "shares = [model.weights * own for own in _counts(model.table, corpus, rows)]",
        "shares = [model.weights * (own > 0) for own in _counts(model.table, corpus, rows)]",
        ("test_select.py",),
    ),
    Bug(
        "marks of another scheme are read",
        "if has_marks(label) and not _WRITTEN[scheme].fullmatch(label):",
        "if has_marks(label) and not _WRITTEN[scheme].search(label):",
        ("test_cli_projectivize.py",),
    ),
    Bug(
        "confidence is not adjusted to dev",
        "chosen = decided(reranker, *dev, n_threads=n_threads)",
        "chosen: list[HeldOut] = []",
        ("test_calibration.py",),
    ),
    Bug(
        "the new model's scores are those of the model before",
        '"selected": _chosen(found.reranker, ready[name][1], n_threads=n_threads),',
        '"selected": _chosen(before, ready[name][1], n_threads=n_threads),',
        (SELECT,),
    ),
    Bug(
        "lists are read with the gold tags",
        "yield matcher.take_pair(sentence)\n",
        "yield sentence, matcher.take(sentence)\n",
        (SELECT,),
    ),
    Bug(
        "weights in mining do not shrink",
        "new = weight + step * (gradient - (threshold if weight > 0 else -threshold))",
        "new = weight + step * gradient",
        (MINING, SELECTING),
    ),
    Bug(
        "weights in mining shrink past 0",
        "return new if (new > 0) == (weight > 0) else 0.0",
        "return new",
        (MINING, SELECTING),
    ),
    Bug(
        "mining forgets patterns with a weight",
        "            or part.weights[i] != 0.0\n",
        "",
        (MINING, SELECTING),
    ),
    Bug(
        "mining prunes patterns that the chosen trees alone have",
        "part.better[i] > limits.threshold or part.worse[i] > limits.threshold",
        "part.better[i] > limits.threshold",
        (MINING,),
    ),
    Bug(
        "the filter of mining asks for one more occurrence than the threshold",
        "0 if order == 1 else <int>min(<double>MOST_COUNT, limits.threshold)",
        "0 if order == 1 else <int>min(<double>MOST_COUNT, limits.threshold + 1)",
        (MINING,),
    ),
    Bug(
        "mining takes a word with another left sibling for one that both trees share",
        "!= other.members[word - 1] or left[word] != left_there[word]",
        "!= other.members[word - 1]",
        (MINING,),
    ),
    Bug(
        "scores take a word with another left sibling for one that all trees share",
        "found = (left != left[0]).any(axis=0)",
        "found = np.zeros(n + 1, dtype=bool)",
        (MINING,),
    ),
    Bug(
        "scores leave out arcs that two trees differ in",
        "minlength=item.n_arcs) < len(item.members)",
        "minlength=item.n_arcs) < len(item.members) - 1",
        (MINING,),
    ),
    Bug(
        "the patterns that extend one are looked for among the next one's",
        "for child in range(index.starts[position], index.starts[position + 1]):\n"
        "            # (For a step",
        "for child in range(index.starts[position + 1], index.starts[position + 2]):\n"
        "            # (For a step",
        (MINING,),
    ),
    Bug(
        "a tree's patterns hang on any word of the path where a node has few children",
        "if has_feature(&arc, <int32_t>(index.steps[child] - hung)):",
        "if has_feature(&arc, <int32_t>(index.steps[child] & ((1 << FEATURE_BITS) - 1))):",
        (MINING,),
    ),
    Bug(
        "a tree's patterns hang on any word of the path where a node has many children",
        "child = find_step(cells, mask, hung + <uint32_t>arc.ids[i])",
        "child = find_step(cells, mask, <uint32_t>arc.ids[i])",
        (MINING,),
    ),
    Bug(
        "a table of extensions ends where a cell is taken",
        "while table[cell].position and table[cell].step != step:",
        "while False:",
        (MINING,),
    ),
    Bug(
        "weights are read by number where they stand by position",
        'return checked("weights", weights, np.float64, len(self))[self._numbers]',
        'return checked("weights", weights, np.float64, len(self))',
        (MINING,),
    ),
    Bug(
        "a perceptron moves what occurs in the arcs before one too",
        "for i in range(0 if unit == 0 else self._ends[start + unit - 1],",
        "for i in range(0,",
        (MINING,),
    ),
    Bug(
        "an arc has all features that a node with few children goes on by",
        "if has_feature(arc, <int32_t>index.steps[child]):",
        "if True:",
        (MINING,),
    ),
    Bug(
        "lists that are not written down are read where others are",
        "if not self._begin <= at < self._end:",
        "if not at < self._end:",
        (MINING,),
    ),
    Bug(
        "incomplete combinations of slots get a weight",
        "if may_weigh(notes.slots, <uint64_t>notes.index.steps[position]):",
        "if True:",
        ("test_combinations.py",),
    ),
    Bug(
        "combinations keep the weights that they had before they were learnt anew",
        "return model.with_weights(np.split(new, np.cumsum([len(t) for t in model.types])[:-1]))",
        "return model",
        ("test_combinations.py",),
    ),
    Bug(
        "the weakest combinations are kept",
        'keep[np.argsort(-strength, kind="stable")[:most]] = True',
        'keep[np.argsort(strength, kind="stable")[:most]] = True',
        ("test_combinations.py",),
    ),
    Bug(
        "penalties on ill-formed trees reward them",
        "return scores - self.penalties.of_counts(counts)",
        "return scores + self.penalties.of_counts(counts)",
        ("test_well_formed.py",),
    ),
    Bug(
        "penalties are tuned beside a choice that is worse than it was",
        "before = _right(sentence, trees)[int(scores.argmax())]",
        "before = _right(sentence, trees).min()",
        ("test_well_formed.py",),
    ),
    # Speeds
    Bug(
        "dev does not lower what may be left to quick parsers",
        "max(before, of_dev.limit(model, most, within=limit))",
        "max(before, limit)",
        (CASCADE,),
    ),
    Bug(
        "what quick parsers lose is set against what they lose later",
        "bad = np.flatnonzero(np.cumsum(self.lost[order]) > most * self.words / 100)",
        "bad = np.flatnonzero(self.lost[order].sum() > [most * self.words / 100])",
        (CASCADE,),
    ),
    Bug(
        "ill-formed trees of quick parsers stand",
        "if NO_RISK < limit >= risk and not breaks(sentence, trees, choice.row, kinds)",
        "if NO_RISK < limit >= risk",
        (CASCADE,),
    ),
    Bug(
        "quick parsers pass for surer than they are",
        "doubtful += 1.0 - share",
        "doubtful += 0.5 - share",
        (CASCADE,),
    ),
    Bug(
        "the exact speed's score is reported for all speeds",
        "system.kernel, source, options.list_length, speed=speed, n_threads=options.threads",
        "system.kernel, source, options.list_length, n_threads=options.threads",
        ("test_speeds.py",),
    ),
]  # fmt: skip


def place_of(root: Path, text: str) -> Path:
    """The one source file that holds a text, once.  Raises ValueError otherwise."""
    found = {path: source.count(text) for path, source in _sources(root).items()}
    places = {str(path.relative_to(root)): count for path, count in found.items() if count}
    if list(places.values()) != [1]:
        raise ValueError(f"{text!r} occurs in {places}, expected once in all of the source")
    return root / next(iter(places))


@functools.cache
def _sources(root: Path) -> dict[Path, str]:
    paths = [p for ext in ("py", "pyx") for p in sorted((root / "tk_spacy").rglob(f"*.{ext}"))]
    return {path: path.read_text(encoding="utf-8") for path in paths}


def run(command: list[str], folder: Path) -> bool:
    """Whether a command succeeds."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    return done.returncode == 0


def build(folder: Path) -> bool:
    return run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], folder)


def survives(bug: Bug, folder: Path) -> bool:
    """Whether the tests pass with the bug in a copy; the copy is as before afterwards."""
    path = place_of(folder, bug.old)
    text = path.read_text(encoding="utf-8")
    compiled = path.suffix == ".pyx"
    path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
    try:
        if compiled and not build(folder):
            raise ValueError(f"{bug.what}: does not compile")
        tests = [f"tests/{name}" for name in bug.tests]
        pytest = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        return run([sys.executable, *pytest], folder)
    finally:
        path.write_text(text, encoding="utf-8")
        if compiled:
            build(folder)


def main() -> None:
    options = argparse.ArgumentParser(description="Plant bugs one by one; tests must fail.")
    options.add_argument("--only", default="", help="bugs whose description holds this text")
    options.add_argument("--keep", type=Path, help="folder of the copy, kept for the next run")
    given = options.parse_args()
    chosen = [bug for bug in BUGS if given.only in bug.what]
    # Those of compiled modules last: the copy has this checkout's compiled modules until then.
    chosen.sort(key=lambda bug: place_of(ROOT, bug.old).suffix == ".pyx")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary, "copy")
        leave = shutil.ignore_patterns(".git", ".venv*", "mutants", "__pycache__", "dist")
        shutil.copytree(ROOT, folder, ignore=leave, dirs_exist_ok=True)
        imported = run([sys.executable, "-c", "import tk_spacy.reranker.training"], folder)
        if not imported and not build(folder):
            sys.exit("the copy does not compile")
        tests = sorted({f"tests/{name}" for bug in chosen for name in bug.tests})
        if not run([sys.executable, "-m", "pytest", "-q", "-x", *tests], folder):
            sys.exit("tests fail without any bug: mend that first")
        alive = []
        for number, bug in enumerate(chosen, start=1):
            started = time.perf_counter()
            if survives(bug, folder):
                alive.append(bug.what)
            fate = "SURVIVED" if alive and alive[-1] == bug.what else "killed"
            seconds = time.perf_counter() - started
            print(f"{number}/{len(chosen)} {fate} ({seconds:.0f} s): {bug.what}", flush=True)
    if alive:
        sys.exit(f"{len(alive)} of {len(chosen)} survived")
    print(f"all {len(chosen)} killed")


if __name__ == "__main__":
    main()
