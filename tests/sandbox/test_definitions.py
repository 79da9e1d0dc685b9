"""A user's problem: its file runs in a jail, and what it does wrong is told with its line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench.definition import read_text, version_of
from kernelwright.kernelbench.problem import Family, Problem
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.definitions import talk
from kernelwright.sandbox.definitions.process import Definition
from kernelwright.sandbox.isolation import choose

pytestmark = pytest.mark.jail

FILE = '''"""Rows scaled by their largest magnitude."""

import numpy as np

PROBLEM = {
    "title": "Rows scaled",
    "definition": "y[i,j] = x[i,j] / max_k |x[i,k]|",
    "source": "a test",
    "axes": {"M": "rows", "N": "columns"},
    "inputs": {"x": "float32[M, N]"},
    "outputs": {"y": "float32[M, N]"},
    "flops": "2 * M * N",
    "workloads": {
        "realistic": {"300x40": {"M": 300, "N": 40}},
        "tiny": {"tiny": {"M": 5, "N": 7}},
    },
}


def oracle(x):
    return x / np.abs(x).max(1, keepdims=True)
'''
ORACLE = FILE[FILE.index("def oracle") :]


@contextmanager
def defined(text: str, folder: Path) -> Iterator[Problem]:
    workshop = Workshop(choose("auto"), folder)
    definition = Definition(read_text("scaled", text, "scaled.py"), workshop)
    try:
        yield definition.problem()
    finally:
        definition.close()


def test_a_file_draws_and_answers_from_its_jail(tmp_path: Path) -> None:
    with defined(FILE, tmp_path) as problem:
        for name in ("tiny", "300x40"):
            structure = problem.structure(problem.workload(name))
            drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
            expected = problem.oracle(structure, drawn)["y"]
            x = drawn["x"].astype(np.float64)
            assert np.allclose(expected.value, x / np.abs(x).max(1, keepdims=True), rtol=1e-14)
            assert expected.value.dtype == np.float64
            assert (expected.scale > 0).all()
        again = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
        assert np.array_equal(again["x"], drawn["x"])


STREAMS = "Expected(x * 1.0, np.zeros(1), streams={})"
IMPORT = "import numpy as np"


def make_random(streams: str) -> str:
    """The file, with an answer that is rounded at random."""
    both = f"{IMPORT}\nfrom kernelwright.kernelbench.problem import Expected"
    text = FILE.replace(IMPORT, both).replace('"y": "float32', '"y": "bfloat16')
    return text.replace("x / np.abs(x).max(1, keepdims=True)", STREAMS.format(streams))


def test_an_answer_that_is_rounded_at_random_says_whose_bits_are_the_same(tmp_path: Path) -> None:
    with defined(make_random("np.arange(len(x)) // 2"), tmp_path) as problem:
        structure = problem.structure(problem.workload("tiny"))
        drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
        expected = problem.oracle(structure, drawn)["y"]
        assert expected.streams is not None
        assert expected.streams.tolist() == [0, 0, 1, 1, 2]
    for streams, why in (("np.arange(3)", r"shape \[3\]"), ("x[:, 0] * np.nan", "is no number")):
        with defined(make_random(streams), tmp_path) as problem:
            drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
            with pytest.raises(UsageError, match=why):
                problem.oracle(structure, drawn)


def test_more_structures_than_are_held_are_sent_again(tmp_path: Path) -> None:
    with defined(FILE, tmp_path) as problem:
        tiny = problem.structure(problem.workload("tiny"))
        varied = problem.variations(tiny, np.random.default_rng(2))
        shapes = [tiny, *itertools.islice(varied, 6)]
        small = [s for s in shapes if np.prod(list(s.axes.values())) < 1 << 20]
        for structure in [*small, *small]:
            drawn = problem.values(structure, Family.UNIFORM, np.random.default_rng(3))
            assert problem.oracle(structure, drawn)["y"].value.shape == drawn["x"].shape


def test_a_file_that_is_read_has_a_version_and_does_not_run() -> None:
    problem = read_text("scaled", "raise SystemExit\n" + FILE, "scaled.py")
    assert problem.version == version_of("raise SystemExit\n" + FILE)
    assert [each.name for each in problem.baselines] == ["oracle"]
    structure = problem.structure(problem.workload("tiny"))
    with pytest.raises(RuntimeError, match=r"scaled.py:\d+: oracle runs in a jail"):
        problem.oracle(structure, {"x": np.ones((5, 7), np.float32)})


IMPORT, RETURN = "import numpy as np\n", "    return x"
WRONG = {
    "imports what is not there": (IMPORT, "import numpie as np\n", "3: runs: ModuleNotFoundError"),
    "raises": (IMPORT, IMPORT + "1 / 0\n", "4: runs: ZeroDivision"),
    "leaves": (IMPORT, IMPORT + "import os\nos._exit(3)\n", ": runs: it has closed its end"),
    "has a mistake": (RETURN, "    x.nothing\n    return x", "21: oracle: AttributeError"),
    "has another shape": (
        RETURN,
        "    return x[:, :1]",
        r": oracle: y is float64\[5, 1\] and must be",
    ),
    "has too many answers": (RETURN, "    return x, x", ": oracle: ValueError"),
    "answers a word": (RETURN, "    return 'four', x", ": oracle: ValueError"),
    "writes": (RETURN, "    open('/etc/passwd-', 'w')\n    return x", "21: oracle: .*Error"),
    "asks the network": (
        RETURN,
        "    import socket\n    socket.create_connection(('1.1.1.1', 80), 3)\n    return x",
        "22: oracle: .*Error",
    ),
    "starts a process": (
        RETURN,
        "    import subprocess\n    subprocess.run(['/bin/true'])\n    return x",
        "22: oracle: .*Error",
    ),
}


def test_sizes_beyond_memory_are_told_with_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="21: oracle: MemoryError") as error:
        answer_once(FILE.replace(RETURN, "    np.zeros(1 << 44)\n    return x"), tmp_path)
    assert "workloads" in (error.value.hint or "")


@pytest.mark.parametrize("case", WRONG)
def test_what_a_file_does_wrong_is_told_with_its_line(case: str, tmp_path: Path) -> None:
    old, new, told = WRONG[case]
    assert old in FILE
    with pytest.raises(UsageError) as error:
        answer_once(FILE.replace(old, new), tmp_path)
    assert re.match(f"scaled.py:? ?{told}", str(error.value)), str(error.value)
    assert "jail" in error.value.hint


def answer_once(text: str, folder: Path) -> None:
    with defined(text, folder) as problem:
        structure = problem.structure(problem.workload("tiny"))
        drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
        problem.oracle(structure, drawn)


def test_what_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "ANSWER_S", 1.0)
    text = FILE.replace("    return x", "    while True: pass\n    return x")
    with defined(text, tmp_path) as problem:
        structure = problem.structure(problem.workload("tiny"))
        drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
        for _ in range(2):
            with pytest.raises(UsageError, match="gave no answer within 1 s"):
                problem.oracle(structure, drawn)


def test_values_of_its_own_are_held_against_what_is_declared(tmp_path: Path) -> None:
    own = "def values(family, rng, M, N):\n    return rng.random((M, N))\n\n\n"
    text = FILE.replace(ORACLE, own + ORACLE)
    with defined(text, tmp_path) as problem:
        structure = problem.structure(problem.workload("tiny"))
        with pytest.raises(UsageError, match=r"values: x is float64\[5, 7\] and must be float32"):
            problem.values(structure, Family.NORMAL, np.random.default_rng(1))
    text = text.replace("rng.random((M, N))", "np.full((M, N), np.inf, np.float32)")
    with defined(text, tmp_path) as problem:
        structure = problem.structure(problem.workload("tiny"))
        with pytest.raises(UsageError, match="values: x is not finite in the family normal"):
            problem.values(structure, Family.NORMAL, np.random.default_rng(1))
