# SPDX-License-Identifier: Apache-2.0
"""The supervisor of one job, a program of its own: `python -I -S supervised.py CONTROL_FD`.

It is started fresh and small, so that forking costs little and holds no secret. It becomes a
subreaper, so that daemons of the job come back to it; it starts the command behind whatever its
order asks for (rlimits, CPUs, another uid, Landlock, a system-call filter); it kills the whole tree
when the command ends, when it is told to, or when the harness is gone, and then removes the job's
folder for temporary files.

It speaks marshal over the control socket with `supervisor.py`, which is the same interpreter. It
imports nothing of the package and no slow module (so the control socket is read and written as a
file), and it never reads anything from the job.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import sys
import time
from typing import Any

SIGKILL = 9

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 8, 38, 22
PR_SET_CHILD_SUBREAPER, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 36, 24, 47, 2
CAP_DAC_READ_SEARCH = 2
LAST_CAPABILITY = 40

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

LONGEST_ORDER = 1 << 20

LIBC = ctypes.CDLL(None, use_errno=True)


class RulesetAttr(ctypes.Structure):
    """struct landlock_ruleset_attr; its size tells the kernel which fields are meant."""

    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class PathBeneathAttr(ctypes.Structure):
    """struct landlock_path_beneath_attr."""

    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class SockFprog(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def check_result(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def prctl(option: int, *values: int) -> int:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return check_result(LIBC.prctl(option, *padded), f"prctl {option}")


def landlock_rights(abi: int) -> int:
    """Every file-system right that this version of Landlock can hold."""
    rights = (1 << 13) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        rights |= right if abi >= since else 0
    return rights


def landlock_ruleset(order: dict[str, Any]) -> int:
    """A ruleset that allows the order's paths and nothing else; needs the paths to be openable."""
    abi = order["landlock"]
    everything = landlock_rights(abi)
    attr = RulesetAttr(everything, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = check_result(
        LIBC.syscall(CREATE_RULESET, ctypes.byref(attr), ctypes.c_size_t(size), 0), "landlock"
    )
    of_files = (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV) & everything
    reading = EXECUTE | READ_FILE | READ_DIR
    writing = everything & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
    wanted = [(path, reading) for path in order["readable"]]
    wanted += [(path, writing) for path in order["writable"]]
    wanted += [(path, (reading | WRITE_FILE | IOCTL_DEV) & everything) for path in order["devices"]]
    wanted += [(path, (reading | WRITE_FILE | TRUNCATE) & everything) for path in order["named"]]
    for path, rights in wanted:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):
            rights &= of_files
        rule = PathBeneathAttr(rights, opened)
        check_result(LIBC.syscall(ADD_RULE, ruleset, 1, ctypes.byref(rule), 0), f"landlock {path}")
        os.close(opened)
    return ruleset


def change_uid(uid: int, *, may_search: bool) -> None:
    """Becomes `uid` for good, with no capability but, where asked, reading past file modes.

    Landlock bounds what that capability reaches: it opens the way to allowed paths that lie below a
    closed folder such as root's home.
    """
    for capability in range(LAST_CAPABILITY + 1):
        if not (may_search and capability == CAP_DAC_READ_SEARCH):
            LIBC.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    prctl(PR_SET_KEEPCAPS, 1 if may_search else 0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if may_search:
        bit = 1 << CAP_DAC_READ_SEARCH
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
        check_result(LIBC.capset(header, sets), "capset")
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)


def close_others(keep: set[int]) -> None:
    low = 3
    for descriptor in sorted(keep):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def become_the_job(order: dict[str, Any], supervisor: int, report: int) -> None:
    """In the child: takes every privilege away and executes the command. Returns never."""
    os.setsid()
    for door in order["cgroup"]:
        with open(door, "w") as file:
            file.write("0")
    if order["cpus"]:
        os.sched_setaffinity(0, order["cpus"])
    ruleset = landlock_ruleset(order) if order["landlock"] else -1
    if order["uid"] >= 0:
        change_uid(order["uid"], may_search=order["search"])
    prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != supervisor:
        os._exit(127)
    os.chdir(order["cwd"])
    os.umask(0o022)
    close_others({report, ruleset, *order["fds"]} - {-1})
    for descriptor in order["fds"]:
        os.set_inheritable(descriptor, True)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if ruleset >= 0:
        check_result(LIBC.syscall(RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
        os.close(ruleset)
    for which, soft, hard in order["rlimits"]:
        resource.setrlimit(which, (soft, hard))
    rules = order["seccomp"]
    if rules:
        program = SockFprog(len(rules) // 8, rules)
        prctl(PR_SET_SECCOMP, 2, ctypes.addressof(program))
    os.execve(order["command"][0], order["command"], order["env"])


def start(order: dict[str, Any]) -> tuple[int, str]:
    """The child's pid, and what went wrong before the command ran (empty: nothing)."""
    reading, writing = os.pipe()
    supervisor = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            become_the_job(order, supervisor, writing)
        except BaseException as error:
            # After a fork: nothing may leave the child but by its pipe and its status.
            os.write(writing, f"{type(error).__name__}: {error}".encode()[:2000])
        finally:
            os._exit(127)
    os.close(writing)
    words = b""
    while chunk := os.read(reading, 4096):
        words += chunk
    os.close(reading)
    return child, words.decode(errors="replace")


def list_descendants(pid: int) -> list[int]:
    """Every living descendant, from one pass over /proc."""
    kin: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b") ")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        kin.setdefault(parent, []).append(int(name))
    found, pending = [], list(kin.get(pid, ()))
    while pending:
        current = pending.pop()
        found.append(current)
        pending.extend(kin.get(current, ()))
    return found


def reap() -> dict[int, int]:
    """Statuses of everything that has ended, without waiting."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def sweep() -> dict[int, int]:
    """Kills the tree until nothing is left of it; what forks meanwhile is met by the next pass."""
    ended: dict[int, int] = {}
    while True:
        alive = list_descendants(os.getpid())
        for pid in alive:
            try:
                os.kill(pid, SIGKILL)
            except OSError:
                continue
        ended.update(reap())
        if not alive:
            return ended
        time.sleep(0.001)


def supervise(control: int, child: int) -> int:
    """Waits for the command's end, an order to stop or the harness's end; gives its status."""
    watched = select.poll()
    watched.register(control, select.POLLIN)
    try:
        watched.register(os.pidfd_open(child), select.POLLIN)
        pause_ms = 500
    except OSError:
        pause_ms = 20
    while True:
        events = watched.poll(pause_ms)
        ended = reap()
        if child in ended:
            sweep()
            return ended[child]
        if any(descriptor == control for descriptor, _ in events):
            return sweep().get(child, SIGKILL)


def remove(folder: str) -> None:
    """The folder and what is in it, however deep; nothing of the job is alive."""
    try:
        os.rmdir(folder)
    except OSError:
        removing = os.posix_spawn("/bin/rm", ["rm", "-rf", "--one-file-system", "--", folder], {})
        os.waitpid(removing, 0)


def main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    order = marshal.loads(os.read(control, LONGEST_ORDER))
    child, words = start(order)
    if words:
        os.waitpid(child, 0)
        os.write(control, marshal.dumps({"error": words}))
        return
    os.write(control, marshal.dumps({"pid": child}))
    status = supervise(control, child)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if order["temporary"]:
        remove(order["temporary"])
    ending = {"status": status, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss * 1024}
    try:
        os.write(control, marshal.dumps(ending))
    except OSError:
        return


if __name__ == "__main__":
    main()
