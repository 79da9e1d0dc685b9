"""The device runner over a fake driver: what is copied, launched, timed, checked and refused."""

from __future__ import annotations

import struct
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kernelwright.errors import SandboxError
from kernelwright.sandbox.plan.model import (
    ZERO_FILL,
    Argument,
    ArgumentKind,
    Launch,
    Launches,
    Scratch,
)
from kernelwright.sandbox.run import device
from kernelwright.sandbox.run.binary import compiler
from kernelwright.sandbox.run.call_table import Passed, Role, integer
from kernelwright.sandbox.run.process import RunFault
from kernelwright.traces.records import Status
from kernelwright.verifier.clock.clocks import Clocks
from kernelwright.verifier.clock.drawn_words import sum_outputs as outputs_told

pytestmark = pytest.mark.jail

if TYPE_CHECKING:
    from .conftest import Stage

GUARD = 4096

X = Argument(ArgumentKind.TENSOR, 0)
Y = Argument(ArgumentKind.TENSOR, 1)


def bits(value: float) -> Argument:
    return Argument(ArgumentKind.FLOAT32, struct.unpack("<i", struct.pack("<f", value))[0])


def once(kernel: str, *arguments: Argument, **more: object) -> Launches:
    given = arguments or (X, Y)
    return Launches((kernel,), (Launch(0, arguments=given, **more),))  # type: ignore[arg-type]


SCALE = once("scale", Argument(ArgumentKind.INTEGER, 16), bits(2.5), X, Y)


def test_a_call_computes_what_its_kernels_say(stage: Stage) -> None:
    slot = stage.place(0, SCALE)
    runner = stage.start({"scale": 4})
    timed = runner.call(0, timeout_s=10)
    np.testing.assert_array_equal(slot.y, 2.5 * slot.x)
    assert timed.claimed_ns >= 1
    assert timed.host_ns >= 1


def test_what_is_told_of_the_outputs_is_what_they_are(stage: Stage) -> None:
    slots = [stage.place(number, SCALE, words=2048) for number in range(2)]
    runner = stage.start({"scale": 4})
    timed = runner.call(0, timeout_s=10)
    assert timed.told_sum == outputs_told({"y": slots[0].y}, timed.choice)
    assert timed.told_sum != outputs_told({"y": slots[0].y + 1}, timed.choice)
    both = runner.replay(0, 2, timeout_s=10)
    assert both.told_sum == sum(outputs_told({"y": slot.y}, both.choice) for slot in slots)


def test_kernels_wait_for_inputs_that_are_copied_late(stage_for: Callable[..., Stage]) -> None:
    stage = stage_for("slow_copies")
    slot = stage.place(0, SCALE)
    stage.start({"scale": 4}).call(0, timeout_s=10)
    np.testing.assert_array_equal(slot.y, 2.5 * slot.x)


def test_the_driver_may_make_large_files_in_memory_and_lock_pages(stage: Stage) -> None:
    """Else a signal that a jail's limit causes looks like the candidate's crash."""
    stage.place(0, SCALE)
    runner = stage.start({"scale": 4})
    told = (Path(f"/proc/{pid}/limits").read_text() for pid in ("self", runner.pid))
    ours, its = ({row[:26].strip(): row[26:].split() for row in t.splitlines()} for t in told)
    assert its["Max locked memory"] == ours["Max locked memory"]
    size = its["Max file size"][0]
    assert size in ("unlimited", ours["Max file size"][0]) or int(size) >= 64 << 30


def test_slots_are_apart(stage: Stage) -> None:
    slots = [stage.place(number, SCALE) for number in range(3)]
    for number, slot in enumerate(slots):
        slot.x[...] += 100 * number
    runner = stage.start({"scale": 4})
    runner.ping(0, 3)
    for number in (2, 0, 1):
        runner.call(number, timeout_s=10)
    for slot in slots:
        np.testing.assert_array_equal(slot.y, 2.5 * slot.x)


def test_an_untouched_output_keeps_its_poison(stage: Stage) -> None:
    slot = stage.place(0, once("nothing"))
    stage.start({"nothing": 2}).call(0, timeout_s=10)
    assert set(slot.y.view(np.uint32)) == {0x7FC0DEAD}


def test_guard_bands_come_back_as_they_are_left(stage: Stage) -> None:
    slots = [stage.place(0, once("nothing")), stage.place(1, once("writes_before"))]
    before = [[band.copy() for band in slot.y_guards] for slot in slots]
    stage.start({"nothing": 2}).call(0, timeout_s=10)
    stage.start({"writes_before": 2}).call(1, timeout_s=10)
    assert all(map(np.array_equal, before[0], slots[0].y_guards))
    changed = np.flatnonzero(before[1][0] != slots[1].y_guards[0])
    assert list(changed) == [4095]
    assert np.array_equal(before[1][1], slots[1].y_guards[1])


@pytest.mark.parametrize(
    ("kernel", "words"),
    [("writes_input", "x of 64 bytes, at byte 6"), ("writes_before_input", "at byte -2")],
)
def test_a_kernel_that_writes_its_input_is_found_out(stage: Stage, kernel: str, words: str) -> None:
    stage.place(0, once(kernel))
    runner = stage.start({kernel: 2})
    with pytest.raises(RunFault, match=f"wrote to an input: .*{words}") as found:
        runner.call(0, timeout_s=10)
    assert found.value.status is Status.CRASHED


def test_launches_follow_each_other_with_work_buffers_zeros_and_offsets(stage: Stage) -> None:
    work = Argument(ArgumentKind.SCRATCH, 0)
    second = Argument(ArgumentKind.TENSOR, 1, offset=8)
    launches = Launches(
        ("copy_first", "adds"),
        (
            Launch(ZERO_FILL, arguments=(Y, Argument(ArgumentKind.INTEGER, 64))),
            Launch(0, arguments=(X, work)),
            Launch(1, arguments=(work, second)),
            Launch(1, arguments=(work, second)),
        ),
        (Scratch("partial", "float32", (4,)),),
    )
    slot = stage.place(0, launches)
    stage.start({"copy_first": 2, "adds": 2}).call(0, timeout_s=10)
    assert list(slot.y) == [0, 0, 2, *[0] * 13]


def test_work_buffers_are_poisoned_as_the_referee_chose(stage: Stage) -> None:
    launches = Launches(
        ("copy_first",),
        (Launch(0, arguments=(Argument(ArgumentKind.SCRATCH, 0, offset=28), Y)),),
        (Scratch("partial", "float32", (8,)),),
    )
    slot = stage.place(0, launches)
    slot.scratch[0].view(np.uint32)[0] = 0xFFD1BEEF
    stage.start({"copy_first": 2}).call(0, timeout_s=10)
    assert slot.y.view(np.uint32)[0] == 0xFFD1BEEF


def test_instances_of_templates_have_mangled_names(stage: Stage) -> None:
    slot = stage.place(0, once("_Z5scaleIfLi4EEvv"))
    stage.start({"_Z5scaleIfLi4EEvv": 2}).call(0, timeout_s=10)
    assert slot.y[0] == 4


def told(slot: np.ndarray) -> dict[str, float]:
    names = (
        "flushed_mib",
        "resets",
        "persisting",
        "grid",
        "block_y",
        "shared",
        "cluster",
        "graph",
        "uploads",
        "held_mib",
        "copied_bytes",
    )
    return dict(zip(names, slot.tolist(), strict=False))


def test_geometry_arrives_and_the_cache_is_flushed_before_each_call(stage: Stage) -> None:
    launches = once(
        "tells", grid=(6, 1, 1), block=(32, 4, 1), shared_bytes=100 << 10, cluster=(2, 1, 1)
    )
    slots = [stage.place(number, launches) for number in range(2)]
    runner = stage.start({"tells": 2})
    runner.call(0, timeout_s=10)
    for number, slot in enumerate(slots):
        runner.call(number, timeout_s=10)
        found = told(slot.y)
        # Nothing lies in the cache, and no share of it is set aside; two dry calls come before.
        assert (found["flushed_mib"], found["resets"], found["persisting"]) == (3 * 256, 3, 0)
        assert (found["grid"], found["block_y"], found["cluster"]) == (6, 4, 2)
        assert found["shared"] == 100 << 10
        assert found["graph"] == 0


def test_inputs_of_a_warm_call_are_copied_once_more_behind_the_flush(stage: Stage) -> None:
    slot = stage.place(0, once("tells"))
    scaled = stage.place(1, SCALE)
    runner = stage.start({"tells": 2})
    runner.call(0, timeout_s=10)
    assert told(slot.y)["copied_bytes"] == 0
    runner.warm()
    runner.call(0, timeout_s=10)
    found = told(slot.y)
    assert found["copied_bytes"] == slot.x.nbytes + 2 * GUARD
    assert (found["flushed_mib"], found["resets"]) == (3 * 256, 3)
    runner = stage.start({"scale": 4})
    runner.warm()
    for _ in range(3):
        scaled.x[...] += 1
        runner.call(1, timeout_s=10)
        np.testing.assert_array_equal(scaled.y, 2.5 * scaled.x)


def test_wide_clusters_are_asked_for(stage: Stage) -> None:
    slot = stage.place(0, once("tells", grid=(16, 1, 1), cluster=(16, 1, 1)))
    stage.start({"tells": 2}).call(0, timeout_s=10)
    assert told(slot.y)["cluster"] == 16


def test_later_inputs_are_not_on_the_device_during_a_call(stage: Stage) -> None:
    slots = [stage.place(number, once("tells")) for number in range(3)]
    runner = stage.start({"tells": 2})
    for number in range(3):
        runner.call(number, timeout_s=10)
    copies = [told(slot.y)["uploads"] for slot in slots]
    each = copies[0]
    assert copies == [each, 2 * each, 3 * each]


def test_addresses_change_from_call_to_call(stage: Stage) -> None:
    slot = stage.place(0, once("tells_address"))
    runner = stage.start({"tells_address": 2})
    seen = set()
    for _ in range(8):
        runner.call(0, timeout_s=10)
        address = int(slot.y.view(np.uint64)[0])
        assert address % 256 == 0
        seen.add(address)
    assert len(seen) == 8


def test_a_graph_holds_all_slots(stage: Stage) -> None:
    slots = [stage.place(number, once("tells")) for number in range(4)]
    runner = stage.start({"tells": 2})
    runner.call(0, timeout_s=10)
    timed = runner.replay(0, 4, timeout_s=10)
    assert [told(slot.y)["graph"] for slot in slots] == [1] * 4
    assert told(slots[0].y)["flushed_mib"] == 3 * 256
    assert told(slots[1].y)["flushed_mib"] == 0
    assert timed.claimed_ns >= 1


def test_events_time_the_kernels_and_not_the_flush(stage: Stage) -> None:
    stage.place(0, once("takes_a_while", X, bits(30.0)))
    stage.place(1, once("nothing"))
    runner = stage.start({"takes_a_while": 2})
    timed = runner.call(0, timeout_s=20)
    assert timed.claimed_ns >= 30_000_000
    assert timed.host_ns >= 30_000_000


def test_a_ping_with_flushes_does_all_that_a_call_does_but_the_launches(stage: Stage) -> None:
    slot = stage.place(0, once("tells"))
    runner = stage.start({"tells": 2})
    runner.call(0, timeout_s=10)
    runner.ping()
    runner.ping(0, 3)
    runner.call(0, timeout_s=10)
    found = told(slot.y)
    assert (found["flushed_mib"], found["resets"]) == (256 * (3 + 2 + 1), 4)


def test_many_launches_are_enqueued_behind_as_many_flushes_as_they_need(stage: Stage) -> None:
    """Else a plan of many launches pays for the host, and a baseline of as many does not."""
    launches = once("tells")
    many = Launches(
        ("tells", "nothing"), (*launches.launches, *[Launch(1, arguments=(X, Y))] * 400)
    )
    slot = stage.place(0, many)
    runner = stage.start({"tells": 2, "nothing": 2})
    flushed = []
    for table in (many.pack(), launches.pack()):
        runner.expect(table)
        runner.call(0, timeout_s=10)
        runner.call(0, timeout_s=10)
        flushed.append(told(slot.y)["flushed_mib"])
    assert flushed[0] > 3 * 256
    assert flushed[1] == 3 * 256


@pytest.mark.timed
def test_a_device_that_wakes_up_slowly_charges_no_call_for_it(
    stage_for: Callable[..., Stage],
) -> None:
    stage = stage_for("rested=3000")
    stage.place(0, once("nothing"))
    runner = stage.start({"nothing": 2})
    seen = []
    for _ in range(12):
        time.sleep(0.02)
        seen.append(runner.call(0, timeout_s=10).wall_ns / 1e3)
    assert sorted(seen)[6] < 1000


@pytest.mark.timed
def test_events_count_where_the_host_wakes_up_late_now_and_then(
    stage_for: Callable[..., Stage],
) -> None:
    stage = stage_for("jitter=60")
    stage.place(0, once("nothing"))
    runner = stage.start({"nothing": 2})
    clocks = Clocks()
    calls = [runner.call(0, timeout_s=10) for _ in range(40)]
    counted = [clocks.add(call, runner.clean, 1, overhead_us=runner.overhead_us) for call in calls]
    as_claimed = [us == call.claimed_ns / 1e3 for us, call in zip(counted, calls, strict=True)]
    assert sum(as_claimed) > 30


@pytest.mark.parametrize(
    ("kernel", "more", "status", "words"),
    [
        ("wrong_address", {}, Status.CRASHED, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("breaks_the_device", {}, Status.HARNESS_ERROR, "CUDA_ERROR_ECC_UNCORRECTABLE"),
        ("nothing", {"block": (999, 1, 1)}, Status.RESOURCE, "LAUNCH_OUT_OF_RESOURCES"),
        ("nothing", {"block": (1024, 2, 1)}, Status.CRASHED, "block 1024 x 2 x 1"),
        ("nothing", {"shared_bytes": 300 << 10}, Status.RESOURCE, "307200 bytes of dynamic"),
    ],
)
def test_failures_have_a_status_and_the_drivers_words(
    stage: Stage, kernel: str, more: dict[str, object], status: Status, words: str
) -> None:
    stage.place(0, once(kernel, **more))
    runner = stage.start({kernel: 2})
    with pytest.raises(RunFault, match=words) as found:
        runner.call(0, timeout_s=10)
    assert found.value.status is status


def test_a_kernel_that_hangs_is_killed_at_its_deadline(stage: Stage) -> None:
    stage.place(0, once("hangs"))
    runner = stage.start({"hangs": 2})
    started = time.monotonic()
    with pytest.raises(RunFault, match=r"no answer within 1\.0 s") as found:
        runner.call(0, timeout_s=1.0)
    assert found.value.status is Status.TIMED_OUT
    assert time.monotonic() - started < 30
    # The next process finds the device as it was.
    slot = stage.place(1, SCALE)
    stage.start({"scale": 4}).call(1, timeout_s=10)
    assert slot.y[0] == 2.5


def test_a_cubin_without_the_kernel_is_a_failed_build(stage: Stage) -> None:
    with pytest.raises(RunFault, match="the cubin has no kernel missing") as found:
        stage.start({"missing": 1})
    assert found.value.status is Status.BUILD_FAILED


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (b"", "ends too early"),
        (struct.pack("<q", 1), "ends too early"),
        (struct.pack("<q", -5), "-5 as a number of launches"),
        (once("scale", X, Y, Argument(ArgumentKind.TENSOR, 7), Y).pack(), "names buffer 7 of 2"),
        (once("scale", X, Y).pack(), "scale has 4 parameters, and the plan passes 2 arguments"),
        (once("scale", X, Y, X, Y, grid=(0, 1, 1)).pack(), "0 as a grid"),
        (Launches(("k",), (Launch(3),)).pack(), "3 as a kernel"),
        (Launches((), (Launch(ZERO_FILL, arguments=(Y,)),)).pack(), "takes two arguments"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(stage: Stage, table: bytes, words: str) -> None:
    stage.place(0, SCALE, table=table)
    runner = stage.start({"scale": 4})
    with pytest.raises(RunFault, match=words) as found:
        runner.call(0, timeout_s=10)
    assert found.value.status is Status.BUILD_FAILED


@pytest.mark.parametrize(
    ("broken", "status"), [("small", Status.RESOURCE), ("crowded", Status.HARNESS_ERROR)]
)
def test_too_little_memory_is_told_with_figures(
    stage_for: Callable[..., Stage], broken: str, status: Status
) -> None:
    stage = stage_for(broken)
    stage.place(0, once("nothing"))
    runner = stage.start({"nothing": 2})
    with pytest.raises(RunFault, match=r"4 MiB of device memory are needed, 2 MiB of") as found:
        runner.call(0, timeout_s=10)
    assert found.value.status is status


@pytest.mark.parametrize(
    "region",
    [
        Passed(Role.INPUT, 65536, 5 << 30),
        Passed(Role.INPUT, 100, 64),
        Passed(Role.OUTPUT, (1 << 22) - 64, 64),
    ],
)
def test_a_call_that_points_outside_of_its_memory_is_not_followed(
    stage: Stage, region: Passed
) -> None:
    stage.place(0, once("nothing"))
    behind = [Passed(Role.OUTPUT, 8192, 64), Passed(Role.INPUT, 65536, 8)]
    stage.write(0, [integer(4), integer(4), region, *behind])
    with pytest.raises(RunFault) as found:
        stage.start({"nothing": 2}).call(0, timeout_s=10)
    assert found.value.status is Status.CRASHED
    assert "outside of its memory" in found.value.log


def test_a_device_that_cannot_be_used_is_our_failure(stage_for: Callable[..., Stage]) -> None:
    for broken, words in (
        ("no_device", "CUDA_ERROR_NO_DEVICE"),
        ("no_context", "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    ):
        with pytest.raises(SandboxError, match=words):
            stage_for(broken).start({"nothing": 2})


def test_our_declarations_are_those_of_the_drivers_header(tmp_path: Path) -> None:
    wheel = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "include"
    folder = next(
        (f for f in (wheel, Path("/usr/local/cuda/include")) if (f / "cuda.h").exists()), None
    )
    if folder is None:
        pytest.skip("cuda.h is not installed (pip install 'kernelwright[cuda]')")
    done = subprocess.run(
        [
            compiler(),
            "-std=c++20",
            "-fsyntax-only",
            f"-I{folder}",
            f"-I{Path(device.__file__).parent}",
            str(Path(__file__).parent / "abi_check.cpp"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]
