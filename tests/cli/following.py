"""Whoever follows a page of the documents: its lines are run and its files written, in their order,
in an empty folder of a user who has done nothing before."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from kernelwright.workbench.home import Home

from .conftest import environment

DOCS = Path(__file__).parents[2] / "docs"
SHELL = "bash"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_NAME = re.compile(r"`([\w.]+\.\w+)`[^`]*$")
_EXIT = re.compile(r"# exit status (\d+)(?:.*?; (\d+):)?")
_EXPORT = re.compile(r"export (\w+)=(\S+)")
_VIEWING = re.compile(r"viewing .* at (\S+)")


def read_section(page: Path, heading: str) -> str:
    """What stands below the heading, up to the next one of its kind."""
    text = page.read_text("utf-8")
    assert text.count(heading) == 1
    return text.partition(heading)[2].partition("\n## ")[0]


class Reader:
    """Who follows the page, with the command and Python on the path and nothing else."""

    def __init__(self, home: Path, cache: Path) -> None:
        self.folder = home / "work"
        self.folder.mkdir()
        bin_folder = home / "bin"
        bin_folder.mkdir()
        for name, words in (("kernelwright", "-m kernelwright "), ("python", "")):
            command = bin_folder / name
            command.write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
            command.chmod(0o755)
        self.env = environment(home, cache)
        self.env["PATH"] = f"{bin_folder}:{self.env['PATH']}"
        self.home = Home(Path(self.env["KERNELWRIGHT_HOME"]))
        self.elsewhere: Mapping[str, str] = {}
        """Variables that have another value here than on the page."""

    def follow(self, text: str) -> list[str]:
        """Writes each file and runs each line, in their order; the lines."""
        lines: list[str] = []
        for block in _BLOCK.finditer(text):
            kind, content = block.groups()
            if kind != SHELL:
                name = _NAME.search(text[: block.start()].rstrip())
                assert name, f"no name before: {content}"
                (self.folder / name[1]).write_text(content, "utf-8")
                continue
            for line in content.splitlines():
                self.run(line)
                lines.append(line)
        return lines

    def run(self, line: str) -> None:
        """One line as it stands; it ends with a status that it names, else with 0."""
        if exported := _EXPORT.match(line):
            name, value = exported.groups()
            self.env[name] = self.elsewhere.get(name, value)
            return
        if line.startswith("kernelwright view"):
            self.look(line.partition("#")[0])
            return
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        named = _EXIT.search(line)
        statuses = {int(each) for each in named.groups() if each} if named else {0}
        assert done.returncode in statuses, (line, done.stderr[-3000:], done.stdout[-3000:])

    def look(self, line: str) -> None:
        """Opens the viewer on a free port, reads its first page, and ends it with Ctrl-C."""
        words = ["/bin/sh", "-c", f"exec {line} --port 0"]
        with subprocess.Popen(
            words, cwd=self.folder, env=self.env, stderr=subprocess.PIPE, text=True
        ) as serving:
            assert serving.stderr is not None
            told = _VIEWING.search(serving.stderr.readline())
            assert told
            with urllib.request.urlopen(told[1], timeout=60) as page:
                assert page.status == 200
            serving.send_signal(signal.SIGINT)
            assert serving.wait(60) == 0
