# SPDX-License-Identifier: Apache-2.0
"""A candidate's launch plan as data, for exports: as declared, and resolved for a workload.

What cannot be had (a matrix file that has moved, a plan with a fault) is said in its place.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from ..errors import KernelwrightError
from ..kernelbench import registry
from ..kernelbench.features import features
from ..kernelbench.languages import PYTHON, language_of
from ..kernelbench.problem import Problem, Workload
from ..kernelbench.skeleton import skeleton
from ..kernelbench.targets import architecture
from ..sandbox.plan import Launches, Plan, PlanFault, parse, resolve
from ..sandbox.plan.model import ZERO_FILL, Argument, ArgumentKind, Launch
from ..traces.events import CampaignStarted
from ..traces.export import WorkloadInputs


def launch_plan(started: CampaignStarted, language: str, source: str) -> dict[str, Any] | None:
    """The plan of a candidate of this campaign; None where its language has no plans."""
    if not language_of(language).has_launch_plan:
        return None
    plan = parse(source, language)
    if isinstance(plan, PlanFault):
        return {"declared": None, "fault": plan.sentence}
    declared: dict[str, Any] = {"declared": _to_json(plan.facts), "kernels": _kernels(plan)}
    if not plan.launches:
        return {
            **declared,
            "resolved": None,
            "why": "the file's own host code launches its kernels",
        }
    return {**declared, **_resolve_plan(plan, started)}


def write_reference(problem: str) -> str:
    """The naive Python of a problem; empty where it is a user's that declares none."""
    known = registry.get(problem)
    return "" if known.text and not known.skeleton else skeleton(known, PYTHON)


def find_inputs(started: CampaignStarted) -> WorkloadInputs | None:
    """The sizes and the pattern of the campaign's workload.

    None where they cannot be made again: the export says that it carries no workload.
    """
    try:
        workload = Workload.model_validate(started.workload_spec).first
        structure = registry.get(started.problem).structure(workload)
    except (KernelwrightError, ValueError, OSError):
        return None
    return WorkloadInputs(workload.name, dict(structure.axes), dict(structure.arrays))


def _resolve_plan(plan: Plan, started: CampaignStarted) -> dict[str, Any]:
    try:
        problem = registry.get(started.problem)
        structure = problem.structure(Workload.model_validate(started.workload_spec).first)
        found = features(structure)
        made = resolve(plan, problem, structure.axes, found, architecture(started.target))
    except (KernelwrightError, ValueError, OSError) as error:
        return {"resolved": None, "why": str(error)}
    if isinstance(made, PlanFault):
        return {"resolved": None, "why": made.sentence}
    return {
        "resolved": {
            "workload": started.workload,
            "target": started.target,
            "axes": dict(structure.axes),
            "features": {k: v for k, v in found.items() if k not in structure.axes},
            "scratch": [
                {"name": each.name, "dtype": each.dtype, "shape": list(each.shape)}
                for each in made.scratch
            ],
            "launches": [_launch(each, made, problem) for each in made.launches],
        }
    }


def _launch(launch: Launch, made: Launches, problem: Problem) -> dict[str, Any]:
    arguments = [_argument(each, made, problem) for each in launch.arguments]
    if launch.kernel == ZERO_FILL:
        return {"zero": arguments[0], "bytes": arguments[1]["integer"]}
    shape = {
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared_bytes": launch.shared_bytes,
        "cluster": list(launch.cluster),
        "arguments": arguments,
    }
    if not made.specialisations:
        return {"kernel": made.kernels[launch.kernel], **shape}
    special = made.specialisations[launch.kernel]
    constants = {name: getattr(value, "name", value) for name, value in special.constants}
    options = {
        "num_warps": special.num_warps,
        "num_stages": special.num_stages,
        "num_ctas": special.num_ctas,
        "maxnreg": special.maxnreg,
    }
    return {"kernel": special.kernel, "constexpr": _to_json(constants), **options, **shape}


def _argument(argument: Argument, made: Launches, problem: Problem) -> dict[str, Any]:
    if argument.kind is ArgumentKind.INTEGER:
        return {"integer": argument.value}
    if argument.kind is ArgumentKind.FLOAT32:
        return {"float32": _to_json(struct.unpack("<f", struct.pack("<I", argument.value))[0])}
    if argument.kind is ArgumentKind.FLOAT64:
        return {"float64": _to_json(struct.unpack("<d", struct.pack("<q", argument.value))[0])}
    if argument.kind is ArgumentKind.TENSOR:
        return {"tensor": problem.tensors[argument.value].name, "offset_bytes": argument.offset}
    return {"scratch": made.scratch[argument.value].name, "offset_bytes": argument.offset}


def _kernels(plan: Plan) -> dict[str, Any]:
    """What each kernel takes, as far as its source says it; several where it is overloaded."""
    return {
        name: [
            None
            if each.parameters is None
            else [
                {"name": p.name, "type": p.text, "constexpr": p.is_constexpr}
                for p in each.parameters
            ]
            for each in signatures
        ]
        for name, signatures in plan.signatures.items()
    }


def _to_json(value: Any) -> Any:
    """A value of TOML as JSON knows it: dates and what is no number as text."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(each) for each in value]
    if isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
