"""The parser as a spaCy component."""

from typing import Any

from spacy.language import Language

from throwaway_parser.kind import KIND
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent


@Language.factory("tk_previous", assigns=PARSER_ASSIGNS, default_config={"settings": {}})
def make_previous(nlp: Language, name: str, settings: dict[str, Any]) -> "TkPrevious":
    return TkPrevious(nlp, name, settings=settings)


class TkPrevious(ParserComponent):
    KIND = KIND.name
