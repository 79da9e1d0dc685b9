"""Runs Triton kernels in the interpreter as candidates' are, on arrays of any type, in a process.

Without a jail and without a problem: what is tried is arithmetic and memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kernelwright.kernelbench.codecs.elements import host_dtype
from kernelwright.kernelbench.dtypes import DTYPES

INSIDE = """
import json, sys
import numpy as np, torch
import triton.runtime.interpreter, triton.language
from kernelwright.sandbox.triton_on_cpu import interpreter_hooks, load, reasons
from kernelwright.sandbox.triton_on_cpu.guarded_memory import Guarded
from kernelwright.sandbox.triton_on_cpu.patience import Patience
from kernelwright.sandbox.triton_on_cpu.regions import Region
from kernelwright.sandbox.triton_on_cpu.watch import MemoryFault, Watch

told = json.loads(sys.stdin.read())
watch = Watch(["order"], Patience(steps=10**9))
watch.next_schedule()
interpreter_hooks.open_eyes(watch, told["capability"])
module = load.module(told["source"])
given, regions, held = {}, [], []
for name, (dtype, shape, is_written) in told["arrays"].items():
    bits = np.load(f"{told['folder']}/{name}.npy")
    memory = Guarded(bits.nbytes, at_end=True)
    kind = getattr(torch, dtype)
    flat = memory.tensor(kind, bits.nbytes // kind.itemsize)
    flat.view(torch.uint8).copy_(torch.from_numpy(bits.reshape(-1).view(np.uint8)))
    given[name] = flat.view(shape)
    regions.append(Region(name, memory.start, bits.nbytes, is_writable=is_written))
    held.append(memory)
watch.begin(regions)
fault = ""
try:
    module.main(**given)
except Exception as error:
    if not told["may_fail"]:
        raise
    found = error
    for kind in (MemoryFault, interpreter_hooks.LimitError):
        found = reasons.find_beneath(error, kind) or found
    fault = f"{type(found).__name__}: {found}"
for name, (dtype, shape, is_written) in told["arrays"].items():
    if is_written:
        written = given[name].contiguous().view(-1).view(torch.uint8).numpy()
        np.save(f"{told['folder']}/{name}.npy", written)
print(json.dumps(fault))
"""


def call_main(
    source: str,
    folder: Path,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, tuple[str, Sequence[int]]],
    *,
    capability: int = 90,
) -> dict[str, np.ndarray]:
    """What `main` of the source leaves in its outputs.

    Args:
        inputs: Arrays of numpy's or ml_dtypes' types, by the names of its parameters.
        outputs: The names of element types and the shapes of the others, which hold NaN or -1.
    """
    fault, written = _run(source, folder, inputs, outputs, capability=capability, may_fail=False)
    assert not fault
    return written


def find_fault(
    source: str,
    folder: Path,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, tuple[str, Sequence[int]]],
) -> str:
    """What ends `main`, empty where nothing does."""
    return _run(source, folder, inputs, outputs, capability=90, may_fail=True)[0]


def _run(
    source: str,
    folder: Path,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, tuple[str, Sequence[int]]],
    *,
    capability: int,
    may_fail: bool,
) -> tuple[str, dict[str, np.ndarray]]:
    arrays = {}
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array).view(f"u{array.itemsize}"))
        arrays[name] = (array.dtype.name, list(array.shape), False)
    for name, (dtype, shape) in outputs.items():
        size = int(np.prod(shape)) * host_dtype(DTYPES[dtype]).itemsize
        np.save(folder / f"{name}.npy", np.full(size, 0xFF, np.uint8))
        arrays[name] = (dtype, list(shape), True)
    told = {
        "source": source,
        "folder": str(folder),
        "arrays": arrays,
        "capability": capability,
        "may_fail": may_fail,
    }
    done = subprocess.run(
        [sys.executable, "-c", INSIDE],
        input=json.dumps(told),
        env={**os.environ, "TRITON_INTERPRET": "1", "TRITON_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    written = {
        name: np.load(folder / f"{name}.npy").view(host_dtype(DTYPES[dtype])).reshape(shape)
        for name, (dtype, shape) in outputs.items()
    }
    return json.loads(done.stdout.splitlines()[-1]), written
