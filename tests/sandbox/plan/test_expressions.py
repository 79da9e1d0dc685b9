"""The arithmetic of launch plans: it means what Python means, or says where it does not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.sandbox.front_matter import FilePlace
from kernelwright.sandbox.plan.expressions import MAX_INTEGER, Expression, Number
from kernelwright.sandbox.plan.faults import PlanRefusedError
from kernelwright.sandbox.plan.grammar import MAX_NESTING, MAX_TOKENS, parse_expression

VALUES: dict[str, Number] = {"M": 1000, "N": 33, "zero": 0, "big": 2**62, "avg_row": 6.5}


def parsed(text: str) -> Expression:
    return parse_expression(text, lambda at: FilePlace(7, 1 + at))


def evaluated(text: str) -> Number:
    return parsed(text).evaluate(VALUES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cdiv(M, 4)", 250),
        ("cdiv(N, 32) * 32", 64),
        ("-N // 2", -17),
        ("-N % 8", 7),
        ("M - N - 1", 966),
        ("2 * (M + 1) % 7", 0),
        ("1 + 2 * 3", 7),
        ("4 if avg_row < 32 else 8", 4),
        ("1 if M < N else 2 if M == 1000 else 3", 2),
        ("not M == N", True),
        ("0 < N <= 33 < M", True),
        ("3 < M > 2000", False),
        ("M > 1 and N or 5", 33),
        ("zero and M // zero", 0),
        ("1 if 1 else M // zero", 1),
        ("min(M, N, 7)", 7),
        ("max(1, zero)", 1),
        ("next_pow2(N)", 64),
        ("next_pow2(64)", 64),
        ("next_pow2(zero)", 1),
        ("next_pow2(-5)", 1),
        ("ceil(avg_row)", 7),
        ("floor(avg_row)", 6),
        ("avg_row * 2", 13.0),
        ("1.5e1 > 14", True),
        ("cdiv(zero, 4)", 0),
        ("cdiv(-7, 2)", -3),
        ("(M > 3) * 4", 4),
        (" M\t+\n1 ", 1001),
        ("big - 1 + big", MAX_INTEGER),
        ("- - 3", 3),
    ],
)
def test_values(text: str, value: Number) -> None:
    found = evaluated(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("M / 4", 3, "use // (rounded down) or cdiv(a, b) (rounded up)"),
        ("M ** 2", 3, "there are no powers"),
        ("M && N", 3, "use `and`"),
        ("M > 1 || N", 7, "use `or`"),
        ("!M", 1, "use `not`"),
        ("M ? 1 : 2", 3, "use `a if condition else b`"),
        ("M = 4", 3, "use =="),
        ("M << 2", 3, "multiply by a power of two"),
        ("2N", 2, "'N' stands where an operator should"),
        ("", 1, "the expression ends where a number, a name or '(' should follow"),
        ("M +", 4, "the expression ends where"),
        ("(M", 3, "the expression ends where ')' should follow"),
        ("M)", 2, "')' stands where an operator should"),
        ("M if N", 7, "the expression ends where 'else' should follow"),
        ("1 + not N", 5, "'not' stands where"),
        ("cdib(M, 4)", 1, "there is no function named 'cdib'; did you mean cdiv or"),
        ("cdiv(M)", 1, "cdiv takes 2 values, not 1"),
        ("max(M)", 1, "max takes 2 to 8 values, not 1"),
        ("ceil(M, N)", 1, "ceil takes 1 value, not 2"),
        ("cdiv + 1", 1, "'cdiv' is a function; call it: cdiv(…)"),
        ("M.shape", 2, "the character '.' has no meaning here"),
        ("M[0]", 2, "the character '[' has no meaning here"),
        ("'M'", 1, "has no meaning here"),
        ("ｍ", 1, "has no meaning here"),
        ("007", 1, "starts with a zero"),
        ("9223372036854775808", 1, "beyond the 63 bits"),
        ("9" * 400, 1, "beyond the 63 bits"),
        ("1e999", 1, "is too large"),
        ("1" + "+1" * MAX_TOKENS, MAX_TOKENS + 1, "more than 200 words and signs"),
        ("(" * 60 + "1" + ")" * 60, MAX_NESTING + 1, "nested deeper than"),
        ("-" * 60 + "1", MAX_NESTING + 1, "nested deeper than"),
    ],
)
def test_what_is_no_expression(text: str, column: int, words: str) -> None:
    with pytest.raises(PlanRefusedError) as error:
        parsed(text)
    fault = error.value.fault
    assert words in fault.reason
    assert (fault.line, fault.column) == (7, column)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("M // zero", 3, "division by zero: what follows // is 0 (with M = 1000, zero = 0)"),
        ("N % (M - 1000)", 3, "division by zero: what follows % is 0 (with N = 33, M = 1000)"),
        ("1 + cdiv(M, zero)", 5, "division by zero: the second value of cdiv is 0"),
        ("M // 0.0", 3, "division by zero"),
        ("big * 2", 5, "the value 9.223e+18 is beyond the 63 bits of an integer"),
        ("big + big", 5, "beyond the 63 bits"),
        ("-big - big", 6, "beyond the 63 bits"),
        ("next_pow2(big + 1)", 1, "beyond the 63 bits"),
        ("1e308 * 10", 7, "not a finite number"),
        ("cdiv(avg_row, 2)", 1, "cdiv takes integers, and one of 6.5, 2 is not"),
        ("next_pow2(2.5)", 1, "next_pow2 takes integers"),
        (
            "1 + Q",
            5,
            "there is no axis, feature or knob named 'Q'; known: M, N, avg_row, big, zero",
        ),
    ],
)
def test_what_has_no_value(text: str, column: int, reason: str) -> None:
    with pytest.raises(PlanRefusedError) as error:
        evaluated(text)
    fault = error.value.fault
    assert fault.reason.startswith(reason) or reason in fault.reason
    assert (fault.line, fault.column) == (7, column)


@pytest.mark.parametrize("text", ["avg_row", "M * 1.0", "min(M, 2.5)"])
def test_an_extent_must_be_an_integer(text: str) -> None:
    with pytest.raises(PlanRefusedError, match=r"is not an integer; round it with ceil\(\)"):
        parsed(text).integer(VALUES)


def _next_pow2(value: int) -> int:
    power = 1
    while power < value:
        power *= 2
    return power


PYTHON = {
    "cdiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "next_pow2": _next_pow2,
    "ceil": math.ceil,
    "floor": math.floor,
}
NAMES = st.sampled_from(("M", "N", "zero", "avg_row"))
NUMBERS = st.integers(0, 2**20).map(str) | st.sampled_from(("0.5", "2.25", "1e3"))


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Larger expressions from smaller ones, with brackets and without."""
    pairs = st.tuples(inner, inner)
    arithmetic = st.sampled_from(("+", "-", "*", "//", "%"))
    comparing = st.sampled_from(("<", "<=", ">", ">=", "==", "!=", "and", "or"))
    return st.one_of(
        st.builds(lambda p, s: f"{p[0]} {s} {p[1]}", pairs, arithmetic | comparing),
        st.builds(lambda p, s: f"({p[0]}) {s} ({p[1]})", pairs, arithmetic | comparing),
        st.builds("({}) if {} else {}".format, inner, inner, inner),
        st.builds("-({})".format, inner),
        st.builds("not {}".format, inner).map("({})".format),
        st.builds(
            lambda f, p: f"{f}({p[0]}, {p[1]})", st.sampled_from(("min", "max", "cdiv")), pairs
        ),
        st.builds(lambda f, x: f"{f}({x})", st.sampled_from(("ceil", "floor", "next_pow2")), inner),
    )


@settings(max_examples=400, deadline=None)
@given(text=st.recursive(NAMES | NUMBERS, compound, max_leaves=8))
def test_it_means_what_python_means(text: str) -> None:
    try:
        expected = eval(text, {"__builtins__": {}}, {**PYTHON, **VALUES})
    except (ZeroDivisionError, SyntaxError) as error:
        expected = type(error)
    try:
        found = evaluated(text)
    except PlanRefusedError as error:
        reason = error.fault.reason
        if expected is ZeroDivisionError:
            assert "division by zero" in reason or "takes integers" in reason
        elif expected is SyntaxError:
            assert "should" in reason
        else:
            allowed = ("beyond the 63 bits", "takes integers", "nested deeper")
            assert any(words in reason for words in allowed), reason
        return
    assert found == expected
    assert type(found) is type(expected)
