# SPDX-License-Identifier: Apache-2.0
"""What shells complete: problems, workloads, targets, languages, workflows, schemas, campaigns.

`kernelwright --install-completion` sets a shell up. A completion never fails: what cannot be listed
is not offered, and files stay the shell's business.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import wraps

import typer

_Offer = Callable[[typer.Context], Iterable[str]]
Complete = Callable[[typer.Context, str], list[str]]


def _offers(list_all: _Offer) -> Complete:
    """What Typer asks: the names that begin with what was typed."""

    @wraps(list_all)
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        # Words on stderr would end up in the middle of the line that is typed.
        with suppress(Exception):
            # What came before the trouble is offered.
            found.extend(name for name in list_all(ctx) if name.startswith(incomplete))
        return found

    # Typer tells parameters by their annotations, of which a wrapped function has others.
    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str, "return": list}
    del complete.__wrapped__
    return complete


@_offers
def complete_problem(_: typer.Context) -> Iterable[str]:
    """Ours, by name."""
    from ..kernelbench import registry

    return registry.names()


@_offers
def complete_workload(ctx: typer.Context) -> Iterable[str]:
    """Those of the problem that stands before; it is not parsed yet where an option has no word."""
    from ..kernelbench import registry

    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = (ctx.params.get("problem"), *typed.split())
    problem = next(word for word in words if word in registry.names())
    return registry.workload_names(registry.get(problem))


@_offers
def complete_target(_: typer.Context) -> Iterable[str]:
    """The CPU, and every architecture that there are figures of."""
    from ..kernelbench.targets import ARCHITECTURES, AUTO, CPU

    return (AUTO, CPU, *ARCHITECTURES)


@_offers
def complete_language(_: typer.Context) -> Iterable[str]:
    """What candidates are written in."""
    from ..kernelbench.languages import LANGUAGES

    return LANGUAGES


@_offers
def complete_workflow(_: typer.Context) -> Iterable[str]:
    """How agents can work together."""
    from ..agents.workflows.workflow import WORKFLOWS

    return WORKFLOWS


@_offers
def complete_suite(_: typer.Context) -> Iterable[str]:
    """The suites that are ours."""
    from ..compare.suite import FAMILIES

    return FAMILIES


@_offers
def complete_schema(_: typer.Context) -> Iterable[str]:
    """The documents that have one."""
    from .schema import SCHEMAS

    return SCHEMAS


@_offers
def complete_campaign(ctx: typer.Context) -> Iterator[str]:
    """Those of the home that holds without a flag, the newest first."""
    from ..traces.names import LAST
    from ..traces.store import Store
    from . import common

    yield LAST
    home = ctx.params.get("home")
    with Store.open(common.load(ctx, home=home).config.home, read_only=True) as store:
        yield from store.campaigns()
