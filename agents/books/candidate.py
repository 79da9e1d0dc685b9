# SPDX-License-Identifier: Apache-2.0
"""A candidate of the search: what decisions rest on, and the questions that a search asks of it.

Every event makes a new one, so that an answer is found once and kept: prompts and plans ask all of
a campaign's candidates again and again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ...kernelbench.recipe import KnobValue
from ...traces.events import CandidateProposed
from ...traces.fold import Entry, entry_of, most_thorough, shows_fault
from ...traces.records import Depth, Verdict
from ...verifier.profile.model import LAUNCH_US
from ..search.archive import score_of
from ..search.scale import Estimate

VARIANT = "knobs"
"""The operator of a candidate that is another one with other numbers (workflows/knobs.py)."""

NEAR_FLOOR = 1.03
"""Of bytes and launches alone: what is left is less than the doubt about any modelled time."""

NEAR_ROOF = 0.95
"""Of the roofline: what is left is within the doubt about the machine's peaks (KernelAgent)."""


@dataclass(frozen=True)
class KnownCandidate(Entry):
    """One candidate as of now; what the record tells of it is its own, whoever asks."""

    screened_speed: float | None = None
    """Where its screening left it on the campaign's scale: ln(baseline's time / its own)."""
    settled_speed: float | None = None
    """The same as of its confirmation, where it had one."""
    rival: str = ""
    """The candidate that was timed beside its screening."""
    ahead: Estimate | None = None
    """ln(time of the rival / its own), as of its screening."""

    @classmethod
    def from_proposal(cls, proposed: CandidateProposed, *relied_on: Verdict) -> KnownCandidate:
        """A candidate with the verdicts on it."""
        fresh = entry_of(cls, proposed, 0.0)
        return cls(**{**vars(fresh), "verdicts": relied_on, "relied_on": relied_on})

    @property
    def is_variant(self) -> bool:
        """Whether it is another candidate with other numbers, of which no model knows."""
        return self.operator == VARIANT

    @cached_property
    def looks(self) -> Mapping[Depth, Verdict]:
        """By protocol: the verdicts that decisions rest on, in the order of the first looks."""
        return {verdict.protocol: verdict for verdict in self.relied_on}

    @cached_property
    def basis(self) -> Verdict | None:
        """The most thorough verdict, as decisions rest on it."""
        return self.fallen or most_thorough(self.relied_on)

    @cached_property
    def screened(self) -> Verdict | None:
        """Its screening: what candidates are compared by, all alike."""
        return self.looks.get(Depth.SCREEN)

    @property
    def confirmed(self) -> Verdict | None:
        """Its confirmation in a fresh process."""
        return self.looks.get(Depth.CONFIRM)

    @cached_property
    def shown(self) -> Verdict | None:
        """What is told of it: its screening, since times of one kind of look can be compared."""
        return self.screened or self.basis

    @cached_property
    def standing(self) -> float | None:
        """What ranks it by what is told of it; None where that failed."""
        return self.score if self.screened else score_of(self.shown) if self.shown else None

    @cached_property
    def score(self) -> float | None:
        """What ranks it, as of its screening; None where it failed or was not screened.

        Its speed-up on the scale of the campaign's pairs (search/scale.py), or the inverse of its
        modelled time.
        """
        if self.screened is None or self.screened_speed is None:
            return score_of(self.screened) if self.screened else None
        return math.exp(self.screened_speed)

    @property
    def given_knobs(self) -> Mapping[str, KnobValue]:
        """Those of its knobs that are numbers or words."""
        return {k: v for k, v in self.knobs.items() if isinstance(v, int | float | str)}

    @cached_property
    def fault(self) -> Verdict | None:
        """The first look that found something wrong, at whatever depth; None: none did."""
        looks = [*self.looks.values(), *([self.fallen] if self.fallen else [])]
        return next((verdict for verdict in looks if not verdict.status.is_pass), None)

    def is_sound(self, by: int | None = None) -> bool:
        """Whether a look passed it and none, however thorough, found anything wrong with it.

        Args:
            by: The round up to which its fall as champion counts, so that a choice of an earlier
                round comes out as it did then; None: whatever is known now.
        """
        is_passed = any(verdict.status.is_pass for verdict in self.relied_on)
        if not is_passed or any(map(shows_fault, self.relied_on)):
            return False
        fell_later = by is not None and not self.fell_beside.is_before(by + 1)
        return self.fallen is None or fell_later

    def worth(self, by: int | None = None) -> float | None:
        """What it is worth as a base, where no look found anything wrong; None otherwise.

        Once it was confirmed beside the champion, that pair counts with its screening. For choices
        after its confirmation only: before and after it may differ.
        """
        if not self.is_sound(by):
            return None
        return self.score if self.settled_speed is None else math.exp(self.settled_speed)

    @property
    def is_near_roof(self) -> bool:
        """Whether there is next to nothing left to gain on this machine."""
        measured = self.basis.measurement if self.basis else None
        return measured is not None and (measured.roofline or 0.0) >= NEAR_ROOF

    @property
    def is_near_floor(self) -> bool:
        """Whether a modelled time is all compulsory bytes and launches."""
        modelled = self.basis.modelled_us if self.basis else None
        profile = self.basis.profile if self.basis else None
        if modelled is None or profile is None:
            return False
        memory_us, launches = profile.get("model_memory_us"), profile.get("launches")
        if memory_us is None or launches is None:
            return False
        return modelled <= NEAR_FLOOR * (memory_us + launches * LAUNCH_US)


def choose_better(
    one: KnownCandidate | None, other: KnownCandidate | None, by: int | None = None
) -> KnownCandidate | None:
    """The sound one with the higher score; a tie goes to the lower id. `by`: see `is_sound`."""
    ranked = [
        (-worth, c.candidate, c) for c in (one, other) if c and (worth := c.worth(by)) is not None
    ]
    return min(ranked, key=lambda each: each[:2])[2] if ranked else None
