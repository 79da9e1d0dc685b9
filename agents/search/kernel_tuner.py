# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner's strategies behind our interface, for comparisons and for who prefers them.

They call for evaluations where ours are asked, so each plays in a thread that waits for what is
told. They draw from the generators that Python and numpy share, which are seeded as it starts: only
one at a time gives the same questions again. github.com/KernelTuner/kernel_tuner
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ... import extras
from ...errors import UsageError
from ...kernelbench.space import ABSENT, Space
from .told import Told

PREFIX = "kernel_tuner:"
"""Of the names of these strategies."""
WAIT_S = 0.1
MOST_REPEATS = 10_000
"""Calls in a row for points that were told before, after which one that does not end by itself is
taken for ended."""
_END = None


class KernelTuner:
    """See Strategy. Close it where it is not played to its end."""

    def __init__(self, name: str, space: Space, seed: int, first: Sequence[int] = ()) -> None:
        """Args:
        name: of Kernel Tuner's strategy, such as `genetic_algorithm`.
        first: where it begins, of which it takes one.
        """
        extras.require("tuner", "a strategy of Kernel Tuner")
        from kernel_tuner.interface import strategy_map

        if name not in strategy_map:
            raise UsageError(
                f"Kernel Tuner has no strategy '{name}'",
                hint=f"choose one of {', '.join(sorted(strategy_map))}",
            )
        self.name = name
        self._strategy, self._space, self._seed = strategy_map[name], space, seed
        self._error: Exception | None = None
        self._first = list(first)
        self._wanted: queue.Queue[int | None] = queue.Queue()
        self._answers: dict[int, float | None] = {}
        self._answered = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._play, daemon=True)

    def ask(self, count: int = 1) -> list[int]:
        """See Strategy. Most wait for one answer before they have another question."""
        if not self._thread.ident:
            self._thread.start()
        found: list[int] = []
        while len(found) < count and not self._is_closed:
            try:
                point = self._wanted.get(block=not found)
            except queue.Empty:
                break
            if point is _END:
                self.close()
                break
            found.append(point)
        if self._error is not None and not found:
            raise UsageError(
                f"Kernel Tuner's {self.name} ended: {type(self._error).__name__}: {self._error}",
                hint="choose another strategy",
            ) from self._error
        return found

    def tell(self, told: Iterable[Told]) -> None:
        """See Strategy."""
        with self._answered:
            self._answers.update((each.point, each.value) for each in told)
            self._answered.notify_all()

    def close(self) -> None:
        """Ends the thread."""
        with self._answered:
            self._is_closed = True
            self._answered.notify_all()
        if self._thread.ident:
            self._thread.join()

    def evaluate(self, point: int) -> float | None:
        """What a point showed, once that is told. Raises StopCriterionReached where it ended."""
        from kernel_tuner.util import StopCriterionReached

        with self._answered:
            if point not in self._answers:
                self._wanted.put(point)
            while point not in self._answers:
                if self._is_closed:
                    raise StopCriterionReached("nothing more is asked")
                self._answered.wait(WAIT_S)
            return self._answers[point]

    def _play(self) -> None:
        from kernel_tuner.searchspace import Searchspace
        from kernel_tuner.util import StopCriterionReached

        random.seed(self._seed)
        np.random.seed(self._seed % (1 << 32))
        values = {
            knob.name: [*knob.values, *([ABSENT] if is_missing else [])]
            for knob, is_missing in zip(
                self._space.knobs, (self._space.points == ABSENT).any(0), strict=True
            )
        }
        numbers = {self._values_of(number): number for number in range(len(self._space))}
        runner = _make_runner(self, numbers)
        try:
            points = [dict(zip(values, each, strict=True)) for each in numbers]
            known = {"tune_params": values, "cache": dict(enumerate(points))}
            space = Searchspace(None, None, None, from_cache=known)
            self._strategy.tune(space, runner, self._options(values))
        except StopCriterionReached:
            pass
        except Exception as error:  # told to whoever asks next
            self._error = error
        finally:
            self._wanted.put(_END)

    def _values_of(self, number: int) -> tuple[Any, ...]:
        point = self._space.at(number)
        return tuple(point.get(knob.name, ABSENT) for knob in self._space.knobs)

    def _options(self, values: dict[str, list[Any]]) -> Any:
        from kernel_tuner.interface import Options, _tuning_options
        from kernel_tuner.util import TuningBudget

        chosen = {"x0": self._values_of(self._first[0])} if self._first else {}
        known = {
            **dict.fromkeys(_tuning_options),
            "tune_params": values,
            "objective": ["time"],
            "objective_higher_is_better": [False],
            "strategy_options": Options(chosen),
            "verbose": False,
            "cache": {},
            "budget": TuningBudget(None, len(self._space)),
        }
        return Options(known.items())


def _make_runner(strategy: KernelTuner, numbers: dict[tuple[Any, ...], int]) -> Any:
    """What its strategies have configurations run by."""
    from kernel_tuner.runners.runner import Runner
    from kernel_tuner.util import RuntimeFailedConfig, StopCriterionReached

    class Asking(Runner):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._seen: set[int] = set()
            self._repeats = 0

        def get_device_info(self) -> None:
            """None: the space says itself what is legal."""

        def get_environment(self, _options: Any) -> dict[str, Any]:
            return {}

        def run(self, parameter_space: Any, tuning_options: Any) -> list[dict[str, Any] | None]:
            results: list[dict[str, Any] | None] = []
            for configuration in parameter_space:
                if tuning_options.budget.is_done():
                    results.append(None)
                    continue
                point = numbers[tuple(configuration)]
                self._repeats += 1
                if point not in self._seen:
                    self._seen.add(point)
                    self._repeats = 0
                    tuning_options.budget.add_evaluations(1)
                if self._repeats > MOST_REPEATS:
                    raise StopCriterionReached("it asks for nothing new")
                value = strategy.evaluate(point)
                result = dict(zip(tuning_options.tune_params, configuration, strict=True))
                if value is None:
                    result["__error__"] = RuntimeFailedConfig()
                else:
                    result["time"] = float(np.exp(value))
                results.append(result)
            return results

    return Asking()
