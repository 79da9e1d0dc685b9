"""A machine with one stand-in for a GPU, for whole programs: what they start takes it, too.

Its driver is the fake one, its NVML answers from a table, its Nsight Compute counts what it is
told. Python reads `sitecustomize` and `pynvml` from a folder ahead of all others, so that no
program needs to know of it. Its driver runs host functions in place of kernels: right ones of
`bias_gelu` under the names of its CUDA recipes and under `k`. What a kernel does wrong it cannot
do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

from kernelwright.tests.sandbox.run.device.fake_driver import fake_driver
from kernelwright.tests.sandbox.run.device.fake_nvml import H200, FakeNvml
from kernelwright.tests.sandbox.run.device.stand_in_start import NAME
from kernelwright.tests.verifier.stand_in_ncu import StandInNcu

MEMORY_BYTES = 1 << 30
"""As the fake driver has it."""
COUNTS = {
    "launch__registers_per_thread": 32,
    "gpu__time_duration.sum": 2000,
    "dram__bytes.sum": 8_400_000,
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": 4,
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": 4,
}
"""What its Nsight Compute tells of every kernel."""

_AT_START = "from kernelwright.tests.sandbox.run.device import stand_in_start\n{call}\n"
_NVML = """\
from kernelwright.tests.sandbox.run.device.stand_in_machine import nvml
_nvml = nvml()
def __getattr__(name):
    return getattr(_nvml, name)
"""


def nvml() -> FakeNvml:
    """What stands for `pynvml`."""
    memory = SimpleNamespace(total=MEMORY_BYTES, free=MEMORY_BYTES - (64 << 20))
    told = {"nvmlDeviceGetName": NAME, "nvmlDeviceGetMemoryInfo": memory}
    return FakeNvml([{**H200, **told}])


def make_stand_in(folder: Path) -> dict[str, str]:
    """Builds it there; the variables with which programs that are started take it."""
    folder.chmod(0o755)
    library = fake_driver(folder)
    StandInNcu(folder).count(**COUNTS)
    python = folder / "python"
    python.mkdir()
    call = f"stand_in_start.change_on_import({str(library)!r})"
    (python / "sitecustomize.py").write_text(_AT_START.format(call=call))
    (python / "pynvml.py").write_text(_NVML)
    ahead = {"PYTHONPATH": str(python), "PATH": str(folder)}
    return {
        name: os.pathsep.join(filter(None, (first, os.environ.get(name, ""))))
        for name, first in ahead.items()
    }


def take_here(environment: dict[str, str]) -> None:
    """This process takes it as well."""
    os.environ.update(environment)
    sys.path.insert(0, environment["PYTHONPATH"].split(os.pathsep)[0])
