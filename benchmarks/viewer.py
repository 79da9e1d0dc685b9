# SPDX-License-Identifier: Apache-2.0
"""How long pages, lists and `show` take on a large store, and what memory the viewer needs:
`make viewer-speed`; writes docs/results/viewer.md.

python benchmarks/viewer.py [--campaigns 200] [--candidates 100000] [--largest 20000]
                            [--small 1000] [--visits 12] [--folder DIR] [--out FILE]

The store is made by `viewer_store.py`, in `--folder` where it is kept for the next time, else in a
temporary one. The viewer is the real one, in a process of its own, asked
over HTTP by one reader; every page is visited on campaigns chosen at random, most of them for the
first time, and on the largest, which runs.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from machine import machine
from viewer_store import Maker, fill_store, go_on

from kernelwright.traces.store import Store

KERNELWRIGHT = [sys.executable, "-m", "kernelwright"]


class Visit(NamedTuple):
    """A page and how long it took, in milliseconds."""

    page: str
    ms: float
    bytes: int


class Viewer:
    """The viewer in a process of its own."""

    def __init__(self, home: Path) -> None:
        begun = time.perf_counter()
        command = [*KERNELWRIGHT, "view", "--port", "0", "--home", str(home)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        found = None
        while found is None:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stderr.readline())
        self.port = int(found[1])
        self.get("/static/view.css")
        self.start_s = time.perf_counter() - begun

    def get(self, path: str) -> bytes:
        """A page, whole."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{path} answered {answer.status}: {content[:300]!r}")
        return content

    def listen(self, path: str) -> Iterator[int]:
        """The `seq` of each news."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path)
        answer = connection.getresponse()
        while line := answer.readline():
            if line.startswith(b"data: "):
                yield int(json.loads(line[6:])["seq"])

    @property
    def most_mib(self) -> float:
        """The largest resident memory so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        assert found is not None
        return int(found[1]) / 1024

    def close(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(30)


@contextmanager
def viewing(home: Path) -> Iterator[Viewer]:
    """The viewer for so long."""
    viewer = Viewer(home)
    try:
        yield viewer
    finally:
        viewer.close()


def pages_of(campaign: str, candidates: int, rng: random.Random) -> dict[str, str]:
    """Every page of a campaign, with places and candidates at random."""
    number, other = rng.sample(range(1, candidates + 1), 2)
    rows = 1 + candidates // 200
    at = f"/c/{campaign}"
    return {
        "campaign": at,
        "campaign, by speed-up": f"{at}?sort=speedup&page={rng.randint(1, rows)}",
        "campaign, of one status": f"{at}?status=SCREENED&sort=family",
        "campaign, over tokens": f"{at}?over=tokens&calls={rng.randint(1, 7 * rows)}",
        "why": f"{at}/why",
        "tree": f"{at}/tree",
        "trace": f"{at}/trace?page={rng.randint(1, 1 + candidates // 20)}",
        "trace, at a place": f"{at}/trace?at={number}/0",
        "call": f"{at}/calls/{rng.randint(1, 7 * candidates)}",
        "candidate": f"{at}/{number}",
        "best candidate": f"{at}/@best",
        "compare": f"/compare?of={campaign}/{number}&of={campaign}/{other}",
        "API: campaign": f"/api{at}",
        "API: candidate": f"/api{at}/{number}",
    }


WHOLE = {
    "home": "/",
    "home, searched": "/?q=softmax+finished&sort=speedup",
    "problem": "/p/softmax",
}


def visit_all(viewer: Viewer, sizes: dict[str, int], largest: str, visits: int) -> list[Visit]:
    """Visits every page on campaigns at random, and on the largest."""
    rng = random.Random(1)
    names = [name for name in sizes if name != largest]
    found = []
    for _ in range(visits):
        for where, name in (("", rng.choice(names)), (" of the largest", largest)):
            pages = {f"{k}{where}": v for k, v in pages_of(name, sizes[name], rng).items()}
            for page, path in (pages | ({} if where else WHOLE)).items():
                found.append(visit(viewer, page, path))
    return found


def visit(viewer: Viewer, page: str, path: str) -> Visit:
    """One page."""
    begun = time.perf_counter()
    content = viewer.get(path)
    return Visit(page, 1e3 * (time.perf_counter() - begun), len(content))


def time_news(viewer: Viewer, home: Path, maker: Maker, count: int) -> list[float]:
    """Milliseconds from before an event is recorded until a page that listens has the page that
    shows it: the write, the news, and the page."""
    took = []
    campaign = maker.campaign
    with Store.open(home) as store, store.lease(campaign):
        heard = viewer.listen(f"/api/c/{campaign}/live")
        next(heard)
        # The first write reads what there is of the campaign.
        for event in list(maker.candidate()):
            last = store.append(campaign, event.payload).seq
        for _ in range(count):
            for event in list(maker.candidate()):
                begun = time.perf_counter()
                last = store.append(campaign, event.payload).seq
            while next(heard) < last:
                pass
            page = viewer.get(f"/c/{campaign}?sort=number&page=99999").decode()
            took.append(1e3 * (time.perf_counter() - begun))
            assert f'data-seq="{last}"' in page, "the page does not know of the event"
            assert f">#{len(maker.names)}</a>" in page, "the page does not show the candidate"
    return took


def time_command(*words: str) -> float:
    """Seconds of a command, its start included."""
    begun = time.perf_counter()
    subprocess.run([*KERNELWRIGHT, *words], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def percentile(values: list[float], share: float) -> float:
    """The value below which that share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def table_of(visits: list[Visit]) -> Iterator[str]:
    """A row of each page."""
    yield "| page | visits | median ms | p95 ms | most ms | KB |"
    yield "|---|---|---|---|---|---|"
    for page in dict.fromkeys(each.page for each in visits):
        took = [each.ms for each in visits if each.page == page]
        size = statistics.median(each.bytes for each in visits if each.page == page)
        yield (
            f"| {page} | {len(took)} | {statistics.median(took):.0f} | "
            f"{percentile(took, 0.95):.0f} | {max(took):.0f} | {size / 1000:.0f} |"
        )


def main() -> None:
    """Makes the store, visits every page, and writes the page of figures."""
    parser = argparse.ArgumentParser()
    for name, usual in (("campaigns", 200), ("candidates", 100_000), ("largest", 20_000)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--small", type=int, default=1000)
    parser.add_argument("--visits", type=int, default=12)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/viewer.md"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelwright-viewer-") as folder:
        lines = list(measure(asked.folder or Path(folder), asked))
    asked.out.write_text("\n".join(lines) + "\n")
    print(f"wrote {asked.out}")


def measure(folder: Path, asked: argparse.Namespace) -> Iterator[str]:
    """The lines of the page."""
    home, small = folder / "large", folder / "small"
    if not small.exists():
        fill_store(small, asked.small, 3 * asked.small, 3)
    if not home.exists():
        begun = time.perf_counter()
        fill_store(home, asked.campaigns, asked.candidates, asked.largest)
        print(f"made the large store in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    with Store.open(home, read_only=True) as store:
        sizes = {line.campaign: line.document["proposed"] for line in store.lines()}
        candidates, events = sum(sizes.values()), store.count()
        del sizes[store.campaigns()[-1]]  # the recorded one, which all others are made of
    maker = go_on(home, max(sizes, key=lambda name: sizes[name]))
    with viewing(home) as viewer:
        start_s, idle_mib = viewer.start_s, viewer.most_mib
        visits = visit_all(viewer, sizes, maker.campaign, asked.visits)
        news = time_news(viewer, home, maker, 20)
        most_mib = viewer.most_mib
    with viewing(small) as viewer:
        many = [visit(viewer, f"home of {asked.small:,} campaigns", "/") for _ in range(20)]
    largest, at = maker.campaign, ("--home", str(home))
    commands = {
        "list": time_command("list", *at),
        f"list, {asked.small:,} campaigns": time_command("list", "--home", str(small)),
        "show, the largest": time_command("show", largest, *at),
        "show --json, the largest": time_command("show", largest, "--json", *at),
        "show @best, the largest": time_command("show", f"{largest}@best", *at),
        "show --calls --json, the largest": time_command("show", largest, "--calls", "--json", *at),
    }
    whole = [each.ms for each in visits]
    size = (home / "kernelwright.sqlite").stat().st_size / 1e9
    yield "# The viewer on a large store"
    yield ""
    yield (
        f"Made by `make viewer-speed` on {datetime.date.today()}: {asked.campaigns} campaigns with "
        f"{candidates:,} candidates and {events:,} events ({size:.1f} GB), of which the largest "
        f"has {asked.largest:,} and runs; the events are those of the recorded campaign that comes "
        "with the package, with ids, numbers, moments and figures drawn anew. The viewer is asked "
        "over HTTP by one reader; most campaigns are visited for the first time."
    )
    yield ""
    yield f"Machine: {machine()}."
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| the viewer's start, until it answers | {start_s:.2f} s |"
    yield (
        f"| {len(whole)} pages: median, p95, most | {statistics.median(whole):.0f}, "
        f"{percentile(whole, 0.95):.0f}, {max(whole):.0f} ms |"
    )
    yield f"| its memory: at the start, at most | {idle_mib:.0f}, {most_mib:.0f} MiB |"
    yield (
        f"| an event of the running campaign of {asked.largest:,}, from before it is recorded "
        f"until a reader who listens has the page: median, most | {statistics.median(news):.0f}, "
        f"{max(news):.0f} ms |"
    )
    yield ""
    yield from table_of(visits + many)
    yield ""
    yield "| command | seconds |"
    yield "|---|---|"
    for name, seconds in commands.items():
        yield f"| {name} | {seconds:.2f} |"


if __name__ == "__main__":
    main()
