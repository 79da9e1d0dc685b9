"""Second implementations: layers as servers and mixtures of experts call them."""

from __future__ import annotations

from .collect import Implementation

PLAIN: dict[str, Implementation] = {}
