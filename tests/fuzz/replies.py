"""Replies of models with anything in them: what was looked for, or why it is not there."""

from __future__ import annotations

import json
import re
from typing import Literal

from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from kernelwright.agents.model import Finish
from kernelwright.agents.text import (
    FoundSource,
    Unusable,
    clip_words,
    extract,
    fence_text,
    hash_normalised,
    read,
    revise_source,
    similarity,
)
from kernelwright.agents.text.candidate_text import SEARCH_SIGN
from kernelwright.agents.text.code_blocks import unix_lines
from kernelwright.agents.text.edits import DIVIDER, REPLACE_SIGN
from kernelwright.agents.text.json_text import REASON_CHARACTERS
from kernelwright.agents.text.shape import head_of
from kernelwright.agents.text.untrusted import BIDIRECTIONAL
from kernelwright.kernelbench.languages import language_of
from kernelwright.sandbox.source_text import SOURCE_BYTES
from kernelwright.tests.agents.text.corpus import CASES, SOURCES
from kernelwright.tests.fuzz.target import JSON, Target, edited, edits
from kernelwright.traces.place import Place

LANGUAGES = st.sampled_from(("cpp", "cuda", "triton", "python"))
_FINISHES = st.sampled_from((*([Finish.STOP] * 6), Finish.LENGTH, Finish.REFUSED, Finish.EMPTY))
_PIECES = st.one_of(
    st.sampled_from(
        (
            "```",
            "````",
            "~~~",
            "```cuda",
            "```cpp",
            "```python",
            "  ```",
            "    ```",
            "``` x `",
            "<think>",
            "</think>",
            "[THINK]",
            "[/THINK]",
            "/*---",
            "---*/",
            '"""',
            "---",
            "def run(x):",
            'extern "C" void f() {}',
            "__global__",
            'language = "cuda"',
            'language = "cpp"',
            SEARCH_SIGN,
            DIVIDER,
            REPLACE_SIGN,
            "// kernelwright: fixed",
            "// kernelwright: end fixed",
            "",
            "  ",
            "\0",
            "\u202e",
            "\ud800",
            "a\r",
            "\x1b[31m",
            "```json",
            "{",
            "}",
            '{"a": 1}',
        )
    ),
    st.sampled_from(sorted(SOURCES.values())),
    st.text(max_size=12),
)
_MADE_UP = st.lists(_PIECES, max_size=14).map("\n".join)
_SPOILT = st.tuples(st.sampled_from([case.reply[:20_000] for case in CASES]), edits(3)).map(
    lambda drawn: edited(drawn[0].encode(errors="replace"), drawn[1]).decode(errors="replace")
)


@st.composite
def _fenced_sources(draw: st.DrawFn) -> str:
    """A candidate with anything behind it, in a fence, with anything around that."""
    sign = draw(st.sampled_from(("```", "~~~", "`````")))
    label = draw(st.sampled_from(("cuda", "cpp", "python", "triton", "")))
    inside = [draw(st.sampled_from(sorted(SOURCES.values()))), *draw(st.lists(_PIECES, max_size=2))]
    around = st.lists(_PIECES, max_size=2)
    return "\n".join([*draw(around), sign + label, *inside, sign, *draw(around)])


TEXTS = st.one_of(_MADE_UP, _SPOILT, _fenced_sources())


@st.composite
def _edited_bases(draw: st.DrawFn) -> tuple[str, str, str]:
    """Edits of lines that the base has."""
    name = draw(st.sampled_from(sorted(SOURCES)))
    base = draw(st.sampled_from((SOURCES[name], SOURCES[name].replace("\n", "\r\n"))))
    lines = SOURCES[name].split("\n")[:-1]
    reply: list[str] = draw(st.lists(_PIECES, max_size=1))
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, len(lines) - 1))
        wanted = lines[first : first + draw(st.integers(1, 3))]
        new = draw(st.lists(_PIECES | st.sampled_from(lines), max_size=3))
        reply += [SEARCH_SIGN, *wanted, DIVIDER, *new, REPLACE_SIGN]
    hosts = ("cuda", "triton", "python")
    own = next((each for each in hosts if name.startswith(each)), "cpp")
    return "\n".join(reply), base, draw(st.just(own) | LANGUAGES)


def check_reply(drawn: tuple[str, Finish, str]) -> None:
    """What is found stands in the reply line by line, and is found again in a fence."""
    reply, finish, language = drawn
    result = extract(reply, finish, language)
    if isinstance(result, Unusable):
        _check_reason(result)
        return
    assert finish == Finish.STOP
    _check_source(result)
    said = unix_lines(reply)
    assert all(line in said for line in result.source.split("\n"))
    longest = max(map(len, re.findall(r"`+", result.source)), default=0)
    fence = "`" * max(3, longest + 1)
    again = extract(f"{fence}{language}\n{result.source}{fence}\n", finish, language)
    assert isinstance(again, FoundSource), again
    assert again.source == result.source
    assert similarity(result.source, again.source, language) == 1.0
    assert hash_normalised(result.source, language) == hash_normalised(again.source, language)


def check_edits(drawn: tuple[str, str, str]) -> None:
    """Every line of what edits make comes from the base or from the reply; front matter stays."""
    reply, base, language = drawn
    result = revise_source(reply, Finish.STOP, language, base)
    if isinstance(result, Unusable):
        _check_reason(result)
        return
    _check_source(result)
    known = unix_lines(reply) + "\n" + unix_lines(base)
    assert all(line in known for line in result.source.split("\n"))
    if any("edits of the base" in note for note in result.notes):
        before, after = (
            head_of(unix_lines(each), language_of(language)) for each in (base, result.source)
        )
        assert (before and before.text) == (after and after.text)
        assert _fixed(base) == _fixed(result.source)


def _fixed(source: str) -> list[str]:
    marks = r"^// kernelwright: fixed\n.*?^// kernelwright: end fixed$"
    return re.findall(marks, unix_lines(source), re.M | re.S)


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")
    verdict: Literal["ok", "broken"]
    line: int = 0
    share: float = 0.0
    why: str = ""


_KEYS = st.sampled_from(("verdict", "line", "share", "why", "other"))
_OBJECTS = st.one_of(
    st.dictionaries(_KEYS, JSON, max_size=4),
    st.builds(lambda why: {"verdict": "ok", "why": why}, st.text(max_size=20)),
)


@st.composite
def _json_replies(draw: st.DrawFn) -> tuple[str, Finish]:
    texts = draw(st.lists(_OBJECTS.map(json.dumps) | _PIECES, max_size=5))
    raw = edited("\n".join(texts).encode(errors="surrogatepass"), draw(edits(2)))
    return raw.decode(errors="replace"), draw(_FINISHES)


def check_json(drawn: tuple[str, Finish]) -> None:
    """A record of the form, which is read again from its own JSON, or a reason fit to be shown."""
    reply, finish = drawn
    result = read(reply, finish, _Form)
    if isinstance(result, Unusable):
        _check_reason(result)
        return
    again = read(result.model_dump_json(), Finish.STOP, _Form)
    assert again == result


def check_shown(drawn: tuple[str, str, int]) -> None:
    """Nothing leaves its fence, nothing unseen is shown, and the cap is kept."""
    content, place, most = drawn
    _, sign, rest = fence_text(
        content, what="a log", place=Place.parse(place), characters=most
    ).split("\n", 2)
    shown, end = rest.rsplit("\n", 1)
    assert end == sign
    assert sign not in shown
    assert len(shown) <= most
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    clipped = clip_words(content, most % 20)
    assert len(clipped.text.split()) <= most % 20


def _check_source(result: FoundSource) -> None:
    source = result.source
    assert len(source.encode()) <= SOURCE_BYTES
    assert source.endswith("\n")
    assert not BIDIRECTIONAL & set(source)
    assert not {"\0", "\r"} & set(source)


def _check_reason(result: Unusable) -> None:
    assert result.reason
    assert len(result.reason) <= REASON_CHARACTERS
    assert result.reason.isprintable()


TARGETS = (
    Target("replies", st.tuples(TEXTS, _FINISHES, LANGUAGES), check_reply, 150),
    Target("edits", _edited_bases() | st.tuples(TEXTS, TEXTS, LANGUAGES), check_edits, 200),
    Target("small replies", _json_replies(), check_json, 150),
    Target(
        "shown texts", st.tuples(TEXTS, st.text(max_size=9), st.integers(0, 400)), check_shown, 60
    ),
)
