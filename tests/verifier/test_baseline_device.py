"""What baselines on a device are held to, as far as a machine without one can tell."""

from __future__ import annotations

from types import SimpleNamespace

from kernelwright.verifier.baselines import device


def test_baselines_compute_as_exactly_as_candidates_must() -> None:
    said: list[str] = []
    matmul = SimpleNamespace(
        allow_tf32=True,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
    )
    cudnn = SimpleNamespace(allow_tf32=True)
    torch = SimpleNamespace(
        set_float32_matmul_precision=said.append,
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul), cudnn=cudnn),
    )
    device._demand_exactness(torch)
    assert said == ["highest"]
    assert not any(vars(matmul).values())
    assert not cudnn.allow_tf32
