# SPDX-License-Identifier: Apache-2.0
"""Serves the viewer on this machine's loopback until it is interrupted."""

from __future__ import annotations

import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import PrerequisiteError, UsageError
from ..store import Store

if TYPE_CHECKING:
    import uvicorn

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


def serve(
    home: Path,
    host: str = "127.0.0.1",
    port: int = 8765,
    open_browser: bool = False,
    path: str = "/",
) -> None:
    """Serves the viewer of `home`; port 0 takes a free one. Prints the address on stderr.

    Raises:
        UsageError: the host is not this machine's loopback, or the port is taken.
        StorageError: there is no store in `home`.
    """
    import uvicorn

    from .render import warm

    if host not in LOOPBACK_HOSTS:
        raise UsageError(
            f"the viewer has no passwords and serves only this machine, not '{host}'",
            hint=f"from elsewhere: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE",
        )
    Store.open(home, read_only=True).close()
    with _listen(host, port) as listener:
        bound = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound}{path}"
        print(f"viewing {home} at {address}  (Ctrl-C ends it)", file=sys.stderr, flush=True)
        print(f"from elsewhere: ssh -L {bound}:127.0.0.1:{bound} THIS-MACHINE", file=sys.stderr)
        if open_browser and not webbrowser.open(address):
            raise PrerequisiteError(
                "no web browser could be started", hint=f"open {address} by hand, without --open"
            )
        config = configure(home)
        threading.Thread(target=warm, daemon=True).start()
        # uvicorn shuts down first and raises again; for a viewer Ctrl-C is the ordinary end.
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def configure(home: Path) -> uvicorn.Config:
    """How the viewer of `home` is served. Pages that listen do so until they are closed: the end
    does not wait for them."""
    import uvicorn

    from .app import create_app

    return uvicorn.Config(
        create_app(home), log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # From here on a browser that is quicker than the server's start only waits.
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(
            f"port {port} on {host} cannot be used: {error}", hint="choose another, or --port 0"
        ) from error
    return listener
