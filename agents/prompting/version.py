# SPDX-License-Identifier: Apache-2.0
"""The version of the prompts: one hash over every file of the rooms that word them.

Whole folders, so that no file can be forgotten: a template, a table and the code that fills them
count alike. Workflows order the work and word nothing; what they tell a model stands in `words.py`.
Words that pages share with prompts lie lower down, in single files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
WORDED_IN = (
    "agents/brains",
    "agents/prompting",
    "agents/text",
    "kernelbench",
    "verifier/profile",
)
"""Who edits anything in these rooms asks in other words: problems and figures have words, too."""
SHARED = ("traces/metric_words.py", "traces/metric_words.toml")
"""Of other rooms: what metrics mean."""
CHARACTERS = 12


def files() -> tuple[Path, ...]:
    """Every file that counts, in one order on every machine."""
    found = [file for room in WORDED_IN for file in (PACKAGE / room).rglob("*")]
    found += [PACKAGE / name for name in SHARED]
    return tuple(sorted(f for f in found if f.is_file() and "__pycache__" not in f.parts))


def version() -> str:
    """The hash; the same for the same files, wherever they lie."""
    digest = hashlib.sha256()
    for file in files():
        name = file.relative_to(PACKAGE).as_posix().encode()
        content = hashlib.sha256(file.read_bytes()).digest()
        digest.update(name + b"\0" + content)
    return digest.hexdigest()[:CHARACTERS]
