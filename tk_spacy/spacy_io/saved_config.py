"""What a saved pipeline's config must say by itself: spaCy reads some sections alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spacy.util import registry
from thinc.api import ConfigValidationError

if TYPE_CHECKING:
    from spacy.language import Language

RESOLVE = "tk_spacy.resolve_config.v1"


def resolve_optimizer(nlp: Language) -> None:
    """Put values for the variables in [training.optimizer] of a pipeline's config.

    `nlp.create_optimizer`, and so `resume_training` and `update`, know nothing of the sections that
    variables such as ${training.max_steps} refer to.
    """
    training = nlp.config["training"]
    if "${" not in repr(training.get("optimizer")):
        return
    try:
        training["optimizer"] = nlp.config.interpolate()["training"]["optimizer"]
    except ConfigValidationError:
        return  # spaCy itself says what is missing when it is needed


@registry.callbacks(RESOLVE)
def create_resolver() -> Callable[[Language], Language]:
    """What `spacy train` does before it saves, as [training] before_to_disk."""

    def resolve(nlp: Language) -> Language:
        resolve_optimizer(nlp)
        return nlp

    return resolve
