"""Operations of a baseline are counted as it runs, and what cannot be counted is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelwright.verifier.baselines.counting import FUNCTION, count_operations

pytestmark = pytest.mark.slow


def calls() -> dict[str, tuple[Callable[[], Any], int, int]]:
    """What is called, and its least and most operations."""
    import torch

    x, w, y = torch.randn(4, 5), torch.randn(5, 6), torch.empty(4, 6)
    images, filters, query = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3), torch.randn(2, 6, 8)
    dense, square = torch.zeros(4, 5), torch.randn(5, 5)
    array, codes = x.numpy(), torch.ones(32, 32, dtype=torch.int8)
    dense[0, 1] = dense[2, 2] = dense[3, 4] = 1.0
    sparse = dense.to_sparse_csr()
    gelu, attend = torch.nn.functional.gelu, torch.nn.functional.scaled_dot_product_attention
    return {
        "product": (lambda: torch.mm(x, w, out=y), 2 * 4 * 5 * 6, 2 * 4 * 5 * 6),
        "product and function": (
            lambda: gelu(x @ w),
            2 * 4 * 5 * 6 + 4 * 6,
            2 * 4 * 5 * 6 + FUNCTION * 4 * 6,
        ),
        "product of codes": (lambda: torch._int_mm(codes, codes), 2 * 32**3, 2 * 32**3),
        "convolution": (
            lambda: torch.nn.functional.conv2d(images, filters),
            2 * 27 * 2 * 4 * 36,
            2 * 27 * 2 * 4 * 36,
        ),
        "attention": (lambda: attend(query, query, query), 4 * 2 * 36 * 8, 4 * 2 * 36 * 8),
        "row sums": (lambda: x.sum(1), 20, FUNCTION * 20),
        "sparse product": (lambda: torch.sparse.mm(sparse, w), 2 * 3 * 6, 2 * 3 * 6),
        "sparse by a vector": (lambda: torch.mv(sparse, w[:, 0]), 2 * 3, 2 * 3),
        "sampled product": (
            lambda: torch.sparse.sampled_addmm(sparse, x, square, beta=0.0),
            2 * 3 * 5,
            2 * 3 * 5,
        ),
        "moves": (lambda: y.copy_(torch.zeros(4, 6).t().t()), 0, 0),
        "numpy": (lambda: np.exp(array), 0, 0),
    }


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "product",
            "product and function",
            "product of codes",
            "convolution",
            "attention",
            "row sums",
        ),
        *("sparse product", "sparse by a vector", "sampled product", "moves", "numpy"),
    ],
)
def test_operations_are_counted(name: str) -> None:
    import torch

    compute, least, most = calls()[name]

    def infer() -> None:
        with torch.inference_mode():
            compute()

    found = count_operations(infer)
    assert (found.least, found.most, found.unknown) == (least, most, [])


def test_what_is_none_of_torchs_own_is_named() -> None:
    import torch

    torch.library.define("kernelwright_test::twice", "(Tensor x) -> Tensor")
    torch.library.impl("kernelwright_test::twice", "cpu", lambda x: x * 2)
    double = torch.ops.kernelwright_test.twice
    found = count_operations(lambda: double(torch.randn(3)))
    assert found.unknown == ["kernelwright_test::twice"]


def test_torchs_compiler_is_imported_neither_to_count_nor_to_shake() -> None:
    """Its imports take two seconds, in each process."""
    program = (
        "import sys\n"
        "import torch\n"
        "from kernelwright.kernelbench.shaking import shake_steps, shaken\n"
        "from kernelwright.verifier.baselines.counting import count_operations\n"
        "x = torch.ones(8)\n"
        "right = torch.exp(x)\n"
        "assert count_operations(lambda: torch.exp(x)).most == 80\n"
        "with shaken(0), shake_steps():\n"
        "    shaken_one = torch.exp(x)\n"
        "assert not torch.equal(shaken_one, right)\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stdout + done.stderr
