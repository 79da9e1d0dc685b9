"""Configuration files and variables with anything in them: settings, or a ConfigError."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path

from hypothesis import strategies as st

from kernelwright.config import Config, format_duration, parse_duration, resolve
from kernelwright.errors import ConfigError
from kernelwright.tests.fuzz.target import Target, attempt, edited, edits

KEYS = [setting.name for setting in fields(Config)]
_WORDS = st.one_of(
    st.text(st.characters(exclude_characters='"\\', exclude_categories=("Cs", "Cc")), max_size=12),
    st.sampled_from(
        (
            "auto",
            "bare",
            "0-3",
            "0-99999999999",
            "1,2,x",
            "90s",
            "1h30m",
            "0s",
            "~",
            "~nobody-of-that-name/x",
            "9" * 400,
            "9" * 5000,
            "\\u0000",
            "true",
            "٣",
        )
    ),
)
_VALUES = st.one_of(
    _WORDS.map(lambda text: f'"{text}"'),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        ("true", "inf", "nan", "[]", "[0, 1]", "[[]]", "{}", "1979-05-27", "9" * 5000, "[" * 20_000)
    ),
    st.text(max_size=10),
)
_LINES = st.tuples(st.sampled_from([*KEYS, "modell", '"a b"', "[tool]"]), _VALUES).map(" = ".join)
_FILES = st.tuples(st.lists(_LINES, max_size=3).map("\n".join), edits(2)).map(
    lambda drawn: edited(drawn[0].encode(errors="replace"), drawn[1])
)
_VARIABLES = st.dictionaries(
    st.sampled_from([f"KERNELWRIGHT_{key.upper()}" for key in KEYS] + ["NO_COLOR", "OTHER"]),
    _WORDS,
    max_size=2,
)


def check(drawn: tuple[bytes, dict[str, str]]) -> None:
    """Every value is of its kind, or one of them is refused with its place."""
    content, variables = drawn
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernelwright.toml").write_bytes(content)
        user = folder / "none.toml"
        resolved = attempt(
            lambda: resolve({}, environ=variables, folder=folder, user=user), ConfigError
        )
    if isinstance(resolved, ConfigError):
        assert str(resolved)
        return
    found = resolved.config
    assert isinstance(found.home, Path)
    assert all(0 <= cpu < 1 << 16 for cpu in found.cpus)
    assert found.jail in ("auto", "bubblewrap", "landlock", "bare")
    assert not found.accept_weak_isolation or "KERNELWRIGHT_ACCEPT_WEAK_ISOLATION" in variables
    if found.max_time is not None and found.max_time >= 10:
        said = format_duration(found.max_time)
        assert abs(parse_duration(said) - found.max_time) <= max(0.5, 1e-9 * found.max_time)


TARGETS = (Target("settings", st.tuples(_FILES, _VARIABLES), check, 80),)
