"""Models that ask the scripted endpoint, and a place where no key of the machine is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernelwright.agents.model import Ask, Message
from kernelwright.agents.models.keys import Key
from kernelwright.agents.models.openai_client import Connection, OpenAIModel

Opened = Callable[..., OpenAIModel]


@pytest.fixture(autouse=True)
def nobodys_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, endpoint or proxy of whoever runs the tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens models and closes them afterwards."""
    models: list[OpenAIModel] = []

    def open_model(
        url: str,
        *,
        name: str = "m",
        silence_s: float = 60.0,
        key: str = "",
        slots: int = 1,
        **more: Any,
    ) -> OpenAIModel:
        connection = Connection(
            url, Key(key, "a test") if key else None, slots=slots, silence_s=silence_s
        )
        models.append(OpenAIModel(name, connection, **more))
        return models[-1]

    yield open_model
    for model in models:
        model.close()


def asked(**more: Any) -> Ask:
    """A question."""
    given: dict[str, Any] = {
        "purpose": "write",
        "messages": (
            Message(role="system", content="You write kernels."),
            Message(role="user", content="Write one."),
        ),
        "max_output_tokens": 100,
    }
    return Ask(**{**given, **more})


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"issue": {"type": "string"}},
    "required": ["issue"],
    "additionalProperties": False,
}


def asked_for_json(**more: Any) -> Ask:
    """A question whose answer is JSON."""
    return asked(purpose="judge repair", schema_name="advice", json_schema=SCHEMA, **more)
