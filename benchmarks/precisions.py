"""Judges honest kernels and cheats of each precision policy; writes docs/results/precisions.md.

    python benchmarks/precisions.py [--out docs/results/precisions.md] [POLICY …]

Ends with status 1 where one of them got another status than its row in tests/precisions/table.toml.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hostile_table import RETRIED, cell
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.policies import POLICIES
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

HERE = Path(__file__).resolve().parent.parent / "tests" / "precisions"
Kernel = dict[str, str]


@dataclass(frozen=True)
class Found:
    """A row and what came of it."""

    kernel: Kernel
    protocol: Depth
    verdict: Verdict

    @property
    def is_as_expected(self) -> bool:
        """A cheat that a screening misses is looked at by a whole evaluation."""
        status = self.verdict.status
        if self.kernel["status"] == Status.SCREENED:
            return status.is_pass
        return status == self.kernel["status"]


def judge(kernel: Kernel, referee: RefereeProcess) -> Found:
    """The verdict of a screening; of a whole evaluation where that lets a cheat pass."""
    source = (HERE / kernel["file"]).read_text("utf-8")
    for protocol in (Depth.SCREEN, Depth.FULL):
        order = Order(source=source, language="cpp", protocol=protocol)
        verdict = referee.evaluate(order)
        if verdict.status in RETRIED:
            verdict = referee.evaluate(order)
        if kernel["kind"] == "honest" or not verdict.status.is_pass:
            break
    return Found(kernel, protocol, verdict)


def judge_all(kernels: list[Kernel]) -> list[Found]:
    """Each on the tiny workload, one problem after the other."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for problem in dict.fromkeys(kernel["problem"] for kernel in kernels):
            task = Task(
                problem=problem,
                problem_text=registry.get(problem).text,
                workload=registry.workload_for(registry.get(problem), "tiny"),
                cache_dir=folder,
                baselines=("torch eager",),
            )
            with ExitStack() as stack:
                referee = stack.enter_context(open_referee(task))
                for kernel in kernels:
                    if kernel["problem"] == problem:
                        found.append(judge(kernel, referee))
                        status = found[-1].verdict.status
                        print(f"{kernel['file']:46} {status}", file=sys.stderr, flush=True)
    return found


def summary(found: list[Found]) -> Iterator[str]:
    """Policy × honest kernels accepted, cheats refused."""
    yield "| policy | honest kernels accepted | cheats refused |"
    yield "|---|---|---|"
    for policy in dict.fromkeys(each.kernel["policy"] for each in found):
        honest = [e for e in found if (e.kernel["policy"], e.kernel["kind"]) == (policy, "honest")]
        cheats = [e for e in found if (e.kernel["policy"], e.kernel["kind"]) == (policy, "cheat")]
        accepted = sum(each.verdict.status.is_pass for each in honest)
        refused = sum(each.verdict.status is Status.INCORRECT for each in cheats)
        yield f"| `{policy}` | {accepted} of {len(honest)} | {refused} of {len(cheats)} |"


def table(found: list[Found], kind: str) -> Iterator[str]:
    """The rows of one kind."""
    yield f"| policy | problem | {kind} | status | as it must be | what was seen |"
    yield "|---|---|---|---|---|---|"
    for each in found:
        if each.kernel["kind"] == kind:
            seen = " ".join(each.verdict.reasons)
            if each.protocol is Depth.FULL:
                seen = f"(by `full`) {seen}" if seen else each.kernel["why"]
            mark = "yes" if each.is_as_expected else "**no**"
            kernel = each.kernel
            yield (
                f"| `{kernel['policy']}` | `{kernel['problem']}` | {cell(kernel['name'])} | "
                f"{each.verdict.status} | {mark} | {cell(seen)} |"
            )


def page(found: list[Found], policies: list[str]) -> list[str]:
    """The page."""
    parts = ["python benchmarks/precisions.py", *policies] if policies else ["make precisions"]
    command = " ".join(parts)
    right = sum(each.is_as_expected for each in found)
    return [
        "# What a precision policy allows",
        "",
        f"Made by `{command}` on {datetime.date.today().isoformat()}: {len(found)} kernels "
        f"of `tests/precisions/table.toml`, {right} of which got the status of their row. Each was "
        "screened on its problem's tiny workload and the hidden shapes; a cheat that passed there "
        "had a whole evaluation (`full`) as well.",
        "",
        f"Machine: {machine()}.",
        "",
        *summary(found),
        "",
        "## Honest kernels",
        "",
        *table(found, "honest"),
        "",
        "## Cheats",
        "",
        *table(found, "cheat"),
    ]


def main() -> int:
    """Judges the kernels one after the other and writes the page where all were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policies", nargs="*", help=f"{', '.join(POLICIES)}; without: all")
    parser.add_argument("--out", type=Path, help="without: docs/results/precisions.md, of all")
    asked = parser.parse_args()
    kernels = tomllib.loads((HERE / "table.toml").read_text("utf-8"))["kernel"]
    wanted = [k for k in kernels if not asked.policies or k["policy"] in asked.policies]
    order = list(dict.fromkeys(kernel["file"] for kernel in kernels))
    found = sorted(judge_all(wanted), key=lambda each: order.index(each.kernel["file"]))
    lines = page(found, asked.policies)
    out = asked.out or (None if asked.policies else Path("docs/results/precisions.md"))
    if out:
        out.write_text("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))
    return 0 if all(each.is_as_expected for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
