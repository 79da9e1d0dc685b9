"""Python candidates that are honest in ways that a naive defence would refuse.

torch.compile, Triton and torch's C++ extensions are not among them: they start a compiler, and a
candidate's process may start none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.languages import Tier
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.traces.records import Status

HOST = Path(__file__).parent / "host"
SCREENED = {
    "model": "softmax",
    "threads": "softmax",
    "sparse": "spmm_csr",
    "axis_of_a_model": "gspmm_reduce",
}
pytestmark = [pytest.mark.slow, pytest.mark.timed]


def source(name: str) -> str:
    return (HOST / f"{name}.py").read_text("utf-8")


@pytest.mark.parametrize("name", SCREENED)
def test_an_honest_module_is_accepted(court, name: str) -> None:
    verdict = court.judge(source(name), SCREENED[name], language="python", workload="tiny")
    assert verdict.status is Status.SCREENED, verdict.reasons
    assert verdict.tier is Tier.HOST_CODE


def test_a_library_call_is_accepted_and_labelled(court) -> None:
    verdict = court.judge(source("out_argument"), "softmax", language="python", workload="tiny")
    assert verdict.status is Status.SCREENED, verdict.reasons
    assert verdict.tier is Tier.HOST_CODE
    assert verdict.language == "python"
    assert "Python" in verdict.versions["compiler"]
    assert verdict.measurement is not None
    # Nothing is known of loops where no compiler spoke of them.
    assert verdict.profile is not None
    assert verdict.profile.get("vectorised_loops") is None
    assert verdict.profile.get("latency_us") is not None


def test_the_other_jail_shows_what_an_interpreter_needs(court) -> None:
    try:
        choose("landlock")
    except PrerequisiteError as error:
        pytest.skip(f"landlock does not work here: {error}")
    verdict = court.judge(
        source("model"), "softmax", language="python", workload="tiny", jail="landlock"
    )
    assert verdict.status is Status.SCREENED, verdict.reasons
