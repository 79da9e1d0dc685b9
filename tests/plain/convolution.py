"""Second implementations: convolutions, state spaces and encodings."""

from __future__ import annotations

from .collect import Implementation

PLAIN: dict[str, Implementation] = {}
