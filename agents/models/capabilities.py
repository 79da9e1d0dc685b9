# SPDX-License-Identifier: Apache-2.0
"""What an endpoint takes of the parameters that servers disagree about, per model.

The record starts from what is known of the endpoint or from the user's file, and is corrected by
the first refusal that names a parameter (`corrections.py`). It says nothing about quality.
"""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from ...config import OPENAI_URL
from ...errors import ConfigError
from ...traces.records import Record

MaxTokensField = Literal["max_completion_tokens", "max_tokens"]

_REASONING = re.compile(r"^(o\d|gpt-[5-9])")
"""Models of OpenAI that sample by themselves and refuse a temperature."""


class Rung(StrEnum):
    """How a reply in JSON is asked for, the strictest way first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


class Capabilities(Record):
    """What may be sent to one model at one endpoint."""

    max_tokens_field: MaxTokensField = "max_tokens"
    most_output_tokens: int | None = Field(default=None, ge=1)
    """The largest limit the server takes; None: not known."""
    context_window: int | None = Field(default=None, ge=1)
    """Prompt and answer together, where the server counts the limit into it; None: not known."""
    temperature: bool = True
    effort_values: tuple[str, ...] | None = None
    """The reasoning efforts it takes; empty: none at all, None: not known, so as asked."""
    json_schema: bool = True
    json_object: bool = True
    system_role: bool = True
    """Otherwise the system's words open the user's first message."""
    stream: bool = True
    stream_usage: bool = True

    @property
    def rung(self) -> Rung:
        """The strictest way to ask for JSON here."""
        if self.json_schema:
            return Rung.JSON_SCHEMA
        return Rung.JSON_OBJECT if self.json_object else Rung.PROMPT


class Endpoint(Record):
    """Capabilities as the user's file gives them: only what is to differ."""

    endpoint: str = ""
    """The base URL; empty: every endpoint."""
    model: str = ""
    """Empty: every model there."""
    takes: dict[str, object] = Field(default_factory=dict)


class CapabilityFile(Record):
    """The file of `capabilities_file`."""

    capability: tuple[Endpoint, ...] = ()


def presume_capabilities(base_url: str, model: str) -> Capabilities:
    """What is known before anybody was asked."""
    if base_url.rstrip("/") != OPENAI_URL:
        return Capabilities()
    return Capabilities(
        max_tokens_field="max_completion_tokens", temperature=not _REASONING.match(model)
    )


def capabilities_for(base_url: str, model: str, file: Path | None = None) -> Capabilities:
    """The record to begin with; the user's file above what is presumed.

    Raises:
        ConfigError: the file cannot be read, or names what is no capability.
    """
    found = presume_capabilities(base_url, model).model_dump()
    for entry in _read(file).capability if file else ():
        if entry.endpoint.rstrip("/") in ("", base_url.rstrip("/")) and entry.model in ("", model):
            found |= entry.takes
    return Capabilities.model_validate(found)


def _read(file: Path) -> CapabilityFile:
    try:
        content = CapabilityFile.model_validate(tomllib.loads(file.read_text("utf-8")))
        for entry in content.capability:
            Capabilities.model_validate(entry.takes)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"{'.'.join(map(str, first['loc']))} in the capability file {file}: {first['msg']}",
            hint=f"an entry's `takes` may have {', '.join(Capabilities.model_fields)}",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"cannot read the capability file {file}: {error}", hint="docs/models.md shows one"
        ) from error
    return content
