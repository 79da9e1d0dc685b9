# SPDX-License-Identifier: Apache-2.0
"""`problems`: what there is to work on, and the signature a candidate must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ExitCode, UsageError
from ..kernelbench.languages import LANGUAGES, list_names
from . import common
from .completing import complete_problem

if TYPE_CHECKING:
    from ..config import Config
    from ..kernelbench.problem import Problem
    from ..traces.records import Check
    from .shapes import (
        Admission,
        AdmissionsDocument,
        ProblemDocument,
        ProblemsDocument,
        ProblemShape,
        SignatureDocument,
    )

ALL = "all"


def problems(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show this one: its name or its file.",
            show_default=False,
            autocompletion=complete_problem,
        ),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option(
            "--signature",
            help=f"Print a whole candidate to start from: {list_names()}.",
            show_default=False,
        ),
    ] = None,
    policy: common.PolicyOption = None,
    target: common.TargetOption = None,
    folders: common.ProblemsOption = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            help="Whether this one can verify kernels; all: each of them.",
            metavar="NAME",
        ),
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Print the names only.")] = False,
    jail: common.JailOption = None,
    accept_weak_isolation: common.WeakOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """List the problems, or show one."""
    if signature is not None and name is None:
        raise UsageError(
            "--signature needs the name of a problem",
            hint=f"kernelwright problems spmm_csr --signature {signature}",
        )
    from ..kernelbench import registry
    from ..workbench import tasks

    resolved = common.load(
        ctx, problems=folders, target=target, jail=jail, accept_weak_isolation=accept_weak_isolation
    )
    config = resolved.config
    tasks.add_problems(config)
    if check is not None:
        _check(config, check, policy, as_json=as_json)
        return
    word = tasks.word_in(name, policy) if name else None
    name = tasks.name_problem(config, word) if word else None
    if signature is not None and name is not None:
        _print_signature(registry.get(name), signature, word or name, as_json=as_json)
    elif name is not None:
        problem = registry.get(name)
        if as_json:
            one: ProblemDocument = {
                "problem": describe(problem),
                "sizes": _lint(problem, config.target),
            }
            common.emit(one)
        else:
            _show(problem, config.target)
    elif as_json:
        every: ProblemsDocument = {
            "problems": [describe(registry.get(each)) for each in registry.names()]
        }
        common.emit(every)
    elif names:
        for each in registry.names():
            common.put(each)
    else:
        _list(ctx, [registry.get(each) for each in registry.names()])


def _check(config: Config, which: str, policy: str | None, *, as_json: bool) -> None:
    """Tells what admission finds; exit status 1 where a problem is refused."""
    from ..kernelbench import registry
    from ..verifier import admission
    from ..workbench import tasks

    words = registry.names() if which == ALL else (which,)
    asked = [tasks.name_problem(config, tasks.word_in(word, policy)) for word in words]
    documents: list[Admission] = []
    is_met = True
    for name in asked:
        found = tasks.admit_problem(config, name)
        is_admitted = admission.is_admitted(found)
        is_met = is_met and is_admitted
        documents.append(
            {
                "problem": name,
                "is_admitted": is_admitted,
                "checks": [each.model_dump(mode="json") for each in found],
            }
        )
        if not as_json:
            common.put(f"{name}: {'admitted' if is_admitted else 'REFUSED'}")
            for each in found:
                common.put(f"  {_tell(each)}")
    if as_json:
        document: AdmissionsDocument = {"admissions": documents}
        common.emit(document)
    if not is_met:
        raise typer.Exit(int(ExitCode.NOT_MET))


def _tell(check: Check) -> str:
    """One check in a line."""
    from ..traces.wording import explain_check
    from ..verifier.baselines.headroom import SkippedCheck

    is_skipped = isinstance(check, SkippedCheck)
    word = "-     " if is_skipped else "ok    " if check.passed else "FAILED"
    return f"{word} {explain_check(check)}"


def describe(problem: Problem) -> ProblemShape:
    """The document of one problem."""
    from ..kernelbench.problem import c_parameters
    from ..kernelbench.recipes import recipes_for

    return {
        "name": problem.name,
        "version": problem.version,
        "title": problem.title,
        "definition": problem.definition,
        "axes": problem.axes,
        "inputs": [tensor.model_dump(mode="json") for tensor in problem.inputs],
        "outputs": [tensor.model_dump(mode="json") for tensor in problem.outputs],
        "c_parameters": c_parameters(problem),
        "precision": problem.precision.model_dump(mode="json"),
        "baselines": [baseline.name for baseline in problem.baselines],
        "workloads": [
            workload.model_dump(mode="json", exclude_defaults=True)
            for workload in problem.workloads
        ],
        "default_workload": problem.default_workload.name,
        "recipes": [
            {
                "family": recipe.family,
                "language": recipe.language,
                "summary": recipe.summary,
                "knobs": {knob.name: list(knob.values) for knob in recipe.knobs},
                "combinations": combinations(recipe.knobs),
            }
            for language in LANGUAGES
            for recipe in recipes_for(problem.name, language)
        ],
        "backward_of": problem.backward_of,
        "tags": list(problem.tags),
        "source": problem.source,
        "headline": problem.headline,
    }


def combinations(knobs: tuple[Any, ...]) -> int:
    """How many combinations of knobs there are before constraints, which need a workload."""
    product = 1
    for knob in knobs:
        product *= len(knob.values)
    return product


def _list(ctx: typer.Context, found: list[Problem]) -> None:
    from rich import box
    from rich.table import Table

    from ..kernelbench.recipes import recipes_for

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("problem", "what it computes", "workloads", "recipes", "variants"):
        table.add_column(heading, no_wrap=heading == "problem")
    for problem in found:
        recipes = [r for language in LANGUAGES for r in recipes_for(problem.name, language)]
        table.add_row(
            problem.name,
            problem.title,
            str(len(problem.workloads)),
            ", ".join(recipe.family for recipe in recipes) or "-",
            f"{sum(combinations(recipe.knobs) for recipe in recipes):,}",
        )
    common.console(common.load(ctx).config, is_stderr=False).print(table)


def _lint(problem: Problem, target: str) -> dict[str, list[str]]:
    """By realistic workload what its sizes waste, where all are known without a pattern."""
    from ..kernelbench.machine import processor
    from ..kernelbench.shapes import lint_shapes
    from ..kernelbench.targets import AUTO, CPU

    where = CPU if target == AUTO else target
    wide = processor().vector_bytes
    found = {
        workload.name: lint_shapes(problem, workload.axes, where, vector_bytes=wide)
        for workload in problem.workloads
        if workload.kind == "realistic" and workload.axes.keys() == problem.axes.keys()
    }
    return {name: [note.text for note in notes] for name, notes in found.items() if notes}


def _show(problem: Problem, target: str) -> None:
    document = describe(problem)
    common.put(f"{problem.name}  {problem.title}")
    common.put()
    for line in problem.definition.splitlines():
        common.put(f"    {line}")
    common.put()
    for axis, meaning in problem.axes.items():
        common.put(f"  {axis:10} {meaning}")
    for role, tensors in (("in", problem.inputs), ("out", problem.outputs)):
        for tensor in tensors:
            shape = ", ".join(tensor.shape)
            common.put(f"  {role:3} {tensor.name:10} {tensor.dtype}[{shape}]  {tensor.meaning}")
    common.put()
    if problem.backward_of:
        common.put(f"backward of   {problem.backward_of}")
    common.put(f"held against  {', '.join(document['baselines'])}")
    common.put(f"precision     {problem.precision.policy}")
    if problem.policies:
        common.put(f"--policy      {', '.join(problem.policies)}")
    common.put(f"source        {problem.source}")
    if problem.headline:
        common.put(f"reported      {problem.headline}")
    common.put()
    common.put("workloads")
    for workload in problem.workloads:
        mark = "*" if workload is problem.default_workload else " "
        axes = " ".join(f"{axis}={value}" for axis, value in workload.axes.items())
        common.put(f" {mark}{workload.name:20} {workload.kind:12} {axes}  {workload.note}".rstrip())
    if wasteful := _lint(problem, target):
        common.put()
        common.put("sizes that waste something by themselves")
        for name, notes in wasteful.items():
            for note in notes:
                common.put(f"  {name:20} {note}")
    common.put()
    common.put("recipes")
    for recipe in document["recipes"]:
        common.put(
            f"  {recipe['family']:20} {recipe['language']}, {recipe['combinations']:,} variants: "
            f"{recipe['summary']}"
        )


def _print_signature(problem: Problem, language: str, word: str, *, as_json: bool) -> None:
    """Prints where a kernel begins, of a problem that the command line calls so."""
    from ..kernelbench.skeleton import signature, skeleton

    if language not in LANGUAGES:
        raise UsageError(
            f"there is no language '{language}'", hint=f"one of: {', '.join(LANGUAGES)}"
        )
    text = skeleton(problem, LANGUAGES[language], word=word)
    if as_json:
        entry = signature(problem, LANGUAGES[language])
        document: SignatureDocument = {
            "problem": problem.name,
            "language": language,
            "signature": entry,
            "skeleton": text,
        }
        common.emit(document)
    else:
        common.put(text.rstrip("\n"))
