"""A home from Python: what campaigns left there, found by the names that the commands take."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelwright as kw
from kernelwright import extras
from kernelwright.errors import NoStoreError, PrerequisiteError, UnknownNameError, UsageError
from kernelwright.tests.cli.test_earlier_release import BY_RECIPES
from kernelwright.traces.records import candidate_id


def test_a_campaign_is_had_by_any_of_its_names(earlier: Path) -> None:
    found = kw.campaign(BY_RECIPES, home=earlier)
    assert found.id == kw.campaign(BY_RECIPES[-7:], home=str(earlier)).id == BY_RECIPES
    every = kw.open_home(earlier)
    assert kw.campaign(home=earlier).id == every["@last"].id == next(iter(every)).id
    assert len(every) == len(list(every)) == 8


def test_without_a_home_it_is_the_one_of_the_settings(
    earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(earlier))
    assert kw.campaign(BY_RECIPES).home == earlier
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path))
    with pytest.raises(NoStoreError, match="there is no store"):
        kw.campaign()


def test_a_name_that_is_none_is_told(earlier: Path) -> None:
    with pytest.raises(UnknownNameError, match="no campaign named 'softmax'"):
        kw.campaign("softmax", home=earlier)
    with pytest.raises(UsageError, match="names 8 campaigns"):
        kw.campaign("2026", home=earlier)


def test_a_campaign_has_its_candidates_with_their_sources(earlier: Path) -> None:
    found = kw.campaign(BY_RECIPES, home=earlier)
    best = found.champion
    assert best is not None
    assert best in found.candidates
    assert [each.number for each in found.candidates] == list(range(1, len(found.candidates) + 1))
    assert all(candidate_id(each.source) == each.id for each in found.candidates)
    assert found.why_no_winner == ""
    assert best.id[:10] in repr(found)


def test_no_module_hides_an_offered_name() -> None:
    """Python sets a submodule on its package, whatever stood there."""
    root = Path(kw.__file__).parent
    modules = {path.stem for path in root.glob("*.py")} | {
        path.parent.name for path in root.glob("*/__init__.py")
    }
    assert set(kw.__all__).isdisjoint(modules)


def test_a_report_is_written_with_its_folders_or_refused(earlier: Path, tmp_path: Path) -> None:
    found = kw.campaign(BY_RECIPES, home=earlier)
    path = found.report(tmp_path / "deep" / "r.html")
    assert path.read_text("utf-8").lstrip().lower().startswith("<!doctype html>")
    with pytest.raises(UsageError, match="cannot be written to /proc/nowhere"):
        found.report("/proc/nowhere/r.html")


def test_a_report_without_what_draws_it_names_the_extra(
    earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(extras.EXTRAS, "view", ("no_such_package",))
    with pytest.raises(PrerequisiteError, match="the report needs no_such_package"):
        kw.campaign(BY_RECIPES, home=earlier).report(tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()
