# SPDX-License-Identifier: Apache-2.0
"""What an evaluation asks of a stand: where candidates of one target are built, tried and timed.

The sequence is evaluation.py's. A stand says how each of its steps is done here; which steps there
are, and what ends them early, it does not decide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

import numpy as np

from ...kernelbench.languages import Language
from ...kernelbench.tried import Tried
from ...traces.preparation import Preparation
from ...traces.records import Counting, Measurement, Profile
from ..clock.timed_sides import CandidateSide
from ..failure import Failed
from ..request import Order
from .session import Session
from .verdict_draft import Draft


class Mounted(Protocol):
    """One candidate, built for its stand, during one evaluation.

    What is wrong with it is a failed check in the draft, or raised as Failed or RunFault.
    """

    def ready(self) -> AbstractContextManager[None]:
        """What its processes need, made while none is alive. Raises ChampionFailed."""

    def process(self) -> AbstractContextManager[CandidateSide]:
        """A fresh process of it."""

    def try_on(self, side: CandidateSide) -> None:
        """Holds its answers against the truth, up to the first wrong one."""

    def look_closer(self, side: CandidateSide) -> None:
        """What a right candidate pays for beyond that, with the tried process still there."""

    def look_apart(self) -> None:
        """The same in processes of their own, once the tried one has ended."""

    @property
    def is_timed_as_tried(self) -> bool:
        """Whether the first block is timed in the process that was tried: a new one is dear."""

    def timed_process(self) -> AbstractContextManager[CandidateSide]:
        """A fresh process of it that is timed."""

    def time(self, side: CandidateSide) -> None:
        """One block of paired samples, where candidates are timed. Raises ChampionFailed."""

    def goes_on(self) -> bool:
        """Whether another process of it is to be timed."""

    def conclude_times(self) -> Measurement | None:
        """What its times come to, with the checks of its timing; None where nothing is timed."""

    def known_profile(self) -> Profile | None:
        """What is known of it by now, whatever becomes of it."""

    def profile(self) -> Profile | None:
        """All that is told of one that passed, once its times were taken."""

    def cause(self, failed: Failed) -> str:
        """The sentence to lead its failure with; empty where the failure says it all."""


@dataclass
class Stand(ABC):
    """Opened once by `opening.open_stand`, and asked for each candidate."""

    session: Session
    is_emulated: ClassVar[bool]
    """Whether the target is a device that is not here: then nothing is timed."""
    languages: ClassVar[tuple[Language, ...]]
    """What candidates may be written in."""
    takes: ClassVar[str]
    """The same in words."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, float]:
        """What recipes may ask about the workload and the machine."""

    @abstractmethod
    def wait_prepared(self) -> Preparation:
        """Waits until candidates can be judged; which baselines they are held against."""

    def illness(self) -> str:
        """Why nothing can be judged here now; empty: it can."""
        return ""

    def illness_after(self, draft: Draft, failure: str) -> str:
        """The same, after a failure that may be the stand's own."""
        del draft, failure
        return ""

    @property
    def counting(self) -> Counting | None:
        """Which hardware counters are read here; None: none."""
        return None

    def count(self, draft: Draft, rng: np.random.Generator) -> Profile | str:
        """The counters of a candidate that was found right, or why there are none. Raises Failed.

        Nobody asks where `counting` is None.
        """
        del draft, rng
        raise NotImplementedError

    @abstractmethod
    def mount(self, draft: Draft, rng: np.random.Generator) -> Mounted:
        """Builds the candidate of a draft, before any process of it is alive. Raises Failed."""

    def on_cpus(self, cpus: tuple[int, ...]) -> Self:
        """The same stand on some of its CPUs; what others beside it try is no matter to it."""
        workshop = replace(self.session.workshop, cpus=cpus)
        stage = replace(self.session.stage, tried=Tried())
        return replace(self, session=replace(self.session, workshop=workshop, stage=stage))

    @abstractmethod
    def close(self) -> None:
        """Gives everything back."""


@dataclass
class TimingStand(Stand):
    """One that times candidates, which what is done ahead of them must not disturb.

    On any other nothing is timed, and whole evaluations may go on side by side.
    """

    is_emulated = False

    @abstractmethod
    def build_ahead(self, order: Order) -> None:
        """Leaves in the build cache what an evaluation of the order will ask for."""
