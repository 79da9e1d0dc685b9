# SPDX-License-Identifier: Apache-2.0
"""Finds problems and workloads by name. It holds no operator itself.

Users' problems are files: `add_file` and `add_folder` make them known in this process, `add_text`
where a campaign or a referee is given one.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from ..errors import MatrixError, UnknownNameError, UsageError
from .declaration import NAME
from .declared import problem_of_module
from .definition import read_text
from .manner import USUAL, Manner
from .matrices import file_sha256
from .policies import Policy, declare_in, split_name
from .problem import Problem, Workload
from .sparse import OWN_AXES
from .standins import LAWS, STAND_INS, read_law

_PROBLEMS = tuple(
    sorted(
        path.stem
        for path in Path(__file__).with_name("problems").glob("*.py")
        if not path.stem.startswith("_")
    )
)
"""Names of the modules in `problems/`; each declares the problem of the same name."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DECLARES = re.compile(rf"^{NAME}\b.*=", re.MULTILINE)
_MODULE = re.compile(r"^(class Model|def get_inputs)\b", re.MULTILINE)
_own: dict[str, tuple[str, str]] = {}
"""By name: the text of a user's file, and what it is called in an error."""

MATRIX_ENDINGS = (".mtx", ".mtx.gz", ".npz")


def names() -> tuple[str, ...]:
    """The names of all problems, in the order they are shown: ours first."""
    return (*_PROBLEMS, *_own)


def add_file(path: Path) -> str:
    """Makes a user's problem known, by its file's name, whatever had it before. Nothing of it runs.

    Raises:
        UsageError: it cannot be read, or its name cannot be a problem's.
    """
    set_text(path.stem, read_file(path), str(path))
    return path.stem


def read_file(path: Path) -> str:
    """The text of a user's file. Raises UsageError where it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the problem {path} cannot be read: {error}",
            hint="give the path of a Python file that declares PROBLEM, or defines Model",
        ) from error


def declares_problem(text: str) -> bool:
    """Whether a file says that it is a problem."""
    return bool(_DECLARES.search(text))


def defines_module(text: str) -> bool:
    """Whether a file has a PyTorch module in KernelBench's form, or examples for a function."""
    return bool(_MODULE.search(text))


def name_of_module(path: Path) -> str:
    """What the problem of a module's file is called: its file's name, as far as C takes it."""
    words = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")
    return words.lstrip("0123456789_") or "module"


def set_text(name: str, text: str, place: str) -> None:
    """Makes the problem of a user's file known, whatever had its name before. Raises UsageError."""
    check_name(name, place)
    _own[name] = (text, place)


def add_folder(folder: Path) -> None:
    """Makes all problems of a folder known: its Python files that declare one.

    Raises:
        UsageError: there is no such folder, or see `add_file`.
    """
    if not folder.is_dir():
        raise UsageError(
            f"--problems {folder} is no folder", hint="give a folder of files that declare PROBLEM"
        )
    for path in sorted(folder.glob("*.py")):
        if declares_problem(path.read_text("utf-8", "replace")):
            add_text(path.stem, path.read_text("utf-8", "replace"), str(path))


def add_text(name: str, text: str, place: str = "") -> None:
    """Makes the problem of a user's file known.

    Raises:
        UsageError: its name is one of ours, or no name; another file has it already.
    """
    place = place or f"{name}.py"
    check_name(name, place)
    known, where = _own.get(name, (text, place))
    # A file that was changed since is read anew.
    if known != text and Path(where).resolve() != Path(place).resolve():
        raise UsageError(
            f"{place} and {where} are two problems named '{name}'", hint="rename one of the files"
        )
    _own[name] = (text, place)


def check_name(name: str, place: str) -> None:
    """Raises UsageError where a user's problem cannot be called so."""
    is_ours = name in _PROBLEMS or (split_name(name)[0] in _PROBLEMS)
    if is_ours or not _NAME.fullmatch(name):
        why = "is one of ours" if is_ours else "cannot be a function of C"
        raise UsageError(
            f"{place}: a problem is called as its file, and '{name}' {why}",
            hint="rename the file: small letters, digits and underscores",
        )


def template_of(name: str) -> str:
    """The text of a user's problem that can be begun with."""
    text = Path(__file__).with_name("new_problem.txt").read_text("utf-8")
    return text.replace("NAME", name)


def get(name: str) -> Problem:
    """The problem `name`; of a user's, without what runs in a jail alone (definition.py).

    Behind the name of any one may stand a precision policy, as in `gemm_bf16` (policies.py).

    Raises:
        UnknownNameError: with the nearest names.
        UsageError: a user's file declares what cannot be.
    """
    if name in _own:
        return _read(name, *_own[name])
    base, policy = split_name(name)
    if base in _own and policy:
        text, place = _own[base]
        return _read(name, declare_in(policy, text, place), place)
    if base not in _PROBLEMS:
        raise UnknownNameError.for_name("problem", name, names())
    return _load(base, policy)


@cache
def _load(name: str, policy: Policy | None) -> Problem:
    return problem_of_module(importlib.import_module(f".problems.{name}", __package__), policy)


@cache
def _read(name: str, text: str, place: str) -> Problem:
    return read_text(name, text, place)


def problems() -> tuple[Problem, ...]:
    """All problems of ours."""
    return tuple(get(name) for name in _PROBLEMS)


def workload_for(problem: Problem, name: str = "", *, matrix: str = "", **axes: int) -> Workload:
    """The workload that a user means.

    Args:
        name: a workload of the problem, a graph stand-in or a law with its rows as `rmat 14`
            (sparse problems), or the path of a matrix file; empty: the matrix if one is given, else
            the default workload. Behind it may stand how it is timed: `512@server`, `@offline`,
            `@x2` (manner.Manner).
        matrix: the path of a matrix file (sparse problems).
        axes: values for the axes a pattern does not give, e.g. `N=64`.

    Raises:
        UnknownNameError: if the name means nothing, with the nearest ones.
        MatrixError: if the file is not there, or the problem takes none.
        UsageError: if an axis is not one that can be chosen.
    """
    is_own = name in (workload.name for workload in problem.workloads)
    base, manner = (name, USUAL) if is_own else Manner.split(name)
    return _find_workload(problem, base, matrix, axes).called_in(manner)


def workload_names(problem: Problem) -> tuple[str, ...]:
    """Everything `--workload` takes for a problem: its own workloads, then graph stand-ins."""
    own = tuple(workload.name for workload in problem.workloads)
    return own + (tuple(STAND_INS) if "sparse" in problem.tags else ())


def _find_workload(problem: Problem, name: str, matrix: str, axes: dict[str, int]) -> Workload:
    if matrix or name.endswith(MATRIX_ENDINGS):
        return _resize_workload(problem, _of_matrix(problem, matrix or name), axes)
    if not name:
        return _resize_workload(problem, problem.default_workload, axes)
    own = {workload.name: workload for workload in problem.workloads}
    if name in own:
        return _resize_workload(problem, own[name], axes)
    if name in STAND_INS and "sparse" in problem.tags:
        known = STAND_INS[name]
        workload = Workload(
            name=name,
            kind="realistic",
            axes=_dense_axes(problem),
            generator=known.generator,
            note=f"statistics of {name}: {known.rows:,} rows, {known.nnz:,} entries, "
            f"coefficient of variation {known.cv:g}",
        )
        return _resize_workload(problem, workload, axes)
    if name.partition(" ")[0] in LAWS and "sparse" in problem.tags:
        try:
            generator, note = read_law(name)
        except ValueError as error:
            raise UsageError(str(error), hint="write a law and its rows: 'hub 5000'") from error
        workload = Workload(
            name=name,
            kind="adversarial",
            axes=_dense_axes(problem),
            generator=generator,
            note=note,
        )
        return _resize_workload(problem, workload, axes)
    raise UnknownNameError.for_name(f"workload of {problem.name}", name, workload_names(problem))


def _dense_axes(problem: Problem) -> dict[str, int]:
    return {a: v for a, v in problem.default_workload.axes.items() if a not in OWN_AXES}


def _resize_workload(problem: Problem, workload: Workload, axes: dict[str, int]) -> Workload:
    if not axes:
        return workload
    for axis, value in axes.items():
        if axis not in workload.axes:
            raise UsageError(
                f"{problem.name} has no axis '{axis}' that can be chosen",
                hint=f"axes: {', '.join(workload.axes) or '-'}",
            )
        is_choice = axis == "reduce"
        if value < (0 if is_choice else 1):
            raise UsageError(
                f"axis {axis} of {problem.name} cannot be {value}",
                hint=f"{axis}: {problem.axes[axis]}",
            )
    if all(workload.axes[axis] == value for axis, value in axes.items()):
        return workload
    sizes = ",".join(f"{axis}={value}" for axis, value in axes.items())
    is_its_own = (
        not workload.generator and not workload.matrix and axes.keys() == workload.axes.keys()
    )
    name = sizes if is_its_own else f"{workload.name}:{sizes}"
    return workload.model_copy(update={"name": name, "axes": {**workload.axes, **axes}})


def _of_matrix(problem: Problem, path: str) -> Workload:
    if "sparse" not in problem.tags:
        raise MatrixError(
            f"{problem.name} takes no matrix file, but was given {path}",
            hint="use a sparse problem such as spmm_csr, or leave the matrix out",
        )
    file = Path(path)
    digest = file_sha256(file)
    stem = file.name
    for ending in MATRIX_ENDINGS:
        stem = stem.removesuffix(ending)
    return Workload(
        name=stem,
        kind="matrix",
        axes=_dense_axes(problem),
        matrix=str(file.resolve()),
        matrix_sha256=digest,
        note=f"pattern of {file.name}",
    )
