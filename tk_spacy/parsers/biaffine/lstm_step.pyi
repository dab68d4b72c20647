from numpy import float32
from numpy.typing import NDArray

def forward(
    gates: NDArray[float32],
    added: NDArray[float32] | None,
    before: NDArray[float32],
    mask: NDArray[float32] | None,
    cell: NDArray[float32],
    squashed: NDArray[float32],
    out: NDArray[float32],
    onward: NDArray[float32] | None,
) -> None: ...
def backward(
    gates: NDArray[float32],
    before: NDArray[float32],
    mask: NDArray[float32] | None,
    squashed: NDArray[float32],
    d_out: NDArray[float32],
    d_next: NDArray[float32] | None,
    d_cell: NDArray[float32],
    d_gates: NDArray[float32],
) -> None: ...
