"""Prices: the shipped table, the user's above it, and no zero that nobody wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.agents.model import CostBound, Message, TokenUsage
from kernelwright.agents.models.pricing import Price, find_price, load_shipped, read_prices
from kernelwright.agents.models.tokens import most_prompt_tokens, most_tokens
from kernelwright.config import OPENAI_URL
from kernelwright.errors import ConfigError
from kernelwright.tests.agents.models.conftest import Opened, asked

LOCAL = "http://localhost:8000/v1"


def test_the_shipped_table_is_dated_sourced_and_without_zeros() -> None:
    table = load_shipped()
    assert table.date is not None
    assert table.source.startswith("https://")
    names = [(price.endpoint, price.model) for price in table.price]
    assert len(set(names)) == len(names)
    for price in table.price:
        assert price.endpoint
        assert price.input > 0
        assert price.output > price.input
        assert price.cached is not None
        assert 0 < price.cached < price.input


def test_b2_an_unknown_price_is_none_and_not_zero(opened: Opened) -> None:
    """B2: at a local endpoint, too, until somebody says that it is free."""
    assert find_price(OPENAI_URL, "gpt-nobody-knows") is None
    assert find_price(LOCAL, "gpt-5") is None
    model = opened(LOCAL)
    assert model.bound(asked()).usd is None
    assert model.cost(TokenUsage(prompt_tokens=5)) is None
    free = opened(LOCAL, price=Price(model="*", endpoint=LOCAL, input=0, output=0))
    assert free.bound(asked()).usd == 0.0
    assert free.cost(TokenUsage(prompt_tokens=5)) == 0.0


def test_a_snapshot_costs_what_its_model_costs() -> None:
    assert find_price(OPENAI_URL + "/", "gpt-5-2025-08-07") == find_price(OPENAI_URL, "gpt-5")
    assert find_price(OPENAI_URL, "gpt-5-turbo") is None


def test_the_most_particular_price_of_the_user_wins() -> None:
    own = (
        Price(model="*", endpoint=LOCAL, input=0, output=0),
        Price(model="m", input=1, output=1),
        Price(model="m", endpoint=LOCAL, input=2, output=2),
        Price(model="gpt-5", input=9, output=9),
    )
    assert find_price(LOCAL, "m", own) == own[2]
    assert find_price("http://else/v1", "m", own) == own[1]
    assert find_price(LOCAL, "other", own) == own[0]
    assert find_price(OPENAI_URL, "gpt-5", own) == own[3]
    assert find_price("http://else/v1", "other", own) is None


def test_what_a_call_costs() -> None:
    price = Price(
        model="m",
        input=2,
        output=10,
        cached=0.5,
        written=2.5,
        above=1000,
        above_input=4,
        above_output=20,
    )
    usage = TokenUsage(
        prompt_tokens=1000,
        completion_tokens=100,
        cached_tokens=600,
        written_tokens=100,
        reasoning_tokens=90,
    )
    assert price.cost(usage) == pytest.approx((300 * 2 + 600 * 0.5 + 100 * 2.5 + 100 * 10) / 1e6)
    long = usage.model_copy(update={"prompt_tokens": 1001})
    assert price.cost(long) == pytest.approx((301 * 4 + 600 * 4 + 100 * 5 + 100 * 20) / 1e6)


rates = st.floats(0, 100)
counts = st.integers(0, 5000)


@given(rates, rates, st.none() | rates, st.none() | rates, counts, counts, st.data())
def test_no_call_costs_more_than_its_bound(
    input_: float,
    output: float,
    cached: float | None,
    written: float | None,
    prompt: int,
    completion: int,
    data: st.DataObject,
) -> None:
    price = Price(
        model="m",
        input=input_,
        output=output,
        cached=cached,
        written=written,
        above=2500,
        above_input=input_ * 2,
        above_output=output * 1.5,
    )
    read = data.draw(st.integers(0, prompt))
    usage = TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=read,
        written_tokens=data.draw(st.integers(0, prompt - read)),
    )
    assert price.cost(usage) <= price.compute_most(prompt, completion) * (1 + 1e-12)


def test_the_bound_reserves_the_prompt_and_the_whole_answer(opened: Opened) -> None:
    model = opened(LOCAL, price=Price(model="m", input=1, output=1000))
    bound = model.bound(asked(max_output_tokens=5000))
    assert bound.tokens > 5000
    assert bound.usd == pytest.approx(((bound.tokens - 5000) + 5000 * 1000) / 1e6)
    assert isinstance(bound, CostBound)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[price]]\nmodel = "m"\ninput = -1\noutput = 1', "input"),
        ('[[price]]\nmodel = "m"\ninput = inf\noutput = 1', "input"),
        ('[[price]]\nmodel = "m"\ninput = 1', "output"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nouptut = 2', "ouptut"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nabove = 5', "above"),
        ("[[price", "cannot read"),
    ],
)
def test_a_malformed_price_file_is_an_error_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        read_prices(file)
    assert str(file) in str(caught.value)
    assert caught.value.hint


def test_a_missing_price_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_prices(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # The largest count by cl100k_base, DeepSeek's and Claude 2's tokenizers.
        ("Hello world", 2),
        ("int main() {\n    return 0;\n}\n", 11),
        ("1234567890", 4),
        ("antidisestablishmentarianism", 7),
        ("こんにちは", 5),
        ("    " * 8, 1),
        ("__global__ void k(const float* __restrict__ x)", 14),
        ("CUDA_R_16BF", 6),
        ("0x7fffffff", 5),
    ],
)
def test_the_estimate_is_never_below_a_known_count(text: str, tokens: int) -> None:
    assert tokens <= most_tokens(text) <= len(text.encode()) + 1


@given(st.text(max_size=200))
def test_the_estimate_is_below_the_bytes_and_defined_for_any_text(text: str) -> None:
    assert 0 <= most_tokens(text) <= len(text.encode("utf-8", "surrogatepass"))


def test_a_chat_is_more_than_its_texts() -> None:
    messages = (Message(role="user", content="a b"), Message(role="user", content=""))
    assert most_prompt_tokens(messages) > most_tokens("a b") + 2 * 8
