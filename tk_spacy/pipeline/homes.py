"""The pipelines that a component stands in: spaCy lends one and the same component to several.

`nlp.add_pipe(..., source=other)` puts the other pipeline's component itself into the new one, and
tells it no more than its name there.  That is enough: whoever sets the name is the pipeline.
"""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any

from spacy.language import Language

if TYPE_CHECKING:
    from types import FrameType

    from spacy.tokens import Doc


def calling_pipeline(frame: FrameType | None = None) -> Language | None:
    """The pipeline whose method calls the function that asks; None where none does.

    frame: of that function's caller, by default found here.
    """
    if frame is None:
        own = inspect.currentframe()
        asking = own.f_back if own is not None else None
        frame = asking.f_back if asking is not None else None
    found = frame.f_locals.get("self") if frame is not None else None
    return found if isinstance(found, Language) else None


class Homes:
    """The pipelines of one component.

    The newest is kept alive, as the component alone would be of no use; the others are not.
    """

    def __init__(self, nlp: Language) -> None:
        self.newest = nlp
        self._others: list[weakref.ref[Language]] = []

    def add(self, nlp: Language) -> None:
        """Make a pipeline the newest."""
        if nlp is not self.newest:
            older = [home for home in self._all() if home is not nlp]
            self.newest = nlp
            self._others = [weakref.ref(home) for home in older]

    def of(self, component: Any, doc: Doc | None) -> Language:
        """The pipeline that hands a Doc to the component: the one whose vocab the Doc has.

        Of several that share a vocab it is the newest that holds the component.
        """
        if doc is not None and self._others:
            for home in self._all():
                if home.vocab is doc.vocab and holds(home, component):
                    return home
        return self.newest

    def _all(self) -> list[Language]:
        others = [home() for home in self._others]
        return [self.newest, *(home for home in others if home is not None)]

    # A weak reference can be neither pickled nor copied.

    def __getstate__(self) -> list[Language]:
        return self._all()

    def __setstate__(self, state: list[Language]) -> None:
        self.newest, *others = state
        self._others = [weakref.ref(home) for home in others]


def holds(nlp: Language, component: Any) -> bool:
    """Whether a component is in a pipeline, be it disabled."""
    return any(pipe is component for _, pipe in nlp.components)
