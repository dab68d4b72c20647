"""The biaffine parser's layers on a device whose arrays do not mix with numpy's, as a GPU's do.

No GPU is needed: the device is numpy with arrays of a class of their own, which refuse any
function, operator or index that is handed a plain array, as cupy's arrays do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from biaffine_parsers import NEW, SENTENCES, trained
from test_biaffine_model import TREEBANK, pipeline
from thinc import optimizers
from thinc.api import NumpyOps, Ops, Optimizer

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.biaffine import loss, recurrent, scorer
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.biaffine.tables import Tables
from tk_spacy.pipeline.tk_biaffine import TkBiaffine
from tk_spacy.spacy_io.corpus import read_examples


def foreign(value: Any) -> bool:
    """Whether a value is an array of numpy's own."""
    if isinstance(value, tuple | list):
        return any(map(foreign, value))
    return type(value) is np.ndarray and value.ndim > 0


def plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    return value.view(np.ndarray) if isinstance(value, DeviceArray) else value


def on_device(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(on_device, value))
    return value.view(DeviceArray) if isinstance(value, np.ndarray) else value


class DeviceArray(np.ndarray):
    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if foreign(inputs) or foreign(options.get("out", ())):
            raise TypeError(f"{function.__name__} of arrays on two devices")
        found = getattr(function, method)(
            *map(plain, inputs), **{name: plain(value) for name, value in options.items()}
        )
        return options["out"][0] if options.get("out") else on_device(found)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if foreign(list(args)) or foreign(list(options.values())):
            raise TypeError(f"{function.__name__} of arrays on two devices")
        return on_device(
            function(*map(plain, args), **{name: plain(v) for name, v in options.items()})
        )

    def __getitem__(self, index: Any) -> Any:
        if foreign(index):
            raise TypeError("an index on another device")
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if foreign(index) or foreign(value):
            raise TypeError("an index or a value on another device")
        super().__setitem__(index, value)


class Device:
    """Numpy's functions, which give arrays of the device and take no others."""

    ndarray = DeviceArray

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if not callable(function) or isinstance(function, type):
            return function

        def run(*args: Any, **options: Any) -> Any:
            if name != "asarray" and (foreign(list(args)) or foreign(list(options.values()))):
                raise TypeError(f"{name} of arrays on two devices")
            return on_device(function(*args, **options))

        return run


DEVICE: Any = Device()


class DeviceOps(Ops):
    name = "numpy"
    xp = DEVICE

    def asarray(self, data: Any, dtype: Any = None) -> Any:
        return on_device(np.asarray(plain(data), dtype=dtype))

    def to_numpy(self, data: Any, *, byte_order: str | None = None) -> Any:
        return np.array(plain(data))

    def alloc(self, shape: Any, *, dtype: Any = "float32", zeros: bool = True) -> Any:
        return on_device(np.zeros(shape, dtype))

    def gather_add(self, table: Any, indices: Any) -> Any:
        return table[indices].sum(axis=1)

    def scatter_add(self, table: Any, indices: Any, values: Any) -> Any:
        if foreign([table, indices, values]):
            raise TypeError("scatter_add of arrays on two devices")
        np.add.at(table.view(np.ndarray), plain(indices), plain(values))
        return table


def move(model: Any, ops: Ops) -> None:
    """What `Model.to_gpu` does."""
    for node in model.walk():
        node.ops = ops
        for name in node.param_names:
            if node.has_param(name):
                node.set_param(name, ops.asarray(node.get_param(name)))
            if node.has_grad(name):
                node.set_grad(name, ops.asarray(node.get_grad(name)))
        for shim in node.shims:
            assert isinstance(shim, Tables)
            shim.ops = ops
            shim.arrays = {name: ops.asarray(table) for name, table in shim.arrays.items()}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Ops:
    def module_of(array: Any) -> Any:
        return DEVICE if isinstance(array, DeviceArray) else np

    for module in (recurrent, scorer, loss):
        monkeypatch.setattr(module, "get_array_module", module_of)
    ops, of_optimizer = DeviceOps(), optimizers.get_array_ops
    monkeypatch.setattr(
        optimizers,
        "get_array_ops",
        lambda array: ops if isinstance(array, DeviceArray) else of_optimizer(array),
    )
    return ops


def test_device_refuses_what_a_gpu_refuses(device: Ops) -> None:
    own: Any = device.asarray(np.arange(4.0))
    other = np.arange(4)
    for wrong in (
        lambda: own + other,
        lambda: np.concatenate([own, other]),
        lambda: own[other],
        lambda: own.__setitem__(slice(None), other),
        lambda: device.xp.maximum(own, other),
    ):
        with pytest.raises(TypeError, match="device"):
            wrong()
    assert isinstance(own[own > 1] * 2, DeviceArray)
    assert isinstance(device.xp.zeros(3), DeviceArray)
    assert type(device.to_numpy(own)) is np.ndarray


def test_trained_parser_parses_on_a_device(device: Ops) -> None:
    parser = BiaffineParser.from_bytes(trained().to_bytes())
    move(parser.model, device)
    for (heads, labels), (expected, names) in zip(
        parser.parse(NEW), trained().parse(NEW), strict=True
    ):
        assert heads.tolist() == expected.tolist()
        assert labels == names
    lists = list(parser.kbest(NEW[:5], k=4, inventory=LabelInventory()))
    expected_lists = list(trained().kbest(NEW[:5], k=4, inventory=LabelInventory()))
    for own, other in zip(lists, expected_lists, strict=True):
        np.testing.assert_allclose(own.scores, other.scores, atol=1e-3)
    for scores, other in zip(parser.score(NEW[:5], expected_lists), expected_lists, strict=True):
        np.testing.assert_allclose(scores, other.scores[:, 0], atol=1e-3)
    assert parser.to_files() == trained().to_files()


@pytest.mark.parametrize("averages", [False, True])
def test_component_learns_on_a_device_what_it_learns_on_the_cpu(
    device: Ops, averages: bool
) -> None:
    found = []
    for ops in (NumpyOps(), device):
        np.random.seed(4)  # noqa: NPY002
        nlp = pipeline(TREEBANK)
        examples = list(read_examples(SENTENCES[:60], nlp))
        nlp.initialize(lambda: examples)  # noqa: B023
        component = nlp.get_pipe("tk_biaffine")
        assert isinstance(component, TkBiaffine)
        move(component.model, ops)
        optimizer = Optimizer(0.01, use_averages=averages)
        found.append(
            [component.update(examples[i : i + 20], sgd=optimizer, drop=0.1) for i in (0, 20, 40)]
        )
        found[-1].append({"uas": nlp.evaluate(examples)["dep_uas"]})
    for own, other in zip(*found, strict=True):
        assert own.keys() == other.keys()
        for name, value in own.items():
            assert other[name] == pytest.approx(value, abs=1e-3)
