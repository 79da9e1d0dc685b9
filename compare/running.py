# SPDX-License-Identifier: Apache-2.0
"""Runs a bench, or what is left of one, and gives the scores of all its campaigns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from ..agents.books.ledger import OnEvent
from ..agents.models.choosing import ModelSettings
from ..agents.stop import Stop
from ..errors import PrerequisiteError, ProviderError
from ..running import CampaignStore, Players, resume_campaign, run_campaign
from ..traces.events import CampaignStarted
from ..verifier.request import Referee
from .plan import Bench, BenchCampaign
from .scores import Score, is_done, score


class BenchStore(CampaignStore, Protocol):
    """What a bench needs of a store; `traces.store.Store` is one."""

    def starts(self) -> Iterator[tuple[str, CampaignStarted]]:
        """Every campaign with its first event, oldest first."""


@dataclass(frozen=True)
class Standing:
    """A trial that is about to be run."""

    trial: BenchCampaign
    number: int
    """1, 2, 3 … of the bench."""
    of: int
    campaign: str | None
    """The one that is taken up again, if there is one."""


Watch = Callable[[Standing], AbstractContextManager[OnEvent]]
"""Told of every trial that is run, for as long as it runs."""

OpenReferee = Callable[[str], AbstractContextManager[Referee]]
"""The referee of a problem."""

Seats = Callable[[BenchCampaign], Players | None]
"""The players of a trial in place of those that its names mean."""


def known_campaigns(bench: Bench, store: BenchStore) -> dict[BenchCampaign, str]:
    """The campaigns of the bench that there are, done or not; of two the one that is done."""
    keys = {bench.key(t): t for problem in bench.problems for t in bench.trials(problem)}
    found: dict[BenchCampaign, str] = {}
    for campaign, started in store.starts():
        trial = keys.get(_key_of(started))
        if trial and not (trial in found and is_done(store.events(found[trial]))):
            found[trial] = campaign
    return found


def _key_of(started: CampaignStarted) -> str:
    request = started.config.get("request")
    key = request.get("trial") if isinstance(request, dict) else None
    return str(key or "")


def carry_out(
    bench: Bench,
    store: BenchStore,
    open_referee: OpenReferee,
    *,
    watch: Watch,
    stop: Stop | None = None,
    settings: ModelSettings | None = None,
    seats: Seats = lambda _trial: None,
) -> list[Score] | None:
    """Runs what is not done yet; gives all scores, or None where the user wanted the end before.

    Raises:
        ProviderError: an endpoint refused or failed; the same bench goes on where it stopped.
        KernelwrightError: as for a campaign.
    """
    stop, settings = stop or Stop(), settings or ModelSettings()
    known = known_campaigns(bench, store)
    scores: list[Score] = []
    total = len(bench.problems) * bench.seeds * len(bench.workflows)
    for problem in bench.problems:
        with ExitStack() as stack:
            referee: Referee | None = None
            for trial in bench.trials(problem):
                campaign = known.get(trial)
                if campaign is None or not is_done(store.events(campaign)):
                    if stop.requested:
                        return None
                    referee = referee or _refuse_emulated(
                        stack.enter_context(open_referee(problem)), bench
                    )
                    standing = Standing(trial, len(scores) + 1, total, campaign)
                    own = replace(settings, seed=trial.seed)
                    with watch(standing) as on_event:
                        campaign = _run(
                            bench, standing, store, referee, stop, on_event, own, seats(trial)
                        )
                    if stop.requested and not is_done(store.events(campaign)):
                        return None
                scores.append(score(trial, campaign, store.events(campaign)))
    return scores


def _run(
    bench: Bench,
    standing: Standing,
    store: BenchStore,
    referee: Referee,
    stop: Stop,
    on_event: OnEvent,
    settings: ModelSettings,
    players: Players | None,
) -> str:
    """Runs the campaign of a trial from where it stands; gives its id."""
    try:
        if standing.campaign is not None:
            result = resume_campaign(
                standing.campaign,
                store,
                referee,
                stop=stop,
                on_event=on_event,
                players=players,
                settings=settings,
            )
        else:
            result = run_campaign(
                bench.request(standing.trial),
                store,
                referee,
                stop=stop,
                on_event=on_event,
                players=players,
                settings=settings,
            )
    except ProviderError as error:
        remedy = error.hint.partition(", then:")[0]
        raise ProviderError(
            str(error),
            hint=f"{remedy}, then run the same bench again: it goes on where it stopped",
            is_retryable=error.is_retryable,
        ) from error
    return result.campaign


def _refuse_emulated(referee: Referee, bench: Bench) -> Referee:
    if referee.is_emulated:
        raise PrerequisiteError(
            f"target {bench.target} is emulated here: no times, nothing to compare",
            hint="compare on --target cpu, or on a machine with such a device",
        )
    return referee
