# SPDX-License-Identifier: Apache-2.0
"""Measures what a jail really refuses: runs the built-in hostile program and looks from outside.

A row of the matrix is `enforced` only where the program says how it was refused *and* nothing of
the deed is seen from outside; a program that ends without having spoken proves nothing, and its
rows are `absent`. `canary_scene` sets up what there is to attack, `canary.cpp` attacks it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ...errors import PrerequisiteError, SandboxError
from ...traces.records import CAPABILITIES, Capability, Isolation, Record
from .canary_rows import ROWS, CanaryEvidence
from .canary_scene import CanaryScene
from .model import Confinement, Jail, Job, Limits, Outcome

_SOURCE = Path(__file__).with_name("canary.cpp")
_DAY_S = 86_400
_READY_S = 20.0

PROBE_LIMITS = Limits(wall_s=30.0, cpu_s=20.0, memory_bytes=96 << 20, processes=32)
_FORKS, _HOG_MIB = 128, 512
"""What the program tries: four times the limit on processes, five times that on memory."""


class _Cached(Record):
    key: str
    measured_at: float
    isolation: Isolation


def build_canary(cache_dir: Path) -> Path:
    """The compiled hostile program, from the cache where it is there.

    Raises:
        PrerequisiteError: there is no g++.
        SandboxError: it does not compile.
    """
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise PrerequisiteError(
            "no C++ compiler to build the sandbox's canary with",
            hint="install g++ (apt install g++, dnf install gcc-c++)",
        )
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    binary = cache_dir / f"canary-{digest}"
    if binary.exists():
        return binary
    cache_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_dir) as folder:
        fresh = Path(folder) / "canary"
        done = subprocess.run(
            [compiler, "-std=c++17", "-O1", "-o", str(fresh), str(_SOURCE)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            raise SandboxError(f"the canary does not compile: {done.stderr[-2000:]}")
        fresh.chmod(0o755)
        fresh.replace(binary)
    return binary


def probe(jail: Jail, cache_dir: Path) -> Isolation:
    """The capability matrix of this jail on this machine, as this user; at most a day old.

    Raises:
        PrerequisiteError: there is no compiler for the canary.
        SandboxError: the jail could not run it.
    """
    key = _key(jail.name)
    file = cache_dir / f"isolation-{jail.name}-{os.geteuid()}.json"
    cached = _load(file)
    if cached and cached.key == key and 0 <= time.time() - cached.measured_at < _DAY_S:
        return cached.isolation
    isolation = _Trial(jail, build_canary(cache_dir)).measure()
    fresh = _Cached(key=key, measured_at=time.time(), isolation=isolation)
    with tempfile.NamedTemporaryFile("w", dir=cache_dir, delete=False) as out:
        out.write(fresh.model_dump_json())
    Path(out.name).replace(file)
    return isolation


def require_isolation(jail: Jail, cache_dir: Path, *, asked: str, accepts_weak: bool) -> Isolation:
    """What the jail enforces here, before somebody's code runs in it.

    Args:
        asked: the jail as the user named it, or `auto`.
        accepts_weak: whether the user takes it although it lacks something.

    Raises:
        PrerequisiteError: it lacks a required capability, which nobody accepted.
    """
    isolation = probe(jail, cache_dir)
    if not isolation.lacking or accepts_weak:
        return isolation
    better = (
        "install bubblewrap (apt-get install bubblewrap), see `kernelwright doctor`"
        if asked == "auto"
        else f"leave out --jail {asked}, so that the best sandbox of this machine is used"
    )
    raise PrerequisiteError(
        f"the sandbox '{isolation.mechanism}' does not enforce "
        f"{', '.join(isolation.lacking)} on this machine",
        hint=f"{better}, or accept it with --accept-weak-isolation",
    )


def _load(file: Path) -> _Cached | None:
    """What was measured before; a file that cannot be read is measured anew."""
    try:
        return _Cached.model_validate_json(file.read_text())
    except (OSError, ValidationError):
        return None


def _key(mechanism: str) -> str:
    """Changes with the boot, the user, the jail, its program and the code of the jails."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.[pct]*")):
        if source.is_file():
            digest.update(source.read_bytes())
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    bwrap = shutil.which("bwrap") or ""
    stamp = str(os.stat(bwrap).st_mtime_ns) if bwrap else ""
    own = Path("/proc/self/cgroup").read_text()
    digest.update("\0".join([boot, mechanism, str(os.geteuid()), bwrap, stamp, own]).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Trial:
    """One jail, tried by the canary."""

    jail: Jail
    canary: Path

    def measure(self) -> Isolation:
        """Runs the canary three times and draws up the matrix."""
        with CanaryScene(self.canary) as scene:
            evidence = CanaryEvidence(
                mechanism=self.jail.name,
                look=self._look(scene),
                forks=self._run(["fork", str(_FORKS)]),
                forks_tried=_FORKS,
                hog=self._run(["hog", str(_HOG_MIB)]),
                scene=scene.collect_findings(),
            )
        rows: dict[str, Capability] = {}
        for name in CAPABILITIES:
            state, how = ROWS[name](evidence)
            rows[name] = Capability(state=state, how=how)
        return Isolation(mechanism=self.jail.name, capabilities=rows)

    def _run(self, arguments: list[str]) -> Outcome:
        confinement = Confinement(readable=(self.canary,), env=CanaryScene.ENV, may_mark=False)
        command = [str(self.canary), *arguments]
        return self.jail.start(command, confinement, PROBE_LIMITS).wait()

    def _look(self, scene: CanaryScene) -> Outcome:
        confinement = Confinement(
            readable=(self.canary,),
            env=CanaryScene.ENV,
            pass_fds=(scene.theirs.fileno(),),
            may_mark=False,
        )
        command = [str(self.canary), "look", *scene.arguments()]
        job = self.jail.start(command, confinement, PROBE_LIMITS)
        try:
            _look_from_outside(job, scene)
            outcome = job.wait()
        finally:
            job.kill()
        scene.look_after()
        return outcome


def _look_from_outside(job: Job, scene: CanaryScene) -> None:
    """While the program stands at its gate; one that never gets there is seen by its silence."""
    scene.theirs.close()
    scene.ours.settimeout(_READY_S)
    try:
        if scene.ours.recv(1) == b"r":
            scene.look_at(job.pid)
    except TimeoutError:
        pass
    finally:
        scene.ours.close()
