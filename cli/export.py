# SPDX-License-Identifier: Apache-2.0
"""`export`: a candidate leaves the house, with its plan, its record and what was not shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..traces import names
from . import common
from .completing import complete_campaign

if TYPE_CHECKING:
    from ..workbench.candidate import Candidate
    from ..workbench.home import Campaign, Home

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
BackwardOption = Annotated[
    str | None,
    common.option(
        "--backward",
        "Of a package of spmm_csr: a kernel of sddmm_csr that its gradient takes.",
        metavar="ID[@best]",
    ),
]


def export(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID[@best]",
            help="A campaign's champion, or ID/CANDIDATE.",
            autocompletion=complete_campaign,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to make.")],
    form: FormOption = None,
    unverified: UnverifiedOption = False,
    prebuilt: PrebuiltOption = None,
    backward: BackwardOption = None,
    home: common.HomeOption = None,
) -> None:
    """Write a verified candidate as a package or as source, with its plan and its evidence."""
    from ..workbench import exporting
    from ..workbench.home import Home

    config = common.load(ctx, home=home).config
    home_of = Home(config.home)
    what = _find(home_of, name)
    second = _find(home_of, backward) if backward else None
    exporting.export(
        what,
        output,
        form=form,
        unverified=unverified,
        prebuilt=prebuilt or "",
        backward=second,
    )
    common.put(str(output))


def _find(home: Home, name: str) -> Campaign | Candidate:
    wanted = names.parse(name)
    campaign = home[wanted.campaign]
    if wanted.candidate is None or wanted.candidate == names.BEST:
        return campaign
    return campaign[wanted.candidate]
