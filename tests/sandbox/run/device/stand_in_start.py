"""Read as every Python starts that is to take the stand-in; changes modules as they are imported.

It imports nothing of ours itself, so that no program starts later for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "a stand-in for NVIDIA H200"


def change_devices(module: Any, library: Path) -> None:
    """How every device is reached: a node that does nothing, and the fake driver."""

    def access(device: Any) -> Any:
        del device
        return module.DeviceFiles(
            library,
            nodes=(Path("/dev/null"),),
            readable=(library.parent, *module.read_by_drivers()),
            extra={"FAKE_CUDA": f"name={NAME}"},
        )

    module.access = access
    module.find_library = lambda: library


def change_leases(module: Any, library: Path) -> None:
    """Baselines run on the CPU, as torch knows nothing of the stand-in."""
    del library
    start = module.Machine.__init__
    start.__defaults__ = tuple("cpu" if each == "cuda" else each for each in start.__defaults__)


def change_stand(module: Any, library: Path) -> None:
    """The fake driver's events are the host's time as they are enqueued, which a referee doubts."""
    del library
    mounted = module.MountedOnDevice
    conclude = mounted.conclude_times

    def believe(self: Any) -> Any:
        found = conclude(self)
        self.draft.timed.clear()
        return found

    mounted.conclude_times = believe


CHANGES: dict[str, Callable[[Any, Path], None]] = {
    "kernelwright.sandbox.run.device.device_files": change_devices,
    "kernelwright.verifier.stands.leased": change_leases,
    "kernelwright.verifier.stands.device": change_stand,
}
"""By module, what becomes of it once it was imported."""


class _Changing(MetaPathFinder):
    """Finds what others find, and changes it once it was read."""

    def __init__(self, library: Path) -> None:
        self._library = library

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name not in CHANGES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            CHANGES[name](module, self._library)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def change_on_import(library: str) -> None:
    """From now on."""
    sys.meta_path.insert(0, _Changing(Path(library)))
