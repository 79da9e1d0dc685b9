# SPDX-License-Identifier: Apache-2.0
"""The target's card as host code sees it, where no card is: what torch and Triton answer of it.

Both the builder and the interpreter put it in front of a candidate before its module is executed,
since tutorials ask at import time. Nothing here launches anything.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any

TOTAL_MEMORY = 80 << 30


class Utilities:
    """What `driver.active.utils` answers without a device."""

    def __init__(self, properties: dict[str, Any]) -> None:
        self._properties = properties

    def get_device_properties(self, device: int = 0) -> dict[str, Any]:
        """The card's figures, whatever number it is asked for."""
        del device
        return dict(self._properties)


def driver(properties: dict[str, Any]) -> Any:
    """What `triton.runtime.driver.set_active` takes; launchers are for a subclass."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class Card(DriverBase):
        utils: Any = Utilities(properties)

        def get_current_target(self) -> Any:
            return GPUTarget(*properties["target"])

        def get_current_device(self) -> int:
            return 0

        def set_current_device(self, device: int) -> None:
            return

        def get_current_stream(self, device: int | None = None) -> int:
            return 0

        def get_device_capability(self, device: int = 0) -> tuple[int, int]:
            major, minor = properties["version"]
            return major, minor

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cuda", 0)

        def get_device_interface(self) -> Any:
            import torch

            return torch.cuda

        def map_python_to_cpp_type(self, kind: str) -> str:
            return kind

        def get_benchmarker(self) -> Any:
            """Nothing is timed: the first configuration is taken, and none is launched for it."""
            return lambda call, quantiles=None, **_: [1.0] * len(quantiles or (1,))

        def get_empty_cache_for_benchmark(self) -> Any:
            return None

        def clear_cache(self, cache: Any) -> None:
            return

        @staticmethod
        def is_active() -> bool:
            return True

    return Card()


def show(properties: dict[str, Any]) -> None:
    """Lets torch.cuda and Triton answer what host code asks before it launches."""
    import torch
    import triton

    triton.runtime.driver.set_active(driver(properties))
    major, minor = properties["version"]
    backend, name, warp = properties["target"]
    if backend == "hip":
        # AMD's torch is known by this, and calls its devices CUDA's all the same.
        version: Any = torch.version
        version.hip, version.cuda = "emulated", None
    facts = types.SimpleNamespace(
        multi_processor_count=properties["multiprocessor_count"],
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=properties["max_shared_mem"],
        shared_memory_per_multiprocessor=properties["max_shared_mem"] + 1024,
        regs_per_multiprocessor=properties["max_num_regs"],
        max_threads_per_multi_processor=properties["max_threads_per_sm"],
        max_threads_per_block=1024,
        L2_cache_size=properties["l2_bytes"],
        major=major,
        minor=minor,
        warp_size=warp,
        name="emulated",
        gcnArchName=name if backend == "hip" else "",
        total_memory=TOTAL_MEMORY,
        is_integrated=False,
        is_multi_gpu_board=False,
    )
    cuda: Any = torch.cuda
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": facts,
        "get_device_capability": (major, minor),
        "get_device_name": facts.name,
        "is_bf16_supported": major >= 8,
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "mem_get_info": (TOTAL_MEMORY,) * 2,
        "get_arch_list": [name if backend == "hip" else f"sm_{name}"],
        "is_current_stream_capturing": False,
    }
    for name, answer in answers.items():
        setattr(cuda, name, _answer_always(answer))
    for name in ("set_device", "synchronize", "init", "empty_cache", "set_stream"):
        setattr(cuda, name, _answer_always(None))
    cuda.current_stream = cuda.default_stream = cuda.Stream = _Stream
    cuda.Event = _Event
    cuda.device = cuda.device_of = cuda.stream = lambda *_: contextlib.nullcontext()


def _answer_always(answer: Any) -> Any:
    return lambda *_, **__: answer


class _Stream:
    """A stream in which all has been done."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        return

    def synchronize(self) -> None:
        """Waits for nothing."""

    def wait_stream(self, other: Any = None) -> None:
        """The same."""
        del other

    wait_event = record_event = wait = record = wait_stream

    def query(self) -> bool:
        """Whether all is done."""
        return True

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return


class _Event(_Stream):
    """An event that has happened."""

    def elapsed_time(self, other: Any) -> float:
        """Nothing is timed."""
        del other
        return 1.0
