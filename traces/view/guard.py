# SPDX-License-Identifier: Apache-2.0
"""Who may ask the viewer, and what a browser may do with its answers.

On this machine only loopback names are answered, so that a page elsewhere cannot reach it by a
rebound name. Served to others, it answers who has the token: in the address that was printed, in
the cookie that this address sets, or as a bearer. Only reading methods, and a policy under which no
foreign script or address is ever loaded.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN = "token"

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


def make_token() -> str:
    """A new one, of 192 bits, fit for an address."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Guard:
    """Stands before every page."""

    token: str = field(default="", repr=False)
    """That a request must have; empty: it must be under a loopback name instead."""

    async def __call__(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Refuses who may not ask, and writing methods; adds the headers."""
        refusal = self._refuse(request)
        response = refusal if refusal is not None else await call_next(request)
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not be served, or None."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin", "")
        if not self.token and not _is_loopback(f"//{host}"):
            text = "this viewer answers only under the names of this machine's loopback\n"
            return PlainTextResponse(text, status_code=421)
        is_own = _netloc(origin) == host if self.token else _is_loopback(origin)
        if origin and not is_own:
            return PlainTextResponse("another site may not ask this viewer\n", status_code=403)
        if request.method != "GET":
            text = "this viewer only reads\n"
            return PlainTextResponse(text, status_code=405, headers={"Allow": "GET"})
        return self._ask_token(request) if self.token else None

    def _ask_token(self, request: Request) -> Response | None:
        """None for who has it; who has it in the address is sent on without, with a cookie."""
        # Cookies know no ports, and a machine may have several viewers.
        cookie = f"kernelwright_{request.url.port or 80}"
        if self._is_it(request.query_params.get(TOKEN, "")):
            kept = [each for each in request.query_params.multi_items() if each[0] != TOKEN]
            # Two slashes at the beginning would be another host.
            path = "/" + request.url.path.lstrip("/")
            address = path + (f"?{urlencode(kept)}" if kept else "")
            answer = RedirectResponse(address, status_code=303)
            answer.set_cookie(cookie, self.token, httponly=True, samesite="lax")
            return answer
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if self._is_it(request.cookies.get(cookie, "")) or (
            scheme.lower() == "bearer" and self._is_it(bearer.strip())
        ):
            return None
        text = "this viewer asks for a token: open the address that `kernelwright view` printed\n"
        return PlainTextResponse(text, status_code=401, headers={"WWW-Authenticate": "Bearer"})

    def _is_it(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


def _netloc(address: str) -> str:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def _is_loopback(address: str) -> bool:
    try:
        return urlsplit(address).hostname in LOOPBACK
    except ValueError:
        return False
