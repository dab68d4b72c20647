"""What the parser says of itself; light, since every command asks all kinds."""

from tk_spacy.parsers.kinds import ParserKind

KIND = ParserKind(
    name="previous",
    summary="each word hangs on one before it",
    spec="throwaway_parser.spec:PreviousSpec",
    settings="throwaway_parser.parser:PreviousSettings",
    factory="tk_previous",
    format="previous-word parser",
    line=lambda about: f"trained, {about['back']} back",
)
