"""Plans for one workload and one target: launches as data, or what is wrong and what to do."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.problem import Structure
from kernelwright.kernelbench.targets import ARCHITECTURES, architecture
from kernelwright.sandbox.plan import (
    Launches,
    Plan,
    PlanFault,
    PlanFaultKind,
    parse,
    resolve,
    suspicions,
)
from kernelwright.sandbox.plan.limits import MAX_SCRATCH_BYTES
from kernelwright.sandbox.plan.model import (
    ZERO_FILL,
    Argument,
    ArgumentKind,
    Dtype,
    Launch,
    Scratch,
)
from kernelwright.tests.hostile.rows import Device, device
from kernelwright.tests.sandbox.plan.conftest import CUDA, TRITON, Bench


def integer(value: int) -> Argument:
    return Argument(ArgumentKind.INTEGER, value)


def test_everything_is_evaluated(spmm: Bench) -> None:
    nnz = spmm.structure.axes["nnz"]
    eps = struct.unpack("<i", struct.pack("<f", 1e-5))[0]
    row = Launch(
        kernel=0,
        grid=(250, 1, 1),
        block=(32, 4, 1),
        arguments=(
            integer(1000),
            integer(32),
            *(Argument(ArgumentKind.TENSOR, at) for at in range(5)),
            Argument(ArgumentKind.SCRATCH, 0),
            integer(nnz),
            Argument(ArgumentKind.FLOAT32, eps),
        ),
    )
    fill = Launch(ZERO_FILL, arguments=(Argument(ArgumentKind.TENSOR, 4), integer(128_000)))
    scratch = Scratch("partial", "float32", (1000, 32))
    assert spmm.launches(CUDA) == Launches(("spmm_row",), (row, fill), (scratch,))


def test_a_triton_plan_says_what_to_compile(spmm: Bench) -> None:
    launches = spmm.launches(TRITON, "triton")
    (special,) = launches.specialisations
    assert special.constants == (
        ("BLOCK", 64),
        ("TYPE", Dtype("float32")),
        ("NAME", "relu"),
        ("WIDE", True),
        ("K", 32),
    )
    label = "rows[BLOCK=64, TYPE=float32, NAME='relu', WIDE=True, K=32, num_warps=4, num_stages=3]"
    assert launches.kernels == (label,)
    (launch,) = launches.launches
    assert (launch.grid, launch.block) == ((1000, 1, 1), (128, 1, 1))
    twice = TRITON.replace("num_warps = 4", "num_warps = 4\nnum_ctas = 2\nmaxnreg = 64", 1)
    (launch,) = spmm.launches(twice, "triton").launches
    assert (launch.grid, launch.cluster) == ((2000, 1, 1), (2, 1, 1))
    assert spmm.fault(twice, "triton", "sm_80").kind is PlanFaultKind.UNSUPPORTED


def test_launches_with_other_constants_are_other_kernels(spmm: Bench) -> None:
    head, launch, tail = TRITON.partition("[[launch]]\n")
    body, end = tail.split("---\n", 1)
    again = body.replace("num_warps = 4", "num_warps = 8")
    launches = spmm.launches(
        f"{head}{launch}{body}{launch}{again}{launch}{body}---\n{end}", "triton"
    )
    assert [each.kernel for each in launches.launches] == [0, 1, 0]
    assert [each.num_warps for each in launches.specialisations] == [4, 8]


def test_when_chooses_and_the_names_of_kernels_stay(spmm: Bench) -> None:
    never = CUDA.replace("avg_row < 32", "avg_row >= 32")
    launches = spmm.launches(never)
    assert launches.kernels == ("spmm_row",)
    assert [each.kernel for each in launches.launches] == [ZERO_FILL]


def test_where_no_launch_is_wanted(spmm: Bench) -> None:
    none = CUDA.replace("avg_row < 32", "avg_row >= 32").replace(
        'zero = "C"', 'zero = "C"\nwhen = "0"'
    )
    fault = spmm.fault(none)
    assert "no launch's `when` holds for this workload" in fault.reason
    # Nothing to write, nothing to launch.
    empty = Structure({**spmm.structure.axes, "N": 0}, spmm.structure.arrays)
    bench = Bench(spmm.problem, empty)
    found = bench.launches(none)
    assert found.launches == ()
    assert found.scratch[0].shape == (1,)


@pytest.mark.parametrize(
    ("old", "new", "marked", "words"),
    [
        ("[32, 4]", "[2000]", "2000", "block x is 2000, at most 1024 is allowed; use a smaller"),
        ("[32, 4]", "[64, 32]", "64, 32", "the block has 2048 threads (64 x 32 x 1), at most 1024"),
        ("[32, 4]", "[1, 1, 65]", "65]", "block z is 65, at most 64 is allowed"),
        ("[32, 4]", '["N - 32"]', '"N - 32"', "block x is 0, and a block needs at least 1 thread"),
        (
            "ROWS = 4",
            "ROWS = 0",
            "cdiv(M, ROWS)",
            "the second value of cdiv is 0 (with M = 1000, ROWS = 0)",
        ),
        (
            '"cdiv(N, 32)"]',
            '"N // 64"]',
            "N // 64",
            "grid y is 0, and a grid needs at least 1 "
            "block (with N = 32); round up with cdiv(), keep it positive with max(1, …)",
        ),
        ('"cdiv(N, 32)"]', '"-N"]', "-N", "grid y is -32"),
        ('"cdiv(N, 32)"]', '"N * 2048"]', "N * 2048", "grid y is 65536, at most 65535 is allowed"),
        (
            '"cdiv(M, ROWS)", "c',
            '"M * 2147484", "c',
            "M * 21",
            "grid x is 2147484000, at most 2147483647",
        ),
        ('"cdiv(M, ROWS)", "c', '"avg_row", "c', 'avg_row"', "'avg_row' is 6.0 (with avg_row = 6)"),
        (
            '"cdiv(M, ROWS)", "c',
            '"cdiv(B, 4)", "c',
            "B, 4",
            "B is a buffer, which has no value here",
        ),
        (
            '"cdiv(M, ROWS)", "c',
            '"cdiv(Q, 4)", "c',
            "Q, 4",
            "there is no axis, feature or knob named 'Q'",
        ),
        (
            "shared_bytes = 0",
            "shared_bytes = 300_000",
            "300_000",
            "a block asks for 300000 bytes of shared memory, sm_90 has at most 232448",
        ),
        ("shared_bytes = 0", 'shared_bytes = "-N"', '"-N"', "shared_bytes is -32 (with N = 32)"),
        (
            "grid ",
            "cluster = [4, 4]\ngrid ",
            "[4, 4]",
            "the cluster has 16 blocks, sm_90 takes at most 8",
        ),
        (
            "grid ",
            "cluster = [4]\ngrid ",
            "[4]",
            "grid x is 250, which is not a multiple of the "
            "cluster's 4; round it up: cdiv(…, 4) * 4",
        ),
        ("grid ", "cluster = [0]\ngrid ", "[0]", "cluster x is 0; it must be at least 1"),
        ('"indptr"', '"indprt"', '"indprt"', "named 'indprt'; did you mean indptr?"),
        (
            '"M", "N", "indptr"',
            '"indptr", "M", "N"',
            '"indptr", "M"',
            "argument 1 is 'indptr', a buffer of int32, and the parameter there is 'int M', "
            "no pointer; spmm_row takes (int M, int N, const int* indptr",
        ),
        (
            '"indices", "values"',
            '"values", "indices"',
            '"values", "indices"',
            "argument 4 is 'values', a buffer of float32, and the parameter there is "
            "'const int* indices'",
        ),
        ("{f32 = 1e-5}", "{f64 = 1e-5}", "{f64", "argument 10 is '{f64 = 1e-05}', a double"),
        (
            "{f32 = 1e-5}",
            "1",
            "1]",
            "argument 10 is '1', an integer, and the parameter there is "
            "'float eps'; give a float as {f32 = …}",
        ),
        ('"nnz"', "{f32 = 1}", "{f32", "a float, and the parameter there is 'long long n'"),
        (
            '"M", "N", "ind',
            '"M * 5000000", "N", "ind',
            "M * 5",
            "argument 1 is 5000000000 (with "
            "M = 1000), which the parameter 'int M' cannot hold; declare it as long long",
        ),
        (", {f32 = 1e-5}", "", '["M", "N", "indptr"', "args has 9 arguments, and spmm_row takes"),
        (
            '"partial", ',
            '{buffer = "partial", offset = 2}, ',
            "2}",
            "element 2 of partial starts at "
            "byte 8, and 'float4* partial' must start at a multiple of 16",
        ),
        (
            '"B", "C"',
            '{buffer = "B", offset = "K * N + 1"}, "C"',
            "K * N + 1",
            "element 32001 (with K = 1000, N = 32) does not lie in B, which has 32000",
        ),
        (
            '"B", "C"',
            '{buffer = "BB", offset = 0}, "C"',
            '"BB"',
            "no tensor or scratch buffer named 'BB'",
        ),
        ('zero = "C"', 'zero = "B"', '"B"\n[', "B is an input, which must not be written"),
        ('zero = "C"', 'zero = "D"', '"D"\n[', "no output or scratch buffer named 'D'"),
        ("[scratch.partial]", "[scratch.C]", "[scratch.C]", "'C' is already a name of spmm_csr"),
        ("ROWS = 4", "ROWS = 4\navg_row = 1", "avg_row", "'avg_row' is already a name of spmm_csr"),
        (
            '"M", "N"]\ndtype',
            '"M", "M", "M"]\ndtype',
            '["M", "M"',
            "the scratch buffers take 4000000000 bytes",
        ),
        ('"M", "N"]\ndtype', '"M", "N - 33"]\ndtype', "N - 33", "the extent is -1 (with N = 32)"),
        (
            '"M", "N"]\ndtype',
            '"M", "R"]\ndtype',
            'R"]',
            "there is no axis, feature or knob named 'R'",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    old: str, new: str, marked: str, words: str, spmm: Bench
) -> None:
    assert old in CUDA
    source = CUDA.replace(old, new, 1)
    fault = spmm.fault(source)
    assert words in fault.reason
    before = source[: source.index(marked)]
    # An expression's place is a word in it, a value's its quote or bracket.
    column = len(before) - before.rfind("\n")
    assert fault.line == before.count("\n") + 1
    assert abs(fault.column - column) <= 6
    assert fault.sentence == f"error at line {fault.line}:{fault.column}: {fault.reason}"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "num_warps = 4",
            "num_warps = 3",
            "num_warps is 3; it must be a power of two from 1 to 32",
        ),
        ("num_warps = 4", 'num_stages = "N"', "num_stages is 32 (with N = 32); it must be 1 to 16"),
        ("num_warps = 4", "maxnreg = 1", "maxnreg is 1; it must be 24 to 255"),
        ('BLOCK = "BLOCK", ', "", "rows needs a value for BLOCK: constexpr = {BLOCK = …}"),
        (
            "WIDE = true",
            "WILD = true",
            "no tl.constexpr parameter of rows named 'WILD'; did you mean WIDE",
        ),
        ("WIDE = true", "WIDE = true, num_stages = 2", "num_stages is a key of the launch itself"),
        ("WIDE = true", "WIDE = true, M = 2", "M is no tl.constexpr of rows; give it in args"),
        (
            '"values", "B", "C"]',
            '"values", "C", "N"]',
            "argument 7 is 'N', an integer, and the parameter there is 'C_ptr', a pointer",
        ),
        ('"B", "C"]', '"B", "B"]', "no launch gets the output C, so that it cannot be written"),
        (', "C"]', ', "C", "C"]', "args has 8 arguments, and rows takes (M, N, indptr"),
        ("cdiv(N, BLOCK)", "cdiv(N, K)", ""),
        (
            "cdiv(N, BLOCK)",
            "cdiv(N, WIDE)",
            "WIDE is a constexpr of this launch, which expressions do not see; make it a knob",
        ),
    ],
)
def test_what_is_wrong_with_a_triton_plan(old: str, new: str, words: str, spmm: Bench) -> None:
    assert old in TRITON
    found = spmm.outcome(TRITON.replace(old, new, 1), "triton")
    if not words:
        assert isinstance(found, Launches)
        return
    assert isinstance(found, PlanFault)
    assert words in found.reason


def test_arguments_in_another_order_are_put_right(spmm: Bench) -> None:
    swapped = CUDA.replace('"partial", "nnz", {f32 = 1e-5}', "").replace(
        "float* C, float4* partial, long long n,\n    float eps", "float* C"
    )
    wrong = swapped.replace('"M", "N", "indptr", "indices"', '"indptr", "indices", "M", "N"')
    assert isinstance(spmm.outcome(swapped), Launches)
    assert spmm.fault(wrong).reason.endswith(
        '; in its order: args = ["M", "N", "indptr", "indices", "values", "B", "C"]'
    )


def test_swapped_numbers_are_worth_a_word(spmm: Bench) -> None:
    assert suspicions(spmm.plan(CUDA)) == ()
    swapped = spmm.plan(CUDA.replace('["M", "N", "indptr"', '["N", "M", "indptr"'))
    assert suspicions(swapped) == (
        "spmm_row is given N where its parameter is called M, M where its parameter is called N",
    )


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_shared_memory_up_to_the_last_byte(name: str, spmm: Bench) -> None:
    most = architecture(name).shared_per_block
    fits = CUDA.replace("shared_bytes = 0", f"shared_bytes = {most}")
    assert spmm.launches(fits, target=name).launches[0].shared_bytes == most
    fault = spmm.fault(CUDA.replace("shared_bytes = 0", f"shared_bytes = {most + 1}"), target=name)
    assert fault.kind is PlanFaultKind.LIMIT
    assert f"{name} has at most {most}" in fault.reason


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_clusters_where_there_are_some(name: str, spmm: Bench) -> None:
    source = CUDA.replace("grid ", "cluster = [2]\ngrid ")
    if architecture(name).capability < 90:
        fault = spmm.fault(source, target=name)
        assert fault.kind is PlanFaultKind.UNSUPPORTED
        assert f"{name} has no clusters" in fault.reason
    else:
        assert spmm.launches(source, target=name).launches[0].cluster == (2, 1, 1)


def test_scratch_up_to_the_last_byte(spmm: Bench) -> None:
    cells = MAX_SCRATCH_BYTES // 4 - 1000 * 32
    more = '[scratch.more]\nshape = [{}]\ndtype = "int32"\n[scratch.partial]'
    fits = CUDA.replace("[scratch.partial]", more.format(cells))
    assert [each.name for each in spmm.launches(fits).scratch] == ["more", "partial"]
    over = CUDA.replace("[scratch.partial]", more.format(cells + 1))
    assert spmm.fault(over).kind is PlanFaultKind.LIMIT


def test_a_part_of_a_buffer(spmm: Bench) -> None:
    part = CUDA.replace('"partial", ', '{buffer = "partial", offset = "4 * N"}, ')
    assert spmm.launches(part).launches[0].arguments[7] == Argument(ArgumentKind.SCRATCH, 0, 512)


def test_more_arguments_than_a_launch_can_carry(spmm: Bench) -> None:
    names = ", ".join(f"int* p{at}" for at in range(513))
    given = ", ".join(['"C"'] * 513)
    source = (
        f'/*---\n[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [1]\nargs = [{given}]\n---*/\n'
        f"__global__ void k({names.replace('int*', 'float*')}) {{}}"
    )
    fault = spmm.fault(source)
    assert fault.reason == "the arguments take 4104 bytes, a launch carries at most 4096"


def test_kernels_that_nobody_can_read_are_left_to_the_compiler(spmm: Bench) -> None:
    source = CUDA.replace('"spmm_row"', '"made_k"') + (
        "#define MAKE(n) __global__ void n##_k(int M) {}\nMAKE(made)\n"
    )
    assert spmm.launches(source).kernels == ("made_k",)


def test_vectors_by_value_cannot_be_given(spmm: Bench) -> None:
    fault = spmm.fault(CUDA.replace("float eps", "float4 eps"))
    assert "'float4 eps', a vector, which cannot be given" in fault.reason


def test_overloads_fit_if_one_does(spmm: Bench) -> None:
    assert isinstance(spmm.outcome(CUDA + "__global__ void spmm_row(int M) {}"), Launches)


def test_what_is_packed_is_what_was_resolved(spmm: Bench) -> None:
    words = struct.unpack("<61q", spmm.launches(CUDA).pack())
    assert words[:13] == (2, 0, 250, 1, 1, 32, 4, 1, 0, 1, 1, 1, 10)
    assert words[13 + 30] == ZERO_FILL
    assert words[-7:] == (2, ArgumentKind.TENSOR, 4, 0, ArgumentKind.INTEGER, 128_000, 0)


@pytest.mark.parametrize("row", device(), ids=lambda row: row.id)
def test_plans_of_the_catalogue_of_attacks(row: Device) -> None:
    """What they do is found out later; their plans are sound."""
    problem = registry.get("bias_gelu")
    plan = parse(row.path.read_text("utf-8"), "cuda")
    assert isinstance(plan, Plan)
    for workload in problem.workloads:
        structure = problem.structure(workload)
        found = resolve(plan, problem, structure.axes, features(structure), architecture("sm_90"))
        assert isinstance(found, Launches)


def test_every_hidden_shape_of_a_tail_is_covered(spmm: Bench) -> None:
    """A plan that rounds up serves what the referee draws; one that does not is told of it."""
    shapes = spmm.problem.variations(spmm.structure, np.random.default_rng(0))
    faults = 0
    for _ in range(60):
        bench = Bench(spmm.problem, next(shapes))
        assert isinstance(bench.outcome(CUDA.replace("avg_row < 32", "1")), Launches)
        down = bench.outcome(CUDA.replace("avg_row < 32", "1").replace("cdiv(N, 32)", "N // 32"))
        faults += isinstance(down, PlanFault)
    assert faults


def test_features_only_where_there_are_rows() -> None:
    problem = registry.get("gemm")
    workload = problem.workload("tiny")
    bench = Bench(problem, problem.structure(workload))
    source = CUDA.replace('"indptr", "indices", "values", "B", "C"', '"A", "A", "A", "B", "C"')
    assert "no axis, feature or knob named 'avg_row'" in bench.fault(source).reason
