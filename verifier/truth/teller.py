# SPDX-License-Identifier: Apache-2.0
"""Turns what was found of an output into checks with a sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...traces.records import Check

Place = tuple[int, ...]


class Finding(NamedTuple):
    """What one check found: it holds where the figure is at most the limit."""

    check: str
    figure: float
    limit: float
    at: Place = ()
    words: str = ""


@dataclass(frozen=True)
class Teller:
    """Of one output."""

    name: str
    got: np.ndarray
    value: np.ndarray
    """What it should be."""
    workload: str
    places: np.ndarray | None = None
    """Where its rows lie in the whole answer, if it is a part of one."""

    def tell(
        self,
        check: str,
        passed: bool,
        figure: float | None = None,
        limit: float | None = None,
        detail: str = "",
    ) -> Check:
        """A check with these words."""
        return Check(
            name=check,
            passed=passed,
            # JSON has no NaN or infinity: the detail shows the values.
            figure=figure if figure is not None and np.isfinite(figure) else None,
            limit=limit,
            detail=detail,
            workload=self.workload,
        )

    def count(self, check: str, found: int, at: Place, what: str) -> Check:
        """So many elements, of which there may be none."""
        detail = f"{found} of {self.value.size} {what}; first {self._place(at)}" if found else ""
        return self.tell(check, found == 0, float(found), 0.0, detail)

    def ratio(self, check: str, worst: float, at: Place) -> Check:
        """The largest share of what is allowed, which may be 1."""
        detail = self._place(at) if at or worst else ""
        return self.tell(check, bool(worst <= 1.0), worst, 1.0, detail)

    def finding(self, found: Finding) -> Check:
        """In the words of who found it."""
        passed = bool(found.figure <= found.limit)
        place = self._place(found.at) if found.at else self.name
        detail = "" if passed else f"{place}: {found.words}".removesuffix(": ")
        return self.tell(found.check, passed, found.figure, found.limit, detail)

    def _place(self, at: Place) -> str:
        first = () if self.places is None or not at else (int(self.places[at[0]]),)
        index = ", ".join(str(i) for i in (*first, *at[len(first) :]))
        return f"{self.name}[{index}]: got {float(self.got[at]):.9g}, want {self.value[at]:.9g}"
