"""What the doctor says of NVIDIA devices, from answers of a driver that are written by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.cli import devices
from kernelwright.cli.finding import Finding, Severity
from kernelwright.config import Config, resolve
from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.builders import toolchain
from kernelwright.sandbox.run.device.health import Health
from kernelwright.sandbox.run.device.lease import DeviceBook
from kernelwright.tests.sandbox.run.device import fake_nvml


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return resolve({"home": tmp_path / "home", "cache_dir": tmp_path / "cache"}).config


def first(config: Config, changes: dict[Any, Any] | None = None) -> Finding:
    table = {**fake_nvml.H200, **(changes or {})}
    return next(devices.gpu(config, fake_nvml.FakeNvml([table])))


def test_a_device_is_described(config: Config) -> None:
    found = first(config)
    assert found.level is Severity.PASS
    assert found.text == (
        "NVIDIA H200, sm_90, 140 GiB, driver 580.95.05, 41 °C, 312 of 700 W, ECC on"
    )


def test_every_device_has_a_line(config: Config) -> None:
    other = {
        **fake_nvml.H200,
        "nvmlDeviceGetUUID": "GPU-2",
        "nvmlDeviceGetName": "NVIDIA L4",
        "nvmlDeviceGetCudaComputeCapability": (8, 9),
    }
    found = list(devices.gpu(config, fake_nvml.FakeNvml([dict(fake_nvml.H200), other])))
    assert [f.text.partition(",")[0] for f in found[:2]] == ["NVIDIA H200", "NVIDIA L4"]


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({"nvmlDeviceGetCudaComputeCapability": (7, 0)}, Severity.WARN, "sm_70.*cannot be built"),
        ({"nvmlDeviceGetMigMode": [1, 1]}, Severity.WARN, "MIG instances"),
        ({"nvmlDeviceGetEccMode": [0, 0]}, Severity.PASS, "ECC off"),
    ],
)
def test_what_stands_in_the_way_is_told(
    config: Config, changes: dict[Any, Any], level: Severity, words: str
) -> None:
    found = first(config, changes)
    assert found.level is level
    assert re.search(words, found.text)
    assert level is Severity.PASS or found.fix


@pytest.mark.parametrize(
    ("names", "asked", "is_told"),
    [
        (("NVIDIA H200", "NVIDIA L4"), ("0",), True),
        (("NVIDIA H200", "NVIDIA L4"), ("GPU-2",), False),
        (("NVIDIA H200", "NVIDIA L4"), None, False),
        (("NVIDIA H200", "NVIDIA H200"), ("0",), False),
    ],
)
def test_numbers_of_different_devices_are_told_to_be_nvidia_smis(
    config: Config, names: tuple[str, str], asked: tuple[str, ...] | None, is_told: bool
) -> None:
    tables = [
        {**fake_nvml.H200, "nvmlDeviceGetUUID": f"GPU-{n}", "nvmlDeviceGetName": name}
        for n, name in enumerate(names)
    ]
    found = list(devices.gpu(replace(config, devices=asked), fake_nvml.FakeNvml(tables)))
    assert any("nvidia-smi's numbers" in one.text for one in found) is is_told


def test_a_driver_that_loads_nothing_of_the_compiler_is_told_with_its_remedy(
    config: Config,
) -> None:
    try:
        toolchain.find_nvrtc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    found = list(devices.gpu(config, fake_nvml.FakeNvml(cuda=11080)))
    refused = [one for one in found if one.text.startswith("cuda: ")]
    assert [one.level for one in refused] == [Severity.WARN]
    assert "driver here is of CUDA 11" in refused[0].text
    assert "update the driver" in refused[0].fix
    found = list(devices.gpu(config, fake_nvml.FakeNvml(cuda=13000)))
    (taken,) = [one for one in found if one.text.startswith("cuda: ")]
    assert taken.level is Severity.PASS
    assert taken.text.endswith("the driver's release is CUDA 13.0")


def test_held_and_quarantined_devices_are_told(config: Config) -> None:
    uuid = fake_nvml.H200["nvmlDeviceGetUUID"]
    with DeviceBook.in_cache(config.cache_dir).lease([uuid], lambda _: Health()) as ours:
        assert "held by process" in first(config).text
        ours.quarantine("a kernel hung")
    found = first(config)
    assert found.level is Severity.WARN
    assert "in quarantine: a kernel hung" in found.text


def test_without_a_driver_the_remedy_is_told(config: Config) -> None:
    (found,) = devices.gpu(config, fake_nvml.FakeNvml(fails_with="Driver Not Loaded"))
    assert found.level is Severity.WARN
    assert "Driver Not Loaded" in found.text
    assert "driver" in found.fix
    (found,) = devices.gpu(config, fake_nvml.FakeNvml([]))
    assert found.text == "the driver shows no device"


def tool(folder: Path, name: str, words: str) -> str:
    (folder / name).write_text(f"#!/bin/sh\necho '{words}'\n")
    (folder / name).chmod(0o755)
    return str(folder)


def test_the_profiler_and_its_rights(config: Config, tmp_path: Path) -> None:
    (found,) = devices.ncu(config, search=str(tmp_path))
    assert (found.level, found.topic) == (Severity.WARN, "ncu")
    search = tool(tmp_path, "ncu", "Version 2025.3.1.0 (build 1)")
    (found,) = devices.ncu(config, search=search, parameters=tmp_path / "none")
    assert found.level is Severity.PASS
    assert "Nsight Compute 2025.3.1.0" in found.text


def test_the_sanitizer(config: Config, tmp_path: Path) -> None:
    (found,) = devices.sanitizer(config, search=str(tmp_path))
    assert found.level is Severity.WARN
    (found,) = devices.sanitizer(config, search=tool(tmp_path, "compute-sanitizer", ""))
    assert found.level is Severity.PASS
