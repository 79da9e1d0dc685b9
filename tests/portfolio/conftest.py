"""The fixtures of exported packages."""

from kernelwright.tests.traces.export.conftest import kernel_cache, run

__all__ = ["kernel_cache", "run"]
