# SPDX-License-Identifier: Apache-2.0
"""The tree of errors that Kernelwright raises, and the exit codes of its command line.

    KernelwrightError           anything below; a message with what happened and the remedy
    ├── UsageError              exit 2: a wrong argument or a malformed file of the user's
    │   ├── ConfigError         exit 2: a configuration file, variable or flag that cannot be used
    │   ├── UnknownNameError    exit 2: no such problem, workload …, with near matches
    │   ├── MatrixError         exit 2: a matrix file that cannot be used
    │   └── NotDiscriminatingError  exit 2: inputs on which a null kernel would pass
    ├── PrerequisiteError       exit 3: a compiler, sandbox, device or package is missing
    ├── ProviderError           exit 4: a model endpoint refused or failed
    ├── StorageError            exit 70: the store is not what we wrote, or cannot be understood
    │   ├── NoStoreError        exit 2: there is no store where one is to be read
    │   └── StorageRefusedError exit 3: the folder, the disk or another process does not allow it
    └── SandboxError            exit 70: the harness itself failed; never the candidate's fault

A bad kernel is a result (a Verdict), never one of these.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process's exit status says; a stable part of the command line."""

    DONE = 0
    NOT_MET = 1
    USAGE = 2
    PREREQUISITE = 3
    PROVIDER = 4
    NO_WIN = 5
    INTERNAL = 70
    INTERRUPTED = 130


class KernelwrightError(Exception):
    """Base of every error the harness raises; `hint` says what to do next."""

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(KernelwrightError):
    """The user asked for something that cannot be; the message has the value and its place."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A configuration file, environment variable or flag holds a value that cannot be used."""


class MatrixError(UsageError):
    """A matrix file is unreadable, malformed or unfit for the problem."""


class NotDiscriminatingError(UsageError):
    """A problem's inputs let a kernel pass that computes nothing; they cannot verify anybody."""


class UnknownNameError(UsageError):
    """A name that is not in a registry."""

    @classmethod
    def for_name(cls, kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
        """The error for `name`, with its nearest matches, else everything known, as the hint."""
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names) or '-'}"
        return cls(f"there is no {kind} named '{name}'", hint=hint)


class PrerequisiteError(KernelwrightError):
    """Something this machine lacks; the hint says how to get it. Printed without a traceback."""

    exit_code = ExitCode.PREREQUISITE


class ProviderError(KernelwrightError):
    """A model endpoint refused or failed."""

    exit_code = ExitCode.PROVIDER

    def __init__(self, message: str, *, hint: str = "", is_retryable: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_retryable = is_retryable


class StorageError(KernelwrightError):
    """The store cannot be opened, read or written; what was recorded before stays."""


class NoStoreError(StorageError):
    """There is nothing to read where the user looks for campaigns."""

    exit_code = ExitCode.USAGE


class StorageRefusedError(StorageError):
    """This machine does not let us keep anything there: permissions, space, a lock, a limit."""

    exit_code = ExitCode.PREREQUISITE


class SandboxError(KernelwrightError):
    """The harness around a candidate failed; retried, and never counted against the candidate."""
