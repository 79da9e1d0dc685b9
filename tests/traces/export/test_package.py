"""An exported package as a user meets it: its commands, its build, its installation by pip."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.conftest import Run, module_of
from kernelwright.traces.export import Bundle, export
from kernelwright.traces.records import Verdict

COMPILED = """\
import torch, {module}
x = torch.randn(5, 33)
f = torch.compile(lambda x: {module}.softmax(x * 2) + 1, fullgraph=True, backend={backend!r})
torch.testing.assert_close(f(x), torch.softmax(x * 2, 1) + 1)
print({module}.__file__)
"""


def part(modules: dict[str, ModuleType], problem: str, name: str) -> Any:
    return importlib.import_module(f"{modules[problem].__name__}.{name}")


@pytest.fixture
def imported(
    tmp_path: Path, modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Exports a bundle and imports its self-test; `modules` sets the folder of compiled kernels."""
    assert modules

    def start(bundle: Bundle) -> Any:
        export(bundle, "package", tmp_path / bundle.short)
        monkeypatch.syspath_prepend(str(tmp_path / bundle.short))
        return importlib.import_module(f"{module_of(tmp_path / bundle.short)}.selftest")

    return start


def test_the_command_imports_builds_and_passes(packages: dict[str, Path], run: Run) -> None:
    folder = packages["spmm_csr"]
    done = run(sys.executable, "-m", module_of(folder), "selftest", path=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "5 of 5 checks passed"


@pytest.mark.parametrize(("problem", "count"), [("softmax", 3), ("extremes", 5)])
def test_selftest_passes(modules: dict[str, ModuleType], problem: str, count: int) -> None:
    lines: list[str] = []
    assert part(modules, problem, "selftest").run(say=lines.append)
    assert lines[-1] == f"{count} of {count} checks passed"


def test_selftest_finds_a_wrong_kernel(imported: Any) -> None:
    wrong = kernels.SPMM.replace("p < indptr[i + 1]", "p < indptr[i + 1] - (i == 2)")
    lines: list[str] = []
    assert not imported(kernels.spmm(wrong)).run(say=lines.append)
    assert any(line.startswith("FAIL  tail: call") for line in lines)
    assert any(line.startswith("FAIL  tail: out=") for line in lines)


def test_selftest_finds_elements_left_unwritten(imported: Any) -> None:
    lazy = kernels.SOFTMAX.replace("i < M", "i < M - 1")
    lines: list[str] = []
    assert not imported(kernels.softmax(lazy)).run(say=lines.append)
    assert "FAIL  small: out=: worst error is inf of what is allowed" in lines


def test_selftest_finds_an_edited_source(imported: Any) -> None:
    selftest = imported(kernels.softmax(kernels.SOFTMAX + "// to be edited\n"))
    source = Path(selftest.__file__).parent / "kernel.cpp"
    source.write_text(source.read_text() + "// edited\n")
    lines: list[str] = []
    assert not selftest.run(say=lines.append)
    assert lines[0].startswith("FAIL  kernel.cpp")


def test_tensors_of_bfloat16_come_with_their_type(imported: Any) -> None:
    lines: list[str] = []
    selftest = imported(kernels.doubled())
    assert selftest.run(say=lines.append), lines
    assert "struct bfloat16" in (Path(selftest.__file__).parent / "kernel.cpp").read_text()
    wrong = kernels.doubled(kernels.DOUBLED.replace("2.0f", "2.1f"))
    assert not imported(wrong).run(say=lines.append)


def test_benchmark_tells_here_from_there(
    modules: dict[str, ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    main = part(modules, "spmm_csr", "__main__").main
    assert main(["benchmark", "--seconds", "0.02"]) == 0
    said = capsys.readouterr().out
    assert "measured here: median" in said
    assert "recorded there: VERIFIED on Example CPU 9000, 2026-09-21" in said
    assert "1.82× against torch eager on workload pubmed" in said


def test_benchmark_takes_inputs_of_the_user(
    modules: dict[str, ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    main = part(modules, "extremes", "__main__").main
    x = np.ones((20, 30), dtype=np.float32)
    np.savez(tmp_path / "mine.npz", x=x, K=2, side=1)
    given = ["benchmark", "--seconds", "0.02", "--inputs"]
    assert main([*given, str(tmp_path / "mine.npz")]) == 0
    assert "on mine.npz: x[20, 30]" in capsys.readouterr().out
    np.savez(tmp_path / "less.npz", x=x, K=2)
    assert main([*given, str(tmp_path / "less.npz")]) == 2
    assert "lacks the array 'side'" in capsys.readouterr().err
    assert main([*given, str(tmp_path / "absent.npz")]) == 2
    assert "absent.npz" in capsys.readouterr().err


def test_a_missing_compiler_is_told(
    modules: dict[str, ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert part(modules, "softmax", "__main__").main(["build"]) == 3
    said = capsys.readouterr().err
    assert "no C++ compiler: 'no-such-compiler'" in said
    assert "install g++" in said


def test_a_failing_build_is_told_and_leaves_nothing(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    build = part(modules, "softmax", "_build")
    monkeypatch.setenv("CXX", "g++ -include no_such_file.h")
    monkeypatch.setenv("KW_KERNEL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(build.KernelBuildError, match=r"could not compile[^$]*no_such_file\.h"):
        build.library()
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_others_may_write_is_refused(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    build = part(modules, "softmax", "_build")
    tmp_path.chmod(0o777)
    monkeypatch.setenv("KW_KERNEL_CACHE", str(tmp_path))
    with pytest.raises(build.KernelBuildError, match="could be written by others"):
        build.library()
    tmp_path.chmod(0o700)
    (tmp_path / "file").touch()
    monkeypatch.setenv("KW_KERNEL_CACHE", str(tmp_path / "file"))
    with pytest.raises(build.KernelBuildError, match="set KW_KERNEL_CACHE"):
        build.library()


def test_a_build_is_kept_and_used_again(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    build = part(modules, "softmax", "_build")
    monkeypatch.delenv("KW_KERNEL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    library = build.library()
    assert library.parent == tmp_path / ".cache" / "kw-kernels"
    before = library.stat().st_mtime_ns
    assert build.library() == library
    assert library.stat().st_mtime_ns == before
    assert list(library.parent.iterdir()) == [library]


def test_the_record_is_the_verdict(packages: dict[str, Path]) -> None:
    folder = packages["spmm_csr"]
    text = (folder / module_of(folder) / "record.json").read_text()
    without_log = kernels.spmm().verdict.model_copy(update={"log": ""})
    assert Verdict.model_validate_json(text) == without_log
    provenance = json.loads((folder / module_of(folder) / "provenance.json").read_text())
    assert provenance["campaign"] == "c-20261121-ab12"
    assert [step["number"] for step in provenance["lineage"]] == [1, 7]


@pytest.mark.parametrize(
    "problem", [*["spmm_csr", "sddmm_csr", "row_sums", "gemm", "softmax", "extremes"]]
)
def test_the_generated_code_passes_the_linter(packages: dict[str, Path], problem: str) -> None:
    folder = packages[problem]
    rules = "E4,E7,E9,F,I,UP,B,SIM,RUF,RET,PERF,N8"
    command = (sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache")
    options = ("--select", rules, "--ignore", "RUF001,RUF002,RUF003,N803,N806")
    done = subprocess.run([*command, *options, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.heavy
@pytest.mark.slow
def test_pip_installs_it_into_a_fresh_environment(
    packages: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    """A fresh environment that sees this one's torch and setuptools, and no network."""
    folder = tmp_path / "given"
    shutil.copytree(packages["softmax"], folder)
    module = module_of(folder)
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    asked = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    site = Path(asked.stdout.strip())
    (site / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    options = ("--no-deps", "--no-build-isolation", "--no-index")
    done = run(python, "-m", "pip", "install", *options, str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    tested = run(python, "-m", module, "selftest", "--compile")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "torch.compile" in tested.stdout
    compiled = run(python, "-c", COMPILED.format(module=module, backend="inductor"))
    assert compiled.returncode == 0, compiled.stderr
    assert Path(compiled.stdout.strip()).is_relative_to(site)
    # What pip leaves in the folder does not make it somebody else's.
    assert folder / "pyproject.toml" in export(kernels.softmax(), "package", folder)
