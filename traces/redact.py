# SPDX-License-Identifier: Apache-2.0
"""Takes out of a report what must not leave the machine: home folders, keys, secrets.

Works on whole events, so that everything derived from them is clean.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from .events import CampaignStarted, Event, payload_adapter

_KEYS = re.compile(
    r"\b(?:sk|pk|rk)-[\w-]{12,}|\bhf_\w{12,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bnvapi-[\w-]{20,}|\bAIza[\w-]{30,}|\bxox[a-z]-[\w-]{10,}"
    r"|(?i:\bbearer )[\w.~+/=-]{12,}"
)
_HOMES = re.compile(r"(?:/home|/Users)/[^/\s\"'<>:]+|/root(?=/|\b)|[A-Z]:\\Users\\[^\\\s\"'<>]+")
_ESCAPED_HOMES = re.compile(r"[A-Z]:\\\\Users")
_SECRET_NAME = re.compile(r"(?i)key|token|secret|password|passwd|credential|authorization")
# Shorter values could be ordinary words.
_SHORTEST_SECRET = 12

REDACTED = "[redacted]"


class Redactor:
    """Cleans texts and events."""

    def __init__(self, home: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._literal = {
            value: REDACTED
            for name, value in environment.items()
            if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET
        }
        self._literal[str(home)] = "$KERNELWRIGHT_HOME"
        user = str(Path.home())
        if len(user) > 1:
            self._literal[user] = "~"
        # As they stand in JSON, where quotes and backslashes are escaped.
        self._escaped = [json.dumps(literal)[1:-1] for literal in self._literal]

    def text(self, text: str) -> str:
        """The text without keys and home folders."""
        # The longest first: the store's home usually lies below the user's.
        for literal in sorted(self._literal, key=len, reverse=True):
            text = text.replace(literal, self._literal[literal])
        return _HOMES.sub("~", _KEYS.sub(REDACTED, text))

    def event(self, event: Event) -> Event:
        """The same event with clean texts."""
        # Cleaning rebuilds a record; most have nothing to clean, and one look tells.
        is_started = isinstance(event.payload, CampaignStarted)
        if not is_started and self._is_clean(event.payload.model_dump_json()):
            return event
        payload = payload_adapter.validate_python(self._clean(event.payload.model_dump()))
        return event.model_copy(update={"payload": payload})

    def _is_clean(self, text: str) -> bool:
        if any(literal in text for literal in self._escaped):
            return False
        return not (_KEYS.search(text) or _HOMES.search(text) or _ESCAPED_HOMES.search(text))

    def _clean(self, value: JsonValue, name: str = "") -> JsonValue:
        if isinstance(value, str):
            return REDACTED if value and _SECRET_NAME.search(name) else self.text(value)
        if isinstance(value, dict):
            return {key: self._clean(item, key) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        return value
