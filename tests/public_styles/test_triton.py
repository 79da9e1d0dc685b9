"""Triton kernels as other people write them: judged as they are, or refused with the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.traces.records import Protocol, Status, Verdict
from kernelwright.verifier import emulation
from kernelwright.verifier.draft import Draft
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.session import Session

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

Judge = Callable[[str, str], Verdict]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Judges a source for a problem as `kernelwright eval --target sm_90` does."""
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o755)
    opened: dict[str, Session] = {}

    def judge(problem: str, source: str) -> Verdict:
        if problem not in opened:
            workload = registry.get(problem).workload("tiny")
            task = Task(problem=problem, workload=workload, target="sm_90",
                        languages=("triton",), cache_dir=str(cache))  # fmt: skip
            try:
                opened[problem] = Session.open(task)
            except PrerequisiteError as error:
                pytest.skip(str(error))
        session = opened[problem]
        if not session.is_emulated or session.device is None:
            pytest.skip("this machine has the device")
        order = Order(source=source, language="triton", protocol=Protocol.FULL)
        return emulation.look(Draft(order, session, b"public styles"), session.device)

    yield judge
    for session in opened.values():
        session.close()


def test_every_style_has_its_row() -> None:
    assert {file.stem for file in HERE.glob("*.py")} == set(STYLES)
    assert len(set(STYLES.values())) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("name", STYLES)
def test_a_public_style_is_judged(judge: Judge, name: str) -> None:
    verdict = judge(STYLES[name], (HERE / f"{name}.py").read_text("utf-8"))
    if verdict.status is Status.UNSUPPORTED and name in MAY_BE_LACKING:
        assert re.search(r"line \d+.*use tl\.make_tensor_descriptor", verdict.reasons[0])
    else:
        assert verdict.status is Status.SCREENED, (verdict.reasons, verdict.log[-2000:])
