# SPDX-License-Identifier: Apache-2.0
"""Serves the viewer until it is interrupted: on this machine's loopback, or with a token."""

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
from .guard import LOOPBACK, TOKEN, make_token

if TYPE_CHECKING:
    import uvicorn


def serve(
    home: Path,
    host: str = "127.0.0.1",
    port: int = 8765,
    open_browser: bool = False,
    path: str = "/",
) -> None:
    """Serves the viewer of `home`; port 0 takes a free one. Prints the address on stderr.

    On a host that is not this machine's loopback it answers who has the token of this address.

    Raises:
        UsageError: the host is none of this machine's, or the port is taken.
        StorageError: there is no store in `home`.
    """
    import uvicorn

    from .render import warm

    Store.open(home, read_only=True).close()
    with _listen(host, port) as listener:
        bound = listener.getsockname()[1]
        token = "" if host in LOOPBACK else make_token()
        address = _tell(home, host, bound, f"{path}?{TOKEN}={token}" if token else path)
        if open_browser and not webbrowser.open(address):
            raise PrerequisiteError(
                "no web browser could be started", hint=f"open {address} by hand, without --open"
            )
        config = configure(home, token)
        threading.Thread(target=warm, daemon=True).start()
        # uvicorn shuts down first and raises again; for a viewer Ctrl-C is the ordinary end.
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def _tell(home: Path, host: str, port: int, path: str) -> str:
    """Prints where it is to be found; gives this address."""
    is_all = host in ("0.0.0.0", "::")
    name = socket.gethostname() if is_all else host
    address = f"http://{f'[{name}]' if ':' in name else name}:{port}{path}"
    print(f"viewing {home} at {address}  (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if host in LOOPBACK:
        print(f"from elsewhere: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE", file=sys.stderr)
    else:
        print(
            "whoever has this address reads all campaigns, and who can listen on the network has "
            f"it; unheard: without --host, and ssh -L {port}:127.0.0.1:{port} THIS-MACHINE",
            file=sys.stderr,
        )
    return address


def configure(home: Path, token: str = "") -> uvicorn.Config:
    """How the viewer of `home` is served. Pages that listen do so until they are closed: the end
    does not wait for them."""
    import uvicorn

    from .app import create_app

    return uvicorn.Config(
        create_app(home, token), log_level="warning", access_log=False, timeout_graceful_shutdown=1
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
