"""What a machine must have beside Python: packages by part, and our own package in its place.

The names are those of pyproject.toml, so that nothing is asked for that is not declared there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

EVERY_PART = (
    "ml_dtypes",
    "nvidia-ml-py",
    "numpy",
    "platformdirs",
    "pydantic",
    "scipy",
    "threadpoolctl",
)
TIMED = (*EVERY_PART, "torch", "jinja2")
"""What times kernels needs baselines, and recipes are rendered."""
NEEDS = {
    "facts": (*EVERY_PART, "typer", "rich"),
    "tests": (*EVERY_PART, "torch", "pytest"),
    "canary": EVERY_PART,
    "recipes": (*TIMED, "typer", "rich", "langgraph", "langgraph-checkpoint-sqlite"),
    "fairness": TIMED,
    "emulation": TIMED,
    "model": TIMED,
}
"""Packages without which a part is not begun."""
WITHOUT = {
    "triton": "Triton's kernels are not built",
    "nvidia-cuda-nvrtc": "no CUDA C++ is built, unless a toolkit is here (CUDA_HOME)",
    "nvidia-cuda-runtime": "NVRTC's headers come from Triton's wheel, if at all",
    "nvidia-cuda-nvdisasm": "static profiles lack what is read from machine code",
}
"""Packages that parts do without, and what is lost then."""


def list_declared(root: Path = ROOT) -> list[str]:
    """The packages that the project names, without their releases."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    words = [*project["dependencies"], *extras["cuda"], *extras["dev"]]
    return [re.match(r"[\w.-]+", word)[0] for word in words]  # type: ignore[index]


def is_here(package: str) -> bool:
    """Whether it is installed; NVRTC's wheels for CUDA 12 have names of their own."""
    for name in (package, f"{package}-cu12"):
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return True
    return False


def list_missing(part: str) -> list[str]:
    """What a part cannot do without and is not here."""
    return [name for name in NEEDS[part] if not is_here(name)]


def describe_missing(parts: tuple[str, ...]) -> list[str]:
    """What is missing of all that these parts would use, a line each; empty: nothing."""
    lines = []
    for name in sorted({name for part in parts for name in NEEDS[part]}):
        if not is_here(name):
            without = ", ".join(part for part in parts if name in NEEDS[part])
            lines.append(f"missing: {name}; not begun without it: {without}")
    lines += [f"missing: {name}; {loss}" for name, loss in WITHOUT.items() if not is_here(name)]
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        lines.append(
            "missing: g++; nothing runs on a device without it, as our runner is built here"
        )
    return lines


def place_package(folder: Path) -> None:
    """Has this process and those it starts find our package, where it is not installed.

    Args:
        folder: Gets a link by the package's name to this checkout.
    """
    spec = importlib.util.find_spec("kernelwright")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if any(Path(place).resolve() == ROOT for place in places):
        return
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "kernelwright"
    if not link.exists():
        link.symlink_to(ROOT, target_is_directory=True)
    sys.path.insert(0, str(folder))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), before)))
    for name in [name for name in sys.modules if name.partition(".")[0] == "kernelwright"]:
        del sys.modules[name]
    importlib.invalidate_caches()
