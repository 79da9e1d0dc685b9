# SPDX-License-Identifier: Apache-2.0
"""What a user may name as a brain, with a line for each, and what follows from the name.

It imports nothing, so that `kernelwright run --help` can print it.
"""

from __future__ import annotations

MODELS = {
    "openai/NAME": "the model NAME at an OpenAI-compatible endpoint ($OPENAI_BASE_URL)",
    "openai/A+openai/B": "several models, of which a bandit asks the one that pays",
    "openai/NAME@effort=high": "the same model, asked in this manner",
    "scripted:FILE": "answers from a file; no network, no cost",
    "replay:CAMPAIGN": "the answers of a recorded campaign (for --model)",
}
"""Forms of the names of language models; docs/models.md has the rest."""

OFFLINE = {
    "recipe": "as Coder [default]: hand-written kernels with knobs; no language model",
    "rules": "as Judge [default]: rules over the profile; no language model",
}
"""The brains that ask nobody."""


def usual_workflow(model: str) -> str:
    """What a campaign goes by whose Coder has this name, unless told otherwise."""
    return "tune" if model in OFFLINE else "evolve"


def table(title: str, lines: dict[str, str]) -> str:
    """A part of a help text that keeps its lines."""
    width = max(map(len, lines))
    rows = (f"  {name:{width}}  {meaning}" for name, meaning in lines.items())
    return "\n".join(("\b", title, *rows))
