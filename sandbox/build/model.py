"""What a builder gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Variant(StrEnum):
    """Which flags a source is built with."""

    RELEASE = "release"
    SANITIZED = "sanitized"
    """ASan + UBSan, for promotion."""


@dataclass(frozen=True)
class Built:
    """An artefact as bytes, immutable, named by its hash."""

    artefact: bytes
    sha256: str
    seconds: float
    log: str = ""
    remarks: tuple[str, ...] = ()
    """Vectorisation remarks on the candidate's own lines, e.g. `12: loop vectorized using 64 byte
    vectors`. Parsed from the compiler's own channel, not from text a candidate can print."""
    command: tuple[str, ...] = ()
    compiler: str = ""
    is_cached: bool = False


@dataclass(frozen=True)
class BuildFailed:
    """The source did not build; this is a result, not an error."""

    reason: str
    """One sentence: `error at line 3: 'foo' was not declared`, `stopped after 60 s`."""
    log: str = ""
    is_resource: bool = False
    """True where a limit ended the compiler: RESOURCE rather than BUILD_FAILED."""
    seconds: float = 0.0
    command: tuple[str, ...] = field(default=())
