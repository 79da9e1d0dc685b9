# SPDX-License-Identifier: Apache-2.0
"""What a problem's file declares: the literal dictionary PROBLEM, read without running the file.

    PROBLEM = {
        "title": "Softmax over rows",
        "definition": "y[i,j] = exp(x[i,j] - max_k x[i,k]) / sum_k exp(x[i,k] - max_k x[i,k])",
        "source": "KernelBench level 1",
        "axes": {"M": "rows", "N": "elements of a row"},
        "inputs": {"x": "float32[M, N]: logits, row-major"},
        "outputs": {"y": "float32[M, N]: rows sum to 1"},
        "flops": "5 * M * N",
        "workloads": {"realistic": {"4096x1024": {"M": 4096, "N": 1024, "note": "scores"}}, …},
    }

Everything is a number, a word or a collection of these. The functions beside it (values, oracle,
baselines) are declared.py's business.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..errors import UsageError
from ..syntax import parse_python
from .coded import CODECS
from .dense import USUAL_SIZES
from .dtypes import DTYPES, FLOAT32, INT8, TENSORS, UINT8, dtype_of
from .library_calls import SHARED
from .manner import Manner
from .precision import ASKED, STRICT_FP32
from .problem import PLAIN, WHOLE, Family, Tensor, Workload
from .sizes import ALONG_Y, POWER_OF_2, Range
from .sparse import INDICES, INDPTR
from .standins import STAND_INS, read_law
from .terms import names_in

NAME = "PROBLEM"
ROWS, ENTRIES = "M", "nnz"
CSR = "csr"
"""Instead of a type: the index array of this name of a CSR pattern (sparse.py)."""
INDEX = "index "
"""Before the type of an index array that follows from a pattern."""
PATTERN = {tensor.name: tensor for tensor in (INDPTR, INDICES)}
REQUIRED = (Family.NORMAL, Family.UNIFORM)
"""What is timed, and what baselines are tried with."""
SENTENCES = {
    "{running sum}": "One float32 running sum of more than some 250 terms of one size and sign can "
    "miss it: add sums of blocks, or keep several.",
    "{zero points}": "a sum of codes times x less zero times the sum of x will do. Decoded weights "
    "that are rounded to float16 miss it.",
    "{softmax law}": "With d = max - x + |x| of a logit x and D the mean of d weighted by r the "
    "limit is 4 u r (2 sqrt(n) + d + D + 8): enough for an exponential that is a few units in the "
    "last place off, and for one to the base 2 of x log2(e). Answers below 2^-124 may be flushed "
    "to 0.",
    "{attention law}": "s = sum over the n keys j of p |v| (2 + (8 + r + R + L) / sqrt(n)), where "
    "r = max - x + |x| + the sum of |q k| of a logit x, R is r's mean weighted by p, and L what a "
    "plain sum of exponentials far below it may lose. LARGE has logits whose exponentials overflow "
    "unless a maximum is subtracted. All numbers are finite.",
}
"""What the accuracies of several problems say, by what stands for it there."""
KINDS = Literal["tiny", "realistic", "adversarial"]
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\](?:: *(?P<meaning>.*))?", re.DOTALL)


class Declaration(BaseModel):
    """The dictionary, checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    definition: str
    source: str
    headline: str = ""
    """What the paper reports, with its conditions: the authors' figure, which nobody checked."""
    axes: dict[str, str] = Field(min_length=1)
    """Name → meaning, in the order of the C parameters."""
    lengths: dict[str, Literal["grid y", "power of 2"] | int | tuple[int, ...]] = {}
    """Of an axis, the most that hidden shapes have (`grid y`: sizes.ALONG_Y; `power of 2`: it has
    no other lengths, sizes.POWER_OF_2), or its only values where it is a choice."""
    least: dict[str, int] = {}
    """Of an axis, the least that hidden shapes have, where that is not 1: a variance of one number
    is none."""
    follows: tuple[str, ...] = ()
    """Axes that nobody draws and no workload gives: the file's function `follow` adds them to the
    structure of a drawn pattern, with the index arrays that belong to them."""
    inputs: dict[str, str] = Field(min_length=1)
    """Name → `float32[M, N]: meaning`, CSR, or `index int32[K+1]: meaning` of an index array that
    `follow` adds."""
    constants: tuple[str, ...] = ()
    """Inputs whose numbers belong to the operator, as a mask: `values` gives the same in every
    family, infinities among them, and nobody moves them to see what an answer depends on."""
    bound: tuple[str, ...] = ()
    """Inputs whose numbers are right only as `values` draws them together: offsets of segments,
    places in another tensor. Nobody moves one of these numbers; another draw takes their place."""
    outputs: dict[str, str] = Field(min_length=1)
    """As inputs; none is of a pattern."""
    codes: dict[str, str] = {}
    """Of inputs and outputs of uint8 that hold codes: name → one of coded.CODECS. Shapes count
    bytes; `oracle` is given the numbers that inputs stand for, and gives those of outputs."""
    flops: str
    """Floating-point operations of one call, as a formula of axes (terms.py)."""
    held: str = ""
    """Elements that an answer needs at once beside inputs and outputs (scores of an attention), as
    a formula of axes: hidden shapes have no more of them than memory has room for."""
    workloads: dict[KINDS, tuple[str, ...] | dict[str, str | dict[str, Any]]]
    """Kind → name → axes by name, `note`, and for a pattern `graph` (the name of a stand-in) or
    `pattern` (a law of standins.py, as `hub 2000`, or a law and its arguments), whose own note
    comes first. The note alone where the name is the sizes, as `4096x1024`; a list of such names
    has the notes of dense.USUAL_SIZES. `@server`, `@offline` or `@x2` behind a name says how it is
    timed (manner.Manner)."""
    families: str = ""
    """Beside PLAIN: `large nonfinite -constant`."""
    nrmse: float = STRICT_FP32.nrmse
    """Limit of the normalised RMS error (gate G3), of answers in float32."""
    policies: tuple[str, ...] = ()
    """Beside policies.HALVES, in which other precisions it can be asked for."""
    policy: str = ""
    """What arithmetic is allowed where the types do not say: one of precision.ASKED; or `int8`, of
    a problem that was written for float32: its oracle is given floats."""
    accuracy: str = ""
    """As in problem.Problem; `{running sum}` and the like stand for SENTENCES."""
    is_row_wise: bool = False
    """Whether no row along the axis M says anything of another (kernelbench/rows.py)."""
    baselines: str = ""
    """Those that several problems share, by name (library_calls.SHARED); a file's own functions of
    their names go before them."""
    writes_inputs: tuple[str, ...] = ()
    """Baselines that write what they were given, if only what stands there already."""
    backward_of: str = ""
    skeleton: dict[str, Any] = {}
    """What a naive, right candidate computes, as in a file of `skeletons/`: where kernels begin."""
    tags: tuple[str, ...] = ()
    version: int = 1

    @field_validator("inputs", "outputs")
    @classmethod
    def _are_tensors(cls, given: dict[str, str]) -> dict[str, str]:
        for name, text in given.items():
            _tensor(name, text)
        return given

    @field_validator("accuracy")
    @classmethod
    def _with_sentences(cls, text: str) -> str:
        for mark, sentence in SENTENCES.items():
            text = text.replace(mark, sentence)
        return text

    @field_validator("policy")
    @classmethod
    def _is_policy(cls, word: str) -> str:
        known = ("", *ASKED, INT8.name)
        if word not in known:
            raise ValueError(
                f"'{word}' is none of {', '.join(known[1:])}; others follow from types"
            )
        return word

    @field_validator("families")
    @classmethod
    def _are_families(cls, words: str) -> str:
        for word in words.split():
            if word.removeprefix("-") not in list(Family):
                raise ValueError(f"'{word}' is none of {', '.join(Family)}")
            if word.removeprefix("-") in REQUIRED and word.startswith("-"):
                raise ValueError(
                    f"{' and '.join(REQUIRED)} are drawn of every problem: give `values` of your "
                    "own where they would not do"
                )
        return words

    @model_validator(mode="after")
    def _has_known_workloads(self) -> Declaration:
        """Each can be read."""
        assert self.all_workloads is not None
        return self

    @model_validator(mode="after")
    def _has_axes_for_all(self) -> Declaration:
        """Every formula names axes that there are, and what is said of tensors is of some."""
        formulas = {"flops": self.flops} | ({"held": self.held} if self.held else {})
        for tensor in (*self.input_tensors, *self.output_tensors):
            formulas |= {f"the shape of {tensor.name}": term for term in tensor.shape}
        for what, formula in formulas.items():
            if unknown := [name for name in names_in(formula) if name not in self.axes]:
                raise ValueError(
                    f"{what} names '{unknown[0]}', which is no axis: {', '.join(self.axes)}"
                )
        for key in ("lengths", "least", "follows"):
            if strange := [axis for axis in getattr(self, key) if axis not in self.axes]:
                raise ValueError(
                    f"{key} names '{strange[0]}', which is no axis: {', '.join(self.axes)}"
                )
        if self.baselines and self.baselines not in SHARED:
            raise ValueError(f"baselines is '{self.baselines}', which is none of {list(SHARED)}")
        if self.baselines:
            kind = SHARED[self.baselines]
            if not kind.fits(self.input_tensors, self.output_tensors, self.lengths):
                raise ValueError(f"'{self.baselines}' as baselines needs {kind.NEEDS}")
        for key, named in (("constants", self.constants), ("bound", self.bound)):
            if strange := [name for name in named if name not in self.inputs]:
                raise ValueError(
                    f"{key} names '{strange[0]}', which is no input: {', '.join(self.inputs)}"
                )
        self._check_codes()
        own = [t.name for t in self.input_tensors if t.is_index and t.name not in PATTERN]
        if (own or self.follows) and not (self.follows and self.has_pattern):
            raise ValueError(f"index arrays and axes that follow need a pattern: '{CSR}' inputs")
        if all(name in self.constants for name in self.inputs):
            raise ValueError("constants names every input: nothing is left to compute with")
        firsts = [t.shape[0] for t in self.output_tensors if t.shape]
        if self.is_row_wise and not {ROWS, ENTRIES}.issuperset(firsts or [""]):
            raise ValueError(
                f"is_row_wise, and an output does not begin with {ROWS}: rows are counted along "
                f"the axis {ROWS}, or along {ENTRIES} by those of a pattern"
            )
        return self

    def _check_codes(self) -> None:
        """Codes are declared of tensors that have room for them, and by names that there are."""
        types = {t.name: t.dtype for t in (*self.input_tensors, *self.output_tensors)}
        for name, codec in self.codes.items():
            if types.get(name) != UINT8.name:
                raise ValueError(f"codes names '{name}', which is no tensor of {UINT8}")
            if codec not in CODECS:
                raise ValueError(f"the codes of '{name}' are '{codec}', none of {list(CODECS)}")

    @property
    def is_of_float32(self) -> bool:
        """Whether it can be had in other precisions: of floats it has float32 alone."""
        tensors = (*self.input_tensors, *self.output_tensors)
        floats = [each for each in (dtype_of(t.dtype) for t in tensors) if each.is_float]
        return bool(floats) and not self.codes and all(each == FLOAT32 for each in floats)

    @property
    def has_pattern(self) -> bool:
        """Whether it works on a CSR pattern."""
        return any(name in PATTERN for name in self.inputs)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """In the order of the C parameters."""
        return self._tensors(self.inputs)

    @property
    def output_tensors(self) -> tuple[Tensor, ...]:
        """In the order of the C parameters."""
        return self._tensors(self.outputs)

    def _tensors(self, given: dict[str, str]) -> tuple[Tensor, ...]:
        """With what their codes mean."""
        found = []
        for name, text in given.items():
            tensor, codec = _tensor(name, text), CODECS.get(self.codes.get(name, ""))
            if codec:
                told = "; ".join(filter(None, (tensor.meaning, codec.meaning)))
                tensor = tensor.model_copy(update={"meaning": told})
            found.append(tensor)
        return tuple(found)

    @property
    def ranges(self) -> dict[str, Range]:
        """Of every axis."""
        return {axis: _range(self.lengths.get(axis)) for axis in self.axes}

    @property
    def legal_families(self) -> tuple[Family, ...]:
        """In the order of Family."""
        words = self.families.split()
        chosen = {*PLAIN, *(word for word in words if not word.startswith("-"))}
        chosen -= {word.removeprefix("-") for word in words if word.startswith("-")}
        if all(not dtype_of(t.dtype).is_float for t in self.input_tensors):
            chosen -= set(WHOLE)
        return tuple(family for family in Family if family in chosen)

    @property
    def all_workloads(self) -> tuple[Workload, ...]:
        """The first realistic one is the default."""
        return tuple(
            _workload(kind, name, given, tuple(self.axes))
            for kind, group in self.workloads.items()
            for name, given in _notes_of(group).items()
        )


NAMED_RANGES = {"grid y": ALONG_Y, "power of 2": POWER_OF_2}


def _range(most: str | int | tuple[int, ...] | None) -> Range:
    if most is None:
        return Range()
    if isinstance(most, str):
        return NAMED_RANGES[most]
    return Range(most=most) if isinstance(most, int) else Range(choices=most)


def _tensor(name: str, text: str) -> Tensor:
    if text == CSR and name in PATTERN:
        return PATTERN[name]
    found = _TENSOR.fullmatch(text.removeprefix(INDEX))
    if found is None:
        raise ValueError(
            f"'{name}' is '{text}', which is no tensor: write it as 'float32[M, N]: meaning', or "
            f"as '{CSR}' for {' and '.join(PATTERN)}"
        )
    known = DTYPES.get(found["dtype"])
    if known and known not in TENSORS:
        raise ValueError(
            f"'{name}' is {known}, of which no problem can have tensors: they hold "
            f"{' or '.join(map(str, TENSORS))}"
        )
    shape = tuple(part.strip() for part in found["shape"].split(",") if part.strip())
    return Tensor(
        name=name,
        dtype=found["dtype"],
        shape=shape,
        is_index=text.startswith(INDEX),
        meaning=found["meaning"] or "",
    )


def _workload(
    kind: str, name: str, given: str | dict[str, Any], names: tuple[str, ...]
) -> Workload:
    """Raises ValueError where it is said of sizes or patterns that nobody knows."""
    name, manner = Manner.split(name)
    more: dict[str, Any] = {}
    more |= {**_sizes(name, names), "note": given} if isinstance(given, str) else given
    graph, law, note = (more.pop(key, None) for key in ("graph", "pattern", "note"))
    generator, known = law or {}, ""
    if graph is not None:
        if graph not in STAND_INS:
            raise ValueError(
                f"the workload '{name}' names the graph '{graph}', which nobody knows: those of "
                "kernelbench/standins.py can be named"
            )
        generator, known = STAND_INS[graph].generator, STAND_INS[graph].note
    elif isinstance(law, str):
        generator, known = read_law(law)
    told = ", ".join(filter(None, (known, note)))
    made = Workload(name=name, kind=kind, axes=more, generator=generator, note=told)
    return made.called_in(manner)


def _notes_of(
    group: tuple[str, ...] | dict[str, str | dict[str, Any]],
) -> dict[str, str | dict[str, Any]]:
    if isinstance(group, dict):
        return group
    return {name: USUAL_SIZES.get(name, "") for name in group}


def _sizes(name: str, axes: tuple[str, ...]) -> dict[str, int]:
    """The sizes that a workload is called by."""
    sizes = name.split("x")
    if len(sizes) != len(axes) or not all(size.isdigit() for size in sizes):
        raise ValueError(
            f"the workload '{name}' has a note alone, and its name is not the sizes "
            f"{'x'.join(axes)}: call it so, or give the sizes by axis beside the note"
        )
    return dict(zip(axes, map(int, sizes), strict=True))


def read_declaration(text: str, place: str) -> Declaration:
    """The declaration of a file with this text.

    Args:
        place: what the file is called in an error.

    Raises:
        UsageError: it does not parse, has no PROBLEM, or says what cannot be; with the line.
    """
    node = find_declaration(text, place)
    try:
        content = ast.literal_eval(node)
    except ValueError as error:
        raise UsageError(
            f"{place}:{node.lineno}: {NAME} is not plain data: {error}",
            hint="write numbers, words, lists and dictionaries; what is computed is a function",
        ) from error
    try:
        declared = Declaration.model_validate(content)
    except ValidationError as error:
        # A word that nobody knows is why another one is missing.
        found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        first = found[0]
        where = ".".join((NAME, *map(str, first["loc"])))
        told = first["msg"].removeprefix("Value error, ")
        raise UsageError(
            f"{place}:{_line_of(node, first['loc'])}: {where}: {told}",
            hint="kernelbench/declaration.py says what a problem declares",
        ) from error
    _ensure_sizes(declared, node, place)
    return declared


def _ensure_sizes(declared: Declaration, node: ast.Dict, place: str) -> None:
    """Raises UsageError where a workload has a size that nothing has, with its line."""
    for workload in declared.all_workloads:
        for axis, size in workload.axes.items():
            # A choice may have a value 0.
            least = 0 if isinstance(declared.lengths.get(axis), tuple) else 1
            if isinstance(size, bool) or not isinstance(size, int) or size < least:
                path = ("workloads", workload.kind, workload.name)
                raise UsageError(
                    f"{place}:{_line_of(node, path)}: the workload '{workload.name}' gives "
                    f"{size!r} for axis {axis}",
                    hint="sizes are whole numbers from 1 on",
                )


def find_declaration(text: str, place: str) -> ast.Dict:
    """The dictionary's node."""
    try:
        module = parse_python(text)
    except SyntaxError as error:
        raise UsageError(
            f"{place}:{error.lineno}: this is no Python: {error.msg}", hint="mend that line"
        ) from error
    for statement in module.body:
        if (
            isinstance(statement, ast.Assign)
            and any(isinstance(to, ast.Name) and to.id == NAME for to in statement.targets)
            and isinstance(statement.value, ast.Dict)
        ):
            return statement.value
    raise UsageError(
        f"{place} declares no problem",
        hint=f"it needs {NAME} = {{…}}, as the files of kernelbench/problems have it; or, for "
        "PyTorch, class Model or one function, and get_inputs() with examples",
    )


def _line_of(node: ast.expr, path: tuple[int | str, ...]) -> int:
    """Of the value that this path of keys leads to, as far as it can be followed."""
    for key in path:
        if not isinstance(node, ast.Dict):
            break
        keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        if key not in keys:
            break
        node = node.values[keys.index(key)]
    return node.lineno
