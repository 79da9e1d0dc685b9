# SPDX-License-Identifier: Apache-2.0
"""The program that calls NVRTC: started in a jail for one source, then gone.

    python -I -S -B nvrtc.py LIBRARY BUILTINS REQUEST_FD ANSWER_FD

It imports nothing but ctypes, os, sys and marshal, since every build waits for its start. The
request comes from the harness: a marshalled (source, names, options, verbose, headers). The answer
is for a reader who does not trust it, since the compiler has read the candidate by then: a line of
four lengths, each followed by so many bytes (lowered names, one a line; the log; the cubin).
"""

from __future__ import annotations

import ctypes
import marshal
import os
import sys
from typing import NamedTuple

NAME = b"candidate.cu"
"""What the source is called in diagnostics and line tables."""
COMPILED = 0
"""The result code of success; the others are those of nvrtcResult."""


class CompileRequest(NamedTuple):
    """What is to be compiled."""

    source: bytes
    names: list[bytes]
    """Name expressions: kernels as the source calls them."""
    options: list[bytes]
    verbose: list[bytes]
    """Options of a first attempt only: with ptxas's report on, its fatal errors are lost."""
    headers: dict[bytes, bytes]
    """Headers that are not on any path, by the name they are included under."""


class Compiled(NamedTuple):
    """What the compiler made of it."""

    code: int
    lowered: list[bytes]
    log: bytes
    cubin: bytes


def compile_source(nvrtc: ctypes.CDLL, request: CompileRequest) -> Compiled:
    """The cubin; without one, the log of a second attempt that is not verbose."""
    answer = _attempt(nvrtc, request, request.verbose + request.options)
    return answer if answer.code == COMPILED else _attempt(nvrtc, request, request.options)


def _attempt(nvrtc: ctypes.CDLL, request: CompileRequest, options: list[bytes]) -> Compiled:
    program = ctypes.c_void_p()
    code = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program),
        request.source,
        NAME,
        len(request.headers),
        _strings(list(request.headers.values())),
        _strings(list(request.headers)),
    )
    for name in request.names:
        code = code or nvrtc.nvrtcAddNameExpression(program, name)
    code = code or nvrtc.nvrtcCompileProgram(program, len(options), _strings(options))
    log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).rstrip(b"\0")
    lowered: list[bytes] = []
    if code == COMPILED:
        lowered = [_lowered_name(nvrtc, program, name) for name in request.names]
    cubin = b""
    if code == COMPILED:
        cubin = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    return Compiled(code, lowered, log, cubin)


def _lowered_name(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, name: bytes) -> bytes:
    found = ctypes.c_char_p()
    code = nvrtc.nvrtcGetLoweredName(program, name, ctypes.byref(found))
    return found.value or b"" if code == COMPILED else b""


def _text(size_of: object, copy: object, program: ctypes.c_void_p) -> bytes:
    assert callable(size_of)
    assert callable(copy)
    size = ctypes.c_size_t()
    if size_of(program, ctypes.byref(size)) != COMPILED or size.value == 0:
        return b""
    room = ctypes.create_string_buffer(size.value)
    return room.raw if copy(program, room) == COMPILED else b""


def _strings(words: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(words))(*words)


def write_answer(descriptor: int, answer: Compiled) -> None:
    """The counterpart of `cuda.read_answer`."""
    names = b"\n".join(answer.lowered)
    head = b"%d %d %d %d\n" % (answer.code, len(names), len(answer.log), len(answer.cubin))
    with os.fdopen(descriptor, "wb") as file:
        file.write(head + names + answer.log + answer.cubin)


def main() -> None:
    """Compiles the one request and leaves without waiting for the library to tidy up."""
    library, builtins, request_fd, answer_fd = sys.argv[1:]
    if builtins:
        # NVRTC 13.0 finds them only where they are loaded already.
        ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(library)
    with os.fdopen(int(request_fd), "rb") as file:
        request = CompileRequest(*marshal.loads(file.read()))
    write_answer(int(answer_fd), compile_source(nvrtc, request))
    os._exit(0)


if __name__ == "__main__":
    main()
