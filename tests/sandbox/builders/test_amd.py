"""Triton candidates become AMD's code objects with what they say of themselves; no GPU is here."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import code_object
from kernelwright.sandbox.builders.cubin import CubinError
from kernelwright.sandbox.builders.triton import TritonBuilder
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.tests.sandbox.builders.triton_sources import HOST, PLAN, built, failed

ARCHITECTURES = ("gfx942", "gfx950", "gfx1201")


@pytest.fixture(scope="module", params=ARCHITECTURES)
def amd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TritonBuilder]:
    try:
        jail = choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")
    cache = tmp_path_factory.mktemp("cache")
    with TritonBuilder(Workshop(jail, cache), architecture(request.param)) as made:
        yield made


@pytest.mark.parametrize("source", [PLAN, HOST], ids=["plan", "host code"])
def test_a_softmax_becomes_a_launch(amd: TritonBuilder, source: str) -> None:
    found = built(amd, source)
    (launches,), (facts,), (code,) = found.launches, found.device.kernels, found.device.cubins
    (launch,) = launches.launches
    assert (launch.grid, launch.block) == ((64, 1, 1), (8 * amd.architecture.warp, 1, 1))
    assert launch.shared_bytes > 0
    assert found.device.architecture == amd.architecture.name
    assert (facts.symbol, facts.parameters) == ("softmax", (8, 8, 4, 4, 8, 8))
    assert facts.max_threads == 8 * amd.architecture.warp
    assert 4 <= facts.registers <= amd.architecture.registers.most
    assert facts.scalars > 0
    assert (facts.spill_stores, facts.stack_bytes) == (0, 0)
    assert code.artefact[:4] == b"\x7fELF"
    assert f"amdhsa-unknown-{amd.architecture.name}" in code.listing


def test_the_note_says_what_the_assembly_says(amd: TritonBuilder) -> None:
    (code,) = built(amd, PLAN).device.cubins
    (kernel,) = code_object.entries(code.artefact).values()
    told = {
        name: int(re.findall(rf"\.{name}:\s+(\d+)", code.listing)[0])
        for name in ("vgpr_count", "sgpr_count", "private_segment_fixed_size")
    }
    assert told == {
        "vgpr_count": kernel.registers,
        "sgpr_count": kernel.scalars,
        "private_segment_fixed_size": kernel.stack_bytes,
    }


def test_what_is_kept_is_found_again_with_its_assembly(amd: TritonBuilder) -> None:
    first, again = built(amd, HOST).device, built(amd, HOST).device
    assert again.is_cached
    assert again.kernels == first.kernels
    assert [one.listing for one in again.cubins] == [one.listing for one in first.cubins]


def test_host_code_is_told_that_the_device_is_amds(amd: TritonBuilder) -> None:
    asked = f"""
assert torch.version.hip and not torch.version.cuda
assert triton.runtime.driver.active.get_current_target().backend == "hip"
assert torch.cuda.get_device_properties(0).gcnArchName == "{amd.architecture.name}"
assert torch.cuda.get_device_properties(0).warp_size == {amd.architecture.warp}
assert torch.cuda.get_device_capability() == {amd.architecture.version}
"""
    built(amd, HOST + asked)


def test_clusters_are_refused(amd: TritonBuilder) -> None:
    wrong = failed(amd, HOST.replace("num_warps=8", "num_warps=8, num_ctas=2"))
    assert "num_ctas" in wrong


def test_a_damaged_code_object_is_no_exception_of_another_kind(amd: TritonBuilder) -> None:
    whole = built(amd, PLAN).device.cubins[0].artefact
    at = whole.index(b"amdhsa.kernels")
    for end in range(at, at + 400, 7):
        with pytest.raises(CubinError):
            code_object.entries(whole[:end])
    for place in range(at - 40, at + 400, 5):
        try:
            code_object.entries(whole[:place] + b"\xc1" + whole[place + 1 :])
        except CubinError:
            continue
