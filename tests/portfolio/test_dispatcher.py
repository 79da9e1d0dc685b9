"""The dispatcher's C++ chooses as the tree does, and its kernels do not disturb each other."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.portfolio.declared import declare_features
from kernelwright.portfolio.dispatcher import write_dispatcher
from kernelwright.portfolio.tree import Leaf, Node, Split, choose, list_leaves
from kernelwright.sandbox.front_matter import read_comment
from kernelwright.tests.portfolio.planted import FEATURES

SPMM = registry.get("spmm_csr")
NAMED = "abcdef"


def telling(number: int) -> str:
    """A kernel that writes its number and nothing else."""
    return f"""/*---
[recipe]
family = "telling"
---*/
#include <cmath>
#define NUMBER {number}
#define spmm_csr_of_others
static float number() {{ return std::floor(NUMBER + 0.5f); }}
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {{
    (void)M, (void)N, (void)K, (void)nnz, (void)indptr, (void)indices, (void)values, (void)B;
    C[0] = number();
}}
"""


def build(source: str, folder: Path) -> ctypes.CDLL:
    file = folder / "dispatcher.cpp"
    file.write_text(source)
    library = folder / "dispatcher.so"
    flags = [
        "-std=c++20",
        "-O1",
        "-march=native",
        "-fopenmp",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    subprocess.run(["g++", *flags, str(file), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def grow(rng: np.random.Generator, leaves: int) -> Node:
    """A random tree over all that a caller has."""
    if leaves == 1:
        return Leaf(str(rng.choice(list(NAMED))))
    feature = FEATURES[rng.integers(len(FEATURES))]
    low = int(rng.integers(1, leaves))
    threshold = float(np.exp(rng.uniform(0, 8)))
    return Split(feature.name, threshold, grow(rng, low), grow(rng, leaves - low))


def test_it_chooses_as_the_tree_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    sources = {name: telling(number) for number, name in enumerate(NAMED)}
    for tried in range(3):
        tree = grow(rng, 6)
        folder = tmp_path / str(tried)
        folder.mkdir()
        call = build(write_dispatcher(SPMM, tree, FEATURES, sources), folder).spmm_csr
        met = set()
        for axes in np.exp(rng.uniform(0, 9, (600, 4))).astype(int):
            facts = dict(zip(SPMM.axes, map(float, axes), strict=True))
            features = {each.name: each.value(facts) for each in FEATURES}
            found = np.full(1, -1.0, np.float32)
            call(*map(int, axes), None, None, None, None, ctypes.c_void_p(found.ctypes.data))
            assert NAMED[int(found[0])] == choose(tree, features)
            met.add(choose(tree, features))
        assert len(met) >= min(2, len(list_leaves(tree)))


def test_at_a_threshold_both_say_the_same(tmp_path: Path) -> None:
    """The mean row is computed in float64 on both sides, to the last bit."""
    sources = {name: telling(number) for number, name in enumerate(NAMED)}
    threshold = 10 / 3
    tree = Split("nnz / M", threshold, Leaf("a"), Leaf("b"))
    call = build(write_dispatcher(SPMM, tree, FEATURES, sources), tmp_path).spmm_csr
    found = np.zeros(1, np.float32)
    for rows, entries, number in ((3, 10, 0), (300, 1000, 0), (300, 1001, 1), (0, 0, 0)):
        call(rows, 8, 5, entries, None, None, None, None, ctypes.c_void_p(found.ctypes.data))
        assert found[0] == number


def test_kernels_with_the_same_names_inside_live_side_by_side(tmp_path: Path) -> None:
    """Recipes define the same helpers and macros, with other values."""
    made = {
        f"{recipe.family}-{vector}": recipe.render({**recipe.first_knobs(), "vector": vector})
        for recipe in recipes_for("spmm_csr")
        for vector in ("native", "half")
    }
    tree: Node = Leaf("nnz-balanced-half")
    for at, name in enumerate(list(made)[:-1]):
        tree = Split("N", float(2**at), Leaf(name), tree)
    source = write_dispatcher(SPMM, tree, FEATURES, made)
    library = build(source, tmp_path)
    kernels = read_comment(source).facts["portfolio"]["kernels"]
    assert len(kernels) == len(made)
    indptr, indices = np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    values = np.array([1, 2, 3], np.float32)
    dense = np.arange(15, dtype=np.float32).reshape(3, 5)
    wanted = np.array([[1, 0, 2], [0, 3, 0]]) @ dense
    for name in ("spmm_csr", *kernels):
        out = np.full((2, 5), np.nan, np.float32)
        arrays = (indptr, indices, values, dense, out)
        pointers = [ctypes.c_void_p(each.ctypes.data) for each in arrays]
        getattr(library, name)(2, 5, 3, 3, *pointers)
        assert np.array_equal(out, wanted), name


def test_a_candidate_of_several_leaves_is_there_once() -> None:
    tree = Split("N", 8.0, Leaf("a"), Split("M", 9.0, Leaf("b"), Leaf("a")))
    source = write_dispatcher(SPMM, tree, FEATURES, {"a": telling(0), "b": telling(1)})
    assert source.count("#define NUMBER 0") == 1
    assert read_comment(source).facts["portfolio"]["made_of"] == ["a", "b"]


def test_what_no_caller_has_is_refused() -> None:
    features = declare_features(SPMM, with_rows=True)
    tree = Split("cv_row", 1.0, Leaf("a"), Leaf("b"))
    with pytest.raises(UsageError, match="cv_row"):
        write_dispatcher(SPMM, tree, features, {"a": telling(0), "b": telling(1)})


def test_a_kernel_with_a_plan_is_refused() -> None:
    planned = telling(0).replace("[recipe]", '[prepare]\nbytes = "8 * M"\n[recipe]')
    with pytest.raises(UsageError, match="plan of its pattern"):
        write_dispatcher(SPMM, Leaf("a"), FEATURES, {"a": planned})
