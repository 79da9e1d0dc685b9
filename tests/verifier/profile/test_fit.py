"""The model fitted to measured times: factors that made the times are found again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import ConfigError, UsageError
from kernelwright.verifier.profile.derive import MeasuredSample
from kernelwright.verifier.profile.fit import FITTED, fit, modelled_us
from kernelwright.verifier.profile.metrics import catalogue
from kernelwright.verifier.profile.metrics_file import write, write_scales
from kernelwright.verifier.profile.model import Estimate

TRUE = {"memory": 1.0, "l2": 1.8, "latency": 2.5, "load_store": 0.7, "launching": 0.8}


def samples(
    scales: Mapping[str, float], *, tasks: int = 4, each: int = 12, noise: float = 0.03
) -> list[MeasuredSample]:
    rng = np.random.default_rng(3)
    found = []
    for task in range(tasks):
        for _ in range(each):
            names = ("memory", "l2", "latency", "load_store")
            metrics = {f"model_{n}_us": float(rng.lognormal(3, 1.2)) for n in names}
            metrics |= {"launching_us": 2.5, "occupancy": 0.5}
            took = modelled_us(metrics, scales) * float(np.exp(rng.normal(0, noise)))
            found.append(MeasuredSample(f"task {task}", "sm_90", (), took, metrics))
    return found


def test_the_factors_that_made_the_times_are_found() -> None:
    found = fit(samples(TRUE))
    for name in ("l2", "latency", "load_store"):
        assert found.scales[name] == pytest.approx(TRUE[name], rel=0.15), name
    assert found.is_better
    assert found.held_out.nine_of_ten < 1.15 < found.before.nine_of_ten
    assert found.candidates == {f"task {n}": 12 for n in range(4)}


def test_a_model_that_is_right_is_left_alone() -> None:
    found = fit(samples({}, noise=0.02))
    assert all(0.85 < scale < 1.15 for scale in found.scales.values())


def test_what_holds_for_one_task_alone_is_found_out_on_the_others() -> None:
    """Each task has its own bias: what the others say of it makes it worse."""
    given = [
        one._replace(time_us=one.time_us * (3.0 if one.task in ("task 0", "task 1") else 1 / 3))
        for one in samples({}, tasks=4)
    ]
    assert not fit(given).is_better


def test_too_few_or_one_task_is_said() -> None:
    with pytest.raises(UsageError, match="0 measured candidates of 0 tasks"):
        fit([])
    with pytest.raises(UsageError, match="of 1 tasks"):
        fit(samples(TRUE, tasks=1))
    fitted = [one._replace(metrics={**one.metrics, FITTED: 1.0}) for one in samples(TRUE)]
    with pytest.raises(UsageError, match="0 measured candidates"):
        fit(fitted)


def test_an_estimate_is_scaled_by_the_names_of_metrics() -> None:
    made = Estimate({"memory": 4.0, "load/store": 10.0}).scale({"load_store": 0.5, "launching": 2})
    assert made.terms == {"memory": 4.0, "load/store": 5.0}
    assert made.launch_us == 5.0


def test_factors_are_kept_beside_the_choice_of_metrics(tmp_path: Path) -> None:
    write(tmp_path, "sm_90", "any", ["occupancy"], {"a": 9})
    path = write_scales(tmp_path, "sm_90", {"l2": 1.23456}, {"a": 9})
    found = catalogue(tmp_path)
    assert found.scales == {"sm_90": {"l2": 1.2346}}
    assert found.judge_on["sm_90"]["any"] == ("occupancy",)
    path.write_text(path.read_text().replace("1.2346", "-1"))
    with pytest.raises(ConfigError, match=r"model\.sm_90\.l2 is -1"):
        catalogue(tmp_path)
