# SPDX-License-Identifier: Apache-2.0
"""A driver for Triton that launches nothing: it keeps every launch as data.

The host code of a candidate, decorators and all, runs unchanged against it; Triton specialises and
compiles for the target that it names.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import re
import struct
from pathlib import Path
from typing import Any

from . import card
from .memory import Memory, MemoryRole
from .recording_modes import UnsupportedError

INTEGER, FLOAT32, FLOAT64, TENSOR, SCRATCH = range(5)  # sandbox/plan/model.py
ZERO_FILL = -1
MAX_LAUNCHES = 1024
MAX_ARGUMENT = 2**63
_REGISTERS = re.compile(r"(?:Used |\.vgpr_count:\s+)(\d+)")
"""As ptxas says it, and AMD's assembly."""

Argument = list[int]
"""Kind, value, offset."""


class RefusedError(Exception):
    """A launch that no device would take; the candidate's fault."""


class CallRecorder:
    """Kernels, launches and scratch buffers of one call of the host code."""

    def __init__(self, memory: Memory, folder: Path, properties: dict[str, Any]) -> None:
        self.memory = memory
        self.properties = properties
        self.kernels: list[dict[str, Any]] = []
        self.launches: list[list[Any]] = []
        self._folder = folder
        self._numbers: dict[tuple[str, int], int] = {}
        self._log = ""
        self._assembly = ""

    def listen(self) -> None:
        """Lets Triton's back end tell what it makes: ptxas's words, or AMD's assembly."""
        backend = {"cuda": "nvidia", "hip": "amd"}[self.properties["target"][0]]
        name = f"triton.backends.{backend}.compiler"
        compiler: Any = importlib.import_module(name)
        if backend == "nvidia":
            compiler.print = self.hear
            return
        assemble = compiler.HIPBackend.make_hsaco

        def make_hsaco(source: str, *rest: Any) -> bytes:
            self._assembly = source
            made: bytes = assemble(source, *rest)
            return made

        compiler.HIPBackend.make_hsaco = staticmethod(make_hsaco)

    def hear(self, *words: object, **_: object) -> None:
        """Stands for `print` where Triton prints what ptxas said, or a whole program after it."""
        text = " ".join(map(str, words))
        if "ptxas" in text and "====" not in text:
            self._log = text

    def keep_cubin(self, name: str, cubin: bytes) -> tuple[str, str]:
        """Keeps a cubin under its hash; the function is known by name and hash from then on."""
        digest = hashlib.sha256(cubin).hexdigest()
        file = self._folder / f"{digest}.cubin"
        if not file.exists():
            file.write_bytes(cubin)
            (self._folder / f"{digest}.log").write_text(self._log)
            if self._assembly:
                (self._folder / f"{digest}.s").write_text(self._assembly)
        return name, digest

    def registers(self, name: str, digest: str) -> int:
        """What was said of a kernel as it was compiled. Host code divides by it."""
        told = self._folder / f"{digest}.s"
        if not told.exists():
            told = self._folder / f"{digest}.log"
        found = _REGISTERS.findall(told.read_text())
        if not found:
            raise UnsupportedError(f"the registers of kernel {name} are not known here")
        return int(found[-1])

    def keep_zeroing(self, tensor: Any, _: Memory) -> None:
        """Keeps that a tensor is set to zero bytes."""
        if not tensor.numel():
            return
        if not tensor.is_contiguous():
            raise UnsupportedError(
                "host code sets a strided view to zero: zero the whole tensor, or let a kernel"
            )
        size = tensor.numel() * tensor.element_size()
        buffer = self._buffer(tensor, "a tensor that is set to zero")
        self.keep_fill([buffer, [INTEGER, size, 0]])

    def keep_fill(self, arguments: list[Argument]) -> None:
        """Keeps that so many bytes of a buffer are set to zero."""
        self._add(ZERO_FILL, (1, 1, 1), (1, 1, 1), 0, (1, 1, 1), arguments)

    def keep_launch(
        self, grid: tuple[int, ...], function: tuple[str, str], source: Any, meta: Any, args: Any
    ) -> None:
        """Keeps one launch. A grid without blocks launches nothing, as on a device."""
        name = source.fn.__name__
        if any(not isinstance(n, int) for n in grid):
            grid = tuple(int(n) for n in grid)
        if min(grid) < 0:
            raise RefusedError(f"kernel {name} is launched with the negative grid {grid}")
        if 0 in grid:
            return
        for option, is_refused in (
            ("launch_cooperative_grid", meta.launch_cooperative_grid),
            ("a profile scratch buffer", meta.profile_scratch_size > 0),
        ):
            if is_refused:
                raise UnsupportedError(f"kernel {name} needs {option}, which our launcher lacks")
        arguments = self._arguments(name, source.signature, args)
        blocks = math.prod(grid) * meta.num_ctas
        arguments += [self._work(meta, blocks), [INTEGER, 0, 0]]
        number = self._number(function, source, meta)
        cluster = (meta.num_ctas, 1, 1)
        self._add(
            number,
            (grid[0] * meta.num_ctas, *grid[1:]),
            (self.properties["warpSize"] * meta.num_warps, 1, 1),
            meta.shared,
            cluster,
            arguments,
        )

    def _add(
        self,
        kernel: int,
        grid: Any,
        block: Any,
        shared: int,
        cluster: Any,
        arguments: list[Argument],
    ) -> None:
        if len(self.launches) >= MAX_LAUNCHES:
            raise RefusedError(f"one call makes more than {MAX_LAUNCHES} launches")
        self.launches.append([kernel, list(grid), list(block), shared, list(cluster), arguments])

    def _number(self, function: tuple[str, str], source: Any, meta: Any) -> int:
        symbol, digest = function
        key = (digest, meta.num_warps)
        if key not in self._numbers:
            self._numbers[key] = len(self.kernels)
            names = list(source.signature)
            constants = {
                names[at[0]]: value for at, value in source.constants.items() if len(at) == 1
            }
            self.kernels.append(
                {
                    "name": source.fn.__name__,
                    "symbol": symbol,
                    "cubin": digest,
                    "constants": {k: str(v) for k, v in constants.items()},
                    "warps": meta.num_warps,
                    "stages": meta.num_stages,
                }
            )
        return self._numbers[key]

    def _arguments(self, kernel: str, signature: dict[str, Any], args: Any) -> list[Argument]:
        found = []
        for (name, kind), value in zip(signature.items(), args, strict=True):
            where = f"argument '{name}' of kernel {kernel}"
            if kind == "constexpr":
                continue
            if not isinstance(kind, str) or kind.startswith("tensordesc"):
                raise UnsupportedError(
                    f"{where} is a tuple or a tensor descriptor made by the host, which is not "
                    "taken: pass its parts, or use tl.make_tensor_descriptor in the kernel"
                )
            found.append(self._buffer(value, where) if kind[0] == "*" else literal(kind, value))
        return found

    def _buffer(self, tensor: Any, where: str) -> Argument:
        address = tensor.data_ptr()
        region = self.memory.find(address)
        if region is None:
            raise UnsupportedError(
                f"{where} is a tensor with contents that host code made itself: only inputs, "
                "outputs and new tensors (torch.empty, torch.zeros) can be repeated"
            )
        kind = SCRATCH if region.role is MemoryRole.SCRATCH else TENSOR
        return [kind, region.place, address - region.start]

    def _work(self, meta: Any, blocks: int) -> Argument:
        size = meta.global_scratch_size * blocks
        if not size:
            return [INTEGER, 0, 0]
        import torch

        place = len(self.memory.scratch)
        self.memory.tensor(MemoryRole.SCRATCH, place, f"scratch{place}", torch.uint8, (size,))
        return [SCRATCH, place, 0]


def literal(kind: str, value: Any) -> Argument:
    """A number as its parameter holds it."""
    if kind in ("fp32", "f32"):
        return [FLOAT32, int.from_bytes(struct.pack("<f", float(value)), "little"), 0]
    if kind in ("fp64", "f64"):
        bits = int.from_bytes(struct.pack("<d", float(value)), "little", signed=True)
        return [FLOAT64, bits, 0]
    if kind in ("fp16", "f16"):
        return [INTEGER, int.from_bytes(struct.pack("<e", float(value)), "little"), 0]
    if kind in ("bf16", "b16"):
        raw = int.from_bytes(struct.pack("<f", float(value)), "little")
        return [INTEGER, (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16, 0]
    number = int(value)
    # An unsigned 64-bit value goes as the signed word with the same bits.
    return [INTEGER, number - 2**64 if number >= MAX_ARGUMENT else number, 0]


class _Utilities(card.Utilities):
    def __init__(self, recorder: CallRecorder) -> None:
        super().__init__(recorder.properties)
        self._recorder = recorder

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> Any:
        function = self._recorder.keep_cubin(name, binary)
        return 0, function, self._recorder.registers(*function), 0, 1024

    def unload_module(self, module: Any) -> None:
        return


def driver(recorder: CallRecorder) -> Any:
    """What `triton.runtime.driver.set_active` takes."""
    shown = card.driver(recorder.properties)

    class Launcher:
        def __init__(self, source: Any, metadata: Any) -> None:
            self.source, self.metadata = source, metadata

        def __call__(
            self,
            x: int,
            y: int,
            z: int,
            stream: Any,
            function: Any,
            packed: Any,
            launch: Any,
            enter: Any,
            leave: Any,
            *args: Any,
        ) -> None:
            recorder.keep_launch((x, y, z), function, self.source, self.metadata, args)

    shown.utils = _Utilities(recorder)
    shown.launcher_cls = Launcher
    return shown
