"""How campaigns and candidates are named, and what is said of a name that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import UnknownNameError, UsageError
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.events import CampaignStarted, ChampionChanged
from kernelwright.traces.store import Store


def test_campaigns_are_named_by_a_beginning_an_end_or_last(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    times = iter([1_700_000_000.25, 1_700_086_400.75])
    with Store.open(tmp_path, clock=lambda: next(times)) as store:
        with pytest.raises(UnknownNameError, match="there is no campaign in"):
            store.resolve("@last")
        first, second = store.create(new_campaign), store.create(new_campaign)
        assert store.resolve("@last") == second
        assert (
            store.resolve(first) == store.resolve(first[:8]) == store.resolve(first[-7:]) == first
        )
        with pytest.raises(UsageError, match="'2023' names 2 campaigns") as caught:
            store.resolve("2023")
        assert first in caught.value.hint
        for text in ("nope", ""):
            with pytest.raises(UnknownNameError):
                store.resolve(text)


def test_candidates_are_named_by_number_beginning_or_best(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    ids = ["ab" + "0" * 62, "ac" + "0" * 62, "12" + "f" * 62]
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        for number, name in enumerate(ids, 1):
            store.append(campaign, proposed(number, name))
        with pytest.raises(UsageError, match="no verified winner"):
            store.resolve_candidate(campaign, "@best")
        store.append(campaign, ChampionChanged(candidate=ids[1], credited=1.5))
        assert store.resolve_candidate(campaign, "@best") == ids[1]
        assert store.resolve_candidate(campaign, "1") == ids[0]
        assert store.resolve_candidate(campaign, "12") == ids[2]
        assert store.resolve_candidate(campaign, "ac") == ids[1]
        with pytest.raises(UsageError, match="names 2 candidates"):
            store.resolve_candidate(campaign, "a")
        with pytest.raises(UnknownNameError, match="no candidate of campaign"):
            store.resolve_candidate(campaign, "99")
