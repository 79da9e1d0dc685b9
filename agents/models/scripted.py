# SPDX-License-Identifier: Apache-2.0
"""A model that plays a file: `scripted:<file>`. No network, no cost; the same answers every time.

A TOML file of `[[turn]]` tables, or JSON lines with one turn each. A call gets the first turn not
yet played whose purpose is empty or the call's own. Fields of a turn: `purpose`, `text` or `file`
(beside the script), `reasoning`, `finish`, `usage`, `delay_s`; or `fault` with `reason` and
`retry_after_s`.
"""

from __future__ import annotations

import json
import threading
import time
import tomllib
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from ...errors import UsageError
from ...traces.records import Record
from ..model import Ask, CostBound, FaultKind, Finish, ModelFault, Reply, TokenUsage
from .capabilities import Rung
from .chat import most_prompt
from .pricing import Price
from .tokens import most_tokens

MOST_BYTES = 16 << 20


class Turn(Record):
    """One answer or one fault."""

    purpose: str = ""
    """Answers calls of this purpose only; empty: any."""
    text: str = ""
    file: str = ""
    """The text stands in this file, beside the script."""
    reasoning: str = ""
    """What the model thought before it."""
    finish: Finish | None = None
    """None: `stop`, or `empty` without a text."""
    usage: TokenUsage | None = None
    """None: estimated."""
    fault: FaultKind | None = None
    reason: str = "scripted"
    retry_after_s: float | None = Field(default=None, ge=0)
    delay_s: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if self.fault is not None and (self.text or self.file or self.finish):
            raise ValueError("a turn is an answer or a fault, not both")
        if self.text and self.file:
            raise ValueError("a turn has a text or a file, not both")
        return self


class Script(Record):
    """A whole file."""

    price: Price | None = None
    """None: the model costs nothing, since nobody is asked."""
    turn: tuple[Turn, ...] = ()


def read_script(file: Path) -> Script:
    """The script in `file`, with the texts that stand in other files.

    Raises:
        UsageError: it cannot be read, or a turn is malformed.
    """
    try:
        with file.open("rb") as stream:
            text = stream.read(MOST_BYTES).decode()
        content = tomllib.loads(text) if file.suffix == ".toml" else _json_lines(text)
        script = Script.model_validate(content)
        turns = tuple(
            turn.model_copy(update={"text": (file.parent / turn.file).read_text("utf-8")})
            if turn.file
            else turn
            for turn in script.turn
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{place or 'an entry'} of the script {file}: {first['msg']}",
            hint=f"a turn may have {', '.join(Turn.model_fields)}",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"cannot read the script {file}: {error}",
            hint="a script is a .toml file of [[turn]] tables, or JSON lines",
        ) from error
    return script.model_copy(update={"turn": turns})


def _json_lines(text: str) -> dict[str, object]:
    turns = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                turns.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON: {error}") from error
    return {"turn": turns}


class ScriptedModel:
    """Plays a Script. Threads may share it; with several in flight, give the turns purposes."""

    slots = 1
    """The order of the script is the order of the calls."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self._script = script
        self._played: set[int] = set()
        self._lock = threading.Lock()

    def bound(self, ask: Ask) -> CostBound:
        """The most an attempt may cost."""
        prompt = most_prompt(ask)
        price = self._script.price
        usd = price.compute_most(prompt, ask.max_output_tokens) if price else 0.0
        return CostBound(prompt + ask.max_output_tokens, usd)

    def cost(self, usage: TokenUsage) -> float | None:
        """US dollars, by the script's price; else nothing."""
        return self._script.price.cost(usage) if self._script.price else 0.0

    def recall(self, ask: Ask) -> None:
        """Counts a turn as played that an earlier process was answered with.

        A resumed campaign calls it for every recorded attempt, in their order, so that the script
        goes on where it stopped.
        """
        self._take_turn(ask)

    def complete(self, ask: Ask) -> Reply:
        """The next turn for this purpose. Raises ModelFault where it says so, or is missing."""
        turn = self._take_turn(ask)
        time.sleep(turn.delay_s)
        if turn.fault is not None:
            raise ModelFault(turn.fault, turn.reason, retry_after_s=turn.retry_after_s)
        usage = turn.usage or TokenUsage(
            prompt_tokens=most_prompt(ask),
            completion_tokens=most_tokens(turn.text),
            is_estimated=True,
        )
        finish = turn.finish or (Finish.STOP if turn.text.strip() else Finish.EMPTY)
        rung = Rung.PROMPT if ask.json_schema else ""
        return Reply(
            text=turn.text,
            finish=finish,
            usage=usage,
            model=self.name,
            reasoning=turn.reasoning,
            rung=rung,
        )

    def close(self) -> None:
        """Nothing to give back."""

    def _take_turn(self, ask: Ask) -> Turn:
        with self._lock:
            for number, turn in enumerate(self._script.turn):
                if number not in self._played and turn.purpose in ("", ask.purpose):
                    self._played.add(number)
                    return turn
            played = len(self._played)
        raise ModelFault(
            FaultKind.REFUSED,
            f"{self.name} has no turn left for '{ask.purpose}': {played} of its "
            f"{len(self._script.turn)} turns are played",
        )
