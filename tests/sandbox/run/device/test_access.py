"""What a runner is given of a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.run.device.device_files import DeviceFiles, access, find_library
from kernelwright.sandbox.run.device.nvml import Device

pytestmark = pytest.mark.jail


def test_only_the_leased_device_is_visible() -> None:
    found = DeviceFiles(Path("/usr/lib64/libcuda.so.1"), "GPU-1").environment
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert found["CUDA_CACHE_DISABLE"] == "1"
    assert found["LD_LIBRARY_PATH"] == "/usr/lib64"
    assert "CUDA_VISIBLE_DEVICES" not in DeviceFiles(Path("/usr/lib64/libcuda.so.1")).environment


def test_torch_is_told_of_the_device_and_of_a_library_that_is_hidden() -> None:
    library = Path("/usr/local/nvidia/lib64/libcuda.so.1")
    assert DeviceFiles(library, "GPU-1").shown.keys() == {
        "CUDA_DEVICE_ORDER",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_MPS_PIPE_DIRECTORY",
    }
    hidden = DeviceFiles(library, "GPU-1", is_known_to_loader=False)
    assert hidden.shown["LD_LIBRARY_PATH"] == str(library.parent)


def test_without_a_driver_the_remedy_is_told() -> None:
    try:
        library = find_library()
    except PrerequisiteError:
        device = Device(0, "GPU-1", "NVIDIA H200", 90, 1 << 37, "580.95.05")
        with pytest.raises(PrerequisiteError, match=r"libcuda\.so\.1|nvidia-uvm") as found:
            access(device)
        assert found.value.hint
    else:
        assert library.name == "libcuda.so.1"
