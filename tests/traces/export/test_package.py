"""An exported package as a user meets it: its commands, its build, its installation by pip."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.conftest import Run, module_of
from kernelwright.traces.export import export
from kernelwright.traces.records import Verdict

COMPILED = """\
import torch, {module}
x = torch.randn(5, 33)
f = torch.compile(lambda x: {module}.softmax(x * 2) + 1, fullgraph=True, backend={backend!r})
torch.testing.assert_close(f(x), torch.softmax(x * 2, 1) + 1)
print({module}.__file__)
"""


@pytest.mark.parametrize("problem", ["spmm_csr", "softmax", "extremes"])
def test_selftest_passes(packages: dict[str, Path], run: Run, problem: str) -> None:
    folder = packages[problem]
    done = run(sys.executable, "-m", module_of(folder), "selftest", path=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last == {"softmax": "3 of 3", "extremes": "5 of 5"}.get(problem, "5 of 5") + (
        " checks passed"
    )


def test_selftest_finds_a_wrong_kernel(tmp_path: Path, run: Run) -> None:
    wrong = kernels.SPMM.replace("p < indptr[i + 1]", "p < indptr[i + 1] - (i == 2)")
    export(kernels.spmm(wrong), "package", tmp_path / "wrong")
    done = run(
        sys.executable, "-m", module_of(tmp_path / "wrong"), "selftest", path=tmp_path / "wrong"
    )
    assert done.returncode == 1, done.stderr
    assert "FAIL  tail: call" in done.stdout
    assert "FAIL  tail: out=" in done.stdout


def test_selftest_finds_elements_left_unwritten(tmp_path: Path, run: Run) -> None:
    lazy = kernels.SOFTMAX.replace("i < M", "i < M - 1")
    export(kernels.softmax(lazy), "package", tmp_path / "lazy")
    done = run(
        sys.executable, "-m", module_of(tmp_path / "lazy"), "selftest", path=tmp_path / "lazy"
    )
    assert done.returncode == 1
    assert "FAIL  small: out=: worst error is inf" in done.stdout


def test_selftest_finds_an_edited_source(
    packages: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "edited"
    shutil.copytree(packages["softmax"], folder)
    source = folder / module_of(folder) / "kernel.cpp"
    source.write_text(source.read_text() + "// edited\n")
    done = run(sys.executable, "-m", module_of(folder), "selftest", path=folder)
    assert done.returncode == 1
    assert "FAIL  kernel.cpp" in done.stdout


def test_benchmark_tells_here_from_there(packages: dict[str, Path], run: Run) -> None:
    folder = packages["spmm_csr"]
    command = (sys.executable, "-m", module_of(folder), "benchmark", "--seconds", "0.05")
    done = run(*command, path=folder)
    assert done.returncode == 0, done.stderr
    assert "measured here: median" in done.stdout
    assert "recorded there: VERIFIED on Example CPU 9000, 2026-09-21" in done.stdout
    assert "1.82x against torch eager on workload pubmed" in done.stdout
    missing = run(*command, "--inputs", str(folder / "absent.npz"), path=folder)
    assert missing.returncode == 2
    assert "absent.npz" in missing.stderr


def test_a_missing_compiler_is_told(packages: dict[str, Path], tmp_path: Path, run: Run) -> None:
    folder = packages["softmax"]
    command = (sys.executable, "-m", module_of(folder), "build")
    fresh = {"KW_KERNEL_CACHE": str(tmp_path / "fresh")}
    done = run(*command, path=folder, CXX="no-such-compiler", **fresh)
    assert done.returncode == 3
    assert "no C++ compiler: 'no-such-compiler'" in done.stderr
    assert "install g++" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failing_build_is_told_and_leaves_nothing(
    packages: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    folder, cache = packages["softmax"], tmp_path / "cache"
    command = (sys.executable, "-m", module_of(folder), "build")
    done = run(*command, path=folder, CXX="g++ -include no_such_file.h", KW_KERNEL_CACHE=str(cache))
    assert done.returncode == 3
    assert "could not compile" in done.stderr
    assert "no_such_file.h" in done.stderr
    assert list(cache.iterdir()) == []


def test_a_cache_that_others_may_write_is_refused(
    packages: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    folder, cache = packages["softmax"], tmp_path / "open"
    cache.mkdir()
    cache.chmod(0o777)
    done = run(
        sys.executable, "-m", module_of(folder), "build", path=folder, KW_KERNEL_CACHE=str(cache)
    )
    assert done.returncode == 3
    assert "could be written by others" in done.stderr


def test_build_is_kept_and_used_again(packages: dict[str, Path], tmp_path: Path, run: Run) -> None:
    folder = packages["softmax"]
    command = (sys.executable, "-m", module_of(folder), "build")
    env = {"HOME": str(tmp_path), "KW_KERNEL_CACHE": ""}
    first = run(*command, path=folder, **env)
    assert first.returncode == 0, first.stderr
    library = Path(first.stdout.strip())
    assert library.parent == tmp_path / ".cache" / "kw-kernels"
    before = library.stat().st_mtime_ns
    assert run(*command, path=folder, **env).stdout == first.stdout
    assert library.stat().st_mtime_ns == before
    assert [path.name for path in library.parent.iterdir()] == [library.name]


def test_the_record_is_the_verdict(packages: dict[str, Path]) -> None:
    folder = packages["spmm_csr"]
    text = (folder / module_of(folder) / "record.json").read_text()
    assert Verdict.model_validate_json(text) == kernels.spmm().verdict.model_copy(
        update={"log": ""}
    )
    provenance = json.loads((folder / module_of(folder) / "provenance.json").read_text())
    assert provenance["campaign"] == "c-20261121-ab12"
    assert [step["number"] for step in provenance["lineage"]] == [1, 7]


@pytest.mark.slow
def test_pip_installs_it_into_a_fresh_environment(
    packages: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    """A fresh venv that sees this one's torch and setuptools, and no network."""
    folder = tmp_path / "given"
    shutil.copytree(packages["softmax"], folder)
    module = module_of(folder)
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    site = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    )
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
    again = export(kernels.softmax(), "package", folder)
    assert folder / "pyproject.toml" in again
