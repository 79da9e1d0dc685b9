"""Messages between the campaign and its referee: JSON with a length before it. Both are ours."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("<Q")
_MOST = 256 << 20


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
    """Waits for one message. Raises Closed."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    if length > _MOST:
        raise Closed(f"a message of {length} bytes")
    return json.loads(_exactly(channel, length))  # type: ignore[no-any-return]


def _exactly(channel: socket.socket, count: int) -> bytes:
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
