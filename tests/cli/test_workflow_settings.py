"""Settings of workflows and foreign sources on the command line: what is refused, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.kernelbench import registry

from . import stored
from .conftest import Command

RUN = ("run", "softmax", "--workload", "tiny", "--target", "cpu")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--set", "islands"), "no NAME=VALUE"),
        (("--set", "isles=2"), "isles"),
        (("--set", "islands=2"), "confirm_after"),
        (("--set", "confirm_after=-1"), "confirm_after"),
        (("--workflow", "evolve"), "recipes are searched by --workflow tune"),
        (("--workflow", "tune", "--model", "openai/m"), "asks no model for candidates"),
        (("--workflow", "evolve", "--model", "openai/m", "--set", "islands=0"), "islands"),
        (("--workflow", "forge", "--set", "rounds=2"), "rounds"),
        (("--workflow", "transpile"), "needs a source"),
        (("--workflow", "transpile", "--from", "missing.cu"), "missing.cu"),
        (("--workflow", "transpile", "--from", "plain.txt"), "neither CUDA"),
        (("--workflow", "transpile", "--from", "k.cu"), "choose a model"),
        (("--workflow", "transpile", "--from", "large.cu"), "larger than"),
        (("--workflow", "forge", "--from", "plain.txt"), "does not say which language"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    kw_here: Command, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    (tmp_path / "work" / "plain.txt").write_text("int main() {}\n")
    (tmp_path / "work" / "k.cu").write_text("__global__ void k(float* x) { *x = 1; }\n")
    (tmp_path / "work" / "large.cu").write_text("x" * (257 << 10))
    done = kw_here(*RUN, *flags)
    assert done.code == 2, done.err
    assert said in done.err


def test_a_search_over_recipes_that_evolve_began_opens_and_is_not_gone_on_with(
    kw_here: Command, tmp_path: Path
) -> None:
    problem = registry.get("spmm_csr")
    begun = stored.started().model_copy(
        update={
            "problem_version": problem.version,
            "workload_spec": problem.workload("tiny").model_dump(mode="json"),
            "workflow": "evolve",
            "workflow_version": "evolve/3",
        }
    )
    home = tmp_path / "home"
    campaign = stored.fill(home, begun=begun)
    for command in (("list",), ("show", campaign), ("report", campaign, "-o", "r.html")):
        done = kw_here(*command, "--home", str(home))
        assert done.code == 0, done.err
    refused = kw_here("run", "--resume", campaign, "--home", str(home))
    assert (refused.code, refused.out) == (2, "")
    assert "which is the workflow tune now" in refused.err
    assert "starting the referee" not in refused.err
