"""What a confining jail refuses, each deed seen from outside, and what it must still allow."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.sandbox.interpreter import FLAGS, homes, interpreter
from kernelwright.sandbox.isolation import Confinement, End, Jail, Limits, Outcome

Shell = Callable[..., Outcome]


def test_a_secret_cannot_be_read(confining: Jail, shell: Shell, place: Path) -> None:
    secret = place / "secret"
    secret.write_text("planted")
    secret.chmod(0o644)
    given = place / "given"
    given.write_text("for you")
    given.chmod(0o644)
    outcome = shell(confining, f"cat {given}; cat {secret}", readable=(given,))
    assert outcome.stdout == b"for you"
    assert outcome.code != 0


def test_the_users_files_are_out_of_sight(confining: Jail, shell: Shell) -> None:
    home = Path.home()
    outcome = shell(confining, f"ls {home}; cat /etc/passwd /proc/{os.getpid()}/environ")
    assert outcome.stdout == b""


def facts(file: Path) -> tuple[int, int, int]:
    found = file.stat()
    return found.st_mode, found.st_size, found.st_ctime_ns


def test_the_users_files_keep_their_modes_and_times(
    confining: Jail, attack: Path, place: Path
) -> None:
    victim = place / "victim"
    victim.write_text("whole")
    victim.chmod(0o666)
    was = facts(victim)
    confinement = Confinement(readable=(attack, victim), may_mark=False)
    command = [str(attack), "mark", str(victim)]
    outcome = confining.start(command, confinement, Limits(wall_s=60.0)).wait()
    said = dict(line.split(" ", 1) for line in outcome.stdout.decode().splitlines())
    assert said.pop("readable") == "done"
    assert len(said) == 7
    assert set(said.values()) == {"Operation not permitted"}
    assert facts(victim) == was


def test_only_given_devices_can_be_opened(confining: Jail) -> None:
    nodes = [Path("/dev/fuse"), Path("/dev/net/tun"), Path("/dev/kvm")]
    known = [node for node in nodes if node.exists() and node.stat().st_mode & 0o006 == 0o006]
    if not known:
        pytest.skip("this machine has no device that anybody may open")
    given, *others = known
    for devices, node, is_open in (
        ((given,), given, True),
        ((), given, False),
        *(((given,), other, False) for other in others[:1]),
    ):
        command = ["sh", "-c", f"exec 3<>{node} && echo open"]
        outcome = confining.start(command, Confinement(devices=devices), Limits()).wait()
        assert (outcome.stdout == b"open\n") is is_open, outcome.stderr


def test_nobody_can_be_made_to_wait_for_a_lease(confining: Jail, attack: Path, place: Path) -> None:
    """A compiler's jail refuses it, too."""
    library = place / "library"
    library.write_text("whole")
    library.chmod(0o644)
    confinement = Confinement(readable=(attack, library))
    command = [str(attack), "lease", str(library)]
    outcome = confining.start(command, confinement, Limits(wall_s=60.0)).wait()
    said = dict(line.split(" ", 1) for line in outcome.stdout.decode().splitlines())
    assert said == dict.fromkeys(("lease", "notify"), "Operation not permitted")


def test_only_writable_folders_can_be_written(confining: Jail, shell: Shell, place: Path) -> None:
    work, other = place / "work", place / "other"
    for folder in (work, other):
        folder.mkdir()
        folder.chmod(0o777)
    victim = place / "victim"
    victim.write_text("whole")
    victim.chmod(0o666)
    script = f"echo 1 > {work}/mine; echo 2 > {other}/theirs; echo 3 > {victim}"
    shell(confining, script, writable=(work,), readable=(victim,))
    assert (work / "mine").read_text() == "1\n"
    assert list(other.iterdir()) == []
    assert victim.read_text() == "whole"


def test_a_folder_only_its_owner_may_pass_can_be_given(
    confining: Jail, shell: Shell, place: Path
) -> None:
    closed = place / "closed"
    work = closed / "work"
    work.mkdir(parents=True)
    closed.chmod(0o700)
    (closed / "input").write_text("deep")
    (closed / "neighbour").write_text("not yours")
    script = f"cat {closed}/input > {work}/copy; cat {closed}/neighbour > {work}/stolen"
    shell(confining, script, readable=(closed / "input",), writable=(work,))
    assert (work / "copy").read_text() == "deep"
    assert (work / "stolen").read_text() == ""


def test_a_writable_folder_inside_a_readable_one(
    confining: Jail, shell: Shell, place: Path
) -> None:
    tree = place / "tree"
    work = tree / "work"
    work.mkdir(parents=True)
    shell(
        confining,
        f"echo 1 > {work}/mine; echo 2 > {tree}/theirs",
        readable=(tree,),
        writable=(work,),
    )
    assert (work / "mine").read_text() == "1\n"
    assert not (tree / "theirs").exists()


def test_the_settings_of_the_machine_cannot_be_written(confining: Jail, shell: Shell) -> None:
    files = ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/drop_caches")
    # Opened for writing and closed again, which changes nothing.
    script = "".join(f"( : >> /proc/sys/{file} ) && echo {file}\n" for file in files)
    assert shell(confining, script + "( : >> /proc/sysrq-trigger ) && echo sysrq").stdout == b""


AS_DRIVERS_DO = """
import os, socket, threading
def tried(what, deed):
    try:
        deed()
    except OSError as error:
        print(what, error.strerror)
    else:
        print(what, "done")
def name():
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write("cuda-worker")
def meet():
    place = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.bind(f"\\0kernelwright-test-{os.getpid()}")
    place.listen()
thread = threading.Thread(target=tried, args=("name", name))
thread.start()
thread.join()
tried("meet", meet)
tried("memory", lambda: os.memfd_create("driver"))
tried("maps", lambda: open("/proc/self/maps").close())
tried("internet", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
tried("setting", lambda: open("/proc/sys/kernel/core_pattern", "a").close())
tried("trigger", lambda: open("/proc/sysrq-trigger", "a").close())
tried("parent", lambda: open(f"/proc/{os.getppid()}/comm", "a").close())
"""


def test_what_a_driver_insists_on_is_there_with_a_device_only(confining: Jail) -> None:
    def said(*devices: Path) -> dict[str, str]:
        confinement = Confinement(readable=homes(), devices=devices)
        command = [str(interpreter()), *FLAGS, "-c", AS_DRIVERS_DO]
        outcome = confining.start(command, confinement, Limits(wall_s=60.0)).wait()
        lines = outcome.stdout.decode().splitlines()
        return dict(tuple(line.split(" ", 1)) for line in lines)  # type: ignore[misc]

    plain, with_device = said(), said(Path("/dev/null"))
    assert {plain["name"], plain["meet"]}.isdisjoint({"done"})
    for what in ("name", "meet", "memory", "maps"):
        assert with_device[what] == "done", with_device
    for what in ("internet", "setting", "trigger", "parent"):
        assert with_device[what] != "done", with_device


def test_the_kernels_settings_stay_covered_beside_a_device(confining: Jail) -> None:
    """For a harness that is root all of /proc that is not a process belongs to the job's uid."""
    script = "find /proc -maxdepth 3 -type f -writable -not -path '/proc/[0-9]*' 2>/dev/null"
    confinement = Confinement(devices=(Path("/dev/null"),))
    found = confining.start(["sh", "-c", script], confinement, Limits(wall_s=60.0)).wait()
    opened = f"for f in $({script}); do ( : >> $f ) 2>/dev/null && echo $f; done; true"
    outcome = confining.start(["sh", "-c", opened], confinement, Limits(wall_s=60.0)).wait()
    assert outcome.stdout == b"", found.stdout


def test_the_first_process_of_a_jail_cannot_be_reached(confining: Jail, shell: Shell) -> None:
    script = "( : >> /proc/1/mem ) && echo opened; cat /proc/1/maps /proc/1/environ /proc/1/cmdline"
    assert shell(confining, script).stdout == b""


def test_no_folder_of_the_system_can_be_written(confining: Jail, shell: Shell) -> None:
    folders = ("", "/dev", "/etc", "/home", "/proc", "/run", "/sys", "/usr", "/var")
    script = "".join(f"( : > {folder}/kw-written ) && echo {folder}/\n" for folder in folders)
    assert shell(confining, script + "echo done").stdout == b"done\n"


def test_the_network_is_closed(confining: Jail, shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        outcome = shell(confining, f"bash -c 'echo hello > /dev/tcp/127.0.0.1/{port}'")
        assert outcome.code != 0
        listener.setblocking(False)
        try:
            listener.accept()
        except BlockingIOError:
            return
        raise AssertionError("the job reached a listener")


def test_wide_system_calls_are_refused(confining: Jail, attack: Path) -> None:
    confinement = Confinement(readable=(attack,))
    outcome = confining.start([str(attack), "calls"], confinement, Limits(wall_s=60.0)).wait()
    said = dict(line.split(" ", 1) for line in outcome.stdout.decode().splitlines())
    assert said.pop("socketpair") == "done"
    assert len(said) == 19
    assert set(said.values()) == {"Operation not permitted"}


def test_only_a_few_signals_can_be_queued(confining: Jail, shell: Shell) -> None:
    assert shell(confining, "bash -c 'ulimit -i'").stdout == b"64\n"


def test_a_compiler_works_inside(confining: Jail, place: Path) -> None:
    work = place / "work"
    work.mkdir()
    source = work / "one.cpp"
    source.write_text("#include <vector>\nint main() { return std::vector<int>{1, 2}.size(); }\n")
    confinement = Confinement(
        writable=(work,), env={"PATH": "/usr/bin:/bin", "TMPDIR": str(work)}, cwd=work
    )
    command = ["g++", "-O1", "-o", str(work / "one"), str(source)]
    built = confining.start(command, confinement, Limits(wall_s=100.0)).wait()
    assert (built.end, built.code) == (End.EXITED, 0), built.stderr
    ran = confining.start([str(work / "one")], confinement, Limits(wall_s=60.0)).wait()
    assert (ran.end, ran.code) == (End.EXITED, 2)
