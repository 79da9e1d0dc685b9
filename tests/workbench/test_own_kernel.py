"""A kernel that the user brings: its language, its launch plan, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelwright.config import Config, resolve
from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.packs import workload_of
from kernelwright.running import CampaignRequest
from kernelwright.tests.agents.asked import source
from kernelwright.workbench.jobs import Fresh, make_ready
from kernelwright.workbench.own_kernel import (
    PLAN_WRITTEN,
    OwnKernel,
    language_of_source,
    read_start,
    take_own,
)

PUBLISHED = Path(__file__).parents[1] / "public_styles" / "host"
HOST = """
__global__ void f(const float* x, float* y, int M, int N) { y[blockIdx.x * N] = x[0]; }
void launch(const float* x, float* y, int M, int N) { f<<<GRID, 256>>>(x, y, M, N); }
"""


def settle(home: Path, start: OwnKernel, language: str = "", **settings: Any) -> CampaignRequest:
    """What a campaign that begins from it asks for, and its note."""
    config: Config = resolve({"home": home, "max_evals": 3, **settings}).config
    with make_ready(Fresh(config, "softmax", language=language, start=start), is_dry=True) as ready:
        assert isinstance(ready.settled.names, CampaignRequest)
        assert ready.settled.note.startswith(f"begins from {start.name}")
        return ready.settled.names


@pytest.mark.parametrize(
    ("name", "text", "target", "language"),
    [
        ("a.cu", "", "auto", "cuda"),
        ("a.cc", "", "auto", "cpp"),
        ("a.py", "import triton\n", "auto", "triton"),
        ("a.py", "import torch\n", "auto", "python"),
        ("a.py", "import torch\n", "sm_90", "triton"),
        ("a.py", "import triton\n", "cpu", "python"),
        ("a.py", "load_inline(cuda_sources='__global__')", "auto", "cuda"),
    ],
)
def test_the_language_is_told_by_the_ending_the_target_and_the_text(
    name: str, text: str, target: str, language: str
) -> None:
    assert language_of_source(Path(name), text, target) == language


def test_published_cuda_becomes_a_candidate_in_its_language(tmp_path: Path) -> None:
    start = read_start(PUBLISHED / "softmax_block_reduce.py", tmp_path)
    asked = settle(tmp_path, start, target="sm_90")
    assert (asked.language, asked.target) == ("cuda", "sm_90")
    assert asked.source.startswith("/*---")
    taken = take_own(start, registry.get("softmax"))
    assert PLAN_WRITTEN in taken.note
    assert take_own(taken, registry.get("softmax")) == taken


def test_what_no_plan_can_be_written_of_is_refused_unless_a_model_may(tmp_path: Path) -> None:
    start = OwnKernel(HOST.replace("GRID", "lucky()"), "cuda", "mine.cu")
    with pytest.raises(UsageError, match=r"host code of mine\.cu: error at line 3") as caught:
        settle(tmp_path, start, target="sm_90")
    assert "--model" in caught.value.hint
    script = tmp_path / "answers.toml"
    script.write_text("")
    with pytest.raises(UsageError, match=r"written in cuda, and the campaign in cpp"):
        settle(tmp_path, start, language="cpp", target="cpu")


def test_a_candidate_of_an_earlier_campaign_is_named_as_everywhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no campaign"):
        read_start("@last@best", tmp_path)
    with pytest.raises(UsageError, match="cannot read the source"):
        read_start("absent.cu", tmp_path)


def test_sizes_stand_in_place_of_the_workloads_own(tmp_path: Path) -> None:
    config: Config = resolve({"home": tmp_path, "max_evals": 3}).config
    job = Fresh(config, "softmax", workload="tiny", axes=["M=7, N=9"])
    with make_ready(job, is_dry=True) as ready:
        workload = ready.settled.task.workload
        assert (workload.name, workload.axes) == ("M=7,N=9", {"M": 7, "N": 9})


@pytest.mark.parametrize("written", ["M", "M=", "=3", "M=-1", "M=1e3", "M=1,M=2", "M=3,"])
def test_what_is_no_size_is_refused_with_the_remedy(written: str) -> None:
    with pytest.raises(UsageError, match="is no size of an axis of its own") as caught:
        workload_of(registry.get("softmax"), axes=written)
    assert "--axes M=4096,N=64" in caught.value.hint


def test_a_text_that_is_in_no_language_yet_needs_one(tmp_path: Path) -> None:
    asked = settle(tmp_path, OwnKernel(source(step=1), name="your"), language="cpp", target="cpu")
    assert asked.language == "cpp"
