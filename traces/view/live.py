# SPDX-License-Identifier: Apache-2.0
"""Tells open pages what is recorded: Server-Sent Events (section 9.2 of the WHATWG's HTML standard)
whose ids are the `seq` of the store's events.

A page is told that there is something new, and asks for itself again: there is one way in which
pages are made. The first word of a connection is what there is now, so that a page whose connection
was lost knows at once whether it missed anything.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from ...errors import KernelwrightError
from .reader import CampaignReader

LOOK_S = 0.25
BEAT_LOOKS = 40
"""Looks without news after which a word is sent all the same: what passes it on is kept awake."""
RETRY_MS = 1000
"""After which a browser asks again when a connection is lost."""
KIND = "text/event-stream"


class News(NamedTuple):
    """What a page is told."""

    seq: int
    """Of the newest event."""
    is_running: bool
    """Whether the campaign is; of all of them whether any event may come at all."""

    def message(self) -> str:
        """As an event of the stream."""
        told = json.dumps({"seq": self.seq, "running": self.is_running})
        return f"id: {self.seq}\nevent: news\ndata: {told}\n\n"


def live_router(reader: CampaignReader) -> APIRouter:
    """The routes that pages listen to."""
    router = APIRouter()

    @router.get("/live")
    async def listen(request: Request) -> StreamingResponse:
        return _stream(request, reader, "")

    @router.get("/c/{campaign}/live")
    async def listen_to(request: Request, campaign: str) -> StreamingResponse:
        # Who names no campaign that there is is told so before anything is sent.
        await run_in_threadpool(look, reader, campaign)
        return _stream(request, reader, campaign)

    return router


def look(reader: CampaignReader, campaign: str) -> News:
    """What there is now: of one campaign, or of all of them."""
    with reader.store() as store:
        if not campaign:
            return News(store.last_seq(), True)
        name = store.resolve(campaign)
        return News(store.last_seq(name), store.is_running(name))


def _stream(request: Request, reader: CampaignReader, campaign: str) -> StreamingResponse:
    return StreamingResponse(tell(request, reader, campaign), media_type=KIND)


async def tell(request: Request, reader: CampaignReader, campaign: str) -> AsyncIterator[str]:
    """The first word at once, and another whenever something is recorded, or a campaign begins to
    run or stops: it may end without a word, killed. Ends when nobody listens."""
    yield f"retry: {RETRY_MS}\n\n"
    told: News | None = None
    for count in itertools.count(1):
        try:
            news = await run_in_threadpool(look, reader, campaign)
        except KernelwrightError:
            return  # the browser asks again, and is told by the page what is wrong
        if told is None or news != told:
            told = news
            yield news.message()
        elif count % BEAT_LOOKS == 0:
            yield ": here\n\n"
        await asyncio.sleep(LOOK_S)
        if await request.is_disconnected():
            return
