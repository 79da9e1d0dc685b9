# SPDX-License-Identifier: Apache-2.0
"""From the name that a user gives to the Model: `openai/<name>`, `scripted:<file>`, `A+B`."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

from ... import extras
from ...config import DEFAULT_PATIENCE_S, DEFAULT_SILENCE_S, OPENAI_URL, Config, user_file
from ...errors import PrerequisiteError, UnknownNameError, UsageError
from ..model import Model
from ..offered import MODELS
from .arms import MannerModel, parse_name
from .capabilities import capabilities_for
from .keys import VARIABLE, find_key
from .openai_client import Connection, OpenAIModel
from .pricing import PriceList, find_price, read_prices

OPENAI = "openai/"
SCRIPTED = "scripted:"
_BETWEEN = re.compile(r"\+(?=openai/|scripted:)")
"""A model's own name may hold a plus."""


@dataclass(frozen=True)
class ModelSettings:
    """What the models of one run have in common. It holds no key."""

    base_url: str = OPENAI_URL
    key_file: Path = field(default_factory=lambda: user_file().parent / "keys.toml")
    prices_file: Path | None = None
    capabilities_file: Path | None = None
    silence_s: float = DEFAULT_SILENCE_S
    patience_s: float = DEFAULT_PATIENCE_S
    slots: int | None = None
    seed: int = 0
    """Of the ensemble's bandit."""
    is_to_be_asked: bool = True
    """Whether anything will be sent; who only plans needs no key."""

    @classmethod
    def from_config(
        cls, config: Config, seed: int = 0, *, is_to_be_asked: bool = True
    ) -> ModelSettings:
        """The settings of a configuration; files of the user's folder where there are any."""
        folder = user_file().parent
        return cls(
            base_url=config.base_url,
            key_file=config.key_file or folder / "keys.toml",
            prices_file=config.prices_file or _file_or_none(folder / "prices.toml"),
            capabilities_file=config.capabilities_file
            or _file_or_none(folder / "capabilities.toml"),
            silence_s=config.model_silence,
            patience_s=config.model_patience,
            slots=config.model_slots,
            seed=seed,
            is_to_be_asked=is_to_be_asked,
        )


def _file_or_none(file: Path) -> Path | None:
    return file if file.is_file() else None


def is_model(name: str) -> bool:
    """Whether the name means a language model, and not a brain that needs none."""
    return name.startswith((OPENAI, SCRIPTED))


def model(name: str, settings: ModelSettings) -> Model:
    """The Model of that name.

    Raises:
        UnknownNameError: no such form of name; the hint has the nearest.
        UsageError: a script, price or capability file is malformed.
        PrerequisiteError: the endpoint needs a key and there is none.
    """
    parts = _BETWEEN.split(name)
    opened: dict[str, Connection] = {}
    models = [_open_single(part, settings, opened) for part in parts]
    if len(models) == 1:
        return models[0]
    from .ensemble import Ensemble

    return Ensemble(models, settings.seed)


def _open_single(name: str, settings: ModelSettings, opened: dict[str, Connection]) -> Model:
    if name.startswith(SCRIPTED):
        from .scripted import ScriptedModel, read_script

        return ScriptedModel(name, read_script(Path(name.removeprefix(SCRIPTED)).expanduser()))
    if not name.startswith(OPENAI):
        raise unknown_name_error(name)
    bare, manner = parse_name(name)
    if manner:
        return MannerModel(_open_single(bare, settings, opened), name, manner)
    short = name.removeprefix(OPENAI)
    if not re.fullmatch(r"[\x21-\x7e]{1,200}", short):
        raise UsageError(
            f"'{name}' names no model", hint="after openai/ stands the model's name at the endpoint"
        )
    if settings.base_url not in opened:
        opened[settings.base_url] = _connection(settings)
    own = read_prices(settings.prices_file) if settings.prices_file else PriceList()
    return OpenAIModel(
        short,
        opened[settings.base_url],
        capabilities=capabilities_for(settings.base_url, short, settings.capabilities_file),
        price=find_price(settings.base_url, short, own.price),
    )


def _connection(settings: ModelSettings) -> Connection:
    if settings.is_to_be_asked:
        extras.require("llm", "a language model")
    key = find_key(settings.base_url, settings.key_file)
    if key is None and settings.base_url == OPENAI_URL and settings.is_to_be_asked:
        raise PrerequisiteError(
            f"there is no API key for {OPENAI_URL}",
            hint=f'set {VARIABLE}, or write "{OPENAI_URL}" = "KEY" into {settings.key_file} '
            "(mode 600); for another endpoint set OPENAI_BASE_URL",
        )
    return Connection(settings.base_url, key, slots=settings.slots, silence_s=settings.silence_s)


def unknown_name_error(name: str, offline: str = "") -> UnknownNameError:
    """The error for a name of no known form: the form that was probably meant, and all others.

    Args:
        offline: What the agent is called where it asks no model.
    """
    head, slash, tail = name.partition("/")
    script = Path(name.rpartition(":")[2])
    is_script = script.suffix in (".toml", ".jsonl") and script.is_file()
    near_offline = difflib.get_close_matches(name, [offline], n=1, cutoff=0.6) if offline else []
    meant = f"{OPENAI}{name}"
    if near_offline:
        meant = offline
    elif slash and difflib.get_close_matches(head.lower(), ["openai"], cutoff=0.6):
        meant = f"{OPENAI}{tail}"
    elif is_script or difflib.get_close_matches(name.partition(":")[0], ["scripted"], cutoff=0.6):
        meant = f"{SCRIPTED}{script}"
    forms = ", ".join([*MODELS, *([offline] if offline else [])])
    return UnknownNameError(
        f"there is no model named '{name}'",
        hint=f"did you mean {meant}? A model is one of: {forms} (docs/models.md)",
    )
