# SPDX-License-Identifier: Apache-2.0
"""Reads a small typed reply: the last JSON object of a text, held against a form.

Used below the rung where a server enforces a schema, and above it, too: a server may say that it
does. What is wrong is said in words that can be shown to the model.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from ..model import Finish
from .candidate_text import clean_reply
from .code_blocks import Markdown, split
from .found import ReplyOutcome, Unusable
from .shape import UNLABELLED
from .untrusted import make_readable, one_line

Form = TypeVar("Form", bound=BaseModel)

REASON_CHARACTERS = 2000
REPLY_CHARACTERS = 256 << 10
"""A small reply of more than this is no small reply."""
_FAULTS = 8
"""How many faults of one reply are told."""
_NAME = 80
_SENTENCE = 200

_START = re.compile(r'\{\s*+["}]|\[\s*+\{')
_PIECE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.S)


def read(reply_text: str, finish: Finish, form: type[Form]) -> Form | Unusable:
    """The reply as a record of the form, or what is wrong with it."""
    answer = clean_reply(reply_text, finish)
    if isinstance(answer, Unusable):
        if answer.outcome == ReplyOutcome.NO_CANDIDATE:
            return Unusable(ReplyOutcome.NO_JSON, answer.reason)
        return answer
    if len(answer.text) > REPLY_CHARACTERS:
        reason = f"the reply has {len(answer.text)} characters, at most {REPLY_CHARACTERS} are read"
        return Unusable(ReplyOutcome.TOO_LARGE, reason)
    written = object_text(answer.text)
    if isinstance(written, Unusable):
        return written
    value = decode_object(written)
    if isinstance(value, Unusable):
        return value
    return _validate_form(value, form)


def object_text(text: str) -> str | Unusable:
    """The text of the last JSON object: in a block labelled json, else wherever one stands."""
    markdown = split(text)
    if markdown.unclosed and markdown.unclosed.label == "json":
        line = markdown.unclosed.line
        return _truncated_fault(f"the reply ends inside the block that line {line} opens")
    labelled = [block.text for block in markdown.blocks if block.label == "json"]
    return labelled[-1].strip() if labelled else _last_balanced(_text_outside(markdown))


def decode_object(written: str) -> dict[str, Any] | Unusable:
    """The object that the text is, if it is one that every reader takes for the same."""
    try:
        value = json.loads(
            written,
            strict=False,
            object_pairs_hook=_refuse_repeated_keys,
            parse_constant=_refused_constant,
            parse_float=_parse_finite,
        )
        # Half of a surrogate pair is JSON, and no store takes it.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _malformed_fault("it holds a character that UTF-8 cannot hold")
    except RecursionError:
        return _malformed_fault("it is nested too deeply")
    except ValueError as error:
        # Not only JSONDecodeError: int() refuses thousands of digits, and so do the hooks below.
        return _malformed_fault(str(error))
    if not isinstance(value, dict):
        kinds = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}
        kind = kinds.get(type(value), "a number")
        return Unusable(ReplyOutcome.INVALID_JSON, f"asked was for one JSON object, this is {kind}")
    return value


def _text_outside(markdown: Markdown) -> str:
    """Everything that is not in a block of another language."""
    parts = [markdown.outside]
    parts += [block.text for block in markdown.blocks if block.label in UNLABELLED]
    if markdown.unclosed:
        parts.append(markdown.unclosed.text)
    return "\n".join(parts)


def _last_balanced(text: str) -> str | Unusable:
    """The last `{…}` or `[{…}]` that is in no other; strings are passed over as JSON has them."""
    found = ""
    at = 0
    while start := _START.search(text, at):
        end = _end(text, start.start())
        if end is None:
            # Whatever is closed inside it is a part and must not be taken for the whole.
            return _truncated_fault("the reply ends inside a JSON object")
        found, at = text[start.start() : end], end
    return found or Unusable(ReplyOutcome.NO_JSON, "the reply holds no JSON object")


def _end(text: str, start: int) -> int | None:
    depth = 0
    for piece in _PIECE.finditer(text, start):
        sign = piece[0]
        if sign in ("{", "["):
            depth += 1
        elif sign in ("}", "]"):
            depth -= 1
            if depth == 0:
                return piece.end()
        elif sign == '"':
            return None
    return None


def _validate_form(value: dict[str, Any], form: type[Form]) -> Form | Unusable:
    try:
        return form.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [
            f"{one_line('.'.join(map(str, fault['loc'])) or form.__name__, _NAME)}: "
            f"{one_line(fault['msg'], _SENTENCE)}"
            for fault in faults[:_FAULTS]
        ]
        if len(faults) > _FAULTS:
            lines.append(f"and {len(faults) - _FAULTS} more")
        return Unusable(ReplyOutcome.INVALID_JSON, "; ".join(lines)[:REASON_CHARACTERS])
    except RecursionError:
        return _malformed_fault("it is nested too deeply")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key '{key}' stands twice in one object")
        found[key] = value
    return found


def _refused_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _parse_finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written} is too large a number")
    return value


def _malformed_fault(reason: str) -> Unusable:
    return Unusable(ReplyOutcome.MALFORMED_JSON, one_line(make_readable(reason), REASON_CHARACTERS))


def _truncated_fault(reason: str) -> Unusable:
    return Unusable(ReplyOutcome.TRUNCATED, reason)
