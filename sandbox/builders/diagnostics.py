# SPDX-License-Identifier: Apache-2.0
"""Reads what a compiler said: the first error, the log for people, the vectoriser's remarks.

Everything read here is influenced by the candidate and is data, never an instruction. Knows
nothing of how compilers are run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

LOG_BYTES = 16 << 10
REASON_CHARACTERS = 240
REMARKS = 200

_ERROR = re.compile(r"^(?:candidate\.cpp|[^\s:]+):(\d+):(?:(\d+):)? (?:fatal )?error: (.+)$", re.M)
_PLAIN_ERROR = re.compile(r"^(?:[^\n:]*?: )?(?:fatal )?error: (.+)$", re.M)
_ASSEMBLER = re.compile(r"^[^\n:]+\.s:(\d+): Error: (.+)$", re.M)
_UNDEFINED = re.compile(r"undefined reference to [`'](.+?)'")
_TWICE = re.compile(r"multiple definition of [`'](.+?)'")
_LIMITS = (
    re.compile(r"(?:^|: )([^:\n]+?) signal terminated program"),
    re.compile(r"(out of memory allocating \d+ bytes)"),
    re.compile(r"(virtual memory exhausted)"),
    re.compile(r"([Ff]ile (?:size limit exceeded|too large))"),
)
_REMARK = re.compile(r"^(\d+):\d+: (optimized|missed): \s*(.+?)\.?$")


def clean(text: str) -> str:
    """Text with everything but printable characters, newlines and tabs taken out, capped."""
    kept = "".join(c for c in text if c.isprintable() or c in "\n\t")
    raw = kept.encode()
    if len(raw) <= LOG_BYTES:
        return kept
    # The head is kept: the first error is the one that matters.
    note = f"\n… {len(raw) - LOG_BYTES} more bytes\n"
    return raw[: LOG_BYTES - len(note.encode())].decode(errors="ignore") + note


def clean_words(stderr: bytes, private: Iterable[str]) -> str:
    """The compiler's words without the names of private folders, for the record."""
    text = stderr.decode(errors="replace")
    for folder in private:
        text = text.replace(folder.rstrip("/") + "/", "")
    return clean(re.sub(r"\bcc\w{6}\.(o|s|ltrans\S*)\b", r"candidate.\1", text))


def reason(log: str, declared: Mapping[str, str] | None = None) -> str:
    """One sentence: what went wrong first, and where.

    Args:
        declared: What the source must define: each function's name with its declaration.
    """
    declared = declared or {}
    missing = _UNDEFINED.search(log)
    if missing and (wanted := declared.get(missing[1].split("(")[0])):
        return f"the source does not define the entry point; it must define {wanted}"
    if found := _ERROR.search(log):
        line, column, message = found.groups()
        where = f"line {line}" + (f":{column}" if column else "")
        sentence = f"error at {where}: {message}"
        named = (wanted for name, wanted in declared.items() if re.search(rf"\b{name}\b", message))
        if "conflicting declaration" in message and (wanted := next(named, "")):
            return f"{shorten(sentence)}; the entry point must be {wanted}"
        return shorten(sentence)
    if found := _ASSEMBLER.search(log):
        return shorten(f"the assembler refused the source: {found[2]}")
    if missing:
        return shorten(f"undefined reference to '{missing[1]}'")
    if found := _TWICE.search(log):
        return shorten(f"'{found[1]}' is defined twice")
    if found := _PLAIN_ERROR.search(log):
        return shorten(f"error: {found[1]}")
    first = next((line for line in log.splitlines() if line.strip()), "")
    return shorten(f"the compiler failed: {first}" if first else "the compiler failed silently")


def limit(log: str) -> str | None:
    """Which limit ended a part of the compiler, as it told; None where none did."""
    found = next((hit for hit in (pattern.search(log) for pattern in _LIMITS) if hit), None)
    return shorten(found[1]) if found else None


def shorten(sentence: str, characters: int = REASON_CHARACTERS) -> str:
    """One line of at most so many characters."""
    sentence = " ".join(sentence.split())
    return sentence if len(sentence) <= characters else sentence[:characters] + "…"


def remarks(text: str, source_name: str) -> tuple[str, ...]:
    """The vectoriser's remarks on the candidate's own loops: `12: loop vectorized …`.

    `source_name` holds a random folder that the source cannot learn, so that text which a
    candidate smuggles into the compiler's own channel is not taken for a remark. A loop that
    several copies of the code share is told once; a loop is `missed` only where no copy of it
    was vectorised.
    """
    done: dict[int, list[str]] = {}
    missed: dict[int, str] = {}
    for line in text.splitlines():
        if not line.startswith(source_name + ":"):
            continue
        found = _REMARK.match(line[len(source_name) + 1 :])
        if not found:
            continue
        number, kind, message = int(found[1]), found[2], shorten(clean(found[3]))
        if kind == "optimized" and message.startswith("loop "):
            if message not in done.setdefault(number, []):
                done[number].append(message)
        elif kind == "missed" and message.startswith("not vectorized: "):
            missed[number] = message
        elif kind == "missed" and message.startswith("couldn't vectorize loop"):
            missed.setdefault(number, "not vectorized")
    told = [(n, m) for n, messages in done.items() for m in messages]
    told += [(n, m) for n, m in missed.items() if n not in done]
    return tuple(f"{number}: {message}" for number, message in sorted(told))[:REMARKS]
