# SPDX-License-Identifier: Apache-2.0
"""How many tokens a text can be at most, without anybody's tokenizer.

The estimate must not fall short, since money is reserved by it. It assumes a tokenizer of 32,000
entries or more, learned from text and source code (tiktoken's, Llama's, Qwen's, DeepSeek's, …):

- three small letters are never worse than a token, three capitals never worse than two: words and
  names average four letters, and what averages less (hashes, base64) changes class all the time;
- a digit, a sign or a line end can be a token of its own (Llama 2 and Qwen split numbers wholly);
- a single space goes with the word or sign after it; of indentation, four columns are a token;
- outside ASCII every byte of UTF-8 can be a token (byte fall-back).

On 886 sources and texts, with cl100k_base's, DeepSeek's and Claude 2's tokenizers, it was 1.3 to
2.9 times the true count, in the median 1.8. It falls short on pages of random small letters, which
nobody sends. An estimate that was passed shows in the events: the usage exceeds the reservation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..model import Message

PER_MESSAGE = 16
"""Role and delimiters of a message, in the most talkative templates."""

PER_CHAT = 160
"""A template's own system message (Harmony's of gpt-oss is long) and the reply's head."""

_PIECES = re.compile(
    r"(?P<small>[a-z]+)|(?P<capital>[A-Z]+)|(?P<space>[ \t]+)|(?P<plain>[\x00-\x7f])|(?P<other>.)",
    re.DOTALL,
)


def most_tokens(text: str) -> int:
    """An upper estimate of the tokens of `text`."""
    total = 0
    for piece in _PIECES.finditer(text):
        length = piece.end() - piece.start()
        match piece.lastgroup:
            case "small":
                total += -(-length // 3)
            case "capital":
                total += -(-2 * length // 3)
            case "space":
                follower = text[piece.end() : piece.end() + 1]
                goes_along = length == 1 and follower.isprintable() and not follower.isdigit()
                total += length // 4 + (0 if goes_along and follower else 1)
            case "plain":
                total += 1
            case _:
                total += len(piece[0].encode("utf-8", "surrogatepass"))
    return total


def most_prompt_tokens(messages: Iterable[Message], extra: str = "") -> int:
    """An upper estimate of the tokens of a prompt; `extra` is what the client adds to it."""
    total = PER_CHAT + most_tokens(extra)
    return total + sum(PER_MESSAGE + most_tokens(message.content) for message in messages)
