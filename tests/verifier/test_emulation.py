"""What an emulated verdict on a Triton candidate covers: long shapes, where it can afford them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import get
from kernelwright.sandbox.run.process import RunFault
from kernelwright.traces.records import Check, Protocol, Status, Verdict
from kernelwright.verifier import emulation
from kernelwright.verifier.draft import Draft
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.session import Session

LONG = "Triton's interpreter is too slow"


def source() -> str:
    recipe = get("bias_gelu", "tiled", "triton")
    return recipe.render(recipe.first())


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o755)
    workload = registry.get("bias_gelu").workload("tiny")
    task = Task(
        problem="bias_gelu", workload=workload, target="sm_90", languages=("triton",),
        cache_dir=str(cache),
    )  # fmt: skip
    try:
        opened = Session.open(task)
    except PrerequisiteError as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


@pytest.fixture
def looked(session: Session) -> Callable[..., Verdict]:
    if not session.is_emulated:
        pytest.skip("this machine has the device")

    def look(text: str, protocol: Protocol) -> Verdict:
        assert session.device is not None
        order = Order(source=text, language="triton", protocol=protocol)
        return emulation.look(Draft(order, session, b"long shapes here"), session.device)

    return look


def is_long(check: Check) -> bool:
    """Whether the check's name holds a size beyond the limit: `hidden shape 1 (M=3, N=65601)`."""
    sizes = [word.strip("),").partition("=")[2] for word in check.name.split()]
    return any(size.isdecimal() and int(size) > emulation.LONGEST for size in sizes)


@pytest.mark.slow
def test_a_long_shape_is_tried_beyond_a_screening(looked: Callable[..., Verdict]) -> None:
    screened = looked(source(), Protocol.SCREEN)
    assert screened.status is Status.SCREENED, screened.reasons
    assert any(LONG in why for why in screened.unchecked)
    promoted = looked(source(), Protocol.CONFIRM)
    assert promoted.status is Status.SCREENED, promoted.reasons
    assert not any(LONG in why for why in promoted.unchecked)
    assert any(is_long(check) for check in promoted.checks)


@pytest.mark.slow
def test_a_mistake_on_long_shapes_only_is_seen(looked: Callable[..., Verdict]) -> None:
    wrong = source().replace("gelu(x + bias), mask=inside", "gelu(x + bias), mask=inside & SHORT")
    wrong = wrong.replace("SHORT", "(column < 65536)")
    verdict = looked(wrong, Protocol.CONFIRM)
    assert verdict.status is Status.INCORRECT
    assert is_long(next(check for check in verdict.checks if not check.passed))


@pytest.mark.parametrize(
    ("status", "is_told"),
    [(Status.UNSUPPORTED, True), (Status.TIMED_OUT, True), (Status.CRASHED, False)],
)
def test_what_the_interpreter_cannot_afford_is_unchecked(
    session: Session, monkeypatch: pytest.MonkeyPatch, status: Status, is_told: bool
) -> None:
    def fails(*_: object) -> list[Check]:
        raise RunFault(status, "so many loads and stores")

    monkeypatch.setattr(emulation, "tried", fails)
    draft = Draft(Order(source="", language="triton"), session, b"")
    rng = np.random.default_rng(1)
    if is_told:
        assert emulation._on_long(draft, None, rng) == []  # type: ignore[arg-type]
        assert any(LONG in why for why in draft.unchecked)
    else:
        with pytest.raises(RunFault):
            emulation._on_long(draft, None, rng)  # type: ignore[arg-type]


def test_a_source_that_cannot_be_built_has_its_status(looked: Callable[..., Verdict]) -> None:
    """Its refusal leaves the timing of the build, which is a context manager, as it came."""
    verdict = looked(source().replace("grid =", "mesh ="), Protocol.SCREEN)
    assert verdict.status is Status.BUILD_FAILED
    assert "mesh" in verdict.reasons[0]
