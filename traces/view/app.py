"""The web application: which address gives which page. Read-only on the store.

Knows HTTP and templates; what pages show is worked out in `pages.py`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse

from ...errors import KernelwrightError, UnknownNameError, UsageError
from ..history import History, find_candidate
from ..store import Store
from . import charts, pages
from .api import api_router
from .guard import guard
from .links import ServerLinks
from .reader import Reader
from .render import STATIC, plotly_script, plotly_version, render

ROWS_PER_PAGE = 200


def create_app(home: Path) -> FastAPI:
    """The viewer of one home. Every request opens the store read-only."""
    # The generated documentation pages load scripts from elsewhere.
    app = FastAPI(title="Kernelwright", docs_url=None, redoc_url=None, openapi_url=None)
    reader = Reader(home)
    app.add_middleware(GZipMiddleware, minimum_size=2048)
    app.add_middleware(BaseHTTPMiddleware, dispatch=guard)
    app.add_exception_handler(KernelwrightError, _kernelwright_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.include_router(api_router(reader), prefix="/api")
    _add_static(app)

    @app.get("/", response_class=HTMLResponse)
    def campaigns(q: str = "", sort: str = "started", page: int = 1) -> str:
        return campaigns_html(reader, query=q, sort=sort, page=page)

    @app.get("/c/{campaign}", response_class=HTMLResponse)
    def campaign(campaign: str, status: str = "", sort: str = "number", page: int = 1) -> str:
        with reader.store() as store:
            history = reader.history(store, store.resolve(campaign))
            return campaign_html(store, history, status=status, sort=sort, page=page)

    @app.get("/c/{campaign}/{candidate}", response_class=HTMLResponse)
    def candidate(campaign: str, candidate: str) -> str:
        with reader.store() as store:
            history = reader.history(store, store.resolve(campaign))
            name = find_candidate(history, candidate)
            return candidate_html(store, history, name)

    return app


def _add_static(app: FastAPI) -> None:
    kinds = {"view.css": "text/css", "view.js": "text/javascript"}
    forever = {"Cache-Control": "public, max-age=31536000, immutable"}

    # The version in the address lets browsers keep the script for ever.
    @app.get(f"/static/plotly-{plotly_version()}.min.js")
    def plotly() -> FileResponse:
        return FileResponse(plotly_script(), media_type="text/javascript", headers=forever)

    @app.get("/static/{name}")
    def static(name: str) -> FileResponse:
        if name not in kinds:
            raise HTTPException(404, f"there is no file '{name}'")
        headers = {"Cache-Control": "no-cache"}
        return FileResponse(STATIC / name, media_type=kinds[name], headers=headers)


def _page(template: str, links: ServerLinks, *, has_charts: bool, **context: Any) -> str:
    return render(template, links=links, has_charts=has_charts, plotly=plotly_version(), **context)


def campaigns_html(reader: Reader, *, query: str, sort: str, page: int) -> str:
    """The list of campaigns."""
    key = _choice("sort", sort, pages.CAMPAIGN_SORTS)
    with reader.store() as store:
        seq = store.last_seq()
        rows = [
            pages.campaign_row(reader.history(store, name), is_running=store.is_running(name))
            for name in store.campaigns()
        ]
    found = sorted(pages.search(rows, query), key=key)
    shown, page, count = _paged(found, page)
    return _page(
        "campaigns.html",
        ServerLinks(),
        has_charts=False,
        rows=shown,
        seq=seq,
        query=query,
        sort=sort,
        sorts=list(pages.CAMPAIGN_SORTS),
        found=len(found),
        total=len(rows),
        page=page,
        pages=count,
    )


def campaign_html(store: Store, history: History, *, status: str, sort: str, page: int) -> str:
    """One campaign."""
    links = ServerLinks(at=history.campaign)
    key = _choice("sort", sort, pages.CANDIDATE_SORTS)
    entries = [
        entry
        for entry in history.entries.values()
        if not status or (entry.verdict and entry.verdict.status.value == status)
    ]
    shown, page, count = _paged(sorted(entries, key=key), page)
    return _page(
        "campaign.html",
        links,
        has_charts=True,
        row=pages.campaign_row(history, is_running=store.is_running(history.campaign)),
        figure=charts.campaign_chart(history, links.candidate),
        funnel=pages.funnel(history),
        isolation=pages.isolation_of(history),
        entries=shown,
        found=len(entries),
        status=status,
        sort=sort,
        sorts=list(pages.CANDIDATE_SORTS),
        sort_link=lambda name: links.query(status=status, sort=name) + "#candidates",
        page=page,
        pages=count,
    )


def candidate_html(store: Store, history: History, candidate: str) -> str:
    """One candidate."""
    verdict = history.entries[candidate].verdict
    return _page(
        "candidate.html",
        ServerLinks(at=history.campaign),
        has_charts=bool(verdict and verdict.measurements),
        row=pages.campaign_row(history, is_running=store.is_running(history.campaign)),
        page=pages.candidate_page(store, history, candidate),
        figures=[charts.timing_chart(m) for m in verdict.measurements] if verdict else [],
    )


def _choice(kind: str, name: str, known: dict[str, Any]) -> Any:
    if name not in known:
        raise UnknownNameError.among(kind, name, known)
    return known[name]


def _paged(rows: list[Any], page: int) -> tuple[list[Any], int, int]:
    count = max(math.ceil(len(rows) / ROWS_PER_PAGE), 1)
    page = min(max(page, 1), count)
    return rows[(page - 1) * ROWS_PER_PAGE : page * ROWS_PER_PAGE], page, count


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
    html = _page(
        "error.html", ServerLinks(), has_charts=False, title=title, message=message, hint=hint
    )
    return HTMLResponse(html, status_code=status)
