"""`metrics`: what is collected, and choosing what a Judge is fed from a store or from a file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kernelwright.tests.cli import stored
from kernelwright.traces.events import EvaluationFinished
from kernelwright.traces.records import (
    Depth,
    Level,
    Measurement,
    Metric,
    Profile,
    Status,
    Timing,
    candidate_id,
)
from kernelwright.traces.store import Store

from .conftest import Command

COUNT = 8


def fill(home: Path) -> None:
    """A campaign whose slow candidates are unbalanced."""
    with Store.open(home) as store:
        campaign = store.create(stored.started())
        for number in range(1, COUNT + 1):
            candidate = candidate_id(f"int candidate{number};\n")
            time_us = 10.0 * 1.5**number
            verdict = stored.verdict(1, Status.SCREENED, Depth.SCREEN)
            timing = Timing(median_us=time_us, low_us=time_us, high_us=time_us)
            metrics = {
                "imbalance": 1 + 0.3 * number + 0.2 * math.sin(5 * number),
                "achieved_gbs": 1e3 / time_us,
                "warp": 32.0,
            }
            profile = Profile(
                metrics=tuple(
                    Metric(name=name, value=value, level=Level.MEASURED)
                    for name, value in metrics.items()
                )
            )
            measured = Measurement(workload="tiny", candidate=timing)
            update = {"candidate": candidate, "measurements": (measured,), "profile": profile}
            proposed = stored.proposed(1, "row-balanced").model_copy(
                update={"candidate": candidate, "number": number}
            )
            store.append(campaign, proposed)
            store.append(campaign, EvaluationFinished(verdict=verdict.model_copy(update=update)))


@pytest.fixture
def home(private: dict[str, str]) -> Path:
    found = Path(private["KERNELWRIGHT_HOME"])
    fill(found)
    return found


def test_metrics_are_derived_from_a_store_and_fed_from_then_on(
    kw_here: Command, home: Path
) -> None:
    document = kw_here("metrics", "derive", "--json").document
    assert document["target"] == "cpu"
    assert document["kept"] == ["imbalance"]
    assert {one["name"]: one["fate"] for one in document["metrics"]} == {
        "imbalance": "kept",
        "achieved_gbs": "alias",
        "warp": "flat",
    }
    assert document["tasks"] == {"spmm_csr/tiny": COUNT}
    assert document["file"] is None
    done = kw_here("metrics", "derive", "--campaign", "@last", "--family", "sparse", "--write")
    assert done.code == 0, done.err
    assert "imbalance" in done.out
    assert str(home / "metrics.toml") in done.out
    shown = kw_here("metrics", "show", "--target", "cpu", "--family", "sparse", "--json").document
    assert shown["judged"] == ["imbalance"]
    assert shown["collected"] == []


def test_a_family_without_candidates_is_told(kw_here: Command, home: Path) -> None:
    done = kw_here("metrics", "derive", "--family", "contraction")
    assert done.code == 2
    assert "none was measured" in done.err
    assert not (home / "metrics.toml").exists()


def test_samples_come_from_a_file(kw_here: Command, tmp_path: Path) -> None:
    lines = [
        {"task": "a/b", "target": target, "time_us": 2.0**i, "metrics": {"m": i + (i % 3) / 5}}
        for target in ("sm_80", "sm_90")
        for i in range(7)
    ]
    file = tmp_path / "samples.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    done = kw_here("metrics", "derive", "--samples", str(file))
    assert done.code == 2
    assert "sm_80, sm_90" in done.err
    document = kw_here(
        "metrics", "derive", "--samples", str(file), "--target", "sm_90", "--json"
    ).document
    assert (document["target"], document["kept"]) == ("sm_90", ["m"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["derive", "--samples", "nowhere.jsonl"], "cannot be read"),
        (["derive", "--samples", "x", "--campaign", "y"], "exclude each other"),
        (["show", "--target", "sm_91"], "sm_91"),
        (["show", "--set", "ful"], "set of metrics named 'ful'"),
    ],
)
def test_mistakes_are_named(kw_here: Command, arguments: list[str], words: str) -> None:
    done = kw_here("metrics", *arguments)
    assert done.code == 2, done.err
    assert words in done.err


def test_what_is_collected_is_listed(kw_here: Command) -> None:
    out = kw_here("metrics", "show", "--target", "sm_120", "--set", "cudaforge").out
    assert "  dram__bytes_op_read.sum\n" in out
    assert "* launch__registers_per_thread\n" in out


def test_amds_devices_have_no_counters_of_nsight(kw_here: Command) -> None:
    done = kw_here("metrics", "show", "--target", "gfx942")
    assert (done.code, done.out) == (2, "")
    assert "no hardware counters are read on gfx942" in done.err
