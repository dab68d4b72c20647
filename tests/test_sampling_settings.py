"""Settings of the sampling parser: every wrong one is one clear line."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import pytest

from tk_spacy.errors import UserError
from tk_spacy.parsers.sampling.settings import LIMITS, SamplingSettings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 0}, "order is 0; it must be from 1 to 3"),
        ({"order": 4}, "order is 4"),
        ({"order": 2.0}, "order is 2.0; it must be a whole number"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": True}, "epochs is True; it must be a whole number"),
        ({"C": 0}, "C is 0"),
        ({"C": -1.0}, "C is -1.0"),
        ({"C": math.nan}, "C is nan; it must be a number"),
        ({"C": "1"}, "C is '1'; it must be a number"),
        ({"bits": 7}, "bits is 7; it must be from 8 to 28"),
        ({"bits": 30}, "bits is 30"),
        ({"pruner_bits": 64}, "pruner bits is 64"),
        ({"label_cost": 1.5}, "label cost is 1.5; it must be from 0 to 1"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"temperature": 10**400}, "temperature is 1000"),
        ({"restarts": 0}, "restarts is 0"),
        ({"patience": None}, "patience is None; it must be a whole number"),
        ({"single_root": 1}, "single root is 1; it must be true or false"),
        ({"single_root": "yes"}, "single root is 'yes'"),
        ({"max_heads": 0}, "max heads is 0"),
        ({"max_labels": 9}, "max labels is 9"),
        ({"prune_margin": -1}, "prune margin is -1"),
        ({"arc_margin": -0.5}, "arc margin is -0.5"),
        ({"label_share": 1.1}, "label share is 1.1"),
        ({"seed": -1}, "seed is -1"),
        ({"kernel_scale": -0.1}, "kernel scale is -0.1"),
        ({"kernel_scale": math.inf}, "kernel scale is inf"),
        ({"kernel_epochs": 0}, "kernel epochs is 0"),
        ({"seed": 2**32}, "seed is 4294967296; it must be from 0 to 4294967295"),
    ],
)
def test_sampling_settings_name_what_is_wrong(options, message):
    with pytest.raises(UserError, match=f"^{message}"):
        SamplingSettings(**options)
    with pytest.raises(UserError):
        SamplingSettings.from_dict(options)


@pytest.mark.parametrize("name", LIMITS)
def test_sampling_settings_may_be_at_their_limits(name):
    low, high = LIMITS[name]
    for value in (low, high):
        assert getattr(SamplingSettings(**{name: value}), name) == value
    beyond = high * 2 if math.isfinite(high) else math.nan
    for value in (low - 1, beyond):
        with pytest.raises(UserError):
            SamplingSettings(**{name: value})


def test_sampling_settings_survive_json():
    changed = {"order": 2, "C": 0.5, "single_root": False, "label_share": 1.0, "seed": 2**32 - 1}
    kernel = {"kernel_scale": 0.1, "kernel_epochs": 3}
    every = SamplingSettings(**kernel, crossing=False)
    for settings in (SamplingSettings(), SamplingSettings(**changed), every):
        data = json.loads(json.dumps(settings.to_dict(), allow_nan=False))
        assert SamplingSettings.from_dict(data) == settings
        names = {field.name for field in fields(SamplingSettings)} - {"extra"}
        # What is at its default stands there only where it stood from the beginning.
        assert set(data) == (names if settings is every else names - {*kernel, "crossing"})
    assert SamplingSettings.from_dict({}) == SamplingSettings()
    assert replace(SamplingSettings(), bits=10) != SamplingSettings()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"depth": 3, "width": 4}, "unknown settings: depth, width"),
        ({3: 3}, "unknown settings: 3"),
        ([3], "give names with values"),
        (None, "settings are None"),
    ],
)
def test_sampling_settings_from_strange_data(data, message):
    with pytest.raises(UserError, match=message):
        SamplingSettings.from_dict(data)
