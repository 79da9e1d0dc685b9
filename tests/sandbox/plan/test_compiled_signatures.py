"""What is read of a signature is what the compiler makes of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.dtypes import dtype_of
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import toolchain
from kernelwright.sandbox.builders.cuda import build
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.plan.cuda_signature import read_cuda
from kernelwright.sandbox.plan.signature import VECTOR, Parameter

HEAD = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#define number int
using real = float;
typedef float4 quad;
"""
VALUES = (
    "int",
    "unsigned",
    "unsigned int",
    "long long",
    "unsigned long long int",
    "short",
    "char",
    "unsigned char",
    "bool",
    "float",
    "double",
    "size_t",
    "long",
    "__half",
    "__nv_bfloat16",
    "__nv_fp8_e4m3",
    "__nv_fp8_e5m2",
    "__nv_fp8_e8m0",
    "__nv_fp4_e2m1",
    "__nv_fp8x2_e4m3",
    "number",
    "real",
    "quad",
    "T",
    "half2",
    "float3",
)
POINTEES = (*VALUES, "void", "float2", "int4", "double2", "uchar4")
HEADS = (
    "__global__ void",
    "__global__ void __launch_bounds__(128)",
    "static __global__ void",
    "__global__ __launch_bounds__(64, 2) void",
)
ARGUMENTS = ("float", "double", "int", "unsigned char", "long long")


def drawn_parameter(draw: random.Random, number: int) -> str:
    """A parameter, written in one of the ways that people write them."""
    if draw.random() < 0.5:
        return f"{draw.choice(('', 'const '))}{draw.choice(VALUES)} a{number}"
    star = draw.choice((" *", "* ", "*", " * const ", "* __restrict__ "))
    return f"{draw.choice(('', 'const ', 'volatile '))}{draw.choice(POINTEES)}{star}a{number}"


def drawn_kernels(draw: random.Random, count: int) -> tuple[str, tuple[str, ...]]:
    """A source and the instances of its kernels to build."""
    source, names = HEAD, []
    for k in range(count):
        taken = ", ".join(drawn_parameter(draw, at) for at in range(draw.randint(0, 8)))
        kernel = f"template <typename T, int V>\n{draw.choice(HEADS)} k{k}({taken}) {{}}\n"
        space = draw.choice(("", f"n{k}"))
        source += f"namespace {space} {{\n{kernel}}}\n" if space else kernel
        names.append(
            f"{space}::k{k}" * bool(space)
            + f"k{k}" * (not space)
            + f"<{draw.choice(ARGUMENTS)}, {k}>"
        )
    return source, tuple(names)


def said_bytes(parameter: Parameter) -> int | None:
    """The size that the parameter has by what was read of it; None for vectors."""
    assert parameter.is_pointer is not None
    if parameter.is_pointer:
        return 8
    if parameter.dtype == VECTOR:
        return None
    return 1 if parameter.dtype == "char" else dtype_of(parameter.dtype).bytes


def test_sizes_of_parameters(tmp_path: Path) -> None:
    try:
        toolchain.find_nvrtc()
        jail = choose("auto")
    except PrerequisiteError as error:
        pytest.skip(str(error))
    source, names = drawn_kernels(random.Random(11), 60)
    built = build(Workshop(jail, tmp_path), source, names, architecture("sm_90"))
    assert isinstance(built, DeviceBuilt), built.reason
    read = read_cuda(source)
    for name, facts in zip(names, built.kernels, strict=True):
        found = read.signatures(name)
        assert isinstance(found, tuple)
        (signature,) = found
        said = [said_bytes(each) for each in signature.runtime]
        assert len(said) == len(facts.parameters), name
        for mine, actual in zip(said, facts.parameters, strict=True):
            assert mine in (actual, None), (name, signature.text, facts.parameters)
