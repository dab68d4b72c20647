"""Tags for a treebank, those of the training part from taggers that never saw their sentence.

Parsers that learn from such tags meet in training what they meet in use: tags with the errors that
a tagger makes on new text (as in Qian and Liu 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tk_spacy.ensemble.jackknife import fold_of_sentences
from tk_spacy.ensemble.training_job import TrainingJob
from tk_spacy.errors import UserError
from tk_spacy.parallel.executor import Task, TaskError, make_executor
from tk_spacy.parallel.threads import available_threads
from tk_spacy.tagging.base import Tagger, TaggerSpec
from tk_spacy.treebank.conllu import Sentence

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class TaggedTreebank:
    """What the tagging of a treebank gave.

    parts: the sentences of each part with predicted tags.  tagger: trained on all of train.
    seconds: wall time of the trainings, those of all of train and of the folds together, also
        where they were taken over.
    """

    parts: dict[str, list[Sentence]]
    tagger: Tagger
    seconds: dict[str, float]


def tag_treebank(
    parts: dict[str, list[Sentence]],
    spec: TaggerSpec,
    *,
    workdir: Path,
    folds: int,
    processes: int | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
    beside: Sequence[TrainingJob] = (),
) -> TaggedTreebank:
    """All parts of a treebank with predicted tags.

    parts: "train" and perhaps "dev" and others, with gold tags.
    workdir: where the taggers are kept; what an earlier run trained on the same is taken over.
    folds: of train, contiguous as those of the parsers' jackknife.
    processes: taggers trained at a time; the result does not depend on it.
    note: told in one line what is taken over.
    beside: further trainings, done with these.

    Raises UserError where a training fails; finished ones are kept.
    """
    train, dev = parts["train"], parts.get("dev", [])
    whole = TrainingJob(
        name=f"training the {spec.name} tagger on all of train",
        spec=spec, train=train, dev=dev, directory=workdir / spec.name,
    )  # fmt: skip
    jobs = [whole, *_jobs_of_folds(train, spec, workdir=workdir, folds=folds)]
    _train_all(
        jobs, workdir, processes=processes, n_threads=n_threads, progress=progress, note=note,
        beside=beside,
    )  # fmt: skip
    tagged: dict[str, list[Sentence]] = {}
    tagger = whole.open()
    for name, sentences in parts.items():
        if name != "train":
            tagged[name] = _tagged(tagger, sentences)
    tagged["train"] = _tagged_by_folds(train, jobs[1:])
    seconds = [job.seconds for job in jobs]
    return TaggedTreebank(tagged, tagger, {"whole": seconds[0], "folds": sum(seconds[1:])})


def jackknifed_tags(
    sentences: Sequence[Sentence],
    spec: TaggerSpec,
    *,
    workdir: Path,
    folds: int,
    processes: int | None = None,
    n_threads: int | None = None,
    note: Callable[[str], None] | None = None,
) -> list[Sentence]:
    """The sentences with tags of taggers that did not see them, where no other tagger is wanted.

    The rest as in `tag_treebank`.
    """
    jobs = _jobs_of_folds(sentences, spec, workdir=workdir, folds=folds)
    _train_all(jobs, workdir, processes=processes, n_threads=n_threads, note=note)
    return _tagged_by_folds(sentences, jobs)


def _jobs_of_folds(
    train: Sequence[Sentence], spec: TaggerSpec, *, workdir: Path, folds: int
) -> list[TrainingJob]:
    numbers = fold_of_sentences(len(train), folds=folds)
    jobs = []
    for fold in range(1, folds + 1):
        seen = [s for s, number in zip(train, numbers, strict=True) if number != fold - 1]
        name = f"training the {spec.name} tagger on fold-{fold}"
        place = workdir / f"fold-{fold:02}" / spec.name
        jobs.append(TrainingJob(name=name, spec=spec, train=seen, dev=[], directory=place))
    return jobs


def _tagged_by_folds(train: Sequence[Sentence], jobs: Sequence[TrainingJob]) -> list[Sentence]:
    numbers = fold_of_sentences(len(train), folds=len(jobs))
    of_folds = [
        iter(_tagged(job.open(), [s for s, n in zip(train, numbers, strict=True) if n == fold]))
        for fold, job in enumerate(jobs)
    ]
    return [next(of_folds[number]) for number in numbers]


def _train_all(
    jobs: Sequence[TrainingJob],
    workdir: Path,
    *,
    processes: int | None,
    n_threads: int | None,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
    beside: Sequence[TrainingJob] = (),
) -> None:
    todo = [job for job in jobs if not job.is_kept]
    if note is not None and len(todo) < len(jobs):
        note(f"taken over from {workdir}: {len(jobs) - len(todo)} of {len(jobs)} taggers")
    tasks = [job.task for job in (*beside, *todo) if not job.is_kept]
    _run(tasks, processes, n_threads, progress or (lambda share: None))


def _tagged(tagger: Tagger, sentences: Sequence[Sentence]) -> list[Sentence]:
    pairs = zip(sentences, tagger.tag(sentences), strict=True)
    return [tags.put(sentence) for sentence, tags in pairs]


def _run(
    tasks: Sequence[Task], processes: int | None, n_threads: int | None, progress: Progress
) -> None:
    cost = {task.name: task.cost for task in tasks}
    share = dict.fromkeys(cost, 0.0)

    def on_report(name: str, value: float) -> None:
        share[name] = max(share[name], min(1.0, value))
        progress(sum(cost[n] * part for n, part in share.items()) / sum(cost.values()))

    executor = make_executor(tasks, processes=processes or available_threads(), n_threads=n_threads)
    try:
        for name, _ in executor.run(tasks, report=on_report):
            on_report(name, 1.0)
    except TaskError as error:
        cure = "; run again with fewer processes" if error.killed else ""
        raise UserError(f"{error}; what is finished is kept{cure}") from error
