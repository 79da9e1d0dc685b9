"""Verdicts and events as JSON: what is understood is written and read again without a change."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from pydantic import ValidationError

from kernelwright.errors import StorageError
from kernelwright.tests.cli import stored
from kernelwright.tests.fuzz.target import JSON, Target, edited, edits, json_edited, json_edits
from kernelwright.traces.events import (
    AdviceGiven,
    AuditOutcome,
    CampaignAudited,
    CampaignFinished,
    CampaignPrepared,
    CampaignResumed,
    ChampionChanged,
    Event,
    Payload,
    payload_adapter,
)
from kernelwright.traces.history import derive
from kernelwright.traces.records import Advice, Check, Depth, Status, Verdict

GOOD: tuple[Payload, ...] = (
    stored.started(),
    CampaignPrepared(seconds={"referee": 1.5}, baselines=("torch eager",), missing={"b": "late"}),
    stored.proposed(1, "row-balanced"),
    *stored.judged(1, Status.VERIFIED, Depth.CONFIRM),
    *stored.judged(1, Status.INCORRECT, Depth.SCREEN),
    ChampionChanged(candidate=stored.IDS[0], credited=0.75),
    AdviceGiven(advice=Advice(candidate=stored.IDS[0], bottleneck="b", change="c", hints={"a": 1})),
    CampaignFinished(stopped_by="seconds", best=stored.IDS[0]),
    CampaignResumed(limits={"seconds": 3.0}),
    CampaignAudited(
        candidate=stored.IDS[0],
        outcome=AuditOutcome.HOLDS,
        verdicts=(stored.verdict(1, Status.VERIFIED, Depth.CONFIRM),),
    ),
)


def check_event(drawn: tuple[int, list[Any], list[Any]]) -> None:
    """A changed event is refused as a whole, or read, written and read again as the same."""
    number, inner, outer = drawn
    value = json_edited(json.loads(GOOD[number].model_dump_json()), inner)
    content = edited(json.dumps(value).encode(), outer)
    try:
        payload = payload_adapter.validate_json(content)
    except ValidationError:
        return
    assert payload_adapter.validate_json(payload.model_dump_json()) == payload
    events = [*GOOD[:number], payload, *GOOD[number + 1 :]]
    try:
        history = derive(
            Event(seq=at, campaign="c", at=float(at), payload=each)
            for at, each in enumerate(events, 1)
        )
    except StorageError:
        return
    assert history.last_seq == len(GOOD)
    assert all(entry.verdict in (None, *entry.verdicts) for entry in history.entries.values())


def check_verdict(drawn: dict[str, Any]) -> None:
    """No words and no figures make a verdict that cannot be read again."""
    good = stored.verdict(1, Status.INCORRECT, Depth.FULL).model_dump()
    try:
        verdict = Verdict.model_validate({**good, **drawn})
    except ValidationError:
        return
    text = verdict.model_dump_json()
    assert Verdict.model_validate_json(text) == verdict
    assert (
        Verdict.model_validate(json.loads(json.dumps(verdict.model_dump(mode="json")))) == verdict
    )


_TEXT = st.text(max_size=12)
_FIGURE = st.none() | st.floats()
_CHECKS = st.lists(
    st.builds(dict, name=_TEXT, passed=st.booleans(), figure=_FIGURE, limit=_FIGURE, detail=_TEXT),
    max_size=3,
)
_VERDICTS = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(Status),
        "reasons": st.lists(_TEXT, max_size=2),
        "checks": _CHECKS,
        "log": _TEXT,
        "seconds": st.dictionaries(_TEXT, st.floats(), max_size=2),
        "seed": _TEXT | JSON,
        "tier": _TEXT | st.sampled_from(("native", "host-code")),
    },
)
assert {"name", "passed", "figure", "limit", "detail"} <= set(Check.model_fields)

TARGETS = (
    Target(
        "events",
        st.tuples(st.integers(0, len(GOOD) - 1), json_edits(), edits(2)),
        check_event,
        80,
    ),
    Target("verdicts", _VERDICTS, check_verdict, 100),
)
