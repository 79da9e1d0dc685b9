"""Candidates of every language leave the house, and none without the mark that it has earned."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.registry import get
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.sandbox.builders.toolchain import find_nvcc
from kernelwright.sandbox.plan import Plan, parse
from kernelwright.tests.cli import stored
from kernelwright.tests.traces.export import kernels
from kernelwright.traces.records import candidate_id

from .conftest import Command

MARK = "emulated, never timed on a device"
HOST = "def run(M, N, x, y):\n    launch(x, y)\n"


def sources(language: str) -> tuple[str, ...]:
    """Right and fastest by its modelled time, right and slower, broken."""
    best = skeleton(get("softmax"), LANGUAGES[language])
    return best, best + "\n", "nothing\n"


@pytest.fixture
def emulated(private: dict[str, str]) -> Callable[..., str]:
    home = Path(private["KERNELWRIGHT_HOME"])

    def fill(language: str = "cuda", **more: Any) -> str:
        return stored.fill_emulated(home, language, sources(language), **more)

    return fill


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "work" / "out"


@pytest.mark.parametrize("language", ["cuda", "triton"])
@pytest.mark.parametrize("name", ["{}", "{}@best", "{}/1"])
def test_what_was_only_emulated_leaves_only_when_asked_for(
    kw_here: Command, emulated: Callable[..., str], out: Path, language: str, name: str
) -> None:
    named = name.format(emulated(language))
    refused = kw_here("export", named, "--format", "source", "-o", str(out))
    assert refused.code == 2
    assert "never timed on a device" in refused.err
    assert "hint: " in refused.err
    assert "--unverified" in refused.err
    assert not out.exists()
    done = kw_here("export", named, "--format", "source", "-o", str(out), "--unverified")
    assert (done.code, done.out.strip()) == (0, str(out))
    files = {path.name: path.read_text("utf-8") for path in out.iterdir()}
    assert set(files) == {
        "softmax" + LANGUAGES[language].suffix,
        "plan.json",
        "record.json",
        "provenance.json",
        "README.md",
        "LICENSE-NOTE.md",
        "MANIFEST.json",
    }
    assert [name for name, text in files.items() if MARK not in text] == []


@pytest.mark.parametrize("language", ["cuda", "triton"])
def test_the_source_is_the_candidate_below_its_mark_and_is_still_one(
    kw_here: Command, emulated: Callable[..., str], out: Path, language: str
) -> None:
    assert kw_here("export", emulated(language), "-o", str(out), "--unverified").code == 0
    text = (out / f"softmax{LANGUAGES[language].suffix}").read_text("utf-8")
    assert text.partition("\n")[2] == sources(language)[0]
    plan = parse(text, language)
    assert isinstance(plan, Plan), plan
    assert plan.kernels == ("softmax_kernel",)


def test_the_plan_is_data(kw_here: Command, emulated: Callable[..., str], out: Path) -> None:
    assert kw_here("export", emulated("cuda"), "-o", str(out), "--unverified").code == 0
    plan = json.loads((out / "plan.json").read_text("utf-8"))
    assert (plan["language"], plan["target"]) == ("cuda", "sm_90")
    assert [t["name"] for t in plan["signature"]["inputs"]] == ["x"]
    assert plan["launch_plan"]["declared"]["launch"][0]["grid"] == ["cdiv(M, 256)"]
    resolved = plan["launch_plan"]["resolved"]
    assert resolved["axes"] == {"M": 64, "N": 200}
    assert resolved["launches"] == [
        {
            "kernel": "softmax_kernel",
            "grid": [1, 1, 1],
            "block": [256, 1, 1],
            "shared_bytes": 0,
            "cluster": [1, 1, 1],
            "arguments": [
                {"integer": 64},
                {"integer": 200},
                {"tensor": "x", "offset_bytes": 0},
                {"tensor": "y", "offset_bytes": 0},
            ],
        }
    ]
    record = json.loads((out / "record.json").read_text("utf-8"))
    assert (record["status"], record["emulated"]) == ("SCREENED", True)
    assert record["profile"]["metrics"][0]["level"] == "modelled"
    provenance = json.loads((out / "provenance.json").read_text("utf-8"))
    assert provenance["candidate"] == candidate_id(sources("cuda")[0])
    readme = (out / "README.md").read_text("utf-8")
    assert "12.5 µs" in readme
    assert "it is no measurement" in readme
    assert "g++" not in readme


def test_constants_and_options_of_triton_are_data(
    kw_here: Command, emulated: Callable[..., str], out: Path
) -> None:
    assert kw_here("export", emulated("triton"), "-o", str(out), "--unverified").code == 0
    plan = json.loads((out / "plan.json").read_text("utf-8"))["launch_plan"]
    [launch] = plan["resolved"]["launches"]
    assert (launch["constexpr"], launch["num_warps"]) == ({"BLOCK": 256}, 4)
    assert launch["grid"] == [64, 1, 1]


def test_a_triton_file_with_host_code_says_so(
    kw_here: Command, private: dict[str, str], out: Path
) -> None:
    campaign = stored.fill_emulated(Path(private["KERNELWRIGHT_HOME"]), "triton", [HOST])
    assert kw_here("export", campaign, "-o", str(out), "--unverified").code == 0
    plan = json.loads((out / "plan.json").read_text("utf-8"))["launch_plan"]
    assert plan["resolved"] is None
    assert "host code" in plan["why"]


def test_a_candidate_that_did_not_build_says_what_is_wrong_with_its_plan(
    kw_here: Command, emulated: Callable[..., str], out: Path
) -> None:
    done = kw_here("export", f"{emulated('cuda')}/3", "-o", str(out), "--unverified")
    assert done.code == 0
    plan = json.loads((out / "plan.json").read_text("utf-8"))
    assert "error at line 1" in plan["launch_plan"]["fault"]
    assert "BUILD_FAILED" in plan["caveat"]
    assert "no launch plan" in (out / "README.md").read_text("utf-8")


def test_a_verified_candidate_needs_no_mark(kw_here: Command, tmp_path: Path, out: Path) -> None:
    stored.fill(tmp_path / "home", begun=stored.started().model_copy(update=softmax_in_cpp()))
    done = kw_here("export", "@best", "--format", "source", "-o", str(out))
    assert done.code == 0, done.err
    assert (out / "softmax.cpp").read_text("utf-8") == stored.SOURCES[1]
    texts = [path.read_text("utf-8") for path in out.iterdir()]
    assert not any("not VERIFIED" in text or MARK in text for text in texts)
    plan = json.loads((out / "plan.json").read_text("utf-8"))
    assert plan["launch_plan"] is None
    assert plan["signature"]["declaration"].startswith('extern "C" void softmax(int M')


def softmax_in_cpp() -> dict[str, Any]:
    return {"problem": "softmax", "config": stored.SOFTMAX}


def test_a_screened_cpp_candidate_is_marked_too(
    kw_here: Command, tmp_path: Path, out: Path
) -> None:
    begun = stored.started().model_copy(update=softmax_in_cpp())
    stored.fill(tmp_path / "home", has_winner=False, begun=begun)
    refused = kw_here("export", "@last/2", "--format", "source", "-o", str(out))
    assert (refused.code, "--unverified" in refused.err) == (2, True)
    done = kw_here("export", "@last/2", "--format", "source", "-o", str(out), "--unverified")
    assert done.code == 0, done.err
    for path in out.iterdir():
        assert "SCREENED for cpu, not VERIFIED" in path.read_text("utf-8"), path.name
    readme = (out / "README.md").read_text("utf-8")
    assert "**screen" in readme
    assert "credited figure" not in readme


@pytest.mark.parametrize("language", ["cuda", "triton"])
@pytest.mark.parametrize(
    ("form", "named"),
    [("kernels-hub", "build.toml"), ("flashinfer", "workloads/softmax.jsonl")],
)
def test_an_emulated_winner_leaves_for_other_projects_with_its_mark(
    kw_here: Command, emulated: Callable[..., str], out: Path, language: str, form: str, named: str
) -> None:
    campaign = emulated(language)
    refused = kw_here("export", campaign, "--format", form, "-o", str(out))
    assert (refused.code, "--unverified" in refused.err) == (2, True)
    done = kw_here("export", campaign, "--format", form, "-o", str(out), "--unverified")
    assert done.code == 0, done.err
    assert MARK in (out / named).read_text("utf-8")
    assert not (out / "traces").exists()


@pytest.mark.parametrize(
    ("language", "form", "words"),
    [
        ("cuda", "onnx", "known: aot, flashinfer, header, kernels-hub, modelnew, package, source"),
        ("cuda", "sources", "did you mean source?"),
        ("triton", "header", "--format source gives its file"),
    ],
)
def test_a_format_that_cannot_be_had_names_those_that_can(
    kw_here: Command,
    emulated: Callable[..., str],
    out: Path,
    language: str,
    form: str,
    words: str,
) -> None:
    campaign = emulated(language)
    done = kw_here("export", campaign, "--format", form, "-o", str(out), "--unverified")
    assert done.code == 2
    assert words in done.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("language", "asked", "words"),
    [("triton", "80", "a package of triton"), ("cuda", "hopper", "'hopper' is no architecture")],
)
def test_what_cannot_be_prebuilt_is_told(
    kw_here: Command, emulated: Callable[..., str], out: Path, language: str, asked: str, words: str
) -> None:
    name = emulated(language)
    more = ("--format", "package", "--unverified", "--prebuilt", asked)
    done = kw_here("export", name, "-o", str(out), *more)
    assert (done.code, words in done.err, "hint: " in done.err) == (2, True, True), done.err
    assert not out.exists()


@pytest.mark.slow
def test_a_cuda_package_leaves_with_its_library(
    kw_here: Command, emulated: Callable[..., str], out: Path
) -> None:
    try:
        find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    more = ("--format", "package", "--unverified", "--prebuilt", "90")
    done = kw_here("export", emulated("cuda"), "-o", str(out), *more)
    assert done.code == 0, done.err
    [told] = out.glob("*/prebuilt.json")
    library = told.parent / "prebuilt.so"
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    assert json.loads(told.read_text())["sha256"] == digest
    manifest = json.loads((out / "MANIFEST.json").read_text())
    assert digest in manifest["files"].values()
    assert MARK in told.read_text()


def test_a_package_leaves_with_the_kernel_of_its_gradient(
    kw_here: Command, tmp_path: Path, out: Path
) -> None:
    spmm, sddmm = (
        stored.fill_verified(tmp_path / "home", get(name), source, get(name).workload("tiny"))
        for name, source in (("spmm_csr", kernels.SPMM), ("sddmm_csr", kernels.SDDMM))
    )
    done = kw_here("export", spmm, "-o", str(out), "--backward", f"{sddmm}@best")
    assert done.code == 0, done.err
    short = candidate_id(kernels.SDDMM)[:8]
    [record] = out.glob(f"*/kw_sddmm_csr_{short}/record.json")
    assert json.loads(record.read_text())["status"] == "VERIFIED"
    [told] = out.glob("*/provenance.json")
    assert json.loads(told.read_text())["gradient"]["values"] == f"the kernel {short} of sddmm_csr"
    refused = [
        ((sddmm, "--backward", spmm), "sddmm_csr takes no second kernel"),
        ((spmm, "--backward", sddmm, "--format", "source"), "--backward is for packages"),
        ((spmm, "--backward", "@nobody"), "hint: "),
    ]
    for words, said in refused:
        left = kw_here("export", *words, "-o", str(tmp_path / "no"))
        assert (left.code, said in left.err) == (2, True), left.err


def test_a_triton_winner_leaves_as_a_package_with_its_cases(
    kw_here: Command, emulated: Callable[..., str], out: Path
) -> None:
    done = kw_here(
        "export", emulated("triton"), "--format", "package", "-o", str(out), "--unverified"
    )
    assert done.code == 0, done.err
    [module] = (path for path in out.iterdir() if path.is_dir())
    assert (module / "cases.npz").is_file()
    assert "def launch(M, N, x, y):" in (module / "kernel.py").read_text("utf-8")


def test_a_place_that_cannot_be_written_is_named_with_a_remedy(
    kw_here: Command, emulated: Callable[..., str], out: Path
) -> None:
    campaign = emulated()
    for place in ("/proc/nowhere/out", f"{out.parent}/{'x' * 300}"):
        done = kw_here("export", campaign, "-o", place, "--unverified")
        assert done.code == 2, done.err
        assert place in done.err
        assert "-o DIR" in done.err
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    done = kw_here("export", campaign, "-o", str(out), "--unverified")
    assert done.code == 2
    assert "holds mine.txt" in done.err
    assert os.listdir(out) == ["mine.txt"]


def test_an_id_that_means_two_lists_them(
    kw_here: Command, private: dict[str, str], out: Path
) -> None:
    # Ids of two candidates that begin alike: found by trying.
    first: dict[str, str] = {}
    for number in range(10_000):
        text = f"// {number}\n"
        begin = candidate_id(text)[:2]
        if not begin.isdecimal() and begin in first:
            break
        first[begin] = text
    campaign = stored.fill_emulated(
        Path(private["KERNELWRIGHT_HOME"]), "cuda", [first[begin], text, "x"]
    )
    done = kw_here("export", f"{campaign}/{begin}", "-o", str(out), "--unverified")
    assert done.code == 2
    assert f"'{begin}' names 2 candidates" in done.err
    assert candidate_id(text)[:24] in done.err


def test_a_campaign_of_before_problems_were_described_is_told(
    kw_here: Command, emulated: Callable[..., str], out: Path
) -> None:
    done = kw_here("export", emulated(config={}), "-o", str(out), "--unverified")
    assert done.code != 0
    assert "does not describe its problem" in done.err
    assert "hint: " in done.err
    assert not out.exists()


def test_lists_show_the_shortest_modelled_time_where_nothing_was_timed(
    kw_here: Command, emulated: Callable[..., str], private: dict[str, str]
) -> None:
    campaign = emulated()
    assert "12.5 µs modelled" in kw_here("list").out
    [row] = kw_here("list", "--json").document["campaigns"]
    assert (row["best"], row["leader"]["modelled_us"]) == (None, 12.5)
    from fastapi.testclient import TestClient

    from kernelwright.traces.view.app import create_app

    home = Path(private["KERNELWRIGHT_HOME"])
    with TestClient(create_app(home), base_url="http://127.0.0.1:8765") as client:
        page = " ".join(client.get("/").text.split())
        assert '12.5 µs <span class="sub">modelled</span>' in page
        assert "(evaluations)" in page
        table = client.get(f"/c/{campaign}", params={"sort": "speedup"}).text
        body = table.split("<tbody>")[1]
        assert body.index(">#1</a>") < body.index(">#2</a>") < body.index(">#3</a>")
