# SPDX-License-Identifier: Apache-2.0
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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...config import DEFAULT_PATIENCE_S
from ...errors import ProviderError
from ...traces.events import CampaignStarted, ModelFailed, ModelReplied, ModelRequested
from ...traces.place import Place
from ...traces.spending import OUTCOME_UNKNOWN
from ..model import (
    RETRYABLE,
    UNKNOWN_OUTCOME,
    Ask,
    FaultKind,
    Model,
    ModelFault,
    Paced,
    PlacedModel,
    Reply,
    canonical_json,
)
from ..stop import BudgetSpent, Halt, Interrupted, Stop
from .budget import Budget
from .ledger import Ledger
from .model_memory import teach

__all__ = ["Asker", "Asking", "BudgetSpent", "Halt", "Interrupted", "PromptTooLong"]

MOST_UNKNOWN = {FaultKind.TIMED_OUT: 2, FaultKind.DROPPED: 4, FaultKind.MALFORMED: 4}
"""Attempts of one call in one process whose outcome nobody knows: each books all that it might have
cost, and a silence is long."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
"""Before the second attempt, doubling; the server's own wish counts for more."""

JITTER = 0.25

_REMEDY = {
    FaultKind.TIMED_OUT: (
        "a model that thinks for long before its first word needs more time, --model-silence 1h, "
        "or a lower reasoning effort"
    ),
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
        patience_s: float = DEFAULT_PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`patience_s`: how long a call that is refused is tried again, by its pauses alone."""
        self.model_name = model.name
        self._ledger = ledger
        self._budget = budget
        self._model = model
        self._stop = stop or Stop()
        self._patience_s = patience_s
        self._sleep = sleep
        self._slots = threading.BoundedSemaphore(max(1, model.slots))

    @property
    def started(self) -> CampaignStarted:
        """What the campaign began with."""
        return self._ledger.progress.started

    def key(self, ask: Ask, place: Place) -> str:
        """The key of the call: what must be the same for an answer to be the answer."""
        parts = {
            "campaign": self._ledger.campaign,
            "version": self.started.workflow_version,
            "place": str(place),
            "model": self.model_name,
            "ask": ask.model_dump(mode="json"),
        }
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()

    def ask(self, ask: Ask, place: Place) -> Reply:
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
        model = self._model.at(place) if isinstance(self._model, PlacedModel) else self._model
        with self._slots:
            self._keep_pace(model)
            trouble = _Trouble(self._patience_s)
            while True:
                if self._stop.requested:
                    raise Interrupted
                attempt = self._reserve(model, call, ask, place)
                fault = self._try(model, call, attempt, ask, trouble)
                if fault is None:
                    break
                self._rest(trouble.pause_s)
        reply = self._ledger.reply(call)
        assert reply is not None
        return reply

    def _reserve(self, model: Model, call: str, ask: Ask, place: Place) -> int:
        """Records the request, unless its worst case would pass a cap; gives the attempt."""
        bound = model.bound(ask)
        blob = self._ledger.keep(ask.canonical)
        with self._ledger.hold_writing():
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
        self, model: Model, call: str, attempt: int, ask: Ask, trouble: _Trouble
    ) -> ModelFault | None:
        """One attempt, settled; the fault, if it is one that waiting may mend."""
        try:
            reply = model.complete(ask)
        except ModelFault as fault:
            goes_on = trouble.meet(fault, f"{call}:{attempt}")
            self._fail(call, attempt, fault, trouble.pause_s if goes_on else None)
            if fault.kind is FaultKind.CONTEXT:
                raise PromptTooLong(call, str(fault)) from fault
            if not goes_on:
                raise self._error(fault, attempt, trouble) from fault
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

    def _keep_pace(self, model: Model) -> None:
        """Waits until the endpoint has room again, where it said when that is.

        A longer wish than our patience is left to the refusal that follows.
        """
        pause_s = model.pause_s if isinstance(model, Paced) else 0.0
        if 0.0 < pause_s <= self._patience_s:
            self._rest(pause_s)

    def _rest(self, pause_s: float) -> None:
        if pause_s >= self._budget.compute_remaining(0).seconds:
            raise BudgetSpent("seconds")
        self._stop.pause(pause_s, self._sleep)

    def _raise_if_too_long(self, call: str) -> None:
        before = self._ledger.progress.spending.calls.get(call)
        if before and before.failed and before.failed.fault == FaultKind.CONTEXT:
            raise PromptTooLong(call, before.failed.reason)

    def _error(self, fault: ModelFault, attempt: int, trouble: _Trouble) -> ProviderError:
        remedy = _REMEDY.get(fault.kind, "nothing is lost; wait until the endpoint answers")
        waited = f" and {trouble.waited_s:.0f} s of waiting" if trouble.waited_s >= 1 else ""
        return ProviderError(
            f"{self.model_name}: {fault.kind} after {attempt} attempt"
            f"{'s' if attempt > 1 else ''}{waited}: {fault}",
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


class _Trouble:
    """The faults of one call so far, and how long to wait after the last one."""

    def __init__(self, patience_s: float) -> None:
        self.pause_s = 0.0
        self.waited_s = 0.0
        """All pauses before this one."""
        self._patience_s = patience_s
        self._met: Counter[FaultKind] = Counter()

    def meet(self, fault: ModelFault, seed: str) -> bool:
        """Takes in a fault; whether another attempt may mend it.

        A refusal cost nothing, and is met with patience; an unknown outcome is booked as spent.
        """
        if fault.kind not in RETRYABLE:
            return False
        self.waited_s += self.pause_s
        self._met[fault.kind] += 1
        left_s = self._patience_s - self.waited_s
        # A wish is the least: whoever is asked again at once, for ever, would never be told.
        self.pause_s = max(fault.retry_after_s or 0.0, min(self._usual_s(seed), left_s))
        if fault.kind in MOST_UNKNOWN:
            return self._met[fault.kind] < MOST_UNKNOWN[fault.kind]
        return 0 < left_s >= self.pause_s

    def _usual_s(self, seed: str) -> float:
        doublings = min(self._met.total() - 1, 16)
        draw = random.Random(seed).uniform(1 - JITTER, 1.0)
        return draw * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**doublings)
