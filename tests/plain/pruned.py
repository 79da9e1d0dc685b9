"""Second implementations: products with weights that were pruned, and with blocks."""

from __future__ import annotations

from .collect import Implementation

PLAIN: dict[str, Implementation] = {}
