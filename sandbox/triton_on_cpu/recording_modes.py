# SPDX-License-Identifier: Apache-2.0
"""What host code may do with tensors while it is recorded, and how the CPU's tensors look to it.

Views, allocations and filling with zeros can be replayed. Whatever else torch would compute between
two launches cannot, and is refused by name. To the host code all tensors seem to be on a device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .memory import Memory, MemoryRole

ALLOCATIONS = frozenset(
    {
        "empty.memory_format",
        "empty_strided",
        "empty_like",
        "new_empty",
        "new_empty_strided",
        "zeros",
        "zeros_like",
        "new_zeros",
        "full",
        "full_like",
        "new_full",
    }
)
ZEROED = ("zeros", "zeros_like", "new_zeros", "full", "full_like", "new_full")
FILLS = frozenset({"zero_", "fill_.Scalar"})
REMEDY = "compute it in a kernel, or take what is known beforehand from the axes"


class UnsupportedError(Exception):
    """The host code does what launches recorded as data cannot repeat."""


def dispatching_class() -> type:
    """The class of modes that see every operation; torch's own would import its compiler, which
    takes a second and a folder for temporary files that a jail need not have."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatching(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

    return Dispatching


def recording_modes(memory: Memory, zeroed: Callable[[Any, Any], None]) -> list[Any]:
    """The two modes to enter, in order; `zeroed` hears of each tensor that is set to zero."""
    return [_dispatch_mode(memory, zeroed), device_mode()]


def _dispatch_mode(memory: Memory, zeroed: Callable[[Any, Any], None]) -> Any:
    class Recording(dispatching_class()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            name = function.name().removeprefix("aten::")
            if name in ALLOCATIONS:
                if name.startswith(("full", "new_full")):
                    _only_zeros(args[2] if name == "new_full" else args[1], "a new tensor")
                like = function(*args, **{**kwargs, "device": "meta", "pin_memory": None})
                made = _scratch(memory, like)
                if name in ZEROED:
                    zeroed(made, memory)
                return made
            if name in FILLS:
                _only_zeros(0 if name == "zero_" else args[1], "a tensor")
                zeroed(args[0], memory)
                return args[0]
            if _is_view(function):
                return function(*args, **kwargs)
            if name == "_local_scalar_dense" and _is_index(memory, args[0]):
                return function(*args, **kwargs)
            raise UnsupportedError(_refusal(memory, name, args))

    return Recording()


def _scratch(memory: Memory, like: Any) -> Any:
    """A tensor without contents that is laid out as `like`, which is on `meta`."""
    place = len(memory.scratch)
    size = like.untyped_storage().nbytes() // like.dtype.itemsize
    flat = memory.tensor(MemoryRole.SCRATCH, place, f"scratch{place}", like.dtype, (size,))
    memory.regions[-1].shape = tuple(like.shape)
    return flat.as_strided(like.shape, like.stride())


def _only_zeros(value: Any, what: str) -> None:
    if value != 0:
        raise UnsupportedError(
            f"host code fills {what} with {value}, and only zeros can be repeated: let a kernel "
            "write it"
        )


def _refusal(memory: Memory, name: str, args: Any) -> str:
    import torch

    plain = name.split(".")[0]
    if plain == "_local_scalar_dense":
        return (
            "host code reads a value of a tensor (.item(), float(), if), so that its launches "
            f"depend on data: {REMEDY}"
        )
    given = [a for a in args if isinstance(a, torch.Tensor)]
    names = [r.name for r in (memory.find(g.data_ptr()) for g in given) if r is not None]
    on = f" on {', '.join(names)}" if names else ""
    return f"host code computes with torch.{plain.strip('_')}{on} outside a kernel: {REMEDY}"


def _is_view(function: Any) -> bool:
    """Whether it gives its argument's memory under another shape and writes nothing."""
    aliases = [result.alias_info for result in function._schema.returns]
    writes = any(
        a.alias_info is not None and a.alias_info.is_write for a in function._schema.arguments
    )
    return not writes and bool(aliases) and all(alias is not None for alias in aliases)


def _is_index(memory: Memory, tensor: Any) -> bool:
    region = memory.find(tensor.data_ptr())
    return region is not None and region.role is MemoryRole.INDEX


def device_mode() -> Any:
    """Shows the CPU's tensors as a device's, and takes `device="cuda"` for where they are."""
    import torch
    from torch.overrides import TorchFunctionMode

    shown = torch.device("cuda", 0)
    answers = {
        torch.Tensor.is_cuda.__get__: True,
        torch.Tensor.is_cpu.__get__: False,
        torch.Tensor.device.__get__: shown,
        torch.Tensor.get_device: 0,
    }

    class OnDevice(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if function in answers:
                return answers[function]
            if function is torch.Tensor.cuda:
                return args[0]
            if _names_a_device(kwargs.get("device")):
                kwargs["device"] = "cpu"
            if function is torch.Tensor.to:
                args = tuple("cpu" if _names_a_device(arg) else arg for arg in args)
            return function(*args, **kwargs)

    return OnDevice()


def _names_a_device(value: Any) -> bool:
    return str(value).split(":")[0] == "cuda" if value is not None else False
