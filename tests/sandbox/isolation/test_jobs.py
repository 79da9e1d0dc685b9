"""What every jail owes its caller: how a job ends, that its limits hold and nothing outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.errors import SandboxError
from kernelwright.sandbox.isolation import Confinement, End, Jail, Job, Limits, Outcome, tree
from kernelwright.sandbox.isolation.limits import find_exceeded
from kernelwright.sandbox.isolation.tree import TreeUsage
from kernelwright.tests.descriptors import held, left_open_since

Shell = Callable[..., Outcome]


def marked(marker: str) -> list[int]:
    """Living processes with the marker on their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(name))
    return found


def begun(marker: str, wanted: int = 1, within_s: float = 60.0) -> dict[int, int]:
    """Ticks of CPU time of the processes with the marker, once as many are there and have run.

    A job's process is there before the program is that it becomes, and on a machine with other
    work much earlier.
    """
    until = time.monotonic() + within_s
    while True:
        used = {pid: ticks for pid, ticks in used_by(marker).items() if ticks}
        if len(used) >= wanted:
            return used
        assert time.monotonic() < until, f"fewer than {wanted} of {marker} have run: {used}"
        time.sleep(0.01)


def start(jail: Jail, command: list[str], program: Path | None = None, **limits: float) -> Job:
    readable = (program,) if program else ()
    return jail.start(command, Confinement(readable=readable), Limits(**limits))  # type: ignore[arg-type]


def attacked(jail: Jail, attack: Path, deed: str, limits: Limits) -> Outcome:
    confinement = Confinement(readable=(attack,))
    return jail.start(
        [str(attack), deed, "xyzzy-" + attack.parent.name], confinement, limits
    ).wait()


def test_exit_codes_and_words_come_back(jail: Jail, shell: Shell) -> None:
    outcome = shell(jail, "echo out; echo err >&2; exit 7")
    assert (outcome.end, outcome.code) == (End.EXITED, 7)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")
    assert shell(jail, "exit 0").code == 0
    assert outcome.wall_s > 0


def test_a_signal_is_told_by_its_number(jail: Jail, shell: Shell) -> None:
    outcome = shell(jail, "kill -SEGV $$")
    assert (outcome.end, outcome.code) == (End.SIGNALLED, 11)


def test_the_wall_clock_ends_a_sleeper_and_its_daemon(jail: Jail, shell: Shell) -> None:
    script = "setsid sleep 4242.25 & sleep 4242.25"
    outcome = shell(jail, script, limits=Limits(wall_s=0.4))
    assert outcome.end is End.WALL
    assert "0.4 s" in outcome.detail
    assert marked("4242.25") == []


def test_waiting_has_its_own_deadline(jail: Jail) -> None:
    job = start(jail, ["sleep", "100"])
    outcome = job.wait(0.2)
    assert outcome.end is End.WALL
    assert "0.2 s" in outcome.detail


def test_cpu_time_of_the_tree_is_limited(jail: Jail, attack: Path) -> None:
    outcome = attacked(jail, attack, "spin", Limits(cpu_s=0.5, wall_s=60.0))
    assert outcome.end is End.CPU
    assert outcome.cpu_s >= 0.4


def test_a_memory_hog_ends_as_memory(jail: Jail, attack: Path) -> None:
    began = time.monotonic()
    outcome = attacked(jail, attack, "hog", Limits(memory_bytes=128 << 20, wall_s=60.0))
    assert outcome.end is End.MEMORY
    assert "128.0 MiB" in outcome.detail
    assert time.monotonic() - began < 30
    assert outcome.peak_bytes > 64 << 20


def test_a_flood_is_cut_and_ended(jail: Jail, attack: Path) -> None:
    outcome = attacked(jail, attack, "flood", Limits(output_bytes=10_000, wall_s=60.0))
    assert outcome.end is End.OUTPUT
    assert outcome.stdout == b"x" * 10_000
    assert "160000" in outcome.detail


def test_some_more_output_than_is_kept_is_counted(jail: Jail, shell: Shell) -> None:
    outcome = shell(
        jail, "head -c 5000 /dev/zero | tr '\\0' y", limits=Limits(output_bytes=1000, wall_s=60.0)
    )
    assert (outcome.end, outcome.stdout) == (End.EXITED, b"y" * 1000)
    assert "4000 bytes of stdout not kept" in outcome.detail


def test_a_fork_bomb_is_bounded_and_swept(jail: Jail, attack: Path) -> None:
    limits = Limits(processes=24, wall_s=1.0)
    job = jail.start([str(attack), "bomb", "plugh-7"], Confinement(readable=(attack,)), limits)
    most = 0
    while job.poll() is None:
        most = max(most, len(marked("plugh-7")))
        time.sleep(0.02)
    assert job.wait().end in (End.WALL, End.PROCESSES)
    assert 1 < most < 24 + 200
    assert marked("plugh-7") == []


def test_a_daemon_does_not_outlive_its_job(jail: Jail, attack: Path) -> None:
    outcome = attacked(jail, attack, "daemon", Limits(wall_s=60.0))
    assert (outcome.end, outcome.code) == (End.EXITED, 0)
    assert marked("xyzzy-" + attack.parent.name) == []


def test_kill_takes_the_tree_and_may_be_repeated(jail: Jail) -> None:
    job = start(jail, ["sh", "-c", "setsid sleep 5151.5 & sleep 5151.5"])
    assert job.poll() is None
    first = job.kill()
    assert first.end is End.KILLED
    assert job.kill() == first == job.wait() == job.poll()
    assert marked("5151.5") == []


def test_a_tree_stands_still_as_long_as_it_is_wanted_and_its_clock_does_too(jail: Jail) -> None:
    loop = "while :; do :; done"
    job = start(jail, ["/bin/sh", "-c", f"({loop}) & : 4242.75; {loop}"], wall_s=3.0, cpu_s=60.0)
    try:
        begun("4242.75", 2)
        job.stand()
        job.stand()
        standing = used_by("4242.75")
        assert len(standing) >= 2
        time.sleep(3.1)
        assert used_by("4242.75") == standing
        assert job.poll() is None, "what it was made to wait is not its own time"
        job.go_on()
        job.go_on()
        time.sleep(0.3)
        going = used_by("4242.75")
        assert sum(going.values()) > sum(standing.values())
        assert job.wait().end is End.WALL
        job.stand()
        job.go_on()
    finally:
        job.kill()
    assert marked("4242.75") == []


def test_what_somebody_else_had_stopped_stays_so(jail: Jail) -> None:
    job = start(jail, ["/bin/sh", "-c", ": 4242.95; while :; do :; done"])
    try:
        (loop,) = [pid for pid in begun("4242.95") if pid == job.pid]
        os.kill(loop, signal.SIGSTOP)
        until = time.monotonic() + 10
        while not tree.is_stopped(loop):
            assert time.monotonic() < until
            time.sleep(0.01)
        job.stand()
        job.go_on()
        before = used_by("4242.95")[loop]
        time.sleep(0.3)
        assert tree.is_stopped(loop)
        assert used_by("4242.95")[loop] == before
    finally:
        job.kill()


def test_what_stands_still_can_be_killed(jail: Jail) -> None:
    job = start(jail, ["/bin/sh", "-c", ": 4242.85; while :; do :; done"])
    job.stand()
    assert job.kill().end is End.KILLED
    assert marked("4242.85") == []


def used_by(marker: str) -> dict[int, int]:
    """Ticks of CPU time of each living process with the marker."""
    found = {}
    for pid in marked(marker):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        found[pid] = int(fields[11]) + int(fields[12])
    return found


def test_killing_what_has_ended_tells_how_it_ended(jail: Jail) -> None:
    job = start(jail, ["true"])
    assert job.wait().end is End.EXITED
    assert job.kill().end is End.EXITED


def test_pid_is_the_command_in_our_namespace(jail: Jail) -> None:
    job = start(jail, ["sleep", "6161.5"])
    try:
        deadline = time.monotonic() + 20
        line = b""
        while line != b"/usr/bin/sleep\x006161.5\x00" and time.monotonic() < deadline:
            time.sleep(0.01)
            line = Path(f"/proc/{job.pid}/cmdline").read_bytes()
        assert line == b"/usr/bin/sleep\x006161.5\x00"
        # The kernel's rule for the CPU clock of another process: ~pid << 3 | CPUCLOCK_SCHED.
        assert time.clock_gettime((~job.pid << 3) | 2) >= 0
    finally:
        job.kill()


def test_only_the_given_environment_is_seen(
    jail: Jail, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "planted")
    lines = shell(jail, "cat /proc/self/environ | tr '\\0' '\\n'; env", env={"GIVEN": "1"}).stdout
    names = {line.split(b"=")[0] for line in lines.splitlines() if b"=" in line}
    assert b"GIVEN" in names
    assert names <= {b"GIVEN", b"PWD", b"SHLVL", b"_", b"OLDPWD", b"TMPDIR"}


def test_descriptors_are_closed_but_the_passed_ones(jail: Jail, attack: Path, place: Path) -> None:
    with (place / "one").open("w") as kept, (place / "two").open("w") as other:
        os.set_inheritable(other.fileno(), True)
        confinement = Confinement(readable=(attack,), pass_fds=(kept.fileno(),))
        outcome = jail.start([str(attack), "fds"], confinement, Limits(wall_s=60.0)).wait()
        seen = {int(one) for one in outcome.stdout.split()}
        assert seen == {0, 1, 2, kept.fileno()}


def test_a_passed_descriptor_carries_words(jail: Jail, attack: Path) -> None:
    reading, writing = os.pipe()
    try:
        confinement = Confinement(readable=(attack,), pass_fds=(writing,))
        command = [str(attack), "say", str(writing)]
        assert jail.start(command, confinement, Limits(wall_s=60.0)).wait().code == 0
        os.set_blocking(reading, False)
        assert os.read(reading, 100) == b"hello"
    finally:
        os.close(reading)
        os.close(writing)


def test_a_job_is_pinned(jail: Jail, attack: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    confinement = Confinement(readable=(attack,), cpus=(cpu,))
    outcome = jail.start([str(attack), "cpus"], confinement, Limits(wall_s=60.0)).wait()
    assert outcome.stdout.split() == [str(cpu).encode()]


def test_big_files_are_refused(jail: Jail, shell: Shell, place: Path) -> None:
    work = place / "work"
    work.mkdir()
    shell(
        jail,
        f"head -c 3000000 /dev/zero > {work}/big",
        writable=(work,),
        limits=Limits(file_bytes=1 << 20, wall_s=60.0),
    )
    assert (work / "big").stat().st_size == 1 << 20


def test_no_new_process_where_forking_is_denied(jail: Jail, attack: Path) -> None:
    confinement = Confinement(readable=(attack,), may_fork=False)
    said = {
        deed: jail.start([str(attack), deed], confinement, Limits(wall_s=60.0)).wait().stdout
        for deed in ("fork", "vfork", "thread")
    }
    assert said == {
        "fork": b"fork Operation not permitted\n",
        "vfork": b"vfork Operation not permitted\n",
        "thread": b"thread done\n",
    }


def test_a_missing_program_is_the_harness_error(jail: Jail) -> None:
    with pytest.raises(SandboxError, match="no-such-program"):
        start(jail, ["/no-such-program"])
    with pytest.raises(SandboxError, match="needs a command"):
        start(jail, [])


def test_a_path_that_cannot_be_given_is_the_harness_error(confining: Jail, place: Path) -> None:
    for path, words in ((place / "missing", "missing"), (Path("/"), "everything")):
        with pytest.raises(SandboxError, match=words):
            confining.start(["true"], Confinement(readable=(path,)), Limits())


def test_a_program_out_of_sight_is_the_harness_error(confining: Jail, attack: Path) -> None:
    with pytest.raises(SandboxError):
        confining.start([str(attack), "fds"], Confinement(), Limits())


def test_jobs_run_side_by_side(jail: Jail) -> None:
    jobs = [start(jail, ["sh", "-c", f"echo {number}"]) for number in range(4)]
    assert [job.wait().stdout for job in jobs] == [b"0\n", b"1\n", b"2\n", b"3\n"]


def test_no_descriptor_or_group_is_left_behind(jail: Jail, shell: Shell) -> None:
    shell(jail, "true")
    before, others = held(), our_groups()
    for _ in range(3):
        shell(jail, "true")
    assert left_open_since(before) == set()
    assert our_groups() - others == set()


def our_groups() -> set[str]:
    """Of jobs that this process has started, for other tests too."""
    own = f"kernelwright-{os.getpid()}-"
    # A group of another worker's may go while it is listed, which os.walk passes over.
    found = ((folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    return {f"{folder}/{name}" for folder, name in found if name.startswith(own)}


HARNESS = """
import sys, time
from pathlib import Path
from kernelwright.sandbox.isolation import Confinement, Limits, choose
job = choose(sys.argv[1]).start(["sh", "-c", "setsid sleep 7373.5 & sleep 7373.5"],
                                Confinement(), Limits(wall_s=600.0, cpu_s=600.0))
print("started", flush=True)
time.sleep(600)
"""


def test_a_job_does_not_outlive_a_killed_harness(jail: Jail) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, jail.name],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    ) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"started\n"
        deadline = time.monotonic() + 30
        while len(marked("sleep\x007373.5")) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(marked("sleep\x007373.5")) >= 2
        harness.kill()
    while marked("7373.5") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert marked("7373.5") == []


INTERRUPTED = """
import signal, sys, time
from kernelwright.sandbox.isolation import Confinement, Limits, choose
job = choose(sys.argv[1]).start(["sleep", "8484.5"], Confinement(), Limits(wall_s=600.0))
hit = []
signal.signal(signal.SIGINT, lambda *_: hit.append(1))
print("started", flush=True)
while not hit:
    time.sleep(0.01)
time.sleep(0.5)
print(job.poll() is None, job.kill().end.name)
"""


def test_an_interrupt_of_the_terminal_is_left_to_the_harness(jail: Jail) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, jail.name],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"started\n"
        os.killpg(harness.pid, signal.SIGINT)
        assert harness.stdout.read() == b"True KILLED\n"


def test_a_job_survives_the_thread_that_started_it(jail: Jail) -> None:
    jobs: list[Job] = []
    thread = threading.Thread(target=lambda: jobs.append(start(jail, ["sleep", "0.3"])))
    thread.start()
    thread.join()
    outcome = jobs[0].wait()
    assert (outcome.end, outcome.code) == (End.EXITED, 0)


def test_the_tree_is_polled_where_there_is_no_control_group() -> None:
    used = TreeUsage(resident_bytes=3 << 20, cpu_s=0.0, tasks=1)
    found = find_exceeded(Limits(memory_bytes=2 << 20), used, None)
    assert found is not None
    assert found == (End.MEMORY, "3.0 MiB resident, the limit is 2.0 MiB")
    assert find_exceeded(Limits(), TreeUsage(0, 0.0, 70), None) == (
        End.PROCESSES,
        "70 tasks, the limit is 64",
    )
    assert find_exceeded(Limits(), TreeUsage(1, 1.0, 1), None) is None
