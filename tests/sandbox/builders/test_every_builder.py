"""What every builder promises: any source at all gets a result, and nothing stale is given back.

A result is an artefact named by its hash, or one sentence with a log; never an exception. What is
kept is found again as long as everything that decides it is the same, and no longer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import cpp, cuda, emulated, python, toolchain
from kernelwright.sandbox.builders.model import (
    BuildFailed,
    BuildVariant,
    Built,
    DeviceBuilt,
    EmulatedVariant,
    Unsupported,
)
from kernelwright.sandbox.builders.triton import TritonBuilder, TritonBuilt, TritonRequest
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail

from . import triton_sources

SCALE, SPMV = registry.get("softmax"), registry.get("spmv_csr")
Attempt = Callable[..., Any]
WARM: dict[tuple[Path, str], TritonBuilder] = {}
"""Triton's builders by their cache and target; a process that is warm serves many sources."""


@dataclass(frozen=True)
class Subject:
    """One builder: how it is asked, and what it is asked for."""

    attempt: Attempt
    """Takes a source, the folder of the cache, a jail, and changes to what else is asked."""
    right: str
    wrong: str
    comment: str = "//"
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What else decides an artefact, each with another value that the right source builds with."""
    keeps: bool = True
    """It keeps what it builds."""


CPP = 'extern "C" void scale(int n, const float* x, float* y) {\n  y[0] = 2 * x[n - 1];\n}\n'
CUDA = (
    'extern "C" __global__ void scale(int n, const float* x, float* y) {\n'
    "  y[blockIdx.x] = 2 * x[n - 1];\n}\n"
    'extern "C" __global__ void other(float* y) { y[0] = 1; }\n'
)


def _cpp(source: str, cache: Path, jail: Jail, **more: Any) -> Built | BuildFailed:
    asked = {
        "problem_prototype": 'extern "C" void scale(int n, const float* x, float* y);',
        "entry": "scale",
        **more,
    }
    return cpp.build(Workshop(jail, cache), source, **asked)


def _cuda(source: str, cache: Path, jail: Jail, **more: Any) -> DeviceBuilt | BuildFailed:
    asked = {"kernels": ("scale",), "architecture": architecture("sm_90"), **more}
    return cuda.build(Workshop(jail, cache), source, **asked, compiler="nvrtc")


def _emulated(source: str, cache: Path, jail: Jail, **more: Any) -> Any:
    asked = {"problem": SCALE, "kernels": ("scale",), **more}
    return emulated.build(Workshop(jail, cache), source, **asked)


def _python(source: str, _cache: Path, _jail: Jail, **_more: Any) -> Built | BuildFailed:
    found = python.check(source, SCALE)
    return found if isinstance(found, BuildFailed) else found.built


def _triton(source: str, cache: Path, jail: Jail, **more: Any) -> Any:
    key = cache, more.pop("target", "sm_90")
    if key not in WARM:
        WARM[key] = TritonBuilder(Workshop(jail, cache), architecture(key[1]), timeout_s=120.0)
    asked = {"problem": SCALE, "structures": (triton_sources.shaped(64, 200),), **more}
    return WARM[key].build(TritonRequest(source, **asked))


SUBJECTS = {
    "cpp": Subject(
        _cpp,
        CPP,
        CPP.replace("2 *", "2 * nothing *"),
        changes={
            "variant": {"variant": BuildVariant.SANITIZED},
            "prototype": {"problem_prototype": 'extern "C" void scale(int, const float*, float*);'},
        },
    ),
    "cuda": Subject(
        _cuda,
        CUDA,
        CUDA.replace("2 *", "2 * nothing *"),
        changes={
            "kernels": {"kernels": ("scale", "other")},
            "architecture": {"architecture": architecture("sm_80")},
        },
    ),
    "emulated": Subject(
        _emulated,
        CUDA,
        CUDA.replace("2 *", "2 * nothing *"),
        changes={
            "kernels": {"kernels": ("scale", "other")},
            "variant": {"variant": EmulatedVariant.ACCESS},
            "architecture": {"architecture": "sm_90"},
            "problem": {"problem": SPMV},
        },
    ),
    "python": Subject(
        _python, "def run(x, y):\n    y.copy_(x)\n", "def walk(x, y): ...\n", "#", keeps=False
    ),
    "triton": Subject(
        _triton,
        triton_sources.HOST,
        triton_sources.HOST.replace("tl.exp", "tl.nothing"),
        "#",
        changes={
            "target": {"target": "sm_80"},
            "structure": {"structures": (triton_sources.shaped(64, 300),)},
            "choices": {"choices": {"softmax": 1}},
        },
    ),
}

FOR_ALL = {
    "a null byte": "\0\n",
    "half a character": "\ud800\n",
    "no end": "/*---\n",
    "brackets": "(" * 5000 + "\n",
}
HOSTILE = {
    "//": FOR_ALL
    | {
        "a path of the machine": '#include "/etc/passwd"\n',
        "a path out of its folder": '#include "../../../../../../etc/passwd"\n',
        "a device as a file": '#include "/dev/zero"\n',
        "another file's name": '#line 1 "/etc/passwd"\n#error \x1b[31mmine\x1b[0m\n',
        "a macro that grows": "#define A0 x x x x x x x x\n"
        + "".join(f"#define A{n} A{n - 1} A{n - 1} A{n - 1} A{n - 1}\n" for n in range(1, 6))
        + "int A5;\n",
        "a macro over keywords": "#define extern static\n#define void int\n#define __global__\n",
    },
    "#": FOR_ALL
    | {
        "a path of the machine": 'raise ValueError(open("/etc/passwd").read())\n',
        "a terminal's signs": 'raise ValueError("\x1b[31mmine\x1b[0m\\n\\x1b[31mmine")\n',
        "no return": "import os\nos._exit(0)\n",
    },
}
"""What is put before a right source, by what begins a comment of it."""
CASES = [(name, attack) for name, each in SUBJECTS.items() for attack in HOSTILE[each.comment]]


def chosen(name: str) -> Subject:
    if name == "cuda":
        try:
            toolchain.find_nvrtc()
        except PrerequisiteError as error:
            pytest.skip(str(error))
    return SUBJECTS[name]


@pytest.fixture(params=SUBJECTS)
def subject(request: pytest.FixtureRequest) -> Subject:
    return chosen(request.param)


@pytest.fixture(scope="module")
def kept(shared_cache: Path) -> Path:
    """One cache for all, so that headers and runtimes of our own are compiled once."""
    return shared_cache


@pytest.fixture(scope="module")
def cell() -> Iterator[Jail]:
    try:
        yield choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")
    finally:
        while WARM:
            WARM.popitem()[1].close()


def artefacts(result: Any) -> tuple[Built, ...]:
    if isinstance(result, TritonBuilt):
        result = result.device
    return result.cubins if isinstance(result, DeviceBuilt) else (result,)


def is_cached(result: Any) -> bool:
    if isinstance(result, TritonBuilt):
        result = result.device
    return bool(result.is_cached)


def refusals(result: Any) -> tuple[str, ...]:
    """What is said of a source that was not built; the result may be nothing else."""
    if isinstance(result, Unsupported):
        return result.reasons
    assert isinstance(result, BuildFailed), result
    return (result.reason,)


def test_a_right_source_becomes_bytes_named_by_their_hash(
    subject: Subject, kept: Path, cell: Jail
) -> None:
    for each in artefacts(subject.attempt(subject.right, kept, cell)):
        assert isinstance(each, Built)
        assert each.artefact
        assert each.sha256 == hashlib.sha256(each.artefact).hexdigest()
        assert each.compiler
        assert each.seconds >= 0


def test_a_wrong_source_gets_a_sentence(subject: Subject, kept: Path, cell: Jail) -> None:
    for source in (subject.wrong, ""):
        for reason in refusals(subject.attempt(source, kept, cell)):
            assert reason
            assert reason.isprintable(), "one line"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "attack"), CASES)
def test_a_hostile_source_gets_a_result(name: str, attack: str, kept: Path, cell: Jail) -> None:
    subject = chosen(name)
    text = HOSTILE[subject.comment][attack] + subject.right
    result = subject.attempt(text, kept, cell)
    if isinstance(result, BuildFailed | Unsupported):
        assert all(reason and reason.isprintable() for reason in refusals(result))
        said = " ".join((*refusals(result), result.log))
    else:
        said = " ".join(each.log for each in artefacts(result))
    assert "root:" not in said, "no file of this machine is read"
    assert "\x1b" not in said
    assert str(kept) not in said


@pytest.mark.slow
def test_what_is_kept_is_found_by_everything_that_decides_it(
    subject: Subject, tmp_path: Path, cell: Jail
) -> None:
    first = subject.attempt(subject.right, tmp_path, cell)
    assert not is_cached(first)
    again = subject.attempt(subject.right, tmp_path, cell)
    assert is_cached(again) is subject.keeps
    names = [each.sha256 for each in artefacts(first)]
    assert [each.sha256 for each in artefacts(again)] == names
    if not subject.keeps:
        return
    other = f"{subject.right}{subject.comment} another\n"
    assert not is_cached(subject.attempt(other, tmp_path, cell)), "source"
    for name, change in subject.changes.items():
        found = subject.attempt(subject.right, tmp_path, cell, **change)
        assert not isinstance(found, BuildFailed | Unsupported), (name, found)
        assert not is_cached(found), name
        assert is_cached(subject.attempt(subject.right, tmp_path, cell, **change)), name
    assert is_cached(subject.attempt(subject.right, tmp_path, cell)), "and the first still is"
