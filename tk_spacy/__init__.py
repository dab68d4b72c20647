"""tk-spacy: k-best dependency parse reranking with template kernels.

The public functions and classes, each imported when it is first asked for, so that `import
tk_spacy` costs next to nothing:

    from pathlib import Path

    import tk_spacy

    if __name__ == "__main__":  # parsers are trained in processes, which import this file
        options = tk_spacy.train_options(changes={
            "paths.train": "train.conllu", "paths.dev": "dev.conllu", "paths.output": "model",
        })
        report = tk_spacy.train(options)
        tk_spacy.rerank_files(Path("model"), [Path("in.conllu")], Path("out.conllu"))
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tk_spacy.about import __version__

if TYPE_CHECKING:
    from tk_spacy.errors import CandidateError as CandidateError
    from tk_spacy.errors import ModelError as ModelError
    from tk_spacy.errors import OptionError as OptionError
    from tk_spacy.errors import TreebankError as TreebankError
    from tk_spacy.errors import UserError as UserError
    from tk_spacy.evaluation.attachment import Scores as Scores
    from tk_spacy.evaluation.attachment import evaluate as evaluate
    from tk_spacy.evaluation.bootstrap import Bootstrap as Bootstrap
    from tk_spacy.evaluation.bootstrap import paired_bootstrap as paired_bootstrap
    from tk_spacy.evaluation.report import TrainReport as TrainReport
    from tk_spacy.kbest.candidates import CandidateList as CandidateList
    from tk_spacy.kbest.candidates import LabelInventory as LabelInventory
    from tk_spacy.kbest.reader import read_kbest as read_kbest
    from tk_spacy.kbest.writer import write_kbest as write_kbest
    from tk_spacy.reranker.model import Reranker as Reranker
    from tk_spacy.reranker.settings import Settings as RerankerSettings
    from tk_spacy.treebank.conllu import load_treebank as load_treebank
    from tk_spacy.treebank.conllu import read_conllu as read_conllu
    from tk_spacy.treebank.conllu import write_conllu as write_conllu
    from tk_spacy.treebank.sentence import Sentence as Sentence
    from tk_spacy.utils.progress import Progress as Progress
    from tk_spacy.workflows.evaluate import Evaluation as Evaluation
    from tk_spacy.workflows.evaluate import evaluate as evaluate_files
    from tk_spacy.workflows.files.batch import parse_files as parse_files
    from tk_spacy.workflows.files.batch import rerank_files as rerank_files
    from tk_spacy.workflows.kbest import kbest as kbest_file
    from tk_spacy.workflows.model import Model as Model
    from tk_spacy.workflows.model import open_model as open_model
    from tk_spacy.workflows.train.config import train_options as train_options
    from tk_spacy.workflows.train.options import TrainOptions as TrainOptions
    from tk_spacy.workflows.train.pipeline import train_pipeline as train
    from tk_spacy.workflows.train.releases import train_treebanks as train_treebanks

__all__ = [
    "Bootstrap",
    "CandidateError",
    "CandidateList",
    "Evaluation",
    "LabelInventory",
    "Model",
    "ModelError",
    "OptionError",
    "Progress",
    "Reranker",
    "RerankerSettings",
    "Scores",
    "Sentence",
    "TrainOptions",
    "TrainReport",
    "TreebankError",
    "UserError",
    "__version__",
    "evaluate",
    "evaluate_files",
    "kbest_file",
    "load_treebank",
    "open_model",
    "paired_bootstrap",
    "parse_files",
    "read_conllu",
    "read_kbest",
    "rerank_files",
    "train",
    "train_options",
    "train_treebanks",
    "write_conllu",
    "write_kbest",
]

_PUBLIC = {
    "Bootstrap": "evaluation.bootstrap:Bootstrap",
    "CandidateError": "errors:CandidateError",
    "CandidateList": "kbest.candidates:CandidateList",
    "Evaluation": "workflows.evaluate:Evaluation",
    "LabelInventory": "kbest.candidates:LabelInventory",
    "Model": "workflows.model:Model",
    "ModelError": "errors:ModelError",
    "OptionError": "errors:OptionError",
    "Progress": "utils.progress:Progress",
    "Reranker": "reranker.model:Reranker",
    "RerankerSettings": "reranker.settings:Settings",
    "Scores": "evaluation.attachment:Scores",
    "Sentence": "treebank.sentence:Sentence",
    "TrainOptions": "workflows.train.options:TrainOptions",
    "TrainReport": "evaluation.report:TrainReport",
    "TreebankError": "errors:TreebankError",
    "UserError": "errors:UserError",
    "evaluate": "evaluation.attachment:evaluate",
    "evaluate_files": "workflows.evaluate:evaluate",
    "kbest_file": "workflows.kbest:kbest",
    "load_treebank": "treebank.conllu:load_treebank",
    "open_model": "workflows.model:open_model",
    "paired_bootstrap": "evaluation.bootstrap:paired_bootstrap",
    "parse_files": "workflows.files.batch:parse_files",
    "read_conllu": "treebank.conllu:read_conllu",
    "read_kbest": "kbest.reader:read_kbest",
    "rerank_files": "workflows.files.batch:rerank_files",
    "train": "workflows.train.pipeline:train_pipeline",
    "train_options": "workflows.train.config:train_options",
    "train_treebanks": "workflows.train.releases:train_treebanks",
    "write_conllu": "treebank.conllu:write_conllu",
    "write_kbest": "kbest.writer:write_kbest",
}
"""Where each public name lies: module and name in it."""

# What a library logs is shown where a program asks for it.
logging.getLogger("tk_spacy").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    try:
        module, _, attribute = _PUBLIC[name].partition(":")
    except KeyError:
        raise AttributeError(f"module 'tk_spacy' has no attribute {name!r}") from None
    value = getattr(import_module(f"tk_spacy.{module}"), attribute)
    globals()[name] = value  # the next time it is found at once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
