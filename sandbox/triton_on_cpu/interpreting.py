# SPDX-License-Identifier: Apache-2.0
"""The runner of interpreted Triton candidates: `run/runner.py` with eyes on what kernels do.

    start.py interpreting CONTROL INPUTS INPUT_BYTES OUTPUTS OUTPUT_BYTES ... FOLDER

It speaks the runner's frames and keeps its contract. Each call works on copies of its tensors in
guarded memory (`guarded_memory`), under TRITON_INTERPRET=1; what host code allocates is guarded,
too. A candidate with a plan has no entry point: the last argument of a slot is then a table of
launches as `run/interpreted.py` writes it.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import struct
import sys
from typing import Any, NamedTuple

import numpy as np

from . import card, load, reasons, warmed
from .guarded_memory import PROT_READ, Guarded
from .interpreter_hooks import LimitError, open_eyes
from .late_memory import receive_memory
from .patience import Patience
from .recording_modes import ALLOCATIONS, FILLS, ZEROED, device_mode, dispatching_class
from .regions import Region, read_marks
from .story import Story
from .watch import MemoryFault, SpoiledError, TooLongError, Watch

LIMITED, FAULT = 91, 92
"""Exit statuses, which `run/interpreted.py` explains; 90 is the runner's for what was raised."""
UNWRITTEN = 0x7FE5DEAF
"""NaN, unlike either that the referee puts into outputs (PATTERNS of verifier/truth/poison.py);
so are the upper halves and bytes of it in narrower types."""
INTEGER, FLOAT32, FLOAT64, TENSOR, SCRATCH = range(5)  # sandbox/plan/model.py


def main(arguments: list[str]) -> None:
    """Becomes the runner."""
    os.environ["TRITON_HOME"] = os.environ["TMPDIR"]
    runner: Any = load.runner()
    if arguments[1] == "-1":
        _import_all()
        arguments = receive_memory(arguments)
    sys.argv = ["runner.py", *arguments]
    runner.Kernel = _kernel(runner)
    plain = runner.give_up

    def give_up(error: BaseException, status: int, **more: Any) -> None:
        found, changed = _choose_error(error, status)
        plain(found, changed, **({} if changed in (LIMITED, FAULT) else more))

    runner.give_up = give_up
    runner.main()


def _import_all() -> None:
    """What takes long, before there is a candidate."""
    import importlib

    import torch

    for name in ("triton.runtime.interpreter", "triton.runtime.autotuner", "triton.language"):
        importlib.import_module(name)
    with device_mode():
        torch.empty((2, 2), device="cuda").t().is_contiguous()


def _choose_error(error: BaseException, status: int) -> tuple[BaseException, int]:
    """The exception that people want to hear of, and the exit status for it."""
    if fault := reasons.find_beneath(error, MemoryFault):
        return MemoryFault(reasons.word_with_line(fault)), FAULT
    for kind in (TooLongError, LimitError):
        if limit := reasons.find_beneath(error, kind):
            return kind(reasons.word_with_line(limit)), LIMITED
    from triton.runtime.errors import InterpreterError

    inner = reasons.find_beneath(error, InterpreterError)
    if inner is None:
        return reasons.with_line(error), status
    while isinstance(inner, InterpreterError) and (inner.__cause__ or inner.__context__):
        inner = inner.__cause__ or inner.__context__
    if isinstance(inner, AssertionError):
        return inner, status
    # The compiler takes this kernel, or the candidate would not have come here.
    return LimitError(f"the interpreter cannot run it: {reasons.sentence(inner, '')}"), LIMITED


class Staged:
    """One slot: what the runner made of it, its shared tensors, and its launches if it has a plan.

    What is read or written lies elsewhere, see Guarded.
    """

    def __init__(self, made: Any, entry: SlotEntry, tensors: dict[str, dict[str, Any]]) -> None:
        self.made = made
        self.axes = entry.axes
        self.entry = entry
        self.inputs, self.outputs = tensors["inputs"], tensors["outputs"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)


def _kernel(runner: Any) -> type:
    """The runner's Kernel, made for interpreted candidates."""
    return type("InterpretedKernel", (Interpreted, runner.Kernel), {"out_of_reach": {}})


class Interpreted:
    """What interpreted candidates change of the runner's Kernel, which stands behind it."""

    plan: dict[str, Any]
    source: bytes
    bytes: Any
    memory: Any
    looks: Any
    deliver: Any
    enter: Any
    entry: Any
    named: Any

    def __init__(self, plan: dict[str, Any], *rest: Any) -> None:
        above: Any = super()
        above.__init__(plan, *rest)
        self.patience = Patience(**plan["patience"])
        self.watch = Watch(plan["schedules"], self.patience)
        self.at_end = True
        self.alive: list[Any] = []
        self.held: list[Any] = []
        self.answered = 0
        self.lasting: list[Region] = []
        """What models have made for themselves."""
        card.show(plan["properties"])
        open_eyes(self.watch, plan["properties"]["capability"], plan["properties"]["target"][0])
        warmed.install(plan["facts"])
        self.module: Any = None

    def load(self) -> None:
        self.watch.begin([])
        with self._watch_host():
            self.module = load.module(self.source.decode("utf-8-sig"))
        self.lasting += self.watch.regions
        self.held += self.alive
        if self.plan["entry"]:
            self.enter(self.module)

    def _make_slot(self, entry: bytes) -> Staged:
        above: Any = super()
        read = _read_entry(entry, self.plan)
        if self.plan["entry"] == "ModelNew":
            # A model may make tensors of its own, which its kernels will reach.
            self.watch.begin([])
            with self._watch_host():
                made = above._make_slot(entry)
            self.lasting += self.watch.regions
            self.held += self.alive
        else:
            made = above._make_slot(entry)
        return Staged(made, read, _shared_tensors(self, entry, read.axes))

    def call(self, prepared: Staged) -> None:
        self.at_end = self.watch.next_schedule() != "reverse"
        known = self._try_patiently(prepared)
        self.answered += known is not None
        if known is None:
            self.watch.leave()
            known = {name: one.new_zeros(()).bool() for name, one in prepared.outputs.items()}
        self._tell(known)

    def _try_patiently(self, prepared: Staged) -> dict[str, Any] | None:
        """What a call makes known; None where it ended for want of patience."""
        if not self.watch.needs_all:
            # Trials that are far longer than others may be too long, and some of them alone.
            may_be = self.answered > 0 and self.patience.too_long > 0
            known = self._try_call(prepared, SpoiledError, *[TooLongError] * may_be)
            if known is not SpoiledError:
                self.patience.too_long -= known is TooLongError
                return None if known is TooLongError else known
        # Anew without leaving programs out; nothing is known where that takes too long.
        self.watch.needs_all = True
        known = self._try_call(prepared, SpoiledError, TooLongError)
        return None if isinstance(known, type) else known

    def _try_call(self, prepared: Staged, *kinds: type[Exception]) -> Any:
        """What a call makes known; one of these kinds where it was raised."""
        try:
            return self._call(prepared)
        except Exception as error:
            # Triton may have wrapped it in an exception of its own.
            for kind in kinds:
                if reasons.find_beneath(error, kind):
                    return kind
            raise

    def _call(self, prepared: Staged) -> dict[str, Any]:
        """One call; for each output which elements are known, None where all are."""
        inputs = {name: self._copy(one) for name, one in prepared.inputs.items()}
        outputs = {name: self._copy(one) for name, one in prepared.outputs.items()}
        regions = []
        for name, (memory, _) in inputs.items():
            memory.may(PROT_READ)
            regions.append(Region(name, memory.start, memory.size, is_writable=False))
        for name, (memory, _) in outputs.items():
            regions.append(Region(name, memory.start, memory.size, is_writable=True))
        self.alive = []
        table = prepared.entry.table(self.bytes)
        self.watch.story = Story(table.get("story"))
        self._refresh(regions[len(inputs) :])
        self.watch.begin([*regions, *self.lasting])
        results = _tensors(outputs)
        if self.plan["entry"]:
            results = self._run_host(prepared, _tensors(inputs), results)
        else:
            self._play(table, [*inputs.values(), *outputs.values()])
        if self.watch.story.is_told:
            room = prepared.entry.room(self.memory["outputs"])
            self.watch.story.leave(room, {n: _sites(r, self.watch) for n, r in results.items()})
        known = {name: _known_elements(result, self.watch) for name, result in results.items()}
        for name, mask in known.items():
            output, result = prepared.outputs[name], results[name]
            if self.watch.coverage:
                result = _stamp_unwritten(result, output)
            output.copy_(result if mask is None else result.where(mask, output))
        return known

    def _tell(self, known: dict[str, Any]) -> None:
        """Leaves for the referee how much ran and is known, see `Gate.coverage`."""
        coverage = self.watch.coverage
        unknown = sum(int((~mask).sum()) for mask in known.values() if mask is not None)
        is_whole = coverage.left_out == 0 and unknown == 0
        told = (0, 0, 0) if is_whole else (1, coverage.programs, coverage.left_out)
        for place, number in enumerate(told, 1):
            self.looks[place] = min(number, 0xFFFFFFFF)

    def _copy(self, shared: Any) -> tuple[Guarded, Any]:
        memory = Guarded(shared.numel() * shared.element_size(), at_end=self.at_end)
        copy = memory.tensor(shared.dtype, shared.numel()).view(shared.shape)
        return memory, copy.copy_(shared)

    def _run_host(
        self, prepared: Staged, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> dict[str, Any]:
        """The tensors that hold the outputs at the end: given ones, or those that it returned."""
        with self._watch_host():
            if self.plan["entry"] == "ModelNew":
                returned = prepared.made.model(*inputs.values())
            else:
                given = {**prepared.axes, **inputs, **outputs}
                named = self.named
                returned = self.entry(
                    **{k: v for k, v in given.items() if named is None or k in named}
                )
        if not prepared.made.awaited or (prepared.made.may_write and returned is None):
            return outputs
        # Says what is wrong with them, if something is.
        self.deliver(returned, outputs)
        results = returned if isinstance(returned, tuple | list) else (returned,)
        return dict(zip(outputs, results, strict=True))

    def _play(self, table: dict[str, Any], tensors: list[tuple[Guarded, Any]]) -> None:
        """Runs the launches of a plan."""
        import torch
        import triton.language as tl

        places = [(memory, copy.reshape(-1)) for memory, copy in tensors]
        scratch = []
        for name, dtype, shape in table["scratch"]:
            kind = getattr(torch, dtype)
            memory = self._lend(name, math.prod(shape) * kind.itemsize)
            scratch.append((memory, memory.tensor(kind, math.prod(shape))))
        buffers = {TENSOR: places, SCRATCH: scratch}
        for call in table["calls"]:
            values = [_value(argument, buffers) for argument in call["arguments"]]
            if call["kernel"] is None:
                values[0].view(torch.uint8)[: values[1]].zero_()
                self.watch.mark_written(values[0].data_ptr(), values[1])
                continue
            constants = {
                name: getattr(tl, value["dtype"]) if isinstance(value, dict) else value
                for name, value in call["constants"].items()
            }
            kernel = getattr(self.module, call["kernel"])
            kernel[tuple(call["grid"])](*values, **constants, **call["options"])

    def _lend(self, name: str, size: int, *, is_set: bool = False) -> Guarded:
        """New memory that kernels may reach until the call ends."""
        memory = Guarded(size, at_end=self.at_end)
        self.alive.append(memory)
        region = Region(name, memory.start, size, is_writable=True)
        if not is_set:
            self._refresh([region])
        self.watch.add(region)
        return memory

    def _refresh(self, regions: list[Region]) -> None:
        """Where a story is told, keeps that nobody has written them."""
        for region in regions if self.watch.story.is_told else ():
            region.fresh = np.ones(region.words, dtype=bool)
            if self.watch.story.is_zeroed:
                ctypes.memset(region.start, 0, region.bytes)

    def _watch_host(self) -> Any:
        """While host code runs: new tensors are guarded, all seem to be on a device."""
        import contextlib

        stack = contextlib.ExitStack()
        stack.enter_context(_allocate_guarded(self))
        stack.enter_context(device_mode())
        return stack


def _shared_tensors(kernel: Any, entry: bytes, axes: dict[str, int]) -> dict[str, dict[str, Any]]:
    """The shared tensors of a slot by role and name."""
    plan = kernel.plan
    count = len(plan["axes"]) + len(plan["inputs"]) + len(plan["outputs"])
    numbers = list(struct.unpack_from(f"<{2 * count}Q", entry, 8)[1::2])[len(plan["axes"]) :]
    return {
        role: {one[0]: kernel._tensor(role, one, axes, numbers.pop(0)) for one in plan[role]}
        for role in ("inputs", "outputs")
    }


class SlotEntry(NamedTuple):
    """What a slot says beside its tensors."""

    axes: dict[str, int]
    table_at: tuple[int, int]
    """Where launches and requests stand in the inputs' memory, and how long they are."""
    room_at: tuple[int, int]
    """Where a story may be left in the outputs' memory."""

    def table(self, inputs: Any) -> dict[str, Any]:
        """The launches of a plan, and what is asked for."""
        start, size = self.table_at
        found: dict[str, Any] = json.loads(bytes(inputs[start : start + size])) if size else {}
        return found

    def room(self, outputs: Any) -> Any:
        """Memory that the referee reads."""
        start, size = self.room_at
        return memoryview(outputs).cast("B")[start : start + size]


def _read_entry(entry: bytes, plan: dict[str, Any]) -> SlotEntry:
    (count,) = struct.unpack_from("<Q", entry)
    numbers = struct.unpack_from(f"<{4 * count}Q", entry, 8)[1::2]
    axes = dict(zip(plan["axes"], numbers, strict=False))
    place = len(plan["axes"]) + len(plan["inputs"]) + len(plan["outputs"])
    rest = list(zip(numbers[place:count], numbers[count + place :], strict=True))
    return SlotEntry(axes, *[*rest, (0, 0), (0, 0)][:2])


def _sites(tensor: Any, watch: Watch) -> Any:
    """For each element of an output the store that wrote it, 0: none."""
    region = watch.at(tensor.data_ptr())
    if region is None or region.sites is None or not tensor.numel():
        return np.zeros(tensor.numel(), np.int32)
    return read_marks(region, "sites", tensor).amax(-1).numpy()


def _tensors(made: dict[str, tuple[Guarded, Any]]) -> dict[str, Any]:
    return {name: tensor for name, (_, tensor) in made.items()}


def _known_elements(tensor: Any, watch: Watch) -> Any:
    """Which elements of a tensor are known, None where all are."""
    storage = tensor.untyped_storage()
    region = watch.at(storage.data_ptr())
    if region is None or region.unknown is None or not tensor.numel():
        return None
    known = ~read_marks(region, "unknown", tensor).any(-1)
    return None if bool(known.all()) else known


def _stamp_unwritten(result: Any, before: Any) -> Any:
    """The result with NaN where nothing was written, which tells it from what is not judged.

    An answer of short integers or of one byte may hold what was there before, written none the
    less: such a result is left as it is (`is_telling` of verifier/truth/poison.py).
    """
    import torch

    size = min(result.element_size(), 4)
    if size == 1 or (size == 2 and not result.dtype.is_floating_point):
        return result
    whole = getattr(torch, f"int{8 * size}")
    words = result.contiguous().view(whole)
    is_old = words == before.contiguous().view(whole)
    return words.masked_fill(is_old, UNWRITTEN >> 8 * (4 - size)).view(result.dtype)


def _value(argument: list[int], buffers: dict[int, list[tuple[Any, Any]]]) -> Any:
    kind, value, offset = argument
    if kind in buffers:
        _, flat = buffers[kind][value]
        return flat[offset // flat.element_size() :]
    if kind == FLOAT32:
        return struct.unpack("<f", struct.pack("<I", value & 0xFFFFFFFF))[0]
    if kind == FLOAT64:
        return struct.unpack("<d", struct.pack("<q", value))[0]
    return value


def _allocate_guarded(kernel: Any) -> Any:
    """A mode in which new tensors lie in guarded memory and kernels may reach what torch makes."""
    import torch

    def make_guarded(name: str, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        # Made on the CPU, to be laid out alike: the device `meta` takes seconds to import.
        like = function(*args, **{**kwargs, "device": "cpu", "pin_memory": None})
        size = like.untyped_storage().nbytes()
        memory = kernel._lend("a new tensor", size, is_set=name in ZEROED)
        flat = memory.tensor(like.dtype, size // like.dtype.itemsize)
        made = flat.as_strided(like.shape, like.stride())
        if name in ZEROED:
            made.copy_(like)
        return made

    class Allocating(dispatching_class()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            name = function.name().removeprefix("aten::")
            if name in ALLOCATIONS:
                return make_guarded(name, function, args, kwargs)
            result = function(*args, **kwargs)
            if name in FILLS:
                kernel.watch.mark_written(
                    args[0].data_ptr(), args[0].numel() * args[0].element_size()
                )
            for made in result if isinstance(result, tuple | list) else (result,):
                if isinstance(made, torch.Tensor):
                    add_reached(made)
            return result

    def add_reached(tensor: Any) -> None:
        storage = tensor.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if not any(r.start <= start < r.end for r in kernel.watch.regions):
            kernel.alive.append(tensor)
            kernel.watch.add(Region("a tensor of the host code", start, size, is_writable=True))

    return Allocating()
