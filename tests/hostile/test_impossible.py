"""What a native candidate cannot even attempt, shown on the real runner and the real channel."""

from __future__ import annotations

import ast
import math
import os
from pathlib import Path

import numpy as np
import pytest

import kernelwright
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family
from kernelwright.sandbox import frames
from kernelwright.sandbox.run.arena import Arena, footprint
from kernelwright.traces.records import Status
from kernelwright.verifier.clock import timing
from kernelwright.verifier.truth.trials import Item, make_item

HERE = Path(__file__).parent
ROOT = Path(kernelwright.__file__).parent
PICKLERS = {
    "pickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "shelve",
    "multiprocessing",
    "copyreg",
}


@pytest.fixture
def told(court) -> list[tuple[str, str]]:
    """What a candidate found in its own process: (`object`, path), (`fd`, …), (`env`, …)."""
    verdict = court.judge((HERE / "probe.cpp").read_text("utf-8"), expected=(Status.CRASHED,))
    assert "SIGABRT" in verdict.reasons[0]
    pairs = [line.partition("=") for line in verdict.log.splitlines()]
    found = [(kind, rest) for kind, _, rest in pairs if kind in ("object", "fd", "env")]
    assert {kind for kind, _ in found} == {"object", "fd", "env"}
    return found


def test_the_runner_holds_no_interpreter_and_no_reference(told):
    objects = [rest.rsplit("/", 1)[-1] for kind, rest in told if kind == "object"]
    assert any(name == "candidate.so" for name in objects)
    assert any(name.startswith("libc.") for name in objects)
    foreign = ("python", "torch", "numpy", "scipy", "openblas", "mkl")
    assert [name for name in objects if any(word in name.lower() for word in foreign)] == []


def test_the_runner_holds_one_channel_and_no_other_memory(told):
    """Its two memfds are mapped and closed, so that no descriptor of any memory is left."""
    kinds = [rest.split(" ")[1] for kind, rest in told if kind == "fd"]
    assert kinds.count("socket") == 1
    assert set(kinds) <= {"socket", "pipe", "device"}


def test_the_loader_of_the_runner_is_told_nothing(told):
    names = [rest.split("=", 1)[0] for kind, rest in told if kind == "env"]
    assert "OMP_NUM_THREADS" in names
    assert [name for name in names if name.startswith(("LD_", "PYTHON", "GCONV_"))] == []


def test_no_frame_means_pass():
    """The channel has twelve kinds of frames, four numbers each, and none is a verdict."""
    assert {kind.name for kind in frames.FrameKind} == {
        "READY",
        "CALL",
        "DONE",
        "PING",
        "PONG",
        "REFUSED",
        "LOAD",
        "UPLOAD",
        "FETCH",
        "REPLAY",
        "PREPARE",
        "TOGETHER",
    }
    ours, theirs = frames.channel()
    with ours, theirs:
        theirs.sendall(b"VERIFIED" * 3)
        frame = frames.receive(ours, 10.0).frame
        assert frame.kind not in set(frames.FrameKind)
        theirs.sendall(b"pass")
        theirs.close()
        with pytest.raises(frames.FrameError):
            frames.receive(ours, 10.0)


def test_an_answer_is_bytes_in_our_own_memory():
    problem = registry.get("spmm_csr")
    structure = problem.structure(problem.workload("tiny"))
    with Arena(*footprint(problem, structure.axes)) as arena:
        slot = arena.place(problem, structure)
        (answer,) = slot.outputs.values()
        assert type(answer) is np.ndarray
        assert answer.dtype == np.float32
        assert answer.shape == (structure.axes["M"], structure.axes["N"])
        assert answer.flags.c_contiguous
        inputs, outputs = arena.open_fds()
        fields = [Path(f"/proc/self/fdinfo/{fd}").read_text() for fd in (inputs, outputs)]
        for fd in (inputs, outputs):
            os.close(fd)
        modes = [int(text.split("flags:")[1].split()[0], 8) & 3 for text in fields]
        assert modes == [0, 2], "inputs are handed out read-only, outputs writable"
        del answer, slot


class Recorder:
    """A side that notes what it is given and takes as long as it is told to."""

    def __init__(self, name: str, first_us: float) -> None:
        self.name = name
        self.waited = 0.0
        self.given: list[tuple[list[Item], int]] = []
        self._first_us = first_us

    def take(self, items: list[Item], first: int) -> float:
        self.given.append((items, first))
        is_early = len(self.given) <= timing.WARM_UP_CALLS
        return self._first_us if is_early else 10.0


def sampled(first_us: float) -> list[Recorder]:
    problem = registry.get("softmax")
    structure = problem.structure(problem.workload("tiny"))
    rng, drawing = np.random.default_rng(1), np.random.default_rng(2)
    sides = [Recorder("candidate", first_us), Recorder("torch eager", 10.0)]
    series = timing.Series(batch=timing.batch_for(100.0, 8))
    timing.sample_block(
        series,
        sides[0],
        [sides[1]],
        lambda n: [make_item(problem, structure, Family.NORMAL, drawing) for _ in range(n)],
        8,
        timing.Rounds(6, budget_s=1e9),
        rng,
    )
    assert [len(block) for block in series.blocks_of("candidate")] == [6]
    return sides


@pytest.mark.parametrize(("behind", "rounds"), [(math.inf, 6), (0.25, 2), (3.0, 6)])
def test_nobody_is_timed_for_long_who_is_far_behind(behind: float, rounds: int) -> None:
    problem = registry.get("softmax")
    structure = problem.structure(problem.workload("tiny"))
    rng, slow = np.random.default_rng(1), Recorder("candidate", 10.0)
    slow.take = lambda items, first: Recorder.take(slow, items, first) * 2  # type: ignore[method-assign]
    series = timing.Series(batch=1)
    timing.sample_block(
        series,
        slow,
        [Recorder("champion", 10.0)],
        lambda n: [make_item(problem, structure, Family.NORMAL, rng) for _ in range(n)],
        8,
        timing.Rounds(6, budget_s=1e9, least=2, behind=behind),
        rng,
    )
    assert [len(block) for block in series.blocks_of("candidate")] == [rounds]


def test_a_slow_start_changes_no_count():
    """C9: batch and rounds come from the reference's time; warm-up calls decide nothing."""
    slow, quick = sampled(1e6)[0], sampled(1.0)[0]
    assert len(slow.given) == len(quick.given) == timing.WARM_UP_CALLS + 6
    assert [len(items) for items, _ in slow.given] == [len(items) for items, _ in quick.given]


def test_both_sides_get_the_same_inputs_in_every_round():
    candidate, baseline = sampled(10.0)
    assert len(candidate.given) == len(baseline.given)
    for (ours, first), (theirs, other) in zip(candidate.given, baseline.given, strict=True):
        assert first == other
        assert all(a is b for a, b in zip(ours, theirs, strict=True))
    warm_up = {id(item) for items, _ in candidate.given[: timing.WARM_UP_CALLS] for item in items}
    timed = [id(item) for items, _ in candidate.given[timing.WARM_UP_CALLS :] for item in items]
    assert len({*timed} - warm_up) == len(timed), "every timed call has inputs of its own"


def test_nothing_is_unpickled():
    """E17: no module of the package imports what runs code while it reads data."""
    found = []
    rooms = [room for room in ROOT.iterdir() if room.is_dir() and (room / "__init__.py").exists()]
    assert {"verifier", "sandbox"} <= {room.name for room in rooms}
    for path in [*ROOT.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))]:
        inside = path.relative_to(ROOT)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                is_off = isinstance(node.value, ast.Constant) and node.value.value is False
                names = [] if is_off else ["pickle"]
            found += [f"{inside}: {name}" for name in names if name.split(".")[0] in PICKLERS]
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.load":
                found.append(f"{inside}: torch.load")
    assert found == []
