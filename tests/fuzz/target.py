"""What is fuzzed, and how: a strategy draws an input, a check holds what must be true of any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Value = TypeVar("Value")
Refusal = TypeVar("Refusal", bound=Exception)


def attempt(call: Callable[[], Value], refusal: type[Refusal]) -> Value | Refusal:
    """What the call gives, or the error of the one kind that it may end in."""
    try:
        return call()
    except refusal as error:
        return error


@dataclass(frozen=True)
class Target:
    """One thing that takes bytes, texts or records from elsewhere."""

    name: str
    strategy: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    """Raises whatever must not happen."""
    examples: int = 100
    """How many inputs the test suite tries; together they take a few seconds."""


def assert_holds(target: Target, examples: int = 0, *, is_fresh: bool = False) -> None:
    """Tries inputs; `is_fresh` draws others each time, else they are always the same."""
    body_of(target, examples, is_fresh=is_fresh)()


def body_of(target: Target, examples: int = 0, *, is_fresh: bool = False) -> Any:
    """The target as a test of hypothesis."""

    @settings(
        max_examples=examples or target.examples,
        deadline=None,
        database=None,
        derandomize=not is_fresh,
        suppress_health_check=list(HealthCheck),
        print_blob=is_fresh,
    )
    @given(drawn=target.strategy)
    def body(drawn: Any) -> None:
        target.check(drawn)

    return body


@st.composite
def edits(draw: st.DrawFn, most: int = 4) -> list[tuple[str, float, bytes]]:
    """Changes to make to some bytes: what, where (a share of the length), with which bytes."""
    edit = st.tuples(
        st.sampled_from(("replace", "insert", "cut", "end", "repeat")),
        st.floats(0, 1),
        st.one_of(
            st.binary(min_size=1, max_size=6),
            st.sampled_from(
                (
                    b"0",
                    b"-1",
                    b"2147483648",
                    b"99999999999999999999",
                    b"1e999",
                    b"nan",
                    b"\0",
                    b"\n",
                    b" ",
                    b"%",
                    b"\xff\xff\xff\xff",
                    b"{",
                    b"]",
                    b'"',
                )
            ),
        ),
    )
    return draw(st.lists(edit, max_size=most))


def edited(content: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    """The bytes with the changes made."""
    for what, where, some in changes:
        at = int(where * len(content))
        head, tail = content[:at], content[at:]
        content = {
            "replace": head + some + tail[len(some) :],
            "insert": head + some + tail,
            "cut": head + tail[len(some) :],
            "end": head,
            "repeat": head + tail[:64] + tail,
        }[what]
    return content


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)
"""Any JSON value."""


@st.composite
def json_edits(draw: st.DrawFn) -> list[tuple[list[int], str, Any]]:
    """Changes to a JSON value: the way to a place, what to do there, a value."""
    way = st.lists(st.integers(0, 30), max_size=6)
    what = st.sampled_from(("set", "drop", "double"))
    return draw(st.lists(st.tuples(way, what, JSON), max_size=3))


def json_edited(value: Any, changes: list[tuple[list[int], str, Any]]) -> Any:
    """The value, changed in place where the ways lead; the whole of it where they lead nowhere."""
    for way, what, new in changes:
        place: Any = value
        for step in way[:-1]:
            inner = _step(place, step)
            if not isinstance(inner, dict | list):
                break
            place = inner
        _change(place, way[-1] if way else 0, what, new)
    return value


def _keys(place: Any) -> list[Any]:
    return list(place) if isinstance(place, dict) else list(range(len(place)))


def _step(place: Any, step: int) -> Any:
    keys = _keys(place)
    return place[keys[step % len(keys)]] if keys else None


def _change(place: Any, step: int, what: str, new: Any) -> None:
    keys = _keys(place)
    if not keys:
        return
    key = keys[step % len(keys)]
    if what == "drop":
        del place[key]
    elif what == "double" and isinstance(place, list):
        place.append(place[key])
    else:
        place[key] = new
