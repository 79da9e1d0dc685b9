"""Reading plans: what the front matter may say, and where in the file it is wrong."""

from __future__ import annotations

import pytest

from kernelwright.errors import UnknownNameError
from kernelwright.sandbox.plan import PlanFault, parse
from kernelwright.sandbox.plan.model import Dtype
from kernelwright.tests.sandbox.plan.conftest import CUDA, TRITON, Bench


def refused(source: str, language: str = "cuda") -> PlanFault:
    found = parse(source, language)
    assert isinstance(found, PlanFault), found
    return found


def place_of(source: str, marked: str) -> tuple[int, int]:
    """Line and column at which `marked` stands first."""
    before = source[: source.index(marked)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def test_a_cuda_plan(spmm: Bench) -> None:
    plan = spmm.plan(CUDA)
    assert plan.kernels == ("spmm_row",)
    assert plan.knobs == {"ROWS": 4}
    assert [launch.zero for launch in plan.launches] == ["", "C"]
    assert [argument.text for argument in plan.launches[0].arguments][-2:] == [
        "nnz",
        "{f32 = 1e-05}",
    ]
    assert [(each.name, each.dtype) for each in plan.scratch] == [("partial", "float32")]


def test_a_triton_plan(spmm: Bench) -> None:
    constants = spmm.plan(TRITON, "triton").launches[0].constants
    assert constants["TYPE"] == Dtype("float32")
    assert constants["NAME"] == "relu"
    assert constants["WIDE"] is True


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("tl.float16", "float16"),
        ("bf16", "bfloat16"),
        ("tl.float8e4nv", "float8e4nv"),
        ("fp8e5", "float8e5"),
        ("float8_e4m3fn", "float8e4nv"),
        ("float8_e5m2", "float8e5"),
        ("tl.uint8", "uint8"),
        ("int16", "int16"),
    ],
)
def test_a_narrow_type_is_a_constant_by_every_name(written: str, name: str, spmm: Bench) -> None:
    """Under the one that Triton's language has."""
    source = TRITON.replace("tl.float32", written)
    assert spmm.plan(source, "triton").launches[0].constants["TYPE"] == Dtype(name)


@pytest.mark.parametrize("head", ["def run(x, y):\n    pass\n", "class ModelNew:\n    pass\n"])
def test_a_triton_file_may_leave_the_launches_to_its_host_code(head: str, spmm: Bench) -> None:
    assert spmm.plan(head, "triton").launches == ()
    assert spmm.plan(f'"""\n---\nentry = "run"\n---\n"""\n{head}', "triton").launches == ()


def test_only_two_languages_have_plans() -> None:
    with pytest.raises(UnknownNameError):
        parse("", "cpp")


@pytest.mark.parametrize(
    ("old", "new", "marked", "words"),
    [
        ("kernel =", "kernal =", "kernal", "there is no key named 'kernal'; did you mean kernel?"),
        ("[scratch", "[scratsch", "[scratsch", "no key named 'scratsch'; did you mean scratch?"),
        ("dtype =", "type =", "type =", "no key named 'type'; did you mean dtype?"),
        ("[knobs]", "[knobs", "[knobs", "the front matter is not TOML"),
        ('"cuda"', '"triton"', '"triton"', "says the language is 'triton'"),
        ("ROWS = 4", 'ROWS = "4"', '"4"', "the knob 'ROWS' is '4'; knobs are integers"),
        ("ROWS = 4", "ROWS = true", "true", "knobs are integers"),
        ("ROWS = 4", "ROWS = 9223372036854775808", "9223", "knobs are integers below 2^63"),
        ("ROWS = 4", "min = 4", "min", "'min' cannot be a name"),
        ("ROWS = 4", '"R-S" = 4', '"R-S"', "'R-S' cannot be a name"),
        ("block  = [32, 4]\n", "", "[[launch]]", "the launch of 'spmm_row' lacks block"),
        ('kernel = "spmm_row"', "", "[[launch]]", "a launch needs kernel"),
        ('"spmm_row"', "7", "7\n", "kernel must be a name in quotes, not '7'"),
        ('"spmm_row"', '"spmm row"', '"spmm row"', "'spmm row' is not the name of a kernel"),
        ('"spmm_row"', '"f<int>; g"', '"f<int>', "is not the name of a kernel"),
        ('"spmm_row"', '"f<int>>"', '"f<int>>', "is not the name of a kernel"),
        ('"spmm_row"', '"f<int"', '"f<int', "is not the name of a kernel"),
        (
            '"spmm_row"',
            '"spmm_raw"',
            '"spmm_raw"',
            "no __global__ function named 'spmm_raw'; did you mean spmm_row?",
        ),
        ('"spmm_row"', '"helper"', '"helper"', "in the source, but not as a __global__ function"),
        ('"spmm_row"', '"reduce"', '"reduce"', "is a template; name an instance: 'reduce<…>'"),
        ('"spmm_row"', '"spmm_row<int>"', '"spmm_row<', "'spmm_row' is not a template"),
        ("[32, 4]", "128", "128\n", "block must be a list of 1 to 3 integers or expressions"),
        ("[32, 4]", "[1, 2, 3, 4]", "[1, 2", "block must be a list of 1 to 3"),
        ("[32, 4]", "[]", "[]", "block must be a list of 1 to 3"),
        ("[32, 4]", "[32, 4.0]", "4.0", "'4.0' is not an integer below 2^63 or an expression"),
        ("[32, 4]", "[32, true]", "true", "is not an integer below 2^63 or an expression"),
        ("[32, 4]", '[32, "4 +"]', '"]\nshared', "the expression ends where"),
        ('"avg_row < 32"', '"avg_row << 32"', "<< 32", "'<<' stands where an operator should"),
        ("{f32 = 1e-5}", "1e-5", "1e-5]", "say how wide the number 1e-05 is: {f32 = 1e-05}"),
        ("{f32 = 1e-5}", "{f16 = 1e-5}", "{f16", "an argument in braces is {f32 = 1e-5}"),
        ("{f32 = 1e-5}", '{f32 = "x"}', '"x"', "f32 takes a number, not 'x'"),
        ("{f32 = 1e-5}", "{f32 = 1e39}", "1e39", "does not fit 32 bits"),
        ("{f32 = 1e-5}", "{f64 = 1" + "0" * 400 + "}", "100000", "does not fit 64 bits"),
        ('"nnz", ', "[1], ", "[1]", "is not an integer below 2^63 or an expression"),
        ('zero = "C"', "zero = 1", "1\n[scratch", "zero must be a name in quotes"),
        ('zero = "C"', 'zero = "C"\ngrid = [1]', "grid = [1]", "takes `when` and nothing else"),
        ('"float32"', '"flaot32"', '"flaot32"', "no dtype named 'flaot32'; did you mean float32"),
        ('"float32"', '"float4_e2m1fn"', '"float4', "no dtype named 'float4_e2m1fn'"),
        ('"float32"', '["float32"]', '["float32"]', "dtype must be a name in quotes"),
        ('shape = ["M", "N"]\n', "", "[scratch.partial]", "[scratch.partial] lacks shape"),
        ("[scratch.partial]", "[scratch.ROWS]", "[scratch.ROWS]", "both a knob and a scratch"),
        ("[scratch.partial]", "[recipe]\nknobs = 3\n[scratch.partial]", "3\n[", "must be a table"),
        ("[[launch]]\nzero", "[launch]\nzero", "[launch]\nzero", "the front matter is not TOML"),
        ("---*/", "--*/", "*/\nextern", "must end with a line `---*/`; the comment ends here"),
        ("// A licence.", "int before;", "/*---", "the front matter must stand before any code"),
        ("spmm_row(\n", "spmm_row(\0\n", "\0", "a null byte"),
        ("// A lic", "// \ud800 lic", "\ud800", "a character that UTF-8 cannot hold"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(old: str, new: str, marked: str, words: str) -> None:
    assert old in CUDA
    source = CUDA.replace(old, new, 1)
    fault = refused(source)
    assert words in fault.reason
    line, column = place_of(source, marked)
    assert fault.line == line
    # TOML's own errors stand at the character where the reader gave up.
    assert fault.column == column or "not TOML" in fault.reason


@pytest.mark.parametrize(
    ("old", "new", "marked", "words"),
    [
        ("grid = [", "block = [1]\ngrid = [", "block", "there is no key named 'block'"),
        ('kernel = "rows"', 'kernel = "a::rows"', '"a::rows"', "not the name of a kernel"),
        ('kernel = "rows"', 'kernel = "row"', '"row"', "no @triton.jit function named 'row'"),
        ("@triton.jit\n", "", '"rows"', "'rows' is not a kernel; decorate it with @triton.jit"),
        (
            "@triton.jit",
            "@triton.autotune(configs=[], key=[])\n@triton.jit",
            '"rows"',
            "is decorated with autotune",
        ),
        ("(M, N, indptr", "(*M, N, indptr", '"rows"', "takes *args or **kwargs"),
        ("    pass", "pass", "pass", "expected an indented block"),
        ("BLOCK = 64", "BLOCK = 64 64", "BLOCK = 64 64", "not TOML"),
    ],
)
def test_what_is_wrong_with_a_triton_plan(old: str, new: str, marked: str, words: str) -> None:
    assert old in TRITON
    source = TRITON.replace(old, new, 1)
    fault = refused(source, "triton")
    assert words in fault.reason
    assert fault.line == place_of(source, marked)[0]


@pytest.mark.parametrize(
    ("source", "language"),
    [("", "cuda"), ("", "triton"), ("/**/", "cuda"), ("import triton\n", "triton")],
)
def test_a_file_without_a_plan(source: str, language: str) -> None:
    assert "there is no launch plan" in refused(source, language).reason


def test_a_knob_must_agree_with_the_constant_of_its_name(spmm: Bench) -> None:
    for definition in ("#define ROWS 8\n", "constexpr int ROWS = 8;\n"):
        assert (
            "the knob ROWS is 4, and the source defines it as 8"
            in refused(CUDA + definition).reason
        )
        spmm.plan(CUDA + definition.replace("8", "4"))
        spmm.plan(CUDA + definition.replace("8", "(2 + 2)"))
    spmm.plan(CUDA + "#ifdef A\n#define ROWS 8\n#else\n#define ROWS 4\n#endif\n")
    spmm.plan(CUDA + "void f() { for (int ROWS = 0; ; ) ; }")
    assert "defines it as 32" in refused(TRITON + "\nBLOCK = tl.constexpr(32)\n", "triton").reason
    spmm.plan(TRITON + "\nBLOCK: tl.constexpr = 64\n", "triton")


def test_line_ends_and_byte_order_marks_do_not_matter(spmm: Bench) -> None:
    dos = CUDA.replace("\n", "\r\n")
    assert spmm.launches("\ufeff" + dos) == spmm.launches(CUDA)
    fault = refused(dos.replace("[32, 4]", "[32, 4.0]"))
    assert (fault.line, fault.column) == place_of(CUDA, "4]")
    triton = TRITON.replace("\n", "\r\n")
    assert spmm.launches("\ufeff" + triton, "triton") == spmm.launches(TRITON, "triton")
    fault = refused(triton.replace('"M", "cdiv', '"M", "cdib'), "triton")
    assert (fault.line, fault.column) == place_of(TRITON, "cdiv(N")


def test_a_docstring_with_escapes_keeps_its_lines() -> None:
    source = TRITON.replace("knobs]", "knobs] # \\u00e9").replace('"cdiv', '"cdib')
    fault = refused(source, "triton")
    assert "cdib" in fault.reason
    assert fault.line == 3
