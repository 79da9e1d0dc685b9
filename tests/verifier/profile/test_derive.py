"""Metrics derived from data whose answer is known, and from data that was recorded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelwright
from kernelwright.errors import UsageError
from kernelwright.verifier.profile import metrics_file
from kernelwright.verifier.profile.derive import Fate, MeasuredSample, derive, read_samples
from kernelwright.verifier.profile.metrics import catalogue

RECORDED = Path(__file__).parent / "recorded"
TUNING = Path(kernelwright.__file__).parent.parent / "shared" / "data" / "tuning"
RECORD = Path(__file__).parents[3] / "benchmarks" / "records" / "h200-2026-11-27.jsonl"
TASKS = ("spmm/a", "gemm/b", "conv/c")


def synthetic(count: int = 40, seed: int = 5) -> list[MeasuredSample]:
    """Candidates whose times hang on a few hidden quantities."""
    rng = np.random.default_rng(seed)
    found = []
    for number, task in enumerate(TASKS):
        log_time = rng.uniform(2, 8, count)
        scatter = rng.normal(size=(count, 8))
        for i, t in enumerate(log_time):
            stall = t + 0.3 * scatter[i, 0]
            metrics = {
                "stall": stall,
                "stall_in_percent": 100 * stall + 0.01 * scatter[i, 1],
                "hit_rate": 90 - 8 * t + 7 * scatter[i, 2],
                "occupancy": -t + 1.0 * scatter[i, 3],
                "divergence": t + 1.5 * scatter[i, 4],
                "changes_its_sign": (t if number else -t) + 0.3 * scatter[i, 5],
                "noise": scatter[i, 6],
                "noise_too": scatter[i, 7],
                "duration_ns": 1e3 * np.exp(t),
                "rate_gbs": 7e4 / np.exp(t),
                "warp_size": 32.0,
            }
            if number == 0:
                metrics["of_one_task"] = t + 0.2 * scatter[i, 6]
            found.append(MeasuredSample(task, "sm_90", ("x",), float(np.exp(t)), metrics))
    return found


def fates(samples: list[MeasuredSample], **more: float) -> dict[str, Fate]:
    return {one.name: one.fate for one in derive(samples, **more).ranked}  # type: ignore[arg-type]


def test_the_known_answer_is_found() -> None:
    assert fates(synthetic(), quantile=0.5) == {
        "stall": Fate.KEPT,
        "stall_in_percent": Fate.COLLINEAR,
        "hit_rate": Fate.KEPT,
        "occupancy": Fate.KEPT,
        "divergence": Fate.WEAK,
        "changes_its_sign": Fate.UNSTABLE,
        "noise": Fate.WEAK,
        "noise_too": Fate.UNSTABLE,
        "duration_ns": Fate.ALIAS,
        "rate_gbs": Fate.ALIAS,
        "warp_size": Fate.FLAT,
        "of_one_task": Fate.ONCE,
    }


def test_signs_and_strengths_are_told() -> None:
    ranked = {one.name: one for one in derive(synthetic()).ranked}
    assert all(r > 0.9 for r in ranked["stall"].r.values())
    assert all(r < -0.8 for r in ranked["hit_rate"].r.values())
    assert ranked["stall_in_percent"].note == "with stall"
    assert ranked["stall"].strength > ranked["occupancy"].strength
    assert set(ranked["stall"].r) == set(TASKS)


def test_only_the_extremes_are_looked_at() -> None:
    samples = synthetic(count=40)
    found = derive(samples)
    assert set(found.tasks.values()) == {10}
    by_time = sorted((s for s in samples if s.task == TASKS[0]), key=lambda s: s.time_us)
    middle = by_time[5:-5]
    for sample in middle:
        spoilt = sample._replace(metrics={**sample.metrics, "divergence": -sample.time_us})
        samples[samples.index(sample)] = spoilt
    assert derive(samples).ranked == found.ranked


def test_a_task_with_few_candidates_says_nothing() -> None:
    samples = synthetic()
    few = [s._replace(task="few/d") for s in samples[:3]]
    assert derive([*samples, *few]).left_out == {"few/d": "3 measured candidates, 6 are needed"}
    with pytest.raises(UsageError, match=r"few/d: 3 measured candidates.*6 are needed"):
        derive(few)
    with pytest.raises(UsageError, match="none was measured"):
        derive([])


def test_candidates_without_common_metrics_say_nothing() -> None:
    samples = [s._replace(metrics={f"only{i}": 1.0}) for i, s in enumerate(synthetic(count=8))]
    with pytest.raises(UsageError, match="no metric is told by 6 of its 8 candidates"):
        derive(samples)


def test_counters_that_only_some_candidates_have_count_for_these() -> None:
    """A campaign reads counters of what its Judge looks at, and of the rest the build alone."""
    samples = synthetic(count=40)
    whole = {one.name: one for one in derive(samples).ranked}
    of_the_build = ("occupancy", "divergence")
    mixed = [
        sample
        if at % 3 == 0
        else sample._replace(metrics={name: sample.metrics[name] for name in of_the_build})
        for at, sample in enumerate(samples)
    ]
    found = {one.name: one for one in derive(mixed).ranked}
    assert found["stall"].fate is Fate.KEPT
    assert set(found["stall"].r) == set(whole["stall"].r)
    assert all(r > 0.9 for r in found["stall"].r.values())
    # What all tell is held against all.
    assert found["occupancy"].r == whole["occupancy"].r


@settings(max_examples=25, deadline=None)
@given(
    order=st.randoms(use_true_random=False),
    scale=st.floats(1e-3, 1e3),
    name=st.sampled_from(["stall", "hit_rate", "occupancy"]),
)
def test_neither_order_nor_units_matter(order: object, scale: float, name: str) -> None:
    samples = synthetic(count=12)
    expected = set(derive(samples).kept)
    changed = [s._replace(metrics={**s.metrics, name: scale * s.metrics[name]}) for s in samples]
    order.shuffle(changed)  # type: ignore[attr-defined]
    assert set(derive(changed).kept) == expected


def test_samples_are_read_from_lines() -> None:
    line = json.dumps(
        {"task": "a/b", "target": "sm_90", "time_us": 3, "metrics": {"m": 1, "n": None}}
    )
    (sample,) = read_samples([line, "", "  "], "file")
    assert sample == MeasuredSample("a/b", "sm_90", (), 3.0, {"m": 1.0})


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "3",
        "{}",
        '{"task": "a", "time_us": 0, "metrics": {}}',
        '{"task": "a", "time_us": 1, "metrics": {"m": "x"}}',
        '{"task": "a", "time_us": 1, "metrics": 4}',
    ],
)
def test_lines_that_are_no_samples_are_named(line: str) -> None:
    with pytest.raises(UsageError, match=r"there:2 is no sample"):
        read_samples(["", line], "there")


def test_what_was_derived_is_what_a_judge_is_fed(tmp_path: Path) -> None:
    result = derive(synthetic())
    metrics_file.write(tmp_path, "sm_90", "sparse", result.kept, result.tasks)
    metrics_file.write(tmp_path, "cpu", "any", ["imbalance"], {"spmm/a": 9})
    path = metrics_file.write(tmp_path, "sm_90", "dense", ['odd "name"\t'], {})
    assert path == tmp_path / "metrics.toml"
    found = catalogue(tmp_path)
    assert found.judge_metrics("sm_90", ["sparse"]) == result.kept
    assert found.judge_metrics("sm_90", ["dense"]) == ('odd "name"\t',)
    assert found.judge_metrics("cpu", ["sparse"]) == ("imbalance",)
    assert found.judge_metrics("sm_80", ["sparse"]) == catalogue().judge_metrics(
        "sm_80", ["sparse"]
    )


def test_recorded_candidates_of_the_cpu() -> None:
    """Profiles of campaigns on a machine with two CPUs; one task has enough candidates."""
    text = (RECORDED / "cpu.jsonl").read_text()
    found = derive(read_samples(text.splitlines(), "cpu.jsonl"), quantile=0.5)
    fate = {one.name: one.fate for one in found.ranked}
    # Rates over declared work are the time itself and must not be fed back as an explanation.
    assert {fate[name] for name in ("latency_us", "achieved_gbs", "achieved_gflops")} == {
        Fate.ALIAS
    }
    assert found.kept
    assert not set(found.kept) & {"latency_us", "achieved_gbs", "achieved_gflops"}


def test_no_clock_of_a_recorded_device_is_kept() -> None:
    """By correlation alone two would be: cycles and durations go with the time by 0.97."""
    samples = []
    for line in RECORD.read_text("utf-8").splitlines():
        one = json.loads(line)
        if one.get("us") and one.get("launches"):
            figures = one["launches"][0]["figures"]
            samples.append(MeasuredSample(one["problem"], "sm_90", (), one["us"], figures))
    found = derive(samples)
    ranked = {one.name: one.fate for one in found.ranked}
    assert ranked["gpu__time_duration.sum"] is Fate.ALIAS
    assert ranked["sm__cycles_active.avg"] is Fate.ALIAS
    assert "dram__throughput.avg.pct_of_peak_sustained_elapsed" in found.kept
    assert not any("cycles_active.avg" in name for name in found.kept)


def tuning_samples(device: str) -> list[MeasuredSample]:
    packed = (TUNING / f"convolution_{device}.json.gz").read_bytes()
    content = json.loads(gzip.decompress(packed))
    knobs = [k for k, values in content["tune_params"].items() if len(values) > 1]
    found = []
    for entry in content["cache"].values():
        if isinstance(entry["time"], str):
            continue
        values = {k: float(entry[k]) for k in knobs}
        values["threads"] = values["block_size_x"] * values["block_size_y"]
        values["elements_per_thread"] = values["tile_size_x"] * values["tile_size_y"]
        values["gflops"] = 1e3 / entry["time"]
        found.append(MeasuredSample(device, "tuned", (), 1e3 * entry["time"], values))
    return found


def test_recorded_tuning_spaces_of_three_devices() -> None:
    """12,000 measured configurations of one kernel: what its slow ones have in common."""
    if not TUNING.is_dir():
        pytest.skip(f"the recorded tuning spaces are not at {TUNING}")
    samples = [s for device in ("A100", "A4000", "A6000") for s in tuning_samples(device)]
    assert len(samples) > 12_000
    found = derive(samples, extremes=100)
    assert found.tasks == {"A100": 200, "A4000": 200, "A6000": 200}
    ranked = {one.name: one for one in found.ranked}
    assert ranked["gflops"].fate is Fate.ALIAS
    # On every device the slow ones do without shared memory.
    assert "use_shmem" in found.kept
    assert all(r < -0.4 for r in ranked["use_shmem"].r.values())
    assert ranked["threads"].fate is Fate.UNSTABLE
