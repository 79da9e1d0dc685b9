"""Launches of a Triton candidate on structures that its process was not built for."""

from __future__ import annotations

import struct

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Structure
from kernelwright.sandbox.builders.model import Built, DeviceBuilt, KernelFacts
from kernelwright.sandbox.builders.triton import TritonBuilt
from kernelwright.sandbox.plan.model import Launch, Launches, Scratch
from kernelwright.traces.records import Status
from kernelwright.verifier.failure import Failed
from kernelwright.verifier.stands.triton_candidate import _Tables

PROBLEM = registry.get("softmax")
SIZES = {"M": 4, "N": 8}


def built(*hashes: str) -> DeviceBuilt:
    """One kernel `k` in each of the cubins with these hashes."""
    cubins = tuple(Built(b"", digest, 0.0) for digest in hashes)
    kernels = tuple(
        KernelFacts("k", "k", 32, 0, 0, 0, 0, (), cubin=number) for number in range(len(hashes))
    )
    return DeviceBuilt("sm_90a", cubins, kernels)


def kernels_of(table: bytes) -> int:
    """The kernel of the first launch of a table."""
    return int(struct.unpack_from("<q", table, 8)[0])


def test_a_twin_runs_the_kernels_that_are_loaded() -> None:
    asked: list[Structure] = []

    def build(structures: tuple[Structure, ...]) -> TritonBuilt:
        asked.extend(structures)
        work = (Scratch("w", "float32", (16,)),)
        return TritonBuilt(built("second"), (Launches(("k",), (Launch(0),), work),))

    tables = _Tables(built("first", "second"), build)
    first, twin = Structure(dict(SIZES)), Structure(dict(SIZES))
    tables.add(first, Launches(("k",), (Launch(0),)))
    assert kernels_of(tables.extra(first).table) == 0
    for _ in range(2):
        found = tables.extra(twin)
        assert kernels_of(found.table) == 1
        assert found.scratch == (64,)
    assert len(asked) == 1


def test_a_twin_that_needs_another_kernel_is_not_supported() -> None:
    tables = _Tables(
        built("first"),
        lambda _: TritonBuilt(built("another"), (Launches(("k",), (Launch(0),)),)),
    )
    with pytest.raises(Failed) as refused:
        tables.extra(Structure(dict(SIZES)))
    assert refused.value.status is Status.UNSUPPORTED
