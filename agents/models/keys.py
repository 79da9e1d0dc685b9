# SPDX-License-Identifier: Apache-2.0
"""API keys: where they come from, and how they are kept out of everything that is written.

A key stands in the environment (`OPENAI_API_KEY`) or in a file that only its owner can read, by
the base URL it belongs to:

    "https://api.openai.com/v1" = "sk-…"

Nothing outside this module and the HTTP client ever holds one.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path

from ...config import secret
from ...errors import ConfigError

VARIABLE = "OPENAI_API_KEY"
REMOVED = "[key removed]"
MOST_BYTES = 1 << 20

_SHORTEST = 8
"""What is shorter (`none`, `test`) is a local server's placeholder, and a word of other texts."""

_OPENAI_LIKE = re.compile(r"\bsk-[A-Za-z0-9_*.…-]{6,}")
"""Servers quote the key they refuse, with some of its letters."""

_known: set[str] = set()


class Key:
    """A secret that shows itself to `reveal` only."""

    __slots__ = ("_secret", "origin")

    def __init__(self, secret: str, origin: str) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", secret):
            raise ConfigError(
                f"the key of {origin} holds characters that no key has (spaces, line ends …)",
                hint="copy the key again, without quotes and line ends",
            )
        self._secret = secret
        self.origin = origin
        """Where it came from, for people."""
        if len(secret) >= _SHORTEST:
            _known.add(secret)

    def reveal(self) -> str:
        """The secret, for the header of a request and for nothing else."""
        return self._secret

    def __repr__(self) -> str:
        return f"Key(origin={self.origin!r})"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")


def scrub(text: str) -> str:
    """`text` without any key that this process has met, and without what looks like one."""
    for known in sorted(_known, key=len, reverse=True):
        text = text.replace(known, REMOVED)
    return _OPENAI_LIKE.sub(REMOVED, text)


def find_key(base_url: str, file: Path) -> Key | None:
    """The key for the endpoint: the environment's, else the file's; None where there is none.

    Raises:
        ConfigError: the file can be read by others, is malformed, or holds an impossible key.
    """
    if found := secret(VARIABLE):
        return Key(found, f"the variable {VARIABLE}")
    found = _read(file).get(base_url.rstrip("/"))
    return Key(found, f"the key file {file}") if found else None


def _read(file: Path) -> dict[str, str]:
    """The keys of the file by base URL; none where there is no file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"cannot open the key file {file}: {error.strerror}") from error
    try:
        _check_owner(os.fstat(descriptor), file)
        content = os.read(descriptor, MOST_BYTES)
    finally:
        os.close(descriptor)
    try:
        entries = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        # The parser's words can quote the line, which is a key.
        place = re.search(r"line \d+", str(error))
        raise ConfigError(
            f"the key file {file} is not TOML{f' ({place[0]})' if place else ''}",
            hint='a line is "BASE URL" = "KEY", both in quotes',
        ) from None
    for url, value in entries.items():
        if not isinstance(value, str):
            raise ConfigError(
                f"the entry of {url} in the key file {file} is not a text",
                hint='a line is "BASE URL" = "KEY", both in quotes',
            )
    return {url.rstrip("/"): value for url, value in entries.items()}


def _check_owner(found: os.stat_result, file: Path) -> None:
    """Refuses a file that somebody else could read or write."""
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"the key file {file} is not a regular file")
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"the key file {file} belongs to another user (uid {found.st_uid})",
            hint=f"take it over: chown {os.geteuid()} {file} && chmod 600 {file}",
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise ConfigError(
            f"the key file {file} can be reached by others (mode {mode:04o})",
            hint=f"chmod 600 {file}",
        )
