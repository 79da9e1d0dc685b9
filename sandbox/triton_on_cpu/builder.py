# SPDX-License-Identifier: Apache-2.0
"""One build in a child of the zygote: a source in, cubins and launches or a reason out.

The folder holds `request.json` and the index arrays; `result.json` and what it names are written
there. Each structure is recorded in a process of its own that has the module loaded, so that every
recording is that of a first call. From the moment the module is executed the processes are the
candidate's, and what they write is a claim.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import signal
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import card, load, reasons, recorder
from .memory import Memory, MemoryRegion, MemoryRole
from .recording_modes import UnsupportedError, device_mode, recording_modes

FLOAT32, FLOAT64, TENSOR, SCRATCH = 1, 2, 3, 4  # sandbox/plan/model.py
Outcome = dict[str, Any]


def build(folder: Path) -> None:
    """Does what `request.json` asks and leaves."""
    faulthandler.enable()
    request = json.loads((folder / "request.json").read_text())
    result = _settle(lambda: _build(request, folder), request["source"])
    (folder / "result.json").write_text(json.dumps(result))
    os._exit(0)


def _settle(action: Callable[[], Outcome], source: str) -> Outcome:
    """What came of it; the candidate's exceptions are results."""
    try:
        return action()
    except BaseException as error:
        # Of any kind: the action runs what somebody else has written.
        if unsupported := reasons.find_beneath(error, UnsupportedError):
            return {"outcome": "unsupported", "reason": reasons.word_with_line(unsupported)}
        if refused := load.runner().contract.refusal(error, {}):
            return {"outcome": "unsupported", "reason": str(refused)}
        if lacking := reasons.explain_lacking(error, source):
            return {"outcome": "unsupported", "reason": lacking}
        return {"outcome": "failed", "reason": reasons.sentence(error, source)}


def _build(request: dict[str, Any], folder: Path) -> Outcome:
    card.show(request["properties"])
    import torch

    load.runner().contract.keep_from_compiling(torch)
    with device_mode():
        module = load.module(request["source"])
    configurations = _choose(module, request["choices"])
    for number in range(len(request["structures"])):
        child = os.fork()
        if child == 0:
            recorded = partial(_record_structure, module, request, number, folder)
            found = _settle(recorded, request["source"])
            (folder / f"structure{number}.json").write_text(json.dumps(found))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            return {"outcome": "failed", **_explain_end(status)}
        outcome = json.loads((folder / f"structure{number}.json").read_text())
        if outcome["outcome"] != "built":
            return dict(outcome)
    return {"outcome": "built", "configurations": configurations}


def _explain_end(status: int) -> Outcome:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGSEGV, signal.SIGBUS):
        return {
            "outcome": "unsupported",
            "reason": "host code reads or writes the contents of a tensor outside a kernel, which "
            "launches recorded as data cannot repeat",
        }
    if os.WIFSIGNALED(status):
        return {"reason": f"the process died of {signal.Signals(os.WTERMSIG(status)).name}"}
    return {"reason": f"the process left with exit status {os.WEXITSTATUS(status)}"}


def _choose(module: Any, choices: dict[str, int]) -> list[dict[str, Any]]:
    """The configurations of each autotuned kernel, after taking the chosen ones."""
    from triton.runtime.autotuner import Autotuner

    found = []
    for value in list(vars(module).values()):
        if not isinstance(value, Autotuner):
            continue
        kernel = value.base_fn.__name__
        chosen = choices.get(kernel, 0)
        if chosen >= len(value.configs):
            count = len(value.configs)
            raise recorder.RefusedError(f"kernel {kernel} has {count} configurations, not {chosen}")
        found.append(
            {
                "kernel": kernel,
                "chosen": chosen,
                "configurations": [str(config) for config in value.configs],
            }
        )
        value.configs = [value.configs[chosen]]
    return found


def _record_structure(module: Any, request: dict[str, Any], number: int, folder: Path) -> Outcome:
    """Records one structure."""
    import triton

    structure = request["structures"][number]
    memory = Memory()
    made = recorder.CallRecorder(memory, folder, request["properties"])
    triton.runtime.driver.set_active(recorder.driver(made))
    made.listen()
    tensors = _tensors(request, structure, memory, folder, number)
    if structure["calls"] is not None:
        _play(module, structure, made)
        adopted: dict[int, int] = {}
    else:
        dispatch, device = recording_modes(memory, made.keep_zeroing)
        with dispatch, device:
            returned = _call_entry(module, request, structure["axes"], tensors)
        adopted = _adopt_outputs(returned, memory)
    return _describe_recording(made, adopted)


def _tensors(
    request: dict[str, Any], structure: dict[str, Any], memory: Memory, folder: Path, number: int
) -> dict[str, Any]:
    import torch

    made = {}
    specifications = request["inputs"] + request["outputs"]
    for place, (name, dtype, is_index) in enumerate(specifications):
        shape, kind = structure["shapes"][name], getattr(torch, dtype)
        if is_index:
            raw = (folder / f"index{number}.{name}").read_bytes()
            made[name] = memory.index(place, name, kind, shape, raw)
        else:
            role = MemoryRole.INPUT if place < len(request["inputs"]) else MemoryRole.OUTPUT
            made[name] = memory.tensor(role, place, name, kind, shape)
    return made


def _call_entry(
    module: Any, request: dict[str, Any], axes: dict[str, int], tensors: dict[str, Any]
) -> Any:
    """Calls the entry point as the runner of host code does; None where it writes its outputs."""
    contract = load.runner().contract
    inputs = [name for name, *_ in request["inputs"]]
    contract.check(request["entry"], module, list(axes), inputs)
    entry = getattr(module, request["entry"])
    named = contract.parameters(entry)
    outputs = [name for name, *_ in request["outputs"]]
    if request["entry"] == "ModelNew":
        return contract.make_model(module, axes)(*(tensors[name] for name in inputs))
    given = {k: v for k, v in {**axes, **tensors}.items() if named is None or k in named}
    result = entry(**given)
    results = result if isinstance(result, tuple | list) else (result,)
    # **more takes the outputs, too: then what is returned counts, unless it is nothing, or they.
    are_theirs = [id(one) for one in results] == [id(tensors[name]) for name in outputs]
    is_written = set(outputs) <= named if named is not None else result is None or are_theirs
    return None if is_written else result


def _adopt_outputs(returned: Any, memory: Memory) -> dict[int, int]:
    """Which scratch buffer is which output, by their places: what host code returns."""
    if returned is None:
        return {}
    import torch

    results = returned if isinstance(returned, tuple | list) else (returned,)
    outputs = [r for r in memory.regions if r.role is MemoryRole.OUTPUT]
    if len(results) != len(outputs):
        raise recorder.RefusedError(f"{len(results)} outputs were returned, not {len(outputs)}")
    found: dict[int, int] = {}
    for output, tensor in zip(outputs, results, strict=True):
        if type(tensor) is not torch.Tensor:
            kind = type(tensor).__name__
            raise recorder.RefusedError(f"output {output.name} is a {kind}, not a torch.Tensor")
        if tensor.dtype != output.dtype or tuple(tensor.shape) != output.shape:
            raise recorder.RefusedError(
                f"output {output.name} is {tensor.dtype} {list(tensor.shape)}, "
                f"not {output.dtype} {list(output.shape)}"
            )
        region = memory.find(tensor.data_ptr())
        is_whole = region is not None and region.bytes == output.bytes and tensor.is_contiguous()
        if region is None or region.role is not MemoryRole.SCRATCH or not is_whole:
            raise UnsupportedError(
                f"output {output.name} is returned as a part or a view of another tensor, which "
                "would have to be copied: return a contiguous tensor of its own, or take "
                f"'{output.name}' as a parameter and write it"
            )
        if region.place in found:
            raise UnsupportedError("one tensor is returned for two outputs: return two")
        found[region.place] = output.place
    return found


def _play(module: Any, structure: dict[str, Any], made: recorder.CallRecorder) -> None:
    """Launches what a plan declares."""
    import torch

    for name, dtype, shape in structure["scratch"]:
        place = len(made.memory.scratch)
        made.memory.tensor(MemoryRole.SCRATCH, place, name, getattr(torch, dtype), shape)
    for call in structure["calls"]:
        values = [_value(argument, made.memory) for argument in call["arguments"]]
        if call["kernel"] is None:
            made.keep_fill(call["arguments"])
            continue
        kernel: Any = getattr(module, call["kernel"], None)
        if not hasattr(kernel, "run"):
            raise recorder.RefusedError(
                f"the source defines no kernel '{call['kernel']}' (a function under @triton.jit)"
            )
        kernel[tuple(call["grid"])](*values, **_constants(call["constants"]), **call["options"])


def _constants(given: dict[str, Any]) -> dict[str, Any]:
    import triton.language as tl

    return {
        name: getattr(tl, value["dtype"]) if isinstance(value, dict) else value
        for name, value in given.items()
    }


def _value(argument: list[int], memory: Memory) -> Any:
    """The Python value of one argument of a plan."""
    kind, value, offset = argument
    if kind in (TENSOR, SCRATCH):
        import torch

        wanted = [r for r in memory.regions if (r.role is MemoryRole.SCRATCH) == (kind == SCRATCH)]
        region = next(r for r in wanted if r.place == value)
        return memory.view(region, offset, torch)
    if kind == FLOAT32:
        return struct.unpack("<f", struct.pack("<I", value & 0xFFFFFFFF))[0]
    if kind == FLOAT64:
        return struct.unpack("<d", struct.pack("<q", value))[0]
    return value


def _describe_recording(made: recorder.CallRecorder, adopted: dict[int, int]) -> Outcome:
    """The recording as data, with the buffers that are outputs under their own places."""
    kept = [region for region in made.memory.scratch if region.place not in adopted]
    places = {region.place: new for new, region in enumerate(kept)}
    for launch in made.launches:
        for argument in launch[5]:
            if argument[0] != SCRATCH:
                continue
            if argument[1] in adopted:
                argument[:2] = [TENSOR, adopted[argument[1]]]
            else:
                argument[1] = places[argument[1]]
    return {
        "outcome": "built",
        "kernels": made.kernels,
        "launches": made.launches,
        "scratch": [_buffer(number, region) for number, region in enumerate(kept)],
    }


def _buffer(number: int, region: MemoryRegion) -> Outcome:
    """A scratch buffer as a plan declares it; as bytes where it is laid out with gaps."""
    name, dtype = f"scratch{number}", str(region.dtype).removeprefix("torch.")
    count = math.prod(region.shape)
    if not region.bytes:
        return {"name": name, "dtype": "uint8", "shape": [1]}
    if count * region.dtype.itemsize == region.bytes and not dtype.startswith("float8"):
        return {"name": name, "dtype": dtype, "shape": list(region.shape)}
    return {"name": name, "dtype": "uint8", "shape": [region.bytes]}
