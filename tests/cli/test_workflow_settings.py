"""Settings of workflows and foreign sources on the command line: what is refused, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command

RUN = ("run", "softmax", "--workload", "tiny", "--target", "cpu")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--set", "islands"), "no NAME=VALUE"),
        (("--set", "isles=2"), "isles"),
        (("--set", "islands=0"), "islands"),
        (("--workflow", "forge", "--set", "rounds=2"), "rounds"),
        (("--workflow", "transpile"), "needs a source"),
        (("--workflow", "transpile", "--from", "missing.cu"), "missing.cu"),
        (("--workflow", "transpile", "--from", "plain.txt"), "choose a model"),
        (("--workflow", "transpile", "--from", "large.cu"), "larger than"),
        (("--workflow", "forge", "--from", "plain.txt"), "takes no source"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    kw_here: Command, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    (tmp_path / "work" / "plain.txt").write_text("int main() {}\n")
    (tmp_path / "work" / "large.cu").write_text("x" * (257 << 10))
    done = kw_here(*RUN, *flags)
    assert done.code == 2, done.err
    assert said in done.err
