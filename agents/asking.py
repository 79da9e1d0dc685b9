"""Asks models: reserve, record, try, settle. The one place that spends on them and that retries.

An answer is stored under a key made of the campaign, the workflow's version, the place and what is
asked; whoever asks the same at the same place again gets it unpaid. It knows no provider, no
prompt and no workflow.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import ProviderError
from ..traces.events import CampaignStarted, ModelFailed, ModelReplied, ModelRequested
from ..traces.spending import OUTCOME_UNKNOWN
from .budget import Budget
from .ledger import Ledger
from .models.protocol import (
    RETRYABLE,
    UNKNOWN_OUTCOME,
    Ask,
    FaultKind,
    Model,
    ModelFault,
    Paced,
    Placed,
    Reply,
    canonical,
)
from .stop import BudgetSpent, Halt, Interrupted, Stop
from .teaching import teach

__all__ = ["Asker", "Asking", "BudgetSpent", "Halt", "Interrupted", "PromptTooLong"]

ATTEMPTS = 4
"""Of one call in one process."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Before the second attempt, doubling; the server's own wish counts for more."""

LONGEST_WISH_S = 120.0
"""A server that wants a longer pause than this has no room for us now."""

JITTER = 0.25

_REMEDY = {
    FaultKind.KEY: "check the API key of that endpoint",
    FaultKind.UNKNOWN_MODEL: "check the model's name and the endpoint's address",
    FaultKind.QUOTA: "top up the account or choose another model",
    FaultKind.REFUSED: "the endpoint does not take this request; see docs/models.md",
}

Brain = TypeVar("Brain")


class PromptTooLong(Exception):
    """The prompt does not fit the model's context window; a result, not an error."""

    def __init__(self, call: str, reason: str) -> None:
        super().__init__(reason)
        self.call = call


@dataclass(frozen=True)
class Asking(Generic[Brain]):
    """A brain that asks a model: it can be made once there are books to ask through."""

    model: Model
    make: Callable[[Asker], Brain]


class Asker:
    """Asks one model on one campaign's account. Several threads may use it."""

    def __init__(
        self,
        ledger: Ledger,
        budget: Budget,
        model: Model,
        *,
        stop: Stop | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model_name = model.name
        self._ledger = ledger
        self._budget = budget
        self._model = model
        self._stop = stop or Stop()
        self._sleep = sleep
        self._slots = threading.BoundedSemaphore(max(1, model.slots))

    @property
    def started(self) -> CampaignStarted:
        """What the campaign began with."""
        return self._ledger.progress.require_started()

    def key(self, ask: Ask, place: str) -> str:
        """The key of the call: what must be the same for an answer to be the answer."""
        parts = {
            "campaign": self._ledger.campaign,
            "version": self.started.workflow_version,
            "place": place,
            "model": self.model_name,
            "ask": ask.model_dump(mode="json"),
        }
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def ask(self, ask: Ask, place: str) -> Reply:
        """The answer: the stored one, or one that is paid for now.

        Raises:
            BudgetSpent: at its worst the call would pass a cap; nothing was sent.
            Interrupted: the user wants the end; an attempt that was begun is finished first.
            PromptTooLong: the prompt does not fit the model.
            ProviderError: the endpoint refused, or failed in every attempt.
        """
        call = self.key(ask, place)
        if stored := self._ledger.reply(call):
            return stored
        self._raise_if_too_long(call)
        teach(self._model, self._ledger)
        model = self._model.at(place) if isinstance(self._model, Placed) else self._model
        with self._slots:
            for number in range(1, ATTEMPTS + 1):
                if number == 1:
                    self._keep_pace(model)
                if self._stop.requested:
                    raise Interrupted
                attempt = self._reserve(model, call, ask, place)
                fault = self._try(model, call, attempt, ask, may_retry=number < ATTEMPTS)
                if fault is None:
                    break
                self._wait_for(fault, call, attempt)
        reply = self._ledger.reply(call)
        assert reply is not None
        return reply

    def _reserve(self, model: Model, call: str, ask: Ask, place: str) -> int:
        """Records the request, unless its worst case would pass a cap; gives the attempt."""
        bound = model.bound(ask)
        blob = self._ledger.keep(ask.canonical)
        with self._ledger.alone():
            cap = self._budget.why_refused(bound) or self._budget.why_out_of_time()
            if cap:
                raise BudgetSpent(cap)
            before = self._ledger.progress.spending.calls.get(call)
            attempt = before.requested.attempt + 1 if before else 1
            self._ledger.record(
                ModelRequested(
                    call=call,
                    attempt=attempt,
                    place=place,
                    purpose=ask.purpose,
                    model=model.name,
                    ask=blob,
                    reserved_tokens=bound.tokens,
                    reserved_usd=bound.usd,
                )
            )
        return attempt

    def _try(
        self, model: Model, call: str, attempt: int, ask: Ask, *, may_retry: bool
    ) -> ModelFault | None:
        """One attempt, settled; the fault, if it is one that waiting may mend."""
        try:
            reply = model.complete(ask)
        except ModelFault as fault:
            pause_s = _pause_s(fault, call, attempt) if may_retry else None
            self._fail(call, attempt, fault, pause_s)
            if fault.kind is FaultKind.CONTEXT:
                raise PromptTooLong(call, str(fault)) from fault
            if pause_s is None:
                raise self._error(fault, attempt) from fault
            return fault
        self._settle(model, call, attempt, reply)
        return None

    def _settle(self, model: Model, call: str, attempt: int, reply: Reply) -> None:
        requested = self._ledger.progress.spending.calls[call].requested
        # Half a Unicode character, which JSON can carry, could not be stored.
        text = reply.text.encode("utf-8", "replace").decode()
        usd = model.cost(reply.usage)
        limit = requested.reserved_usd
        self._ledger.record(
            ModelReplied(
                call=call,
                attempt=attempt,
                reply=self._ledger.keep(reply.model_copy(update={"text": text}).model_dump_json()),
                finish=reply.finish,
                tokens=reply.usage.tokens,
                usd=usd,
                is_estimated=reply.usage.is_estimated,
                overran=reply.usage.tokens > requested.reserved_tokens
                or (usd is not None and limit is not None and usd > limit),
                seconds=reply.seconds,
            )
        )

    def _fail(self, call: str, attempt: int, fault: ModelFault, pause_s: float | None) -> None:
        requested = self._ledger.progress.spending.calls[call].requested
        is_unknown = fault.kind in UNKNOWN_OUTCOME
        self._ledger.record(
            ModelFailed(
                call=call,
                attempt=attempt,
                fault=fault.kind,
                reason=str(fault).encode("utf-8", "replace").decode(),
                tokens=requested.reserved_tokens if is_unknown else 0,
                usd=requested.reserved_usd if is_unknown else 0.0,
                retry_in_s=pause_s,
            )
        )

    def _wait_for(self, fault: ModelFault, call: str, attempt: int) -> None:
        pause_s = _pause_s(fault, call, attempt)
        assert pause_s is not None
        self._rest(pause_s)

    def _keep_pace(self, model: Model) -> None:
        """Waits until the endpoint has room again, where it said when that is.

        A longer wish than it may have is left to the refusal that follows.
        """
        pause_s = model.pause_s if isinstance(model, Paced) else 0.0
        if 0.0 < pause_s <= LONGEST_WISH_S:
            self._rest(pause_s)

    def _rest(self, pause_s: float) -> None:
        if pause_s >= self._budget.left(0).seconds:
            raise BudgetSpent("seconds")
        self._stop.pause(pause_s, self._sleep)

    def _raise_if_too_long(self, call: str) -> None:
        before = self._ledger.progress.spending.calls.get(call)
        if before and before.failed and before.failed.fault == FaultKind.CONTEXT:
            raise PromptTooLong(call, before.failed.reason)

    def _error(self, fault: ModelFault, attempt: int) -> ProviderError:
        remedy = _REMEDY.get(fault.kind, "nothing is lost; wait until the endpoint answers")
        return ProviderError(
            f"{self.model_name}: {fault.kind} after {attempt} attempt"
            f"{'s' if attempt > 1 else ''}: {fault}",
            hint=f"{remedy}, then: kernelwright run --resume {self._ledger.campaign}",
            is_retryable=fault.kind in RETRYABLE,
        )


def book_cut_off(ledger: Ledger) -> None:
    """Settles the calls that a dead process left open: nobody knows whether they were paid."""
    for requested in ledger.progress.spending.open_calls:
        ledger.record(
            ModelFailed(
                call=requested.call,
                attempt=requested.attempt,
                fault=OUTCOME_UNKNOWN,
                reason="the process ended before the answer was recorded",
                tokens=requested.reserved_tokens,
                usd=requested.reserved_usd,
            )
        )


def _pause_s(fault: ModelFault, call: str, attempt: int) -> float | None:
    """Seconds until the next attempt; None where none would help."""
    if fault.kind not in RETRYABLE:
        return None
    if fault.retry_after_s is not None:
        return fault.retry_after_s if fault.retry_after_s <= LONGEST_WISH_S else None
    draw = random.Random(f"{call}:{attempt}").uniform(1 - JITTER, 1.0)
    return draw * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16))
