# SPDX-License-Identifier: Apache-2.0
"""Reads what a sanitizer wrote before it ended a process: one sentence for the verdict.

The text comes from the candidate's process and may be its own words: it is only ever read as a
fault. Nothing in it can make a candidate clean. Knows no process and no problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...sandbox.builders.diagnostics import clean

_ADDRESS = re.compile(r"ERROR: AddressSanitizer:? (?P<kind>[^\n]{1,200})")
_KIND_ENDS = re.compile(r" on | in | \(|: |0x|\d")
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d{1,9})\b", re.M)
_SIGNAL = re.compile(r"The signal is caused by a (READ|WRITE) memory access")
_PLACE = re.compile(r" address 0x([0-9a-f]{1,16})\b")
_ARGUMENT = re.compile(r"^argument (\d{1,4}) is (\d{1,15}) bytes at 0x([0-9a-f]{1,16})$", re.M)
"""What the runner says of each report (sandbox/run/sanitized_blocks.hpp)."""
_ASTRAY = 8 << 30
"""Bytes beside a tensor that are its own, there."""
_BESIDE = re.compile(
    r"is located (?P<distance>\d{1,15}) bytes (?P<side>to the left of|to the right of|before|after)"
    r" (?P<size>\d{1,15})-byte region"
)
_UNDEFINED = re.compile(
    r"^(?P<file>[^\n]{1,400}?):(?P<line>\d{1,7})(?::\d{1,7})?: runtime error: "
    r"(?P<what>[^\n]{1,400})",
    re.M,
)
"""Without a column where two threads report one place at once: the first one takes it away."""
_OWN_LINE = re.compile(r"\bcandidate\.(?:cpp|cu):(\d{1,7})\b")
_THREAD = re.compile(r"^(thread \(\d+, \d+, \d+\) of block \(\d+, \d+, \d+\)) ran$", re.M)
"""What the emulation of CUDA says beneath a report (sandbox/cuda_on_cpu/launch.cpp)."""
_LONGEST = 160


def sentence(text: str, arguments: Sequence[str]) -> str:
    """`AddressSanitizer: out of bounds on READ of 4 bytes 8 bytes after x at line 12 …`.

    Args:
        text: What the process wrote to its error stream.
        arguments: What the call was passed, by name and in its order.

    Returns:
        The first report in the text; empty where there is none.
    """
    address, undefined = _ADDRESS.search(text), _UNDEFINED.search(text)
    if address and (not undefined or address.start() < undefined.start()):
        report, placed = text[address.start() :], _ARGUMENT.finditer(text)
        return _of_address(report, address["kind"], _beside_argument(report, placed, arguments))
    return _of_undefined(undefined) if undefined else ""


def _of_address(report: str, kind: str, where: str) -> str:
    kind = _clip_words(_KIND_ENDS.split(kind, maxsplit=1)[0])
    words = [f"AddressSanitizer: {'out of bounds' if where else kind}"]
    if access := _ACCESS.search(report):
        words.append(f"on {access[1]} of {access[2]} bytes")
    elif signal := _SIGNAL.search(report):
        words.append(f"on {signal[1]}")
    if where := where or _beside_block(report):
        words.append(where)
    if line := _OWN_LINE.search(report):
        words.append(f"at line {line[1]} of the candidate")
    if thread := _THREAD.search(report):
        words.append(f"by {thread[1]}")
    return " ".join(words)


def _beside_argument(report: str, placed: Iterable[re.Match[str]], arguments: Sequence[str]) -> str:
    """`8 bytes after x`, of the tensor that is nearest; empty where none is near."""
    found = _PLACE.search(report)
    if found is None:
        return ""
    place, near = int(found[1], 16), []
    for argument in placed:
        number, size, begin = int(argument[1]), int(argument[2]), int(argument[3], 16)
        name = arguments[number] if number < len(arguments) else f"argument {number}"
        if begin - _ASTRAY <= place < begin:
            near.append((begin - place, f"before {name}"))
        elif begin + size <= place < begin + size + _ASTRAY:
            near.append((place - begin - size, f"after {name}"))
    return "{} bytes {}".format(*min(near)) if near else ""


def _beside_block(report: str) -> str:
    """The same of memory that the candidate has taken itself."""
    beside = _BESIDE.search(report)
    if beside is None:
        return ""
    side = "before" if beside["side"] in ("to the left of", "before") else "after"
    return f"{beside['distance']} bytes {side} a block of {beside['size']} bytes"


def _of_undefined(found: re.Match[str]) -> str:
    file = found["file"].rpartition("/")[2]
    where = "the candidate" if file in ("candidate.cpp", "candidate.cu") else _clip_words(file)
    what = _clip_words(found["what"])
    return f"UndefinedBehaviorSanitizer: {what} at line {found['line']} of {where}"


def _clip_words(words: str) -> str:
    """One printable line of limited length."""
    kept = " ".join(clean(words).split())
    return kept if len(kept) <= _LONGEST else kept[:_LONGEST] + "…"
