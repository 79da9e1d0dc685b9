"""Second implementations: attention, and what goes with its caches."""

from __future__ import annotations

from .collect import Implementation

PLAIN: dict[str, Implementation] = {}
