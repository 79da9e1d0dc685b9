"""Exported packages, ready to import: one folder of compiled kernels for the whole run."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kernelwright.tests.traces.export import kernels
from kernelwright.traces.export import Bundle, export

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernel-cache")
    folder.chmod(0o700)
    return folder


@pytest.fixture(scope="session")
def run(kernel_cache: Path) -> Run:
    """Runs a command with a small environment; PYTHONPATH is the folder given as `path`."""

    def start(*command: str, path: Path | None = None, **env: str) -> subprocess.CompletedProcess:
        known = {"PATH": os.environ["PATH"], "HOME": str(kernel_cache), "OMP_NUM_THREADS": "2"}
        known |= {"KW_KERNEL_CACHE": str(kernel_cache), "PYTHONDONTWRITEBYTECODE": "1"}
        known |= {"PYTHONPATH": str(path)} if path else {}
        return subprocess.run(
            command, env=known | env, capture_output=True, text=True, check=False, timeout=250
        )

    return start


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each test kernel's package, by problem."""
    base = tmp_path_factory.mktemp("packages")
    made: list[Bundle] = [kernels.spmm(), kernels.softmax(), kernels.extremes()]
    made += [kernels.sddmm(), kernels.row_sums(), kernels.gemm()]
    for bundle in made:
        export(bundle, "package", base / bundle.problem)
    return {bundle.problem: base / bundle.problem for bundle in made}


def module_of(folder: Path) -> str:
    return next(path.name for path in folder.iterdir() if path.name.startswith("kw_"))


@pytest.fixture(scope="session")
def modules(packages: dict[str, Path], kernel_cache: Path) -> Iterator[dict[str, ModuleType]]:
    """The packages, imported here from their folders."""
    before, cache = list(sys.path), os.environ.get("KW_KERNEL_CACHE")
    os.environ["KW_KERNEL_CACHE"] = str(kernel_cache)
    sys.path[:0] = [str(folder) for folder in packages.values()]
    yield {name: importlib.import_module(module_of(path)) for name, path in packages.items()}
    sys.path[:] = before
    if cache is None:
        del os.environ["KW_KERNEL_CACHE"]
    else:
        os.environ["KW_KERNEL_CACHE"] = cache
