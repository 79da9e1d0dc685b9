# SPDX-License-Identifier: Apache-2.0
"""The C++ compiler of this machine: which one, which version, which flags.

Knows nothing of candidates, jails or caches. The flags are fixed here; a candidate has no say.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ...errors import PrerequisiteError
from ...kernelbench.machine import CPUINFO, processor
from .model import BuildVariant

BASE_FLAGS = (
    "-std=c++20",
    "-march=native",
    "-fopenmp",
    "-fPIC",
    # What blocks vectorisation: errno of sqrt and friends, and the flags that a comparison may
    # raise, which nobody reads. Results stay IEEE (no -ffast-math).
    "-fno-math-errno",
    "-fno-trapping-math",
)
VARIANT_FLAGS = {
    # Lines for who reads the code later; what runs is the same.
    BuildVariant.RELEASE: ("-O3", "-g1", "-gno-column-info", "-gno-record-gcc-switches"),
    BuildVariant.SANITIZED: (
        "-O1",
        "-g1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
        # What these find ASan sees at the access; unrolled kernels build in half the time.
        "-fno-sanitize=null,object-size,pointer-overflow",
        # The two builds must not differ in what the source says.
        "-U__SANITIZE_ADDRESS__",
    ),
}
LINK_FLAGS = ("-shared", "-Wl,-z,defs")
FILL_FLAG = "-ftrivial-auto-var-init=pattern"
"""Local variables that were never set hold a pattern instead of what happened to be there."""
CALL_FLAGS = ("--param", "asan-instrumentation-with-call-threshold=200")
"""GCC checks each access inline up to so many in a function, and by a call beyond: a function with
thousands of them would take minutes to build."""
_FILLS_SINCE = {True: 12, False: 8}
"""The first release of GCC (True) and of Clang that knows FILL_FLAG."""

TOOLCHAIN = (
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/include",
    "/bin",
    "/lib",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
)
"""What a compiler from the distribution reads; no home folders, no /etc beyond the two."""


@dataclass(frozen=True)
class Compiler:
    """One C++ compiler that really answered."""

    path: Path
    version: str
    """First line of `--version`."""
    is_gcc: bool

    @property
    def readable(self) -> tuple[Path, ...]:
        """The folders a jail must show for it to work."""
        own = self.path.resolve().parent.parent
        folders = [Path(folder) for folder in TOOLCHAIN]
        if own not in (Path("/usr"), Path("/")):
            folders.append(own)
        return tuple(folder for folder in folders if folder.exists())

    @property
    def fills_variables(self) -> bool:
        """Whether it can fill local variables that were never set."""
        found = re.search(r"(\d+)\.\d+\.\d+", self.version)
        return found is not None and int(found[1]) >= _FILLS_SINCE[self.is_gcc]

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of a build but for TMPDIR."""
        return {
            "PATH": os.pathsep.join((str(self.path.parent), "/usr/bin", "/bin")),
            "LC_ALL": "C",
            # __DATE__ must not make two builds of one source differ.
            "SOURCE_DATE_EPOCH": "0",
        }


def flags(variant: BuildVariant, compiler: Compiler) -> tuple[str, ...]:
    """The flags that every source of this variant is compiled with."""
    more: tuple[str, ...] = ()
    if variant is BuildVariant.SANITIZED:
        more += (FILL_FLAG,) if compiler.fills_variables else ()
        more += CALL_FLAGS if compiler.is_gcc else ()
    return BASE_FLAGS + VARIANT_FLAGS[variant] + more


@functools.lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """g++, or clang++ where there is none; PrerequisiteError where there is neither."""
    tried = []
    for name in ("g++", "clang++"):
        path = shutil.which(name)
        if path is None:
            tried.append(f"{name}: not on PATH")
            continue
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
        if answer.returncode == 0 and answer.stdout:
            return Compiler(Path(path), answer.stdout.splitlines()[0].strip(), name == "g++")
        tried.append(f"{path}: exit {answer.returncode}")
    raise PrerequisiteError(
        f"no C++ compiler was found ({'; '.join(tried)})",
        hint="install one, e.g. `apt install g++` or `dnf install gcc-c++`",
    )


@functools.lru_cache(maxsize=1)
def cpu_signature() -> str:
    """Hash of what `-march=native` depends on; PrerequisiteError where the system tells nothing."""
    signature = processor().signature
    if not signature:
        raise PrerequisiteError(f"{CPUINFO} cannot be read", hint="run on Linux")
    return signature
