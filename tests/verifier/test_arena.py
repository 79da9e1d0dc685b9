"""The data plane: what is writable for whom, and that guard bands surround every output."""

from __future__ import annotations

import itertools
import mmap
import os
import stat

import numpy as np
import pytest

from kernelwright.errors import SandboxError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.run.arena import ALIGN, GUARD_BYTES, Arena, Fence, footprint
from kernelwright.sandbox.run.call_table import MAX_SLOTS
from kernelwright.verifier.truth import poison


@pytest.fixture
def problem():
    return registry.get("spmm_csr")


@pytest.fixture
def structure(problem):
    return problem.structure(problem.workload("tiny"))


def arena_for(problem, structure, calls):
    inputs, outputs = footprint(problem, structure.axes)
    return Arena(calls * inputs, calls * outputs)


def test_the_process_gets_its_inputs_read_only(problem, structure):
    with arena_for(problem, structure, 1) as arena:
        arena.place(problem, structure)
        inputs, outputs = arena.open_fds()
        try:
            with pytest.raises(PermissionError):
                mmap.mmap(inputs, arena.sizes[0], prot=mmap.PROT_READ | mmap.PROT_WRITE)
            with pytest.raises(OSError, match="not permitted"):
                os.ftruncate(outputs, 4096)
        finally:
            os.close(inputs)
            os.close(outputs)


def test_tensors_do_not_overlap_and_index_arrays_are_written(problem, structure):
    with arena_for(problem, structure, 3) as arena:
        slots = [arena.place(problem, structure) for _ in range(3)]
        spans = sorted(
            (r.offset, r.offset + r.bytes) for slot in slots for r in slot.input_regions.values()
        )
        assert all(b[0] - a[1] >= GUARD_BYTES for a, b in itertools.pairwise(spans))
        for slot in slots:
            assert np.array_equal(slot.inputs["indptr"], structure.arrays["indptr"])
        del slots, slot


def test_more_calls_than_room_is_an_error_of_the_harness(problem, structure):
    with arena_for(problem, structure, 2) as arena:
        arena.place(problem, structure)
        arena.place(problem, structure)
        assert not arena.fits(problem, structure.axes)
        with pytest.raises(SandboxError, match="no room"):
            arena.place(problem, structure)
    assert MAX_SLOTS >= 12


def test_closing_twice_leaves_what_others_have_opened_since() -> None:
    arena = Arena(1 << 16, 1 << 16)
    arena.close()
    # The lowest free numbers: those that the arena had.
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
    arena.close()
    for fd in others:
        assert stat.S_ISCHR(os.fstat(fd).st_mode)
        os.close(fd)


@pytest.mark.parametrize("fence", [Fence.BEFORE, Fence.AFTER])
@pytest.mark.parametrize("name", registry.names())
def test_a_fenced_tensor_has_pages_of_its_own_and_touches_their_border(name, fence):
    problem = registry.get(name)
    target = problem.structure(problem.workload("tiny"))
    page, rng = mmap.PAGESIZE, np.random.default_rng(5)
    for shape in itertools.islice(problem.variations(target, rng), 12):
        inputs, outputs = footprint(problem, shape.axes)
        with Arena(inputs + 4096, outputs + 4096) as arena:
            arena.reset(int(rng.integers(4096)))
            slot = arena.place(problem, shape, fence)
            for regions, size in zip(
                (slot.input_regions, slot.output_regions), arena.sizes, strict=True
            ):
                # Of each tensor: its first page and the one behind its last.
                pages = sorted(
                    (r.offset // page, -(-(r.offset + r.bytes) // page)) for r in regions.values()
                )
                assert all(b[0] - a[1] >= 2 for a, b in itertools.pairwise(pages))
                assert pages[0][0] >= 1
                assert (pages[-1][1] + 1) * page <= size
                for region in regions.values():
                    assert region.offset % ALIGN == 0
                    gap = -(region.offset + region.bytes) % page
                    assert gap < ALIGN if fence is Fence.AFTER else region.offset % page == 0
            assert arena.guards(slot)
            with pytest.raises(SandboxError, match="no room"):
                arena.place(problem, shape, fence)
            del slot


def test_around_a_fenced_input_there_is_nothing_to_calculate_with(problem, structure):
    with arena_for(problem, structure, 1) as arena:
        slot = arena.place(problem, structure, Fence.BEFORE)
        inputs, outputs = arena.open_fds()
        with mmap.mmap(inputs, arena.sizes[0], prot=mmap.PROT_READ) as memory:
            region = slot.input_regions["values"]
            end = region.offset + region.bytes
            behind = np.frombuffer(
                memory[end : -(-end // mmap.PAGESIZE) * mmap.PAGESIZE], np.float32
            )
        assert behind.size
        assert np.isnan(behind).all()
        for fd in (inputs, outputs):
            os.close(fd)
        del slot


@pytest.mark.parametrize(("where", "offset"), [("before C", -1), ("after C", 0)])
def test_one_byte_beside_an_output_is_seen(problem, structure, where, offset):
    rng = np.random.default_rng(1)
    with arena_for(problem, structure, 1) as arena:
        slot = arena.place(problem, structure)
        marks = poison.Marks(poison.choose(rng))
        for name, band in arena.guards(slot):
            marks.guard(slot.index, name, band, rng)
        assert marks.check(slot.index).passed
        band = dict(arena.guards(slot))[where]
        band[offset] ^= 1
        check = marks.check(slot.index)
        assert not check.passed
        assert where in check.detail
        del slot, band, marks, name


@pytest.mark.parametrize("offset", [0, 5000, -1])
def test_a_byte_anywhere_else_in_the_memory_of_outputs_is_seen(problem, structure, offset):
    rng = np.random.default_rng(2)
    with arena_for(problem, structure, 3) as arena:
        for shift in (0, 640, 64):
            arena.reset(shift)
            slot = arena.place(problem, structure)
            parts = dict(arena.surroundings(slot))
            assert set(parts) <= {"before C", "after C"}
            around = sum(part.size for part in parts.values()) + 2 * GUARD_BYTES
            assert around + slot.outputs["C"].nbytes == arena.sizes[1]
            assert len({byte for part in parts.values() for byte in part.tobytes()}) == 1
            slot.outputs["C"].fill(7)
            for _, band in arena.guards(slot):
                band.fill(9)
        marks = poison.Marks(poison.choose(rng))
        for where, part in parts.items():
            marks.watch(slot.index, where, part, GUARD_BYTES)
        assert marks.check(slot.index).passed
        rest = parts["after C"]
        rest[offset] ^= 1
        check = marks.check(slot.index)
        assert not check.passed
        assert f"{GUARD_BYTES + offset % rest.size} bytes after C" in check.detail
        del slot, parts, part, marks, rest, band


def test_poison_is_a_nan_in_every_element():
    output = np.zeros((7, 5), dtype=np.float32)
    for pattern in poison.PATTERNS:
        poison.fill(output, pattern)
        assert np.isnan(output).all()
        assert (output.view(np.uint32) == pattern).all()
