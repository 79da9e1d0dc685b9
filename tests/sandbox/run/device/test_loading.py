"""Code that a driver does not load is nobody's candidate's fault: it is told as ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import cuda
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.run.process import RunFault
from kernelwright.traces.records import Status

pytestmark = pytest.mark.jail

if TYPE_CHECKING:
    from .conftest import Stage

NOTHING = 'extern "C" __global__ void nothing(const float* x, float* y) {}'


def assert_loads_or_refuses(stage: Stage, image: bytes, error: str) -> None:
    """Loads it, which the driver refuses with this error; none: it does not."""
    if not error:
        stage.start({"nothing": 2}, image=image)
        return
    with pytest.raises(RunFault, match=f"what our compiler makes .*{error}") as found:
        stage.start({"nothing": 2}, image=image)
    assert found.value.status is Status.HARNESS_ERROR


@pytest.mark.parametrize(
    ("driver", "image", "error"),
    [
        ("", b"not a cubin", "CUDA_ERROR_INVALID_IMAGE"),
        ("", b"FAKE sm_90", ""),
        ("", b"FAKE sm_80", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("sm=89", b"FAKE sm_86", ""),
        ("sm=86", b"FAKE sm_89", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        # Within a major release an older driver loads cubins, and no newer PTX.
        ("driver=13000", b"FAKE sm_90 release 13.5", ""),
        ("driver=13000", b".version 9.1", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
        ("driver=12080", b"FAKE sm_90 release 13.0", "CUDA_ERROR_INVALID_IMAGE"),
        ("driver=12080", b"FAKE sm_90 release 12.9", ""),
    ],
)
def test_a_driver_loads_its_own_and_older_releases(
    stage_for: Callable[..., Stage], driver: str, image: bytes, error: str
) -> None:
    assert_loads_or_refuses(stage_for(driver), image, error)


@pytest.fixture(scope="module")
def built(cache: Path) -> Callable[[str], bytes]:
    def make(target: str) -> bytes:
        try:
            found = cuda.build(
                Workshop(BareJail(), cache), NOTHING, ("nothing",), architecture(target)
            )
        except PrerequisiteError as error:
            pytest.skip(str(error))
        assert isinstance(found, DeviceBuilt)
        return found.cubins[0].artefact

    return make


@pytest.mark.parametrize(
    ("driver", "target", "error"),
    [
        ("", "sm_90", ""),
        ("", "sm_80", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("sm=100", "sm_100", ""),
        ("driver=12080", "sm_90", "CUDA_ERROR_INVALID_IMAGE"),
    ],
)
def test_so_it_is_with_cubins_of_the_compiler_that_is_here(
    stage_for: Callable[..., Stage],
    built: Callable[[str], bytes],
    driver: str,
    target: str,
    error: str,
) -> None:
    assert_loads_or_refuses(stage_for(driver), built(target), error)
