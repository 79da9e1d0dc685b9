# SPDX-License-Identifier: Apache-2.0
"""What reading a reply ends in: the text that was looked for, or why there is none.

A useless reply is a result, not an exception: `Unusable` is what a `candidate.missing` event says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReplyOutcome(StrEnum):
    """Why a reply cannot be used."""

    TRUNCATED = "truncated"
    """It ended early: by its finish reason, or inside a fence, an edit, a thought or an object."""
    NO_CANDIDATE = "no_candidate"
    """Refused, empty, or without a whole source."""
    AMBIGUOUS = "ambiguous"
    """Several different whole sources, and nothing says which one is meant."""
    WRONG_LANGUAGE = "wrong_language"
    EDIT_FAILED = "edit_failed"
    """At least one edit cannot be made, so none was."""
    FORBIDDEN_CHARACTERS = "forbidden_characters"
    """Null bytes, bidirectional controls, what UTF-8 cannot hold."""
    TOO_LARGE = "too_large"
    NO_CHANGE = "no_change"
    """A decision, and the only one of these that is not asked about again."""
    NO_JSON = "no_json"
    MALFORMED_JSON = "malformed_json"
    INVALID_JSON = "invalid_json"
    """JSON, but not of the form that was asked for."""


@dataclass(frozen=True)
class FoundSource:
    """A source in a reply; it ends with one line end and has no other than LF."""

    source: str
    notes: tuple[str, ...] = ()
    """What was passed over or taken for granted, for the record."""


@dataclass(frozen=True)
class Unusable:
    """No source, or no JSON; `reason` may be shown to the model that is asked again."""

    outcome: ReplyOutcome
    reason: str
