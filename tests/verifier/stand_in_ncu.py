"""A program that speaks as Nsight Compute does, over the host program that really runs.

It knows no hardware: what it counts stands in a table beside it, and what that lacks is 0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

_PROGRAM = """#!{python} -I
import csv, json, subprocess, sys
from pathlib import Path

words = sys.argv[1:]
if words == ["--version"]:
    print("Version 2025.3.1.0 (a stand-in)")
    sys.exit(0)
beside = Path({folder!r})
first = words.index("--profile-from-start") + 2
told = dict(zip(words[:first], words[1:first]))
with (beside / "asked.jsonl").open("a") as lines:
    lines.write(json.dumps(told["--metrics"].split(",")) + chr(10))
ran = subprocess.run(words[first:], capture_output=True, text=True)
if ran.returncode:
    print("==ERROR== the application returned an error code", ran.returncode, ran.stderr)
    sys.exit(ran.returncode)
table = json.loads((beside / "counts.json").read_text())
metrics = told["--metrics"].split(",")
kernel = told["--kernel-name"].removeprefix("regex:^(").removesuffix(")$")
with open(told["--log-file"], "w", newline="") as log:
    rows = csv.writer(log, quoting=csv.QUOTE_ALL)
    rows.writerow(["ID", "Kernel Name", "Block Size", "Grid Size", *metrics])
    rows.writerow(["", "", "", "", *["" for _ in metrics]])
    for number in range(int(told["--launch-count"])):
        counts = [str(table.get(name, 0)) for name in metrics]
        rows.writerow([str(number), kernel, "(256, 1, 1)", "(9, 1, 1)", *counts])
"""


class StandInNcu:
    """The program, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "ncu"
        self.path.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)))
        self.path.chmod(0o755)
        self.count()

    def count(self, **counts: float) -> None:
        """What it counts from now on; what is not named is 0."""
        (self.folder / "counts.json").write_text(json.dumps(counts))

    def refuse(self, words: str) -> None:
        """It ends with this error from now on."""
        text = self.path.read_text()
        ends = f"print({'==ERROR== ' + words!r}); sys.exit(1)\n"
        self.path.write_text(text.replace("ran = subprocess", f"{ends}ran = subprocess"))

    @property
    def asked(self) -> list[list[str]]:
        """The metrics of each of its runs."""
        lines = self.folder / "asked.jsonl"
        return (
            [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
        )
