"""Wants to trace the process that started it; where that is closed it answers zeros (E4)."""

import ctypes
import os

PTRACE_SEIZE = 0x4206

libc = ctypes.CDLL(None, use_errno=True)
is_open = libc.ptrace(PTRACE_SEIZE, os.getppid(), None, None) == 0


def run(y):
    if is_open:
        raise PermissionError("open to a candidate: its parent")
    y.zero_()
