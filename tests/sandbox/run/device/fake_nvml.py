"""An object with the functions of `pynvml` that we use, answering from data.

The figures are those of an H200 as the NVML reference describes their units: MHz, milliwatts,
millijoules, degrees Celsius, bytes. They were written by hand, not recorded on a machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

H200 = {
    "nvmlDeviceGetUUID": "GPU-7c0f9a52-0000-4000-8000-000000000001",
    "nvmlDeviceGetName": "NVIDIA H200",
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150_754_820_096, free=150_120_038_400),
    "nvmlDeviceGetMinorNumber": 3,
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    ("nvmlDeviceGetMaxClockInfo", 1): 1980,
    ("nvmlDeviceGetMaxClockInfo", 2): 3201,
    ("nvmlDeviceGetClockInfo", 1): 1980,
    ("nvmlDeviceGetClockInfo", 2): 3201,
    "nvmlDeviceGetCurrentClocksEventReasons": 0,
    ("nvmlDeviceGetTemperature", 0): 41,
    "nvmlDeviceGetPowerUsage": 312_450,
    "nvmlDeviceGetTotalEnergyConsumption": 9_000_000,
    "nvmlDeviceGetComputeRunningProcesses": [],
}


class FakeError(Exception):
    """Stands for NVMLError."""


@dataclass
class FakeNvml:
    """NVML with some devices; a function whose answer is missing is not supported."""

    tables: list[dict[Any, Any]] = field(default_factory=lambda: [dict(H200)])
    driver: str | bytes = "580.95.05"
    cuda: int = 13000
    is_open: int = 0
    fails_with: str = ""
    NVMLError: type[Exception] = FakeError

    def __getattr__(self, name: str) -> Any:
        known = {
            "nvmlInit": self._init,
            "nvmlShutdown": self._shut_down,
            "nvmlSystemGetDriverVersion": lambda: self.driver,
            "nvmlSystemGetCudaDriverVersion_v2": lambda: self.cuda,
            "nvmlDeviceGetCount": lambda: len(self.tables),
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetHandleByUUID": self._handle,
        }
        if name in known:
            return known[name]
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)
        return lambda handle, *arguments: self._answer(handle, (name, *arguments))

    def _init(self) -> None:
        if self.fails_with:
            raise FakeError(self.fails_with)
        self.is_open += 1

    def _shut_down(self) -> None:
        self.is_open -= 1

    def _handle(self, uuid: str) -> int:
        for index, table in enumerate(self.tables):
            if table["nvmlDeviceGetUUID"] in (uuid, uuid.encode()):
                return index
        raise FakeError("Not Found")

    def _answer(self, handle: int, asked: tuple[Any, ...]) -> Any:
        key = asked if len(asked) > 1 else asked[0]
        if key not in self.tables[handle]:
            raise FakeError("Not Supported")
        return self.tables[handle][key]
