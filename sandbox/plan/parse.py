# SPDX-License-Identifier: Apache-2.0
"""Reads the launch plan in a candidate's front matter; docs/launch-plans.md is its language.

What can be known from the file alone is checked here: keys, types, names and the syntax of
expressions. `resolve` knows the problem, the workload and the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...kernelbench.dtypes import DTYPES
from ..front_matter import MalformedError, Path
from .cuda_signature import CudaSource
from .declared import DeclaredLaunch, DeclaredScratch, Plan
from .dialects import dialect_of
from .faults import PlanFault, PlanRefusedError, explain_missing, fault_at, quote
from .fields import Fields
from .knobs import check_name, read_knobs
from .limits import MAX_SCRATCH
from .signature import Signature
from .triton_signature import TritonSource

MAX_LAUNCHES = 64
MAX_EXTENTS = 8
"""Of a scratch buffer's shape."""
_ALONE = [name for name, each in DTYPES.items() if not each.packed_bits]
"""Types of scratch buffers: where elements share a byte, it is a buffer of bytes."""

_TOP = ("language", "knobs", "launch", "scratch", "recipe")
_HOST_TOP = (*_TOP, "entry")
"""A Triton file with host code may say which entry point counts, as Python candidates do."""
_ZERO = ("zero", "when")
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def parse(source: str, language: str) -> Plan | PlanFault:
    """The plan of a candidate in `language`, or what is wrong with it.

    A Triton file without a `[[launch]]` that defines `run` or `ModelNew` has a plan without
    launches: its host code makes them.

    Raises:
        UnknownNameError: there are no plans in `language`.
    """
    dialect = dialect_of(language)
    try:
        read = dialect.read(source)
        return _Reader(read.matter, dialect).plan(read.kernels, has_entry=read.has_entry)
    except MalformedError as error:
        return fault_at(error.reason, error.place)
    except PlanRefusedError as error:
        return error.fault


class _Reader(Fields):
    """Turns the front matter's values into a plan."""

    def plan(self, source: CudaSource | TritonSource, *, has_entry: bool = False) -> Plan:
        facts = self.matter.facts
        launches = self._tables(facts, "launch", MAX_LAUNCHES)
        is_host = self.dialect.may_launch_itself and not launches
        self.keys(facts, (), _HOST_TOP if is_host else _TOP)
        self._language(facts)
        if not launches and not (is_host and has_entry):
            raise self.refusal_error(self.dialect.no_launch, ())
        knobs = {knob.name: knob.value for knob in read_knobs(self.matter)}
        self._agreement(knobs, source)
        self._recipe(facts)
        declared = tuple(self._launch(table, index) for index, table in enumerate(launches))
        return Plan(
            dialect=self.dialect,
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
                    raise self.refusal_error(known, ("launch", launch.index, "kernel"))
                found[launch.kernel] = known
        return found

    def _tables(self, facts: dict[str, Any], key: str, most: int) -> list[dict[str, Any]]:
        value = facts.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.refusal_error(f"write each {key} as a table of its own, [[{key}]]", (key,))
        if len(value) > most:
            raise self.refusal_error(
                f"there are {len(value)} launches, at most {most}", (key, most)
            )
        return value

    def _language(self, facts: dict[str, Any]) -> None:
        taken = self.dialect.language.name
        said = facts.get("language", taken)
        if said != taken:
            raise self.refusal_error(
                f"the front matter says the language is {quote(said)}, and the file is taken as "
                f"{taken}",
                ("language",),
            )

    def _agreement(self, knobs: dict[str, int], source: CudaSource | TritonSource) -> None:
        """A knob and a constant of the same name in the source are two copies of one number."""
        for name, value in knobs.items():
            defined = source.definitions(name)
            if defined and all(text.isdigit() and text != str(value) for text in defined):
                raise self.refusal_error(
                    f"the knob {name} is {value}, and the source defines it as {defined[0]}; "
                    "change both together",
                    ("knobs", name),
                )

    def _scratch(self, facts: dict[str, Any], knobs: dict[str, int]) -> tuple[DeclaredScratch, ...]:
        tables = self.table(facts, ("scratch",))
        if len(tables) > MAX_SCRATCH:
            raise self.refusal_error(
                f"there are {len(tables)} scratch buffers, at most {MAX_SCRATCH}", ("scratch",)
            )
        found = []
        for name in tables:
            path = ("scratch", name)
            table = self.table(tables, path)
            check_name(self.matter, name, path)
            if name in knobs:
                raise self.refusal_error(f"{quote(name)} is both a knob and a scratch buffer", path)
            self.keys(table, path, ("shape", "dtype"))
            self._require_keys(table, path, ("shape", "dtype"))
            dtype = self.string(table["dtype"], (*path, "dtype"))
            if dtype not in _ALONE:
                raise self.refusal_error(explain_missing("dtype", dtype, _ALONE), (*path, "dtype"))
            shape = self.extents(table["shape"], (*path, "shape"), MAX_EXTENTS)
            found.append(DeclaredScratch(name, dtype, shape))
        return tuple(found)

    def _recipe(self, facts: dict[str, Any]) -> None:
        recipe = self.table(facts, ("recipe",))
        self.keys(recipe, ("recipe",), ("family", "knobs"))
        self.table(recipe, ("recipe", "knobs"))
        if not isinstance(recipe.get("family", ""), str):
            raise self.refusal_error("the recipe's family must be a string", ("recipe", "family"))

    def _require_keys(self, table: dict[str, Any], path: Path, keys: Iterable[str]) -> None:
        absent = [key for key in keys if key not in table]
        if absent:
            title = f"the launch of {quote(table['kernel'])}" if "kernel" in table else "it"
            title = f"[{'.'.join(map(str, path))}]" if path[0] == "scratch" else title
            raise self.refusal_error(f"{title} lacks {' and '.join(absent)}", path)

    def _launch(self, table: dict[str, Any], index: int) -> DeclaredLaunch:
        path: Path = ("launch", index)
        when = self.optional_expression(table, path, "when")
        if "zero" in table:
            for key in (each for each in table if each not in _ZERO):
                raise self.refusal_error(
                    "a launch that sets a buffer to zero takes `when` and nothing else; give "
                    f"{quote(key)} to a launch of its own",
                    (*path, key),
                    of_key=True,
                )
            zero = self.string(table["zero"], (*path, "zero"))
            return DeclaredLaunch(index=index, zero=zero, when=when)
        self.keys(table, path, (*self.dialect.keys, "zero"))
        if "kernel" not in table:
            raise self.refusal_error('a launch needs kernel = "NAME", or zero = "BUFFER"', path)
        kernel = self.kernel(table["kernel"], (*path, "kernel"))
        self._require_keys(table, path, self.dialect.needed)
        return DeclaredLaunch(
            index=index,
            kernel=kernel,
            when=when,
            grid=self.extents(table["grid"], (*path, "grid"), 3),
            block=self.extents(table.get("block", [1]), (*path, "block"), 3),
            cluster=self.extents(table.get("cluster", [1]), (*path, "cluster"), 3),
            shared_bytes=self.optional_expression(table, path, "shared_bytes"),
            arguments=self.arguments(table["args"], (*path, "args")),
            constants=self.constants(table, (*path, "constexpr")),
            options={
                key: self.expression(table[key], (*path, key)) for key in _OPTIONS if key in table
            },
        )
