"""The figures that prompts show: each defined, none without meaning, and lines quoted."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.agents.prompting.figures import (
    busy_machine,
    profile,
    shown_figures,
    with_lines,
)
from kernelwright.tests.agents.brains.answers import SOURCE, passed, situation
from kernelwright.traces.metric_words import figure_words
from kernelwright.traces.records import (
    MODELLED_US,
    Level,
    Measurement,
    Metric,
    Profile,
    Speedup,
    Timing,
)
from kernelwright.verifier import profile as profiles
from kernelwright.verifier.profile.metrics import load_packaged

BY_HAND = SOURCE.replace("y[0] = x[0];", "_mm512_storeu_ps(y, _mm512_loadu_ps(x));")


def figures(source: str = SOURCE, language: str = "cpp", **values: float) -> dict[str, float]:
    metrics = tuple(Metric(name=name, value=value) for name, value in values.items())
    now = situation("softmax", language)
    return shown_figures(passed(source, now, profile=Profile(metrics=metrics), measurements=()))


def test_every_figure_that_a_profile_has_is_defined() -> None:
    folder = Path(profiles.__file__).parent
    text = "\n".join(file.read_text() for file in folder.glob("*.py"))
    named = set(re.findall(r'Metric\(\s*name="(\w+)"', text))
    assert len(named) > 20
    assert named <= figure_words().keys()


def test_every_static_figure_of_tensor_cores_is_defined() -> None:
    assert set(load_packaged().static) <= figure_words().keys()


def test_a_judge_is_told_that_tensor_cores_are_unused() -> None:
    now = situation("gemm_f16", "cuda")
    remark = "no kernel uses tensor cores: the policy fp32-sums allows products in fp16 on them"
    known = Profile(
        metrics=(
            Metric(name="tensor_share", value=0.0),
            Metric(
                name="unused_tensor_peak",
                value=14.8,
                unit="times float32's",
                level=Level.MODELLED,
            ),
            Metric(name=MODELLED_US, value=29.0, level=Level.MODELLED),
        ),
        remarks=(remark,),
    )
    told = profile(passed(SOURCE, now, profile=known, measurements=(), emulated=True), now, "1/0")
    assert "- unused_tensor_peak = 14.8 times float32's (modelled): no kernel uses the" in told
    assert remark in told


@pytest.mark.parametrize("meaning", figure_words().values())
def test_a_meaning_is_a_short_line(meaning: str) -> None:
    assert 0 < len(meaning.split()) <= 20
    assert "\n" not in meaning


def test_what_is_zero_undefined_or_decides_nothing_is_not_shown() -> None:
    shown = figures(
        language="cuda",
        atomics=0.0,
        registers=40.0,
        riddle=7.0,
        occupancy=0.5,
        least_occupancy=0.5,
        blocks_per_sm=12.0,
        limit_registers=12.0,
        limit_warps=16.0,
        model_memory_us=8.0,
        model_fp16_us=0.1,
        stall__sum=3.0,
        **{MODELLED_US: 10.5},
    )
    assert list(shown) == [
        "registers",
        "occupancy",
        "blocks_per_sm",
        "limit_registers",
        "model_memory_us",
        "stall__sum",
        MODELLED_US,
    ]


def test_what_ran_is_shown_before_what_the_code_holds() -> None:
    code = {"instructions": 900.0, "loop_instructions": 700.0, "integer_share": 0.2}
    ran = {"executed_instructions": 1e6, "executed_fp32": 6e5, "executed_other": 1e4}
    assert figures(language="cuda", **code) == code
    assert list(figures(language="cuda", **code, **ran)) == [
        "integer_share",
        "executed_instructions",
        "executed_fp32",
    ]


@pytest.mark.parametrize(("waves", "is_told"), [(0.9, False), (1.0, False), (1.1, True)])
def test_what_limits_occupancy_is_told_where_blocks_wait(waves: float, is_told: bool) -> None:
    shown = figures(language="cuda", blocks_per_sm=4.0, limit_shared=4.0, waves=waves)
    assert ("limit_shared" in shown) == is_told


@pytest.mark.parametrize("launches", [1.0, 2.0])
def test_one_launch_is_not_told(launches: float) -> None:
    assert ("launches" in figures(language="cuda", launches=launches)) == (launches > 1)


def test_the_vectoriser_has_nothing_to_say_of_vectors_by_hand() -> None:
    loops = {"vectorised_loops": 0.0, "missed_loops": 2.0}
    assert figures(SOURCE, **loops) == loops
    assert figures(BY_HAND, **loops) == {}
    now = situation()
    for source, is_told in ((SOURCE, True), (BY_HAND, False)):
        known = Profile(remarks=("2: not vectorized: control flow",))
        told = profile(passed(source, now, profile=known), now, "1/0")
        assert ("control flow" in told) == is_told
        assert ("   2 | y[0] = x[0];" in told) == is_told


def test_a_figure_is_told_with_unit_origin_and_meaning() -> None:
    now = situation()
    told = profile(passed(SOURCE, now), now, "1/0")
    assert "- cpu_time_us = 160 µs (measured): CPU time of one call, all threads together" in told
    assert "- roofline = 0.43 (measured): roofline_floor_us / latency_us" in told


def test_an_emulated_candidate_lacks_no_counters_one_by_one() -> None:
    now = situation("softmax", "cuda")
    known = Profile(metrics=(Metric(name=MODELLED_US, value=9.0, level=Level.MODELLED),))
    told = profile(passed(SOURCE, now, profile=known, measurements=(), emulated=True), now, "1/0")
    assert "nothing ran on a device" in told
    assert "__" not in told


def timed(cpu_us: float | None, low: float, high: float) -> Measurement:
    return Measurement(
        workload="tiny",
        candidate=Timing(median_us=100.0, low_us=90.0, high_us=110.0),
        speedup={"torch": Speedup(median=(low + high) / 2, low=low, high=high)},
        best_baseline="torch",
        cpu_us=cpu_us,
        threads=2,
    )


@pytest.mark.parametrize(
    ("measured", "is_busy"),
    [
        (timed(26.0, 1.0, 2.0), True),
        (timed(190.0, 1.0, 2.0), False),
        (timed(26.0, 1.0, 1.1), False),
        (timed(None, 1.0, 2.0), False),
    ],
)
def test_a_busy_machine_is_named(measured: Measurement, is_busy: bool) -> None:
    warning = busy_machine(measured)
    assert bool(warning) == is_busy
    if is_busy:
        assert "13%" in warning


def test_lines_that_are_named_are_quoted() -> None:
    source = "one\n\n  three\nfour\n"
    assert with_lines("line 3: a race", source) == (
        "line 3: a race\nThe lines named:\n   3 | three"
    )
    told = with_lines("spills in loops at lines 1, 4, 99\n3: not vectorized", source)
    assert told.endswith("   1 | one\n   3 | three\n   4 | four")
    assert with_lines("no line is named, 3 are wrong", source).count("\n") == 0
    assert with_lines("line 2: empty", source) == "line 2: empty"


def test_rates_of_an_unmeasured_member_are_not_invented() -> None:
    now = situation()
    member = passed(SOURCE, now)
    bare = replace(member, verdict=member.verdict.model_copy(update={"measurements": ()}))
    assert "cpu_time_us" in shown_figures(member)
    assert "cpu_time_us" not in shown_figures(bare)
