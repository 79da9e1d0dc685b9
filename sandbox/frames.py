# SPDX-License-Identifier: Apache-2.0
"""The control plane between the referee and a runner: frames of 24 bytes, nothing else.

A frame is `<IIQQ`: kind, nonce, two numbers, and one packet of the channel. There is no frame that
means "pass"; what a runner says is a claim that the referee checks. Anything that is not a whole,
expected frame is a protocol error of the candidate. Nothing is ever unpickled (verification.md
E17). The kernel stamps each packet as it is sent: its sender cannot choose that time, and how long
the referee takes to wake up does not enter it.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

_FORMAT = struct.Struct("<IIQQ")
FRAME_BYTES = _FORMAT.size
SUMMED_WORDS = 256
"""DONE carries a sum over at most so many words of an output; the runners hold the same number."""
PATIENCE = 10
"""An answer is waited for so many times its deadline at most."""
_LEAST_SHARE = 0.02
"""Of a deadline: what is not given once more."""
_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("@qq")
_ANCILLARY = socket.CMSG_SPACE(_STAMP.size)


class FrameKind(IntEnum):
    """What a frame says; the runner's source holds the same numbers."""

    READY = 1
    """First of the runner itself, before any code of the candidate; then the answer to LOAD."""
    CALL = 2
    """slot, more: run it once the gate holds this frame's nonce, and so many times more. Before
    LOAD nothing is run. To a device runner: first slot, count."""
    DONE = 3
    """claimed nanoseconds in the kernel, sum over words of the outputs that the gate chose; from a
    device runner in place of the sum the nanoseconds by the host's clock."""
    PING = 4
    """first slot, count: slots that calls will name, or none."""
    PONG = 5
    REFUSED = 6
    """The artefact could not be loaded; the reason is on stderr."""
    LOAD = 7
    """pattern: load the candidate; the answer is READY or REFUSED. A native runner fills heap
    memory that nobody has set by the pattern (mallopt(3), M_PERTURB), where it is not 0."""
    UPLOAD = 8
    """first slot, count: copy these slots to the device's memory; the answer is PONG."""
    FETCH = 9
    """slot, choice: bring its outputs back, and look at its inputs; the answer is PONG with the sum
    over the chosen words."""
    REPLAY = 10
    """first slot, count: a CALL whose slots are one CUDA graph; the answer is DONE."""
    PREPARE = 11
    """slot: as CALL, of what makes a plan of its pattern; the sum of DONE is over that plan."""
    TOGETHER = 12
    """first slot, count: as CALL, of these slots at the same time, each by an instance of its own;
    DONE once all have answered, its sum is over all their outputs."""


class Frame(NamedTuple):
    """One control message."""

    kind: int
    nonce: int
    first: int = 0
    second: int = 0


class Received(NamedTuple):
    """A frame, and when it was sent."""

    frame: Frame
    sent_ns: int
    """By the kernel's CLOCK_REALTIME; when it was received, where the kernel gives no stamps."""


class FrameError(Exception):
    """The peer closed, was late, or sent something else than a frame."""

    def __init__(self, message: str, *, is_late: bool = False, is_closed: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late
        self.is_closed = is_closed


def channel() -> tuple[socket.socket, socket.socket]:
    """The referee's end, on which packets are stamped, and the runner's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return ours, theirs


def now_ns() -> int:
    """The clock of `Received.sent_ns`."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def send(channel: socket.socket, frame: Frame) -> None:
    """Sends one frame whole. Raises FrameError where the peer is gone."""
    try:
        channel.sendall(_FORMAT.pack(*frame))
    except OSError as error:
        raise FrameError(f"the runner closed its channel ({error})", is_closed=True) from error


def receive(channel: socket.socket, timeout_s: float) -> Received:
    """Receives one frame within `timeout_s`. Raises FrameError."""
    try:
        channel.settimeout(timeout_s)
        content, sent_ns = _packet(channel)
    except TimeoutError as error:
        raise FrameError(f"no answer within {timeout_s:.1f} s", is_late=True) from error
    except OSError as error:
        raise FrameError(f"the runner's channel broke ({error})", is_closed=True) from error
    if not content:
        raise FrameError("the runner closed its channel", is_closed=True)
    if len(content) != FRAME_BYTES:
        raise FrameError("the runner sent something else than a frame")
    return Received(Frame(*_FORMAT.unpack(content)), sent_ns)


def receive_patiently(
    channel: socket.socket, timeout_s: float, stood_s: Callable[[], float]
) -> Received:
    """As `receive`; but the time in which others had the CPUs is given once more, up to PATIENCE
    times the deadline in all: a busy machine is nothing that a candidate could help.

    Args:
        stood_s: for how long the other side was ready to run and did not, since it was asked last.
    """
    left, most = timeout_s, (PATIENCE - 1) * timeout_s
    while True:
        try:
            return receive(channel, left)
        except FrameError as error:
            left = min(stood_s(), most) if error.is_late else 0.0
            most -= left
            if left < _LEAST_SHARE * timeout_s:
                raise


def has_more(channel: socket.socket) -> bool:
    """Whether unread bytes wait: after the awaited answer there must be none."""
    channel.setblocking(False)
    try:
        return bool(channel.recv(1, socket.MSG_PEEK))
    except (BlockingIOError, OSError):
        return False
    finally:
        channel.setblocking(True)


def _packet(channel: socket.socket) -> tuple[bytes, int]:
    """One packet with its stamp; one byte more than a frame tells that it is none."""
    content, ancillary, flags, _ = channel.recvmsg(FRAME_BYTES + 1, _ANCILLARY)
    sent_ns = now_ns()
    is_plain = not flags & socket.MSG_CTRUNC
    for level, kind, told in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(told) == _STAMP.size:
            seconds, rest = _STAMP.unpack(told)
            sent_ns = seconds * 1_000_000_000 + rest
        else:
            is_plain = False
            _close_all(kind, told)
    return (content if is_plain or not content else content + b"and descriptors"), sent_ns


def _close_all(kind: int, told: bytes) -> None:
    if kind == socket.SCM_RIGHTS:
        for fd in struct.unpack(f"@{len(told) // 4}i", told[: len(told) // 4 * 4]):
            os.close(fd)
