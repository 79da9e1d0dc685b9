# SPDX-License-Identifier: Apache-2.0
"""A CUDA candidate's launch plan as host code: one C function that makes its launches.

What the workbench evaluates for each workload (`resolve`) is written out as C++ that evaluates it
at each call, for programs that know no plans. Expressions keep the meaning that they have in a
plan, Python's: integers of 63 bits, `//` and `%` that round towards minus infinity. The limits of a
device are not looked at; a launch that it refuses is an error of the function.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...kernelbench.dtypes import dtype_of
from ...kernelbench.features import SPARSE_FEATURES
from ...kernelbench.problem import Problem, Tensor
from .declared import BufferPart, DeclaredArgument, DeclaredLaunch, Float, Plan
from .expressions import (
    Chain,
    Choice,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    Logic,
    Node,
    Unary,
    Variable,
)

HELPERS = """\
#include <cmath>
#include <cstddef>
#include <type_traits>

namespace kernelwright_plan {

using whole = long long;

template <typename A, typename B>
using Common = std::conditional_t<
    std::is_integral<A>::value && std::is_integral<B>::value, whole, double>;

// Rounded towards minus infinity, as launch plans do.
template <typename A, typename B>
inline Common<A, B> floor_div(A a, B b) {
  if constexpr (std::is_integral<Common<A, B>>::value) {
    const whole q = whole(a) / whole(b);
    return q - (whole(a) % whole(b) != 0 && (whole(a) < 0) != (whole(b) < 0));
  } else {
    return std::floor(double(a) / double(b));
  }
}

template <typename A, typename B>
inline Common<A, B> modulo(A a, B b) {
  return Common<A, B>(a) - floor_div(a, b) * Common<A, B>(b);
}

inline whole cdiv(whole a, whole b) { return -floor_div(-a, b); }

inline whole next_pow2(whole a) {
  whole power = 1;
  while (power < a) power *= 2;
  return power;
}

template <typename A, typename B>
inline Common<A, B> least(A a, B b) { return b < a ? Common<A, B>(b) : Common<A, B>(a); }

template <typename A, typename B>
inline Common<A, B> greatest(A a, B b) { return a < b ? Common<A, B>(b) : Common<A, B>(a); }

template <typename A>
inline whole ceiling(A a) { return whole(std::ceil(double(a))); }
inline whole ceiling(whole a) { return a; }

template <typename A>
inline whole flooring(A a) { return whole(std::floor(double(a))); }
inline whole flooring(whole a) { return a; }

// An address that becomes a pointer to whatever a kernel's parameter points at.
struct Address {
  void* at;
  template <typename T>
  operator T*() const { return static_cast<T*>(at); }
};

inline Address address(const void* start, whole bytes = 0) {
  return {const_cast<char*>(static_cast<const char*>(start)) + bytes};
}

}  // namespace kernelwright_plan
"""
"""What the functions need; stands before them, once."""

_FUNCTIONS = {
    "cdiv": "cdiv",
    "next_pow2": "next_pow2",
    "min": "least",
    "max": "greatest",
    "ceil": "ceiling",
    "floor": "flooring",
}
_SCRATCH_ALIGNMENT = 256
"""What cudaMalloc gives, and kernels may rely on."""
_IN = "kernelwright_plan::"


@dataclass(frozen=True)
class HostText:
    """The host code of a plan."""

    functions: str
    """Definitions, to stand behind the kernels in one `.cu` file."""
    declarations: str
    """The same as prototypes of a C header."""
    launch: str
    """The name of the function that launches."""
    scratch: str
    """The name of the function that says how many bytes of scratch memory it needs."""
    axes: tuple[str, ...]
    features: tuple[str, ...]
    """Of the workload: parameters of both functions, behind the axes."""


def write_host_text(plan: Plan, problem: Problem) -> HostText:
    """The functions of a CUDA plan that has launches.

    `NAME_launch(axes…, features…, inputs…, outputs…, scratch, stream)` returns a cudaError_t as an
    int, 0 where all was launched; `NAME_scratch_bytes(axes…, features…)` the bytes that `scratch`
    must have on the device, which may be 0. All pointers are to device memory.
    """
    return _Writer(plan, problem).write()


class _Writer:
    def __init__(self, plan: Plan, problem: Problem) -> None:
        self.plan, self.problem = plan, problem
        self.axes = tuple(problem.axes)
        used = {name for each in self._expressions() for name, _ in each.names}
        self.features = tuple(name for name in SPARSE_FEATURES if name in used)

    def write(self) -> HostText:
        name = self.problem.name
        launch, scratch = f"{name}_launch", f"{name}_scratch_bytes"
        sizes = ", ".join(self._sizes())
        tensors = ", ".join(
            [f"const void* {t.name}" for t in self.problem.inputs]
            + [f"void* {t.name}" for t in self.problem.outputs]
        )
        asks = f"long long {scratch}({sizes})"
        does = f"int {launch}({sizes}, {tensors}, void* scratch, void* stream)"
        body = "\n".join(
            [
                'extern "C" ' + asks + " {",
                *self._void_unused(),
                *self._layout(),
                "  return kw_room;",
                "}",
                "",
                'extern "C" ' + does + " {",
                *self._void_unused(),
                *self._layout(),
                *self._buffers(),
                "  const cudaStream_t kw_stream = static_cast<cudaStream_t>(stream);",
                "  int kw_wanted = 0;",
                "  cudaError_t kw_error = cudaSuccess;",
                *(line for each in self.plan.launches for line in self._launch(each)),
                # As the workbench refuses such a workload: nothing would be computed.
                "  return kw_wanted ? 0 : int(cudaErrorInvalidConfiguration);",
                "}",
                "",
            ]
        )
        return HostText(
            functions=body,
            declarations=f"{asks};\n{does};\n",
            launch=launch,
            scratch=scratch,
            axes=self.axes,
            features=self.features,
        )

    def _expressions(self) -> Iterator[Expression]:
        for each in self.plan.launches:
            yield from (*each.grid, *each.block, *each.cluster)
            yield from (one for one in (each.when, each.shared_bytes) if one)
            for given in each.arguments:
                if isinstance(given, BufferPart):
                    yield given.offset
                elif not isinstance(given, Float):
                    yield given.expression
        for scratch in self.plan.scratch:
            yield from scratch.shape

    def _sizes(self) -> list[str]:
        return [f"long long {axis}" for axis in self.axes] + [
            f"double {feature}" for feature in self.features
        ]

    def _void_unused(self) -> list[str]:
        """What an axis or a feature is that no expression reads: no warning."""
        return [f"  (void){name};" for name in (*self.axes, *self.features)]

    def _text(self, expression: Expression) -> str:
        return c_text(expression.node, self.plan.knobs)

    def _layout(self) -> list[str]:
        """Where each scratch buffer begins, and how much they take together."""
        lines = ["  long long kw_room = 0; (void)kw_room;"]
        for each in self.plan.scratch:
            elements = " * ".join(f"({self._text(extent)})" for extent in each.shape) or "1"
            size = f"{elements} * {dtype_of(each.dtype).bytes}"
            align = _SCRATCH_ALIGNMENT
            lines += [
                f"  const long long kw_at_{each.name} = kw_room;",
                f"  (void)kw_at_{each.name};",
                f"  kw_room += {_IN}cdiv({size}, {align}) * {align};",
            ]
        return lines

    def _buffers(self) -> list[str]:
        lines = []
        for each in self.plan.scratch:
            at = f"{_IN}address(scratch, kw_at_{each.name})"
            lines.append(f"  const {_IN}Address {each.name} = {at}; (void){each.name};")
        return lines

    def _launch(self, launch: DeclaredLaunch) -> list[str]:
        condition = self._text(launch.when) if launch.when else "true"
        done = self._fill(launch) if launch.zero else self._kernel(launch)
        return [
            f"  if ({condition}) {{",
            "    kw_wanted = 1;",
            *(f"    {line}" for line in done),
            "    if (kw_error != cudaSuccess) return int(kw_error);",
            "  }",
        ]

    def _fill(self, launch: DeclaredLaunch) -> list[str]:
        size = self._bytes(launch.zero)
        start = self._start(launch.zero)
        return [f"kw_error = cudaMemsetAsync({start}, 0, size_t({size}), kw_stream);"]

    def _kernel(self, launch: DeclaredLaunch) -> list[str]:
        grid, block = (self._extent(each) for each in (launch.grid, launch.block))
        shared = self._text(launch.shared_bytes) if launch.shared_bytes else "0"
        given = ", ".join(self._argument(each) for each in launch.arguments)
        lines = [f"const size_t kw_shared = size_t({shared});"]
        if launch.shared_bytes:
            attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
            lines += [
                "if (kw_shared > 48 * 1024) {",
                "  kw_error = cudaFuncSetAttribute((const void*)"
                f"({launch.kernel}), {attribute}, int(kw_shared));",
                "  if (kw_error != cudaSuccess) return int(kw_error);",
                "}",
            ]
        if any(each.node != Literal(1) for each in launch.cluster):
            cluster = ", ".join(f"unsigned({self._text(e)})" for e in launch.cluster)
            names = ("x", "y", "z")[: len(launch.cluster)]
            return [
                *lines,
                "cudaLaunchAttribute kw_cluster = {};",
                "kw_cluster.id = cudaLaunchAttributeClusterDimension;",
                f"const unsigned kw_blocks[] = {{{cluster}}};",
                "kw_cluster.val.clusterDim = {1, 1, 1};",
                *(
                    f"kw_cluster.val.clusterDim.{name} = kw_blocks[{at}];"
                    for at, name in enumerate(names)
                ),
                "cudaLaunchConfig_t kw_config = {};",
                f"kw_config.gridDim = {grid};",
                f"kw_config.blockDim = {block};",
                "kw_config.dynamicSmemBytes = kw_shared;",
                "kw_config.stream = kw_stream;",
                "kw_config.attrs = &kw_cluster;",
                "kw_config.numAttrs = 1;",
                f"kw_error = cudaLaunchKernelEx(&kw_config, {launch.kernel}"
                + (f", {given});" if given else ");"),
            ]
        where = f"<<<{grid}, {block}, kw_shared, kw_stream>>>"
        return [
            *lines,
            f"{launch.kernel}{where}({given});",
            "kw_error = cudaGetLastError();",
        ]

    def _extent(self, written: tuple[Expression, ...]) -> str:
        return f"dim3({', '.join(f'unsigned({self._text(each)})' for each in written)})"

    def _argument(self, given: DeclaredArgument) -> str:
        if isinstance(given, Float):
            return f"{given.value!r}{'f' if given.bits == 32 else ''}"
        if isinstance(given, BufferPart):
            offset = f"({self._text(given.offset)}) * {self._item_bytes(given.buffer)}"
            return self._start(given.buffer, offset)
        node = given.expression.node
        if isinstance(node, Variable) and self._is_buffer(node.name):
            return self._start(node.name)
        return self._text(given.expression)

    def _start(self, buffer: str, offset: str = "0") -> str:
        start = f"{buffer}.at" if self._is_scratch(buffer) else buffer
        return f"{_IN}address({start}, {offset})"

    def _is_scratch(self, name: str) -> bool:
        return any(each.name == name for each in self.plan.scratch)

    def _is_buffer(self, name: str) -> bool:
        return self._is_scratch(name) or any(t.name == name for t in self.problem.tensors)

    def _tensor(self, name: str) -> Tensor:
        return next(each for each in self.problem.tensors if each.name == name)

    def _item_bytes(self, buffer: str) -> int:
        scratch = next((each for each in self.plan.scratch if each.name == buffer), None)
        return dtype_of(scratch.dtype if scratch else self._tensor(buffer).dtype).bytes

    def _bytes(self, buffer: str) -> str:
        scratch = next((each for each in self.plan.scratch if each.name == buffer), None)
        # The formula of a tensor's extent is C++ as it stands: sums of products of axes.
        extents = (
            [self._text(each) for each in scratch.shape] if scratch else self._tensor(buffer).shape
        )
        return " * ".join(f"({each})" for each in extents) + f" * {self._item_bytes(buffer)}"


def c_text(node: Node, knobs: Mapping[str, int] | None = None) -> str:
    """An expression of a plan in C++, with the helpers; names stand for themselves.

    Args:
        knobs: Names that stand for numbers: a source may have macros of these names.
    """

    def inner(part: Node) -> str:
        text = c_text(part, knobs)
        return text if isinstance(part, Literal | Variable | FunctionCall) else f"({text})"

    match node:
        case Literal(value=value):
            return f"{int(value)}LL" if isinstance(value, int) else repr(value)
        case Variable(name=name):
            return f"{knobs[name]}LL" if knobs and name in knobs else name
        case Unary(sign=sign, operand=operand):
            return f"({'!' if sign == 'not' else sign}{inner(operand)})"
        case Chain(first=first, rest=rest):
            joined = inner(first)
            for term in rest:
                joined = _operation(joined, term.sign, inner(term.operand))
            return joined
        case Comparison(first=first, rest=rest):
            left, parts = first, []
            for term in rest:
                parts.append(f"{inner(left)} {term.sign} {inner(term.operand)}")
                left = term.operand
            return f"({' && '.join(parts)})"
        case Logic(word=word, operands=operands):
            *others, text = [inner(each) for each in operands]
            for other in reversed(others):
                # The operand that decides is the value, as in Python.
                sides = (text, other) if word == "and" else (other, text)
                text = f"({other} ? {sides[0]} : {sides[1]})"
            return text
        case Choice(then=then, condition=condition, otherwise=otherwise):
            return f"({inner(condition)} ? {inner(then)} : {inner(otherwise)})"
        case FunctionCall(function=function, arguments=arguments):
            name, given = _IN + _FUNCTIONS[function], [c_text(a, knobs) for a in arguments]
            if function not in ("min", "max"):
                return f"{name}({', '.join(given)})"
            return functools.reduce(lambda one, other: f"{name}({one}, {other})", given)
    raise TypeError(f"{node} is no expression of a plan")


def _operation(left: str, sign: str, right: str) -> str:
    if sign == "//":
        return f"{_IN}floor_div({left}, {right})"
    if sign == "%":
        return f"{_IN}modulo({left}, {right})"
    return f"({left} {sign} {right})"
