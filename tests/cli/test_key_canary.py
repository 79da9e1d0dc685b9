"""A planted API key, and a search for it in everything that a campaign of a model leaves."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.tests.agents.endpoint import Endpoint, Request, Turn, refused
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app

KEY = "sk-canary-4f1d0c7e93b8a256"
OTHER = "sk-canary-of-the-file-71aa"


def code(source: str) -> str:
    return f"Strategy: as told.\n\n```cpp\n{source}```\n"


def holding(folder: Path, words: bytes) -> list[str]:
    """The files below the folder that hold the words."""
    files = [Path(at) / name for at, _, names in os.walk(folder) for name in names]
    found, read = [], 0
    for path in files:
        # What other processes are building in the cache comes and goes.
        with suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink():
                read += 1
                found += [str(path.relative_to(folder))] if words in path.read_bytes() else []
    assert read
    return found


def pages_of(home: Path) -> dict[str, str]:
    """Every page and document of the viewer that its pages lead to, and its programs' addresses."""
    with Store.open(home) as store:
        campaigns = store.campaigns()
    parts = ("", "/events", "/candidates.csv", "/calls", "/calls.csv", "/calls/1")
    waiting = ["/", "/api/campaigns", *(f"/api/c/{c}{part}" for c in campaigns for part in parts)]
    found: dict[str, str] = {}
    with TestClient(create_app(home), base_url="http://127.0.0.1:8765") as client:
        while waiting:
            address = waiting.pop()
            if address in found:
                continue
            answer = client.get(address)
            assert answer.status_code == 200, address
            found[address] = answer.text
            if "html" in answer.headers["content-type"]:
                links = re.findall(r'(?:href|src)="(/[^"#?]*)', answer.text)
                waiting += [link for link in links if not link.startswith("/static")]
    return found


def quoting(request: Request) -> Turn:
    """A refusal that says the key, as some servers do."""
    return refused(f"Incorrect API key: {request.headers['authorization']}.", status=401)


@pytest.mark.heavy
@pytest.mark.slow
def test_e6_a_key_is_in_nothing_that_a_campaign_writes(
    kw, tmp_path: Path, shared_cache: Path
) -> None:
    """E6: not in events, blobs, logs, report, export, a page or any document.

    The endpoint alone has it, and quotes it.
    """
    recipe = recipes_for("softmax")[0]
    right = recipe.render(recipe.first_knobs())
    turns = [Turn(code(right + "\n#error no\n")), Turn(code(right)), quoting]
    keys = tmp_path / "keys.toml"
    with Endpoint(turns) as server:
        keys.write_text(f'"{server.url}" = "{OTHER}"\n"https://elsewhere.test/v1" = "{OTHER}x"\n')
        keys.chmod(0o600)
        env = {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": server.url,
            "KERNELWRIGHT_KEY_FILE": str(keys),
        }
        ran = kw(
            "run",
            "softmax",
            "--target",
            "cpu",
            "--workload",
            "tiny",
            "--workflow",
            "refine",
            "--model",
            "openai/test-model",
            "--max-tokens",
            "900000",
            "--json",
            env=env,
        )
        sent = {request.headers["authorization"] for request in server.requests}
    assert ran.code == 4, ran.err
    assert len(sent) == 1
    assert sent <= {f"Bearer {KEY}", f"Bearer {OTHER}"}
    told = [ran, kw("list", "--json"), kw("show", "@last", "--json", env=env)]
    told.append(kw("show", "@last", "--calls", "--json", env=env))
    told.append(kw("show", "@last", "--call", "3", env=env))
    told.append(kw("config", "show", "--origin", env=env))
    told.append(kw("report", "@last", "-o", str(tmp_path / "out" / "report.html"), env=env))
    told.append(
        kw(
            "export",
            "@last/2",
            "-o",
            str(tmp_path / "out" / "export"),
            "--allow-unverified",
            env=env,
        )
    )
    assert [done.code for done in told] == [4, *[0] * 7], [done.err for done in told]
    pages = pages_of(tmp_path / "home")
    assert len([address for address in pages if "/calls/" in address]) >= 4
    keys.unlink()
    for secret in (KEY, OTHER):
        assert not [done for done in told if secret in done.out + done.err]
        assert [address for address, page in pages.items() if secret in page] == []
        assert holding(tmp_path, secret.encode()) == []
        assert holding(shared_cache, secret.encode()) == []
    # The search would have found what a campaign does write.
    assert holding(tmp_path, b"#error no")
    assert [address for address, page in pages.items() if "#error no" in page]
    assert "Incorrect API key" in ran.err + "".join(pages.values())
