# SPDX-License-Identifier: Apache-2.0
"""Holds a plan against the problem and the kernels' signatures, before anything is built.

Nothing here depends on a workload: a mistake in a launch that few sizes need is seen at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...kernelbench.dtypes import DTYPES, FLOAT32, dtype_of
from ...kernelbench.problem import Problem
from .declared import BufferPart, DeclaredArgument, DeclaredLaunch, Float, Plan
from .expressions import Expression, Variable
from .faults import PlanRefusedError, explain_missing, quote
from .signature import ANY, VECTOR, Parameter, Signature

_LAUNCH_KEYS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class Given(NamedTuple):
    """What an argument is, without its value."""

    text: str
    dtype: str
    """Of the value or, for a buffer, of its elements; empty for an integer of any width."""
    is_buffer: bool = False

    @property
    def meaning(self) -> str:
        """For reasons: `the float32 tensor or buffer 'x'`, `an integer`."""
        if self.is_buffer:
            return f"a buffer of {self.dtype}"
        return f"a {dtype_of(self.dtype).c}" if self.dtype else "an integer"


class Misfit(NamedTuple):
    """Why arguments do not fit, and the first that does not; None where it is their number."""

    at: int | None
    reason: str


def check(plan: Plan, problem: Problem, features: Collection[str]) -> None:
    """Names, buffers and arguments of every launch.

    Raises:
        RefusedError: something does not fit.
    """
    numbers = {*problem.axes, *features, *plan.knobs}
    buffers = {tensor.name: tensor.dtype for tensor in problem.tensors}
    _check_names(plan, problem, features)
    buffers |= {each.name: each.dtype for each in plan.scratch}
    for scratch in plan.scratch:
        for extent in scratch.shape:
            _check_expression(extent, numbers, buffers)
    for launch in plan.launches:
        _check_launch(plan, problem, launch, numbers, buffers)
    _check_outputs(plan, problem)


def _check_outputs(plan: Plan, problem: Problem) -> None:
    reached = {launch.zero for launch in plan.launches}
    for launch in plan.launches:
        for argument in launch.arguments:
            reached.add(
                argument.buffer if isinstance(argument, BufferPart) else argument.text.strip()
            )
    lacking = [tensor.name for tensor in problem.outputs if tensor.name not in reached]
    if lacking and plan.launches:
        raise plan.refusal_error(
            f"no launch gets the output {lacking[0]}, so that it cannot be written; put it into "
            "args",
            ("launch", plan.launches[-1].index, "args"),
        )


def _check_names(plan: Plan, problem: Problem, features: Collection[str]) -> None:
    taken = {*problem.axes, *features, *(tensor.name for tensor in problem.tensors)}
    paths = [("knobs", name) for name in plan.knobs]
    paths += [("scratch", scratch.name) for scratch in plan.scratch]
    for path in paths:
        if path[1] in taken:
            raise PlanRefusedError(
                f"{quote(path[1])} is already a name of {problem.name}: its axes, features and "
                "tensors keep theirs; choose another",
                plan.matter.place(path, of_key=True),
            )


def _check_launch(
    plan: Plan,
    problem: Problem,
    launch: DeclaredLaunch,
    numbers: Collection[str],
    buffers: Mapping[str, str],
) -> None:
    for expression in _expressions(launch):
        _check_constexpr(expression, launch, numbers)
        _check_expression(expression, numbers, buffers)
    path = ("launch", launch.index)
    if launch.zero:
        written = [t.name for t in problem.outputs] + [s.name for s in plan.scratch]
        if launch.zero in buffers and launch.zero not in written:
            raise plan.refusal_error(
                f"{launch.zero} is an input, which must not be written; zero an output or a "
                "scratch buffer",
                (*path, "zero"),
            )
        if launch.zero not in buffers:
            reason = explain_missing("output or scratch buffer", launch.zero, written)
            raise plan.refusal_error(reason, (*path, "zero"))
        return
    given = [
        _describe_given(plan, (*path, "args", at), argument, numbers, buffers)
        for at, argument in enumerate(launch.arguments)
    ]
    known = [each for each in plan.signatures.get(launch.kernel, ()) if each.parameters is not None]
    if len(known) < len(plan.signatures.get(launch.kernel, ())) or not known:
        return
    if plan.dialect.is_specialised:
        _check_constants(plan, launch, known[0])
    misfits = [misfit(launch.kernel, given, signature) for signature in known]
    if None not in misfits and (first := misfits[0]):
        where = () if first.at is None else (first.at,)
        raise plan.refusal_error(first.reason, (*path, "args", *where))


def _expressions(launch: DeclaredLaunch) -> Iterator[Expression]:
    yield from (*launch.grid, *launch.block, *launch.cluster, *launch.options.values())
    yield from (each for each in launch.constants.values() if isinstance(each, Expression))
    yield from (each for each in (launch.when, launch.shared_bytes) if each is not None)


def _check_expression(
    expression: Expression, numbers: Collection[str], buffers: Collection[str]
) -> None:
    for name, at in expression.names:
        if name in buffers:
            raise PlanRefusedError(
                f"{name} is a buffer, which has no value here; an expression takes axes, "
                "features and knobs",
                expression.place(at),
            )
        if name not in numbers:
            raise PlanRefusedError(
                explain_missing("axis, feature or knob", name, numbers), expression.place(at)
            )


def _check_constexpr(
    expression: Expression, launch: DeclaredLaunch, numbers: Collection[str]
) -> None:
    for name, at in expression.names:
        if name in launch.constants and name not in numbers:
            raise PlanRefusedError(
                f"{name} is a constexpr of this launch, which expressions do not see; make it a "
                f'knob, [knobs] {name} = …, and give it on: constexpr = {{{name} = "{name}"}}',
                expression.place(at),
            )


def _describe_given(
    plan: Plan,
    path: tuple[str | int, ...],
    argument: DeclaredArgument,
    numbers: Collection[str],
    buffers: Mapping[str, str],
) -> Given:
    if isinstance(argument, Float):
        return Given(argument.text, f"float{argument.bits}")
    if isinstance(argument, BufferPart):
        _check_expression(argument.offset, numbers, buffers)
        if argument.buffer not in buffers:
            reason = explain_missing("tensor or scratch buffer", argument.buffer, buffers)
            raise plan.refusal_error(reason, (*path, "buffer"))
        return Given(argument.text, buffers[argument.buffer], is_buffer=True)
    node = argument.expression.node
    if isinstance(node, Variable):
        if node.name in buffers:
            return Given(argument.text, buffers[node.name], is_buffer=True)
        if node.name not in numbers:
            kind = "axis, tensor, scratch buffer, knob or feature"
            raise plan.refusal_error(explain_missing(kind, node.name, [*numbers, *buffers]), path)
    _check_expression(argument.expression, numbers, buffers)
    return Given(argument.text, "")


def _check_constants(plan: Plan, launch: DeclaredLaunch, signature: Signature) -> None:
    path = ("launch", launch.index, "constexpr")
    constants = [each for each in signature.parameters or () if each.is_constexpr]
    names = [each.name for each in constants]
    for name in launch.constants:
        if name in names:
            continue
        reason = explain_missing(f"tl.constexpr parameter of {launch.kernel}", name, names)
        if name in _LAUNCH_KEYS:
            reason = f"{name} is a key of the launch itself: write it beside constexpr"
        elif any(name == each.name for each in signature.runtime):
            reason = f"{name} is no tl.constexpr of {launch.kernel}; give it in args"
        raise PlanRefusedError(reason, plan.matter.place((*path, name), of_key=True))
    lacking = [e.name for e in constants if not e.has_default and e.name not in launch.constants]
    if lacking:
        raise plan.refusal_error(
            f"{launch.kernel} needs a value for {', '.join(lacking)}: constexpr = "
            f"{{{', '.join(f'{name} = …' for name in lacking)}}}",
            path,
        )


def misfit(kernel: str, given: Sequence[Given], signature: Signature) -> Misfit | None:
    """The first argument that its parameter cannot take, or that there are too many or too few."""
    taken = signature.runtime
    said = f"{kernel} takes {signature.text}"
    for at, (argument, parameter) in enumerate(zip(given, taken, strict=False)):
        if why := _explain_refusal(parameter, argument):
            reason = (
                f"argument {at + 1} is {quote(argument.text)}, {argument.meaning}, and {why}; "
                f"{said}{_suggest_order(given, taken)}"
            )
            return Misfit(at, reason)
    if len(given) != len(taken):
        texts = {_bare_name(argument.text) for argument in given}
        absent = [each.name for each in taken if each.name and _bare_name(each.name) not in texts]
        hint = f"; nothing is given for {', '.join(absent)}" if absent and len(absent) < 4 else ""
        reason = f"args has {len(given)} arguments, and {said}, which are {len(taken)}{hint}"
        return Misfit(None, reason)
    return None


def _explain_refusal(parameter: Parameter, argument: Given) -> str:
    """Why the parameter cannot take it; empty where it can, or only a compiler can tell."""
    text = f"the parameter there is '{parameter.text}'"
    if argument.is_buffer:
        if parameter.is_pointer is False:
            return f"{text}, no pointer"
        if parameter.is_pointer and not _same_element(parameter.dtype, argument.dtype):
            return f"{text}"
        return ""
    if parameter.is_pointer:
        return f"{text}, a pointer"
    if parameter.dtype == VECTOR:
        return f"{text}, a vector, which cannot be given; take its components or a pointer"
    if parameter.is_pointer is None or not parameter.dtype:
        return ""
    known = DTYPES.get(parameter.dtype)
    is_float = known is not None and known.is_float
    if known and is_float and known.bytes < FLOAT32.bytes:
        return f"{text}, which cannot be passed by value; take a float and convert it"
    if not argument.dtype:
        return f"{text}; give a float as {{f32 = …}} or let the kernel take an int" * is_float
    return f"{text}" * (argument.dtype != parameter.dtype)


def _same_element(declared: str, actual: str) -> bool:
    if declared in ("", ANY, actual):
        return True
    one, other = DTYPES.get(declared), DTYPES.get(actual)
    if one is None or other is None:
        return False
    return one.is_integral and other.is_integral and one.bytes == other.bytes


def _suggest_order(given: Sequence[Given], taken: Sequence[Parameter]) -> str:
    """The order that the parameters' names suggest, where they name exactly what is given."""
    texts = {_bare_name(argument.text): argument.text for argument in given}
    names = [_bare_name(parameter.name) for parameter in taken]
    if len(texts) < len(given) or set(names) != set(texts) or len(names) != len(given):
        return ""
    return f"; in its order: args = [{', '.join(repr(texts[name]) for name in names)}]".replace(
        "'", '"'
    )


def _bare_name(name: str) -> str:
    return name.lower().removesuffix("_ptr").strip("_")


def suspicions(plan: Plan) -> tuple[str, ...]:
    """Arguments whose names say that they may be swapped; worth telling where an answer is wrong.

    `spmm_row gives N where its parameter is called M, and M where it is called N` is legal, and
    right where one kernel serves a matrix and its transpose.
    """
    found = []
    for launch in plan.launches:
        signatures = plan.signatures.get(launch.kernel, ())
        if len(signatures) != 1 or len(signatures[0].runtime) != len(launch.arguments):
            continue
        pairs = [
            (_bare_name(argument.text), parameter, argument.text)
            for argument, parameter in zip(launch.arguments, signatures[0].runtime, strict=True)
        ]
        names = {given for given, _, _ in pairs}
        swapped = [
            f"{text} where its parameter is called {parameter.name}"
            for given, parameter, text in pairs
            if (name := _bare_name(parameter.name)) != given
            and name in names
            and given in {_bare_name(each.name) for _, each, _ in pairs}
        ]
        if swapped:
            found.append(f"{launch.kernel} is given {', '.join(swapped)}")
    return tuple(found)
