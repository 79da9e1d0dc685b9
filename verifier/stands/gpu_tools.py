# SPDX-License-Identifier: Apache-2.0
"""What candidates for one GPU are built with: for each language that was asked for, its maker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from ...kernelbench.languages import CUDA, TRITON, Language, language_of
from ...sandbox.builders.compatibility import compiler_for
from ...sandbox.builders.model import EmulatedVariant
from ...traces.records import Status
from ..failure import Failed
from .cuda_candidate import CudaMaker
from .gpu_candidates import DeviceCandidate, GpuGround, Maker
from .triton_candidate import TritonMaker

MAKERS: dict[Language, Callable[[GpuGround], Maker]] = {
    CUDA: CudaMaker,
    TRITON: TritonMaker.open,
}
"""How each language that GPUs take becomes a candidate."""
TAKES = f"it takes {' and '.join(map(str, MAKERS))}"


@dataclass(frozen=True)
class GpuTools:
    """What candidates for one GPU are built with."""

    ground: GpuGround
    makers: Mapping[Language, Maker]

    @classmethod
    def open(cls, ground: GpuGround, languages: Sequence[str]) -> Self:
        """For candidates in these languages, and in CUDA on NVIDIA's: nothing is started for it.

        Raises:
            PrerequisiteError: a compiler is missing, or the driver does not load what it makes.
        """
        for name in languages:
            compiler_for(name, ground.newest)
        vendor = ground.architecture.vendor
        idle = (CUDA,) if vendor in CUDA.vendors else ()
        asked = dict.fromkeys((*idle, *map(language_of, languages)))
        return cls(ground, {each: MAKERS[each](ground) for each in asked})

    @property
    def versions(self) -> dict[str, str]:
        """Of what it builds with, beside the compilers that a build names."""
        found: dict[str, str] = {}
        for maker in self.makers.values():
            found |= maker.versions
        return found

    def build(
        self, language: str, source: str, seed: int, foreseen: Sequence[EmulatedVariant] = ()
    ) -> DeviceCandidate:
        """The candidate in its language, built for the target.

        Builds for the CPU that are foreseen are begun beside it, where the language has such.

        Raises:
            Failed: it cannot be built or launched.
            PrerequisiteError: this machine lacks what the language needs.
            SandboxError, StorageError: the harness failed, not the source.
        """
        maker = self.makers.get(language_of(language))
        if maker is None:
            raise Failed(Status.HARNESS_ERROR, f"the referee was not started for {language}")
        return maker.build(source, seed, foreseen)

    def close(self) -> None:
        """Ends what waits for candidates."""
        for maker in self.makers.values():
            maker.close()
