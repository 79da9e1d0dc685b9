"""Which tasks a suite has, and that its campaigns are told apart from a bench's."""

from __future__ import annotations

import pytest

from kernelwright.compare.plan import BenchCampaign
from kernelwright.compare.suite import FAMILIES, Suite, list_tasks, write_csv, write_markdown
from kernelwright.kernelbench import registry
from kernelwright.tests.compare.held import bench


@pytest.mark.parametrize("name", FAMILIES)
def test_each_suite_has_problems_of_its_tag_with_recipes(name: str) -> None:
    found = list_tasks(name, "cpu", "cpp")
    assert found
    if FAMILIES[name]:
        assert all(FAMILIES[name] in registry.get(problem).tags for problem in found)
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


def test_an_empty_table_has_its_head() -> None:
    assert write_csv([]).startswith("problem,workload,status,time (us),")
    assert "| problem | workload |" in write_markdown("mine", [], ["about"])
