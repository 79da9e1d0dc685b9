"""Second implementations: arithmetic on integers and narrow codes."""

from __future__ import annotations

from .collect import Implementation

PLAIN: dict[str, Implementation] = {}
