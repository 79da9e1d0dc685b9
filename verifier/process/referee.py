# SPDX-License-Identifier: Apache-2.0
"""The referee process: holds the seeds, the truth, the clock and the verdict.

Run as `python -m kernelwright.verifier.process.referee CONTROL_FD` by verifier/process/client.py
with an environment that holds no secret. It answers one JSON message per order and dies with its
parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from ...errors import KernelwrightError
from ...sandbox.builders import toolchain
from ..evaluation import count
from ..request import Order, Outlook, Task
from ..stands.leased import Machine
from .panel import Panel
from .prefetch import Ahead, ahead_of
from .wire import COUNT, PREPARE, Closed, receive, send

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _LARGEST_KEPT = 256 << 20, 64 << 20
"""What the allocator keeps rather than give it back and ask for it again, a page at a time: answers
and inputs of one size come and go hundreds of times."""


def main() -> None:
    """Serves orders until the campaign closes the channel."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_DUMPABLE, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the campaign's to handle
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        panel = open_here(Task.model_validate(receive(channel)))
    except Exception as error:  # told to the campaign, which raises it
        send(channel, _failure(error))
        return
    counting = panel.first.counting
    send(
        channel,
        {
            "isolation": panel.isolation.model_dump(mode="json"),
            "facts": panel.facts,
            "is_emulated": panel.is_emulated,
            "counting": counting.model_dump(mode="json") if counting else None,
        },
    )
    ahead = ahead_of(panel.first)
    try:
        while True:
            message = receive(channel)
            if "foreseen" in message:
                ahead.foresee(Outlook.model_validate(message).foreseen)
            elif PREPARE in message:
                send(channel, _prepare(panel))
            elif COUNT in message:
                send(channel, _count(panel, Order.model_validate(message[COUNT])))
            else:
                send(channel, _answer(panel, ahead, Order.model_validate(message)))
    except Closed:
        ahead.close()
        panel.close()


def open_here(task: Task) -> Panel:
    """The stands of this process, with the toolkit and on the devices that the task names."""
    toolchain.prefer(Path(task.cuda_home) if task.cuda_home else None, task.cuda_compiler)
    return Panel.open(task, Machine(allowed=task.devices))


def _prepare(panel: Panel) -> dict[str, Any]:
    try:
        return {"preparation": panel.wait_prepared().model_dump(mode="json")}
    except Exception as error:
        # Of any kind: a process that says nothing tells less than its error.
        return _failure(error)


def _count(panel: Panel, order: Order) -> dict[str, Any]:
    try:
        return {"counted": count(panel.first, order).model_dump(mode="json")}
    except Exception as error:
        # Of any kind: whoever asked is told, and the referee lives on.
        return _failure(error)


def _answer(panel: Panel, ahead: Ahead, order: Order) -> dict[str, Any]:
    """A verdict; a failure of the harness is tried once more before it is reported."""
    for attempt in (1, 2):
        try:
            verdict = panel.evaluate(order, ahead.take(order))
            return {"verdict": verdict.model_dump(mode="json")}
        except Exception as error:
            # Of any kind: whoever asked is told, and the referee lives on.
            if attempt == 2:
                return _failure(error)
    raise AssertionError


def _failure(error: Exception) -> dict[str, Any]:
    told = isinstance(error, KernelwrightError)
    return {
        "error": type(error).__name__,
        "message": str(error),
        "hint": error.hint if isinstance(error, KernelwrightError) else "",
        "trace": "" if told else traceback.format_exc(limit=12),
    }


if __name__ == "__main__":
    main()
    os._exit(0)
