"""What is in the tree is in the wheel: packages, templates, sources of the runners."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from package_tree import ROOMS, ROOT


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
    assert content["project"]["license-files"] == ["LICENSE"]
