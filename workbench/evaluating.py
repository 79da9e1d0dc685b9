# SPDX-License-Identifier: Apache-2.0
"""Evaluating candidates from Python: one referee for as many of them as one likes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..config import Config, resolve
from ..errors import UsageError
from ..kernelbench import registry
from ..kernelbench.languages import CPP, list_names
from ..kernelbench.packs import Axes
from ..running import Kept, run_evaluation
from ..traces.records import Depth, Isolation, Verdict
from ..traces.store import Store
from ..verifier.process.client import RefereeProcess, open_referee
from ..verifier.request import Order
from . import tasks
from .candidate import Candidate
from .own_kernel import OwnKernel, language_of_source, read_source_file, take_own


class Evaluator:
    """A problem, a workload and a target that candidates are verified and timed on.

    It opens the referee, which prepares the baselines once:

        with kernelwright.Evaluator("softmax") as softmax:
            for file in folder.glob("*.cpp"):
                print(softmax.evaluate(file))
    """

    def __init__(
        self,
        problem: str,
        *,
        language: str = CPP.name,
        workload: str | None = None,
        matrix: Path | None = None,
        axes: Axes | Sequence[Axes] = (),
        workloads: str | None = None,
        home: str | Path | None = None,
        config: Config | None = None,
        **settings: Any,
    ) -> None:
        """Args:
            problem: Its name; `kernelwright.problems()` lists them.
            workload: Its name; None: the problem's own.
            matrix: A Matrix Market or .npz file, for problems on sparse matrices.
            axes: Sizes in place of the workload's own, by axis or in words (`M=4096,N=64:3`);
                several make as many workloads.
            workloads: Names with weights, a trace of calls or a pack (`pack:llm`).
            home: The folder in which each evaluation is kept as a campaign of one; None: none is.
            config: Settings that were resolved before; else those of the environment and files.
            settings: Single ones on top of that: `target`, `jail`, `cpus`, `cache_dir` …

        Raises:
            UsageError: there is no such problem, workload, target or setting.
        """
        self.config = config or resolve(settings).config
        self.target = tasks.choose_target(self.config.target, language, devices=self.config.devices)
        self.language = language
        self.task = tasks.make_task(
            self.config, problem, workload, matrix, self.target, language, axes, workloads
        )
        self._home = resolve({"home": home}).config.home if home is not None else None
        self._store: Store | None = None
        self._stack = ExitStack()
        self._referee: RefereeProcess | None = None

    def __enter__(self) -> Self:
        """Starts the referee.

        Raises:
            PrerequisiteError: something is missing that every evaluation needs.
            StorageError: nothing can be kept in its home.
        """
        with ExitStack() as stack:
            if self._home is not None:
                self._store = stack.enter_context(Store.open(self._home))
            self._referee = stack.enter_context(open_referee(self.task))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._referee = self._store = None
        self._stack.__exit__(kind, error, trace)

    @property
    def isolation(self) -> Isolation:
        """What the sandbox enforces, as measured when the referee started."""
        return self._require_open().isolation

    @property
    def is_emulated(self) -> bool:
        """Whether the target is a device that is not here: then nothing is timed."""
        return self._require_open().is_emulated

    def take(self, text: str, name: str = "") -> OwnKernel:
        """The source as a candidate: CUDA with host code of its own gets its launch plan.

        Args:
            name: What it is called, for an error.

        Raises:
            UsageError: it is a kernel of another problem.
        """
        return take_own(OwnKernel(text, self.language, name), registry.get(self.task.problem))

    def evaluate(
        self, source: str | Path, *, record: bool = False, file: Path | None = None
    ) -> Candidate:
        """Verifies and times a source. A bad kernel is a verdict and never an exception.

        Args:
            source: The text of one source file, or its path.
            record: 300 trials instead of 30.
            file: Where a text was read: what the file is called is kept with it.

        Raises:
            UsageError: it is a kernel of another problem.
            UnkeptVerdictError: it has a verdict, which its home took no more.
        """
        file = source if isinstance(source, Path) else file
        text = read_source_file(source) if isinstance(source, Path) else source
        text = self.take(text, file.name if file else "").text
        protocol = Depth.RECORD if record else Depth.FULL
        referee = self._require_open()
        if self._store is not None:
            store, language = self._store, self.language
            kept = run_evaluation(self.task, text, language, protocol, store, referee, file=file)
            return self._make_candidate(text, kept.entry.verdict, store.home, kept)
        order = Order(source=text, language=self.language, protocol=protocol)
        return self._make_candidate(text, referee.evaluate(order))

    def _make_candidate(
        self, text: str, verdict: Verdict | None, home: Path | None = None, kept: Kept | None = None
    ) -> Candidate:
        campaign, entry = kept or ("", None)
        about = (self.task.problem, self.target, self.language, text, verdict)
        return Candidate(*about, campaign, home, entry)

    def _require_open(self) -> RefereeProcess:
        if self._referee is None:
            raise UsageError("the evaluator is not open", hint="use it in a `with` block")
        return self._referee


def evaluate(
    problem: str,
    source: str | Path,
    *,
    language: str | None = None,
    workload: str | None = None,
    matrix: Path | None = None,
    axes: Axes | Sequence[Axes] = (),
    workloads: str | None = None,
    record: bool = False,
    home: str | Path | None = None,
    **settings: Any,
) -> Candidate:
    """Verifies and times one candidate; see Evaluator, which takes several.

    Args:
        source: The path of one source file, whose ending names the language, or its text.
        language: Needed with a text.
        home: The folder in which it is kept, as a campaign of one; None: it is not.
    """
    config = resolve(settings).config
    if language is None:
        if not isinstance(source, Path):
            raise UsageError(
                "a text does not say which language it is in",
                hint=f"give language= ({list_names()}), or a Path",
            )
        language = language_of_source(source, read_source_file(source), config.target)
    evaluator = Evaluator(
        problem,
        language=language,
        workload=workload,
        matrix=matrix,
        axes=axes,
        workloads=workloads,
        home=home,
        config=config,
    )
    with evaluator:
        return evaluator.evaluate(source, record=record)
