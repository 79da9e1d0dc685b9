"""Every target with a few inputs, the same ones each time; `make fuzz` tries others for long."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

import kernelwright
from kernelwright.kernelbench.recipes.catalogue import RECIPES
from kernelwright.tests.fuzz import channels, claims, matrix_files, recipes, stores
from kernelwright.tests.fuzz.catalogue import TARGETS
from kernelwright.tests.fuzz.target import Target, assert_holds


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def test_nothing_but_what_is_allowed_comes_out(target: Target) -> None:
    assert_holds(target)


def test_a_check_that_fails_is_seen() -> None:
    def refuse(drawn: tuple[list[bytes], bool]) -> None:
        assert not drawn[1]

    frames = TARGETS[0]
    with pytest.raises(AssertionError):
        assert_holds(Target("broken", frames.strategy, refuse), 50)


def test_the_long_run_ends_in_time() -> None:
    command = [sys.executable, "-m", "kernelwright.tests.fuzz.run"]
    done = subprocess.run(
        [*command, "--seconds", "0.5", "--only", "settings"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PYTHONPATH": str(Path(kernelwright.__file__).parent.parent), "PATH": "/usr/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert "settings: " in done.stdout


def test_what_once_came_out_does_not_any_more() -> None:
    for body in (b"[" * 200_000, b"1" * 5000, b"\xff", b"[]", b"3"):
        channels.check_message(struct.pack("<Q", len(body)) + body)
    recipe = next(recipe for recipe in RECIPES if "stream" in recipe.first_knobs())
    recipes.check_knobs((recipe, {**recipe.first_knobs(), "stream": True}))
    claims.check(([0], [3] * 12))
    matrix_files.check_text(
        (matrix_files.TEXTS[1], [("end", 1.0, b""), ("insert", 0.9, b"\0")], "")
    )
    matrix_files.check("m.mtx", matrix_files.TEXTS[1][:-1] + b" ")
    for at in range(8, 12):
        stores.check_file(("kernelwright.sqlite", [("replace", at / 100, b"\x80")]))
    stores.check_file(("kernelwright.sqlite", [("replace", 0.09375, b"\x80")]))
