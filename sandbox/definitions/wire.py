# SPDX-License-Identifier: Apache-2.0
"""Messages of words and arrays between two of our processes, of which one runs in a jail.

A message is eight bytes of length, JSON, and the arrays' bytes one after the other. Neither side
runs anything that it is sent.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernelbench.codecs import host_dtype
from ...kernelbench.dtypes import BOOL, FLOAT64, INT64, TENSORS

MOST_WORDS = 1 << 20
"""Bytes of a message's JSON."""
TYPES = {each.name: host_dtype(each) for each in (*TENSORS, FLOAT64, INT64, BOOL)}
Message = dict[str, Any]


class WireError(Exception):
    """The other side has closed its end, or said what cannot be."""


def send(channel: socket.socket, message: Message, arrays: Sequence[np.ndarray] = ()) -> None:
    """Sends a message. Raises OSError."""
    # np.ascontiguousarray would give a number without axes one.
    flat = [np.asarray(array, order="C") for array in arrays]
    told = {**message, "arrays": [[array.dtype.name, list(array.shape)] for array in flat]}
    words = json.dumps(told).encode()
    channel.sendall(struct.pack("<Q", len(words)) + words)
    for array in flat:
        if array.size:
            channel.sendall(array.reshape(-1).view(np.uint8).data)


def receive(channel: socket.socket, most_bytes: int) -> tuple[Message, list[np.ndarray]]:
    """A message with at most so many bytes of arrays. Raises WireError, and OSError."""
    (length,) = struct.unpack("<Q", _read(channel, 8))
    if length > MOST_WORDS:
        raise WireError(f"a message of {length} bytes")
    try:
        message = json.loads(_read(channel, length))
        shapes = [(str(kind), tuple(map(int, shape))) for kind, shape in message["arrays"]]
    except (ValueError, KeyError, TypeError) as error:
        raise WireError("a message that is none") from error
    arrays = []
    for kind, shape in shapes:
        if kind not in TYPES or min(shape, default=0) < 0:
            raise WireError(f"an array of {kind}{list(shape)}")
        size = int(np.prod(shape, dtype=object)) * TYPES[kind].itemsize
        most_bytes -= size
        if most_bytes < 0:
            raise WireError(f"more than it was asked for: {kind}{list(shape)}")
        made = np.empty(shape, TYPES[kind])
        if size:
            _fill(channel, made.reshape(-1).view(np.uint8).data)
        arrays.append(made)
    return message, arrays


def _read(channel: socket.socket, count: int) -> bytes:
    made = bytearray(count)
    _fill(channel, memoryview(made))
    return bytes(made)


def _fill(channel: socket.socket, room: memoryview) -> None:
    while room:
        got = channel.recv_into(room)
        if not got:
            raise WireError("it has closed its end")
        room = room[got:]
