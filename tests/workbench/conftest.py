"""A home that an earlier version left, so that nothing need be run."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from kernelwright.tests.cli.test_earlier_release import KEPT


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(KEPT) as kept:
        kept.extractall(folder, filter="data")
    return folder
