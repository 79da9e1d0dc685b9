"""Times compiled kernels of one problem against each other, without anything of the referee.

Each process places all buffers anew; in each round every kernel is called once, in a shuffled
order, on inputs of which the values are new. What is told is the median of the logarithms of ratios
to the round's mean, over all processes.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.kernelbench.problem import Family, Problem, Structure
from kernelwright.sandbox.run.starting import thread_environment

FRESH = 3
"""Sets of inputs, which rounds take in turn after one was changed."""
WARM_UP = 2


def rank(
    problem: Problem,
    structure: Structure,
    libraries: Sequence[Path],
    *,
    processes: int = 8,
    rounds: int = 20,
    cpus: int = 2,
) -> np.ndarray:
    """ln(time / mean time of all) of each kernel, per process: `processes` × kernels."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(5))
        given = {**structure.arrays, **drawn}
        arrays = [np.ascontiguousarray(given[tensor.name]) for tensor in problem.inputs]
        arrays += [np.zeros(t.extent(structure.axes), t.dtype) for t in problem.outputs]
        np.savez(f"{folder}/data.npz", *arrays)
        asked = {
            "entry": problem.name,
            "axes": [int(structure.axes[axis]) for axis in problem.axes],
            "values": [at for at, tensor in enumerate(problem.inputs) if not tensor.is_index],
            "data": f"{folder}/data.npz",
            "libraries": [str(path) for path in libraries],
            "rounds": rounds,
        }
        found = []
        for seed in range(processes):
            told = subprocess.run(
                [sys.executable, __file__, json.dumps({**asked, "seed": seed})],
                env={**os.environ, **thread_environment(cpus)},
                check=True,
                capture_output=True,
                text=True,
            )
            found.append(json.loads(told.stdout))
    return np.array(found)


def _time_all(asked: dict[str, Any]) -> list[float]:
    """In a process of its own: the kernels' logarithms."""
    data = np.load(asked["data"])
    rng = np.random.default_rng(asked["seed"])
    kernels = [getattr(ctypes.CDLL(path), asked["entry"]) for path in asked["libraries"]]
    axes = [ctypes.c_int(value) for value in asked["axes"]]
    arrays = [data[f"arr_{at}"] for at in range(len(data.files))]
    sets = [[_place(array, rng) for array in arrays] for _ in range(FRESH)]
    logs: list[np.ndarray] = []
    for number in range(asked["rounds"] + WARM_UP):
        spent = np.empty(len(kernels))
        for at in rng.permutation(len(kernels)):
            given = sets[int(rng.integers(FRESH))]
            for changing in asked["values"]:
                given[changing] *= np.float32(1.0 + 1e-4 * rng.standard_normal())
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in given]
            start = time.perf_counter_ns()
            kernels[at](*axes, *pointers)
            spent[at] = time.perf_counter_ns() - start
        if number >= WARM_UP:
            logs.append(np.log(spent))
    found = np.array(logs)
    return list(np.median(found - found.mean(axis=1, keepdims=True), axis=0))


def _place(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy at an address of its own, aligned as the referee's tensors are."""
    room = np.empty(array.nbytes + 8192, np.uint8)
    shift = -room.ctypes.data % 64 + 64 * int(rng.integers(64))
    placed = room[shift : shift + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed


if __name__ == "__main__":
    print(json.dumps(_time_all(json.loads(sys.argv[1]))))
