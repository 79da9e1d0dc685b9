"""Reads the launch plan in a candidate's front matter; docs/launch-plans.md is its language.

What can be known from the file alone is checked here: keys, types, names and the syntax of
expressions. `resolve` knows the problem, the workload and the target.
"""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Iterable
from typing import Any

from ...errors import UnknownNameError
from ..front_matter import FrontMatter, MalformedError, Path, read_comment, read_docstring
from ..source_text import encoded, python_tree
from .cuda_signature import CudaSource, read_cuda
from .declared import (
    DeclaredArgument,
    DeclaredLaunch,
    DeclaredScratch,
    Float,
    Part,
    Plan,
    Value,
)
from .dtypes import ITEM_BYTES
from .expressions import FUNCTIONS, MAX_INTEGER, WORDS, Expression, Literal
from .faults import PlanFault, RefusedError, fault_at, missing, shown
from .grammar import parse_expression
from .model import Constant, Dtype
from .signature import Signature
from .triton_signature import TritonSource, read_triton

LANGUAGES = ("cuda", "triton")
MAX_LAUNCHES = 64
MAX_SCRATCH = 16
"""Buffers."""
MAX_EXTENTS = 8
"""Of a scratch buffer's shape."""

_TOP = ("language", "knobs", "launch", "scratch", "recipe")
_HOST_TOP = (*_TOP, "entry")
"""A Triton file with host code may say which entry point counts, as Python candidates do."""
_ZERO = ("zero", "when")
_LAUNCH = {
    "cuda": ("kernel", "when", "grid", "block", "cluster", "shared_bytes", "args"),
    "triton": ("kernel", "when", "grid", "args", "constexpr", "num_warps", "num_stages",
               "num_ctas", "maxnreg"),
}  # fmt: skip
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_ENTRIES = ("run", "ModelNew")
_FLOATS = {"f32": 32, "f64": 64}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_KERNEL = re.compile(r"(?:::)?[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_TEMPLATE = re.compile(r"\s*<[A-Za-z0-9_:<>, *&().'+-]*>\Z", re.ASCII)
_KERNEL_CHARACTERS = 200
_DTYPE = re.compile(r"(?:tl\.)?(?P<name>[a-z0-9]+)\Z", re.ASCII)
_TRITON_DTYPES = {
    *(name for name in ITEM_BYTES if name != "bool"), "int1", "float8e4nv", "float8e5",
}  # fmt: skip
_SHORT_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}


def parse(source: str, language: str) -> Plan | PlanFault:
    """The plan of a candidate in `language` (`cuda` or `triton`), or what is wrong with it.

    A Triton file without a `[[launch]]` that defines `run` or `ModelNew` has a plan without
    launches: its host code makes them.

    Raises:
        UnknownNameError: there are no plans in `language`.
    """
    if language not in LANGUAGES:
        raise UnknownNameError.among("language with launch plans", language, LANGUAGES)
    try:
        if language == "triton":
            tree = python_tree(source)
            matter, kernels = read_docstring(tree, source), read_triton(tree)
            return _Reader(matter, language).plan(kernels, has_entry=_defines_entry(tree))
        encoded(source)
        return _Reader(read_comment(source), language).plan(read_cuda(source))
    except MalformedError as error:
        return fault_at(error.reason, error.place)
    except RefusedError as error:
        return error.fault


class _Reader:
    """Turns the front matter's values into a plan; every refusal has the value's place."""

    def __init__(self, matter: FrontMatter, language: str) -> None:
        self.matter = matter
        self.language = language

    def plan(self, source: CudaSource | TritonSource, *, has_entry: bool = False) -> Plan:
        facts = self.matter.facts
        launches = self._tables(facts, "launch", MAX_LAUNCHES)
        is_host = self.language == "triton" and not launches
        self._keys(facts, (), _HOST_TOP if is_host else _TOP)
        self._language(facts)
        if not launches and not (is_host and has_entry):
            raise self._refused(_NO_LAUNCH[self.language], ())
        knobs = self._knobs(facts)
        self._agreement(knobs, source)
        self._recipe(facts)
        declared = tuple(self._launch(table, index) for index, table in enumerate(launches))
        return Plan(
            language=self.language,
            launches=declared,
            knobs=knobs,
            scratch=self._scratch(facts, knobs),
            signatures=self._signatures(declared, source),
            facts=facts,
            matter=self.matter,
        )

    def _signatures(
        self, launches: Iterable[DeclaredLaunch], source: CudaSource | TritonSource
    ) -> dict[str, tuple[Signature, ...]]:
        found = {}
        for launch in launches:
            if launch.kernel and launch.kernel not in found:
                known = source.signatures(launch.kernel)
                if isinstance(known, str):
                    raise self._refused(known, ("launch", launch.index, "kernel"))
                found[launch.kernel] = known
        return found

    def _refused(self, reason: str, path: Path, *, of_key: bool = False) -> RefusedError:
        return RefusedError(reason, self.matter.place(path, of_key=of_key))

    def _keys(self, table: dict[str, Any], path: Path, known: Iterable[str]) -> None:
        names = list(known)
        for key in table:
            if key not in names:
                raise self._refused(missing("key", key, names), (*path, key), of_key=True)

    def _table(self, parent: dict[str, Any], path: Path) -> dict[str, Any]:
        value = parent.get(str(path[-1]), {})
        if not isinstance(value, dict):
            raise self._refused(f"[{path[-1]}] must be a table, not {shown(value)}", path)
        return value

    def _tables(self, facts: dict[str, Any], key: str, most: int) -> list[dict[str, Any]]:
        value = facts.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self._refused(f"write each {key} as a table of its own, [[{key}]]", (key,))
        if len(value) > most:
            raise self._refused(f"there are {len(value)} launches, at most {most}", (key, most))
        return value

    def _language(self, facts: dict[str, Any]) -> None:
        said = facts.get("language", self.language)
        if said != self.language:
            raise self._refused(
                f"the front matter says the language is {shown(said)}, and the file is taken as "
                f"{self.language}", ("language",),
            )  # fmt: skip

    def _knobs(self, facts: dict[str, Any]) -> dict[str, int]:
        knobs = self._table(facts, ("knobs",))
        for name, value in knobs.items():
            self._name(name, ("knobs", name))
            if type(value) is not int or abs(value) > MAX_INTEGER:
                raise self._refused(
                    f"the knob {shown(name)} is {shown(value)}; knobs are integers below 2^63",
                    ("knobs", name),
                )
        return knobs

    def _agreement(self, knobs: dict[str, int], source: CudaSource | TritonSource) -> None:
        """A knob and a constant of the same name in the source are two copies of one number."""
        for name, value in knobs.items():
            defined = source.definitions(name)
            if defined and all(text.isdigit() and text != str(value) for text in defined):
                raise self._refused(
                    f"the knob {name} is {value}, and the source defines it as {defined[0]}; "
                    "change both together", ("knobs", name),
                )  # fmt: skip

    def _name(self, name: str, path: Path) -> None:
        if not _NAME.match(name) or name in FUNCTIONS or name in WORDS:
            raise self._refused(
                f"{shown(name)} cannot be a name: use letters, digits and _, no digit first, and "
                f"none of {', '.join([*FUNCTIONS, *sorted(WORDS)])}", path, of_key=True,
            )  # fmt: skip

    def _scratch(self, facts: dict[str, Any], knobs: dict[str, int]) -> tuple[DeclaredScratch, ...]:
        tables = self._table(facts, ("scratch",))
        if len(tables) > MAX_SCRATCH:
            raise self._refused(
                f"there are {len(tables)} scratch buffers, at most {MAX_SCRATCH}", ("scratch",)
            )
        found = []
        for name in tables:
            path = ("scratch", name)
            table = self._table(tables, path)
            self._name(name, path)
            if name in knobs:
                raise self._refused(f"{shown(name)} is both a knob and a scratch buffer", path)
            self._keys(table, path, ("shape", "dtype"))
            self._needs(table, path, ("shape", "dtype"))
            if table["dtype"] not in ITEM_BYTES:
                raise self._refused(missing("dtype", str(table["dtype"]), ITEM_BYTES),
                                    (*path, "dtype"))  # fmt: skip
            shape = self._extents(table["shape"], (*path, "shape"), MAX_EXTENTS)
            found.append(DeclaredScratch(name, table["dtype"], shape))
        return tuple(found)

    def _recipe(self, facts: dict[str, Any]) -> None:
        recipe = self._table(facts, ("recipe",))
        self._keys(recipe, ("recipe",), ("family", "knobs"))
        self._table(recipe, ("recipe", "knobs"))
        if not isinstance(recipe.get("family", ""), str):
            raise self._refused("the recipe's family must be a string", ("recipe", "family"))

    def _needs(self, table: dict[str, Any], path: Path, keys: Iterable[str]) -> None:
        absent = [key for key in keys if key not in table]
        if absent:
            title = f"the launch of {shown(table['kernel'])}" if "kernel" in table else "it"
            title = f"[{'.'.join(map(str, path))}]" if path[0] == "scratch" else title
            raise self._refused(f"{title} lacks {' and '.join(absent)}", path)

    def _launch(self, table: dict[str, Any], index: int) -> DeclaredLaunch:
        path: Path = ("launch", index)
        when = self._optional(table, path, "when")
        if "zero" in table:
            self._keys(table, path, _ZERO)
            zero = self._string(table["zero"], (*path, "zero"))
            return DeclaredLaunch(index=index, zero=zero, when=when)
        self._keys(table, path, (*_LAUNCH[self.language], "zero"))
        if "kernel" not in table:
            raise self._refused('a launch needs kernel = "NAME", or zero = "BUFFER"', path)
        kernel = self._kernel(table["kernel"], (*path, "kernel"))
        needed = ("grid", "block", "args") if self.language == "cuda" else ("grid", "args")
        self._needs(table, path, needed)
        return DeclaredLaunch(
            index=index,
            kernel=kernel,
            when=when,
            grid=self._extents(table["grid"], (*path, "grid"), 3),
            block=self._extents(table.get("block", [1]), (*path, "block"), 3),
            cluster=self._extents(table.get("cluster", [1]), (*path, "cluster"), 3),
            shared_bytes=self._optional(table, path, "shared_bytes"),
            arguments=self._arguments(table["args"], (*path, "args")),
            constants=self._constants(table, (*path, "constexpr")),
            options={key: self._expression(table[key], (*path, key))
                     for key in _OPTIONS if key in table},
        )  # fmt: skip

    def _string(self, value: object, path: Path) -> str:
        if not isinstance(value, str) or not value:
            raise self._refused(f"{path[-1]} must be a name in quotes, not {shown(value)}", path)
        return value

    def _kernel(self, value: object, path: Path) -> str:
        name = self._string(value, path).strip()
        found = _KERNEL.match(name)
        rest = name[found.end() :] if found else name
        is_sound = found and len(name) <= _KERNEL_CHARACTERS
        if self.language == "triton" and found and "::" in found[0]:
            is_sound = False
        if rest and (self.language == "triton" or not _balanced(rest)):
            is_sound = False
        if not is_sound:
            instance = "" if self.language == "triton" else " or an instance such as 'k<float, 4>'"
            raise self._refused(f"{shown(name)} is not the name of a kernel{instance}", path)
        return name

    def _optional(self, table: dict[str, Any], path: Path, key: str) -> Expression | None:
        return self._expression(table[key], (*path, key)) if key in table else None

    def _expression(self, value: object, path: Path) -> Expression:
        if isinstance(value, str):
            return parse_expression(value, lambda at: self.matter.place_inside(path, at))
        if type(value) is not int or abs(value) > MAX_INTEGER:
            raise self._refused(
                f"{shown(value)} is not an integer below 2^63 or an expression in quotes", path
            )
        return Expression(str(value), Literal(value), lambda _: self.matter.place(path))

    def _extents(self, value: object, path: Path, most: int) -> tuple[Expression, ...]:
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise self._refused(
                f"{path[-1]} must be a list of 1 to {most} integers or expressions, such as "
                f'["cdiv(M, 4)"], not {shown(value)}', path,
            )  # fmt: skip
        return tuple(self._expression(each, (*path, at)) for at, each in enumerate(value))

    def _arguments(self, value: object, path: Path) -> tuple[DeclaredArgument, ...]:
        if not isinstance(value, list):
            raise self._refused(f'args must be a list such as ["M", "x"], not {shown(value)}', path)
        return tuple(self._argument(each, (*path, at)) for at, each in enumerate(value))

    def _argument(self, value: object, path: Path) -> DeclaredArgument:
        if not isinstance(value, dict):
            if type(value) is float:
                raise self._refused(
                    f"say how wide the number {value!r} is: {{f32 = {value!r}}} for float, "
                    f"{{f64 = {value!r}}} for double", path,
                )  # fmt: skip
            return Value(self._expression(value, path))
        if set(value) == {"buffer", "offset"}:
            name = self._string(value["buffer"], (*path, "buffer"))
            return Part(name, self._expression(value["offset"], (*path, "offset")))
        if len(value) == 1 and (key := next(iter(value))) in _FLOATS:
            number = value[key]
            if type(number) not in (int, float):
                raise self._refused(f"{key} takes a number, not {shown(number)}", (*path, key))
            return Float(self._float(number, _FLOATS[key], (*path, key)), _FLOATS[key])
        raise self._refused(
            "an argument in braces is {f32 = 1e-5}, {f64 = 1e-5} or "
            '{buffer = "partial", offset = "M * N"}', path,
        )  # fmt: skip

    def _float(self, number: float, bits: int, path: Path) -> float:
        try:
            value = float(number)
            struct.pack("<f" if bits == 32 else "<d", value)
        except OverflowError:
            raise self._refused(f"{shown(number)} does not fit {bits} bits", path) from None
        return value

    def _constants(self, table: dict[str, Any], path: Path) -> dict[str, Expression | Constant]:
        given = self._table(table, path)
        return {name: self._constant(value, (*path, name)) for name, value in given.items()}

    def _constant(self, value: object, path: Path) -> Expression | Constant:
        if isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            if len(value) > 1 and value[0] == value[-1] == "'":
                return value[1:-1]
            if (found := _DTYPE.match(value)) and (name := _dtype(found["name"])):
                return Dtype(name)
        return self._expression(value, path)


def _dtype(name: str) -> str:
    name = _SHORT_DTYPES.get(name, name)
    return name if name in _TRITON_DTYPES else ""


def _balanced(template: str) -> bool:
    """Whether it is one list of template arguments and nothing after it."""
    if not _TEMPLATE.match(template):
        return False
    depth = 0
    for at, character in enumerate(template):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if depth <= 0 and character == ">":
            return depth == 0 and at == len(template) - 1
    return False


def _defines_entry(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in _ENTRIES
        for node in ast.walk(tree)
    )


_NO_LAUNCH = {
    "cuda": "there is no launch plan: the file must start with /*--- and a [[launch]] with kernel, "
    "grid, block and args, and ---*/",
    "triton": "there is no launch plan: start the module's docstring with a line --- and a "
    "[[launch]] with kernel, grid and args, ended by a line ---; or define run(...) or ModelNew",
}
