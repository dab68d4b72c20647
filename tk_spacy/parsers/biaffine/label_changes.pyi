from tk_spacy.utils.array_types import Float64, Int32

def with_changed_labels(
    heads: Int32, totals: Float64, labels: Int32, margins: Float64, k: int, quota: int
) -> tuple[Int32, Int32, Float64]: ...
