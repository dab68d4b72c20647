from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.support_log import SupportLog
from tk_spacy.reranker.training_list import TrainingList

class Learner:
    @property
    def kernel_parts(self) -> tuple[str, ...]: ...
    @property
    def manual_parts(self) -> tuple[str, ...]: ...
    @property
    def support(self) -> SupportLog: ...
    @property
    def steps(self) -> int: ...
    @property
    def updates(self) -> int: ...
    @property
    def list_width(self) -> int: ...
    def __init__(
        self,
        *,
        kernel_parts: Sequence[str],
        manual_parts: Sequence[str],
        n_properties: int,
        total_steps: int,
        bits: int = 22,
        C: float = ...,
        skip: Sequence[str] = (),
        kernel_scale: float = 1.0,
        add_loss: bool = False,
        list_width: int = 0,
        groups: Sequence[Sequence[int]] | None = None,
        budget: int | None = None,
        perceptron: bool = False,
    ) -> None: ...
    def averaged_weights(self) -> NDArray[np.float64]: ...
    def averaged_list_weights(self) -> NDArray[np.float64]: ...
    def step(self, item: TrainingList) -> bool: ...
    def refresh(self, items: Iterable[TrainingList], *, n_threads: int | None = None) -> None: ...
