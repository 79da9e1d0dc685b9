"""Lets the tests of the emulator import what builds and plays for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from emulation import Machine, machine_in


@pytest.fixture(scope="session")
def machine(shared_cache: Path) -> Machine:
    return machine_in(shared_cache)
