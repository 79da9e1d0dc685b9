"""What a 400 teaches: exactly the named parameter is changed, once, and remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelwright.agents.model import Ask, FaultKind, Finish, Message, ModelFault
from kernelwright.agents.models.capabilities import (
    Capabilities,
    Rung,
    capabilities_for,
    presume_capabilities,
)
from kernelwright.agents.models.corrections import nearest_effort
from kernelwright.config import OPENAI_URL
from kernelwright.errors import ConfigError
from kernelwright.tests.agents.endpoint import Endpoint, Request, Turn, refused
from kernelwright.tests.agents.models.conftest import SCHEMA, Opened, asked, asked_for_json

GOOD = '{"issue": "a race"}'


@pytest.mark.parametrize(
    ("message", "param", "ask", "dropped", "instead"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            {},
            "max_tokens",
            {"max_completion_tokens": 100},
        ),
        (
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the "
            "default (1) value is supported.",
            "temperature",
            {"temperature": 0.5},
            "temperature",
            {},
        ),
        (
            "Unrecognized request argument supplied: reasoning_effort",
            "",
            {"effort": "high"},
            "reasoning_effort",
            {},
        ),
        (
            "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. "
            "Supported values are: 'low', 'medium', and 'high'.",
            "reasoning_effort",
            {"effort": "xhigh"},
            "",
            {"reasoning_effort": "high"},
        ),
        ("body.stream_options: extra fields not permitted", "", {}, "stream_options", {}),
        ("streaming is not supported: stream", "stream", {}, "stream", {}),
        (
            "max_tokens is too large: 100. This model supports at most 64 completion tokens, "
            "whereas you provided 100.",
            "max_tokens",
            {},
            "",
            {"max_tokens": 64},
        ),
    ],
    ids=["renamed", "temperature", "effort", "other effort", "stream options", "stream", "limit"],
)
def test_b15_a_400_corrects_exactly_the_named_parameter(
    opened: Opened,
    message: str,
    param: str,
    ask: dict[str, Any],
    dropped: str,
    instead: dict[str, Any],
) -> None:
    """B15: capability learned from one 400; the next call knows."""
    turns = [refused(message, code="unsupported_parameter", param=param or None)]
    with Endpoint([*turns, Turn("one"), Turn("two")]) as server:
        model = opened(server.url)
        assert model.complete(asked(**ask)).text == "one"
        assert model.complete(asked(**ask)).text == "two"
    first, second, third = (request.body for request in server.requests)
    assert second == third
    assert dropped not in second
    assert {name: second[name] for name in instead} == instead
    touched = {dropped, *instead}
    if dropped == "stream":
        touched.add("stream_options")
    assert {n: v for n, v in first.items() if n not in touched} == {
        n: v for n, v in second.items() if n not in touched
    }
    (correction,) = model.corrections
    assert correction.parameter in (dropped, *instead)
    assert "status 400" in str(correction)


def test_b15_several_parameters_are_learned_in_one_call(opened: Opened) -> None:
    """B15: a reasoning model at an endpoint that nobody knows."""

    def answer(request: Request) -> Turn:
        for name in ("max_tokens", "temperature"):
            if name in request.body:
                return refused(f"Unsupported: {name}", code="unsupported_parameter", param=name)
        return Turn("yes")

    with Endpoint(answer, prefix="/gateway/team-a/v1") as server:
        model = opened(server.url, name="vendor/unlisted:model+1")
        assert model.complete(asked(temperature=1.0)).text == "yes"
    assert [c.parameter for c in model.corrections] == ["max_tokens", "temperature"]
    assert len(server.requests) == 3
    assert server.requests[0].body["model"] == "vendor/unlisted:model+1"
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_a_server_that_refuses_everything_is_not_asked_for_ever(opened: Opened) -> None:
    def answer(request: Request) -> Turn:
        name = "max_tokens" if "max_tokens" in request.body else "max_completion_tokens"
        return refused(f"Unsupported parameter: {name}", param=name)

    with Endpoint(answer) as server, pytest.raises(ModelFault) as caught:
        opened(server.url).complete(asked())
    assert caught.value.kind is FaultKind.REFUSED
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Invalid value for 'messages[1].content': too rude", "messages[1].content"),
        ("Unsupported parameter: 'frequency_penalty'", "frequency_penalty"),
        ("the temperature in the data centre is pleasant", None),
        ("something is invalid", None),
    ],
)
def test_a_400_on_something_else_teaches_nothing(
    opened: Opened, message: str, param: str | None
) -> None:
    with Endpoint([refused(message, param=param)]) as server:
        model = opened(server.url)
        with pytest.raises(ModelFault) as caught:
            model.complete(asked(temperature=0.5))
    assert caught.value.kind is FaultKind.REFUSED
    assert model.corrections == ()
    assert len(server.requests) == 1


def test_a_template_without_a_system_role(opened: Opened) -> None:
    with Endpoint([refused("System role not supported", param="messages"), Turn("yes")]) as server:
        assert opened(server.url).complete(asked()).text == "yes"
    assert server.requests[1].messages == [
        {"role": "user", "content": "You write kernels.\n\nWrite one."}
    ]


def test_a_small_context_window_shortens_the_answer(opened: Opened) -> None:
    message = (
        "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context "
        "length is 8192 tokens and your request has 20 input tokens (32768 > 8192 - 20)."
    )
    with Endpoint([refused(message), Turn("yes")]) as server:
        model = opened(server.url)
        assert model.complete(asked(max_output_tokens=32768)).text == "yes"
    assert 7000 < server.requests[1].body["max_tokens"] < 8192 - 20
    assert model.capabilities.context_window == 8192


def test_a_prompt_over_the_context_window_is_a_fault(opened: Opened) -> None:
    message = "This model's maximum context length is 8192 tokens, however you requested 90000."
    long = (Message(role="user", content="x " * 9000),)
    turn = refused(message, code="context_length_exceeded")
    with Endpoint([turn]) as server, pytest.raises(ModelFault) as caught:
        opened(server.url).complete(asked(messages=long))
    assert caught.value.kind is FaultKind.CONTEXT
    assert len(server.requests) == 1


def lacking(*kinds: str) -> Any:
    """A server that refuses these response formats, and answers well in any other way."""

    def answer(request: Request) -> Turn:
        wanted = request.body.get("response_format", {}).get("type")
        if wanted in kinds:
            return refused(f"response_format type {wanted} is not supported", param=None)
        return Turn(GOOD)

    return answer


@pytest.mark.parametrize(
    ("kinds", "rung", "requests"),
    [
        ((), Rung.JSON_SCHEMA, 1),
        (("json_schema",), Rung.JSON_OBJECT, 2),
        (("json_schema", "json_object"), Rung.PROMPT, 3),
    ],
)
def test_b16_the_ladder_of_structured_output(
    opened: Opened, kinds: tuple[str, ...], rung: Rung, requests: int
) -> None:
    """B16: the same result on every rung; the next call starts where this one ended."""
    with Endpoint(lacking(*kinds)) as server:
        model = opened(server.url)
        replies = [model.complete(asked_for_json()) for _ in range(2)]
    assert [(reply.text, reply.rung) for reply in replies] == [(GOOD, rung)] * 2
    assert len(server.requests) == requests + 1
    assert model.capabilities.rung is rung
    last = server.requests[-1]
    # The model must be told the schema where the server does not know it.
    assert (json.dumps(SCHEMA, sort_keys=True) in last.text) is (rung is not Rung.JSON_SCHEMA)
    if rung is Rung.JSON_SCHEMA:
        sent = last.body["response_format"]["json_schema"]
        assert (sent["name"], sent["schema"], sent["strict"]) == ("advice", SCHEMA, True)


@pytest.mark.parametrize("text", ["Certainly! The issue is a race.", "[1]", '{"other": 1}'])
def test_b16_a_server_that_accepts_the_schema_and_ignores_it(opened: Opened, text: str) -> None:
    """B16: found out by the reply; nothing paid is thrown away."""
    with Endpoint([Turn(text), Turn(GOOD)]) as server:
        model = opened(server.url)
        first, second = (model.complete(asked_for_json()) for _ in range(2))
    assert (first.text, first.rung) == (text, Rung.JSON_SCHEMA)
    assert (second.text, second.rung) == (GOOD, Rung.JSON_OBJECT)
    assert "accepted" in model.corrections[0].because


def test_b16_a_truncated_reply_accuses_nobody(opened: Opened) -> None:
    """B16: half a document is no proof that the schema was ignored."""
    with Endpoint([Turn('{"iss', finish_reason="length")]) as server:
        model = opened(server.url)
        assert model.complete(asked_for_json()).finish is Finish.LENGTH
    assert model.corrections == ()


def test_the_bound_holds_on_every_rung(opened: Opened) -> None:
    ask: Ask = asked_for_json()
    with Endpoint(lacking("json_schema", "json_object")) as server:
        model = opened(server.url)
        bound = model.bound(ask)
        model.complete(ask)
    sent = max(len(request.text) for request in server.requests)
    assert bound.tokens > ask.max_output_tokens + sent / 4
    assert bound == model.bound(ask)


@pytest.mark.parametrize(
    ("wanted", "values", "sent"),
    [
        ("xhigh", ("low", "high"), "high"),
        ("none", ("low", "high"), "low"),
        ("medium", ("low", "high"), "low"),
        ("high", ("low", "high"), "high"),
        ("odd", ("low",), "low"),
    ],
)
def test_the_nearest_effort(wanted: str, values: tuple[str, ...], sent: str) -> None:
    assert nearest_effort(wanted, values) == sent


def test_the_record_begins_with_what_is_known_and_survives_json(tmp_path: Any) -> None:
    reasoning = presume_capabilities(OPENAI_URL, "gpt-5-mini")
    assert (reasoning.max_tokens_field, reasoning.temperature) == ("max_completion_tokens", False)
    assert presume_capabilities(OPENAI_URL, "gpt-4.1").temperature
    assert (
        presume_capabilities("http://localhost:8000/v1", "gpt-5").max_tokens_field == "max_tokens"
    )
    assert Capabilities.model_validate_json(reasoning.model_dump_json()) == reasoning
    file = tmp_path / "capabilities.toml"
    file.write_text(
        '[[capability]]\nendpoint = "http://host/v1/"\ntakes = { json_schema = false }\n'
        '[[capability]]\nmodel = "m"\ntakes = { effort_values = ["low"], temperature = false }\n'
    )
    found = capabilities_for("http://host/v1", "m", file)
    assert (found.rung, found.effort_values, found.temperature) == (
        Rung.JSON_OBJECT,
        ("low",),
        False,
    )
    assert capabilities_for("http://else/v1", "n", file) == Capabilities()


@pytest.mark.parametrize(
    "text", ["[[capability]]\ntakes = { temprature = false }", "[[capability", "capability = 3"]
)
def test_a_malformed_capability_file(tmp_path: Any, text: str) -> None:
    file = tmp_path / "capabilities.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="capability file") as caught:
        capabilities_for("http://host/v1", "m", file)
    assert caught.value.hint
