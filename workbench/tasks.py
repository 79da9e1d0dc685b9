# SPDX-License-Identifier: Apache-2.0
"""From settings to what the referee is started with. Whoever evaluates begins here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import Config
from ..errors import UsageError
from ..kernelbench.languages import LANGUAGES, languages_on
from ..kernelbench.machine import usable_cpus
from ..kernelbench.targets import AUTO, CPU, Target, target_of

PYTHON_ENDING = ".py"
NO_COUNTERS = "none"
"""In place of a set of hardware counters."""
IN = "@"
"""Between a problem and a precision policy."""

if TYPE_CHECKING:
    from ..kernelbench.packs import Axes
    from ..kernelbench.problem import Workload
    from ..sandbox.builders.workshop import Workshop
    from ..traces.records import Check, Counting
    from ..verifier.request import Task


def languages_of(target: str) -> tuple[str, ...]:
    """The languages that a target takes, the usual one first."""
    return tuple(each.name for each in languages_on(target_of(target)))


def choose_target(
    target: str, language: str = "", nvml: Any = None, devices: tuple[str, ...] | None = None
) -> str:
    """The target's name; `auto` is the first device of this machine, else the CPU.

    Args:
        nvml: Anything with the functions of `pynvml`; None: that module.
        devices: Those that may be used; None: all.

    Raises:
        UsageError: there is no such target, or not in this language.
    """
    if target == AUTO:
        target = CPU if language in languages_of(CPU) else _first_device(nvml, devices)
    chosen = target_of(target)
    if language and language not in languages_of(chosen.name):
        _refuse_vendor(chosen, language)
        other = [each for each in LANGUAGES.values() if each.is_for_gpu]
        raise UsageError(
            f"target {chosen} takes no candidates in '{language}'",
            hint=f"language {' or '.join(languages_of(chosen.name))}"
            + (
                f"; --target {other[0].example_target} takes "
                f"{' and '.join(each.title for each in other)}"
                if chosen.is_cpu
                else ""
            ),
        )
    return chosen.name


def _refuse_vendor(target: Target, language: str) -> None:
    """Raises UsageError where the language is for GPUs, and not for those of this vendor."""
    asked = LANGUAGES.get(language)
    if target.gpu is None or asked is None or not asked.is_for_gpu:
        return
    takes = languages_on(target)
    raise UsageError(
        f"target {target} is {target.gpu.vendor}'s and takes no candidates in '{language}': "
        f"{asked.title} is built by the compilers of {' and '.join(sorted(asked.vendors))}, for "
        "GPUs of theirs alone",
        hint=f"write it in {' or '.join(each.title for each in takes)} (--language "
        f"{takes[0]}), or take a target of {asked.title}'s: --target {asked.example_target}",
    )


def _first_device(nvml: Any, allowed: tuple[str, ...] | None) -> str:
    from ..verifier.stands.leased import Machine

    return next((device.architecture for device in Machine(nvml, allowed=allowed).devices()), CPU)


def add_problems(config: Config) -> None:
    """Makes the problems of the user's folders known. Raises UsageError."""
    if config.problems:
        from ..kernelbench import registry

        for folder in config.problems:
            registry.add_folder(folder)


def word_in(word: str, policy: str | None) -> str:
    """What is written for a problem in a precision policy: `gemm@bf16`, `mine.py@bf16`."""
    return f"{word}{IN}{policy}" if policy else word


def name_problem(config: Config, word: str) -> str:
    """The problem that is meant: a name, or the path of a file, which becomes known.

    A PyTorch module in KernelBench's form is traced in a jail first. Behind either may stand a
    precision policy (`word_in`).

    Raises:
        UsageError: the file cannot be read, declares what cannot be, or cannot be traced; or there
            is no such policy.
        PrerequisiteError: the sandbox is too weak to trace it in, and nobody accepts that.
    """
    from ..kernelbench.policies import name_in

    word, is_in, policy = word.partition(IN)
    name = _name_file(config, word)
    return name_in(name, policy) if is_in else name


def _name_file(config: Config, word: str) -> str:
    if not word.endswith(PYTHON_ENDING):
        return word
    from ..kernelbench import registry

    path = Path(word)
    text = registry.read_file(path)
    if registry.declares_problem(text) or not registry.defines_module(text):
        return registry.add_file(path)
    from ..sandbox.definitions.process import trace_module

    name = registry.name_of_module(path)
    workshop = _open_workshop(config)
    registry.set_text(name, trace_module(text, path.name, workshop), path.name)
    return name


def admit_problem(config: Config, problem: str) -> list[Check]:
    """What there is to find about a problem before anybody relies on it (verifier/admission.py).

    Raises:
        PrerequisiteError: the sandbox is too weak for a user's file, and nobody accepts that.
    """
    from ..kernelbench import registry
    from ..sandbox.definitions.process import open_problem
    from ..verifier.admission import check_problem

    check_cpus(config.cpus)
    workshop = _open_workshop(config)
    try:
        with open_problem(registry.get(problem), workshop) as opened:
            return check_problem(opened, workshop)
    except UsageError as error:
        from ..traces.records import Check

        return [Check(name="the file runs", passed=False, detail=str(error))]


def _open_workshop(config: Config) -> Workshop:
    """Where a user's file runs. Raises PrerequisiteError where the sandbox is too weak for it."""
    from ..sandbox.builders.workshop import Workshop
    from ..sandbox.isolation import choose
    from ..sandbox.isolation.canary import require_isolation

    jail = choose(config.jail)
    accepts = config.accept_weak_isolation
    require_isolation(jail, config.cache_dir, asked=config.jail, accepts_weak=accepts)
    return Workshop(jail, config.cache_dir, config.cpus or usable_cpus())


def make_workload(
    problem: str,
    name: str | None,
    matrix: Path | None,
    axes: Axes | Sequence[Axes] = (),
    several: str | None = None,
) -> Workload:
    """The workload of that name, of that matrix file, or the problem's default; or several.

    Args:
        axes: Sizes in place of the workload's own (kernelbench/packs.py).
        several: Workloads with weights, a trace or a pack.
    """
    from ..kernelbench import registry
    from ..kernelbench.packs import workload_of

    return workload_of(
        registry.get(problem),
        name or "",
        matrix=str(matrix) if matrix else "",
        axes=axes,
        several=several or "",
    )


def make_task(
    config: Config,
    problem: str,
    workload: str | None,
    matrix: Path | None,
    target: str,
    language: str,
    axes: Axes | Sequence[Axes] = (),
    several: str | None = None,
) -> Task:
    """What the referee is started for; workload, matrix, axes and several as `make_workload`'s."""
    add_problems(config)
    problem = name_problem(config, problem)
    chosen = make_workload(problem, workload, matrix, axes, several)
    return task_for(config, problem, chosen, target, language)


def task_for(
    config: Config, problem: str, workload: Workload, target: str, language: str = ""
) -> Task:
    """What the referee is started for, with a workload at hand."""
    from ..kernelbench import registry
    from ..verifier.request import Task

    check_cpus(config.cpus)
    return Task(
        counting=_choose_counters(config, problem, target),
        model_scales=_find_scales(config, target),
        problem=problem,
        problem_text=registry.get(problem).text,
        workload=workload,
        target=target,
        languages=(language,) if language else (),
        cpus=config.cpus,
        cache_dir=str(config.cache_dir),
        accept_weak_isolation=config.accept_weak_isolation,
        jail=config.jail,
        timing_lock=str(config.timing_lock),
        devices=config.devices,
        cuda_home=str(config.cuda_home or ""),
        cuda_compiler=config.cuda_compiler,
        preparation_s=config.max_preparation,
    )


def _find_scales(config: Config, target: str) -> dict[str, float]:
    """What the user fitted to devices of this target. Raises ConfigError as `_choose_counters`."""
    from ..verifier.profile.metrics import catalogue

    if target_of(target).is_cpu:
        return {}
    return dict(catalogue(config.home).scales.get(target_of(target).name, {}))


def _choose_counters(config: Config, problem: str, target: str) -> Counting | None:
    """The set that was asked for, and what a Judge is fed of such a problem there.

    Raises:
        ConfigError: the user's own choice of metrics cannot be used.
    """
    from ..kernelbench import registry
    from ..traces.records import Counting
    from ..verifier.profile.metrics import catalogue

    if target_of(target).is_cpu or config.counters == NO_COUNTERS:
        return None
    judged = catalogue(config.home).judge_metrics(target, registry.get(problem).tags)
    return Counting(which=config.counters, judged=judged)


def check_cpus(cpus: tuple[int, ...]) -> None:
    """Raises UsageError for a CPU that this machine has not, or that this process may not use."""
    allowed = usable_cpus()
    absent = sorted(set(cpus) - set(allowed))
    if absent:
        raise UsageError(
            f"CPU {', '.join(map(str, absent))} of --cpus is none that may be used here",
            hint=f"one or more of: {','.join(map(str, allowed))}; without it all are used",
        )
