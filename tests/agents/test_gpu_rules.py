"""The rule Judge on GPU targets: it names what static and emulated figures show, with the line."""

from __future__ import annotations

import pytest

from kernelwright.agents.brains import gpu_signs as signs
from kernelwright.agents.brains.gpu_rules import TABLE
from kernelwright.agents.brains.rules import RuleJudge
from kernelwright.agents.roles import Member, Situation
from kernelwright.tests.agents.played import FACTS, problem, recipe, verdict_with
from kernelwright.traces.records import Advice, Level, Metric, Profile, Status

NAIVE = recipe("naive", vector=(1, 2, 4), unroll=(1, 2, 4), pad=(0, 1))
CRC = recipe("crc", vector=(1, 2, 4))
WMMA = recipe("wmma", pad=(0, 8))
SITUATION = Situation(
    problem=problem(), target="sm_90", language="cuda", facts=FACTS, round=1, seed=0
)
GOOD = {
    "spill_stores": 0.0,
    "grid_blocks": 4000.0,
    "occupancy": 0.75,
    "global_load_efficiency": 0.98,
    "global_store_efficiency": 1.0,
    "roofline_share": 0.4,
    "load_bytes": 16.0,
    "limit_registers": 12.0,
    "limit_shared": 40.0,
    "modelled_us": 50.0,
}


def diagnose(remarks: tuple[str, ...] = (), **figures: float) -> Advice:
    metrics = tuple(
        Metric(name=name, value=value, level=Level.EMULATED)
        for name, value in {**GOOD, **figures}.items()
    )
    verdict = verdict_with(1.0).model_copy(
        update={
            "status": Status.SCREENED,
            "measurements": (),
            "emulated": True,
            "target": "sm_90",
            "profile": Profile(metrics=metrics, remarks=remarks),
        }
    )
    knobs = {**NAIVE.first_knobs(), "vector": 2, "unroll": 2}
    member = Member("c", 1, "", "cuda", "naive", knobs, verdict)
    return RuleJudge((NAIVE, CRC, WMMA)).diagnose(member, SITUATION)


@pytest.mark.parametrize(
    ("figures", "bottleneck", "hints"),
    [
        ({"unused_tensor_peak": 14.8}, "tensor cores unused", {"family": "wmma"}),
        ({"spill_stores": 24.0}, "register spills", {"vector": [1], "unroll": [1]}),
        (
            {"shared_load_efficiency": 0.03},
            "shared-memory bank conflicts",
            {"pad": [1]},
        ),
        (
            {"global_load_efficiency": 0.125},
            "uncoalesced global loads",
            {"vector": [4], "family": "crc"},
        ),
        ({"global_store_efficiency": 0.125}, "uncoalesced global stores", {"vector": [4]}),
        ({"grid_blocks": 12.0}, "too few blocks", {}),
        ({"occupancy": 0.12}, "low occupancy", {"unroll": [1]}),
        ({"roofline_share": 0.95}, "at the modelled roofline", {}),
        ({"load_bytes": 4.0}, "narrow loads", {"vector": [4]}),
    ],
)
def test_names_the_bottleneck(
    figures: dict[str, float], bottleneck: str, hints: dict[str, object]
) -> None:
    advice = diagnose(**figures)
    assert advice.bottleneck == bottleneck
    assert advice.hints == hints
    assert set(figures) <= set(advice.rests_on)


def test_wide_accesses_take_turns_without_conflicts() -> None:
    advice = diagnose(shared_load_wavefronts_per_request=4.0, shared_load_efficiency=1.0)
    assert "conflicts" not in advice.bottleneck


def test_room_for_more_blocks_is_of_no_use_where_there_are_none() -> None:
    assert diagnose(occupancy=0.12, waves=2.0).bottleneck == "low occupancy"
    assert diagnose(occupancy=0.12, waves=0.5).bottleneck != "low occupancy"


def test_what_is_wasted_hides_what_is_merely_slow() -> None:
    assert diagnose(occupancy=0.1, global_load_efficiency=0.2).bottleneck.startswith("uncoalesced")


def test_a_product_without_tensor_cores_is_written_anew_first() -> None:
    advice = diagnose(unused_tensor_peak=14.8, spill_stores=24.0, tensor_share=0.0)
    assert advice.bottleneck == "tensor cores unused"
    assert advice.rests_on["tensor_share"] == 0.0


def test_names_the_worst_line() -> None:
    line = "line 12: 32 wavefronts per shared read, 1 would do: bank conflicts"
    advice = diagnose((line,), shared_load_efficiency=0.03)
    assert line in advice.change


def test_low_occupancy_names_the_limit() -> None:
    assert "registers limit" in diagnose(occupancy=0.1, limit_registers=1.0).change


def test_moves_a_knob_where_nothing_stands_out() -> None:
    advice = diagnose()
    assert advice.hints == {"vector": [1, 4], "unroll": [1, 4], "pad": [1]}


COUNTED = {
    signs.LOAD_BYTES: 100.0,
    signs.STORE_BYTES: 100.0,
    signs.LOAD_CONFLICTS: 0.0,
    signs.LOAD_TURNS: 1000.0,
    signs.STORE_CONFLICTS: 0.0,
    signs.STORE_TURNS: 1000.0,
    signs.LOCAL: 0.0,
    signs.EXECUTED: 1e6,
    signs.ATOMIC_UNIT: 0.0,
    signs.BUSIEST_SM: 1.1e4,
    signs.MEAN_SM: 1e4,
    signs.WARPS_ACTIVE: 70.0,
    signs.WAVES: 3.88,
    signs.DRAM: 40.0,
    signs.SM: 45.0,
    signs.ISSUE: 60.0,
    signs.TENSOR_PIPE: 1.66,
    signs.TIME_NS: 5568.0,
    signs.WAITS_FOR_MEMORY: 0.2,
    "block_threads": 256.0,
}
"""Much as an H200 counted of a good kernel (tests/verifier/profile/ncu/h200-full.csv)."""

ROWS: list[tuple[str, dict[str, float], dict[str, float]]] = [
    ("blocks smaller than a warp", {"block_threads": 1}, {"block_threads": 32}),
    (
        "tensor cores unused",
        {"unused_tensor_peak": 14.8},
        {"unused_tensor_peak": 14.8, signs.TENSOR_PIPE: 40.0},
    ),
    ("register spills", {signs.LOCAL: 2e4}, {signs.LOCAL: 1e3}),
    ("register spills", {signs.LOCAL: 2e4}, {signs.LOCAL: 0.0, "spill_stores": 8.0}),
    ("shared-memory bank conflicts", {signs.LOAD_CONFLICTS: 500.0}, {signs.LOAD_CONFLICTS: 100.0}),
    (
        "shared-memory bank conflicts",
        {signs.STORE_CONFLICTS: 500.0},
        {signs.STORE_CONFLICTS: 500.0, signs.STORE_TURNS: 1e4},
    ),
    (
        "uncoalesced global loads",
        {signs.LOAD_BYTES: 12.5},
        {signs.LOAD_BYTES: 80.0, "global_load_efficiency": 0.1},
    ),
    ("uncoalesced global stores", {signs.STORE_BYTES: 12.5}, {signs.STORE_BYTES: 70.0}),
    ("contended atomics", {signs.ATOMIC_UNIT: 80.0}, {signs.ATOMIC_UNIT: 5.0}),
    ("launches, not kernels", {"latency_us": 30.0}, {"latency_us": 8.0}),
    ("too few blocks", {"grid_blocks": 12.0}, {"grid_blocks": 132.0}),
    ("load imbalance", {signs.BUSIEST_SM: 2e4}, {signs.BUSIEST_SM: 1.4e4}),
    ("low occupancy", {signs.WARPS_ACTIVE: 12.0}, {signs.WARPS_ACTIVE: 12.0, signs.WAVES: 0.5}),
    ("a last wave that is mostly empty", {signs.WAVES: 1.1}, {signs.WAVES: 1.9}),
    ("a last wave that is mostly empty", {signs.WAVES: 2.1}, {signs.WAVES: 9.1}),
    ("at the roofline of memory", {signs.DRAM: 92.0}, {signs.DRAM: 80.0}),
    ("at the modelled roofline", {"roofline_share": 0.9}, {"roofline_share": 0.8}),
    ("instructions issued", {signs.ISSUE: 92.0}, {signs.ISSUE: 70.0}),
    ("narrow loads", {"load_bytes": 4.0}, {"load_bytes": 8.0}),
    (
        "waiting for memory",
        {signs.WAITS_FOR_MEMORY: 0.5},
        {signs.WAITS_FOR_MEMORY: 0.5, signs.DRAM: 75.0},
    ),
]
"""Bottleneck, figures by which it is found, and figures close to these by which it must not be."""


@pytest.mark.parametrize(("bottleneck", "fires", "near"), ROWS)
def test_each_rule_fires_on_counters_and_not_beside_its_limit(
    bottleneck: str, fires: dict[str, float], near: dict[str, float]
) -> None:
    told = diagnose(**{**COUNTED, **fires})
    assert told.bottleneck == bottleneck
    assert set(fires) <= set(told.rests_on)
    assert diagnose(**{**COUNTED, **near}).bottleneck != bottleneck


def test_every_rule_of_the_table_is_held_and_names_its_page() -> None:
    assert {rule.bottleneck for rule in TABLE} == {row[0] for row in ROWS}
    assert all(len(rule.source) > 20 for rule in TABLE)


@pytest.mark.parametrize(
    ("bottleneck", "fires", "near"),
    [
        (
            "contended atomics",
            {"atomic_lanes_per_sector": 32.0, "atomic_share": 0.3},
            {"atomic_lanes_per_sector": 8.0, "atomic_share": 0.3},
        ),
        ("load imbalance", {"warp_imbalance": 9.0}, {"warp_imbalance": 1.4}),
        (
            "launches, not kernels",
            {"launches": 8.0, "launching_us": 30.0},
            {"launches": 1.0, "launching_us": 30.0},
        ),
        ("waiting for memory", {"model_latency_us": 30.0}, {"model_latency_us": 10.0}),
        ("instructions issued", {"model_issue_us": 45.0}, {"model_issue_us": 20.0}),
        ("a last wave that is mostly empty", {"waves": 1.2}, {"waves": 2.0}),
    ],
)
def test_without_counters_the_emulation_and_the_model_speak(
    bottleneck: str, fires: dict[str, float], near: dict[str, float]
) -> None:
    assert diagnose(**fires).bottleneck == bottleneck
    assert diagnose(**near).bottleneck != bottleneck


def test_a_counter_that_says_no_outvotes_a_guess_from_the_code() -> None:
    assert diagnose(global_load_efficiency=0.1).bottleneck == "uncoalesced global loads"
    counted = diagnose(**{**COUNTED, "global_load_efficiency": 0.1})
    assert counted.bottleneck != "uncoalesced global loads"
