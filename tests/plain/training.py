"""Second implementations: what training needs beside forward passes."""

from __future__ import annotations

from .collect import Implementation

PLAIN: dict[str, Implementation] = {}
