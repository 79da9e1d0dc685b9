# SPDX-License-Identifier: Apache-2.0
"""Kernelwright: an LLM-agent workbench that generates, verifies and optimises kernels.

The names below are the public face; each is imported when it is first used, so that importing the
package costs nothing. docs/api.md shows them at work.
"""

from __future__ import annotations

import importlib
import typing

from . import version as _version

if typing.TYPE_CHECKING:
    from .agents.stop import Stop
    from .errors import KernelwrightError
    from .kernelbench.problem import Problem, Workload
    from .kernelbench.registry import problems
    from .traces.records import Measurement, Speedup, Status, Verdict
    from .workbench.candidate import Candidate
    from .workbench.evaluating import Evaluator, evaluate
    from .workbench.exporting import export
    from .workbench.home import Campaign, Home, campaign, open_home
    from .workbench.optimizing import optimize, resume


__version__ = _version.VERSION

__all__ = [
    "Campaign",
    "Candidate",
    "Evaluator",
    "Home",
    "KernelwrightError",
    "Measurement",
    "Problem",
    "Speedup",
    "Status",
    "Stop",
    "Verdict",
    "Workload",
    "__version__",
    "campaign",
    "evaluate",
    "export",
    "open_home",
    "optimize",
    "problems",
    "resume",
]

_HOMES = {
    "Campaign": "workbench.home",
    "Candidate": "workbench.candidate",
    "Evaluator": "workbench.evaluating",
    "Home": "workbench.home",
    "KernelwrightError": "errors",
    "Measurement": "traces.records",
    "Problem": "kernelbench.problem",
    "Speedup": "traces.records",
    "Status": "traces.records",
    "Stop": "agents.stop",
    "Verdict": "traces.records",
    "Workload": "kernelbench.problem",
    "campaign": "workbench.home",
    "evaluate": "workbench.evaluating",
    "export": "workbench.exporting",
    "open_home": "workbench.home",
    "optimize": "workbench.optimizing",
    "problems": "kernelbench.registry",
    "resume": "workbench.optimizing",
}


def __getattr__(name: str) -> typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
