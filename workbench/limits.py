# SPDX-License-Identifier: Apache-2.0
"""Which caps a campaign has that nobody gave enough of: none runs for ever."""

from __future__ import annotations

from collections.abc import Mapping

from ..config import DEFAULT_MAX_TIME_S, Config

USUAL_LIMITS_OF_MODELS = {"seconds": 1800.0, "tokens": 500_000.0}
"""Where a model is asked and nobody set a limit: ten rounds of a chain end well below."""

USUAL_LIMITS = {"seconds": DEFAULT_MAX_TIME_S}
"""Where no model is asked and nobody set a limit."""


def limits_of(
    config: Config,
    *,
    usd: float | None = None,
    tokens: float | None = None,
    device_seconds: float | None = None,
) -> dict[str, float]:
    """The caps that somebody gave, by their names in a campaign."""
    limits = {
        "evaluations": config.max_evals,
        "seconds": config.max_time,
        "usd": usd,
        "tokens": tokens,
        "device_seconds": device_seconds,
    }
    return {name: float(value) for name, value in limits.items() if value is not None}


def with_an_end(
    limits: Mapping[str, float], model: str, judge_model: str, spent_s: float = 0.0
) -> dict[str, float]:
    """The limits as asked for; the usual ones where there are none, and its time where none of them
    binds a Coder that asks no model."""
    from ..agents.books.budget import CAPS_OF_WORK
    from ..agents.models.choosing import is_model

    usual = USUAL_LIMITS_OF_MODELS if is_model(model) or is_model(judge_model) else USUAL_LIMITS
    if not limits:
        return dict(usual)
    if is_model(model) or limits.keys() & set(CAPS_OF_WORK):
        return dict(limits)
    return {**limits, "seconds": spent_s + usual["seconds"]}
