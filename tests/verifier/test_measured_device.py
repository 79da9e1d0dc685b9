"""The referee on a device, over the fake driver: what is measured, and whose failure it is.

The baselines run in their own process as on a GPU, their tensors copied for each call, but on the
CPU. The cubins are real; the fake driver runs a host function of the same name in their place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import Tier
from kernelwright.kernelbench.packs import workload_of
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.plan.model import (
    ZERO_FILL,
    Argument,
    ArgumentKind,
    Launch,
    Launches,
)
from kernelwright.sandbox.run.device.lease import DeviceBook
from kernelwright.sandbox.run.device.nvml import Device
from kernelwright.tests.sandbox.run.device.fake_driver import fake_access, fake_driver
from kernelwright.tests.sandbox.run.device.fake_nvml import H200, FakeNvml
from kernelwright.tests.verifier.stands import (
    PROBLEM,
    is_as_expected,
    look,
    machine,
    on_device,
    opened,
    task,
)
from kernelwright.traces.records import Depth, Level, Status, Verdict
from kernelwright.verifier.process.panel import Panel
from kernelwright.verifier.process.prefetch import ahead_of
from kernelwright.verifier.request import Order
from kernelwright.verifier.stands import device_tools
from kernelwright.verifier.stands.device import DeviceStand
from kernelwright.verifier.stands.leased import UNDISTURBED, Leased, Machine
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand

SLOWED = 0x8
"""NVML's bit of a slowdown by the hardware."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    os.chmod(folder, 0o755)
    return folder


@pytest.fixture(scope="module")
def library(cache: Path) -> Path:
    return fake_driver(cache)


@pytest.fixture(scope="module")
def stand(cache: Path, library: Path) -> Iterator[Stand]:
    found = opened(task(cache, "sm_90", "cuda"), machine(library))
    yield found
    found.close()


def judged(stand: Stand, kernel: str, protocol: Depth = Depth.SCREEN) -> Verdict:
    return look(stand, Order(source=on_device(kernel), language="cuda", protocol=protocol))


@pytest.mark.slow
def test_a_right_kernel_is_tried_and_timed_on_the_device(stand: Stand) -> None:
    assert not stand.is_emulated
    verdict = judged(stand, "gelu_right")
    assert not verdict.emulated
    assert verdict.tier is Tier.DEVICE_ONLY
    assert verdict.versions["device"] == "NVIDIA H200"
    assert verdict.versions["driver"] == "580.95.05"
    names = [check.name for check in verdict.checks]
    assert UNDISTURBED in names
    assert "one element changed at the same address" in names
    assert verdict.profile is not None
    if is_as_expected(verdict, Status.SCREENED):
        measured = verdict.measurement
        assert measured is not None
        assert measured.best_baseline == "torch eager"
        assert measured.floor_us > 0
        assert any(m.level is Level.MEASURED for m in verdict.profile.metrics)
        assert any("counters are read once" in remark for remark in verdict.profile.remarks)


@pytest.mark.slow
def test_a_promotion_says_what_was_not_looked_at(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_tools.device_sanitizer, "find", lambda: None)
    monkeypatch.setattr(device_tools.nsight, "find_ncu", lambda: None)
    order = Order(
        source=on_device("gelu_right"),
        language="cuda",
        protocol=Depth.CONFIRM,
        champion=on_device("gelu_right") + "// another",
    )
    verdict = look(stand, order)
    assert any("compute-sanitizer: not installed" in why for why in verdict.unchecked)
    if is_as_expected(verdict, Status.VERIFIED):
        assert verdict.measurement is not None
        assert "champion" in verdict.measurement.speedup
        assert verdict.profile is not None
        assert any("Nsight Compute is not installed" in r for r in verdict.profile.remarks)


@pytest.mark.slow
def test_arguments_that_may_be_swapped_are_told_where_an_answer_is_wrong(stand: Stand) -> None:
    swapped = on_device("gelu_wrong").replace('["M", "N", "x"', '["N", "M", "x"')
    verdict = look(stand, Order(source=swapped, language="cuda"))
    assert verdict.status is Status.INCORRECT
    assert verdict.reasons[1:] == (
        "gelu_wrong is given N where its parameter is called M, M where its parameter is called N",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "status", "words"),
    [
        ("gelu_wrong", Status.INCORRECT, "correct on"),
        ("gelu_at_wrong_address", Status.CRASHED, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("gelu_that_hangs", Status.TIMED_OUT, "no answer within"),
        ("not_in_the_cubin", Status.BUILD_FAILED, "not_in_the_cubin"),
    ],
)
def test_a_failure_is_the_candidates_while_the_device_is_well(
    stand: Stand, cache: Path, kernel: str, status: Status, words: str
) -> None:
    verdict = judged(stand, kernel)
    assert verdict.status is status
    assert words in verdict.reasons[0]
    assert not verdict.measurements
    assert DeviceBook.in_cache(cache).why_quarantined(str(H200["nvmlDeviceGetUUID"])) is None


@pytest.mark.slow
def test_the_next_candidates_are_built_while_the_device_is_busy(stand: Stand) -> None:
    assert isinstance(stand, DeviceStand)
    if len(stand.session.workshop.cpus) < 2:
        pytest.skip("there is no CPU for it")
    now, then, bad = (
        Order(source=f"{on_device(kernel)}// for later", language="cuda")
        for kernel in ("gelu_wrong", "gelu_right", "not_in_the_cubin")
    )
    bad = bad.model_copy(update={"source": bad.source.replace("{\n", "{ no C\n", 1)})
    with closing(ahead_of(stand)) as ahead:
        ahead.foresee([then, bad])
        assert look(stand, now).status is Status.INCORRECT
        assert ahead.take(then) is None
        built = stand.tools.build("cuda", then.source, 0).device
        assert built.is_cached
        assert ahead.take(bad) is None
    assert look(stand, bad).status is Status.BUILD_FAILED


def test_other_languages_are_not_taken(stand: Stand) -> None:
    verdict = look(stand, Order(source="int main() {}", language="cpp"))
    assert verdict.status is Status.UNSUPPORTED


@pytest.fixture
def open_by(tmp_path: Path) -> Iterator[Callable[[Machine], Stand]]:
    """Stands with a cache of their own."""
    tmp_path.chmod(0o755)
    with ExitStack() as stack:

        def make(of: Machine) -> Stand:
            found = open_stand(task(tmp_path, "sm_90", "cuda"), of)
            stack.callback(found.close)
            return found

        yield make


@pytest.mark.slow
def test_a_device_that_is_ill_goes_into_quarantine_and_is_no_candidates_fault(
    open_by: Callable[[Machine], Stand], library: Path, tmp_path: Path
) -> None:
    stand = open_by(machine(library, "bad_memory"))
    for _ in range(2):
        verdict = judged(stand, "gelu_right")
        assert verdict.status is Status.HARNESS_ERROR
        assert "quarantine" in verdict.reasons[0]
        assert "kernelwright doctor" in verdict.reasons[0]
    uuid = str(H200["nvmlDeviceGetUUID"])
    assert DeviceBook.in_cache(tmp_path).why_quarantined(uuid) is not None
    stand.close()
    # Whoever comes next finds out by a probe, and a device that is well again is taken.
    with pytest.raises(PrerequisiteError, match="still ill"):
        open_by(machine(library, "bad_memory"))
    assert not open_by(machine(library)).is_emulated
    assert DeviceBook.in_cache(tmp_path).why_quarantined(uuid) is None


@pytest.mark.slow
def test_a_device_that_is_gone_is_no_error_of_ours(
    open_by: Callable[[Machine], Stand], library: Path
) -> None:
    """No process starts on it any more; the sandbox is as well as before."""
    fake = {"FAKE_CUDA": "well"}
    way = fake_access(library, fake)
    stand = open_by(Machine(FakeNvml([dict(H200)]), lambda _: way, "cpu"))
    fake["FAKE_CUDA"] = "no_device"
    verdict = judged(stand, "gelu_right")
    assert verdict.status is Status.HARNESS_ERROR
    assert "CUDA_ERROR_NO_DEVICE" in verdict.reasons[0]
    assert "quarantine" in verdict.reasons[0]


@pytest.mark.slow
def test_a_device_that_is_held_down_gives_no_figures(
    open_by: Callable[[Machine], Stand], library: Path
) -> None:
    stand = open_by(machine(library, nvmlDeviceGetCurrentClocksEventReasons=SLOWED))
    verdict = judged(stand, "gelu_right")
    assert verdict.status is Status.SUSPECT
    failed = [check.name for check in verdict.checks if not check.passed]
    assert UNDISTURBED in failed
    assert not verdict.measurements


class OnTheDevice(list[int]):
    """NVML's list of the processes on the device: those of ours that stay there, and strangers."""

    leased: Leased

    def __iter__(self) -> Iterator[Any]:
        ours = (ask() for ask in self.leased.residents)
        return iter([SimpleNamespace(pid=pid) for pid in (*ours, *list.__iter__(self)) if pid])


@pytest.mark.slow
def test_the_baselines_of_other_workloads_are_no_strangers_on_the_device(
    tmp_path: Path, library: Path
) -> None:
    """Each workload of a task has a process of baselines on the one device that they share."""
    tmp_path.chmod(0o755)
    seen = OnTheDevice()
    here = machine(library, nvmlDeviceGetComputeRunningProcesses=seen)
    both = workload_of(registry.get(PROBLEM), axes=["M=33,N=65:3", "M=2,N=700"])
    asked = task(tmp_path, "sm_90", "cuda").model_copy(update={"workload": both})
    with closing(Panel.open(asked, here)) as panel:
        first, second = (stand for stand in panel.stands if isinstance(stand, DeviceStand))
        seen.leased = first.leased
        assert first.leased is second.leased
        panel.wait_prepared()
        assert len(list(seen)) == len(panel.stands)
        alone = judged(first, "gelu_right")
        assert UNDISTURBED in {c.name for c in alone.checks if c.passed}, alone.reasons
        seen.append(os.getppid())
        disturbed = judged(second, "gelu_right")
    assert UNDISTURBED in {c.name for c in disturbed.checks if not c.passed}
    assert disturbed.status is Status.SUSPECT


def test_a_device_is_leased_once_and_the_free_one_is_taken(library: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    tables: list[dict[Any, Any]] = [
        {**H200, "nvmlDeviceGetUUID": f"GPU-{number}"} for number in range(2)
    ]
    way = fake_access(library)
    here = Machine(FakeNvml(tables), lambda _: way, "cpu")
    found = here.devices("sm_90")
    first, second = (Leased.take(here, found, Workshop(BareJail(), tmp_path)) for _ in range(2))
    assert [first.device.uuid, second.device.uuid] == ["GPU-0", "GPU-1"]
    with pytest.raises(PrerequisiteError, match="no device is free"):
        Leased.take(here, found, Workshop(BareJail(), tmp_path))
    first.close()
    assert Leased.take(here, found, Workshop(BareJail(), tmp_path)).device.uuid == "GPU-0"
    second.close()


def test_only_the_targets_whole_devices_are_measured_on() -> None:
    def of(**told: object) -> list[Device]:
        return Machine(FakeNvml([{**H200, **told}])).devices("sm_90")

    assert len(of()) == 1
    assert not of(nvmlDeviceGetCudaComputeCapability=(8, 0))
    assert not of(nvmlDeviceGetMigMode=[1, 1])
    assert not Machine(FakeNvml(fails_with="Driver Not Loaded")).devices()


@pytest.mark.parametrize(
    ("allowed", "found"),
    [
        (None, ["GPU-aa0", "GPU-ab1"]),
        ((), []),
        (("1",), ["GPU-ab1"]),
        (("GPU-aa",), ["GPU-aa0"]),
        (("GPU-",), ["GPU-aa0", "GPU-ab1"]),
        (("-1",), []),
        (("MIG-1", "7"), []),
    ],
)
def test_only_devices_that_may_be_used_are_found(
    allowed: tuple[str, ...] | None, found: list[str]
) -> None:
    tables: list[dict[Any, Any]] = [
        {**H200, "nvmlDeviceGetUUID": uuid} for uuid in ("GPU-aa0", "GPU-ab1")
    ]
    here = Machine(FakeNvml(tables), allowed=allowed)
    assert [device.uuid for device in here.devices()] == found


def test_a_device_for_one_process_only_is_told_with_its_remedy(
    library: Path, tmp_path: Path
) -> None:
    here = machine(library, nvmlDeviceGetComputeMode=3)
    with pytest.raises(PrerequisiteError, match="compute mode exclusive process") as told:
        Leased.take(here, here.devices("sm_90"), Workshop(BareJail(), tmp_path))
    assert "nvidia-smi -c DEFAULT" in told.value.hint


def test_a_driver_older_than_every_compiler_is_told_before_anything_is_judged(
    library: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    way = fake_access(library)
    here = Machine(FakeNvml([dict(H200)], cuda=11080), lambda _: way, "cpu")
    with pytest.raises(PrerequisiteError, match="driver here is of CUDA 11") as told:
        open_stand(task(tmp_path, "sm_90", "cuda"), here)
    assert "update the driver" in told.value.hint
    # The device is not kept.
    assert not DeviceBook.in_cache(tmp_path).holder(str(H200["nvmlDeviceGetUUID"]))


@pytest.mark.slow
def test_a_cubin_that_the_driver_does_not_load_is_no_candidates_fault(
    open_by: Callable[[Machine], Stand], library: Path, tmp_path: Path
) -> None:
    """Whatever was told of the driver before: the code is our compiler's."""
    verdict = judged(open_by(machine(library, "driver=12080")), "gelu_right")
    assert verdict.status is Status.HARNESS_ERROR
    assert "CUDA_ERROR_INVALID_IMAGE" in verdict.reasons[0]
    assert "kernelwright doctor" in verdict.reasons[0]
    assert DeviceBook.in_cache(tmp_path).why_quarantined(str(H200["nvmlDeviceGetUUID"])) is None


def test_a_target_that_is_absent_is_emulated(library: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    stand = open_stand(task(tmp_path, "sm_80", "cuda"), machine(library))
    try:
        assert stand.is_emulated
    finally:
        stand.close()


@pytest.mark.parametrize(
    ("told", "cores", "product"),
    [
        ("NVIDIA H100 80GB HBM3", 16896, "H100 SXM"),
        ("NVIDIA H100 PCIe", 14592, "H100 PCIe"),
        ("NVIDIA H200", None, "H200 SXM"),
        ("NVIDIA GeForce RTX 4090", 16384, "RTX 4090"),
        # No relative's: the product that stands for the architecture.
        ("NVIDIA H100 NVL", 16896, "H200 SXM"),
        ("NVIDIA GH200 480GB", None, "H200 SXM"),
    ],
)
def test_data_sheets_are_found_by_the_drivers_name(
    told: str, cores: int | None, product: str
) -> None:
    device = Device(
        index=0, uuid="GPU-1", name=told, capability=90, memory_bytes=0, driver="580", cores=cores
    )
    sheet = Leased.data_sheet.fget(SimpleNamespace(device=device))  # type: ignore[attr-defined]
    assert sheet.name == product


def test_kernels_are_read_from_a_packed_table() -> None:
    word = Argument(ArgumentKind.INTEGER, 8)
    launches = Launches(
        ("a", "b"),
        (
            Launch(ZERO_FILL, arguments=(Argument(ArgumentKind.TENSOR, 1), word)),
            Launch(1, arguments=(word,)),
            Launch(0),
            Launch(1, arguments=(word, word)),
        ),
    )
    assert device_tools.list_launched(launches.pack()) == [1, 0, 1]


def test_reductions_over_neighbours_have_a_baseline_for_gpus() -> None:
    import torch

    from kernelwright.kernelbench.problem import Family
    from kernelwright.kernelbench.reduced_calls import reduce_scattered
    from kernelwright.kernelbench.sparse import row_numbers
    from kernelwright.verifier.truth.trials import make_item

    problem = registry.get("gspmm_reduce")
    structure = problem.structure(problem.workload("tiny"))
    item = make_item(problem, structure, Family.NORMAL, np.random.default_rng(3))
    for reduce, number in (("amax", 0), ("mean", 1)):
        axes = {**structure.axes, "reduce": number}
        inputs = {**structure.arrays, **item.inputs}
        of = type(structure)(axes, structure.arrays)
        expected = problem.oracle(of, item.inputs)["C"].value
        c = np.full(expected.shape, np.nan, np.float32)
        given = (row_numbers(of), *(inputs[name] for name in ("indices", "values", "B")), c)
        reduce_scattered(torch, *map(torch.from_numpy, given), reduce)()
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5)
