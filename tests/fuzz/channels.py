"""Frames of a runner and messages of the referee, over real sockets, from peers that misbehave."""

from __future__ import annotations

import json
import socket
import struct
import threading
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from kernelwright.sandbox import frames
from kernelwright.tests.fuzz.target import JSON, Target, attempt
from kernelwright.verifier.process import wire

_FRAME = struct.Struct("<IIQQ")
_PATIENCE_S = 20.0
_SHORT_S = 0.03


def check_frames(drawn: tuple[list[bytes], bool]) -> None:
    """A packet that is a whole frame is read as it is; any other, or none, is a FrameError."""
    packets, closes = drawn
    ours, theirs = frames.channel()
    with ours, theirs:
        for packet in packets:
            theirs.send(packet)
        if closes:
            theirs.shutdown(socket.SHUT_WR)
        found = attempt(lambda: frames.receive(ours, _SHORT_S), frames.FrameError)
        if isinstance(found, frames.FrameError):
            assert not packets or len(packets[0]) != frames.FRAME_BYTES
            assert found.is_closed is (closes and not packets)
            assert found.is_late is (not closes and not packets)
            return
        assert tuple(found.frame) == _FRAME.unpack(packets[0])
        assert 0 <= frames.now_ns() - found.sent_ns < _PATIENCE_S * 1e9
        assert frames.has_more(ours) is (len(packets) > 1)


def _write(channel: socket.socket, pieces: list[bytes], closes: bool) -> None:
    # A reader that has what it wants may be gone.
    with suppress(OSError):
        for piece in pieces:
            channel.sendall(piece)
        if closes:
            channel.shutdown(socket.SHUT_WR)


def check_frame_there_and_back(drawn: tuple[int, int, int, int]) -> None:
    """What is sent is what is received."""
    ours, theirs = frames.channel()
    with ours, theirs:
        frames.send(theirs, frames.Frame(*drawn))
        assert tuple(frames.receive(ours, _PATIENCE_S).frame) == drawn


def check_message(sent: bytes) -> None:
    """Any bytes are a message or the end of the conversation."""
    ours, theirs = socket.socketpair()
    writer = threading.Thread(target=_write, args=(theirs, [sent], True))
    with ours, theirs:
        writer.start()
        try:
            assert isinstance(wire.receive(ours), dict)
        except wire.Closed:
            pass
        finally:
            ours.close()
            writer.join()


def check_message_there_and_back(message: dict[str, Any]) -> None:
    """What is sent is what is received."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.send(theirs, message)
        assert wire.receive(ours) == message


def _with_length(body: bytes) -> bytes:
    return struct.pack("<Q", len(body)) + body


_BODIES = st.one_of(
    st.binary(max_size=40),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.sampled_from((b"[" * 200_000, b'{"a":' * 100_000, b"1" * 5000, b'"\\ud800"', b"NaN", b"")),
)

TARGETS = (
    Target(
        "frames and other packets",
        st.tuples(
            st.lists(
                st.one_of(st.binary(min_size=1, max_size=30), st.binary(min_size=24, max_size=24)),
                max_size=3,
            ),
            st.booleans(),
        ),
        check_frames,
        40,
    ),
    Target(
        "frames there and back",
        st.tuples(
            st.integers(0, 2**32 - 1),
            st.integers(0, 2**32 - 1),
            st.integers(0, 2**64 - 1),
            st.integers(0, 2**64 - 1),
        ),
        check_frame_there_and_back,
        40,
    ),
    Target("messages", st.one_of(st.binary(max_size=30), _BODIES.map(_with_length)), check_message),
    Target(
        "messages there and back",
        st.dictionaries(st.text(max_size=6), JSON, max_size=4),
        check_message_there_and_back,
        30,
    ),
)
