"""A played opponent: a toy problem, real recipes for it, and a referee with a synthetic cost model.

The referee answers by arithmetic over the knobs in a source's front matter, with noise that
depends on the seed, the candidate and the protocol only: the same question gets the same answer in
any process and any order. It keeps its own log of what it was asked.
"""

from __future__ import annotations

import hashlib
import random
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.agents.brains.recipe import RecipeCoder
from kernelwright.agents.brains.rules import RuleJudge
from kernelwright.kernelbench.problem import (
    Arrays,
    Expected,
    Problem,
    Structure,
    Tensor,
    Workload,
)
from kernelwright.kernelbench.recipe import Constraint, Facts, Knob, Knobs, Recipe
from kernelwright.running import Players
from kernelwright.traces.preparation import Preparation
from kernelwright.traces.records import (
    Capability,
    Check,
    Counting,
    Depth,
    Enforcement,
    Isolation,
    Measurement,
    Metric,
    Profile,
    Speedup,
    Status,
    Timing,
    Verdict,
    candidate_id,
)
from kernelwright.verifier.request import Counted, Order

FACTS = {"M": 1000.0, "N": 64.0, "cpus": 2.0, "vector_bytes": 64.0, "cv_row": 2.0}
BASELINE_US = 1000.0


def problem() -> Problem:
    """y = 2x, as small as a Problem can be."""

    def structure(workload: Workload) -> Structure:
        return Structure(axes=dict(workload.axes))

    def oracle(_structure: Structure, values: Arrays) -> dict[str, Expected]:
        value = 2.0 * values["x"].astype(np.float64)
        return {"y": Expected(value=value, scale=np.abs(value))}

    return Problem(
        name="doubling",
        title="Doubling",
        definition="y = 2 x",
        axes={"M": "elements"},
        inputs=(Tensor(name="x", dtype="float32", shape=("M",)),),
        outputs=(Tensor(name="y", dtype="float32", shape=("M",)),),
        source="none",
        workloads=(Workload(name="usual", kind="realistic", axes={"M": 1000}),),
        structure=structure,
        values=lambda s, _f, rng: {"x": rng.standard_normal(s.axes["M"]).astype(np.float32)},
        oracle=oracle,
        flops=lambda axes: float(axes["M"]),
        bytes_moved=lambda axes: 8.0 * axes["M"],
        baselines=(),
        variations=lambda s, _rng, _tried=None: iter([s]),
    )


def _renderer(family: str) -> Callable[[Knobs], str]:
    def render(knobs: Knobs) -> str:
        lines = [f"{k} = {v!r}" for k, v in sorted(knobs.items())]
        return f'family = "{family}"\n' + "\n".join(lines)

    return render


def recipe(family: str, **knobs: tuple[int | str, ...]) -> Recipe:
    """A recipe for the toy problem whose source is its front matter and nothing else."""
    return Recipe(
        problem="doubling",
        family=family,
        language="cpp",
        summary=family,
        knobs=tuple(Knob(name, values, name) for name, values in knobs.items()),
        render=_renderer(family),
        constraints=(Constraint("registers", _fits),),
    )


def _fits(knobs: Knobs, _facts: Facts) -> bool:
    return int(knobs.get("width", 1)) * int(knobs.get("unroll", 1)) <= 16


def recipes() -> tuple[Recipe, ...]:
    """Two families of 39 and 42 legal points, the second better at its best."""
    return (
        recipe(
            "row-balanced",
            width=(1, 2, 4, 8),
            unroll=(1, 2, 4),
            schedule=("static", "dynamic", "guided"),
        ),
        recipe("nnz-balanced", width=(1, 2, 4, 8), unroll=(1, 2, 4), prefetch=(0, 4, 8, 16)),
    )


def players(of: tuple[Recipe, ...] | None = None) -> Players:
    """The toy problem with the offline brains."""
    of = recipes() if of is None else of
    return Players(problem(), RecipeCoder(of), RuleJudge(of))


@dataclass
class Clock:
    """A clock that moves only when it is told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def fields_of(source: str) -> dict[str, Any]:
    """What a candidate says of itself; one in another language than ours says nothing."""
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError:
        return {"family": "row-balanced"}


def _cost_us(fields: dict[str, Any]) -> float:
    cost = 900.0 if fields["family"] == "row-balanced" else 700.0
    cost /= 1.0 + 0.05 * fields.get("step", 0)
    cost /= {1: 1.0, 2: 1.2, 4: 1.4, 8: 1.3}[fields.get("width", 1)]
    cost /= {1: 1.0, 2: 1.15, 4: 1.1}[fields.get("unroll", 1)]
    cost /= {"static": 1.0, "dynamic": 1.2, "guided": 1.1}[fields.get("schedule", "static")]
    return cost / {0: 1.0, 4: 1.05, 8: 1.2, 16: 1.1}[fields.get("prefetch", 0)]


Fate = Callable[[Order], Status | None]
"""Which failure an order meets, or None for a pass."""


@dataclass
class PlayedReferee:
    """Implements verifier.request.Referee."""

    seed: int = 0
    noise: float = 0.01
    fate: Fate = lambda _order: None
    falls: Callable[[Order], bool] = lambda _order: False
    """Whether the champion of this order fails when it is looked at again."""
    clock: Clock | None = None
    prepare_s: float = 0.0
    screen_s: float = 1.0
    confirm_s: float = 5.0
    log: Path | None = None
    before: Callable[[Order], None] = lambda _order: None
    asked: list[tuple[str, Depth]] = field(default_factory=list)
    foreseen: list[str] = field(default_factory=list)
    to_be_confirmed: list[str] = field(default_factory=list)
    """Those that a confirmation was foreseen of."""
    is_emulated: bool = False
    counting: Counting | None = None
    counters: Callable[[Order], Counted] = lambda _order: Counted(reason="none were recorded")
    """What the hardware says of a candidate."""

    def count(self, order: Order) -> Counted:
        return self.counters(order)

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        if self.clock:
            self.clock.now += self.prepare_s
        if not is_wanted():
            return None
        seconds = {"referee": 1.0, "baselines": self.prepare_s}
        return Preparation(seconds=seconds, baselines=("torch eager",))

    def foresee(self, orders: Sequence[Order]) -> None:
        for order in orders:
            told = self.foreseen if order.protocol is Depth.SCREEN else self.to_be_confirmed
            told.append(candidate_id(order.source))

    def evaluate(self, order: Order) -> Verdict:
        candidate = candidate_id(order.source)
        self.asked.append((candidate, order.protocol))
        self.before(order)
        if self.clock:
            self.clock.now += self.screen_s if order.protocol.is_quick else self.confirm_s
        verdict = self._judged(order)
        if self.log:
            with self.log.open("a") as lines:
                lines.write(f"{candidate} {order.protocol}\n")
        return verdict

    def _judged(self, order: Order) -> Verdict:
        if order.champion and not order.protocol.is_quick and self.falls(order):
            champion = order.model_copy(update={"source": order.champion, "champion": ""})
            found = self._judged(order.model_copy(update={"champion": ""}))
            return found.model_copy(update={"champion": self._failed(champion, Status.CRASHED)})
        status = self.fate(order)
        return self._failed(order, status) if status else self._passed(order)

    def _passed(self, order: Order) -> Verdict:
        fields = fields_of(order.source)
        latency_us = self._latency_us(order, order.source)
        speedup = {"torch eager": _around(BASELINE_US / latency_us)}
        if order.champion:
            ratio = _around(self._latency_us(order, order.champion) / latency_us)
            blocks = 1 if order.protocol is Depth.SCREEN else 12
            speedup["champion"] = ratio.model_copy(update={"blocks": blocks})
        confirmed = not order.protocol.is_quick
        measurement = Measurement(
            workload="usual",
            candidate=_timing(latency_us),
            baselines={"torch eager": _timing(BASELINE_US)},
            speedup=speedup,
            best_baseline="torch eager",
            pairs=30,
            mde=0.01,
            floor_us=200.0,
            roofline=200.0 / latency_us,
            cpu_us=latency_us * (1.9 if fields.get("schedule") != "static" else 1.2),
            threads=2,
        )
        metrics = {
            "vectorised_loops": float(fields.get("width", 1) > 1),
            "vector_bytes": 8.0 * fields.get("width", 1),
            "imbalance": 1.6,
        }
        return self._verdict(
            order,
            Status.VERIFIED if confirmed else Status.SCREENED,
            checks=(Check(name="G1", passed=True, figure=0.1, limit=1.0),),
            measurements=(measurement,),
            profile=Profile(metrics=tuple(Metric(name=k, value=v) for k, v in metrics.items())),
        )

    def _failed(self, order: Order, status: Status) -> Verdict:
        check = Check(name="G1 error", passed=False, figure=7.5, limit=1.0, detail="y[3]")
        return self._verdict(order, status, reasons=(f"played {status}",), checks=(check,))

    def _verdict(self, order: Order, status: Status, **more: Any) -> Verdict:
        return Verdict(
            candidate=candidate_id(order.source),
            problem="doubling",
            workload="usual",
            language=order.language,
            target="cpu",
            protocol=order.protocol,
            status=status,
            **more,
        )

    def _latency_us(self, order: Order, source: str) -> float:
        key = f"{self.seed}:{candidate_id(source)}:{order.protocol}"
        draw = random.Random(hashlib.sha256(key.encode()).hexdigest())
        return _cost_us(fields_of(source)) * (1 + self.noise * draw.uniform(-1, 1))

    @property
    def isolation(self) -> Isolation:
        enforced = Capability(state=Enforcement.ENFORCED, how="played")
        return Isolation(mechanism="played", capabilities={"net": enforced})

    @property
    def facts(self) -> dict[str, float]:
        return dict(FACTS)

    def close(self) -> None:
        """Nothing is open."""


def _timing(median_us: float) -> Timing:
    return Timing(median_us=median_us, low_us=median_us * 0.99, high_us=median_us * 1.01)


def _around(ratio: float) -> Speedup:
    return Speedup(median=ratio, low=ratio * 0.99, high=ratio * 1.01)


def verdict_with(
    credited: float | None,
    *,
    status: Status | None = None,
    against_champion: float | None = None,
    mde: float = 0.0,
) -> Verdict:
    """A verdict with this credited speed-up; None: a failure."""
    base = {
        "candidate": "c",
        "problem": "doubling",
        "workload": "usual",
        "language": "cpp",
        "target": "cpu",
        "protocol": Depth.SCREEN,
    }
    if credited is None:
        return Verdict.model_validate(
            {**base, "status": status or Status.INCORRECT, "reasons": ("wrong",)}
        )
    speedup = {"torch eager": Speedup(median=credited, low=credited, high=credited)}
    if against_champion is not None:
        low = against_champion
        speedup["champion"] = Speedup(median=low * 1.01, low=low, high=low * 1.02)
    measurement = Measurement(
        workload="usual",
        candidate=_timing(1.0),
        speedup=speedup,
        best_baseline="torch eager",
        mde=mde,
    )
    return Verdict.model_validate(
        {**base, "status": status or Status.SCREENED, "measurements": (measurement,)}
    )
