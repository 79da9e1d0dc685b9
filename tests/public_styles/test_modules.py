"""PyTorch modules in KernelBench's form, as people write them: each becomes a problem that tells a
right kernel from a wrong one, or is refused with its line and what to do.

`modules.toml` has a row for each file of `modules/`.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.config import Config, resolve
from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.tests.cli.conftest import environment
from kernelwright.tests.court import Court
from kernelwright.tests.public_styles.scripted_coder import (
    ADMITTED,
    MODEL,
    ROWS,
    Asked,
    First,
    ScriptedCoder,
    choose_first,
    name_kernel,
    read_improved,
    read_kernel,
    write_first,
)
from kernelwright.tests.sampling import one_in, some_of
from kernelwright.traces.records import Depth, Status
from kernelwright.workbench import tasks

HERE = Path(__file__).parent
REFUSED = [name for name in ROWS if name not in ADMITTED]
TRIED = some_of(
    ADMITTED,
    ("batchnorm", "hinge_loss", "causal_attention").__contains__,
)
"""In a sample: buffers, a loss, products under a mask."""
CAMPAIGNS = {"relu": "INCORRECT", "gelu_tanh": "BUILD_FAILED"}
"""Of these a whole campaign is run, and what becomes of its Coder's first kernel; `make modules`
runs those of all."""
LEAST = 25


@pytest.fixture(autouse=True)
def no_own_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test makes known is forgotten after it."""
    monkeypatch.setattr(registry, "_own", {})


@pytest.fixture(scope="module")
def config(shared_cache: Path) -> Config:
    return resolve({"cache_dir": str(shared_cache)}, environ={}).config


def file_of(name: str) -> Path:
    return HERE / "modules" / f"{name}.py"


@functools.cache
def trace_once(name: str, config: Config) -> str:
    """The text of the problem."""
    return registry.get(tasks.name_problem(config, str(file_of(name)))).text


def test_each_module_has_its_row_and_each_admitted_one_a_kernel() -> None:
    assert sorted(file.stem for file in (HERE / "modules").glob("*.py")) == sorted(ROWS)
    for folder in ("module_kernels", "module_improved"):
        assert sorted(file.stem for file in (HERE / folder).iterdir()) == sorted(ADMITTED)
    assert len(ROWS) >= LEAST
    for name in ROWS:
        assert file_of(name).read_text("utf-8").startswith("# ")
    for name in ADMITTED:
        assert ROWS[name]["wrong"][0] in read_kernel(name)
        is_changed = write_first(name) != read_kernel(name)
        assert is_changed is (choose_first(name) is not First.RIGHT)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_it_is_admitted(name: str, config: Config) -> None:
    registry.set_text(name, trace_once(name, config), f"{name}.py")
    checks = tasks.admit_problem(config, name)
    assert [check for check in checks if not check.passed] == []
    assert "right implementations have headroom" in {check.name for check in checks}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_line_and_a_remedy(name: str, config: Config) -> None:
    with pytest.raises(UsageError) as error:
        trace_once(name, config)
    assert ROWS[name]["words"] in str(error.value)
    found = re.match(rf"{name}\.py:(\d+): ", str(error.value))
    assert found, str(error.value)
    line = file_of(name).read_text("utf-8").splitlines()[int(found[1]) - 1]
    assert ROWS[name]["line"] in line
    # No general words: what to write in place of it.
    hint = error.value.hint or ""
    assert "torch.export must be able" not in hint
    assert len(hint.split()) > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_it_tells_right_kernels_from_a_wrong_one(name: str, config: Config, court: Court) -> None:
    registry.set_text(name, trace_once(name, config), f"{name}.py")
    for right in (read_kernel(name), read_improved(name)):
        verdict = court.judge(right, name, Depth.SCREEN)
        assert verdict.status is Status.SCREENED, verdict.reasons
    wrong = court.judge(read_kernel(name).replace(*ROWS[name]["wrong"]), name, Depth.SCREEN)
    assert wrong.status is Status.INCORRECT, wrong.reasons


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize("name", one_in(2, CAMPAIGNS))
def test_a_coder_repairs_its_kernel_and_makes_it_faster(
    name: str, tmp_path: Path, shared_cache: Path
) -> None:
    with ScriptedCoder(name) as coder:
        command = ("run", str(file_of(name)), "--workflow", "forge", "--model", MODEL)
        # torch.compile takes longer than all the rest: it is left out, by name.
        short = ("--workload", "tiny", "--max-evals", "3", "--max-preparation", "5s", "--json")
        done = subprocess.run(
            [sys.executable, "-m", "kernelwright", *command, "--target", "cpu", *short],
            env=environment(tmp_path, shared_cache) | {"OPENAI_BASE_URL": coder.url},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["best"]["status"] == "VERIFIED"
    assert name_kernel(name, told["best"]["candidate"]) in ("hand-written", "improved")
    assert told["by_status"][CAMPAIGNS[name]] == 1
    assert told["evaluated"] == 3
    assert coder.asked == {Asked.WRITE: 1, Asked.REPAIR: 1, Asked.OPTIMISE: 1}
