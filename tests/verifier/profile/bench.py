"""Kernels that are really built, and their static profiles."""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import arithmetic_of
from kernelwright.kernelbench.products import device_of
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders.cuda import build
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.plan.model import Launch, Launches
from kernelwright.traces.records import Profile
from kernelwright.verifier.profile.static import static_profile

N = 1 << 24
STRICT = arithmetic_of(registry.get("gemm"))


class Bench(NamedTuple):
    """Builds and profiles in one cache and jail."""

    workshop: Workshop

    def built(
        self, source: str, chip: str = "sm_90", kernels: tuple[str, ...] = ("k",)
    ) -> DeviceBuilt:
        found = build(self.workshop, source, kernels, architecture(chip))
        assert isinstance(found, DeviceBuilt), found
        return found

    def profile(
        self,
        source: str,
        grid: int,
        block: int = 256,
        *,
        chip: str = "sm_90",
        shared: int = 0,
        kernels: tuple[str, ...] = ("k",),
        kernel: str = "k",
        flops: float = N,
        moved: float = 8 * N,
        **more,
    ) -> Profile:
        launch = Launch(kernels.index(kernel), (grid, 1, 1), (block, 1, 1), shared)
        more.setdefault("device", device_of(chip))
        more.setdefault("arithmetic", STRICT)
        return static_profile(
            self.workshop,
            self.built(source, chip, kernels),
            Launches(kernels, (launch,)),
            flops=flops,
            moved=moved,
            **more,
        )
