"""Second implementations of our operators, as somebody would write them who knows no other one.

A module beside this one has those of a group in its PLAIN, by the problem's name: numpy, with
sequential or pairwise sums, in the type that it is given.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

Implementation = Callable[[Structure, Arrays, type], np.ndarray | Arrays]
"""One answer as it is, several by name. The type is float64, or float32: then what an honest kernel
gives, before it is rounded to the types of the outputs. Inputs have the types of their tensors;
codes are bytes."""


def collect() -> dict[str, Implementation]:
    """By the problem's name."""
    found: dict[str, Implementation] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != Path(__file__).stem:
            module = importlib.import_module(f"kernelwright.tests.plain.{path.stem}")
            found |= module.PLAIN
    return found
