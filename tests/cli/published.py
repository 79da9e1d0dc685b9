"""Holds what a command printed with `--json` to the JSON Schema that is published for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from kernelwright.cli.schema import SCHEMAS, schema_of

GROUPS = ("metrics", "space", "config")
FORMS = {
    "run": {"--dry-run": "run-plan"},
    "show": {"--calls": "show-calls", "--call": "show-call"},
    "problems": {"--check": "problems-check", "--signature": "problems-signature"},
}
"""Flags with which a command prints another document."""


def name_of(args: Sequence[str]) -> str:
    """The schema of what `kernelwright ARGS` prints; the command comes first."""
    command, *rest = args
    if command in GROUPS:
        return f"{command}-{rest[0]}"
    for flag, name in FORMS.get(command, {}).items():
        if flag in rest:
            return name
    named = rest[0] if rest and not rest[0].startswith("-") else ""
    if command == "show" and ("/" in named or named.endswith("@best")):
        return "show-candidate"
    return "problems-name" if command == "problems" and named else command


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema_of(name))


def faults(name: str, document: object) -> list[str]:
    """What the schema of that name finds wrong."""
    return [
        f"{fault.json_path}: {fault.message}" for fault in _validator(name).iter_errors(document)
    ]


def assert_published(args: Sequence[str], document: object) -> None:
    """It has a schema, and keeps it."""
    name = name_of(args)
    assert name in SCHEMAS, args
    assert faults(name, document) == []
