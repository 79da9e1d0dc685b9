"""A problem of one's own, as a user goes along it: new, problems, eval, run, resume, export."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.tests.sampling import one_in

from .conftest import Command
from .test_end_to_end import Place
from .test_run_models import fenced, script

FAST = """#include <math.h>
#include <stddef.h>
extern "C" void swi(int M, int N, const float* x, const float* gate, float* y) {
    const size_t count = (size_t)M * N;
    for (size_t i = 0; i < count; ++i) y[i] = x[i] / (1.0f + expf(-x[i])) * gate[i];
}
"""
WRONG = FAST.replace("* gate[i]", "+ gate[i]")
USUAL, SMALL = '"1024x4096"', '"64x256"'
"""Workloads of a problem, of which a check asks a hundred answers."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Place:
    found = Place(tmp_path_factory.mktemp("own"), shared_cache)
    done = found.kw("new", "problem", "swi")
    assert done.code == 0, done.err
    file = found.folder / "work" / "swi.py"
    # Compiled it takes half a minute more, once.
    text = file.read_text()
    file.write_text(text[: text.index("\n\ndef by_compile")])
    return found


def test_new_problem_writes_what_can_be_shown(kw_here: Command, private: dict[str, str]) -> None:
    done = kw_here("new", "problem", "swi")
    assert done.code == 0, done.err
    assert "next: kernelwright problems ./swi.py" in done.out
    shown = kw_here("problems", "./swi.py", "--json").document["problem"]
    assert shown["name"] == "swi"
    assert shown["baselines"] == ["torch eager", "torch.compile"]
    assert shown["default_workload"] == "1024x4096"
    again = kw_here("new", "problem", "swi")
    assert (again.code, "is there already" in again.err) == (2, True)
    folder = Path(private["HOME"]) / "work"
    listed = kw_here("problems", "--problems", str(folder), "--names").out.split()
    assert listed[-1] == "swi"
    assert "spmm_csr" in listed


@pytest.mark.parametrize("name", ["gemm", "Swi", "two words", "9lives"])
def test_a_name_that_no_kernel_can_have_is_refused(kw_here: Command, name: str) -> None:
    done = kw_here("new", "problem", name)
    assert done.code == 2
    assert "a problem is called as its file" in done.err


def test_a_file_that_declares_what_cannot_be_is_told_with_its_line(
    kw_here: Command, private: dict[str, str]
) -> None:
    kw_here("new", "problem", "swi")
    file = Path(private["HOME"]) / "work" / "swi.py"
    good = file.read_text()
    for old, new, told in (
        ('"flops": "7', '"flops": "L', "PROBLEM: flops names 'L'"),
        ("def oracle(x, gate)", "def oracle(x, gats)", "oracle asks for 'gats'"),
        ("PROBLEM = {", "PROBLEM = {{", "this is no Python"),
    ):
        file.write_text(good.replace(old, new))
        for command in (("problems", "./swi.py"), ("eval", "./swi.py", "k.cpp")):
            (file.parent / "k.cpp").write_text(FAST)
            done = kw_here(*command)
            assert done.code == 2, done.err
            assert told in done.err
            assert "Traceback" not in done.err
    assert kw_here("problems", "./none.py").code == 2
    assert kw_here("problems", "--problems", "nowhere").code == 2


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timed
def test_from_an_empty_folder_to_an_exported_kernel(place: Place) -> None:
    work = place.folder / "work"
    model = script(place, ("write", fenced(WRONG)), ("repair", fenced(FAST)))
    chain = ("--workflow", "forge", "--rounds", "2", "--workload", "tiny", "--target", "cpu")
    done = place.kw("run", "./swi.py", *chain, "--model", model, "--max-evals", "1", "--json")
    assert (done.code, done.document["by_status"]) == (5, {"INCORRECT": 1}), done.err
    campaign = done.document["campaign"]
    # The campaign holds its problem: the file may be gone.
    shutil.move(work / "swi.py", work / "away.txt")
    again = place.kw("run", "--resume", campaign, "--max-evals", "5", "--json")
    assert again.code == 0, again.err
    assert again.document["best"]["status"] == "VERIFIED"
    out = place.folder / "winner"
    exported = place.kw("export", "@last@best", "--format", "package", "-o", str(out))
    assert exported.code == 0, exported.err
    audited = place.kw("audit", "@last", "--json")
    assert audited.code == 0, audited.err
    package = next(p.parent for p in out.rglob("__init__.py"))
    env = {**place.env, "PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(place.folder)}
    ran = subprocess.run(
        [sys.executable, "-m", package.name, "selftest"], env=env, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    shutil.move(work / "away.txt", work / "swi.py")
    with (work / "swi.py").open("a") as file:
        file.write("\n# another file, with another hash\n")
    other = place.kw(
        "run", "./swi.py", "--model", f"replay:{campaign}", "--max-evals", "1", "--json"
    )
    assert other.code == 2
    assert "two problems named 'swi'" in other.err


MODULE = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return torch.relu(self.norm(x))

def get_inputs():
    return [torch.randn(32, 48)]

def get_init_inputs():
    return [48]
"""
FUSED = """#include <math.h>
#include <stddef.h>
extern "C" void relu_of_norm(int M, const float* x, const float* norm_weight,
                             const float* norm_bias, float* y1) {
    for (int i = 0; i < M; ++i) {
        const float* in = x + (size_t)i * 48;
        float mean = 0, squares = 0;
        for (int j = 0; j < 48; ++j) mean += in[j];
        mean /= 48;
        for (int j = 0; j < 48; ++j) squares += (in[j] - mean) * (in[j] - mean);
        const float scale = 1.0f / sqrtf(squares / 48 + 1e-5f);
        for (int j = 0; j < 48; ++j) {
            const float y = (in[j] - mean) * scale * norm_weight[j] + norm_bias[j];
            y1[(size_t)i * 48 + j] = y > 0 ? y : 0;
        }
    }
}
"""


@pytest.mark.heavy
@pytest.mark.slow
def test_a_pytorch_module_is_a_problem_as_it_stands(place: Place) -> None:
    """What of it is right is the tutorial's."""
    work = place.folder / "work"
    (work / "1_Relu_of_Norm.py").write_text(MODULE)
    for name, source in (
        ("ignores", FUSED.replace("* norm_weight[j] ", "")),
        ("narrow", FUSED.replace("i < M", "i < M - M % 3")),
    ):
        (work / f"{name}.cpp").write_text(source)
        done = place.kw("eval", "./1_Relu_of_Norm.py", f"{name}.cpp", "--json")
        assert (done.code, done.document["status"]) == (1, "INCORRECT"), done.err
    assert {"torch eager", "torch.compile"} <= set(
        place.kw("problems", "./1_Relu_of_Norm.py", "--json").document["problem"]["baselines"]
    )


@pytest.mark.slow
def test_a_problem_that_fails_while_it_is_judged_is_the_users_to_mend(place: Place) -> None:
    text = (place.folder / "work" / "swi.py").read_text()
    broken = place.folder / "work" / "broken.py"
    broken.write_text(text.replace("    return x / (1 + np", "    return x[1:] / (1 + np"))
    (place.folder / "work" / "k.cpp").write_text(FAST.replace("void swi", "void broken"))
    done = place.kw("eval", "./broken.py", "k.cpp", "--workload", "tiny")
    assert done.code == 2, done.err
    assert "broken.py" in done.err
    assert "oracle" in done.err
    assert os.sep + "work" + os.sep not in done.err.replace(str(place.folder), "")


@pytest.mark.heavy
@pytest.mark.slow
def test_what_can_verify_is_admitted_and_what_cannot_is_refused_with_the_figure(
    place: Place,
) -> None:
    work = place.folder / "work"
    text = (work / "swi.py").read_text().replace(USUAL, SMALL)
    (work / "small.py").write_text(text)
    done = place.kw("problems", "--check", "./small.py", "--json")
    assert done.code == 0, done.out
    (told,) = done.document["admissions"]
    assert told["is_admitted"]
    assert {check["name"] for check in told["checks"]} >= {
        "workload fits",
        "hidden sizes can be drawn",
        "hidden sizes tell",
        "answers are of float64",
        "null kernels fail",
        "right implementations have headroom",
    }
    answer = "return x / (1 + np.exp(-x)) * gate"
    assert answer in text
    mistakes = (
        ("narrow", "return (x / (1 + np.exp(-x)) * gate).astype(np.float32)", "share of y that"),
        ("moody", answer + " * np.random.uniform(0.9, 1.1)", "y differ"),
        ("nans", "return np.log(x) * gate", "y is not finite on"),
        ("nothing", "return 0 * x", "the null kernel 'zeros' passes"),
        ("another", "return x / (1 + np.exp(-x)) + gate", "torch eager: its answer is wrong"),
        ("rows", "return x / (1 + np.exp(-x)) * gate - x.mean(0)", "changes with other rows"),
        ("huge", answer, "MiB of 6 calls"),
    )
    for name, wrong, told in one_in(3, mistakes):
        changed = text.replace(answer, wrong)
        if name == "huge":
            changed = changed.replace(SMALL, '"1048576x1048576"')
        (work / f"{name}.py").write_text(changed)
        refused = place.kw("problems", "--check", f"./{name}.py")
        assert refused.code == 1, refused.err
        assert refused.out.startswith(f"{name}: REFUSED")
        failed = [line for line in refused.out.splitlines() if line.startswith("  FAILED")]
        assert any(told in line for line in failed), refused.out


@pytest.mark.heavy
@pytest.mark.slow
def test_flops_are_held_against_what_a_baseline_takes(place: Place) -> None:
    work = place.folder / "work"
    text = (work / "swi.py").read_text().replace(USUAL, SMALL)
    numpy = (
        "\n\ndef by_numpy(x, gate, y):\n"
        "    return lambda: np.copyto(y, x / (1 + np.exp(-x)) * gate)\n"
    )
    for name, changed, code, told in (
        ("lost", text.replace('"7 * M * N"', '"7 * M"'), 1, "FAILED flops are what is counted"),
        ("fewer", text.replace('"7 * M * N"', '"2 * M * N"'), 0, "ok     flops are what is"),
        # What cannot be counted has not passed.
        (
            "uncounted",
            text[: text.index("# What a kernel is held against")].rstrip() + numpy,
            0,
            "-      flops are what is counted: (limit 4) not counted: it runs no by_torch",
        ),
    ):
        (work / f"{name}.py").write_text(changed)
        done = place.kw("problems", "--check", f"./{name}.py")
        assert (done.code, told in done.out) == (code, True), done.out + done.err
        assert f"declared {'231' if name == 'lost' else ''}" in done.out
