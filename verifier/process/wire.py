# SPDX-License-Identifier: Apache-2.0
"""Messages between the campaign and its referee: JSON with a length before it. Both are ours."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("<Q")
_MOST = 256 << 20

COUNT = "count"
"""The key of the message that asks for a candidate's hardware counters, before the order."""
PREPARE = "prepare"
"""The key of the message that asks when candidates can be judged."""


class Closed(Exception):
    """The other end is gone."""


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Sends one message whole. Raises Closed."""
    body = json.dumps(message).encode()
    try:
        channel.sendall(_LENGTH.pack(len(body)) + body)
    except OSError as error:
        raise Closed(str(error)) from error


def receive(channel: socket.socket) -> dict[str, Any]:
    """Waits for one message. Raises Closed, also for what is no message: nothing can follow it."""
    (length,) = _LENGTH.unpack(_receive_exactly(channel, _LENGTH.size))
    if length > _MOST:
        raise Closed(f"a message of {length} bytes")
    try:
        message = json.loads(_receive_exactly(channel, length))
    except (ValueError, RecursionError) as error:
        raise Closed(f"{length} bytes that are no message: {error}") from error
    if not isinstance(message, dict):
        raise Closed(f"a message that is a {type(message).__name__}")
    return message


def _receive_exactly(channel: socket.socket, count: int) -> bytes:
    held = bytearray()
    while len(held) < count:
        try:
            part = channel.recv(min(1 << 20, count - len(held)))
        except OSError as error:
            raise Closed(str(error)) from error
        if not part:
            raise Closed("the channel was closed")
        held += part
    return bytes(held)
