# SPDX-License-Identifier: Apache-2.0
"""`doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ExitCode, UsageError
from . import common

if TYPE_CHECKING:
    from .shapes import DoctorDocument


def doctor(
    ctx: typer.Context,
    require: Annotated[
        str | None,
        typer.Option(
            "--require",
            help="Fail unless these pass, e.g. compiler,sandbox,gpu.",
            show_default=False,
        ),
    ] = None,
    jail: common.JailOption = None,
    home: common.HomeOption = None,
    cache_dir: common.CacheOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Say what this machine can do, what is missing, and how to get it.

    Exit status 3 if something that every run needs, or that --require names, is missing.
    """
    from .doctor_checks import PROBES, examine
    from .finding import Severity

    config = common.load(ctx, jail=jail, home=home, cache_dir=cache_dir).config
    required = [name.strip() for name in (require or "").split(",") if name.strip()]
    for name in required:
        if name not in PROBES:
            raise UsageError(f"--require knows no '{name}'", hint=f"known: {', '.join(PROBES)}")
    prose = common.console(config)
    findings = []
    for finding in examine(config, required):
        findings.append(finding)
        if not as_json:
            style = {Severity.PASS: "green", Severity.WARN: "yellow", Severity.FAIL: "bold red"}
            out = common.console(config, is_stderr=False)
            out.print(f"{finding.level:4}", style=style[finding.level], end="  ")
            out.print(f"{finding.topic:10} {finding.text}", markup=False, soft_wrap=True)
            if finding.fix:
                out.print(f"{'':18}fix: {finding.fix}", markup=False, soft_wrap=True)
    failed = [finding for finding in findings if finding.level is Severity.FAIL]
    if as_json:
        document: DoctorDocument = {
            "ok": not failed,
            "findings": [finding.document() for finding in findings],
        }
        common.emit(document)
    elif failed:
        topics = ", ".join(dict.fromkeys(finding.topic for finding in failed))
        prose.print(f"missing: {topics}", style="bold red", markup=False)
    if failed:
        raise typer.Exit(int(ExitCode.PREREQUISITE))
