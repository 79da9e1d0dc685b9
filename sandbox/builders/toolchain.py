# SPDX-License-Identifier: Apache-2.0
"""Where NVIDIA's tools lie on this machine: NVRTC with its headers, nvcc, the disassembler.

They come from the toolkit that this process prefers, from the wheels of the extra
`kernelwright[cuda]` beside the interpreter, or from the system's toolkit. Finding is all that is
done here: the libraries are loaded by programs in jails only.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ...errors import PrerequisiteError

_PACKAGES = ("site-packages", "dist-packages")
_SYSTEM_HOME = Path("/usr/local/cuda")
_LIBRARIES = ("lib", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
_INCLUDES = ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include")
_HEADER = "cuda_fp16.h"
"""A folder with this one is a toolkit's include folder."""
_BUNDLES_HEADERS_SINCE = (13, 5)

ANY_RELEASE = sys.maxsize
"""As the last release of CUDA that will do: every one does, as no driver is to load it."""
_LEAST_DRIVER = {12: 525, 13: 580}
"""The first driver that loads code of a major release, by NVIDIA's table."""

CompilerName = Literal["nvrtc", "nvcc"]


@dataclass
class _Preferred:
    home: Path | None = None
    compiler: CompilerName = "nvrtc"


_preferred = _Preferred()

_HINT = (
    "pip install 'kernelwright[cuda]' brings NVIDIA's wheels (no CUDA toolkit is needed), or give "
    "the folder of a toolkit by CUDA_HOME"
)


def prefer(home: Path | None, compiler: CompilerName = "nvrtc") -> None:
    """From now on, in this process, what is in `home` goes first, and `compiler` builds CUDA C++.

    What a toolkit lacks is looked for elsewhere as before.

    Raises:
        PrerequisiteError: there is no such folder, or not the compiler.
    """
    if home is not None and not home.is_dir():
        raise PrerequisiteError(
            f"the CUDA toolkit {home} is not there",
            hint="correct or unset cuda_home (CUDA_HOME); the wheels need no toolkit",
        )
    _preferred.home, _preferred.compiler = home, compiler
    for find in (find_nvrtc, find_nvcc, find_nvdisasm):
        find.cache_clear()
    if compiler == "nvcc":
        find_nvcc()


def preferred_compiler() -> CompilerName:
    """What builds CUDA C++ where nothing else is asked for."""
    return _preferred.compiler


def preferred_tool(name: str) -> Path | None:
    """A program of the preferred toolkit; None where it has none of this name."""
    path = _preferred.home / "bin" / name if _preferred.home else None
    return path if path is not None and path.is_file() and os.access(path, os.X_OK) else None


@dataclass(frozen=True)
class Nvrtc:
    """NVIDIA's runtime compiler: a library and the headers that go with it."""

    library: Path
    builtins: Path | None
    """Must be loaded before the library, which may not find it."""
    includes: tuple[Path, ...]
    """Folders of headers, in the order they are searched; empty where there are none."""
    version: str
    """`13.5`."""

    @property
    def release(self) -> tuple[int, ...]:
        """(13, 5)."""
        return tuple(int(part) for part in self.version.split(".") if part.isdigit())

    @property
    def bundles_headers(self) -> bool:
        """Whether the library can unpack headers of its own."""
        return self.release >= _BUNDLES_HEADERS_SINCE

    @property
    def readable(self) -> tuple[Path, ...]:
        """What a jail must show for it to work."""
        return (self.library.parent, *self.includes)

    @property
    def identity(self) -> str:
        """What decides its output: the version and the size of what is loaded."""
        return f"NVRTC {self.version} ({self.library.stat().st_size} bytes)"


@functools.lru_cache(maxsize=8)
def find_nvrtc(home: Path | None = None, *, newest: int = ANY_RELEASE) -> Nvrtc:
    """NVRTC of `home`; else of the preferred toolkit, the wheels, or the system's toolkit.

    Args:
        newest: The last major release that will do, for a driver (see compatibility.py); then
            those of older toolkits and wheels are looked at, too.

    Raises:
        PrerequisiteError: there is none.
    """
    tried: list[str] = []
    passed: Nvrtc | None = None
    older = () if newest == ANY_RELEASE or home else _older_roots()
    for root in (*roots(home), *older):
        found = _library(root)
        if found is None:
            tried.append(str(root))
            continue
        # A toolkit has links to it, whose names tell less of its release.
        beside = found.parent.glob("libnvrtc-builtins.so*")
        builtins = max(beside, key=lambda path: len(path.name), default=None)
        version = _version(builtins or found)
        includes = _includes_beside(root) if root in older else _includes(root, home)
        tool = Nvrtc(found, builtins, includes, version)
        if tool.release[:1] > (newest,):
            passed = passed or tool
            continue
        if tool.includes or tool.bundles_headers:
            return tool
        return replace(tool, includes=next(_with_header(_triton_folders()), ()))
    if passed:
        raise too_new(
            f"NVRTC {passed.version} at {passed.library}",
            passed.release[0],
            newest,
            f"pip install nvidia-cuda-nvrtc-cu{newest} nvidia-cuda-runtime-cu{newest}, or name an "
            f"older toolkit by CUDA_HOME: a compiler of CUDA {newest} is taken where there is one",
        )
    raise PrerequisiteError(
        f"NVIDIA's compiler NVRTC was not found (looked in {', '.join(tried) or 'no folder'})",
        hint=_HINT,
    )


def too_new(tool: str, release: int, newest: int, instead: str = "") -> PrerequisiteError:
    """The driver, of the major release `newest`, does not load what the tool makes."""
    least = _LEAST_DRIVER.get(release)
    update = f"update the driver{f' to {least} or later' if least else ''}"
    return PrerequisiteError(
        f"NVIDIA's driver here is of CUDA {newest} and loads no code of a later major release, "
        f"which {tool} makes",
        hint=f"{update}; or {instead}" if instead else update,
    )


@dataclass(frozen=True)
class Nvcc:
    """NVIDIA's offline compiler."""

    path: Path
    version: str
    """Last line of `--version`."""

    @property
    def readable(self) -> tuple[Path, ...]:
        """What a jail must show beside a C++ compiler."""
        return (self.path.parent.parent,)


@functools.lru_cache(maxsize=4)
def find_nvcc(home: Path | None = None) -> Nvcc:
    """nvcc of `home`; else of the preferred toolkit, the wheels, or the system's toolkit.

    Raises:
        PrerequisiteError: there is none that answers.
    """
    for root in roots(home):
        path = (root / "bin" / "nvcc").resolve()
        if path.is_file():
            answer = subprocess.run(
                [str(path), "--version"], capture_output=True, text=True, timeout=30, check=False
            )
            if answer.returncode == 0 and answer.stdout:
                return Nvcc(path, answer.stdout.splitlines()[-1].strip())
    raise PrerequisiteError(
        "nvcc was asked for and is not there",
        hint="install a CUDA toolkit and name its folder by CUDA_HOME, or leave cuda_compiler at "
        "nvrtc, which needs none",
    )


@functools.lru_cache(maxsize=4)
def find_nvdisasm(home: Path | None = None) -> Path:
    """The disassembler; one from Triton's wheel as the last resort, since it may be too old.

    Raises:
        PrerequisiteError: there is none.
    """
    places = [root / "bin" / "nvdisasm" for root in roots(home)]
    places += [folder / "bin" / "nvdisasm" for folder in _triton_folders()]
    for path in places:
        if path.is_file():
            return path
    raise PrerequisiteError("NVIDIA's disassembler nvdisasm was not found", hint=_HINT)


def roots(home: Path | None) -> tuple[Path, ...]:
    """The folders with `lib`, `include` and `bin` that there are, best first."""
    if home is not None:
        return (home,)
    found = [folder / "nvidia" / "cu13" for folder in _package_folders()]
    found[:0] = [_preferred.home] if _preferred.home else []
    return tuple(root for root in (*found, _SYSTEM_HOME) if root.is_dir())


def _older_roots() -> tuple[Path, ...]:
    """Toolkits and wheels beside those that are taken for their own sake, the newest first."""
    wheels = [folder / "nvidia" / "cuda_nvrtc" for folder in _package_folders()]
    systems = _SYSTEM_HOME.parent.glob(f"{_SYSTEM_HOME.name}-*")
    found = [*wheels, *sorted(systems, key=lambda path: len(path.name), reverse=True)]
    return tuple(root for root in found if root.is_dir())


def _includes_beside(root: Path) -> tuple[Path, ...]:
    """Headers of the same release: of older wheels they are in another one."""
    return next(_with_header([root, root.parent / "cuda_runtime"]), ())


def headers_home(nvrtc: Nvrtc, folder: Path) -> Path:
    """Where headers that the library itself carries are unpacked to."""
    return folder / "nvrtc-headers" / nvrtc.version


def folders_of(folder: Path) -> tuple[Path, ...]:
    """A folder of headers and the one of CCCL inside it."""
    return tuple(path for path in (folder, folder / "cccl") if path.is_dir())


def _includes(root: Path, home: Path | None) -> tuple[Path, ...]:
    candidates = [root, *(other for other in roots(home) if other != root)]
    return next(_with_header(candidates), ())


def _with_header(places: Iterable[Path]) -> Iterator[tuple[Path, ...]]:
    """Include folders that have the toolkit's headers, each with the one of CCCL below it."""
    for folder in (place / name for place in places for name in _INCLUDES):
        if (folder / _HEADER).is_file():
            yield folders_of(folder)


def _library(root: Path) -> Path | None:
    for name in _LIBRARIES:
        for path in sorted((root / name).glob("libnvrtc.so.*"), key=lambda p: len(p.name)):
            if re.fullmatch(r"libnvrtc\.so\.1[2-9]", path.name):
                # A jail shows the folder that it is in, and not what links lead to.
                return path.resolve()
    return None


def _version(library: Path) -> str:
    found = re.search(r"\.so\.(\d+(?:\.\d+)?)", library.name)
    return found[1] if found else "unknown"


def _package_folders() -> Iterator[Path]:
    for entry in dict.fromkeys(sys.path):
        if Path(entry).name in _PACKAGES:
            yield Path(entry).resolve()


def triton_programs(pattern: str) -> list[Path]:
    """Programs of NVIDIA's in Triton's wheel."""
    found = (path for folder in _triton_folders() for path in (folder / "bin").glob(pattern))
    return sorted(path for path in found if path.is_file() and os.access(path, os.X_OK))


def _triton_folders() -> Iterator[Path]:
    for folder in _package_folders():
        yield folder / "triton" / "backends" / "nvidia"
