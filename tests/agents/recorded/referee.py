"""A referee that knows nothing but the verdicts of a recorded campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelwright.agents.models.replay import Recording
from kernelwright.traces.preparation import Preparation
from kernelwright.traces.records import Depth, Isolation, Verdict, candidate_id
from kernelwright.verifier.request import Counted, Order


@dataclass(frozen=True)
class RecordedReferee:
    """Implements verifier.request.Referee."""

    recording: Recording

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        """Nothing is to be made ready."""
        return Preparation() if is_wanted() else None

    def foresee(self, orders: Sequence[Order]) -> None:
        """Nothing is built."""

    def evaluate(self, order: Order) -> Verdict:
        """What was found then; KeyError for a candidate that was not evaluated so.

        Where there was no race yet, it shows what the screening did: beside nobody.
        """
        candidate, found = candidate_id(order.source), self.recording.verdicts
        if order.protocol is Depth.RACE and (candidate, Depth.RACE) not in found:
            screened = found[candidate, Depth.SCREEN]
            return screened.model_copy(update={"protocol": Depth.RACE})
        return found[candidate, order.protocol]

    counting = None

    def count(self, order: Order) -> Counted:
        """Nothing is asked for that the recording does not hold."""
        raise AssertionError(order)

    @property
    def isolation(self) -> Isolation:
        return Isolation.model_validate(self.recording.started.config["isolation"])

    @property
    def facts(self) -> dict[str, float]:
        facts = self.recording.started.config["facts"]
        assert isinstance(facts, dict)
        return {name: float(str(value)) for name, value in facts.items()}

    @property
    def is_emulated(self) -> bool:
        return self.recording.started.target != "cpu"

    def close(self) -> None:
        """Nothing is open."""
