"""Lets the tests of the emulator import what builds and plays for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from emulation import Machine, machine_in


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return machine_in(tmp_path_factory.mktemp("emulated"))
