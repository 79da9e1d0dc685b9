"""Second implementations: neural networks on graphs."""

from __future__ import annotations

from .collect import Implementation

PLAIN: dict[str, Implementation] = {}
