"""The rule Judge on GPU targets: it names what static and emulated figures show, with the line."""

from __future__ import annotations

import pytest

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
