"""Components that a training makes, but that are not to run by themselves."""

from collections.abc import Callable, Sequence

from spacy.language import Language
from spacy.util import registry

from tk_spacy.errors import UserError

REGISTERED = "tk_spacy.switch_off.v1"


@registry.callbacks(REGISTERED)
def create_switch(components: Sequence[str]) -> Callable[[Language], Language]:
    """What disables components when they are trained, as [initialize] after_init.

    A disabled component is not initialized, so the config cannot name it as disabled before.
    components: such as the further parsers of a `tk_reranker`, which asks them by itself.
    Raises UserError where the pipeline has not one of them.
    """

    def switch_off(nlp: Language) -> Language:
        for name in components:
            if name not in nlp.component_names:
                raise UserError(
                    f"{REGISTERED}: the pipeline has no component {name!r} to be switched off; it "
                    f"has: {', '.join(nlp.component_names)}"
                )
            nlp.disable_pipe(name)
        return nlp

    return switch_off
