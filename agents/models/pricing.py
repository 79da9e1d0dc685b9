# SPDX-License-Identifier: Apache-2.0
"""What tokens cost: the shipped table, and the user's own prices above it.

A price belongs to an endpoint and a model. An unknown price is None and never zero; zero is a
price that somebody wrote down. Nothing here asks the network.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from ...errors import ConfigError
from ...traces.records import Record
from ..model import TokenUsage

MILLION = 1_000_000
ANY_MODEL = "*"

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")
"""A snapshot of a model costs what the model costs: `gpt-5-2025-08-07`."""


class Price(Record):
    """US dollars per million tokens of one model at one endpoint."""

    # An infinite price is refused below, in words for people.
    model_config = ConfigDict(allow_inf_nan=False)

    model: str
    """Its name at the endpoint; `*`: every model there."""
    endpoint: str = ""
    """The base URL; empty: wherever a model of this name is asked."""
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Prompt tokens found in the provider's cache; None: as `input`."""
    written: float | None = Field(default=None, ge=0)
    """Prompt tokens written to the cache; None: as `input`."""
    above: int | None = Field(default=None, gt=0)
    """A prompt longer than this is priced wholly by the figures below."""
    above_input: float | None = Field(default=None, ge=0)
    above_output: float | None = Field(default=None, ge=0)
    above_cached: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _has_whole_tiers(self) -> Self:
        tier = (self.above, self.above_input, self.above_output)
        if any(part is None for part in tier) and any(part is not None for part in tier):
            raise ValueError("above, above_input and above_output stand together")
        return self

    def cost(self, usage: TokenUsage) -> float:
        """US dollars of a call."""
        rate = self._rates(usage.prompt_tokens)
        plain = max(0, usage.prompt_tokens - usage.cached_tokens - usage.written_tokens)
        dear = plain * rate.input + usage.cached_tokens * rate.cached
        dear += usage.written_tokens * rate.written + usage.completion_tokens * rate.output
        return dear / MILLION

    def compute_most(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The most that so many tokens can cost, however they are cached."""
        rate = self._rates(prompt_tokens)
        dearest = max(rate.input, rate.cached, rate.written)
        return (prompt_tokens * dearest + completion_tokens * rate.output) / MILLION

    def _rates(self, prompt_tokens: int) -> _Rates:
        if self.above is not None and prompt_tokens > self.above:
            input_, output = self.above_input or 0.0, self.above_output or 0.0
            cached = input_ if self.above_cached is None else self.above_cached
            # No list has a price of its own for writing there: it grows as `input` does.
            grown = input_ / self.input if self.input else 1.0
            return _Rates(input_, output, cached, max(input_, (self.written or 0.0) * grown))
        return _Rates(
            self.input,
            self.output,
            self.input if self.cached is None else self.cached,
            self.input if self.written is None else self.written,
        )


class _Rates(NamedTuple):
    input: float
    output: float
    cached: float
    written: float


class PriceList(Record):
    """A file of prices."""

    date: datetime.date | None = None
    source: str = ""
    price: tuple[Price, ...] = ()


@cache
def load_shipped() -> PriceList:
    """The table that comes with the package."""
    text = resources.files(__package__).joinpath("prices.toml").read_text("utf-8")
    return PriceList.model_validate(tomllib.loads(text))


def read_prices(file: Path) -> PriceList:
    """A user's prices.

    Raises:
        ConfigError: the file cannot be read, or an entry is not a price.
    """
    try:
        return PriceList.model_validate(tomllib.loads(file.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{place or 'an entry'} of the price file {file}: {first['msg']}",
            hint="an entry is [[price]] with model, input and output in USD per million tokens",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"cannot read the price file {file}: {error}",
            hint="docs/models.md shows one",
        ) from error


def find_price(base_url: str, model: str, own: Iterable[Price] = ()) -> Price | None:
    """The price of a model at an endpoint; the user's own first. None where nobody knows it."""
    return _best(base_url, model, own) or _best(base_url, model, load_shipped().price)


def _best(base_url: str, model: str, prices: Iterable[Price]) -> Price | None:
    """The most particular price that fits: of this very model, then at this very endpoint."""
    url = base_url.rstrip("/")
    fitting = [price for price in prices if price.endpoint.rstrip("/") in ("", url)]
    for name in (model, _DATED.sub("", model), ANY_MODEL):
        named = [price for price in fitting if price.model == name]
        if named:
            return max(named, key=lambda price: bool(price.endpoint))
    return None
