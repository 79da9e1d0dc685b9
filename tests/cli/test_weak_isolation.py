"""A sandbox that lacks something is refused at once, or accepted and told in every result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app

from .conftest import Command, Done, environment

pytestmark = pytest.mark.slow
HONEST = Path(__file__).parent.parent / "verifier" / "seven" / "honest.cpp"
NEEDED = ("fs_write", "net", "kill_tree")
ACCEPTED = ("--jail", "bare", "--accept-weak-isolation")


def test_eval_is_refused_before_anything_slow_starts(kw_here: Command, tmp_path: Path) -> None:
    cache = tmp_path / "fresh"
    done = kw_here("eval", "spmm_csr", str(HONEST), "--jail", "bare", "--cache-dir", str(cache))
    assert (done.code, done.out) == (3, "")
    for word in (*NEEDED, "leave out --jail bare", "--accept-weak-isolation"):
        assert word in done.err
    # What the canary needs, and neither peaks nor a runner nor baselines.
    assert {file.name.partition("-")[0] for file in cache.iterdir()} == {"canary", "isolation"}


def test_run_is_refused_and_begins_no_campaign(kw_here: Command, tmp_path: Path) -> None:
    done = kw_here("run", "spmm_csr", "--workload", "tiny", "--max-evals", "1", "--jail", "bare")
    assert (done.code, done.out) == (3, "")
    assert "--accept-weak-isolation" in done.err
    with Store.open(tmp_path / "home", read_only=True) as store:
        assert store.campaigns() == []


MODULE = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(8, 16)]
"""


@pytest.mark.parametrize(
    "command", [("problems", "--check"), ("problems",), ("run", "--dry-run")], ids=" ".join
)
def test_a_file_of_the_users_is_refused_before_it_runs(
    kw_here: Command, private: dict[str, str], command: tuple[str, ...]
) -> None:
    (Path(private["HOME"]) / "work" / "mine.py").write_text(MODULE)
    done = kw_here(*command, "./mine.py", "--jail", "bare")
    assert (done.code, done.out) == (3, "")
    for word in (*NEEDED, "leave out --jail bare", "--accept-weak-isolation"):
        assert word in done.err


def test_who_accepts_a_weak_sandbox_has_a_file_looked_at(
    kw_here: Command, private: dict[str, str]
) -> None:
    assert kw_here("new", "problem", "swi").code == 0
    refused = kw_here("problems", "--check", "./swi.py", "--jail", "bare")
    assert (refused.code, refused.out) == (3, "")
    (Path(private["HOME"]) / "work" / "mine.py").write_text(MODULE)
    done = kw_here("problems", "./mine.py", *ACCEPTED)
    assert done.code == 0, done.err
    assert "held against" in done.out


class Weak:
    """A home with a campaign of one candidate that nothing confined."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.home = folder / "home"
        self.folder = folder
        self._env = environment(folder, cache)
        limits = ("--workload", "tiny", "--max-evals", "1", "--json")
        self.done = self.kw("run", "spmm_csr", *limits, *ACCEPTED)
        self.result = self.done.document

    def kw(self, *args: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "kernelwright", *args],
            env=self._env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        return Done(done.returncode, done.stdout, done.stderr, args)


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Weak:
    return Weak(tmp_path_factory.mktemp("weak"), shared_cache)


def open_rows(document: dict[str, Any]) -> set[str]:
    """What the document says is not enforced, which must be what its matrix says."""
    rows = document["isolation"]["capabilities"]
    assert document["isolation"]["mechanism"] == "bare"
    assert document["not_enforced"] == [n for n, row in rows.items() if row["state"] != "enforced"]
    return set(document["not_enforced"])


def test_the_accepted_run_says_it(weak: Weak) -> None:
    assert weak.done.code in (0, 5), weak.done.err
    assert {*NEEDED, "fs_read", "ptrace", "uid"} <= open_rows(weak.result)
    assert "warning: the sandbox (bare) does not enforce fs_write, net, kill_tree" in weak.done.err


def test_what_is_read_of_it_later_says_it(weak: Weak) -> None:
    shown = weak.kw("show", "@last/1")
    assert shown.code == 0, shown.err
    assert "sandbox: bare; not fully enforced: fs_read absent, fs_write absent" in shown.out
    report = weak.folder / "report.html"
    done = weak.kw("report", "@last", "-o", str(report))
    assert done.code == 0, done.err
    says_it(report.read_text())


def test_the_viewer_says_it(weak: Weak) -> None:
    campaign = weak.result["campaign"]
    with TestClient(create_app(weak.home), base_url="http://127.0.0.1:8765") as client:
        page = client.get(f"/c/{campaign}").text
        assert "Mechanism: bare." in page
        assert "Lacking: fs_write, net, kill_tree." in page
        with Store.open(weak.home, read_only=True) as store:
            (proposed,) = [
                event.payload.candidate
                for event in store.events(campaign)
                if event.payload.kind == "candidate.proposed"
            ]
        assert "(bare) that does not enforce fs_read, fs_write, net" in (
            client.get(f"/c/{campaign}/{proposed}").text
        )


def says_it(page: str) -> None:
    assert "Lacking: fs_write, net, kill_tree." in page
    assert "Judged in a sandbox (bare) that does not enforce fs_read, fs_write, net" in page


def test_the_table_of_an_accepted_eval_says_it(weak: Weak) -> None:
    done = weak.kw("eval", "spmm_csr", str(HONEST), "--workload", "tiny", *ACCEPTED)
    assert done.code in (0, 1), done.err
    assert "sandbox: bare; not fully enforced: fs_read absent, fs_write absent" in done.out
    assert "warning: the sandbox (bare) does not enforce" in done.err
