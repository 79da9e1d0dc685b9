"""`delete`, `archive` and `gc` as they are typed."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from kernelwright.tests.traces.conftest import Sample, write_campaign
from kernelwright.traces.store import Store

from .conftest import Command


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return write_campaign(tmp_path / "home")


def make_old(home: Path) -> None:
    before = time.time() - 7200
    for path in (home / "blobs").rglob("*"):
        os.utime(path, (before, before))


def test_nothing_is_deleted_without_a_word(kw_here: Command, sample: Any) -> None:
    done = kw_here("delete", sample.campaign, "--home", str(sample.home))
    assert done.code == 0
    assert f"{sample.campaign}  " in done.out
    assert "would be deleted" in done.out
    assert "--yes" in done.err
    with Store.open(sample.home, read_only=True) as store:
        assert store.campaigns() == [sample.campaign]


def test_a_campaign_goes_and_its_sources_after_it(kw_here: Command, sample: Any) -> None:
    home = ("--home", str(sample.home))
    make_old(sample.home)
    kept = kw_here("gc", "--json", *home).document
    assert kept["removed"] is False
    deleted = kw_here("delete", "@last", "--yes", "--json", *home).document
    assert list(deleted["deleted"]) == [sample.campaign]
    told = kw_here("gc", *home)
    assert "would be removed" in told.out
    done = kw_here("gc", "--yes", "--json", *home).document
    assert done["files"] > kept["files"]
    assert done["file_bytes"] > 0
    assert done["store_bytes"] > 0
    assert not list((sample.home / "blobs").glob("??/*"))
    assert kw_here("delete", sample.campaign, "--yes", *home).code == 2


def test_an_archived_campaign_can_be_opened_and_is_gone(
    kw_here: Command, sample: Any, tmp_path: Path
) -> None:
    home, file = ("--home", str(sample.home)), tmp_path / "kept.zip"
    with Store.open(sample.home, read_only=True) as store:
        events = store.events(sample.campaign)
    done = kw_here("archive", sample.campaign, "-o", str(file), "--json", *home)
    if done.code:
        # Of the sample some sources were never kept: then it stays, whole.
        assert "stays" in done.err
        assert not file.exists()
        with Store.open(sample.home, read_only=True) as store:
            assert store.events(sample.campaign) == events
        return
    assert done.document["events"] == len(events)
    with Store.open(sample.home, read_only=True) as store:
        assert store.campaigns() == []


def test_what_is_there_is_not_written_over(kw_here: Command, sample: Any, tmp_path: Path) -> None:
    file = tmp_path / "kept.zip"
    file.write_bytes(b"mine")
    done = kw_here("archive", "@last", "-o", str(file), "--home", str(sample.home))
    assert done.code == 2
    assert "is there already" in done.err
    assert file.read_bytes() == b"mine"


def test_a_campaign_without_a_source_stays(kw_here: Command, sample: Any, tmp_path: Path) -> None:
    shutil.rmtree(sample.home / "blobs")
    file = tmp_path / "kept.zip"
    done = kw_here("archive", "@last", "-o", str(file), "--home", str(sample.home))
    assert done.code == 2
    assert f"campaign {sample.campaign} stays" in done.err
    assert not file.exists()
    with Store.open(sample.home, read_only=True) as store:
        assert store.campaigns() == [sample.campaign]


def test_no_home_is_made_to_be_cleaned(kw_here: Command, tmp_path: Path) -> None:
    for command in (("delete", "@last"), ("gc",), ("archive", "@last")):
        done = kw_here(*command, "--home", str(tmp_path / "nothing"))
        assert done.code != 0
        assert not (tmp_path / "nothing").exists()
