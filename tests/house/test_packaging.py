"""What is in the tree is in the wheel: packages, templates, sources of the runners."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from package_tree import ROOMS, ROOT

import kernelwright


def declared() -> dict[str, Any]:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: dict[str, Any] = content["tool"]["setuptools"]
    return found


def dotted(folder: Path) -> str:
    return ".".join(("kernelwright", *folder.relative_to(ROOT).parts))


def test_every_package_is_declared() -> None:
    found = {dotted(file.parent) for room in ROOMS for file in (ROOT / room).rglob("__init__.py")}
    assert set(declared()["packages"]) == found | {"kernelwright"}


def test_every_file_of_a_package_is_shipped() -> None:
    patterns: dict[str, list[str]] = declared()["package-data"]
    left_behind = []
    for room in ROOMS:
        for file in (ROOT / room).rglob("*"):
            if file.is_dir() or file.suffix in (".py", ".pyc"):
                continue
            home = next(f for f in file.parents if (f / "__init__.py").exists())
            inside = file.relative_to(home).as_posix()
            if not any(fnmatch(inside, pattern) for pattern in patterns.get(dotted(home), [])):
                left_behind.append(file.relative_to(ROOT).as_posix())
    assert left_behind == []


def test_the_licence_is_the_one_declared() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert text.lstrip().startswith("Apache License")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    content = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert content["project"]["license"] == "Apache-2.0"
    assert content["project"]["version"] == kernelwright.__version__
    assert content["project"]["license-files"] == ["LICENSE"]


BUILD = "from setuptools import build_meta as b; b.build_sdist({0!r}); b.build_wheel({0!r})"


@pytest.mark.slow
def test_a_wheel_holds_the_package_and_a_source_distribution_the_tests(tmp_path: Path) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    out.mkdir()
    leave = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "report*.html")
    shutil.copytree(ROOT, tree, ignore=leave)
    subprocess.run([sys.executable, "-c", BUILD.format(str(out))], cwd=tree, check=True)
    (source,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    with tarfile.open(source) as held:
        inside = {name.partition("/")[2] for name in held.getnames()}
    for name in ("tests/house/test_floors.py", "docs/design.md", "Makefile", "SECURITY.md"):
        assert name in inside
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert "kernelwright/traces/view/static/view.js" in names
    assert "kernelwright/sandbox/run/wire.hpp" in names
    strange = [n for n in names if n.startswith(("kernelwright/tests", "kernelwright/docs"))]
    assert strange == []
