"""What is asked of a referee, and what a record of its answers comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.portfolio.candidates import read_contenders
from kernelwright.portfolio.measuring import (
    Cell,
    Contender,
    cell_of,
    group_of,
    measure,
    pick_looks,
)
from kernelwright.portfolio.times import Seen, make_table, mean_ratio, read_seen
from kernelwright.portfolio.workloads import list_workloads
from kernelwright.traces.records import (
    CHAMPION,
    Depth,
    Measurement,
    Speedup,
    Status,
    Timing,
    Verdict,
    candidate_id,
)
from kernelwright.verifier.request import Order

SPMM = registry.get("spmm_csr")
WORKLOADS = tuple(
    registry.workload_for(SPMM, name, N=width) for name in ("tiny", "hub-33") for width in (1, 7)
)
SPEEDS = {"first": 1.0, "second": 2.0, "third": 0.5}
CONTENDERS = tuple(Contender(name, f"// {name}\n") for name in SPEEDS)


@dataclass
class Played:
    """A referee that finds each candidate as fast as its first line says."""

    workload: Workload
    fate: Mapping[str, list[Status]]
    asked: list[str] = field(default_factory=list)

    def prepare(self) -> None: ...

    def foresee(self, orders: Any) -> None: ...

    def evaluate(self, order: Order) -> Verdict:
        name = order.source.split()[1]
        self.asked.append(name)
        left = self.fate.get(name, [])
        status = left.pop(0) if left else Status.SCREENED
        parts = [part.workload for part in self.workload.parts] or [self.workload]
        found = [self._measure(each, name, bool(order.champion)) for each in parts]
        return Verdict(
            candidate=candidate_id(order.source),
            problem="spmm_csr",
            workload=self.workload.name,
            language="cpp",
            target="cpu",
            tier="native",
            protocol=order.protocol,
            status=status,
            reasons=() if status.is_pass else ("so it is told",),
            measurements=tuple(found) if status.is_pass else (),
        )

    def _measure(self, workload: Workload, name: str, is_paired: bool) -> Measurement:
        def timing(us: float) -> Timing:
            return Timing(median_us=us, low_us=us, high_us=us)

        speed = SPEEDS[name]
        ratios = {"scipy": Speedup(median=speed, low=speed, high=speed)}
        if is_paired:
            ratios[CHAMPION] = Speedup(median=speed, low=speed * 0.9, high=speed / 0.9)
        return Measurement(
            workload=workload.name,
            candidate=timing(100 / speed),
            baselines={"scipy": timing(100.0), CHAMPION: timing(100.0)},
            speedup=ratios,
            best_baseline="scipy",
            pairs=10,
            blocks=1,
            disturbed_blocks=0,
            mde=0.1,
            floor_us=1.0,
        )


@dataclass
class Hall:
    """Opens played referees."""

    fate: dict[str, list[Status]] = field(default_factory=dict)
    opened: list[Played] = field(default_factory=list)

    def open(self, workload: Workload) -> AbstractContextManager[Any]:
        self.opened.append(Played(workload, self.fate))
        return nullcontext(self.opened[-1])


def look(hall: Hall, **more: Any) -> Iterator[Seen]:
    return measure(SPMM, WORKLOADS, CONTENDERS, hall.open, **more)


def test_a_table_holds_what_the_pairs_say() -> None:
    hall = Hall()
    table, left_out = make_table(look(hall))
    assert [len(played.workload.parts) for played in hall.opened] == [2, 2]
    assert table.candidates == ("first", "second", "third")
    assert table.workloads == tuple(each.name for each in WORKLOADS)
    assert len(set(table.groups)) == 2
    assert not left_out.candidates
    assert np.allclose(table.us, [[100.0, 50.0, 200.0]] * 4)
    assert np.allclose(table.regret[:, 1], 0.0)
    assert table.facts[0]["N"] == 1.0
    assert table.facts[0]["nnz"] == 6000.0


def test_who_is_wrong_anywhere_is_left_out() -> None:
    table, left_out = make_table(look(Hall({"third": [Status.SCREENED, Status.INCORRECT]})))
    assert table.candidates == ("first", "second")
    assert "INCORRECT; so it is told" in left_out.candidates["third"]


def test_who_is_out_of_time_is_asked_again() -> None:
    hall = Hall({"third": [Status.TIMED_OUT]})
    assert len(make_table(look(hall))[0].candidates) == 3
    assert hall.opened[0].asked == ["first", "second", "third", "third"]
    _, left_out = make_table(look(Hall({"third": [Status.TIMED_OUT] * 2})))
    assert "TIMED_OUT" in left_out.candidates["third"]


def test_where_the_machine_failed_the_workload_is_left_out() -> None:
    table, left_out = make_table(look(Hall({"second": [Status.HARNESS_ERROR]})))
    assert table.candidates == ("first", "second", "third")
    assert table.workloads == tuple(each.name for each in WORKLOADS[2:])
    assert left_out.workloads == {each.name: "never timed there: second" for each in WORKLOADS[:2]}


def test_a_wrong_reference_ends_it() -> None:
    with pytest.raises(UsageError, match="first, which all others take turns with, is INCORRECT"):
        list(look(Hall({"first": [Status.INCORRECT]})))


def test_what_is_known_is_not_asked_again(tmp_path: Path) -> None:
    record = tmp_path / "seen.jsonl"
    seen = list(look(Hall()))
    record.write_text("".join(each.model_dump_json() + "\n" for each in seen[:8]))
    known = {Cell(each.workload, each.group, each.source) for each in read_seen(record)}
    hall = Hall()
    rest = list(look(hall, is_known=lambda cell: cell in known))
    assert [played.asked for played in hall.opened] == [["second", "third"]]
    both = make_table([*read_seen(record), *rest])[0]
    assert both.us.shape == (4, 3)


def test_no_time_left_asks_nobody() -> None:
    hall = Hall()
    assert list(look(hall, is_over=lambda: True)) == []
    assert hall.opened == []


def test_of_a_record_counts_what_is_of_these() -> None:
    seen = list(look(Hall()))
    renamed = [each._replace(name=f"new-{each.name}") for each in CONTENDERS]
    assert {each.candidate for each in pick_looks(seen, WORKLOADS, renamed)} == {
        "new-first",
        "new-second",
        "new-third",
    }
    changed = [*CONTENDERS[:2], Contender("third", "// third, changed\n")]
    assert {e.candidate for e in pick_looks(seen, WORKLOADS, changed)} == {"first", "second"}
    assert pick_looks(seen, WORKLOADS, CONTENDERS[::-1]) == []
    other = WORKLOADS[0].model_copy(update={"seed": 9})
    assert pick_looks(seen, [other], CONTENDERS) == []


def test_workloads_of_one_pattern_are_of_one_group() -> None:
    assert [group_of(each) for each in WORKLOADS[:2]] == [group_of(WORKLOADS[0])] * 2
    assert group_of(WORKLOADS[0]) != group_of(WORKLOADS[2])
    gemm = registry.get("gemm")
    named = [registry.workload_for(gemm, M=m, N=64, K=64).name for m in (1, 2)]
    assert [group_of(registry.workload_for(gemm, M=m, N=64, K=64)) for m in (1, 2)] == named
    assert cell_of(WORKLOADS[0], CONTENDERS[0]) != cell_of(WORKLOADS[0], CONTENDERS[1])


def test_a_disturbed_look_counts_little() -> None:
    first = next(iter(look(Hall())))
    sure = first.model_copy(update={"ratio": 2.0, "error": 0.02})
    disturbed = first.model_copy(update={"ratio": 0.2, "error": 1.0})
    assert mean_ratio([sure, disturbed]) == pytest.approx(2.0, rel=0.01)
    assert mean_ratio([sure, sure]) == pytest.approx(2.0)


def test_a_line_that_is_no_look_is_told(tmp_path: Path) -> None:
    record = tmp_path / "seen.jsonl"
    record.write_text('{"workload": 3}\n')
    with pytest.raises(UsageError, match=r"seen\.jsonl:1: "):
        read_seen(record)


def test_weights_of_workloads_add_up() -> None:
    found = list_workloads(SPMM, "tiny:2,hub-33,tiny")
    assert [(workload.name, weight) for workload, weight in found] == [
        ("tiny", 3.0),
        ("hub-33", 1.0),
    ]
    with pytest.raises(UsageError, match="is one workload"):
        list_workloads(SPMM, "tiny")
    assert len(list_workloads(SPMM, "pack:gnn")) == 21


def test_candidates_are_told_apart(tmp_path: Path) -> None:
    for name, text in (("a/x y.cpp", "// 1"), ("b/x y.cpp", "// 2"), ("b/same.cpp", "// 2")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    files = [str(file) for file in sorted(tmp_path.rglob("*.cpp"), reverse=True)]
    assert len(files) == 3
    assert {each.name for each in read_contenders(files, tmp_path)} == {"x-y", "x-y-2"}
    with pytest.raises(UsageError, match="1 candidate is no portfolio"):
        read_contenders(files[:1], tmp_path)
    (tmp_path / "k.cu").write_text("// cuda")
    with pytest.raises(UsageError, match="written in cuda"):
        read_contenders([str(tmp_path / "k.cu"), files[0]], tmp_path)


def test_screenings_only_are_asked_for() -> None:
    orders: list[Order] = []

    class Noting(Played):
        def evaluate(self, order: Order) -> Verdict:
            orders.append(order)
            return super().evaluate(order)

    list(measure(SPMM, WORKLOADS, CONTENDERS, lambda w: nullcontext(Noting(w, {}))))  # type: ignore[arg-type,return-value]
    assert {order.protocol for order in orders} == {Depth.SCREEN}
    assert {order.champion for order in orders} == {"", CONTENDERS[0].source}
