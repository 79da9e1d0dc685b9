# SPDX-License-Identifier: Apache-2.0
"""Builds run side by side, and each reads its source."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelwright import syntax
from kernelwright.syntax import parse_python


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads change places within a call as often as can be: whenever something is collected."""

    def pause(_phase: str, _info: dict[str, int]) -> None:
        sum(range(20))

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)
    gc.callbacks.remove(pause)


@pytest.mark.usefixtures("switching")
def test_threads_parse_side_by_side() -> None:
    """With `ast.parse` in its place CPython 3.11.7 raises SystemErrors here."""
    text = Path(syntax.__file__).read_text("utf-8")
    text = text.replace("from __future__ import annotations\n", "") * 20
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(parse_python, [text] * 300))
    assert len({len(tree.body) for tree in trees}) == 1
