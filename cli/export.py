# SPDX-License-Identifier: Apache-2.0
"""`export`: a candidate leaves the house, with its plan, its record and what was not shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..traces import names
from . import common

if TYPE_CHECKING:
    from ..workbench.candidate import Candidate
    from ..workbench.home import Campaign

FormOption = Annotated[
    str | None,
    common.option(
        "--format",
        "package (a torch operator; cpp, cuda, triton), source, modelnew (a KernelBench file), "
        "header, aot (a shared object with a C ABI), kernels-hub (a repository of Hugging Face's "
        "kernels) or flashinfer (a data set of flashinfer-bench) "
        "[default: package for cpp, else source].",
    ),
]
UnverifiedOption = Annotated[
    bool,
    typer.Option(
        "--unverified",
        "--allow-unverified",
        help="Export it whatever its verdict was, marked with it in every file.",
    ),
]
PrebuiltOption = Annotated[
    str | None,
    common.option(
        "--prebuilt",
        "Of a CUDA package: compile it now with nvcc, for these architectures (80,90a).",
        metavar="ARCHS",
    ),
]


def export(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID[@best]", help="A campaign's champion, or ID/CANDIDATE.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to make.")],
    form: FormOption = None,
    unverified: UnverifiedOption = False,
    prebuilt: PrebuiltOption = None,
    home: common.HomeOption = None,
) -> None:
    """Write a verified candidate as a package or as source, with its plan and its evidence."""
    from ..workbench import exporting
    from ..workbench.home import Home

    config = common.load(ctx, home=home).config
    wanted = names.parse(name)
    campaign = Home(config.home)[wanted.campaign]
    what: Campaign | Candidate = campaign
    if wanted.candidate is not None and wanted.candidate != names.BEST:
        what = campaign[wanted.candidate]
    exporting.export(what, output, form=form, unverified=unverified, prebuilt=prebuilt or "")
    common.put(str(output))
