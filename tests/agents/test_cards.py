"""A13: a card tells the driver's figures, and says what it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.prompting.target_card import Card, cpu_card, device_card
from kernelwright.errors import UnknownNameError
from kernelwright.kernelbench.products import DEVICES, product
from kernelwright.kernelbench.targets import ARCHITECTURES, architecture
from kernelwright.sandbox.run.device.nvml import Device as Driven
from kernelwright.verifier.clock.roofline import Peaks


def driven(name: str, capability: int) -> Driven:
    return Driven(
        index=0,
        uuid="GPU-0",
        name=name,
        capability=capability,
        memory_bytes=80 << 30,
        driver="580.1",
        sm_clock_mhz=1980,
    )


PROBED = {"sms": "132", "l2_bytes": str(50 << 20)}


def test_a13_the_figures_are_the_drivers() -> None:
    card = device_card("sm_90", driven=driven("NVIDIA H100 80GB HBM3", 90), probed=PROBED)
    assert (card.get("SMs"), card.get("L2 cache"), card.get("memory")) == (
        "132",
        "50.0 MiB",
        "80.0 GiB",
    )
    assert card.get("memory bandwidth, peak") == "3350 GB/s"
    assert (card.get("bf16 peak"), card.get("int8 peak")) == ("989 TFLOP/s", "1979 TOP/s")
    assert not card.is_partial
    assert not card.is_emulated


@pytest.mark.parametrize("name", ["NVIDIA H100 NVL", "NVIDIA GH200 480GB", "NVIDIA Z900"])
def test_a13_an_unknown_gpu_gets_a_partial_card_and_no_neighbours_figures(name: str) -> None:
    card = device_card("sm_90", driven=driven(name, 90), probed={"sms": "132"})
    assert card.is_partial
    assert "peak memory bandwidth" in card.unknown
    assert "partial card" in card.text
    for device in DEVICES:
        assert f"{device.memory_gbs:g} GB/s" not in card.text


def test_a13_measured_rates_stand_where_no_data_sheet_is_known() -> None:
    peaks = Peaks(
        bandwidth_gbs=2891.0,
        llc_bandwidth_gbs=6000.0,
        cache_bandwidth_gbs=6000.0,
        flops_gflops=51_000.0,
        l2_bytes=0,
        llc_bytes=0,
        cpus=(),
        compiler="none",
    )
    card = device_card("sm_90", driven=driven("NVIDIA Z900", 90), probed=PROBED, peaks=peaks)
    assert card.get("memory bandwidth") == "2.89e+03 GB/s"
    sheet = peaks.model_copy(update={"cache_source": "H100 SXM, vendor's data sheet, dense"})
    unsure = device_card("sm_90", driven=driven("NVIDIA Z900", 90), probed=PROBED, peaks=sheet)
    assert unsure.get("memory bandwidth") == ""


@pytest.mark.parametrize("target", ARCHITECTURES)
def test_a13_without_a_device_only_the_architecture_is_known(target: str) -> None:
    card = device_card(target)
    assert card.is_emulated
    assert card.is_partial
    assert card.get("shared memory of an SM") == f"{architecture(target).shared_per_sm >> 10} KiB"
    assert card.get("memory bandwidth, peak") == ""


def test_a_card_never_calls_unknown_what_it_says_to_plan_for() -> None:
    card = device_card("sm_90")
    assert "H200 SXM: 132 SMs" in card.get("plan for")
    assert "50 MB of L2" in card.get("plan for")
    assert "67 fp32, 495 tf32, 989 fp16, 989 bf16" in card.get("plan for")
    assert "modelled times assume it" in card.text
    assert card.is_partial
    assert "unknown" not in card.text
    assert "unknown here: the product, number of SMs" in device_card("sm_121").text


def test_an_unknown_architecture_is_an_error() -> None:
    with pytest.raises(UnknownNameError):
        device_card("sm_42")


@pytest.mark.parametrize(
    ("name", "sms", "found"),
    [
        ("NVIDIA A100-SXM4-80GB", None, "A100 80GB SXM"),
        ("NVIDIA A100-PCIE-40GB", 108, "A100 40GB"),
        ("NVIDIA H100 80GB HBM3", None, None),
        ("NVIDIA H100 80GB HBM3", 132, "H100 SXM"),
        ("NVIDIA H100 PCIe", 114, "H100 PCIe"),
        ("NVIDIA GeForce RTX 4090", 128, "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None, None),
        ("NVIDIA H100 NVL", 132, None),
        ("NVIDIA A10G", 80, None),
        ("Tesla T4", 40, "T4"),
    ],
)
def test_a_product_is_known_by_its_whole_name(name: str, sms: int | None, found: str) -> None:
    known = product(name, sms)
    assert (known.name if known else None) == found


def machine(root: Path) -> tuple[Path, Path]:
    cpuinfo = root / "cpuinfo"
    cpuinfo.write_text(
        "processor\t: 0\nmodel name\t: Testing 9000\nflags\t\t: fpu sse4_2 avx2 fma\n\n"
        "processor\t: 1\nmodel name\t: Testing 9000\n"
    )
    caches = {
        "index0": ("Data", 1, "48K", "0"),
        "index1": ("Instruction", 1, "32K", "0"),
        "index3": ("Unified", 3, "32768K", "0-3,8"),
    }
    for name, (kind, level, size, shared) in caches.items():
        entry = root / "cpu0" / "cache" / name
        entry.mkdir(parents=True)
        for file, word in (
            ("type", kind),
            ("level", level),
            ("size", size),
            ("shared_cpu_list", shared),
        ):
            (entry / file).write_text(f"{word}\n")
    return cpuinfo, root


def test_the_cpus_card_comes_from_the_machine(tmp_path: Path) -> None:
    cpuinfo, caches = machine(tmp_path)
    card = cpu_card({"cpus": 2.0, "vector_bytes": 32.0}, cpuinfo=cpuinfo, caches=caches)
    assert card.title == "Testing 9000"
    assert card.get("vector width") == "256 bits, 8 floats"
    assert card.get("vector instructions") == "sse4_2 avx2 fma"
    assert card.get("L1 cache") == "48 KiB each"
    assert card.get("L3 cache") == "32 MiB, shared by 5 CPUs"
    assert card.unknown == ("memory bandwidth", "peak rate of arithmetic")


def test_the_cpus_card_tells_what_the_machine_reached(tmp_path: Path) -> None:
    cpuinfo, caches = machine(tmp_path)
    facts = {
        "cpus": 2.0,
        "vector_bytes": 32.0,
        "memory_gbs": 15.24,
        "llc_gbs": 70.0,
        "l2_gbs": 120.0,
        "fma_gflops": 271.4,
    }
    card = cpu_card(facts, cpuinfo=cpuinfo, caches=caches)
    assert card.get("memory bandwidth") == "15.2 GB/s"
    assert card.get("float32 multiply-adds in all") == "271 GFLOP/s"
    assert card.unknown == ()


def test_a_machine_that_tells_nothing_gives_a_partial_card(tmp_path: Path) -> None:
    card = cpu_card({"cpus": 2.0}, cpuinfo=tmp_path / "none", caches=tmp_path)
    assert {"vector width", "vector instructions", "caches"} <= set(card.unknown)
    assert "partial card" in card.text


def test_a_card_is_kept_as_json() -> None:
    card = device_card("sm_80")
    assert Card.model_validate_json(card.model_dump_json()) == card
