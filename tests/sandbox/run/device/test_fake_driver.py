"""The fake driver does as CUDA's documentation says: what is told late, what waits for what."""

from __future__ import annotations

import ctypes
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.jail

FLUSH = 256 << 20


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


class Driver:
    """A context of one loaded library, with a stream of its own."""

    def __init__(self, library: Path) -> None:
        self.cuda = ctypes.CDLL(str(library))
        assert self("cuInit", 0) == 0
        context = ctypes.c_void_p()
        assert self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0) == 0
        assert self("cuCtxSetCurrent", context) == 0
        self.stream = self.made("cuStreamCreate", 1)

    def __call__(self, name: str, *arguments: Any) -> int:
        result = getattr(self.cuda, name)(*arguments)
        assert isinstance(result, int)
        return result

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        assert self(name, ctypes.byref(found), *arguments) == 0
        return found

    def memory(self, size: int) -> ctypes.c_uint64:
        found = ctypes.c_uint64()
        assert self("cuMemAlloc_v2", ctypes.byref(found), ctypes.c_size_t(size)) == 0
        return found

    def launch(self, name: str, *values: ctypes.c_uint64) -> int:
        function = self.made("cuModuleGetFunction", None, name.encode())
        config = Config((1, 1, 1), (1, 1, 1), 0, self.stream, None, 0)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        return self("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)

    def event(self) -> ctypes.c_void_p:
        found = self.made("cuEventCreate", 0)
        assert self("cuEventRecord", found, self.stream) == 0
        return found

    def between(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> tuple[int, float]:
        ms = ctypes.c_float()
        return self("cuEventElapsedTime", ctypes.byref(ms), first, last), 1e3 * ms.value

    def flush(self, memory: ctypes.c_uint64) -> int:
        return self("cuMemsetD32Async", memory, 0, ctypes.c_size_t(FLUSH // 4), self.stream)


@pytest.fixture
def driver(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Driver]:
    """Loads a copy of its own, whose state is its own."""

    def load(asked: str = "") -> Driver:
        monkeypatch.setenv("FAKE_CUDA", asked)
        return Driver(Path(shutil.copy(library, tmp_path / f"lib{asked}.so")))

    return load


def test_a_copy_from_pageable_memory_may_land_after_the_call(driver: Callable[..., Driver]) -> None:
    """The stream of the launch is not ordered with the legacy one, in which it is copied."""
    cuda = driver("slow_copies")
    x, y = cuda.memory(64), cuda.memory(64)
    answer = ctypes.create_string_buffer(4)
    seen = []
    for is_waited_for in (False, True):
        number = struct.pack("<f", 2.5)
        assert cuda("cuMemcpyHtoD_v2", x, number, ctypes.c_size_t(4)) == 0
        if is_waited_for:
            assert cuda("cuCtxSynchronize") == 0
        assert cuda.launch("copy_first", x, y) == 0
        assert cuda("cuStreamSynchronize", cuda.stream) == 0
        assert cuda("cuMemcpyDtoH_v2", answer, y, ctypes.c_size_t(4)) == 0
        seen.append(answer.raw == number)
    assert seen == [False, True]


def test_an_answer_that_is_fetched_without_waiting_is_the_old_one(
    driver: Callable[..., Driver],
) -> None:
    cuda = driver()
    x, y = cuda.memory(64), cuda.memory(64)
    answer = ctypes.create_string_buffer(4)
    milliseconds = ctypes.c_uint64(int.from_bytes(struct.pack("<f", 200.0), "little"))
    assert cuda.launch("takes_a_while", x, milliseconds) == 0
    assert cuda.launch("copy_first", x, y) == 0
    assert cuda("cuMemcpyDtoH_v2", answer, y, ctypes.c_size_t(4)) == 0
    assert answer.raw == b"\x11" * 4


def test_events_hold_the_time_at_which_the_stream_reached_them(
    driver: Callable[..., Driver],
) -> None:
    cuda = driver()
    memory = cuda.memory(FLUSH)
    first = cuda.event()
    assert cuda.flush(memory) == 0
    last = cuda.event()
    assert cuda("cuEventSynchronize", last) == 0
    result, us = cuda.between(first, last)
    assert result == 0
    # 256 MiB at the speed of the fake's memory; the host was done long before.
    assert us > FLUSH / 3e6
    fresh = cuda.made("cuEventCreate", 0)
    assert cuda.between(first, fresh)[0] == 400


def test_an_event_that_was_not_reached_has_no_time(driver: Callable[..., Driver]) -> None:
    cuda = driver()
    first = cuda.event()
    milliseconds = ctypes.c_uint64(int.from_bytes(struct.pack("<f", 500.0), "little"))
    assert cuda.launch("takes_a_while", cuda.memory(64), milliseconds) == 0
    last = cuda.event()
    assert cuda.between(first, last)[0] == 600
    assert cuda("cuCtxSynchronize") == 0
    assert cuda.between(first, last)[0] == 0


def test_after_a_wrong_address_the_context_is_lost(driver: Callable[..., Driver]) -> None:
    cuda = driver()
    x = cuda.memory(64)
    assert cuda.launch("wrong_address", x, x) == 0
    assert cuda("cuStreamSynchronize", cuda.stream) == 700
    address = ctypes.c_uint64()
    assert cuda("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(64)) == 700
    assert cuda.launch("nothing", x, x) == 700
    assert cuda("cuMemcpyHtoD_v2", x, b"1234", ctypes.c_size_t(4)) == 700
    assert cuda("cuEventRecord", cuda.made("cuEventCreate", 0), cuda.stream) == 700
    assert cuda("cuCtxSynchronize") == 700


def test_what_waits_breaks_a_capture(driver: Callable[..., Driver]) -> None:
    cuda = driver()
    x = cuda.memory(64)
    graph = ctypes.c_void_p()
    for call, result in ((None, 0), ("cuCtxSynchronize", 901), ("cuStreamSynchronize", 901)):
        assert cuda("cuStreamBeginCapture_v2", cuda.stream, 1) == 0
        assert cuda.launch("nothing", x, x) == 0
        if call:
            assert cuda(call, *([cuda.stream] if "Stream" in call else [])) == 900
        assert cuda("cuStreamEndCapture", cuda.stream, ctypes.byref(graph)) == result
