"""What an evaluation does, step by step, on each of the three stands: a table that stays.

All is real but the GPU, which the fake driver stands for, and the judgement of the clocks: a busy
machine fails it, and then passes or fails as a row says. A step is noted as it ends, once where it
is taken several times in a row; so are the checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.tests.sandbox.run.device.fake_driver import fake_access, fake_driver
from kernelwright.tests.verifier.sources import CPP, CUDA, PYTHON, triton
from kernelwright.tests.verifier.stands import machine_by, on_device, opened, task
from kernelwright.tests.verifier.steps import BLOCKS, Row, Steps, noted_steps
from kernelwright.traces.records import Depth, Status
from kernelwright.verifier.clock.turns import WAITED
from kernelwright.verifier.failure import ChampionFailed
from kernelwright.verifier.stands import device_tools
from kernelwright.verifier.stands.stand import Stand

pytestmark = pytest.mark.slow
SCREEN, FULL, CONFIRM = Depth.SCREEN, Depth.FULL, Depth.CONFIRM


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return noted_steps(monkeypatch)


ONCE = "correct, same data at a new address, determinism, one element changed at the same address"
TWICE = f"{ONCE}, {ONCE.removeprefix('correct, ')}"

LATER = (
    "static int calls, last; calls = M * N == last ? calls + 1 : 0; last = M * N; "
    "if (calls > 8) y[0] += 1;"
)
"""Wrong in timed calls, which are many on one shape."""
LEAF = '__attribute__((noinline)) static void leaf() { asm volatile("" ::: "rbp"); }'
TURN = WAITED
TRIED_ON_CPU = f"admit, build, start, {TURN}, verify"
PROMOTED_ON_CPU = f"admit, build, sanitize, start, {TURN}, verify"
IN_TURN = BLOCKS.replace("time", f"{TURN}, time")
AGAIN = "determinism under load, many calls in a row"
APART = f"start, {IN_TURN}"
ONE_BLOCK = f"wait for baselines, start, {TURN}, time"
"""A native candidate is timed in processes that were not tried."""
LOADED = f"wait for baselines, {TURN}, load, wait for baselines"

ON_CPU = {
    "another language": Row("", Status.UNSUPPORTED, "", language="cuda"),
    "does not build": Row("no C", Status.BUILD_FAILED, "admit, build"),
    "wrong": Row(CPP % "y[0] += 1;", Status.INCORRECT, TRIED_ON_CPU, "correct"),
    "crashes": Row(CPP % "__builtin_trap();", Status.CRASHED, TRIED_ON_CPU),
    "right": Row(
        CPP % "",
        Status.SCREENED,
        f"{TRIED_ON_CPU}, {ONE_BLOCK}",
        f"{ONCE}, clocks, floor",
    ),
    "right, and the clocks differ": Row(
        CPP % "",
        Status.SUSPECT,
        f"{TRIED_ON_CPU}, {ONE_BLOCK}",
        f"{ONCE}, clocks, floor",
        clocks_hold=False,
    ),
    "wrong once it is timed": Row(
        CPP % LATER,
        Status.INCORRECT,
        f"{TRIED_ON_CPU}, {ONE_BLOCK}",
        f"{ONCE}, G1 condition-scaled error",
    ),
    "builds without sanitizers only": Row(
        LEAF + CPP % "leaf();", Status.BUILD_FAILED, "admit, build, sanitize", protocol=FULL
    ),
    "wrong, promoted": Row(
        CPP % "y[0] += 1;", Status.INCORRECT, PROMOTED_ON_CPU, "correct", protocol=FULL
    ),
    "reads beside, promoted": Row(
        CPP % "volatile float sink = x[(long)M * N];",
        Status.INCORRECT,
        f"{PROMOTED_ON_CPU}, sanitize",
        f"{TWICE}, sanitizers",
        protocol=FULL,
    ),
    "tells builds apart, promoted": Row(
        CPP % '(void)std::getenv("X");',
        Status.UNSUPPORTED,
        f"{PROMOTED_ON_CPU}, sanitize, fences",
        f"{TWICE}, sanitizers, fenced memory",
        protocol=FULL,
    ),
    "loosens its arithmetic": Row(
        '#pragma GCC optimize("Ofast")\n' + CPP % "", Status.UNSUPPORTED, "admit"
    ),
    "right, promoted": Row(
        CPP % "",
        Status.VERIFIED,
        f"{PROMOTED_ON_CPU}, sanitize, fences, {LOADED}, {APART}",
        f"{TWICE}, sanitizers, fenced memory, {AGAIN}, clocks, floor",
        protocol=FULL,
    ),
    "right, confirmed": Row(
        CPP % "",
        Status.VERIFIED,
        f"{PROMOTED_ON_CPU}, sanitize, fences, {LOADED}, {APART}",
        f"{TWICE}, sanitizers, fenced memory, {AGAIN}, clocks, floor",
        protocol=CONFIRM,
        champion=CPP % "// as fast",
    ),
    "right, promoted, in Python": Row(
        PYTHON,
        Status.VERIFIED,
        f"{TRIED_ON_CPU}, {LOADED}, {IN_TURN}",
        f"{TWICE}, {AGAIN}, clocks, floor",
        protocol=FULL,
        language="python",
    ),
}


@pytest.fixture(scope="module")
def on_cpu(shared_cache: Path) -> Iterator[Stand]:
    stand = opened(task(shared_cache))
    yield stand
    stand.close()


@pytest.mark.parametrize("name", ON_CPU)
def test_on_the_cpu(on_cpu: Stand, steps: Steps, name: str) -> None:
    ON_CPU[name].holds(on_cpu, steps)


BLOCK = f", start, {TURN}, time"


@pytest.mark.parametrize(
    ("champion", "status", "taken"),
    [
        ("no C", Status.BUILD_FAILED, ""),
        (
            CPP % LATER,
            Status.INCORRECT,
            f", start, {TURN}, verify, sanitize, fences, {LOADED}{BLOCK}",
        ),
    ],
)
def test_a_champion_that_fails_on_the_cpu(
    on_cpu: Stand, steps: Steps, champion: str, status: Status, taken: str
) -> None:
    row = Row(CPP % "", status, "", protocol=CONFIRM, champion=champion)
    with pytest.raises(ChampionFailed) as failed:
        row.judged(on_cpu)
    assert failed.value.status is status
    # In which of its processes it is seen to be wrong is chance.
    seen = re.sub(f"({BLOCK})+$", BLOCK, str(steps))
    assert seen == f"admit, build, sanitize{taken}"


READY_ON_DEVICE = "admit, build, profile, wait for baselines, start"
TRIED_ON_DEVICE = f"{READY_ON_DEVICE}, verify"


def on_gpu(
    kernel: str,
    status: Status,
    steps: str,
    checks: str = "",
    protocol: Depth = SCREEN,
    champion: str = "",
    *,
    clocks_hold: bool = True,
) -> Row:
    """A row whose kernel the fake driver has."""
    return Row(
        on_device(kernel),
        status,
        steps,
        checks,
        protocol,
        "cuda",
        champion,
        clocks_hold=clocks_hold,
    )


ON_DEVICE = {
    "another language": Row("", Status.UNSUPPORTED, ""),
    "has no plan": Row("no CUDA", Status.BUILD_FAILED, "admit, build", language="cuda"),
    "cannot be loaded": on_gpu("not_in_the_cubin", Status.BUILD_FAILED, READY_ON_DEVICE),
    "wrong": on_gpu("gelu_wrong", Status.INCORRECT, TRIED_ON_DEVICE, "correct"),
    "crashes": on_gpu(
        "gelu_at_wrong_address", Status.CRASHED, f"{TRIED_ON_DEVICE}, probe the device"
    ),
    "right": on_gpu(
        "gelu_right",
        Status.SCREENED,
        f"{TRIED_ON_DEVICE}, time, profile",
        f"{ONCE}, device undisturbed, clocks, floor",
    ),
    "right, and the clocks differ": on_gpu(
        "gelu_right",
        Status.SUSPECT,
        f"{TRIED_ON_DEVICE}, time",
        f"{ONCE}, device undisturbed, clocks, floor",
        clocks_hold=False,
    ),
    "wrong once it is timed": on_gpu(
        "gelu_wrong_later",
        Status.INCORRECT,
        f"{TRIED_ON_DEVICE}, time",
        f"{ONCE}, device undisturbed, G1 condition-scaled error",
    ),
    "right, promoted": on_gpu(
        "gelu_right",
        Status.VERIFIED,
        f"{TRIED_ON_DEVICE}, sanitize, {BLOCKS}, profile",
        f"{TWICE}, device undisturbed, clocks, floor",
        FULL,
    ),
    "right, confirmed": on_gpu(
        "gelu_right",
        Status.VERIFIED,
        "admit, build, profile, build, wait for baselines, start, verify, sanitize, "
        f"{BLOCKS}, profile",
        f"{TWICE}, device undisturbed, clocks, floor",
        CONFIRM,
        on_device("gelu_right") + "// as fast",
    ),
}


@pytest.fixture(scope="module")
def device_state() -> dict[str, str]:
    """What the fake driver is told to do."""
    return {"FAKE_CUDA": "well"}


@pytest.fixture(scope="module")
def device(
    tmp_path_factory: pytest.TempPathFactory, device_state: dict[str, str]
) -> Iterator[Stand]:
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o755)
    way = fake_access(fake_driver(cache), device_state)
    stand = opened(task(cache, "sm_90", "cuda"), machine_by(way))
    yield stand
    stand.close()


@pytest.fixture
def without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where neither of NVIDIA's tools is installed."""
    monkeypatch.setattr(device_tools.device_sanitizer, "find", lambda: None)
    monkeypatch.setattr(device_tools.nsight, "find_ncu", lambda: None)


@pytest.mark.usefixtures("without_tools")
@pytest.mark.parametrize("name", ON_DEVICE)
def test_on_a_device(device: Stand, steps: Steps, name: str) -> None:
    ON_DEVICE[name].holds(device, steps)


@pytest.mark.usefixtures("without_tools")
@pytest.mark.parametrize(
    ("champion", "status", "taken"),
    [
        ("no CUDA", Status.BUILD_FAILED, ""),
        (
            on_device("gelu_wrong_later"),
            Status.INCORRECT,
            ", wait for baselines, start, verify, sanitize, time, start, time",
        ),
        (
            on_device("gelu_at_wrong_address"),
            Status.CRASHED,
            ", wait for baselines, start, verify, sanitize, time, probe the device",
        ),
    ],
)
def test_a_champion_that_fails_on_a_device(
    device: Stand, steps: Steps, champion: str, status: Status, taken: str
) -> None:
    row = on_gpu("gelu_right", status, "", protocol=CONFIRM, champion=champion)
    with pytest.raises(ChampionFailed) as failed:
        row.judged(device)
    assert failed.value.status is status
    assert str(steps) == f"admit, build, profile, build{taken}"


def test_a_device_that_is_gone_is_probed_and_then_not_used(
    device: Stand, steps: Steps, device_state: dict[str, str]
) -> None:
    """The language is looked at before the device, and the device before anything is built."""
    device_state["FAKE_CUDA"] = "no_device"
    try:
        ready = f"{READY_ON_DEVICE}, probe the device"
        on_gpu("gelu_right", Status.HARNESS_ERROR, ready).holds(device, steps)
        steps.taken.clear()
        on_gpu("gelu_right", Status.HARNESS_ERROR, "").holds(device, steps)
        Row("", Status.UNSUPPORTED, "").holds(device, steps)
    finally:
        device_state["FAKE_CUDA"] = "well"
    on_gpu("gelu_wrong", Status.INCORRECT, TRIED_ON_DEVICE, "correct").holds(device, steps)


RACE = "__shared__ float seen[256]; seen[0] = v; if (seen[0] == 1.2345e37f) y[i] = 0;"
TRIED = "admit, build, start, verify"
SCHEDULES = f"{TRIED}, start, verify, start, verify"


def emulated_cuda(
    deed: str, status: Status, steps: str, checks: str = "", protocol: Depth = SCREEN
) -> Row:
    """A row for a kernel that does this after its work."""
    return Row(CUDA % deed, status, steps, checks, protocol, "cuda")


EMULATED = {
    "another language": Row("", Status.UNSUPPORTED, ""),
    "has no plan": Row("no CUDA", Status.BUILD_FAILED, "admit, build", language="cuda"),
    "does not build": emulated_cuda("no C", Status.BUILD_FAILED, "admit, build"),
    "wrong": emulated_cuda("y[i] += 1;", Status.INCORRECT, f"{TRIED}, explain", "correct"),
    "crashes": emulated_cuda("y[i + (1l << 40)] = 0;", Status.CRASHED, f"{TRIED}, explain"),
    "races": emulated_cuda(
        RACE, Status.INCORRECT, f"{SCHEDULES}, profile, explain", "correct, races"
    ),
    "right": emulated_cuda("", Status.SCREENED, f"{SCHEDULES}, profile", "correct, races"),
    "reads beside, promoted": emulated_cuda(
        "if (x[(long)M * N] == 3e38f) y[i] = 0;", Status.CRASHED, f"{TRIED}, explain", TWICE, FULL
    ),
    "tells builds apart, promoted": emulated_cuda(
        "// getenv(",
        Status.UNSUPPORTED,
        f"{SCHEDULES}, profile",
        f"{TWICE}, fenced memory, correct, races",
        FULL,
    ),
    "right, promoted": emulated_cuda(
        "",
        Status.SCREENED,
        f"{SCHEDULES}, profile, sanitize, profile",
        f"{TWICE}, fenced memory, correct, races, sanitizers",
        FULL,
    ),
    "right, confirmed beside a champion": Row(
        CUDA % "",
        Status.SCREENED,
        f"{SCHEDULES}, profile, sanitize, profile",
        f"{TWICE}, fenced memory, correct, races, sanitizers",
        CONFIRM,
        "cuda",
        "no CUDA",
    ),
}


@pytest.fixture(scope="module")
def emulated(shared_cache: Path) -> Iterator[Stand]:
    stand = opened(task(shared_cache, "sm_90", "cuda"))
    yield stand
    stand.close()


@pytest.mark.parametrize("name", EMULATED)
def test_emulated(emulated: Stand, steps: Steps, name: str) -> None:
    EMULATED[name].holds(emulated, steps)


INTERPRETED = {
    "has no plan": Row(
        triton("grid =", "mesh ="), Status.BUILD_FAILED, "admit, build", language="triton"
    ),
    "wrong": Row(
        triton("gelu(x + bias)", "gelu(x + bias) + 1"),
        Status.INCORRECT,
        f"{TRIED}, explain",
        "correct",
        language="triton",
    ),
    "right": Row(triton(), Status.SCREENED, f"{TRIED}, profile", "correct", language="triton"),
    "right, promoted": Row(triton(), Status.SCREENED, f"{TRIED}, profile", TWICE, FULL, "triton"),
}


@pytest.fixture(scope="module")
def interpreted(shared_cache: Path) -> Iterator[Stand]:
    stand = opened(task(shared_cache, "sm_90", "triton"))
    yield stand
    stand.close()


@pytest.mark.parametrize("name", INTERPRETED)
def test_interpreted(interpreted: Stand, steps: Steps, name: str) -> None:
    INTERPRETED[name].holds(interpreted, steps)
