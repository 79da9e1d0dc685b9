"""Every recipe for GPUs against every baseline on this machine's device; writes docs/results.

python benchmarks/gpu_results.py [--seconds 60] [--minutes 60] [--language cuda|triton] [--out FILE]
                                 [--home FOLDER] [PROBLEM …]

The page is docs/results/gpu-DEVICE.md unless --out names another; it is written anew after each
campaign, so that what was found stays where the rest is cut off. No campaign is begun that may
not end within --minutes. --home keeps the store with every verdict. Without a device it says so
and ends with status 3, and no page is written.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from kernelwright.errors import ExitCode, PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.run.device import nvml

LANGUAGES = ("cuda", "triton")
VERSIONS = ("torch", "triton", "numpy")
BESIDE_S = 45
"""What a campaign may take beside its search: its baselines and the confirmation."""
NOT_RUN = "the campaign gave no result"


def campaign(
    problem: str, language: str, target: str, seconds: int, home: str, workload: str = ""
) -> dict[str, Any]:
    """The `run --json` document of one campaign, or what it said where it has none."""
    command = [
        sys.executable,
        "-m",
        "kernelwright",
        "run",
        problem,
        "--home",
        home,
        "--target",
        target,
        "--language",
        language,
        "--max-time",
        f"{seconds}s",
        "--json",
        *(["--workload", workload] if workload else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        said = [line for line in done.stderr.splitlines() if line.strip()] or [NOT_RUN]
        # An error is followed by its hint.
        failed = next((line for line in reversed(said) if line.startswith("error:")), said[-1])
        told = {"failed": failed[:160], "said": said[-5:], "exit_status": done.returncode}
        return {"problem": problem, "best": None, "evaluated": 0, **told}
    return document


def rows(document: dict[str, Any], language: str) -> list[str]:
    """Table rows of one campaign, a line for each baseline."""
    best = document["best"]
    head = f"| {document['problem']} | {document.get('workload', '')} | {language} |"
    if best is None or not best.get("speedup"):
        why = document.get("failed") or document.get("why_no_winner") or "no VERIFIED candidate"
        return [f"{head} {cell(why)} | | | | {document['evaluated']} |"]
    roofline = f"{best['roofline']:.2f}" if best.get("roofline") else ""
    found = []
    for baseline, s in best["speedup"].items():
        ratio = f"{s['median']:.2f} [{s['low']:.2f}, {s['high']:.2f}]"
        found.append(
            f"{head} {best['status']} | {best['latency_us']:.1f} | {roofline} | "
            f"{baseline}: {ratio} | {document['evaluated']} |"
        )
    return found


def cell(text: str) -> str:
    """Text that cannot break a table."""
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())


def machine(device: nvml.Device, before: nvml.Snapshot, after: nvml.Snapshot) -> list[str]:
    """What the figures depend on: device, driver, versions, and how the device fared."""
    versions = [f"{name} {version(name)}" for name in VERSIONS]
    disturbed = nvml.explain_unstable(before, after)
    return [
        f"Device: {device.name} ({device.architecture}), driver {device.driver}, "
        f"{device.memory_bytes / 2**30:.0f} GiB"
        + (f", power limit {device.power_limit_w:.0f} W" if device.power_limit_w else "")
        + f". Python {platform.python_version()}, {', '.join(versions)}, Linux "
        f"{platform.release()}.",
        "",
        f"Clocks were left as they are. Before and after: {clocks(before)}; {clocks(after)}. "
        + (f"Unstable: {'; '.join(disturbed)}." if disturbed else "Nothing disturbed it."),
    ]


def clocks(seen: nvml.Snapshot) -> str:
    """A snapshot in words."""
    return (
        f"SM {seen.sm_clock_mhz or '?'} MHz, memory {seen.memory_clock_mhz or '?'} MHz, "
        f"{'?' if seen.temperature_c is None else seen.temperature_c} °C"
    )


def version(package: str) -> str:
    """Its version, or that there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(none)"


def page(table: list[str], facts: list[str], command: str, seconds: int) -> str:
    """The whole page."""
    lines = [
        "# Recipes on a GPU",
        "",
        f"Made by `{command}` on {datetime.date.today().isoformat()}: one campaign of {seconds} s "
        "for each problem and language with the offline recipe Coder, on its default workload. "
        "Times are CUDA events with a cold L2 cache. Speed-ups are medians with 95 % intervals "
        "from the confirming run; figures below 1 mean that the baseline is faster.",
        "",
        *facts,
        "",
        "| problem | workload | language | status | median µs | roofline share | speed-up against "
        "| candidates |",
        "|---|---|---|---|---|---|---|---|",
        *table,
    ]
    return "\n".join(lines) + "\n"


def campaigns(asked: argparse.Namespace, target: str, home: str) -> Iterator[list[str]]:
    """Rows of one campaign after the other, as long as there is time for one more."""
    languages = [asked.language] if asked.language else LANGUAGES
    ends = time.monotonic() + 60 * asked.minutes
    for problem in asked.problems:
        for language in languages:
            if time.monotonic() + asked.seconds + BESIDE_S > ends:
                yield [f"| {problem} | | {language} | not begun: no time was left | | | | |"]
                continue
            document = campaign(problem, language, target, asked.seconds, home)
            yield rows(document, language)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=list(registry.names()))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--language", choices=LANGUAGES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--home", type=Path)
    return parser.parse_args()


def main() -> int:
    """Runs the campaigns one after the other and writes the page."""
    asked = arguments()
    try:
        with nvml.open_nvml() as module, tempfile.TemporaryDirectory() as passing:
            device = nvml.devices(module)[0]
            name = re.sub(r"[^a-z0-9]+", "-", device.name.lower().removeprefix("nvidia "))
            out = asked.out or Path(f"docs/results/gpu-{name.strip('-')}.md")
            out.parent.mkdir(parents=True, exist_ok=True)
            command = f"python benchmarks/gpu_results.py --seconds {asked.seconds}"
            before = nvml.snapshot(module, device.uuid)
            table: list[str] = []
            for found in campaigns(asked, device.architecture, str(asked.home or passing)):
                print("\n".join(found), file=sys.stderr)
                table += found
                facts = machine(device, before, nvml.snapshot(module, device.uuid))
                out.write_text(page(table, facts, command, asked.seconds))
    except (PrerequisiteError, IndexError) as error:
        print(f"no page was written: {error or 'the driver shows no device'}", file=sys.stderr)
        return int(ExitCode.PREREQUISITE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
