"""The spine as a user goes along it: run, list, show, report, export, resume, eval."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import NoStoreError
from kernelwright.tests.jails import no_jail, skip_for_want_of_one
from kernelwright.tests.sampling import IS_WHOLE
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth
from kernelwright.traces.store import Store

from .conftest import Done, environment

pytestmark = pytest.mark.slow
SEVEN = Path(__file__).parent.parent / "verifier" / "seven"


class Place:
    """A home with one finished campaign in it."""

    def __init__(self, folder: Path, cache: Path) -> None:
        skip_for_want_of_one(no_jail())
        self.folder = folder
        (folder / "work").mkdir()
        self.env = environment(folder, cache)
        self.program: tuple[str, ...] = ("-m", "kernelwright")

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *self.program, *args],
            env=self.env,
            cwd=self.folder / "work",
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def kw(self, *args: str, timeout: float = 280) -> Done:
        process = self.start(*args)
        out, err = process.communicate(timeout=timeout)
        return Done(process.returncode, out, err, args)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Place:
    found = Place(tmp_path_factory.mktemp("place"), shared_cache)
    done = found.kw(
        "run", "spmm_csr", "--target", "cpu", "--workload", "tiny", "--max-evals", "2", "--json"
    )
    assert done.code == 0, done.err
    found.result = done.document  # type: ignore[attr-defined]
    return found


@pytest.mark.timed
def test_run_ends_with_a_verified_winner(place: Any) -> None:
    result = place.result
    assert result["best"]["status"] == "VERIFIED"
    speedup = result["best"]["speedup"]
    assert {"torch eager", "scipy"} <= set(speedup)
    assert all(s["low"] <= s["median"] <= s["high"] for s in speedup.values())
    assert result["evaluated"] == 2
    assert sum(result["by_status"].values()) == 2
    assert result["stopped_by"] == "evaluations"
    assert (result["usd"], result["tokens"]) == (0, 0)


@pytest.mark.timed
def test_list_and_show_tell_of_it(place: Place) -> None:
    listed = place.kw("list", "--json").document
    assert [c["campaign"] for c in listed["campaigns"]] == [place.result["campaign"]]  # type: ignore[attr-defined]
    shown = place.kw("show", "@last", "--json")
    assert shown.code == 0, shown.err
    assert place.result["best"]["candidate"] in shown.out  # type: ignore[attr-defined]


@pytest.mark.timed
def test_the_report_is_one_file_that_needs_nothing_else(place: Place) -> None:
    target = place.folder / "report.html"
    done = place.kw("report", "@last", "-o", str(target))
    assert done.code == 0, done.err
    page = target.read_text()
    assert "VERIFIED" in page
    assert "torch eager" in page
    assert str(place.folder) not in page
    assert '<script src="http' not in page
    assert '<link rel="stylesheet" href="http' not in page


@pytest.mark.timed
def test_the_exported_package_passes_its_own_selftest(place: Place) -> None:
    out = place.folder / "winner"
    done = place.kw("export", "@last@best", "--format", "package", "-o", str(out))
    assert done.code == 0, done.err
    package = next(p.parent for p in out.rglob("__init__.py"))
    env = {**place.env, "PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(place.folder)}
    ran = subprocess.run(
        [sys.executable, "-m", package.name, "selftest"],
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    source = place.kw("export", "@last@best", "--format", "source", "-o", str(place.folder / "s"))
    assert source.code == 0, source.err
    assert list((place.folder / "s").rglob("*.cpp"))


@pytest.mark.timed
def test_resume_goes_on_where_it_stopped(place: Place) -> None:
    campaign = place.result["campaign"]  # type: ignore[attr-defined]
    done = place.kw("run", "--resume", campaign, "--max-evals", "3", "--json")
    assert done.code == 0, done.err
    assert done.document["evaluated"] == 3
    assert done.document["campaign"] == campaign


@pytest.mark.timed
@pytest.mark.parametrize(
    ("name", "status", "code"), [("honest", "VERIFIED", 0), ("wrong", "INCORRECT", 1)]
)
def test_eval_tells_its_verdict_by_exit_code(
    place: Place, name: str, status: str, code: int
) -> None:
    file = str(SEVEN / f"{name}.cpp")
    done = place.kw("eval", "spmm_csr", file, "--workload", "tiny", "--json")
    assert done.document["status"] == status
    assert done.code == code
    assert {"candidate", "reasons", "checks", "measurements", "profile", "isolation", "tier"} <= (
        set(done.document)
    )


@pytest.mark.timed
def test_eval_takes_a_python_file_by_its_ending(place: Place) -> None:
    file = Path(__file__).parents[1] / "honest" / "host" / "sparse.py"
    done = place.kw("eval", "spmm_csr", str(file), "--workload", "tiny", "--json")
    assert done.document["status"] == "VERIFIED", done.document["reasons"]
    assert done.document["tier"] == "host-code"
    assert done.code == 0


@pytest.mark.heavy
@pytest.mark.timed
def test_eval_for_the_record_makes_three_hundred_trials(place: Place) -> None:
    file = str(SEVEN / "honest.cpp")
    done = place.kw("eval", "spmm_csr", file, "--workload", "tiny", "--record", "--json")
    verdict = done.document
    assert verdict["protocol"] == "record"
    trials = [c for c in verdict["checks"] if c["name"].startswith("correct on")]
    assert len(trials) >= 300
    assert all(c["passed"] for c in trials)
    assert sum(c["name"] == "correct on tiny" for c in trials) >= 25
    assert "sanitizers" in {c["name"] for c in verdict["checks"]}, verdict["unchecked"]


@pytest.mark.heavy
def test_no_key_reaches_what_was_written(tmp_path: Path, shared_cache: Path) -> None:
    spot = Place(tmp_path, shared_cache)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"):
        spot.env[name] = "sk-planted-0123456789"
    done = spot.kw("run", "spmm_csr", "--workload", "tiny", "--max-evals", "1", "--json")
    assert done.code in (0, 5), done.err
    report = spot.kw("report", "@last", "-o", str(tmp_path / "report.html"))
    assert report.code == 0, report.err
    failed = spot.kw("show", "no-such-campaign")
    assert failed.code == 2
    for said in (done, report, failed):
        assert "sk-planted" not in said.out + said.err
    for file in (f for f in tmp_path.rglob("*") if f.is_file()):
        assert b"sk-planted" not in file.read_bytes(), file


def test_a_first_interrupt_saves_and_says_so(tmp_path: Path, shared_cache: Path) -> None:
    spot = Place(tmp_path, shared_cache)
    process = spot.start("run", "spmm_csr", "--workload", "tiny", "--max-time", "200s", "--json")
    wait_for_verdicts(tmp_path / "home", 1, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 5, 130), err
    with Store.open(tmp_path / "home", read_only=True) as store:
        history = derive(store.events(store.campaigns()[0]))
    assert history.finished is not None
    assert history.finished.stopped_by == "interrupted"
    assert all(not entry.cut_off for entry in history.entries.values())
    assert out.strip().startswith("{")


def wait_for_verdicts(home: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Until the store holds `count` verdicts."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(NoStoreError), Store.open(home, read_only=True) as store:
            for campaign in store.campaigns():
                entries = derive(store.events(campaign)).entries.values()
                if sum(bool(e.verdicts) for e in entries) >= count:
                    return
        time.sleep(0.3)
    raise AssertionError(f"no verdict: {process.poll()}")


KILLS = 10 if IS_WHOLE else 4


@pytest.mark.heavy
@pytest.mark.timed
@pytest.mark.timeout(900)
def test_killed_at_random_instants_it_loses_nothing(tmp_path: Path, shared_cache: Path) -> None:
    spot = Place(tmp_path, shared_cache)
    rng = random.Random(20)
    limits = ("--max-evals", "5", "--json")
    command = ["run", "spmm_csr", "--workload", "tiny", *limits]
    kills = 0
    while True:
        process = spot.start(*command)
        if kills == KILLS:
            _, err = process.communicate(timeout=280)
            assert process.returncode == 0, err
            break
        time.sleep(rng.uniform(0.5, 5.0))
        ended = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        known: list[str] = []
        with suppress(NoStoreError), Store.open(tmp_path / "home", read_only=True) as store:
            known = store.campaigns()
        if known:
            command = ["run", "--resume", known[0], *limits]
        if ended:
            kills = KILLS
    with Store.open(tmp_path / "home", read_only=True) as store:
        (campaign,) = store.campaigns()
        events = store.events(campaign)
    assert [e.seq for e in events] == sorted({e.seq for e in events})
    history = derive(events)
    assert [e.number for e in history.entries.values()] == list(range(1, 6))
    finished = [
        (e.payload.verdict.candidate, e.payload.verdict.protocol)
        for e in events
        if e.payload.kind == "evaluation.finished"
    ]
    # Only heats of a race are run more than once.
    once = [each for each in finished if each[1] is not Depth.RACE]
    assert len(once) == len(set(once))
    assert {c for c, _ in finished} == set(history.entries)
    assert history.champion in history.entries
    assert no_process_names(str(tmp_path))


def no_process_names(text: str) -> bool:
    """Whether no process that is left carries the text in its command or environment."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not any(text in words(pid) for pid in Path("/proc").glob("[0-9]*")):
            return True
        time.sleep(0.2)
    return False


def words(process: Path) -> str:
    """Command line and environment of a process."""
    if process.name == str(os.getpid()):
        return ""
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace") + (
            (process / "environ").read_bytes().decode(errors="replace")
        )
    except OSError:
        return ""


@pytest.mark.heavy
def test_where_nothing_can_be_timed_a_kernel_that_leads_is_a_success(
    tmp_path: Path, shared_cache: Path
) -> None:
    spot = Place(tmp_path, shared_cache)
    asked = ("run", "softmax", "--target", "sm_90", "--workload", "tiny", "--max-evals", "2")
    done = spot.kw(*asked)
    assert done.code == 0, done.err
    assert "leads by modelled time" in done.out
    assert "no verified winner" not in done.out
    told = spot.kw("show", "@last", "--json").document
    assert (told["best"], told["leader"]["speedup"]) == (None, None)
    assert told["leader"]["modelled_us"] > 0
