from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders.triton import TritonBuilder
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail


@pytest.fixture(params=["bubblewrap", "landlock"])
def jail(request: pytest.FixtureRequest) -> Jail:
    try:
        return choose(request.param)
    except PrerequisiteError as error:
        pytest.skip(f"{request.param} does not work here: {error}")


@pytest.fixture
def any_jail() -> Jail:
    try:
        return choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonBuilder]:
    try:
        jail = choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")
    cache = tmp_path_factory.mktemp("cache")
    with TritonBuilder(Workshop(jail, cache), architecture("sm_90"), timeout_s=120.0) as made:
        yield made
