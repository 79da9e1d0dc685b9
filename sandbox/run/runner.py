# SPDX-License-Identifier: Apache-2.0
r"""The Python runner: a fresh process that executes one candidate module and calls it when told to.

    python -I -S -B runner.py \
        CONTROL INPUTS INPUT_BYTES OUTPUTS OUTPUT_BYTES FILTER GATE LOOKS FOLDER

It is the counterpart of `runner.cpp` and speaks the same frames. Inputs are mapped read-only,
outputs writable; the call table stands at the start of the inputs; the gate is watched without
sleep, and a sum over words of the outputs is part of DONE. torch is imported and the system-call
filter put on all threads before the candidate's code runs; then the process is the candidate's, and
whatever it says is only a claim. It knows no expected value and no referee.

It imports nothing of the package but `contract.py` and `crew.py` beside it: `host_code.py` says
what it is given.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import linecache
import math
import os
import struct
import sys
import time
import traceback
import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, NoReturn

READY, CALL, DONE, PING, PONG, REFUSED, LOAD, TOGETHER = 1, 2, 3, 4, 5, 6, 7, 12
FRAME = struct.Struct("<IIQQ")  # sandbox/frames.py
MAX_ARGUMENTS, MAX_SLOTS = 176, 64  # sandbox/run/call_table.py
ENTRY_BYTES = 8 + 16 * MAX_ARGUMENTS
SUMMED_WORDS = 256  # sandbox/frames.py
MOST = 0xFFFFFFFFFFFFFFFF
GATE_BYTES = 4096
KEPT = 256
"""Slots whose tensors are kept; the table's place in memory changes with every trial."""

USAGE, START_FAILED, RAISED, REFUSED_BY_US, BROKEN = 96, 97, 90, 93, 95

PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER, TSYNC = 1, 1
PROT_READ, PROT_WRITE, MAP_SHARED, MAP_POPULATE = 1, 2, 1, 0x8000

Tensors = dict[str, Any]
Specification = tuple[str, str, list[str]]
"""Name, dtype, and a term for each dimension: an axis or a sum such as `M+1`."""


def load_beside(name: str) -> Any:
    """The module of that name in this folder, which is not on the path of imports."""
    file = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"kernelwright_{name}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


contract = load_beside("contract")
crew = load_beside("crew")
NAME: str = contract.NAME


class SockFprog(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


class ReadySlot(NamedTuple):
    """One slot, ready to be called."""

    arguments: dict[str, Any]
    awaited: Tensors
    """The outputs that the call is to return."""
    model: Any
    words: list[memoryview]
    """The outputs as integers of four bytes."""
    may_write: bool = False
    """Whether it was given the outputs as well: one that returns nothing has written them."""


def system() -> Any:
    """The C library, with the one result type that is not an int."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    return libc


def map_memory(libc: Any, descriptor: int, size: int, protection: int) -> Any:
    """The shared memory as bytes. mmap.mmap would keep a descriptor that can be opened anew."""
    nothing, length = ctypes.c_void_p(None), ctypes.c_size_t(size)
    flags = MAP_SHARED | MAP_POPULATE
    address = libc.mmap(nothing, length, protection, flags, descriptor, ctypes.c_long(0))
    if address is None or address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "cannot map the data")
    os.close(descriptor)
    return (ctypes.c_ubyte * size).from_address(address)


def install_filter(libc: Any, descriptor: int) -> None:
    """Puts the filter on this thread and on those that importing torch has started."""
    rules = b""
    while part := os.read(descriptor, 1 << 16):
        rules += part
    os.close(descriptor)
    if not rules:
        raise OSError("no filter")
    zero = ctypes.c_ulong(0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    number = ctypes.c_long(SYS_SECCOMP[os.uname().machine])
    program = SockFprog(len(rules) // 8, rules)
    flags = ctypes.c_ulong(SET_MODE_FILTER), ctypes.c_ulong(TSYNC)
    if libc.syscall(number, *flags, ctypes.byref(program)) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def give_up(
    error: BaseException, status: int, *, control: int = -1, frame: bytes = b""
) -> NoReturn:
    """Says what was raised, in one line at the end, sends the frame if there is one, and leaves."""
    try:
        traceback.print_exception(error, limit=-12)
        sys.stdout.flush()
        sys.stderr.flush()
        message = " ".join(str(error).split())[:400]
        if not isinstance(error, contract.Refusal):
            message = f"{type(error).__name__}: {message}"
        os.write(2, f"{message}\n".encode(errors="replace"))
        if frame:
            os.write(control, frame)
    finally:
        os._exit(status)


class Kernel:
    """The candidate, what it is given, and the memory."""

    out_of_reach: Mapping[str, str] = contract.ON_CPU

    def __init__(
        self, plan: dict[str, Any], source: bytes, inputs: Any, outputs: Any, gate: Any, looks: Any
    ) -> None:
        import torch

        self.plan = plan
        self.source = source
        self.tensor_type = torch.Tensor
        self.memory = {"inputs": inputs, "outputs": outputs}
        self.dtypes = {
            dtype: getattr(torch, dtype) for _, dtype, *_ in (*plan["inputs"], *plan["outputs"])
        }
        self.begin = partial(torch.set_grad_enabled, False)
        self.cpus = sorted(os.sched_getaffinity(0))
        self.empty, self.over = torch.empty, torch.frombuffer
        self.bytes = memoryview(inputs).cast("B")
        self.gate, self.looks = (memoryview(one).cast("B").cast("I") for one in (gate, looks))
        self.kept: dict[bytes, ReadySlot] = {}
        self.models: dict[tuple[int, ...], Any] = {}
        self.named: frozenset[str] | None = None
        """The parameters that `run` takes; None: any."""
        self.entry: Any = None
        self.module: Any = None
        self.crew: Any = None
        """Who makes several calls at a time; None: nobody has asked for any yet."""

    def load(self) -> None:
        """Executes the module and finds its entry point."""
        module = types.ModuleType("candidate")
        module.__file__ = NAME
        sys.modules["candidate"] = module
        text = self.source.decode("utf-8-sig")
        # So that a traceback shows the lines; there is no such file.
        linecache.cache[NAME] = (len(text), None, text.splitlines(keepends=True), NAME)
        exec(compile(self.source, NAME, "exec", dont_inherit=True), module.__dict__)
        self.enter(module)

    def enter(self, module: types.ModuleType) -> None:
        """Finds the entry point of an executed module and holds it against the contract."""
        name, inputs = self.plan["entry"], [one[0] for one in self.plan["inputs"]]
        contract.check(name, module, self.plan["axes"], inputs)
        self.module = module
        self.entry = getattr(module, name)
        self.named = contract.parameters(self.entry)

    def prepare(self, slot: int) -> ReadySlot:
        """The tensors of a slot; made once for each place in memory."""
        start = slot * ENTRY_BYTES
        entry = bytes(self.bytes[start : start + ENTRY_BYTES])
        if entry not in self.kept:
            if len(self.kept) >= KEPT:
                self.kept.clear()
            self.kept[entry] = self._make_slot(entry)
        return self.kept[entry]

    def _make_slot(self, entry: bytes) -> ReadySlot:
        plan = self.plan
        count = len(plan["axes"]) + len(plan["inputs"]) + len(plan["outputs"])
        numbers = list(struct.unpack_from(f"<{2 * count}Q", entry, 8)[1::2])
        axes = {name: numbers.pop(0) for name in plan["axes"]}
        offsets = numbers[-len(plan["outputs"]) :]
        tensors = {
            role: {one[0]: self._tensor(role, one, axes, numbers.pop(0)) for one in plan[role]}
            for role in ("inputs", "outputs")
        }
        written = zip(offsets, tensors["outputs"].values(), strict=True)
        words = [self._words(offset, one.nbytes // 4) for offset, one in written]
        if plan["entry"] == "ModelNew":
            return ReadySlot(tensors["inputs"], tensors["outputs"], self._model(axes), words)
        given = {**axes, **tensors["inputs"], **tensors["outputs"]}
        named = self.named
        arguments = {k: v for k, v in given.items() if named is None or k in named}
        is_written = named is not None and tensors["outputs"].keys() <= named
        awaited = {} if is_written else tensors["outputs"]
        return ReadySlot(arguments, awaited, None, words, may_write=named is None)

    def _words(self, offset: int, count: int) -> memoryview:
        whole = memoryview(self.memory["outputs"]).cast("B")
        return whole[offset : offset + 4 * count].cast("I")

    def _tensor(self, role: str, what: Specification, axes: dict[str, int], offset: int) -> Any:
        _, dtype, terms = what
        shape = [extent(term, axes) for term in terms]
        count = 1
        for length in shape:
            count *= length
        kind = self.dtypes[dtype]
        if count == 0:
            return self.empty(shape, dtype=kind)
        flat = self.over(self.memory[role], dtype=kind, count=count, offset=offset)
        return flat.view(shape)

    def _model(self, axes: dict[str, int]) -> Any:
        key = tuple(axes.values())
        if key not in self.models:
            self.models[key] = contract.make_model(self.module, axes)
        return self.models[key]

    def call(self, prepared: ReadySlot) -> None:
        """One call, the copy of what it returns included."""
        arguments, awaited, model, _, may_write = prepared
        if model is not None:
            self.deliver(model(*arguments.values()), awaited)
            return
        result = self.entry(**arguments)
        if awaited and not (may_write and result is None):
            self.deliver(result, awaited)

    def gather(self, instances: int) -> None:
        """Has so many threads for calls at the same time, this one among them."""
        self.crew = self.crew or crew.Crew(instances, self.cpus, self.begin)

    def call_together(self, prepared: list[ReadySlot], instances: int) -> None:
        """One call of each, at the same time; of none, so many threads do nothing."""
        calls = [partial(self.call, each) for each in prepared]
        self.crew.work(calls or [crew.do_nothing] * instances)

    def sum(self, prepared: ReadySlot, choice: int) -> int:
        """Of every n-th word of each output, from one that `choice` names, modulo 2^64."""
        total = 0
        for words in prepared.words:
            step = len(words) // SUMMED_WORDS + 1
            total += sum(words[choice % step :: step].tolist())
        return total & MOST

    def deliver(self, result: Any, outputs: Tensors) -> None:
        """Copies returned tensors; raises TypeError for anything that is not exactly right."""
        results = result if isinstance(result, tuple | list) else (result,)
        if len(results) != len(outputs):
            raise TypeError(f"{len(results)} outputs were returned, not {len(outputs)}")
        for (name, output), found in zip(outputs.items(), results, strict=True):
            # Not isinstance: a subclass can put work off, or lie about itself (A16, C3).
            if type(found) is not self.tensor_type:
                raise TypeError(f"output {name} is a {type(found).__name__}, not a torch.Tensor")
            if found.dtype != output.dtype or found.shape != output.shape:
                raise TypeError(
                    f"output {name} is {found.dtype} {list(found.shape)}, "
                    f"not {output.dtype} {list(output.shape)}"
                )
            output.copy_(found)


def extent(term: str, axes: dict[str, int]) -> int:
    """One dimension for concrete axis values: a sum of products (kernelbench/terms.py)."""
    products = (product.split("*") for product in term.replace(" ", "").split("+"))
    return sum(
        math.prod(int(part) if part.isdigit() else axes[part] for part in parts)
        for parts in products
    )


def read_frame(control: int) -> tuple[int, int, int, int] | None:
    """The next frame, None where the referee is gone."""
    held = os.read(control, FRAME.size)
    return FRAME.unpack(held) if len(held) == FRAME.size else None


def serve(control: int, kernel: Kernel, clock: Callable[[], int]) -> None:
    """Answers frames until the referee is gone. `clock` was taken before the candidate ran."""
    is_loaded, sleepers = False, crew.Sleepers()
    while frame := read_frame(control):
        kind, nonce, first, count = frame
        many = 1 if kind == CALL else count
        may_count = is_loaded or kind == TOGETHER
        if first + many > MAX_SLOTS or (count and not may_count):
            os._exit(BROKEN)
        answer, told, number = PONG, 0, 0
        try:
            if kind == PING:
                if not is_loaded:
                    sleepers.start()
                for slot in range(first, first + count):
                    kernel.prepare(slot)
            elif kind == CALL:
                prepared = kernel.prepare(first) if is_loaded else None
                await_gate(kernel.gate, kernel.looks, nonce)
                answer = DONE
                if prepared:
                    start = clock()
                    for _ in range(1 + count):
                        kernel.call(prepared)
                    number = kernel.sum(prepared, kernel.gate[1])
                    # Both clocks cover the same.
                    told = clock() - start
            elif kind == TOGETHER:
                slots = range(first, first + count)
                every = [kernel.prepare(slot) for slot in slots] if is_loaded else []
                kernel.gather(count)
                await_gate(kernel.gate, kernel.looks, nonce)
                answer, start = DONE, clock()
                kernel.call_together(every, count)
                number = sum(kernel.sum(each, kernel.gate[1]) for each in every) & MOST
                told = clock() - start
            elif kind == LOAD and not is_loaded:
                sleepers.end()
                if kernel.crew:
                    kernel.crew.bind()
                kernel.load()
                answer, is_loaded = READY, True
            else:
                os._exit(BROKEN)
        except BaseException as error:
            # A candidate may raise anything, SystemExit too: all of it is its own end.
            if refusal := contract.refusal(error, kernel.out_of_reach):
                give_up(refusal, REFUSED_BY_US)
            is_unloadable = kind == LOAD and isinstance(error, Exception)
            answered = FRAME.pack(REFUSED, nonce, 0, 0) if is_unloadable else b""
            give_up(error, RAISED, control=control, frame=answered)
        os.write(control, FRAME.pack(answer, nonce, told, number))
    os._exit(0)


def await_gate(gate: Any, looks: Any, nonce: int) -> None:
    """Without sleep, so that no time of waking up is measured; on one CPU the referee must run."""
    turn = 1
    while gate[0] != nonce:
        looks[0] = turn & 0xFFFFFFFF
        if turn % 2048 == 0:
            os.sched_yield()
        turn += 1


def start() -> tuple[int, Kernel]:
    """Everything that comes before the candidate."""
    *numbers, folder = sys.argv[1:]
    control, inputs, input_bytes, outputs, output_bytes, rules, gate, looks = map(int, numbers)
    with open(f"{folder}/plan.json", "rb") as file:
        plan = json.load(file)
    with open(f"{folder}/{NAME}", "rb") as file:
        source = file.read()
    sys.path += plan["packages"]
    import torch

    torch.set_grad_enabled(False)
    contract.keep_from_compiling(torch)
    libc = system()
    kernel = Kernel(
        plan,
        source,
        map_memory(libc, inputs, input_bytes, PROT_READ),
        map_memory(libc, outputs, output_bytes, PROT_READ | PROT_WRITE),
        map_memory(libc, gate, GATE_BYTES, PROT_READ),
        map_memory(libc, looks, GATE_BYTES, PROT_READ | PROT_WRITE),
    )
    libc.prctl(PR_SET_DUMPABLE, ctypes.c_ulong(0))
    if ctypes.CDLL(f"{folder}/refused_call.so").kw_tell_refused_calls() != 0:
        raise OSError("no handler for refused system calls")
    install_filter(libc, rules)
    # What torch consists of need not be looked at by every collection within a timed call.
    gc.collect()
    gc.freeze()
    return control, kernel


def main() -> None:
    """Starts, says so, and serves."""
    if len(sys.argv) != 10:
        os._exit(USAGE)
    try:
        control, kernel = start()
    except BaseException as error:
        # Before READY there is no code of a candidate: whatever it is, it is our failure.
        give_up(error, START_FAILED)
    os.write(control, FRAME.pack(READY, 0, 0, 0))
    serve(control, kernel, time.perf_counter_ns)


if __name__ == "__main__":
    main()
