"""What guides say of a target: AMD's wavefronts and defaults where they hold, and only there."""

from __future__ import annotations

import pytest

from kernelwright.agents.prompting.guides import guide
from kernelwright.tests.agents.brains.answers import situation


@pytest.mark.parametrize(("target", "threads"), [("gfx942", 64), ("gfx950", 64), ("gfx1201", 32)])
def test_amd_is_told_in_wavefronts(target: str, threads: int) -> None:
    text = guide(situation("softmax", "triton", target), target)
    assert f"counts wavefronts of {threads} threads" in text
    assert "TF32" not in text


def test_nvidia_is_told_of_tf32() -> None:
    text = guide(situation("softmax", "triton", "sm_90"), "sm_90")
    assert "rounds float32 inputs to TF32" in text
    assert "wavefront" not in text
