"""The referee process: holds the seeds, the truth, the clock and the verdict.

Run as `python -m kernelwright.verifier.referee CONTROL_FD` by verifier/client.py with an
environment that holds no secret. It answers one JSON message per order and dies with its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import traceback
from typing import Any

from ..errors import KernelwrightError
from .evaluation import evaluate
from .request import Order, Task
from .session import Session
from .wire import Closed, receive, send

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def main() -> None:
    """Serves orders until the campaign closes the channel."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the campaign's to handle
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        session = Session.open(Task.model_validate(receive(channel)))
    except Exception as error:  # told to the campaign, which raises it
        send(channel, _failure(error))
        return
    send(channel, {
        "isolation": session.isolation.model_dump(mode="json"), "facts": session.facts,
    })  # fmt: skip
    try:
        while True:
            order = Order.model_validate(receive(channel))
            send(channel, _answer(session, order))
    except Closed:
        session.close()


def _answer(session: Session, order: Order) -> dict[str, Any]:
    """A verdict; a failure of the harness is tried once more before it is reported."""
    for attempt in (1, 2):
        try:
            return {"verdict": evaluate(session, order).model_dump(mode="json")}
        except Exception as error:
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
