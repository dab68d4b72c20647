from tk_spacy.utils.array_types import Float64, Int32

FEATURES: tuple[str, ...]
MOST_MARGIN: float

def quick_choice(
    heads: Int32, labels: Int32, scores: Float64, scales: Float64, own: Int32
) -> tuple[int, Float64, Float64]: ...
