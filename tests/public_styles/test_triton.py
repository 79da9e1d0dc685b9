"""Triton kernels as other people write them: judged as they are, or refused with the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelwright.tests.court import Court
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Status

HERE = Path(__file__).parent / "triton"
STYLES = {
    "block_pointer_matmul": "gemm",
    "descriptor_softmax_backward": "softmax_backward",
    "edge_softmax_rows": "edge_softmax",
    "flash_softmax": "softmax",
    "fused_softmax": "softmax",
    "grouped_matmul": "gemm",
    "layer_norm_atomics": "layernorm",
    "layer_norm_autograd": "layernorm",
    "layer_norm_welford": "layernorm",
    "model_new_gelu": "bias_gelu",
    "online_softmax": "softmax",
    "persistent_matmul": "gemm",
    "rms_norm_libdevice": "rmsnorm",
    "sddmm_gather": "sddmm_csr",
    "segmented_scan_spmv": "spmv_csr",
    "split_k_atomics": "gemm",
    "spmm_row_program": "spmm_csr",
    "spmv_edge_scatter": "spmv_csr",
}
MAY_BE_LACKING = ("block_pointer_matmul",)
"""What some releases of Triton no longer have."""


def test_every_style_has_its_row() -> None:
    assert {file.stem for file in HERE.glob("*.py")} == set(STYLES)
    assert len(set(STYLES.values())) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, STYLES))
def test_a_public_style_is_judged(court: Court, name: str) -> None:
    source = (HERE / f"{name}.py").read_text("utf-8")
    verdict = court.look(source, STYLES[name], "triton", seed=b"public styles")
    if verdict.status is Status.UNSUPPORTED and name in MAY_BE_LACKING:
        assert re.search(r"line \d+.*use tl\.make_tensor_descriptor", verdict.reasons[0])
    else:
        assert verdict.status is Status.SCREENED, (verdict.reasons, verdict.log[-2000:])
