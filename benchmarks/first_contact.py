"""What to run first on a machine with an NVIDIA GPU: seven parts, each at most ten minutes.

python benchmarks/first_contact.py [--part NAME …] [--minutes-per-part 10] [--out FOLDER]
                                   [--results FOLDER] [--again] [--quick] [--stand-in]
python benchmarks/first_contact.py --from BUNDLE [--results FOLDER]

A part keeps what it finds as it finds it; one that takes too long is ended, and the next goes on.
The same command goes on with what was cut off; what came to its end stands, unless --again. Pages
are written into the folder and, on a device, to docs/results; --from writes them anew from a
bundle's records. With --stand-in all of it is rehearsed on the tests' fake driver. Status: 0 where
all parts were well, 1 where one was not, 3 where there is no device or what every part needs is
missing.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from contact import parts, processes, wheels
from contact.records import Records, Scene, unpack
from contact.work import CAUSE, ON_DEVICE, ON_STAND_IN, lessen

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
PREREQUISITE, USAGE = 3, 2


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", action="append", choices=parts.PARTS, default=[])
    parser.add_argument("--minutes-per-part", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("first-contact"))
    parser.add_argument("--results", type=Path, help="where pages go besides")
    parser.add_argument("--again", action="store_true", help="begin parts that ended anew")
    parser.add_argument("--quick", action="store_true", help="one of each")
    parser.add_argument("--stand-in", action="store_true", help="rehearse on the fake driver")
    parser.add_argument("--from", dest="bundle", type=Path, help="write a bundle's pages anew")
    parser.add_argument("--collect", choices=parts.PARTS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Looks for what is needed, and runs the parts."""
    asked = arguments()
    out = asked.out.resolve()
    with ExitStack() as stack:
        passing = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        passing.chmod(0o755)
        wheels.place_package(passing / "package")
        if asked.collect:
            return parts.collect(asked.collect, Records(out), asked.minutes_per_part)
        if asked.bundle:
            return rewrite(asked.bundle, asked.results or out, passing)
        chosen = tuple(part for part in parts.PARTS if not asked.part or part in asked.part)
        for line in wheels.describe_missing(chosen):
            print(line, file=sys.stderr)
        if all(wheels.list_missing(part) for part in chosen):
            print("nothing was tried: no part can do without what is missing", file=sys.stderr)
            return PREREQUISITE
        if asked.stand_in:
            take_stand_in(passing / "stand-in")
        return contact(asked, chosen, Records(out))


def contact(asked: argparse.Namespace, chosen: tuple[str, ...], records: Records) -> int:
    """The parts one after the other; the status."""
    from kernelwright.errors import PrerequisiteError

    try:
        scene = look(asked)
    except PrerequisiteError as error:
        print(f"nothing was tried: {error}", file=sys.stderr)
        return PREREQUISITE
    if scene.is_stand_in and asked.results and asked.results.resolve() == RESULTS:
        print("a stand-in's pages do not belong in docs/results", file=sys.stderr)
        return USAGE
    before = records.asked()
    if before and before[0][:3] != scene[:3]:
        told = f"{asked.out} holds records of {before[0].device}, driver {before[0].driver}"
        print(f"{told}: name another folder by --out", file=sys.stderr)
        return USAGE
    sizes = ON_STAND_IN if scene.is_stand_in else ON_DEVICE
    records.ask(scene, (lessen(sizes) if asked.quick else sizes).document())
    if asked.again:
        for part in chosen:
            parts.forget(records, part)
    print(f"first contact with {scene.device} ({scene.target}), driver {scene.driver}", flush=True)
    is_well = True
    for part in chosen:
        is_well &= run(part, records, asked.minutes_per_part, results_of(scene, asked))
    print(f"records: {tell_path(records.pack())}; pages anew: {Path(__file__).name} --from BUNDLE")
    if scene.is_stand_in:
        print("rehearsed on a stand-in: no figure is a GPU's, and no page went to docs/results")
    else:
        print(f"pages: {tell_path(results_of(scene, asked) or RESULTS)}/gpu-*.md, to be committed")
    return 0 if is_well else 1


def run(part: str, records: Records, minutes: float, results: Path | None) -> bool:
    """One part, unless it has ended before; whether it was well. Says how it ended."""
    from contact import pages

    if before := parts.tell_end(records, part):
        print(f"  {part:10} has ended before: {before} (--again runs it anew)", flush=True)
        return before == parts.WELL
    running: list[subprocess.Popen[bytes]] = []

    def hear(process: subprocess.Popen[bytes] | None) -> None:
        running[:] = [process] if process else []

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        for process in running:
            processes.end(process)
        pages.write_all(records, [records.folder])
        records.pack()
        print(f"  {part:10} was ended from outside; the same command goes on", flush=True)
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    end = parts.run(part, records, minutes, hear)
    print(f"  {part:10} {end['how']:20} {end['seconds']:6.0f} s", flush=True)
    if cause := end.get(CAUSE):
        print(f"  {'':10} {cause['name']}: {cause['cause']}; {cause['remedy']}")
        for line in cause["last"]:
            print(f"  {'':12} {line[:160]}")
    written = pages.write_all(records, [records.folder, *([results] if results else [])])
    for place in written:
        if place.stem == f"gpu-{part}":
            print(f"  {'':10} {tell_path(place)}", flush=True)
    records.pack()
    return end["how"] in (parts.WELL, parts.OUT_OF_TIME) and CAUSE not in end


def look(asked: argparse.Namespace) -> Scene:
    """The first device. Raises PrerequisiteError where there is none."""
    from contact import causes, doubts

    from kernelwright.errors import PrerequisiteError
    from kernelwright.sandbox.run.device import nvml

    with nvml.open_nvml() as module:
        found = nvml.devices(module)
        if not found:
            raise PrerequisiteError("the driver shows no device")
        for words in doubts.list_doubts(module, found[0]):
            cause = causes.explain(words)
            print(f"doubtful: {words}; {cause.remedy}", file=sys.stderr)
    command = ["python", "benchmarks/first_contact.py"]
    command += ["--stand-in"] * asked.stand_in + ["--quick"] * asked.quick
    device = found[0]
    return Scene(
        device.name,
        device.driver,
        device.architecture,
        datetime.date.today().isoformat(),
        shlex.join(command),
        "stand-in" in device.name,
    )


def results_of(scene: Scene, asked: argparse.Namespace) -> Path | None:
    """Where pages go beside the folder: a stand-in's only where that is asked for."""
    chosen: Path | None = asked.results
    return chosen or (None if scene.is_stand_in else RESULTS)


def rewrite(bundle: Path, out: Path, passing: Path) -> int:
    """The pages of a bundle, from its records alone."""
    from contact import pages

    records = unpack(bundle, passing / "bundle")
    asked = records.asked()
    if asked is None:
        print(f"{bundle} holds no first contact", file=sys.stderr)
        return USAGE
    if asked[0].is_stand_in and out.resolve() == RESULTS:
        print("a stand-in's pages do not belong in docs/results", file=sys.stderr)
        return USAGE
    for place in pages.write_all(records, [out]):
        print(tell_path(place))
    return 0


def take_stand_in(folder: Path) -> None:
    """This process and those it starts see the tests' stand-in for a GPU."""
    from kernelwright.tests.sandbox.run.device.stand_in_machine import make_stand_in, take_here

    folder.mkdir()
    take_here(make_stand_in(folder))


def tell_path(place: Path) -> str:
    """A path as one would type it."""
    return os.path.relpath(place)


if __name__ == "__main__":
    sys.exit(main())
