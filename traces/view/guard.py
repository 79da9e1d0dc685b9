# SPDX-License-Identifier: Apache-2.0
"""Who may ask the viewer, and what a browser may do with its answers.

Only loopback names are answered, so that a page elsewhere cannot reach it by a rebound name; only
reading methods; and a policy under which no foreign script or address is ever loaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

LOOPBACK = ("127.0.0.1", "localhost", "::1")

POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuses foreign hosts, foreign origins and writing methods; adds the headers."""
    refusal = refuse(
        request.method, request.headers.get("host", ""), request.headers.get("origin", "")
    )
    response = refusal if refusal is not None else await call_next(request)
    for name, value in HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def refuse(method: str, host: str, origin: str) -> Response | None:
    """The answer to a request that may not be served, or None."""
    if not _is_loopback(f"//{host}"):
        text = "this viewer answers only under the names of this machine's loopback\n"
        return PlainTextResponse(text, status_code=421)
    if origin and not _is_loopback(origin):
        return PlainTextResponse("another site may not ask this viewer\n", status_code=403)
    if method != "GET":
        text = "this viewer only reads\n"
        return PlainTextResponse(text, status_code=405, headers={"Allow": "GET"})
    return None


def _is_loopback(address: str) -> bool:
    try:
        return urlsplit(address).hostname in LOOPBACK
    except ValueError:
        return False
