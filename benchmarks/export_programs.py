"""What benchmarks/exports.py runs where nothing of Kernelwright is: programs of strangers."""

from __future__ import annotations

_COMPARE = """
def compare(found):
    found = found.numpy() if hasattr(found, "numpy") else found
    assert (abs(found - cases["out"]) <= cases["tolerance"]).all(), abs(found - cases["out"]).max()
"""

BY_C = f"""
import ctypes, sys
import numpy as np
cases = np.load(sys.argv[3])
{_COMPARE}
entry = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
x = np.ascontiguousarray(cases["in_0"])
y = np.full(x.shape, np.nan, np.float32)
entry(*map(ctypes.c_int, x.shape), *(each.ctypes.data_as(ctypes.c_void_p) for each in (x, y)))
compare(y)
"""

BY_RUN = f"""
import sys
import numpy as np
import torch
import softmax
cases = np.load(sys.argv[1])
{_COMPARE}
x = torch.from_numpy(cases["in_0"])
y = torch.full(x.shape, torch.nan)
softmax.run(*x.shape, x, y)
compare(y)
"""

BY_MODELNEW = f"""
import sys
import numpy as np
import torch
import softmax
cases = np.load(sys.argv[1])
{_COMPARE}
compare(softmax.ModelNew()(torch.from_numpy(cases["in_0"])))
"""

STAND_IN = f"""
import contextlib, importlib, sys, types
import numpy as np
import torch
launch = importlib.import_module(sys.argv[1] + "._launch")
torch.cuda.device_of = lambda _: contextlib.nullcontext()
torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=77)
cases = np.load(sys.argv[2])
{_COMPARE}
x = torch.from_numpy(cases["in_0"])
y = torch.full(x.shape, torch.nan)
launch.call(tuple(x.shape), (x,), (y,))
compare(y)
"""

HUB = """
import sys
from kernels._rust import Build
assert len(Build.open(sys.argv[1]).general.backends) == 1
"""

FLASHINFER = f"""
import sys
from flashinfer_bench.data import TraceSet
found = TraceSet.from_path(sys.argv[1])
assert list(found.definitions) == list(found.solutions) == list(found.workloads)
if len(sys.argv) > 2:
    import numpy as np
    import torch
    from flashinfer_bench.compile import BuilderRegistry
    cases = np.load(sys.argv[2])
{"".join("    " + line + chr(10) for line in _COMPARE.strip().splitlines())}
    [definition], [[solution]] = found.definitions.values(), found.solutions.values()
    runnable = BuilderRegistry.get_instance().build(definition, solution)
    x = torch.from_numpy(cases["in_0"])
    y = torch.full(x.shape, torch.nan)
    runnable.call_destination_passing(x, y)
    compare(y)
"""
