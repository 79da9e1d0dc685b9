"""Occupancy against known cases, and what must hold of any."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.kernelbench.targets import ARCHITECTURES, architecture
from kernelwright.verifier.profile.occupancy import Demand, Term, occupancy


@pytest.mark.parametrize(
    ("chip", "threads", "registers", "shared", "blocks", "limiting"),
    [
        ("sm_90", 256, 32, 0, 8, {Term.WARPS, Term.REGISTERS}),
        ("sm_90", 256, 48, 0, 5, {Term.REGISTERS}),
        ("sm_90", 256, 40, 0, 6, {Term.REGISTERS}),
        ("sm_90", 1024, 64, 0, 1, {Term.REGISTERS}),
        ("sm_90", 1024, 65, 0, 0, {Term.REGISTERS}),
        ("sm_90", 32, 16, 0, 32, {Term.BLOCKS}),
        # 227 KB and the reserved one are the whole SM; one byte more is refused.
        ("sm_90", 128, 32, 227 << 10, 1, {Term.SHARED}),
        ("sm_90", 128, 32, (227 << 10) + 1, 0, {Term.SHARED}),
        ("sm_90", 128, 32, 113 << 10, 2, {Term.SHARED}),
        ("sm_80", 128, 32, 40 << 10, 4, {Term.SHARED}),
        ("sm_86", 256, 32, 0, 6, {Term.WARPS}),
        ("sm_89", 1024, 32, 0, 1, {Term.WARPS}),
        ("sm_75", 128, 32, 64 << 10, 1, {Term.SHARED}),
        ("sm_75", 1024, 64, 0, 1, {Term.WARPS, Term.REGISTERS}),
        ("sm_120", 64, 255, 0, 4, {Term.REGISTERS}),
    ],
)
def test_known_cases(
    chip: str, threads: int, registers: int, shared: int, blocks: int, limiting: set[Term]
) -> None:
    found = occupancy(Demand(threads, registers, shared), architecture(chip))
    assert found.blocks == blocks
    assert set(found.limiting) == limiting
    assert found.warps == blocks * -(-threads // 32)
    assert found.share == found.warps / architecture(chip).max_warps


def test_the_next_step_is_said() -> None:
    found = occupancy(Demand(256, 48, 0), architecture("sm_90"))
    assert found.next_step == "40 instead of 48 registers would give 6 blocks per SM"
    both = occupancy(Demand(128, 255, 100_000), architecture("sm_90")).next_step
    assert both.startswith("168 instead of 255 registers and 76800 instead of 100000 bytes")
    assert "larger blocks" in occupancy(Demand(32, 16, 0), architecture("sm_90")).next_step
    assert occupancy(Demand(1024, 32, 0), architecture("sm_90")).next_step == ""
    assert "16 warps" in occupancy(Demand(1024, 32, 0), architecture("sm_89")).next_step


demands = st.builds(Demand, st.integers(1, 1024), st.integers(1, 255), st.integers(0, 240 << 10))
chips = st.sampled_from(sorted(ARCHITECTURES))


@given(demands, chips)
def test_what_is_resident_fits(demand: Demand, name: str) -> None:
    chip = architecture(name)
    demand = replace(demand, warp=chip.warp)
    found = occupancy(demand, chip)
    assert found.warps <= chip.max_warps
    assert found.blocks <= chip.max_blocks
    assert found.warps * demand.registers * chip.warp <= chip.registers.total
    assert found.blocks * (demand.shared_bytes + chip.shared_reserved) <= chip.shared_per_sm
    assert 0 <= found.share <= 1


@given(demands, chips)
def test_who_takes_less_is_not_worse_off(demand: Demand, name: str) -> None:
    chip = architecture(name)
    demand = replace(demand, warp=chip.warp)
    fewer = replace(
        demand,
        registers=max(1, demand.registers - 9),
        shared_bytes=demand.shared_bytes // 2,
    )
    assert occupancy(fewer, chip).blocks >= occupancy(demand, chip).blocks


@given(demands, chips)
def test_the_next_step_keeps_its_promise(demand: Demand, name: str) -> None:
    demand = replace(demand, warp=architecture(name).warp)
    found = occupancy(demand, architecture(name))
    promised = re.search(r"would give (\d+) blocks", found.next_step)
    if promised is None:
        return
    registers = re.search(r"(\d+) instead of \d+ registers", found.next_step)
    shared = re.search(r"(\d+) instead of \d+ bytes", found.next_step)
    after = Demand(
        demand.threads,
        int(registers[1]) if registers else demand.registers,
        int(shared[1]) if shared else demand.shared_bytes,
        demand.warp,
    )
    assert after != demand
    assert occupancy(after, architecture(name)).blocks >= int(promised[1]) > found.blocks
