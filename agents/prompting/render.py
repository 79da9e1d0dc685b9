# SPDX-License-Identifier: Apache-2.0
"""Renders prompts. Their words stand in `templates/*.md`; what fills them, in `parts.py`.

A file's variables are exactly what it must be given: one that is missing, unknown or not text is
an error of ours, raised before anything is sent. Files whose name begins with `_` are parts that
others include; everything else is rendered by itself.
"""

from __future__ import annotations

import functools
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, meta

FOLDER = Path(__file__).with_name("templates")
ENDING = ".md"


class PromptError(ValueError):
    """A prompt was given other variables than it has: a fault of the program, never of a reply."""


def render(prompt: str, /, **values: str) -> str:
    """The text of `templates/PROMPT.md` with these values.

    Raises:
        PromptError: a variable is missing, is not one of the file's, or is no text.
    """
    wanted = variables(prompt)
    wrong = [
        *(f"{name} is missing" for name in sorted(wanted - values.keys())),
        *(f"{name} is not used" for name in sorted(values.keys() - wanted)),
        *(f"{name} is no text" for name, value in values.items() if not isinstance(value, str)),
    ]
    if wrong:
        raise PromptError(f"the prompt {prompt!r} cannot be rendered: {', '.join(wrong)}")
    return _environment().get_template(prompt + ENDING).render(values).strip("\n")


@functools.cache
def variables(prompt: str) -> frozenset[str]:
    """The names that `templates/PROMPT.md` and the parts it includes ask for."""
    environment = _environment()
    names: set[str] = set()
    waiting, seen = [prompt + ENDING], set[str]()
    while waiting:
        file = waiting.pop()
        seen.add(file)
        tree = environment.parse((FOLDER / file).read_text("utf-8"))
        names |= meta.find_undeclared_variables(tree)
        waiting += [n for n in meta.find_referenced_templates(tree) if n and n not in seen]
    return frozenset(names)


def names() -> tuple[str, ...]:
    """Every prompt that is rendered by itself."""
    stems = sorted(file.stem for file in FOLDER.glob(f"*{ENDING}"))
    return tuple(stem for stem in stems if not stem.startswith("_"))


@functools.cache
def _environment() -> Environment:
    # Prompts are no HTML: sources must arrive as they are.
    return Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
