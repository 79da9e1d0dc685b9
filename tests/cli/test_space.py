"""`space`: a recorded space is replayed and compared, a campaign is recorded."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from kernelwright.kernelbench.recipe import Knob
from kernelwright.kernelbench.recorded import RecordedSpace, read_space, write_space
from kernelwright.kernelbench.space import space_of_points
from kernelwright.tests.cli import stored
from kernelwright.traces.events import EvaluationFinished
from kernelwright.traces.records import Depth, Status
from kernelwright.traces.store import Store

from .conftest import Command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    knobs = [Knob("x", (1, 2, 4, 8, 16, 32), ""), Knob("y", (1, 2, 3, 4), "")]
    points = [
        dict(zip("xy", each, strict=True)) for each in itertools.product(*(k.values for k in knobs))
    ]
    times = [100.0 + abs(float(p["x"]) - 8) + abs(float(p["y"]) - 3) for p in points]
    space = space_of_points(knobs, points)
    path = tmp_path / "conv.json"
    write_space(RecordedSpace("conv", "A100", space, tuple(times), ("",) * 24), path, "cache")
    return path


def test_a_search_is_replayed_to_the_optimum(kw_here: Command, file: Path) -> None:
    done = kw_here("space", "replay", str(file), "--most", "24", "--json")
    assert done.code == 0
    document = done.document
    assert document["best_us"] == pytest.approx(100.0)
    assert len(document["asked"]) == 24
    assert document["best_so_far_us"] == sorted(document["best_so_far_us"], reverse=True)
    assert 1 <= document["evaluations_within"]["1 %"] <= 24
    told = kw_here("space", "replay", str(file), "--most", "24").out
    assert "conv on A100: 24 points, 0 failed, best 100.0 µs" in told


def test_searches_are_compared_over_seeds(kw_here: Command, file: Path) -> None:
    asked = ("--strategy", "random", "--strategy", "exhaustive", "--seeds", "3", "--json")
    rows = kw_here("space", "compare", str(file), *asked).document["rows"]
    assert [row["strategy"] for row in rows] == ["random", "exhaustive"]
    assert rows[1]["geometric_mean"] == pytest.approx(rows[1]["median"][str(file)])
    assert rows[1]["median"][str(file)] == 14  # in the order of the file


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("replay", "nothing.json"), "nothing.json cannot be read as a recorded space"),
        (("replay", "FILE", "--strategy", "annealing"), "there is no strategy 'annealing'"),
        (("record", "FILE", "-o", "out.json"), "there is no store at"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    kw_here: Command, file: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = kw_here("space", *(str(file) if each == "FILE" else each for each in arguments))
    assert done.code == 2
    assert said.replace("FILE", str(file)) in " ".join(done.err.split())
    assert "Traceback" not in done.err


@pytest.mark.parametrize("form", ["cache", "t4"])
def test_a_campaign_is_recorded_as_a_space(
    kw_here: Command, private: dict[str, str], tmp_path: Path, form: str
) -> None:
    with Store.open(Path(private["KERNELWRIGHT_HOME"])) as store:
        campaign = store.create(stored.started())
        for number, status in enumerate((Status.SCREENED, Status.INCORRECT), 1):
            knobs = {"vector": "native", "rows": number}
            proposed = stored.proposed(number, "row-balanced").model_copy(update={"knobs": knobs})
            store.append(campaign, proposed)
            verdict = stored.verdict(number, status, Depth.SCREEN)
            if status.is_pass:
                verdict = verdict.model_copy(update={"measurements": (stored.measurement(),)})
            store.append(campaign, EvaluationFinished(verdict=verdict))
    path = tmp_path / "out.json"
    done = kw_here("space", "record", campaign, "-o", str(path), "--form", form)
    assert done.code == 0, done.err
    recorded = read_space(path)
    assert recorded.times_us[0] == pytest.approx(50.0)
    assert recorded.times_us[1] is None
    assert recorded.space.at(0) == {"family": "row-balanced", "vector": "native", "rows": 1}
    assert json.loads(path.read_text())
