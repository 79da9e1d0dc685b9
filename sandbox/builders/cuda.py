# SPDX-License-Identifier: Apache-2.0
"""Builds a CUDA C++ candidate: one source file in, one cubin with its kernels' facts or a reason.

The compiler is NVRTC (`nvrtc_job`), or nvcc where it is asked for. Both run in a jail with fixed
flags, for one architecture with its own suffix, e.g. sm_90a. What the cubin says of itself is read
from its bytes, since a candidate can print into the compiler's log; only the spills, of which the
cubin says nothing, are taken from there.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from pathlib import Path

from ...kernelbench.targets import SHARED_WITHOUT_OPT_IN, Architecture
from ..isolation.model import Limits
from ..plan.cuda_signature import read_cuda
from . import cache, cubin, cuda_diagnostics, nvcc, nvrtc_job, shims, toolchain
from .model import BuildFailed, Built, DeviceBuilt, KernelFacts
from .nvrtc_job import Compilation, Compiled
from .toolchain import CompilerName
from .workplace import LIMITS
from .workshop import Workshop

FORMAT = 3
"""Raised whenever the recipe below changes: old cache entries are then not found."""
SOURCE_BYTES = 128 << 10
NAME_CHARACTERS = 200

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"](?:/|[^>"\n]*\.\./)[^>"\n]*[>"])', re.M)
_SPILLS = (
    r"Function properties for {symbol}\s+[^\n]*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
    r"(\d+) bytes spill loads"
)


def build(
    workshop: Workshop,
    source: str,
    kernels: Sequence[str],
    architecture: Architecture,
    *,
    compiler: CompilerName | None = None,
    home: Path | None = None,
    newest: int = toolchain.ANY_RELEASE,
    limits: Limits = LIMITS,
) -> DeviceBuilt | BuildFailed:
    """Compiles `source` to a cubin that has `kernels`, in their order.

    Args:
        compiler: The preferred one (`toolchain.prefer`) unless told otherwise.
        home: The folder of a CUDA toolkit to use instead of the one that is found.
        newest: The last major release whose code the driver loads, which is to run it.
        limits: Of NVRTC.

    Raises:
        PrerequisiteError: the compiler is not there, or does not know the architecture.
        SandboxError: the jail failed; never the source's fault.
        StorageError: the cache cannot be used.
    """
    started = time.monotonic()
    names = tuple(dict.fromkeys(kernels))
    if (refused := _refusal(source, names)) is not None:
        return BuildFailed(refused, seconds=time.monotonic() - started)
    ask = Compilation(source, names, architecture.build_name, read_cuda(source).labels)
    compiler = compiler or toolchain.preferred_compiler()
    if compiler == "nvcc":
        offline = toolchain.find_nvcc(home)
        recipe = {"compiler": offline.version, "options": nvcc.options(ask.build_name)}
    else:
        tool = nvrtc_job.with_headers(workshop, toolchain.find_nvrtc(home, newest=newest))
        recipe = {"compiler": tool.identity, "options": nvrtc_job.options(ask.build_name)}
    key = cache.key_of(
        {
            "format": FORMAT,
            "source": source,
            "kernels": names,
            "shims": shims.digest(),
            **recipe,
        }
    )
    if (kept := workshop.cache.load_device(key)) is not None:
        return kept
    if compiler == "nvcc":
        compiled = nvcc.compile_source(workshop, ask, offline)
    else:
        compiled = nvrtc_job.compile_source(workshop, ask, tool, limits)
    if isinstance(compiled, BuildFailed):
        return compiled
    result = _device_built(ask, compiled, str(recipe["compiler"]))
    if isinstance(result, DeviceBuilt):
        workshop.cache.store_device(key, result)
    return result


def _refusal(source: str, kernels: tuple[str, ...]) -> str | None:
    """Why the text is not given to a compiler at all; None where it is."""
    try:
        raw = source.encode()
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        return f"error at line {line}: a character that UTF-8 cannot hold"
    if len(raw) > SOURCE_BYTES:
        return f"the source has {len(raw)} bytes, at most {SOURCE_BYTES} are taken"
    if "\0" in source:
        return f"error at line {source.count(chr(10), 0, source.index(chr(0))) + 1}: a null byte"
    if found := _INCLUDE.search(source):
        line = source.count("\n", 0, found.start(1)) + 1
        return (
            f"error at line {line}: #include {found[1][:80]}: only headers of the CUDA toolkit can "
            "be included, by their names"
        )
    for name in kernels:
        if not name.strip() or len(name) > NAME_CHARACTERS or not name.isprintable():
            return f"{name[:NAME_CHARACTERS]!r} is not the name of a kernel"
    return None


def _device_built(ask: Compilation, compiled: Compiled, compiler: str) -> DeviceBuilt | BuildFailed:
    def make_failure(reason: str) -> BuildFailed:
        return BuildFailed(reason, compiled.log, seconds=compiled.seconds, command=compiled.command)

    try:
        found = cubin.entries(compiled.cubin)
    except cubin.CubinError as error:
        return make_failure(str(error))
    facts = []
    for name, symbol in zip(ask.kernels, compiled.symbols, strict=True):
        if symbol not in found:
            return make_failure(cuda_diagnostics.unknown_kernel(name, ask.known))
        facts.append(_facts(name, found[symbol], compiled.log))
        if facts[-1].shared_bytes > SHARED_WITHOUT_OPT_IN:
            return make_failure(
                f"kernel '{name}' declares {facts[-1].shared_bytes} bytes of static shared memory, "
                f"the limit is {SHARED_WITHOUT_OPT_IN}; declare it `extern __shared__` and set the "
                "launch's shared_bytes"
            )
    built = Built(
        artefact=compiled.cubin,
        sha256=hashlib.sha256(compiled.cubin).hexdigest(),
        seconds=compiled.seconds,
        log=compiled.log,
        command=compiled.command,
        compiler=compiler,
    )
    return DeviceBuilt(ask.build_name, (built,), tuple(facts))


def _facts(name: str, entry: cubin.CubinKernel, log: str) -> KernelFacts:
    # The assembler speaks last: what a candidate prints comes before it.
    said = re.findall(_SPILLS.format(symbol=re.escape(entry.symbol)), log)
    _, stores, loads = said[-1] if said else ("0", "0", "0")
    return KernelFacts(
        name=name,
        symbol=entry.symbol,
        registers=entry.registers,
        shared_bytes=entry.shared_bytes,
        stack_bytes=entry.stack_bytes,
        spill_stores=int(stores),
        spill_loads=int(loads),
        parameters=entry.parameters,
        max_threads=entry.max_threads,
        register_cap=entry.register_cap,
    )
