from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.builders import toolchain
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.tests.verifier.profile.bench import Bench


@pytest.fixture(params=["bubblewrap", "landlock"])
def jail(request: pytest.FixtureRequest) -> Jail:
    try:
        return choose(request.param)
    except PrerequisiteError as error:
        pytest.skip(f"{request.param} does not work here: {error}")


@pytest.fixture(scope="module")
def bench(shared_cache: Path) -> Bench:
    try:
        toolchain.find_nvrtc()
        toolchain.find_nvdisasm()
        return Bench(Workshop(choose(), shared_cache))
    except PrerequisiteError as error:
        pytest.skip(str(error))
