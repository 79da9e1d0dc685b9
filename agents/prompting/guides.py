# SPDX-License-Identifier: Apache-2.0
"""What prompts say of a language: how a candidate in it is written, built and called.

The words stand in templates, one guide and one example for each language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...kernelbench.features import SPARSE_FEATURES
from ...kernelbench.languages import CPP, CUDA, PYTHON, TRITON, Language, language_of
from ...kernelbench.problem import Problem
from ...kernelbench.skeleton import signature
from ...kernelbench.targets import Vendor, target_of
from ...sandbox.builders.compiler import BASE_FLAGS, VARIANT_FLAGS
from ...sandbox.builders.cpp import preparing
from ...sandbox.builders.model import BuildVariant
from ..roles import Situation
from .render import render


class Guide(NamedTuple):
    """What is said of one language."""

    values: Callable[[Situation, str], dict[str, str]]
    """What its template takes beside the example, for a target."""
    note: str = ""
    """Below the signature."""


def guide(situation: Situation, target: str) -> str:
    """How a candidate in the campaign's language is written, for this target."""
    language = language_of(situation.language)
    values = GUIDES[language].values(situation, target)
    return render(f"guide_{language}", example=render(f"example_{language}"), **values)


def signature_text(problem: Problem, language: str) -> str:
    """The entry point as a block, with what is to be said of it."""
    known = language_of(language)
    return f"```{known.markup}\n{signature(problem, known)}\n```{GUIDES[known].note}"


def _threads(situation: Situation, _target: str) -> dict[str, str]:
    return {"threads": f"{situation.facts.get('cpus', 1):.0f}"}


def _cpp(situation: Situation, target: str) -> dict[str, str]:
    words = ("g++", *VARIANT_FLAGS[BuildVariant.RELEASE], *BASE_FLAGS, "-shared")
    problem = situation.problem
    is_sparse = any(tensor.is_index for tensor in problem.inputs)
    prepare = preparing(problem).declaration.removesuffix(";") if is_sparse else ""
    return {"compiler": " ".join(words), "prepare": prepare, **_threads(situation, target)}


def _plan(situation: Situation, target: str) -> dict[str, str]:
    return {"target": target, "names": _plan_names(situation.problem)}


def _cuda(situation: Situation, target: str) -> dict[str, str]:
    return {"compiler": "--std=c++20 -lineinfo --fmad=true", **_plan(situation, target)}


def _triton(situation: Situation, target: str) -> dict[str, str]:
    chip = target_of(target).gpu
    is_amd = chip is not None and chip.vendor is Vendor.AMD
    return {"wavefront": str(chip.warp) if chip and is_amd else "", **_plan(situation, target)}


def _plan_names(problem: Problem) -> str:
    axes = f"the axes {', '.join(problem.axes)}"
    if not any(tensor.name == "indptr" for tensor in problem.inputs):
        return axes
    features = [f for f in SPARSE_FEATURES if f != "density" or {"M", "K"} <= problem.axes.keys()]
    return f"{axes}, the features {', '.join(features)} (of rows; numbers with fractions)"


GUIDES: dict[Language, Guide] = {
    CPP: Guide(_cpp),
    CUDA: Guide(
        _cuda,
        "\n\nThese are the types that a plan can pass; name and split kernels as you like.",
    ),
    TRITON: Guide(
        _triton,
        "\n\nThese are the values that a plan can pass; name and split kernels as you like.",
    ),
    PYTHON: Guide(_threads),
}
