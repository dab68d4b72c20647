"""A trained pipeline's parser for a config of `spacy train`, taken when the training begins.

spaCy's own way, `source = ${paths.upstream}` in a component's section, loads that pipeline whenever
the config is read: `spacy init fill-config` and `spacy debug config` fail while its name is not yet
known.  A callback of [initialize] is called by a training alone.
"""

from collections.abc import Callable

from spacy.language import Language
from spacy.util import registry

from tk_spacy.errors import UserError

TAKE = "tk_spacy.take_parser.v1"


@registry.callbacks(TAKE)
def create_taker(
    pipeline: str | None = None, component: str = "parser"
) -> Callable[[Language], None]:
    """Put a trained parser in the place of an untrained one, as [initialize] before_init.

    pipeline: directory or package that has it; None is an error once a training begins, not before.
    component: name of the parser, there and here.
    The parser gets a copy of the tok2vec that it listens to, and its pipeline's word vectors.  It
    is disabled, so that `nlp.initialize` leaves it as it is; `spacy train` enables it again.

    Raises UserError where it cannot be taken, or would be trained anew.
    """

    def take(nlp: Language) -> None:
        if pipeline is None:
            raise UserError(
                f"no pipeline is named whose {component!r} is to be taken; give --paths.upstream, "
                "or set pipeline in [initialize.before_init]"
            )
        take_parser(nlp, pipeline, component)

    return take


def take_parser(nlp: Language, pipeline: str, component: str) -> None:
    """See `create_taker`."""
    from tk_spacy.parsers.spacy_transition.directed_parser import find_parser  # noqa: PLC0415
    from tk_spacy.parsers.spacy_transition.loading import load_pipeline  # noqa: PLC0415
    from tk_spacy.parsers.spacy_transition.training import own_tok2vec  # noqa: PLC0415

    if component not in nlp.component_names:
        raise UserError(
            f"the config has no component {component!r} whose place that of {pipeline} could take; "
            f"it has: {', '.join(nlp.component_names) or 'none'}"
        )
    if component in nlp.pipe_names and component not in nlp.config["training"]["frozen_components"]:
        raise UserError(
            f"{component!r} of {pipeline} would be trained anew from nothing: name it in "
            "[training] frozen_components"
        )
    given = load_pipeline(pipeline)
    if given.lang != nlp.lang:
        raise UserError(
            f"{pipeline}: its language is {given.lang!r}, but [nlp] lang is {nlp.lang!r}; give "
            f"--nlp.lang {given.lang}"
        )
    try:
        find_parser(given, component)
    except UserError as error:
        raise UserError(f"{pipeline}: {error}") from error
    own_tok2vec(given, component)
    initialize = nlp.config["initialize"]
    if given.vocab.vectors.shape[0]:
        nlp.vocab.vectors = given.vocab.vectors
        # So that the parsers of a jackknife's folds have them too.
        initialize["vectors"] = initialize["vectors"] or pipeline
    place = nlp.component_names.index(component)
    nlp.remove_pipe(component)
    behind = nlp.component_names[place:]
    nlp.add_pipe(component, source=given, name=component, before=behind[0] if behind else None)
    nlp.disable_pipe(component)
    initialize["before_init"] = None  # the saved model has it
