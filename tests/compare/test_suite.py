"""Which tasks a suite has, and that its campaigns are told apart from a bench's."""

from __future__ import annotations

import pytest

from kernelwright.compare.plan import BenchCampaign
from kernelwright.compare.suite import (
    FAMILIES,
    Suite,
    average_gains,
    list_tasks,
    word_gains,
    write_csv,
    write_markdown,
)
from kernelwright.kernelbench import registry
from kernelwright.tests.compare.held import bench
from kernelwright.traces.records import Speedup
from kernelwright.traces.suites import SuiteRow


@pytest.mark.parametrize("name", FAMILIES)
def test_each_suite_has_problems_of_its_tag_with_recipes(name: str) -> None:
    found = list_tasks(name, "cpu", "cpp")
    assert found
    if FAMILIES[name]:
        tags = set(FAMILIES[name])
        assert all(tags.intersection(registry.get(problem).tags) for problem in found)
    assert set(found) <= set(registry.names())


def test_what_no_recipe_of_the_language_writes_is_left_out() -> None:
    assert set(list_tasks("all", "sm_90", "triton")) < set(list_tasks("all", "sm_90", "cuda"))


def suite(**more: object) -> Suite:
    known = vars(bench()) | {"workflows": ("tune",), "problems": ("softmax/tiny", "gemm")}
    return Suite(**{**known, **more})


def test_a_task_is_a_problem_and_perhaps_a_workload() -> None:
    planned = suite()
    assert planned.find_task("softmax/tiny") == ("softmax", "tiny")
    assert planned.find_task("gemm") == ("gemm", "")
    request = planned.request(BenchCampaign("tune", "softmax/tiny", 0))
    assert (request.problem, request.workload, request.transfer) == ("softmax", "tiny", True)


def test_workloads_of_one_problem_are_campaigns_of_their_own() -> None:
    planned = suite(problems=("softmax", "softmax/tiny"), seeds=1)
    keys = {planned.key(trial) for name in planned.problems for trial in planned.trials(name)}
    assert len(keys) == 2
    assert suite(label="suite again").key(BenchCampaign("tune", "gemm", 0)) not in keys


def row(task: str, gain: Speedup | None) -> SuiteRow:
    status = "VERIFIED" if gain else "no winner"
    return SuiteRow(task, "tiny", "c1", status, None, gain, "torch eager", {}, None, None)


def test_what_is_credited_is_averaged_by_suite_and_who_loses_is_named() -> None:
    rows = [
        row("spmm_csr", Speedup(median=5.0, low=4.0, high=6.0)),
        row("sddmm_csr", Speedup(median=1.2, low=1.0, high=1.3)),
        row("gemm", Speedup(median=0.6, low=0.5, high=0.7)),
        row("softmax", None),
    ]
    means = average_gains(rows)
    assert means["sparse"] == pytest.approx(2.0)
    assert means["all"] == pytest.approx(2.0 ** (1 / 3))
    assert "quantised" not in means
    text = word_gains(rows)
    assert text.startswith("3 of 4 have a verified kernel; all campaigns together took ")
    assert "faster at gemm (0.60×" in text
    assert text in write_markdown("mine", rows, ["about"])


def test_an_empty_table_has_its_head() -> None:
    assert write_csv([]).startswith("problem,workload,status,time (us),")
    assert "| problem | workload |" in write_markdown("mine", [], ["about"])
