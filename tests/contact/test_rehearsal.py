"""All of `make first-contact` on the stand-in for a GPU: each part's own code, in its process.

What takes a campaign or an emulation is heavy; `docs/results/first-contact-rehearsal.md` has all
parts in full size.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.benchmarks.contact.records import ENDS, FILE, Records
from kernelwright.tests.sampling import one_in

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "first_contact.py"
REHEARSED = "**Rehearsed on a stand-in driver: no figure is a GPU's.**"
PATIENCE_S = 120.0


def command(out: Path, *words: str) -> list[str]:
    return [sys.executable, str(PROGRAM), "--stand-in", "--quick", "--out", str(out), *words]


def contact(out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(out, *words), cwd=out.parent, capture_output=True, text=True, check=False
    )


def lines_of(out: Path, part: str) -> list[str]:
    place = out / "records" / f"{part}.jsonl"
    return place.read_text().splitlines() if place.exists() else []


def wait_for(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.05)


def programs_of(out: Path) -> list[str]:
    """Command lines of all processes that name this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(out) in words:
            found.append(words)
    return found


def assert_pages_come_from_the_bundle(out: Path, folder: Path) -> None:
    """From its records alone, with the same text."""
    for bundle in (out, out / FILE):
        words = [sys.executable, str(PROGRAM), "--from", str(bundle), "--results", str(folder)]
        subprocess.run(words, cwd="/", check=True, capture_output=True)
        pages = sorted(out.glob("gpu-*.md"))
        assert pages
        for page in pages:
            assert (folder / page.name).read_text() == page.read_text()
            (folder / page.name).unlink()


@pytest.mark.jail
def test_facts_tests_and_canary(tmp_path: Path) -> None:
    out = tmp_path / "contact"
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "docs" / "results").iterdir()}
    done = contact(out, "--part", "facts", "--part", "tests", "--part", "canary")
    records = Records(out)
    # The stand-in hides no other device, which is what one of the tests looks at.
    assert done.returncode == 1, done.stdout + done.stderr
    ends = {part: end["how"] for part, end in records.of(ENDS).items()}
    assert ends == {"facts": "well", "tests": "with failures", "canary": "well"}
    facts = records.of("facts")
    assert facts["device"]["facts"]["name"] == facts["probe"]["facts"]["name"]
    assert "uuid" not in facts["device"]["facts"]
    tests = records.of("tests")
    outcomes = {unit.partition("::")[2]: r["outcome"] for unit, r in tests.items() if "::" in unit}
    assert outcomes["test_the_device_is_well_and_both_interfaces_agree"] == "passed"
    assert outcomes["test_only_the_leased_device_is_visible"] == "failed"
    canary = records.of("canary")
    assert canary["afterwards"]["is_well"]
    assert canary.keys() == {
        "afterwards",
        *(f"{jail} {how} a device" for jail in ("bubblewrap", "landlock") for how in ENDINGS),
    }
    for part in ends:
        page = (out / f"gpu-{part}.md").read_text()
        assert REHEARSED in page
        assert "a stand-in for NVIDIA H200 (sm_90), driver 580.95.05" in page
        assert f"gpu-{part}.md" in done.stdout
    assert "no figure is a GPU's" in done.stdout
    after = {path: path.stat().st_mtime_ns for path in (ROOT / "docs" / "results").iterdir()}
    assert after == before
    assert_pages_come_from_the_bundle(out, tmp_path / "anew")


ENDINGS = ("with", "without")


@pytest.mark.heavy
@pytest.mark.parametrize("part", one_in(2, ["recipes", "fairness", "emulation", "model"]))
def test_a_part_that_times_kernels(tmp_path: Path, part: str) -> None:
    out = tmp_path / "contact"
    done = contact(out, "--part", part)
    records = Records(out)
    (unit, *others) = records.of(part).values()
    page = (out / f"gpu-{part}.md").read_text()
    assert REHEARSED in page
    assert "| bias_gelu |" in page, done.stdout
    if part == "recipes":
        assert unit["document"]["evaluated"] > 0
    elif part == "fairness":
        assert unit["low"] <= unit["median"] <= unit["high"]
    else:
        emulated = [each for each in others if each.get("emulated")]
        assert emulated
        assert all(each["found"]["emulated_us"] > 0 for each in emulated)
    if part == "emulation":
        assert "| registers of a thread | 1 |" in page
    assert_pages_come_from_the_bundle(out, tmp_path / "anew")


@pytest.mark.heavy
@pytest.mark.parametrize("number", one_in(2, [signal.SIGKILL, signal.SIGTERM]))
def test_what_was_found_outlives_a_kill_and_the_same_command_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "contact"
    words = ("--part", "facts", "--part", "canary")
    with subprocess.Popen(
        command(out, *words), cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: bool(lines_of(out, "canary")))
        os.kill(process.pid, number)
        process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    wait_for(lambda: not programs_of(out))
    kept = lines_of(out, "canary")
    assert 0 < len(kept) < 5
    assert (out / "gpu-canary.md").exists() == (number == signal.SIGTERM)
    done = contact(out, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "facts      has ended before: well" in done.stdout
    assert lines_of(out, "canary")[: len(kept)] == kept
    units = [json.loads(line)["unit"] for line in lines_of(out, "canary")]
    assert len(units) == len(set(units)) == 5
    page = (out / "gpu-canary.md").read_text()
    assert "This part ended: well" in page


def test_a_part_that_takes_too_long_is_cut_off_and_the_next_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "contact"
    words = ("--part", "tests", "--part", "recipes", "--minutes-per-part", "0.03")
    done = contact(out, *words)
    assert done.returncode == 1
    ends = Records(out).of(ENDS)
    assert list(ends) == ["tests", "recipes"]
    assert ends["tests"]["how"] == "cut off after 2 s"
    assert ends["tests"]["cause"]["name"] == "time"
    assert "give more --minutes-per-part" in (out / "gpu-tests.md").read_text()
    assert not programs_of(out)


@pytest.mark.heavy
def test_what_no_time_was_left_for_is_told_and_tried_again(tmp_path: Path) -> None:
    out = tmp_path / "contact"
    for _ in range(2):
        # A campaign may need 45 s beside its search, and is not begun.
        done = contact(out, "--part", "recipes", "--minutes-per-part", "0.5")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "recipes    out of time" in done.stdout
        assert "No time was left for: bias_gelu cuda." in (out / "gpu-recipes.md").read_text()


def test_a_stand_ins_pages_do_not_get_into_the_results(tmp_path: Path) -> None:
    out = tmp_path / "contact"
    results = str(ROOT / "docs" / "results")
    refused = contact(out, "--part", "facts", "--results", results)
    assert refused.returncode == 2
    assert "do not belong" in refused.stderr
    assert contact(out, "--part", "facts").returncode == 0
    words = [sys.executable, str(PROGRAM), "--from", str(out), "--results", results]
    rewritten = subprocess.run(words, capture_output=True, text=True, check=False)
    assert rewritten.returncode == 2
    assert not list(Path(results).glob("gpu-facts.md"))
