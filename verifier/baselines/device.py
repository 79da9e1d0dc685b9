# SPDX-License-Identifier: Apache-2.0
"""Where baselines run for a GPU: tensors of the device that stand for the arrays of the calls.

Part of the baseline process. Inputs are copied to the device before a call and outputs back after
it, outside of what is timed. A call is timed as a candidate's is: the L2 cache is flushed in the
same stream right before the first event, for so long that the host has enqueued everything by then.
Whether it had is asked each time: where the first event had come by, the device may have waited for
the host, and the call is timed again behind twice as many flushes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ...kernelbench import torch_calls
from ...kernelbench.arithmetic import FP32
from ...kernelbench.precision import TF32
from ...kernelbench.problem import BaselineCall, Prepared

LEAST_FLUSH = 256 << 20
"""Bytes, as in sandbox/run/device/device_runner.cpp."""
UNKNOWN_L2 = 128 << 20
"""Used where torch does not tell; too large only makes the floor lower."""
MOST_FLUSHES = 64
COPIED_BYTES = 1 << 30
SIDE = 4096
"""Of the square matrices whose product is timed for a peak."""
REPEATS = 10
COPIES = 20
"""Behind one another between two events: one within L2 takes no longer than its launch."""


class TorchDevice:
    """One device of torch: `cuda`, or `cpu` where only the copying is to be tried."""

    def __init__(self, name: str, policy: str, is_warm: bool = False) -> None:
        """Raises RuntimeError where torch cannot use it.

        Args:
            is_warm: The inputs of a call are copied once more behind the flush, as a candidate's.
        """
        import torch

        if name == "cuda" and not torch.cuda.is_available():
            raise RuntimeError(
                f"torch {torch.__version__} cannot use a GPU here"
                + ("" if torch.version.cuda else ": it was built without CUDA")
            )
        self._torch: Any = torch
        self._name = name
        self._mirrors: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._is_warm = is_warm
        self._kept: list[tuple[Any, Any]] = []
        """Inputs that were uploaded last, each with a copy."""
        self._flush: Any = None
        self._covers: dict[Prepared, int] = {}
        """Flushes that a thunk's launches need."""
        _demand_exactness(torch, policy)
        torch.set_default_device(name)
        torch_calls.place_with(self._mirror)

    def add(self, call: BaselineCall) -> None:
        """Makes the tensors that stand for the arrays of a call."""
        for array in (*call.inputs.values(), *call.outputs.values()):
            self._mirrors[_key(array)] = self._torch.from_numpy(array).to(self._name, copy=True)

    def upload(self, call: BaselineCall) -> None:
        """Copies what the call is given, and what its outputs hold before it."""
        for array in (*call.inputs.values(), *call.outputs.values()):
            self._mirrors[_key(array)].copy_(self._torch.from_numpy(array))
        if self._is_warm:
            mirrors = [self._mirrors[_key(array)] for array in call.inputs.values()]
            self._kept = [(mirror, mirror.clone()) for mirror in mirrors]

    def download(self, call: BaselineCall) -> None:
        """Copies the outputs back."""
        for array in call.outputs.values():
            self._torch.from_numpy(array).copy_(self._mirrors[_key(array)])

    def warm_up(self, thunk: Prepared) -> None:
        """Runs a fresh thunk."""
        thunk()
        self._wait()
        if self._name == "cuda":
            self._make_flush()

    def time_ns(self, thunk: Prepared) -> int:
        """Nanoseconds of one call with a cold L2 cache, or one that holds the inputs that were
        uploaded last, without what its launches take the host.

        A call that waits for the device itself, or that 64 flushes are too short for, is timed with
        what its host does.
        """
        self._wait()
        if self._name != "cuda":
            start = time.perf_counter_ns()
            thunk()
            return time.perf_counter_ns() - start
        while True:
            flushes = self._covers.get(thunk, 1)
            spent_us, was_ahead = self._time_behind(flushes, thunk)
            if was_ahead or flushes >= MOST_FLUSHES:
                return int(1e3 * spent_us)
            self._covers[thunk] = 2 * flushes

    def _time_behind(self, flushes: int, thunk: Prepared) -> tuple[float, bool]:
        """Microseconds of a call, and whether all of it was enqueued while the flushes ran."""
        first, last = self._events()
        for number in range(flushes):
            self._flush.fill_(number)
        for mirror, copy in self._kept:
            mirror.copy_(copy)
        first.record()
        thunk()
        last.record()
        was_ahead = not first.query()
        return self._between(first, last), was_ahead

    def peaks(self) -> dict[str, float]:
        """What the device reaches at best: GB/s from memory and within L2, L2's bytes, and for each
        arithmetic that torch has a product of its GFLOP/s (int8: GOP/s)."""
        cuda = self._torch.cuda
        told = cuda.get_device_properties(0) if self._name == "cuda" else None
        l2_bytes = int(getattr(told, "L2_cache_size", 0) or UNKNOWN_L2)
        room = cuda.mem_get_info()[0] // 4 if told else 1 << 24
        memory = self._copying_gbs(min(COPIED_BYTES, room))
        return {
            "memory_gbs": memory,
            "l2_gbs": max(memory, self._copying_gbs(l2_bytes // 4)),
            "l2_bytes": float(l2_bytes),
            **self._products(SIDE if told else 256),
        }

    def _products(self, side: int) -> dict[str, float]:
        """GFLOP/s of a square product by arithmetic; one that torch cannot do here is missing."""
        torch = self._torch
        found = {
            "fp32": self._product_gflops(side, torch.float32),
            "fp16": self._product_gflops(side, torch.float16),
            "bf16": self._product_gflops(side, torch.bfloat16),
        }
        with suppress(RuntimeError):
            found["int8"] = self._product_gflops(side, torch.int8)
        if self._name == "cuda":
            asked = torch.backends.cuda.matmul.allow_tf32
            for is_allowed, kind in ((True, "tf32"), (False, FP32)):
                torch.backends.cuda.matmul.allow_tf32 = is_allowed
                found[kind] = self._product_gflops(side, torch.float32)
            torch.backends.cuda.matmul.allow_tf32 = asked
        return found

    def _copying_gbs(self, size: int) -> float:
        a = self._torch.zeros(size // 4, dtype=self._torch.float32)
        b = self._torch.empty_like(a)

        def copies() -> None:
            for _ in range(COPIES):
                b.copy_(a)

        return 2 * size * COPIES / self._best_us(copies) / 1e3

    def _product_gflops(self, side: int, dtype: Any) -> float:
        torch, is_whole = self._torch, dtype == self._torch.int8
        a = torch.ones(side, side, dtype=dtype)
        b = torch.empty(side, side, dtype=torch.int32 if is_whole else dtype)
        # cuBLAS has int8 for a second factor that is stored by columns alone.
        product, second = (torch._int_mm, a.t()) if is_whole else (torch.mm, a)
        return 2 * side**3 / self._best_us(lambda: product(a, second, out=b)) / 1e3

    def _best_us(self, work: Callable[[], Any]) -> float:
        work()
        return min(self._time_work(work) for _ in range(REPEATS))

    def _time_work(self, work: Callable[[], Any]) -> float:
        """Microseconds between two events around the work, or by the clock where there are none."""
        if self._name != "cuda":
            start = time.perf_counter_ns()
            work()
            return max(1, time.perf_counter_ns() - start) / 1e3
        first, last = self._events()
        first.record()
        work()
        last.record()
        return self._between(first, last)

    def _events(self) -> tuple[Any, Any]:
        event = self._torch.cuda.Event
        return event(enable_timing=True), event(enable_timing=True)

    def _between(self, first: Any, last: Any) -> float:
        self._torch.cuda.synchronize()
        return max(1e3 * float(first.elapsed_time(last)), 1e-3)

    def _make_flush(self) -> None:
        if self._flush is not None:
            return
        told = self._torch.cuda.get_device_properties(0)
        size = max(LEAST_FLUSH, 2 * int(getattr(told, "L2_cache_size", 0) or UNKNOWN_L2))
        self._flush = self._torch.zeros(size // 4, dtype=self._torch.int32)

    def _mirror(self, host: Any) -> Any:
        """The tensor that stands for an array of a call; a copy of any other."""
        known = self._mirrors.get((host.data_ptr(), tuple(host.shape)))
        return host.to(self._name, copy=True) if known is None else known

    def _wait(self) -> None:
        if self._name == "cuda":
            self._torch.cuda.synchronize()


def _demand_exactness(torch: Any, policy: str) -> None:
    """Products as the policy has them, and sums of halves in float32, as candidates are held to."""
    is_allowed = policy == TF32
    torch.set_float32_matmul_precision("high" if is_allowed else "highest")
    torch.backends.cuda.matmul.allow_tf32 = is_allowed
    torch.backends.cudnn.allow_tf32 = is_allowed
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def _key(array: np.ndarray) -> tuple[int, tuple[int, ...]]:
    return array.ctypes.data, array.shape
