# SPDX-License-Identifier: Apache-2.0
"""The version of this package; `pyproject.toml` says the same."""

from __future__ import annotations

VERSION = "0.1.0"
