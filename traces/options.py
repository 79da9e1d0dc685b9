# SPDX-License-Identifier: Apache-2.0
"""What may be set of a campaign, besides who takes part in it and what it may spend.

An option is declared here and read by the workflow off its loop; nothing between the two names it.
What has a Flag stands on the command line; a request and a campaign's first event hold every one
in a field of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, JsonValue, ValidationError

from ..errors import UsageError
from .records import Record


@dataclass(frozen=True)
class Flag:
    """How the command line takes an option."""

    name: str
    meaning: str
    takes: Any = int
    """The type of what a user writes."""
    parse: Callable[[Any], Any] = lambda written: written
    """From that to the option's value."""


def parse_settings(written: Sequence[str]) -> dict[str, str]:
    """The settings in words such as `islands=2`.

    Raises:
        UsageError: one has no name or no value.
    """
    named = [text.partition("=") for text in written]
    for name, equals, _ in named:
        if not name or not equals:
            raise UsageError(f"--set '{name}' is no NAME=VALUE", hint="--set islands=2")
    return {name.strip().replace("-", "_"): value.strip() for name, _, value in named}


class Options(Record):
    """Every option of a campaign; None is as if it was not given."""

    rounds: Annotated[int | None, Flag("--rounds", "Rounds of a chain [10].")] = Field(
        default=None, ge=1
    )
    """None: as many as the workflow has by itself."""
    patience: int | None = Field(default=None, ge=1)
    """Rounds without a credited gain that end a campaign; None: the workflow's own number."""
    options: Annotated[
        dict[str, JsonValue],
        Flag(
            "--set",
            "A setting of the workflow, as NAME=VALUE; repeatable.",
            list[str],
            parse_settings,
        ),
    ] = Field(default_factory=dict)
    """Settings of the workflow, by name; each has its own."""
    transfer: Annotated[
        bool,
        Flag(
            "--no-transfer",
            "Begin without the fastest points of earlier campaigns on the problem.",
            bool,
            lambda written: not written,
        ),
    ] = True
    """Whether a search over recipes begins with them."""
    seed: Annotated[int, Flag("--seed", "Of every random choice [default: 0].")] = 0

    @classmethod
    def from_record(cls, record: Options) -> Options:
        """Those of a request or of a campaign, without the rest."""
        return cls(**{name: getattr(record, name) for name in cls.model_fields})

    @classmethod
    def flags(cls) -> dict[str, Flag]:
        """By the name of the option."""
        return {
            name: flag
            for name, field in cls.model_fields.items()
            for flag in field.metadata
            if isinstance(flag, Flag)
        }

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Options:
        """Those that a user wrote, by name; None and nothing at all are not given."""
        flags = cls.flags()
        given = {name: value for name, value in written.items() if value is not None}
        return cls.choose(**{name: flags[name].parse(value) for name, value in given.items()})

    @classmethod
    def choose(cls, **values: Any) -> Options:
        """Those that somebody wants otherwise than usual.

        Raises:
            UsageError: one is not known or cannot be.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            flag = cls.flags().get(name)
            raise UsageError(
                f"{flag.name if flag else name} {first['input']!r}: {first['msg']}",
                hint=f"what a campaign can be told: {', '.join(cls.model_fields)}",
            ) from error
