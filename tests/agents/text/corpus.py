"""The corpus of replies, read from replies.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.agents.model import Finish
from kernelwright.agents.text import FoundSource, Unusable, extract, revise_source
from kernelwright.sandbox.source_text import SOURCE_BYTES

_CONTENT: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("replies.toml").read_text("utf-8")
)
_FIRST = 'extern "C" void f() {}\n'

SOURCES: dict[str, str] = _CONTENT["sources"]


def _filled(text: str) -> str:
    for name, source in SOURCES.items():
        text = text.replace(f"@{name}@", source)
    comment = "//" + "x" * 997 + "\n"
    many, rest = divmod(SOURCE_BYTES - len(_FIRST) - 1, len(comment))
    nearly = comment * many + "/" * (rest - 1) + "\n"
    return text.replace("@many@", comment * (many + 1)).replace("@nearly@", nearly)


@dataclass(frozen=True)
class Case:
    """A reply and what must come of it."""

    name: str
    language: str
    reply: str
    finish: Finish
    base: str | None
    expected: dict[str, str]
    """What stands in the file under `source`, `text`, `starts`, `outcome` and `says`."""

    def result(self) -> FoundSource | Unusable:
        """What comes of it."""
        if self.base is None:
            return extract(self.reply, self.finish, self.language)
        return revise_source(self.reply, self.finish, self.language, self.base)


def _case(entry: dict[str, Any]) -> Case:
    reply = _filled(entry.pop("reply"))
    if entry.pop("crlf", False):
        reply = reply.replace("\n", "\r\n")
    return Case(
        name=entry.pop("name"),
        language=entry.pop("language"),
        reply=reply,
        finish=Finish(entry.pop("finish", "stop")),
        base=_filled(entry.pop("base")) if "base" in entry else None,
        expected=entry,
    )


CASES = [_case(entry) for entry in _CONTENT["case"]]
