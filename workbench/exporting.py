# SPDX-License-Identifier: Apache-2.0
"""A candidate leaves the house, with its plan, its record and what was not shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..agents.books.request import add_recorded_problem
from ..errors import UsageError
from ..kernelbench.languages import CPP, CUDA, language_of
from ..portfolio.dispatcher import list_kernels
from ..sandbox.builders.cuda_library import build_library, read_architectures
from ..sandbox.builders.workshop import Workshop
from ..sandbox.isolation.choose import choose
from ..sandbox.plan.pattern_plan import declares_pattern_plan
from ..traces import export as files
from ..traces import names
from ..traces.sheet import Sheet
from ..traces.store import Store
from .candidate import Candidate
from .cases import recorded_cases
from .home import Campaign
from .host_code import find_module, write_host_code
from .measured import list_measured
from .plans import find_inputs, launch_plan, write_reference


def export(
    what: Campaign | Candidate,
    folder: str | Path,
    *,
    form: str | None = None,
    unverified: bool = False,
    prebuilt: str = "",
    backward: Campaign | Candidate | None = None,
) -> list[Path]:
    """Writes a campaign's champion, or one of its candidates, to a new folder; gives the files.

    Args:
        form: `package` (a torch operator; C++, CUDA, Triton), `source`, `modelnew` (a KernelBench
            file), `header`, `aot` (a shared object), `kernels-hub` (a repository of Hugging Face's
            kernels), `flashinfer` (a data set of flashinfer-bench); None: what its language allows.
        unverified: Also what is not VERIFIED; every file then says so at its head.
        prebuilt: Of a package of CUDA: architectures, as `80,90a`, that nvcc compiles it for now;
            empty: it is compiled where it is used.
        backward: A kernel that the gradient of a package takes: of `sddmm_csr`, for `spmm_csr`.

    Raises:
        PrerequisiteError: it is to be compiled, and there is no nvcc.
        UsageError: there is nothing that may be exported; the hint says what may.
    """
    bundle, form = _open_bundle(what, form, unverified=unverified)
    if backward is not None:
        bundle = _add_backward(bundle, form, backward, unverified=unverified)
    if prebuilt:
        bundle = _build(bundle, form, prebuilt, unverified=unverified)
    return files.export(bundle, form, Path(folder), unverified=unverified)


def _open_bundle(
    what: Campaign | Candidate, form: str | None, *, unverified: bool
) -> tuple[files.Bundle, str]:
    if isinstance(what, Campaign):
        campaign, candidate = what.id, names.BEST
    else:
        campaign, candidate = what.campaign, what.id
    if what.home is None:
        raise UsageError(
            "a candidate that was not kept has no record to go with it",
            hint="evaluate it with home=, or export a candidate of a campaign",
        )
    with Store.open(what.home, read_only=True) as store:
        return _make_bundle(store, campaign, candidate, form, unverified=unverified)


def _add_backward(
    bundle: files.Bundle, form: str, what: Campaign | Candidate, *, unverified: bool
) -> files.Bundle:
    """The bundle with the second kernel, which has to be as well verified."""
    if form != "package":
        raise UsageError(
            f"--backward is for packages; this is a {form}",
            hint="leave --backward out, or export with --format package",
        )
    second, _ = _open_bundle(what, form, unverified=unverified)
    files.check_bundle(second, unverified=unverified)
    return replace(bundle, backward=second)


def _make_bundle(
    store: Store, campaign: str, candidate: str, form: str | None, *, unverified: bool
) -> tuple[files.Bundle, str]:
    """All that leaves, and the form it has."""
    with store.sheet(campaign) as sheet:
        started = sheet.head.started
        chosen = _choose_candidate(sheet, candidate, unverified=unverified)
        language = sheet.entries[chosen].language
    add_recorded_problem(started)
    form = form or ("package" if language_of(language).is_native else "source")
    source = store.get_blob(chosen).decode("utf-8", "replace")
    bundle = files.bundle_from_store(
        store,
        campaign,
        chosen,
        cases=recorded_cases(started.problem) if form == "package" else (),
        plan=launch_plan(started, language, source) if form == "source" else None,
        is_prepared=language_of(language) is CPP and declares_pattern_plan(source),
        kernels=list_kernels(source) if language_of(language) is CPP else (),
    )
    if form != "source":
        host = write_host_code(language, source, bundle.problem)
        bundle = replace(bundle, host=host, module=find_module(bundle.problem))
    if form == "package":
        bundle = replace(bundle, measured=list_measured(started, bundle.verdict))
    if form == "flashinfer":
        reference = write_reference(bundle.problem)
        bundle = replace(bundle, reference=reference, workload=find_inputs(started))
    return bundle, form


def _build(bundle: files.Bundle, form: str, asked: str, *, unverified: bool) -> files.Bundle:
    """The bundle with its library, built in a jail as the referee builds."""
    architectures = read_architectures(asked)
    if form != "package" or bundle.language != CUDA.name or bundle.host is None:
        raise UsageError(
            f"--prebuilt is for packages of CUDA; this is a {form} of {bundle.language}",
            hint="leave --prebuilt out, or export a CUDA candidate with --format package",
        )
    files.check_bundle(bundle, unverified=unverified)
    workshop = Workshop(choose(), Path())
    made = build_library(workshop, files.kernel_text(bundle), architectures)
    told = (made.content, made.architectures, made.platform, made.cuda, made.flags)
    return replace(bundle, prebuilt=files.Prebuilt(*told))


def _choose_candidate(sheet: Sheet, wanted: str, *, unverified: bool) -> str:
    """The candidate that is named; the champion, or, if asked for, who leads by modelled time."""
    leader = sheet.head.leader
    if wanted != names.BEST or sheet.head.champion is not None or leader is None:
        return sheet.find(wanted)
    if unverified:
        return leader.candidate
    raise UsageError(
        f"campaign {sheet.campaign} has no verified winner: its candidates were only emulated "
        f"for {sheet.head.started.target}, never timed on a device",
        hint=f"--unverified exports the one that leads by modelled time, #{leader.number}, with "
        "that mark in every file",
    )
