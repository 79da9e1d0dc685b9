# SPDX-License-Identifier: Apache-2.0
"""Reads what models write and words what they are shown: pure functions on strings.

A reply is text of unknown origin. Everything here says what it found or why it found nothing, and
raises for nothing that a reply can hold.
"""

from __future__ import annotations

from .candidate_text import extract
from .diffs import changed_lines, unified_diff
from .edits import revise_source
from .found import FoundSource, ReplyOutcome, Unusable
from .json_text import read
from .similarity import hash_normalised, similarity
from .untrusted import clip_words, fence_text, make_readable

__all__ = [
    "FoundSource",
    "ReplyOutcome",
    "Unusable",
    "changed_lines",
    "clip_words",
    "extract",
    "fence_text",
    "hash_normalised",
    "make_readable",
    "read",
    "revise_source",
    "similarity",
    "unified_diff",
]
