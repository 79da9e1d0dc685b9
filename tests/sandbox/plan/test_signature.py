"""What kernels take, as their sources say."""

from __future__ import annotations

import ast

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CUDA, TRITON
from kernelwright.kernelbench.skeleton import signature
from kernelwright.sandbox.plan.cuda_signature import read_cuda
from kernelwright.sandbox.plan.signature import ANY, VECTOR, Parameter, Signature
from kernelwright.sandbox.plan.triton_signature import read_triton


def only(source: str, name: str = "k") -> Signature:
    found = read_cuda(source).signatures(name)
    assert not isinstance(found, str), found
    (one,) = found
    return one


def refused(source: str, name: str) -> str:
    found = read_cuda(source).signatures(name)
    assert isinstance(found, str), found
    return found


def parameter(text: str, before: str = "") -> Parameter:
    found = only(f"{before}\n__global__ void k({text}) {{}}").parameters
    assert found is not None
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("text", "name", "is_pointer", "dtype", "alignment"),
    [
        ("int M", "M", False, "int32", 4),
        ("const int M", "M", False, "int32", 4),
        ("unsigned", "", False, "uint32", 4),
        ("unsigned int n", "n", False, "uint32", 4),
        ("long long n", "n", False, "int64", 8),
        ("unsigned long long int n", "n", False, "uint64", 8),
        ("std::size_t n", "n", False, "uint64", 8),
        ("::cuda::std::int64_t n = 4", "n", False, "int64", 8),
        ("float eps", "eps", False, "float32", 4),
        ("double x", "x", False, "float64", 8),
        ("bool flag", "flag", False, "bool", 1),
        ("__half h", "h", False, "float16", 2),
        ("const float* __restrict__ x", "x", True, "float32", 4),
        ("float const * const x", "x", True, "float32", 4),
        ("float *x", "x", True, "float32", 4),
        ("float*", "", True, "float32", 4),
        ("float x[]", "x", True, "float32", 4),
        ("const int indptr[10]", "indptr", True, "int32", 4),
        ("const float4* x", "x", True, "float32", 16),
        ("const float3* x", "x", True, "float32", 4),
        ("double4* x", "x", True, "float64", 16),
        ("int2* x", "x", True, "int32", 8),
        ("const float4 x", "x", False, VECTOR, 16),
        ("half2 x", "x", False, VECTOR, 4),
        ("const half2* x", "x", True, "float16", 4),
        ("const __nv_bfloat16 *x", "x", True, "bfloat16", 2),
        ("const __nv_fp8_e4m3 *x", "x", True, "float8_e4m3fn", 1),
        ("__nv_fp8x2_e5m2* x", "x", True, "float8_e5m2", 2),
        ("__nv_fp8_e8m0* x", "x", True, "float8_e8m0fnu", 1),
        ("__nv_fp4_e2m1 x", "x", False, "float4_e2m1fn", 1),
        ("const void* x", "x", True, ANY, 1),
        ("unsigned char* x", "x", True, ANY, 1),
        ("signed char* x", "x", True, "int8", 1),
        ("[[maybe_unused]] const float* x", "x", True, "float32", 4),
        ("__grid_constant__ const int n", "n", False, "int32", 4),
        ("float** rows", "rows", True, "", 1),
        ("struct Params p", "p", None, "", 1),
        ("Params p", "p", None, "", 1),
        ("Vec<float, 4>* p", "p", True, "", 1),
        ("float (&tile)[4]", "tile", None, "", 1),
        ("void (*f)(int)", "f", None, "", 1),
        ("long double x", "x", None, "", 1),
    ],
)
def test_parameters(
    text: str, name: str, is_pointer: bool | None, dtype: str, alignment: int
) -> None:
    found = parameter(text)
    assert found.name == name or is_pointer is None
    assert (found.is_pointer, found.dtype, found.alignment) == (is_pointer, dtype, alignment)


@pytest.mark.parametrize(
    "before",
    [
        "using vec = float4;",
        "typedef float4 vec;",
        "#define vec float4",
        "using f = float4;\ntypedef f g;\nusing vec = g;",
        "#define F float4\nusing vec = F;",
    ],
)
def test_aliases(before: str) -> None:
    assert parameter("const vec* x", before).dtype == "float32"
    assert parameter("const vec* x", before).alignment == 16


@pytest.mark.parametrize(
    "before",
    [
        "#if A\nusing real = half;\n#else\nusing real = float;\n#endif",
        "using real = real;",
        "using real = other; using other = real;",
    ],
)
def test_what_an_alias_means_may_be_open(before: str) -> None:
    assert parameter("const real* x", before).dtype == ""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('extern "C" __global__ void k(int M) {}', "k"),
        ('extern "C" {\n__global__ void k(int M) {}\n}', "k"),
        ("__global__ void __launch_bounds__(128, 2) k(int M);", "k"),
        ("__global__ __launch_bounds__(BLOCK * (1 + 1)) static void k(int M);", "k"),
        ("__launch_bounds__(128) __global__ void k(int M);", "k"),
        ("static __global__ __attribute__((noinline)) void k(int M);", "k"),
        ("/* __global__ void k(float) */ // k(\n__global__ void\nk\n(\nint M\n)\n{}", "k"),
        ('const char* s = "__global__ void k(float x)"; __global__ void k(int M);', "k"),
        ('auto s = R"x(")__global__ void k(float)x"; __global__ void k(int M);', "k"),
        ('#define KERNEL extern "C" __global__\nKERNEL void k(int M) {}', "k"),
        ("#define BOUNDS(n) __launch_bounds__(n)\n__global__ void BOUNDS(4) k(int M) {}", "k"),
        ('#define X /* a\n } " */ 1\n__global__ void k(int M) {}', "k"),
        ("namespace a { namespace b { __global__ void k(int M) {} } }", "a::b::k"),
        ("namespace a::b { __global__ void k(int M) {} }", "::a::b::k"),
        ("namespace { __global__ void k(int M) {} }", "k"),
        ("using namespace x; namespace y = x; __global__ void k(int M) {}", "k"),
        ("struct S { int x; }; void f() { if (1 < 2) {} } __global__ void k(int M) {}", "k"),
        ("template <class T> struct S {}; __global__ void k(int M) {}", "k"),
    ],
)
def test_where_a_kernel_may_stand(source: str, name: str) -> None:
    found = only(source, name)
    assert found.text == "(int M)"
    assert source[: source.index(" M")].count("\n") + 1 >= found.place.line


def test_a_kernel_without_parameters() -> None:
    assert only("__global__ void k() {}").parameters == ()
    assert only("__global__ void k(void) {}").parameters == ()


def test_templates() -> None:
    source = (
        "template <typename T, int V = 4, class U = T> "
        "__global__ void k(const T* x, U* y, int n);\n"
        "template <typename T> struct Other {};\n"
        "__global__ void plain(T* x);"
    )
    assert only(source, "k<float, 8, half>").text == "(const float* x, half* y, int n)"
    assert only(source, "k< unsigned char >").runtime[0].dtype == ANY
    assert only(source, "k<float>").runtime[1].dtype == ""
    assert only(source, "plain").runtime[0].dtype == ""
    assert refused(source, "k") == "'k' is a template; name an instance: 'k<…>' with T, V, U"
    assert refused(source, "plain<int>") == "'plain' is not a template; launch it by its plain name"
    assert only("template <typename... A> __global__ void k(A... a);", "k<int>").parameters is None


def test_overloads_are_all_told() -> None:
    found = read_cuda("__global__ void k(int a); __global__ void k(float* a);").signatures("k")
    assert isinstance(found, tuple)
    assert [each.text for each in found] == ["(int a)", "(float* a)"]


def test_what_only_a_compiler_can_tell() -> None:
    macro = "#define ARGS int M, float* x\n"
    assert only(f"{macro}__global__ void k(ARGS) {{}}").parameters is None
    made = "#define MAKE(name) __global__ void name##_k(int M) {}\nMAKE(my)\n"
    assert read_cuda(made).signatures("my_k") == ()
    opened = "#ifdef A\n#define T int\n#else\n#define T float*\n#endif\n__global__ void k(T x);"
    assert only(opened).parameters is None


def test_a_name_that_is_no_kernel() -> None:
    source = "__device__ int helper(int x); __global__ void row_sum(int M); int other;"
    assert refused(source, "row_sums") == (
        "there is no __global__ function named 'row_sums'; did you mean row_sum?"
    )
    assert refused(source, "helper") == (
        "'helper' is in the source, but not as a __global__ function; its kernels: row_sum"
    )
    assert refused("", "k") == "there is no __global__ function named 'k'; known: -"


@pytest.mark.parametrize("problem", registry.names())
def test_the_printed_signatures_are_read(problem: str) -> None:
    asked = registry.get(problem)
    cuda = only(signature(asked, CUDA), f"{problem}_kernel")
    names = [*asked.axes, *(tensor.name for tensor in asked.tensors)]
    assert [each.name for each in cuda.runtime] == names
    # A pointer to bytes may point at anything.
    assert [each.dtype for each in cuda.runtime[len(asked.axes) :]] == [
        "any" if tensor.dtype == "uint8" else tensor.dtype for tensor in asked.tensors
    ]
    triton = read_triton(ast.parse(signature(asked, TRITON) + "\n    pass\n"))
    found = triton.signatures(f"{problem}_kernel")
    assert isinstance(found, tuple)
    assert [each.name.removesuffix("_ptr") for each in found[0].runtime] == names
    assert [each.name for each in found[0].parameters or () if each.is_constexpr] == ["BLOCK"]


def test_the_forms_of_a_triton_kernel() -> None:
    source = """
@jit
def a(x_ptr, /, n, B: tl.constexpr = 4, *, C: "tl.constexpr", D: constexpr): pass
if True:
    @triton.jit(noinline=True)
    def b(): pass
def c(): pass
"""
    found = read_triton(ast.parse(source))
    assert found.names == ["a", "b"]
    (a,) = found.signatures("a")
    assert isinstance(a, Signature)
    assert a.text == "(x_ptr, n)"
    assert [(p.name, p.has_default) for p in a.parameters or () if p.is_constexpr] == [
        ("B", True),
        ("C", False),
        ("D", False),
    ]


@pytest.mark.parametrize(
    "piece",
    [
        "__global__ __launch_bounds__(",
        "template <",
        'R"a(',
        "/*",
        "__global__ void k(",
        "namespace a {",
        "#define A /*",
        "using a = a;",
        "(",
        "'",
        '"',
        "\\\n",
        "#\\\n",
    ],
)
def test_hostile_repetition_ends(piece: str) -> None:
    source = piece * (120_000 // len(piece))
    assert isinstance(read_cuda(source).signatures("no_kernel_of_that_name"), str)


def test_macros_that_multiply_end() -> None:
    steps = [f"#define A{n} {' '.join([f'A{n + 1}'] * 16)}" for n in range(12)]
    for last in ("#define A12 /**/", "#define A12 A0", "#define A12 int"):
        source = "\n".join([*steps, last, "__global__ void k(A0 x);"])
        assert only(source).runtime[0].dtype == ""


@pytest.mark.parametrize(
    ("source", "labels"),
    [
        ("// __global__ void no(int)\n__global__ void yes(int) {}", ("yes",)),
        ("template <typename T, int N = 3>\n__global__ void t(T* p) {}", ("t<…>",)),
        (
            'extern "C" {\n__global__ void __launch_bounds__(32 * 4) a() {}\n'
            "static __global__ void b(int x) {} }",
            ("a", "b"),
        ),
        ("namespace n { __global__ void k(); __global__ void k() {} }", ("n::k",)),
        ("__device__ void f() {}", ()),
    ],
)
def test_the_kernels_of_a_source_as_people_are_told(source: str, labels: tuple[str, ...]) -> None:
    assert read_cuda(source).labels == labels
