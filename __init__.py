"""Kernelwright: an LLM-agent workbench that generates, verifies and optimises kernels."""

__version__ = "0.1.0"

__all__ = ["__version__"]
