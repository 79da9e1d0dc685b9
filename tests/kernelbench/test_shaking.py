"""What a module's operations lose: kernels of other forms are right, and what is wrong stays so."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch

from kernelwright.kernelbench.conditioning import measure_conditions
from kernelwright.kernelbench.dtypes import FLOAT32
from kernelwright.kernelbench.module import TracedModule
from kernelwright.kernelbench.problem import Expected
from kernelwright.kernelbench.shaking import shake_steps, shaken

MODULE = """import torch.nn.functional as F
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return {}
"""
ONE = np.float32(1)


def measured(expression: str, x: np.ndarray) -> Expected:
    module = TracedModule(MODULE.format(expression), "m.py", {})

    def oracle(of: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"y": module.compute(x=of["x"])[0]}

    return measure_conditions(oracle, {"x": x}, {"y": 1.0}, oracle({"x": x}))["y"]


def share_of_limit(expected: Expected, got: np.ndarray) -> np.ndarray:
    """The error by what G1 allows an element of a column: without a share of its row's RMS."""
    limit = 4 * expected.scale + 2 * np.abs(expected.value)
    error: np.ndarray = np.abs(got - expected.value) / (limit * FLOAT32.roundoff)
    return error


def tanh_by_exp(u: np.ndarray) -> np.ndarray:
    return ONE - np.float32(2) / (np.exp(2 * u) + ONE)


def gelu(x: np.ndarray) -> np.ndarray:
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (ONE + tanh_by_exp(inner))


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.exp(x) - ONE)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log(ONE + np.exp(x))


def mish(x: np.ndarray) -> np.ndarray:
    return x * tanh_by_exp(softplus(x))


FORMS = {
    "F.gelu(x, approximate='tanh')": gelu,
    "F.elu(x)": elu,
    "F.softplus(x)": softplus,
    "F.mish(x)": mish,
}
"""What is asked for, and what people write in float32: near -5 it has lost all of its places."""


@pytest.mark.parametrize("expression", FORMS)
def test_another_form_is_right_where_its_steps_lose(expression: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((40_000, 1), np.float32) / np.float32(100)
    # Far from its neighbours, of which what float32 itself loses says nothing then.
    far = slice(None, None, 97)
    x[far] = rng.uniform(-6, -2, x[far].shape)
    expected = measured(expression, x)
    found = share_of_limit(expected, FORMS[expression](x))
    # Scales are measured by few draws: of what stands alone one in 20,000 may be too small.
    assert np.count_nonzero(found > 1) <= 1
    # What a step gives in 16 bits of mantissa is not.
    assert np.median(share_of_limit(expected, expected.value * (1 + 2.0**-10))) > 1


def test_steps_are_off_only_where_it_is_asked_for() -> None:
    x = torch.linspace(0.5, 2, 1000, dtype=torch.float64)
    with shake_steps():
        assert torch.equal(torch.exp(x), x.exp())
    with shaken(3), shake_steps():
        moved = x * 3
    off = (moved / (x * 3) - 1).abs() / FLOAT32.roundoff
    assert 0.3 < float(off.median()) < 3
    with shaken(4), shake_steps():
        assert not torch.equal(x * 3, moved)


def test_what_rounds_nothing_and_what_is_not_finite_stays() -> None:
    x = torch.tensor([[-torch.inf, -1.5, 0.0, torch.inf, torch.nan]], dtype=torch.float64)
    with shaken(0), shake_steps():
        kept = torch.cat([torch.relu(x), x.t().reshape(1, -1)])
        added = x + 1.0
    assert torch.equal(kept[:, :4], torch.stack([x[0].relu(), x[0]])[:, :4])
    assert kept[:, 4].isnan().all()
    assert added[0, [0, 3]].tolist() == [-torch.inf, torch.inf]


def test_a_view_and_what_is_written_in_place_stay_their_own() -> None:
    x = torch.ones(6, dtype=torch.float64)
    with shaken(0), shake_steps():
        x.view(2, 3)[1].mul_(2)
    assert x.tolist() == [1, 1, 1, 2, 2, 2]
