# SPDX-License-Identifier: Apache-2.0
"""The web application: which address gives which page. Read-only on the store.

Knows HTTP; the pages are made in `bodies.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse

from ...errors import KernelwrightError, UnknownNameError, UsageError
from .. import finding
from . import bodies
from .api import api_router
from .guard import Guard
from .links import ServerLinks
from .live import live_router
from .reader import CampaignReader
from .render import STATIC, plotly_script, plotly_version

NONE: list[str] = []


def create_app(home: Path, token: str = "") -> FastAPI:
    """The viewer of one home. Every request opens the store read-only.

    Args:
        token: that requests must have, from wherever they come; empty: from this machine alone.
    """
    # The generated documentation pages load scripts from elsewhere.
    app = FastAPI(title="Kernelwright", docs_url=None, redoc_url=None, openapi_url=None)
    reader = CampaignReader(home)
    app.add_middleware(GZipMiddleware, minimum_size=2048)
    app.add_middleware(BaseHTTPMiddleware, dispatch=Guard(token))
    app.add_exception_handler(KernelwrightError, _kernelwright_error)
    app.add_exception_handler(HTTPException, _http_error)
    # Before what names a candidate, which would match any word.
    app.include_router(live_router(reader), prefix="/api")
    app.include_router(api_router(reader), prefix="/api")
    _add_static(app)

    @app.get("/", response_class=HTMLResponse)
    def campaigns(q: str = "", sort: str = "started", page: int = 1) -> str:
        return bodies.campaigns_html(reader, query=q, sort=sort, page=page)

    @app.get("/suites", response_class=HTMLResponse)
    def suites(name: str = "") -> str:
        return bodies.suites_html(reader, name)

    @app.get("/p/{problem}", response_class=HTMLResponse)
    def problem(problem: str) -> str:
        return bodies.problem_html(reader, problem)

    @app.get("/compare", response_class=HTMLResponse)
    def compare(of: Annotated[list[str], Query()] = NONE) -> str:
        return bodies.compare_html(reader, of)

    @app.get("/c/{campaign}", response_class=HTMLResponse)
    def campaign(
        campaign: str,
        status: str = "",
        sort: str = "number",
        page: int = 1,
        calls: int = 1,
        over: str = "candidates",
    ) -> str:
        with reader.campaign(campaign) as read:
            return bodies.campaign_html(
                read, status=status, sort=sort, page=page, calls=calls, over=over
            )

    @app.get("/c/{campaign}/search", response_class=HTMLResponse)
    def search(campaign: str, q: str = "", candidates: int = 0, calls: int = 0) -> str:
        with reader.campaign(campaign) as read:
            return bodies.search_html(read, q, finding.At(max(0, candidates), max(0, calls)))

    @app.get("/c/{campaign}/archive", response_class=HTMLResponse)
    def archive(campaign: str, generation: int | None = None) -> str:
        with reader.campaign(campaign) as read:
            return bodies.archive_html(read, generation)

    @app.get("/c/{campaign}/tree", response_class=HTMLResponse)
    def tree(campaign: str) -> str:
        with reader.campaign(campaign) as read:
            return bodies.tree_html(read)

    @app.get("/c/{campaign}/why", response_class=HTMLResponse)
    def why(campaign: str) -> str:
        with reader.campaign(campaign) as read:
            return bodies.why_html(read)

    @app.get("/c/{campaign}/trace", response_class=HTMLResponse)
    def trace(campaign: str, page: int = 1, at: str = "") -> str:
        with reader.campaign(campaign) as read:
            return bodies.trace_html(read, page, at)

    @app.get("/c/{campaign}/calls/{number}", response_class=HTMLResponse)
    def call(campaign: str, number: str) -> str:
        with reader.campaign(campaign) as read:
            return bodies.call_html(read, number)

    @app.get("/c/{campaign}/{candidate}", response_class=HTMLResponse)
    def candidate(campaign: str, candidate: str) -> str:
        with reader.campaign(campaign) as read:
            return bodies.candidate_html(read, candidate)

    return app


def _add_static(app: FastAPI) -> None:
    scripts = dict.fromkeys(("view.js", "live.js", "keys.js", "columns.js"), "text/javascript")
    kinds = {"view.css": "text/css", **scripts}
    forever = {"Cache-Control": "public, max-age=31536000, immutable"}

    # The version in the address lets browsers keep the script for ever.
    @app.get(f"/static/plotly-{plotly_version()}.min.js")
    def plotly() -> FileResponse:
        return FileResponse(plotly_script(), media_type="text/javascript", headers=forever)

    @app.get("/static/{name}")
    def serve_static(name: str) -> FileResponse:
        if name not in kinds:
            raise HTTPException(404, f"there is no file '{name}'")
        headers = {"Cache-Control": "no-cache"}
        return FileResponse(STATIC / name, media_type=kinds[name], headers=headers)


def _kernelwright_error(request: Request, error: Exception) -> Response:
    status, title = 500, "The store cannot be read"
    if isinstance(error, UnknownNameError):
        status, title = 404, "Not found"
    elif isinstance(error, UsageError):
        status, title = 400, "This cannot be shown"
    hint = error.hint if isinstance(error, KernelwrightError) else ""
    return _error(request, status, title, str(error), hint)


def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else str(error)
    return _error(request, status, "Not found" if status == 404 else "Refused", detail, "")


def _error(request: Request, status: int, title: str, message: str, hint: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": message, "hint": hint}, status_code=status)
    html = bodies.fill_page(
        "error.html", ServerLinks(), has_charts=False, title=title, message=message, hint=hint
    )
    return HTMLResponse(html, status_code=status)
