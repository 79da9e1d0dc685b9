# SPDX-License-Identifier: Apache-2.0
"""Reads what a sanitizer wrote before it ended a process: one sentence for the verdict.

The text comes from the candidate's process and may be its own words: it is only ever read as a
fault. Nothing in it can make a candidate clean. Knows no process and no problem.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...sandbox.builders.diagnostics import clean

_ADDRESS = re.compile(r"ERROR: AddressSanitizer:? (?P<kind>[^\n]{1,200})")
_KIND_ENDS = re.compile(r" on | in | \(|: |0x|\d")
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d{1,9})\b", re.M)
_BESIDE = re.compile(
    r"is located (?P<distance>\d{1,15}) bytes (?P<side>to the left of|to the right of|before|after)"
    r" (?P<size>\d{1,15})-byte region"
)
_UNDEFINED = re.compile(
    r"^(?P<file>[^\n]{1,400}?):(?P<line>\d{1,7}):\d{1,7}: runtime error: (?P<what>[^\n]{1,400})",
    re.M,
)
_OWN_LINE = re.compile(r"\bcandidate\.(?:cpp|cu):(\d{1,7})\b")
_THREAD = re.compile(r"^(thread \(\d+, \d+, \d+\) of block \(\d+, \d+, \d+\)) ran$", re.M)
"""What the emulation of CUDA says beneath a report (sandbox/cuda_on_cpu/launch.cpp)."""
_LONGEST = 160


def sentence(text: str, sizes: Mapping[int, str]) -> str:
    """`AddressSanitizer: heap-buffer-overflow on READ of 4 bytes … at line 12 of the candidate`.

    Args:
        text: What the process wrote to its error stream.
        sizes: Names of the tensors by their size in bytes.

    Returns:
        The first report in the text; empty where there is none.
    """
    address, undefined = _ADDRESS.search(text), _UNDEFINED.search(text)
    if address and (not undefined or address.start() < undefined.start()):
        return _of_address(text[address.start() :], address["kind"], sizes)
    return _of_undefined(undefined) if undefined else ""


def _of_address(report: str, kind: str, sizes: Mapping[int, str]) -> str:
    words = [f"AddressSanitizer: {_clip_words(_KIND_ENDS.split(kind, maxsplit=1)[0])}"]
    if access := _ACCESS.search(report):
        words.append(f"on {access[1]} of {access[2]} bytes")
    if beside := _BESIDE.search(report):
        before = beside["side"] in ("to the left of", "before")
        size = int(beside["size"])
        name = sizes.get(size, f"a block of {size} bytes")
        words.append(f"{beside['distance']} bytes {'before' if before else 'after'} {name}")
    if line := _OWN_LINE.search(report):
        words.append(f"at line {line[1]} of the candidate")
    if thread := _THREAD.search(report):
        words.append(f"by {thread[1]}")
    return " ".join(words)


def _of_undefined(found: re.Match[str]) -> str:
    file = found["file"].rpartition("/")[2]
    where = "the candidate" if file in ("candidate.cpp", "candidate.cu") else _clip_words(file)
    what = _clip_words(found["what"])
    return f"UndefinedBehaviorSanitizer: {what} at line {found['line']} of {where}"


def _clip_words(words: str) -> str:
    """One printable line of limited length."""
    kept = " ".join(clean(words).split())
    return kept if len(kept) <= _LONGEST else kept[:_LONGEST] + "…"
