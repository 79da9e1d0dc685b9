"""Who may ask a viewer that is served with a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from kernelwright.traces.view.app import create_app
from kernelwright.traces.view.guard import make_token

TOKEN = make_token()


@pytest.fixture
def client(sample: Any) -> Iterator[TestClient]:
    app = create_app(sample.home, TOKEN)
    with TestClient(app, base_url="http://elsewhere:8765", follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize(
    "path", ["/", "/api/campaigns", "/static/view.css", "/?token=", "/?token=x"]
)
@pytest.mark.parametrize("host", ["elsewhere:8765", "127.0.0.1:8765", "localhost"])
def test_nobody_without_the_token_is_answered(client: TestClient, path: str, host: str) -> None:
    reply = client.get(path, headers={"host": host})
    assert reply.status_code == 401
    assert "asks for a token" in reply.text
    assert TOKEN not in str(reply.headers)


def test_the_address_sets_a_cookie_and_goes_on_without_the_token(client: TestClient) -> None:
    reply = client.get(f"/?sort=problem&token={TOKEN}&q=a%26b")
    assert (reply.status_code, reply.headers["location"]) == (303, "/?sort=problem&q=a%26b")
    assert "httponly" in reply.headers["set-cookie"].lower()
    assert client.get("/").status_code == 200
    assert client.get("/static/view.css").status_code == 200


def test_a_cookie_of_another_viewer_on_this_host_opens_nothing(client: TestClient) -> None:
    client.cookies.set("kernelwright_8766", TOKEN)
    assert client.get("/").status_code == 401


def test_a_program_gives_it_as_a_bearer(client: TestClient) -> None:
    assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    for wrong in (f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", TOKEN, "Bearer \u00e4"):
        headers = {"authorization": wrong.encode()}
        assert client.get("/", headers=headers).status_code == 401


def test_it_sends_nobody_to_another_host(client: TestClient) -> None:
    for path in ("//evil.example/", "///evil.example", "/%2F/evil.example"):
        reply = client.get(f"http://elsewhere:8765{path}?token={TOKEN}")
        assert not reply.headers["location"].startswith("//")


def test_another_site_and_writing_are_refused_with_it_too(client: TestClient) -> None:
    owned = {"authorization": f"Bearer {TOKEN}"}
    foreign = {**owned, "origin": "http://127.0.0.1:8765"}
    assert client.get("/", headers=foreign).status_code == 403
    assert client.get("/", headers={**owned, "origin": "http://elsewhere:8765"}).status_code == 200
    assert client.post("/", headers=owned).status_code == 405
