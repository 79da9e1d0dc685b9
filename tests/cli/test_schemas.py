"""`schema`: what is published is JSON Schema, and what commands print keeps it."""

from __future__ import annotations

import copy
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from kernelwright.cli.schema import EVENT, SCHEMAS, schema_of
from kernelwright.kernelbench.recipe import Knob
from kernelwright.kernelbench.recorded import RecordedSpace, write_space
from kernelwright.kernelbench.space import space_of_points
from kernelwright.tests.cli import stored
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app

from .conftest import Command
from .published import faults, name_of

HERE = Path(__file__).parent
EARLIER = HERE / "earlier" / "0.1.0-november.tar.gz"
ELSEWHERE = {
    ("run",): "test_end_to_end.py",
    ("run", "--dry-run"): "test_before_start.py",
    ("eval",): "test_end_to_end.py",
    ("suite",): "test_suite.py",
    ("bench",): "test_bench.py",
    ("portfolio",): "test_portfolio.py",
    ("audit",): "test_audit.py",
    ("ab",): "test_ab.py",
}
"""What takes longer or more to set up, and the file whose tests hold it to its schema."""
READING = (
    ("list",),
    ("show", "@last"),
    ("show", "@last@best"),
    ("show", "@last", "--calls"),
    ("show", "@last", "--call", "1"),
    ("problems",),
    ("problems", "gemm"),
    ("problems", "softmax", "--signature", "cuda"),
    ("problems", "--check", "softmax"),
    ("metrics", "show"),
    ("metrics", "derive", "--samples", "samples.jsonl"),
    ("metrics", "fit", "--samples", "samples.jsonl"),
    ("config", "show"),
    ("doctor",),
    ("reindex",),
    ("schema",),
    ("space", "replay", "space.json"),
    ("space", "compare", "space.json", "--seeds", "2", "--strategy", "random"),
    ("bundle", "@last", "-o", "one.zip"),
    ("archive", "@last", "-o", "two.zip"),
    ("demo", "--models"),
    ("delete", "@last"),
    ("gc",),
)
"""In their order, on a home with the recorded campaign of models."""
API = {
    "api-campaigns": "campaigns",
    "api-campaign": "c/{campaign}",
    "api-calls": "c/{campaign}/calls",
    "api-call": "c/{campaign}/calls/1",
    "api-candidate": "c/{campaign}/1",
}
"""What a viewer answers, and where below `/api`."""
SAMPLES = [
    {
        "task": f"task {task}",
        "target": "sm_90",
        "time_us": 3.0 * number + task,
        "metrics": {"model_memory_us": 2.0 * number, "model_l2_us": 1.0 + (number * 7) % 5},
    }
    for task in range(4)
    for number in range(1, 13)
]


def print_all(kw_here: Command, work: Path) -> dict[str, Any]:
    """What each reading command prints, by the name of its schema."""
    knobs = [Knob("x", (1, 2, 4), ""), Knob("y", (1, 2), "")]
    points = [{"x": x, "y": y} for x in (1, 2, 4) for y in (1, 2)]
    space = RecordedSpace(
        "k", "A100", space_of_points(knobs, points), tuple(map(float, range(1, 7))), ("",) * 6
    )
    write_space(space, work / "space.json", "cache")
    (work / "samples.jsonl").write_text("\n".join(map(json.dumps, SAMPLES)))
    kw_here("demo", "--models")
    found = {}
    for words in READING:
        done = kw_here(*words, "--json")
        assert done.out, (words, done.err)
        found[name_of(words)] = done.document
    return found


def branches(schema: Any) -> Iterator[Any]:
    """Every object in it."""
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, dict | list):
        for each in schema.values() if isinstance(schema, dict) else schema:
            yield from branches(each)


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema_that_later_versions_may_add_fields_to(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].startswith(f"urn:kernelwright:{name}")
    assert all(each.get("additionalProperties") is not False for each in branches(schema))
    assert schema["required"]


def test_the_command_lists_and_prints_them(kw_here: Command) -> None:
    lines = kw_here("schema").out.splitlines()
    assert [line.split()[0] for line in lines] == list(SCHEMAS)
    assert json.loads(kw_here("schema", "eval").out) == schema_of("eval")
    done = kw_here("schema", "evla")
    assert (done.code, done.out) == (2, "")
    assert "hint: did you mean eval?" in done.err


def test_what_commands_print_keeps_its_schema_and_less_does_not(
    kw_here: Command, tmp_path: Path
) -> None:
    documents = print_all(kw_here, tmp_path / "work")
    assert {*documents, *map(name_of, ELSEWHERE), *API, EVENT} == set(SCHEMAS)
    assert documents["show-call"]["reply"]
    assert documents["show-candidate"]["verdicts"]
    for words, file in ELSEWHERE.items():
        text = (HERE / file).read_text("utf-8")
        assert all(f'"{word}"' in text for word in (*words, "--json")), words
        assert ".document" in text
    assert_fields_held(documents)
    assert_inner_fields_held(documents["show-candidate"])


def assert_fields_held(documents: dict[str, Any]) -> None:
    """A field that is missing or of another type is refused, and one more is not."""
    for name, document in documents.items():
        schema = schema_of(name)
        for field in schema["required"]:
            assert field in document, name
            less = {key: value for key, value in document.items() if key != field}
            assert faults(name, less) == [f"$: '{field}' is a required property"]
            # What is JSON of any kind may be anything.
            if field in schema["properties"] and "$ref" not in schema["properties"][field]:
                retyped = faults(name, document | {field: [[object]]})
                assert any(each.startswith(f"$.{field}") for each in retyped), (name, field)
        assert faults(name, document | {"of_a_later_version": 1}) == []


def assert_inner_fields_held(shown: dict[str, Any]) -> None:
    """The same within a candidate."""
    for path in (
        ("verdicts", 0, "status"),
        ("verdicts", 0, "credited"),
        ("verdicts", 0, "not_enforced"),
        ("verdicts", 0, "checks", 0, "passed"),
        ("verdicts", 0, "measurements", 0, "candidate", "median_us"),
        ("verdicts", 0, "isolation", "capabilities", "net", "state"),
    ):
        less = copy.deepcopy(shown)
        inner = less
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]
        assert len(faults("show-candidate", less)) == 1, path
        inner[path[-1]] = {"of": "another type"}
        assert faults("show-candidate", less), path


def test_what_the_viewer_answers_keeps_its_schema(kw_here: Command, tmp_path: Path) -> None:
    kw_here("demo", "--models")
    home = tmp_path / "home"
    with Store.open(home, read_only=True) as store:
        (campaign,) = store.campaigns()
    with TestClient(create_app(home), base_url="http://127.0.0.1:8765") as client:
        found = {
            name: client.get(f"/api/{path.format(campaign=campaign)}").json()
            for name, path in API.items()
        }
        events = client.get(f"/api/c/{campaign}/events").json()
    assert found["api-candidate"]["verdicts"]
    assert_fields_held(found)
    assert not any(faults(EVENT, event) for event in events)


def test_stored_events_keep_theirs(kw_here: Command, tmp_path: Path) -> None:
    home = tmp_path / "home"
    kw_here("demo", "--models")
    stored.fill(home)
    kinds = set()
    with Store.open(home, read_only=True) as store:
        for campaign in store.campaigns():
            for event in store.events(campaign):
                document = event.model_dump(mode="json")
                assert faults(EVENT, document) == []
                kinds.add(event.payload.kind)
                del document["payload"]["kind"]
                assert faults(EVENT, document)
    assert len(kinds) >= 10


def test_events_of_an_earlier_version_keep_it_too(tmp_path: Path) -> None:
    with tarfile.open(EARLIER) as kept:
        kept.extractall(tmp_path, filter="data")
    with Store.open(tmp_path, read_only=True) as store:
        for campaign in store.campaigns():
            for event in store.events(campaign):
                assert faults(EVENT, event.model_dump(mode="json")) == []
