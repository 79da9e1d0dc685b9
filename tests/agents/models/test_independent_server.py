"""The client against a server that is not ours: `transformers serve` with a tiny random model.

Needs packages that are no dependencies: `pip install "transformers>=5" accelerate`. The model is
made here, so that nothing is downloaded.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kernelwright.agents.model import FaultKind, Finish, ModelFault
from kernelwright.tests.agents.models.conftest import Opened, asked, asked_for_json

REASON = "an independent server: pip install 'transformers>=5' accelerate"
transformers = pytest.importorskip("transformers", reason=REASON)
tokenizers = pytest.importorskip("tokenizers", reason=REASON)
pytest.importorskip("accelerate", reason=REASON)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}<|assistant|>"
)
START = "from transformers.cli.transformers import main; main()"


def make_model(folder: Path) -> None:
    """A Llama of 20,000 weights that speaks bytes."""
    import torch

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    raw = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|end|>", bos_token="<|begin|>"
    )
    wrapped.chat_template = TEMPLATE
    wrapped.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(wrapped),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        eos_token_id=wrapped.eos_token_id,
        bos_token_id=wrapped.bos_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The base URL and the model's name."""
    folder = tmp_path_factory.mktemp("tiny")
    make_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("log") / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [
                sys.executable,
                "-c",
                START,
                "serve",
                str(folder),
                "--device",
                "cpu",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
            ],
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home")},
        )
    try:
        _wait(server, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end and server.poll() is None:
        try:
            if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")


def test_an_answer_is_streamed_counted_and_ends(opened: Opened, served: tuple[str, str]) -> None:
    url, name = served
    model = opened(url, name=name, silence_s=300.0)
    ask = asked(max_output_tokens=24, temperature=1.0)
    reply = model.complete(ask)
    assert reply.finish in (Finish.LENGTH, Finish.STOP)
    assert reply.text
    assert 0 < reply.usage.completion_tokens <= 24
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.tokens <= model.bound(ask).tokens


def test_a_schema_and_an_effort_are_taken_or_corrected(
    opened: Opened, served: tuple[str, str]
) -> None:
    """Whatever the server does with them: there is an answer, and it is counted."""
    url, name = served
    model = opened(url, name=name, silence_s=300.0)
    reply = model.complete(asked_for_json(max_output_tokens=8, effort="low"))
    assert reply.rung in ("json_schema", "json_object", "prompt")
    assert 0 < reply.usage.completion_tokens <= 8


def test_a_model_that_is_not_there_is_a_fault(opened: Opened, served: tuple[str, str]) -> None:
    url, _ = served
    with pytest.raises(ModelFault) as caught:
        opened(url, name="nobody/nothing", silence_s=300.0).complete(asked())
    assert caught.value.kind in (
        FaultKind.UNKNOWN_MODEL,
        FaultKind.SERVER,
        FaultKind.REFUSED,
    )
