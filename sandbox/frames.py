"""The control plane between the referee and a runner: frames of 24 bytes, nothing else.

A frame is `<IIQQ`: kind, nonce, two numbers. There is no frame that means "pass"; what a runner
says is a claim that the referee checks. Anything that is not a whole, expected frame is a protocol
error of the candidate. Nothing is ever unpickled (verification.md E17).
"""

from __future__ import annotations

import socket
import struct
import time
from enum import IntEnum
from typing import NamedTuple

_FORMAT = struct.Struct("<IIQQ")
FRAME_BYTES = _FORMAT.size


class Kind(IntEnum):
    """What a frame says; the runner's source holds the same numbers."""

    READY = 1
    """First of the runner itself, before any code of the candidate; then the answer to LOAD."""
    CALL = 2
    """first slot, count: run these slots one after the other."""
    DONE = 3
    """claimed nanoseconds in the kernel, number of calls; from a device runner in place of the
    number the nanoseconds by the host's clock."""
    PING = 4
    """first slot, count: the slots that the next CALL names, or none."""
    PONG = 5
    REFUSED = 6
    """The artefact could not be loaded; the reason is on stderr."""
    LOAD = 7
    """Load the candidate: the answer is READY or REFUSED."""
    UPLOAD = 8
    """first slot, count: copy these slots to the device's memory; the answer is PONG."""
    FETCH = 9
    """first slot, count: bring their outputs back, and look at their inputs; the answer is PONG."""
    REPLAY = 10
    """first slot, count: a CALL whose slots are one CUDA graph; the answer is DONE."""


class Frame(NamedTuple):
    """One control message."""

    kind: int
    nonce: int
    first: int = 0
    second: int = 0


class FrameError(Exception):
    """The peer closed, was late, or sent something else than a frame."""

    def __init__(self, message: str, *, is_late: bool = False, is_closed: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late
        self.is_closed = is_closed


def send(channel: socket.socket, frame: Frame) -> None:
    """Sends one frame whole. Raises FrameError where the peer is gone."""
    try:
        channel.sendall(_FORMAT.pack(*frame))
    except OSError as error:
        raise FrameError(f"the runner closed its channel ({error})", is_closed=True) from error


def receive(channel: socket.socket, timeout_s: float) -> Frame:
    """Receives one frame within `timeout_s`. Raises FrameError."""
    deadline = time.monotonic() + timeout_s
    held = b""
    while len(held) < FRAME_BYTES:
        left = deadline - time.monotonic()
        if left <= 0:
            raise FrameError(f"no answer within {timeout_s:.1f} s", is_late=True)
        channel.settimeout(left)
        try:
            part = channel.recv(FRAME_BYTES - len(held))
        except TimeoutError as error:
            raise FrameError(f"no answer within {timeout_s:.1f} s", is_late=True) from error
        except OSError as error:
            raise FrameError(f"the runner's channel broke ({error})", is_closed=True) from error
        if not part:
            raise FrameError("the runner closed its channel", is_closed=True)
        held += part
    return Frame(*_FORMAT.unpack(held))


def has_more(channel: socket.socket) -> bool:
    """Whether unread bytes wait: after the awaited answer there must be none."""
    channel.setblocking(False)
    try:
        return bool(channel.recv(1, socket.MSG_PEEK))
    except (BlockingIOError, OSError):
        return False
    finally:
        channel.setblocking(True)
