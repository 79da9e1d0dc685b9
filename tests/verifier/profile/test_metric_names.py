"""Every counter that ncu is asked for is one that the chip knows, by NVIDIA's own list.

An unknown name makes ncu stop, and the candidate has no counters at all. The list comes with Triton
and needs no device; what begins with `launch__` is ncu's own and stands in no list.
"""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from kernelwright.traces.records import Counting
from kernelwright.verifier.profile.metrics import STALLS, load_packaged

CHIPS = {
    "sm_75": "TU102",
    "sm_80": "GA100",
    "sm_86": "GA102",
    "sm_89": "AD102",
    "sm_90": "GH100",
    "sm_100": "GB100",
    "sm_120": "GB202",
}
OF_BLACKWELL = ("sm_100", "sm_120")


@pytest.fixture(scope="module")
def triton_folder() -> Path:
    spec = importlib.util.find_spec("triton")
    folder = Path(spec.origin or "").parent / "backends" / "nvidia" if spec else Path("absent")
    if not (folder / "include" / "nvperf_host.h").exists():
        pytest.skip("this Triton does not bring NVIDIA's list of metrics")
    return folder


def known(chip: str, names: list[str], triton: Path, folder: Path) -> dict[str, bool]:
    """Which of the names the chip knows."""
    is_new = chip in {CHIPS[name] for name in OF_BLACKWELL}
    library = triton / "lib" / ("cupti-blackwell" if is_new else "cupti")
    program = folder / "known_names"
    source = Path(__file__).with_name("known_names.c")
    subprocess.run(
        [
            *("gcc", f"-I{triton / 'include'}", str(source), "-o", str(program)),
            *(f"-L{library}", "-lnvperf_host", f"-Wl,-rpath,{library}"),
        ],
        check=True,
    )
    said = subprocess.run(
        [program, chip], input="\n".join(names), capture_output=True, text=True, check=True
    ).stdout
    lines = [line.partition(" ") for line in said.splitlines()]
    return {name: word == "1" for word, _, name in lines}


@pytest.mark.parametrize("architecture", CHIPS)
def test_all_that_is_asked_for_is_known(
    architecture: str, triton_folder: Path, tmp_path: Path
) -> None:
    catalogue = load_packaged()
    asked = {
        name
        for which in catalogue.sets
        for tag in catalogue.judge
        for name in catalogue.list_collected(
            architecture,
            Counting(which=which, judged=catalogue.judge_metrics(architecture, [tag])),
        )
        if not name.startswith("launch__")
    }
    assert len(asked) > 40
    assert STALLS not in asked
    names = [*sorted(asked), "sm__no_such_thing.sum"]
    found = known(CHIPS[architecture], names, triton_folder, tmp_path)
    assert [name for name, is_known in found.items() if not is_known] == ["sm__no_such_thing.sum"]
