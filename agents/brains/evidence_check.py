# SPDX-License-Identifier: Apache-2.0
"""Whether a Judge's evidence stands in the profile of the very candidate it speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

TOLERANCE = 0.01
"""Relative: models round what they copy."""
SMALLEST = 1e-9
LEAST, MOST = 3, 4
"""Pieces of evidence asked for; fewer where fewer figures are known."""

_WANTED = f"Cite {LEAST} or {MOST} names from '## Its profile', with their values there"


class Cited(BaseModel):
    """One metric as a model cites it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    value: float


def find_faults(evidence: Sequence[Cited], figures: Mapping[str, float]) -> str:
    """What is wrong with the evidence, in words for whoever gave it; empty: it holds."""
    faults = [fault for cited in evidence if (fault := _fault(cited, figures))]
    if faults:
        return f"unsupported evidence: {'; '.join(faults)}. {_WANTED}"
    needed = min(LEAST, len(figures))
    cited_names = {cited.metric for cited in evidence}
    if len(cited_names) < needed:
        return f"{len(cited_names)} metrics are cited, at least {needed} are asked for. {_WANTED}"
    return ""


def select_figures(evidence: Sequence[Cited], figures: Mapping[str, float]) -> dict[str, float]:
    """The cited metrics with the profile's own values, at most MOST."""
    names = dict.fromkeys(cited.metric for cited in evidence if cited.metric in figures)
    return {name: figures[name] for name in list(names)[:MOST]}


def _fault(cited: Cited, figures: Mapping[str, float]) -> str:
    known = figures.get(cited.metric)
    if known is None:
        return f"there is no metric {cited.metric[:80]!r} in the profile"
    if abs(cited.value - known) > max(TOLERANCE * abs(known), SMALLEST):
        return f"{cited.metric} is {known:.6g} in the profile, not {cited.value:.6g}"
    return ""
