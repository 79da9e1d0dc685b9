# SPDX-License-Identifier: Apache-2.0
"""The plan of a campaign in words: what runs where, under which limits, and what it may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config import Config, format_duration
from ..traces.wording import price, tokens, usd

if TYPE_CHECKING:
    from rich.console import Console

    from ..kernelbench.problem import Workload
    from ..traces.records import Isolation
    from ..verifier.request import Referee
    from ..workbench.jobs import Ready
    from .shapes import FirstCall, Plan


_NOTED = {"replays": "replay", "goes": "resume", "begins": "start"}
"""What a note on where a campaign begins is called, by its first word."""


def _describe(workload: Workload) -> str:
    """Its sizes or its file; of several each with its share."""
    if workload.parts:
        from ..kernelbench.packs import tell_parts

        return tell_parts(workload)
    return (
        " ".join(f"{n}={v}" for n, v in workload.axes.items()) or workload.matrix or workload.note
    )


def show_plan(ready: Ready, referee: Referee, prose: Console) -> Plan:
    """Prints the plan and gives it as a document."""
    from ..agents.books.asking import Asking

    settled, facts = ready.settled, referee.facts
    task, names, note = settled.task, settled.names, settled.note
    sizes = {r.family: r.size(facts) for r in ready.players.recipes}
    spoken = ", ".join(limit_text(name, value) for name, value in settled.limits.items())
    lines = {
        "problem": task.problem,
        "workload": f"{task.workload.name} ({_describe(task.workload)})",
        "target": f"{task.target}, {names.language}",
        "sandbox": referee.isolation.mechanism,
        "workflow": names.workflow,
        "coder": names.model,
        "judge": names.judge_model,
        "limits": spoken or "none",
    }
    if not isinstance(ready.players.coder, Asking):
        families = ", ".join(f"{family} {size:,}" for family, size in sizes.items())
        lines["recipes"] = f"{sum(sizes.values()):,} variants: {families}"
    if note:
        lines[_NOTED[note.split()[0]]] = note
    for name, text in lines.items():
        prose.print(f"{name:9} {text}", markup=False, soft_wrap=True)
    warn_of_weakness(prose, referee.isolation)
    tell_emulated(prose, task.target, referee.is_emulated)
    return {
        "problem": task.problem,
        "workload": task.workload.model_dump(mode="json"),
        "target": task.target,
        "language": names.language,
        "isolation": referee.isolation.model_dump(mode="json"),
        "workflow": names.workflow,
        "model": names.model,
        "judge_model": names.judge_model,
        "limits": settled.limits,
        "recipe_space": sizes,
        "campaign": settled.campaign,
    }


def show_foreseen(ready: Ready, referee: Referee, prose: Console) -> FirstCall | None:
    """Prints the first prompt and the most that the campaign may cost; None: no model is asked."""
    from ..agents.books.request import CampaignRequest
    from ..agents.casting.preview import preview
    from ..running import plan_campaign

    settled, players = ready.settled, ready.players
    names = settled.names
    started, source = names, ""
    if isinstance(names, CampaignRequest):
        started = plan_campaign(names, players, settled.task.workload, referee)
        source = names.source
    assert not isinstance(started, CampaignRequest)
    found = preview(players, started, referee, source)
    if found is None:
        return None
    for message in found.ask.messages:
        prose.print(f"--- {message.role}", markup=False)
        prose.print(message.content, markup=False, highlight=False, soft_wrap=True)
    prose.print("---", markup=False)
    bound, caps = found.bound, settled.limits
    first = f"{tokens(bound.tokens)} tokens, {price(bound.usd)}"
    prose.print(f"first call at most {first}", markup=False)
    prose.print(f"at most   {found.calls:,} calls, failed attempts aside", markup=False)
    most = [f"{tokens(caps['tokens'])} tokens"] if "tokens" in caps else []
    most += [usd(caps["usd"])] if "usd" in caps else []
    if found.usd is not None and "usd" not in caps:
        most.append(f"about {usd(found.usd)} if every call were like the first")
    prose.print(f"cost      at most {' and '.join(most) or 'unknown: set a limit'}", markup=False)
    return {
        "messages": [message.model_dump(mode="json") for message in found.ask.messages],
        "bound": {"tokens": bound.tokens, "usd": bound.usd},
        "calls": found.calls,
        "cost_at_most": {"tokens": caps.get("tokens"), "usd": caps.get("usd")},
    }


def limit_text(name: str, value: float) -> str:
    """A limit in words."""
    if name == "seconds":
        return format_duration(value)
    if name == "device_seconds":
        return f"{format_duration(value)} on the target"
    return usd(value) if name == "usd" else f"{value:g} {name}"


def tell_emulated(prose: Console, target: str, is_emulated: bool) -> None:
    """Says aloud that nothing will be timed, where it is so."""
    if is_emulated:
        prose.print(
            f"target {target} is emulated here: kernels are built for it and checked on the CPU; "
            "nothing is timed, modelled times rank and no speed-up is claimed",
            markup=False,
        )


def tell_other(prose: Console, config: Config, is_emulated: bool) -> None:
    """Says aloud that somebody else times on this machine, where what follows is timed."""
    from ..verifier.clock.turns import find_other

    if not is_emulated and (other := find_other(config.timing_lock)):
        prose.print(
            f"process {other} times on this machine: this waits for its turn, builds go on",
            markup=False,
        )


def warn_of_weakness(prose: Console, isolation: Isolation) -> None:
    """Says aloud what the sandbox does not enforce."""
    if isolation.lacking:
        prose.print(
            f"warning: the sandbox ({isolation.mechanism}) does not enforce "
            f"{', '.join(isolation.lacking)}; kernels can do harm here, and results say so",
            style="yellow",
            markup=False,
        )
