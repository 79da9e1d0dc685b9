"""Every target there is; a new one is added to its module and found here."""

from __future__ import annotations

from kernelwright.tests.fuzz import (
    channels,
    claims,
    launch_plans,
    matrix_files,
    recipes,
    records,
    replies,
    settings_files,
    stores,
)
from kernelwright.tests.fuzz.target import Target

TARGETS: tuple[Target, ...] = (
    *channels.TARGETS,
    *claims.TARGETS,
    *launch_plans.TARGETS,
    *matrix_files.TARGETS,
    *settings_files.TARGETS,
    *records.TARGETS,
    *recipes.TARGETS,
    *replies.TARGETS,
    *stores.TARGETS,
)
