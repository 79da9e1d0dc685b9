from __future__ import annotations

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail


@pytest.fixture(params=["bubblewrap", "landlock"])
def jail(request: pytest.FixtureRequest) -> Jail:
    try:
        return choose(request.param)
    except PrerequisiteError as error:
        pytest.skip(f"{request.param} does not work here: {error}")
