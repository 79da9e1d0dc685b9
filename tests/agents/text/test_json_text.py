"""A2: small typed replies, and what is said of those that cannot be used."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from kernelwright.agents.model import Finish
from kernelwright.agents.text import ReplyOutcome, Unusable, read
from kernelwright.agents.text.json_text import REASON_CHARACTERS


class Vote(BaseModel):
    model_config = ConfigDict(extra="forbid")
    verdict: Literal["ok", "broken"]
    line: int = 0
    share: float = 0.0
    why: list[str] = Field(default_factory=list)


GOOD = '{"verdict": "ok", "line": 3}'


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"Certainly.\n{GOOD}\nThat is all.",
        f"```json\n{GOOD}\n```",
        f"~~~JSON\n{GOOD}\n~~~\n" + '{"verdict": "broken"}',
        '```json\n{"verdict": "broken"}\n```\nor rather\n' + f"```json\n{GOOD}\n```",
        '{"verdict": "broken"} is what I thought first.\n' + GOOD,
        f"<think>{{'a': </think>{GOOD}",
        '<think>\n```json\n{"verdict": "broken"}\n```\n</think>\n' + GOOD,
        f"The loop `for (;;) {{ x[i] }}` is right.\n{GOOD}",
        f'{GOOD}\nThis is the line:\n```cuda\nvoid f() {{}}\nstr = {{"a"}};\n```\n',
        "```\n" + GOOD + "\n```",
        "\ufeff" + GOOD.replace(",", ",\r\n"),
    ],
)
def test_the_object_is_found(reply: str) -> None:
    found = read(reply, Finish.STOP, Vote)
    assert isinstance(found, Vote), found
    assert (found.verdict, found.line) == ("ok", 3)


def test_strings_may_hold_anything() -> None:
    text = r'{"verdict": "ok", "why": ["}", "{\"a\": [", "\\", "```", "a line' + "\n" + r'end"]}'
    found = read("so: " + text, Finish.STOP, Vote)
    assert isinstance(found, Vote)
    assert found.why == ["}", '{"a": [', "\\", "```", "a line\nend"]


@pytest.mark.parametrize(
    ("reply", "outcome", "says"),
    [
        ("The kernel is bound by memory.", ReplyOutcome.NO_JSON, "no JSON object"),
        ("{'verdict': 'ok'}", ReplyOutcome.NO_JSON, "no JSON object"),
        (
            '{"verdict": "ok", "why": [{"line": 1}, {"li',
            ReplyOutcome.TRUNCATED,
            "inside a JSON object",
        ),
        ('{"verdict": "ok", "why": ["it has', ReplyOutcome.TRUNCATED, "inside a JSON object"),
        (GOOD + ' no, {"verdict": "bro', ReplyOutcome.TRUNCATED, "inside a JSON object"),
        (f"```json\n{GOOD}\n```\n```json\n{{", ReplyOutcome.TRUNCATED, "line 4"),
        (f"<think>{GOOD}", ReplyOutcome.TRUNCATED, "thinking"),
        (f"[{GOOD}, {GOOD}]", ReplyOutcome.INVALID_JSON, "this is an array"),
        ("```json\n3\n```", ReplyOutcome.INVALID_JSON, "this is a number"),
        ("```json\nnull\n```", ReplyOutcome.INVALID_JSON, "this is null"),
        ("```json\n```", ReplyOutcome.MALFORMED_JSON, "Expecting value"),
        ('{"line": 1, "line": 2}', ReplyOutcome.MALFORMED_JSON, "'line' stands twice"),
        ('{"verdict": "ok", "share": NaN}', ReplyOutcome.MALFORMED_JSON, "NaN"),
        ('{"verdict": "ok", "share": -Infinity}', ReplyOutcome.MALFORMED_JSON, "-Infinity"),
        ('{"verdict": "ok", "share": 1e999}', ReplyOutcome.MALFORMED_JSON, "1e999"),
        ('{"verdict": "ok", "why": ["\\ud800"]}', ReplyOutcome.MALFORMED_JSON, "UTF-8"),
        ('{"verdict": "ok",}', ReplyOutcome.MALFORMED_JSON, "line 1 column"),
        ('{"verdict": "ok", "line": ' + "9" * 5000 + "}", ReplyOutcome.MALFORMED_JSON, "digits"),
        ('{"a": ' * 100_00 + "1" + "}" * 100_00, ReplyOutcome.MALFORMED_JSON, "nested too deeply"),
        (
            '{"verdict": "perhaps"}',
            ReplyOutcome.INVALID_JSON,
            "verdict: Input should be 'ok' or 'br",
        ),
        ('{"verdict": "ok", "lines": 3}', ReplyOutcome.INVALID_JSON, "lines: Extra inputs"),
        ("{}", ReplyOutcome.INVALID_JSON, "verdict: Field required"),
        (GOOD + " " * (256 << 10), ReplyOutcome.TOO_LARGE, "262144"),
        ("", ReplyOutcome.NO_JSON, "empty"),
    ],
)
def test_a2_what_cannot_be_used_says_why(reply: str, outcome: ReplyOutcome, says: str) -> None:
    found = read(reply, Finish.STOP, Vote)
    assert isinstance(found, Unusable), found
    assert found.outcome == outcome, found.reason
    assert says in found.reason


@pytest.mark.parametrize(
    ("finish", "outcome"),
    [
        (Finish.LENGTH, ReplyOutcome.TRUNCATED),
        (Finish.REFUSED, ReplyOutcome.NO_JSON),
        (Finish.EMPTY, ReplyOutcome.NO_JSON),
    ],
)
def test_a_reply_that_ended_early_is_not_searched(finish: Finish, outcome: ReplyOutcome) -> None:
    found = read(GOOD, finish, Vote)
    assert isinstance(found, Unusable)
    assert found.outcome == outcome


def test_a2_the_reason_can_be_shown_to_the_model() -> None:
    names = [f"{number}\x1b[31m\u202e" + "long " * 200 for number in range(60)]
    body = ", ".join(f'"{name}": "{name}"' for name in names).replace("\x1b", "\\u001b")
    found = read(f'{{"verdict": "ok", {body}}}', Finish.STOP, Vote)
    assert isinstance(found, Unusable)
    assert "and 52 more" in found.reason
    assert len(found.reason) <= REASON_CHARACTERS
    assert found.reason.isprintable()
