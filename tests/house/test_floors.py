"""Imports go down the floors only, and nothing heavy is imported to parse a command line."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from package_tree import Module, modules, own_imports

from kernelwright.sandbox.definitions.talk import ROOMS

FLOORS = {
    "": 0,
    "errors": 0,
    "version": 0,
    "config": 1,
    "extras": 1,
    "syntax": 1,
    "traces.place": 2,
    "kernelbench.dtypes": 2,
    "kernelbench.c_types": 2,
    "kernelbench.targets": 2,
    "kernelbench.products": 2,
    "kernelbench.languages": 2,
    "kernelbench.machine": 2,
    "kernelbench.codecs": 3,
    "traces.records": 2,
    "traces.options": 2,
    "traces.decisions": 2,
    "traces.preparation": 2,
    "traces.schemas": 2,
    "traces.metric_words": 2,
    "traces.events": 3,
    "traces": 4,
    "kernelbench": 5,
    "sandbox": 6,
    "verifier": 7,
    "agents": 8,
    "running": 9,
    "audit": 9,
    "workbench": 10,
    "compare": 10,
    "portfolio": 10,
    "cli": 11,
    "__main__": 12,
}
SHOWING = ("traces.view", "traces.report", "traces.export")
"""Rooms that show what was stored: they may use the store, and the store may not use them."""

HEAVY = (
    "torch",
    "langgraph",
    "fastapi",
    "plotly",
    "openai",
    "scipy",
    "numpy",
    "ml_dtypes",
    "triton",
    "rich",
)

HOMES = {
    "torch": "",
    "triton": "",
    "plotly": "",
    "openai": "",
    "ml_dtypes": "kernelbench.codecs",
    "langgraph": "agents.workflows",
    "fastapi": "traces.view",
}
"""The only room whose modules may import this at their top; everywhere else in functions only."""


WINGS = {
    f"{house}.{wing}": floor
    for house, floors in {
        "agents": (
            ("stop", "model", "offered"),
            ("text", "search"),
            ("models", "roles"),
            ("aids",),
            ("books",),
            ("prompting",),
            ("brains",),
            ("workflows",),
            ("casting",),
        ),
        "verifier": (
            ("failure", "request", "truth", "profile"),
            ("baselines",),
            ("clock",),
            ("checks",),
            ("stands",),
            ("evaluation", "admission"),
            ("process",),
        ),
    }.items()
    for floor, wings in enumerate(floors)
    for wing in wings
}
"""Rooms of the two large houses, with the floor of each within its house; one imports from lower
ones only, and two on the same floor know nothing of each other."""


def wing_of(name: str) -> str:
    """The room within a house with wings; of every other module the empty name."""
    stem = ".".join(name.split(".")[:2])
    return stem if name.startswith(("agents.", "verifier.")) else ""


def climbs_wings(importer: str, target: str) -> bool:
    """Whether an import within one house goes up, or aside."""
    own, other = wing_of(importer), wing_of(target)
    if not own or own == other or own.split(".")[0] != other.split(".")[0]:
        return False
    return WINGS[own] <= WINGS.get(other, 99)


def floor_of(name: str) -> int:
    """The floor of a module, or of a name imported from one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        stem = ".".join(parts[:length])
        if stem in FLOORS:
            return FLOORS[stem]
    # A name that stands in the package's own __init__, such as __version__.
    return FLOORS[""]


def is_showing(name: str) -> bool:
    return name.startswith(SHOWING)


def upward_imports(module: Module) -> list[str]:
    """What the module imports although it stands above it."""
    found: list[str] = []
    if not module.name:
        # The public face names what stands on every floor, and imports it when it is asked for.
        return found
    for line, target in own_imports(module):
        climbs = floor_of(target) > floor_of(module.name)
        if is_showing(target) and not is_showing(module.name) and floor_of(module.name) <= 4:
            climbs = True
        if climbs or climbs_wings(module.name, target):
            found.append(f"{module.path.name}:{line} imports {target}")
    return found


def test_every_module_has_a_floor() -> None:
    tops = {module.name.split(".")[0] for module in modules()}
    assert tops <= {stem.split(".")[0] for stem in FLOORS}


def test_imports_go_down() -> None:
    assert [each for module in modules() for each in upward_imports(module)] == []


def test_jails_of_problems_show_what_their_programs_import() -> None:
    """Files at the root are shown one by one, so that a new one is missed easily."""
    inside = [module for module in modules() if module.name.split(".")[0] in ROOMS]
    files = {module.name for module in modules() if module.path.name == f"{module.name}.py"}
    asked = {target.split(".")[0] for module in inside for _, target in own_imports(module)}
    assert {f"{name}.py" for name in asked & files} <= set(ROOMS)


def test_every_room_in_a_house_with_wings_has_a_place() -> None:
    found = {name for m in modules() if (name := wing_of(m.name)) and name.count(".")}
    assert found == set(WINGS)


@pytest.mark.parametrize(
    ("importer", "line", "climbs"),
    [
        ("traces.store", "from ..kernelbench.problem import Problem", True),
        ("traces.store", "from .view.server import serve", True),
        ("verifier.process.referee", "from ...agents import roles", True),
        ("config", "from .traces import records", True),
        ("sandbox.builders.cpp", "from ...cli.common import put", True),
        ("agents.archive", "from kernelwright.cli import main", True),
        ("traces.view.server", "from ..store import Store", False),
        ("kernelbench.codecs.blocks", "from ..problem import Problem", True),
        ("kernelbench.codecs.blocks", "from ..dtypes import DType", False),
        ("cli.browse", "from ..traces.view.server import serve", False),
        ("verifier.request", "from ..kernelbench.problem import Workload", False),
        ("traces.records", "from ..errors import UsageError", False),
    ],
)
def test_the_rule_sees_a_climb(importer: str, line: str, climbs: bool) -> None:
    module = Module(importer, Path(importer.rpartition(".")[2] + ".py"), ast.parse(line))
    assert bool(upward_imports(module)) is climbs


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys, kernelwright\n"
        "print(*(name for name in sys.modules if name.startswith('kernelwright.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kernelwright.version"]


def test_the_command_line_starts_light() -> None:
    code = (
        "import sys, kernelwright.cli\n"
        f"print(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_no_module_imports_heavily_at_its_top() -> None:
    found = {
        f"{module.name} imports {name}"
        for module in modules()
        for name in top_level_imports(module)
        if name in HOMES and not (HOMES[name] and module.name.startswith(HOMES[name]))
    }
    assert found == set()


def top_level_imports(module: Module) -> list[str]:
    names = []
    for node in module.tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module.split(".")[0])
    return names
