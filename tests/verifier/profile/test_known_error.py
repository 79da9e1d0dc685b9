"""The error that is said wherever modelled times are shown is that of the committed comparison."""

from __future__ import annotations

import re
from pathlib import Path

from kernelwright.kernelbench.products import device_of
from kernelwright.verifier.profile.remarks import KNOWN_ERRORS, assumptions, known_error

PAGE = Path(__file__).parents[3] / "docs" / "results" / "model.md"


def test_it_is_the_one_of_the_page() -> None:
    text = PAGE.read_text("utf-8")
    found = re.search(r"as it is: bias ([\d.]+), nine of ten within ([\d.]+)", text)
    assert found is not None
    known = KNOWN_ERRORS["sm_90"]
    assert (float(found[1]), float(found[2])) == (known.bias, known.nine_of_ten)
    rows = re.findall(r"^\|[^|]+\|[^|]+\| emulated \| (\d+) \|", text, re.M)
    assert sum(map(int, rows)) == known.kernels
    assert known.device in text


def test_it_is_said_with_the_time_and_only_where_it_is_known() -> None:
    for target, is_known in (("sm_90", True), ("sm_80", False)):
        device = device_of(target)
        assert device is not None
        said = assumptions(device, "counts: static")
        assert ("nine of ten within a factor" in said) is is_known
        assert bool(known_error(target)) is is_known
