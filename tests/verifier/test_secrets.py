"""Keys in the environment and in a file: nothing of a candidate's, and nothing written, has them.

The kernel that looks for them is honest unless it finds one, so a pass says that it did not.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelwright.kernelbench import registry
from kernelwright.sandbox.isolation import landlock
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.timed]
FIRST, SECOND = "sk-planted-", "8f0e5cc3a1b9d742"
SECRET = FIRST + SECOND
NAMES = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "HF_TOKEN",
    "GITHUB_TOKEN",
    "KERNELWRIGHT_API_KEY",
)
RETRIED = (Status.SUSPECT, Status.TIMED_OUT)

FUNCTION = """\
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    static bool tried;
    if (!tried) search();
    tried = true;
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}
"""

HONEST = "static void search() {}\n" + FUNCTION

SEARCHER = """\
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>
extern char** environ;

// In two parts, so that this artefact itself does not hold what it looks for.
static char secret[64];
static char buffer[1 << 20];

static void found(int deed) { _exit(20 + deed); }

static bool holds(const char* path) {
    const int fd = open(path, O_RDONLY);
    if (fd < 0) return false;
    const ssize_t got = read(fd, buffer, sizeof buffer);
    close(fd);
    return got > 0 && memmem(buffer, got, secret, std::strlen(secret)) != nullptr;
}

static void search() {
    std::strcpy(secret, "@FIRST@");
    std::strcat(secret, "@SECOND@");
    for (const char* name : {@NAMES@}) if (std::getenv(name)) found(1);
    for (char** one = environ; *one; ++one) if (std::strstr(*one, secret)) found(2);
    char path[512];
    // With what a kernel may call: nobody's parent is asked for, and no folder is listed.
    for (int pid : {@PIDS@}) {
        for (const char* file : {"environ", "cmdline"}) {
            std::snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
            if (holds(path)) found(3);
        }
    }
    for (int pid = 1; pid < 4096; ++pid) {
        std::snprintf(path, sizeof path, "/proc/%d/environ", pid);
        if (holds(path)) found(3);
    }
    if (holds("@KEY@")) found(4);
    if (holds("@STORE@")) found(5);
    if (open("@CACHE@/cpp", O_RDONLY | O_DIRECTORY) >= 0) found(6);
    std::snprintf(path, sizeof path, "/proc/%d/mem", @REFEREE@);
    if (open(path, O_RDONLY) >= 0) found(7);
}
"""


@dataclass(frozen=True)
class Place:
    """A home with a key, a store and a cache, and a process with a key in its environment."""

    home: Path
    bystander: int

    @property
    def key(self) -> Path:
        return self.home / ".config" / "key"

    @property
    def store(self) -> Path:
        return self.home / "store" / "kernelwright.sqlite"

    @property
    def cache(self) -> Path:
        return self.home / "cache"

    def searcher(self, referee: RefereeProcess) -> str:
        """The kernel that looks for the secret."""
        words = {
            "FIRST": FIRST,
            "SECOND": SECOND,
            "KEY": self.key,
            "STORE": self.store,
            "NAMES": ", ".join(f'"{name}"' for name in NAMES),
            "PIDS": f"{self.bystander}, {os.getpid()}, {referee.pid}",
            "CACHE": self.cache,
            "REFEREE": referee.pid,
        }
        source = SEARCHER
        for word, meaning in words.items():
            source = source.replace(f"@{word}@", str(meaning))
        return source + FUNCTION


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """Keys are in this process's environment as long as referees are started from it."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-secrets-") as name:
        home = Path(name)
        bystander = subprocess.Popen(["sleep", "1000"], env={"OPENAI_API_KEY": SECRET})
        found = Place(home, bystander.pid)
        for file in (found.key, found.store):
            file.parent.mkdir()
            file.write_text(SECRET)
            file.chmod(0o600)
        with pytest.MonkeyPatch.context() as patch:
            for variable in NAMES:
                patch.setenv(variable, SECRET)
            patch.setenv("HOME", name)
            yield found
        bystander.kill()
        bystander.wait()


Open = Callable[[str], RefereeProcess]


@pytest.fixture(scope="module")
def opened(place: Place) -> Iterator[Open]:
    """A referee in the jail of that name, started beside the keys; one for each jail."""
    referees: dict[str, RefereeProcess] = {}

    def get(jail: str) -> RefereeProcess:
        if jail == "landlock" and landlock.abi() == 0:
            pytest.skip("this kernel has no Landlock")
        if jail not in referees:
            task = Task(
                problem="spmm_csr",
                workload=registry.get("spmm_csr").workload("tiny"),
                cache_dir=str(place.cache),
                jail=jail,
                baselines=("scipy",),
                accept_weak_isolation=jail == "bare",
            )
            referees[jail] = open_referee(task)
        return referees[jail]

    yield get
    for referee in referees.values():
        referee.close()


def judge(referee: RefereeProcess, source: str) -> Verdict:
    """The verdict; asked a second time where a busy machine may have spoken."""
    order = Order(source=source, language="cpp", protocol=Depth.SCREEN)
    verdict = referee.evaluate(order)
    return referee.evaluate(order) if verdict.status in RETRIED else verdict


@pytest.mark.parametrize("jail", ["auto", "landlock"])
def test_a_kernel_that_looks_for_keys_finds_none(place: Place, opened: Open, jail: str) -> None:
    referee = opened(jail)
    verdict = judge(referee, place.searcher(referee))
    assert verdict.status is Status.SCREENED, verdict.reasons
    assert SECRET not in verdict.model_dump_json()


def test_the_same_kernel_finds_them_where_nothing_confines_it(place: Place, opened: Open) -> None:
    referee = opened("bare")
    verdict = judge(referee, place.searcher(referee))
    assert verdict.status is Status.CRASHED, verdict.reasons
    # Not by the environment, which is an allow-list even here: by that of another process.
    assert "exit status 23" in verdict.reasons[0]
    assert verdict.isolation is not None
    assert {"fs_read", "ptrace"} <= set(verdict.isolation.not_enforced)


def test_words_of_a_kernel_hold_nothing_but_the_allow_list(opened: Open) -> None:
    source = """#include <cstdio>
#include <unistd.h>
extern char** environ;
static void search() {
    for (char** one = environ; *one; ++one) std::fprintf(stderr, "env %s\\n", *one);
    _exit(5);
}
"""
    verdict = judge(opened("auto"), source + FUNCTION)
    assert verdict.status is Status.CRASHED
    told = [line.split()[1] for line in verdict.log.splitlines() if line.startswith("env ")]
    names = {line.split("=")[0] for line in told}
    assert "OMP_NUM_THREADS" in names
    assert {n for n in names if not n.startswith(("OMP_", "GOMP_", "KMP_"))} <= {
        "MALLOC_MMAP_MAX_",
        "MALLOC_TRIM_THRESHOLD_",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "OPENBLAS_THREAD_TIMEOUT",
        "PWD",
        "TMPDIR",
    }


THEFTS = {
    "include": '#include "{key}"\n',
    "incbin": 'asm(".section .rodata\\nstolen: .incbin \\"{key}\\"\\n.text");\n',
    "dependency": '#if __has_include("{key}")\n#else\n#error nothing there\n#endif\n',
    "another candidate": 'asm(".section .rodata\\nstolen: .incbin \\"{entry}\\"\\n.text");\n',
    "store": '#include "{store}"\n',
}


@pytest.mark.parametrize("name", THEFTS)
def test_the_compiler_cannot_be_made_to_read(place: Place, opened: Open, name: str) -> None:
    judge(opened("auto"), HONEST)
    entry = next((place.cache / "cpp").glob("*/*"))
    theft = THEFTS[name].format(key=place.key, store=place.store, entry=entry)
    verdict = judge(opened("auto"), theft + HONEST)
    assert verdict.status is Status.BUILD_FAILED, verdict.reasons
    assert FIRST not in verdict.model_dump_json()


def test_the_compiler_can_be_made_to_read_where_nothing_confines_it(
    place: Place, opened: Open
) -> None:
    theft = THEFTS["incbin"].format(key=place.key)
    verdict = judge(opened("bare"), theft + HONEST)
    assert verdict.status is Status.SCREENED, verdict.reasons


def test_no_path_of_the_machine_is_told_to_a_source(place: Place, opened: Open) -> None:
    source = "#pragma message(__FILE__)\n#warning seen\n" + HONEST
    verdict = judge(opened("auto"), source)
    assert verdict.status is Status.SCREENED, verdict.reasons
    assert "candidate.cpp" in verdict.log
    for folder in (str(place.home), tempfile.gettempdir(), str(Path.home())):
        assert folder + "/" not in verdict.log


def test_nothing_below_the_campaign_is_given_the_keys(opened: Open) -> None:
    """As the kernel tells it of each process: the referee, its baselines, the jails' programs."""
    referee = opened("auto")
    judge(referee, HONEST)
    seen = [read_environment(pid) for pid in (referee.pid, *below(referee.pid))]
    readable = [text for text in seen if text is not None]
    assert len(readable) >= (2 if os.geteuid() == 0 else 1)
    assert any(b"PATH=" in text for text in readable)
    for text in readable:
        assert SECRET.encode() not in text


def read_environment(pid: int) -> bytes | None:
    """None where the process is gone, or keeps its environment to itself."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None


def below(pid: int) -> set[int]:
    """All descendants of a process."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(words[1]), []).append(int(stat.parent.name))
    found: set[int] = set()
    pending = [pid]
    while pending:
        new = children.get(pending.pop(), [])
        found.update(new)
        pending.extend(new)
    return found
