"""Targets of AMD's, from a source to a verdict: built, interpreted, judged, and never timed."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelwright as kw
from kernelwright.errors import UsageError
from kernelwright.tests.jails import no_jail, skip_for_want_of_one
from kernelwright.tests.verifier.profile.test_amd import SOFTMAX
from kernelwright.traces.records import Level, Status
from kernelwright.workbench.tasks import choose_target

WRONG = SOFTMAX.replace("tl.sum(e, 0)", "(tl.sum(e, 0) + 1.0)")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_a_right_kernel_is_screened_and_a_wrong_one_refused(
    target: str, tmp_path: Path, shared_cache: Path
) -> None:
    skip_for_want_of_one(no_jail())
    home = {"home": tmp_path / "home", "cache_dir": shared_cache}
    with kw.Evaluator("softmax", language="triton", target=target, **home) as softmax:
        right, wrong = softmax.evaluate(SOFTMAX), softmax.evaluate(WRONG)
    judged = right.verdict
    assert (judged.status, judged.emulated, judged.measurement) == (Status.SCREENED, True, None)
    assert judged.profile is not None
    (time,) = [m for m in judged.profile.metrics if m.name == "modelled_us"]
    assert time.level is Level.MODELLED
    assert wrong.verdict.status is Status.INCORRECT


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1201"])
def test_cuda_is_refused_with_what_to_do(target: str) -> None:
    assert choose_target(target, "triton") == target
    with pytest.raises(UsageError, match="AMD's and takes no candidates in 'cuda'") as caught:
        choose_target(target, "cuda")
    assert "--language triton" in caught.value.hint
    assert "--target sm_90" in caught.value.hint


def test_an_unknown_target_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="gfx90a") as caught:
        choose_target("gfx90a")
    assert caught.value.hint
