"""Pages from records alone: the same records give the same text, on any machine and later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import figures
from .parts import PARTS
from .records import ENDS, Record, Records, Scene
from .work import CAUSE, DEVICE, LEFT_OUT

TITLES = {
    "facts": "What the device is",
    "tests": "The tests on the device",
    "canary": "What the jails enforce of a job with a device",
    "recipes": "Recipes on the device",
    "fairness": "What the timing credits on the device",
    "emulation": "Emulated counts against the hardware's",
    "model": "Modelled time against measured on the device",
}
REHEARSED = (
    "**Rehearsed on a stand-in driver: no figure is a GPU's.** The driver runs a few host "
    "functions in place of kernels, whatever was built: tests of what a wrong kernel does must "
    "fail on it, and Triton's kernels are not tried."
)


def write_all(records: Records, folders: list[Path]) -> list[Path]:
    """A page for each part of which there is a record; the files that were written."""
    asked = records.asked()
    if asked is None:
        return []
    written = []
    for part in PARTS:
        found = records.of(part)
        end = records.of(ENDS).get(part)
        if not found and not end:
            continue
        text = page(part, asked[0], found, end)
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / f"gpu-{part}.md"
            place.write_text(text)
            written.append(place)
    return written


def page(part: str, scene: Scene, found: dict[str, Record], end: Record | None) -> str:
    """One page."""
    date = end.get("date", scene.date) if end else scene.date
    how = f"{end['how']}, {end['seconds']:.0f} s" if end else "not at its end"
    lines = [f"# {TITLES[part]}", ""]
    lines += [REHEARSED, ""] if scene.is_stand_in else []
    lines += [
        f"Made by `{scene.command}` on {date}: {PARTS[part].says}. Device: {scene.device} "
        f"({scene.target}), driver {scene.driver}. This part ended: {how}.",
        "",
        *BODIES[part]({unit: r for unit, r in found.items() if unit not in (LEFT_OUT, DEVICE)}),
        *_failures(found, end),
        *([f"No time was left for: {', '.join(left)}."] if (left := _left_out(found)) else []),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _facts(found: dict[str, Record]) -> list[str]:
    lines = []
    for unit, record in found.items():
        if "facts" in record:
            rows = [f"| {name} | {_say(value)} |" for name, value in record["facts"].items()]
            lines += [f"## {unit}", "", "| fact | |", "|---|---|", *rows, ""]
    return lines


def _tests(found: dict[str, Record]) -> list[str]:
    files = {unit: record for unit, record in found.items() if "exit_status" in record}
    tests = {unit: record for unit, record in found.items() if "outcome" in record}
    lines = ["| file | passed | failed | skipped | s | ended |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(unit.partition("::")[0] for unit in tests):
        outcomes = [r["outcome"] for unit, r in tests.items() if unit.startswith(f"{name}::")]
        stem = Path(name).stem.removeprefix("test_")
        end = files.get(f"file {stem}")
        counted = " | ".join(str(outcomes.count(o)) for o in ("passed", "failed", "skipped"))
        how = f"status {end['exit_status']}" if end and end["exit_status"] >= 0 else "cut off"
        lines.append(f"| `{name}` | {counted} | {end['seconds'] if end else ''} | {how} |")
    skipped = [
        f"- `{unit.partition('::')[2]}`: {cell(record['why']).removeprefix('Skipped: ')}"
        for unit, record in tests.items()
        if record.get("why")
    ]
    return [*lines, "", *(["Skipped:", "", *skipped, ""] if skipped else [])]


def _canary(found: dict[str, Record]) -> list[str]:
    probed = {unit: record for unit, record in found.items() if "rows" in record}
    if not probed:
        return []
    names = list(next(iter(probed.values()))["rows"])
    lines = [f"| capability | {' | '.join(probed)} |", f"|---{'|---' * len(probed)}|"]
    for name in names:
        states = " | ".join(record["rows"][name][0] for record in probed.values())
        lines.append(f"| `{name}` | {states} |")
    well = found.get("afterwards", {}).get("is_well")
    lines += ["", f"The device afterwards: {'well' if well else 'not known to be well'}.", ""]
    absent = {r["jail"]: r["missing"] for r in found.values() if "missing" in r}
    lines += [f"Not here: {jail}: {cell(reason)}." for jail, reason in absent.items()]
    lines += [""] if absent else []
    for unit, record in probed.items():
        lines += [f"## {unit}", ""]
        lines += [f"- `{row}` {state}: {cell(how)}" for row, (state, how) in record["rows"].items()]
        lines.append("")
    return lines


def _failures(found: dict[str, Record], end: Record | None) -> list[str]:
    """What failed, each with its probable cause; the part itself where it was cut off."""
    failed = {unit: record[CAUSE] for unit, record in found.items() if CAUSE in record}
    if end and CAUSE in end and end[CAUSE] not in failed.values():
        failed = {"the part itself": end[CAUSE], **failed}
    if not failed:
        return []
    lines = ["## What failed, and the probable cause", ""]
    lines += ["| what | probable cause | what helps | said last |", "|---|---|---|---|"]
    for unit, cause in failed.items():
        last = cell(" … ".join(cause["last"][-2:]))[:240]
        about = f"{cause['name']}: {cause['cause']}"
        lines.append(f"| {cell(unit)} | {cell(about)} | {cell(cause['remedy'])} | {last} |")
    return [*lines, ""]


def _left_out(found: dict[str, Record]) -> list[str]:
    return list(found.get(LEFT_OUT, {}).get("units", []))


def _say(value: Any) -> str:
    if value is None:
        return "not told"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cell(str(value))


def cell(text: str) -> str:
    """Text that cannot break a table."""
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())


BODIES: dict[str, Callable[[dict[str, Record]], list[str]]] = {
    "facts": _facts,
    "tests": _tests,
    "canary": _canary,
    "recipes": figures.recipes,
    "fairness": figures.fairness,
    "emulation": figures.emulation,
    "model": figures.model,
}
