"""What tests of runners share."""

from __future__ import annotations

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail


@pytest.fixture(scope="module")
def jail() -> Jail:
    """The strongest that works here."""
    try:
        return choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")
