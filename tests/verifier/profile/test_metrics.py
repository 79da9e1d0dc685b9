"""Which metrics are collected where, and which a Judge is fed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import ConfigError, UnknownNameError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.targets import ARCHITECTURES, Vendor
from kernelwright.traces.metric_words import stall_words
from kernelwright.verifier.profile.metrics import STALLS, catalogue, load_packaged
from kernelwright.verifier.profile.tensor_cores import ELEMENTS

DEAD = (
    "smsp__warp_issue_stalled_memory_dependency_per_warp_active.pct",
    "sm__inst_executed_pipe_fp32.avg.pct_of_peak_sustained_active",
)
"""Names of CudaForge's list that no chip knows any more."""


def test_the_set_of_cudaforge_has_24_names_that_exist() -> None:
    names = load_packaged().names("sm_90", "cudaforge")
    assert len(names) == len(set(names)) == 24
    assert not set(DEAD) & set(names)


def test_the_sets_contain_each_other() -> None:
    quick, full = load_packaged().names("sm_90", "quick"), load_packaged().names("sm_90", "full")
    assert set(quick) < set(full)
    assert set(load_packaged().names("sm_90", "cudaforge")) < set(full)
    assert len(full) == len(set(full))


NVIDIA = sorted(each.name for each in ARCHITECTURES.values() if each.vendor is Vendor.NVIDIA)


@pytest.mark.parametrize("name", NVIDIA)
def test_every_architecture_has_its_names(name: str) -> None:
    full = load_packaged().names(name)
    assert not any("gmma" in metric for metric in full) or name == "sm_90"
    assert load_packaged().names(name + "a") == full
    has_old_names = "dram__bytes_read.sum" in full
    assert has_old_names is (name not in ("sm_120", "sm_121"))
    assert ("dram__bytes_op_read.sum" in full) is not has_old_names


def test_stalls_are_what_the_chip_tells() -> None:
    hopper, blackwell = (set(load_packaged().stalls(n).values()) for n in ("sm_90", "sm_100"))
    assert hopper - blackwell == {"gmma", "imc_miss"}
    assert set(stall_words()) >= hopper
    assert load_packaged().stalls("sm_90", "quick") == {}


def test_an_unknown_set_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="set of metrics named 'ful'"):
        load_packaged().names("sm_90", "ful")


def test_a_judge_is_fed_what_is_collected() -> None:
    for problem in registry.names():
        tags = registry.get(problem).tags
        for architecture in ARCHITECTURES:
            fed = load_packaged().judge_metrics(architecture, tags)
            assert fed
            known = {*load_packaged().names(architecture), *load_packaged().static}
            assert set(fed) - {STALLS} <= known


def test_what_the_code_says_of_tensor_cores_is_no_counter() -> None:
    static = load_packaged().static
    assert {f"tensor_{element}" for element in ELEMENTS} < set(static)
    assert "tensor_share" in load_packaged().judge_metrics("sm_90", ["contraction"])
    for architecture in ARCHITECTURES:
        assert not set(static) & set(load_packaged().names(architecture))


def test_families_are_fed_differently() -> None:
    sparse, dense = (
        load_packaged().judge_metrics("sm_90", tags) for tags in (["sparse"], ["contraction"])
    )
    assert sparse != dense
    assert load_packaged().judge_metrics("sm_90", ["unheard-of"]) == load_packaged().judge["any"]


def own(folder: Path, text: str) -> Path:
    (folder / "metrics.toml").write_text(text)
    return folder


def test_a_users_file_goes_first(tmp_path: Path) -> None:
    home = own(
        tmp_path,
        'schema = 1\n[judge.sparse]\nnames = ["a"]\n[judge.sm_90.sparse]\nnames = ["b", "c"]\n',
    )
    found = catalogue(home)
    assert found.judge_metrics("sm_90a", ["sparse"]) == ("b", "c")
    assert found.judge_metrics("sm_80", ["sparse"]) == ("a",)
    assert found.judge_metrics("sm_90", ["contraction"]) == load_packaged().judge["contraction"]
    assert catalogue(tmp_path / "nowhere") == catalogue() == load_packaged()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema = 2\n", "its schema is 2, not 1"),
        ("schema = \n", "Invalid value"),
        ("schema = 1\n[judge.sparse]\nnames = 3\n", "judge.sparse has no list of names"),
        ("schema = 1\n[judge.sm_90]\nsparse = 3\n", "judge.sm_90.sparse has no list of names"),
        ("schema = 1\njudge = 3\n", "judge is no table"),
        ("schema = 1\n[sets.mine]\nnames = []\n", "the unknown table sets"),
    ],
)
def test_a_users_file_that_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as found:
        catalogue(own(tmp_path, text))
    assert str(tmp_path / "metrics.toml") in str(found.value)
