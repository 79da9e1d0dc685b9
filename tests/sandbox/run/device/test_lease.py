"""One process at a time on a device; ill ones stay out of use until a probe finds them well."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.run.device.device_files import DeviceFiles
from kernelwright.sandbox.run.device.health import Health, probe
from kernelwright.sandbox.run.device.lease import DeviceBook

pytestmark = pytest.mark.jail

WELL, ILL = Health(), Health("memory does not hold what was set")


def well(_: str) -> Health:
    return WELL


def ill(_: str) -> Health:
    return ILL


HOLDER = """
import sys, time
from pathlib import Path
from kernelwright.sandbox.run.device.health import Health
from kernelwright.sandbox.run.device.lease import DeviceBook
with DeviceBook.in_cache(Path(sys.argv[1])).lease([sys.argv[2]], lambda uuid: Health()):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the device a."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), "a"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_device_is_held_by_one_process(tmp_path: Path, held: subprocess.Popen[str]) -> None:
    assert f"process {held.pid}" in DeviceBook.in_cache(tmp_path).holder("a")
    with (
        pytest.raises(PrerequisiteError, match=f"a is held by process {held.pid}"),
        DeviceBook.in_cache(tmp_path).lease(["a"], well),
    ):
        pass


def test_the_next_free_device_is_taken(tmp_path: Path, held: subprocess.Popen[str]) -> None:
    with DeviceBook.in_cache(tmp_path).lease(["a", "b"], well) as found:
        assert found.uuid == "b"
    assert held.poll() is None


def test_a_lease_goes_with_its_holder(tmp_path: Path, held: subprocess.Popen[str]) -> None:
    held.kill()
    held.wait()
    assert DeviceBook.in_cache(tmp_path).holder("a") == ""
    with DeviceBook.in_cache(tmp_path).lease(["a"], well) as found:
        assert found.uuid == "a"


def test_one_waits_for_a_device(tmp_path: Path, held: subprocess.Popen[str]) -> None:
    from threading import Timer

    timer = Timer(0.3, held.kill)
    timer.start()
    with DeviceBook.in_cache(tmp_path).lease(["a"], well, timeout_s=60) as found:
        assert found.uuid == "a"
    timer.join()


def test_a_lease_ends_with_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with DeviceBook.in_cache(tmp_path).lease(["a"], well):
            assert DeviceBook.in_cache(tmp_path).holder("a")
        with pytest.raises(ZeroDivisionError), DeviceBook.in_cache(tmp_path).lease(["a"], well):
            raise ZeroDivisionError
    assert DeviceBook.in_cache(tmp_path).holder("a") == ""


def test_a_device_that_stays_ill_is_not_given_out(tmp_path: Path) -> None:
    with DeviceBook.in_cache(tmp_path).lease(["a"], well) as found:
        assert not found.recover(ill, "a kernel hung").is_well
    note = DeviceBook.in_cache(tmp_path).why_quarantined("a")
    assert note is not None
    assert note.reason == "a kernel hung; memory does not hold what was set"
    assert abs(note.since - time.time()) < 3600
    with (
        pytest.raises(PrerequisiteError, match=r"a is in quarantine \(a kernel hung.*still ill"),
        DeviceBook.in_cache(tmp_path).lease(["a"], ill),
    ):
        pass
    with DeviceBook.in_cache(tmp_path).lease(["a", "b"], ill) as found:
        assert found.uuid == "b"


def test_a_device_that_is_well_again_comes_out(tmp_path: Path) -> None:
    with DeviceBook.in_cache(tmp_path).lease(["a"], well) as found:
        found.quarantine("it hung")
    with DeviceBook.in_cache(tmp_path).lease(["a"], well) as found:
        assert found.uuid == "a"
    assert DeviceBook.in_cache(tmp_path).why_quarantined("a") is None


def test_a_device_that_recovers_at_once_is_not_put_away(tmp_path: Path) -> None:
    with DeviceBook.in_cache(tmp_path).lease(["a"], well) as found:
        assert found.recover(well, "a kernel hung").is_well
    assert DeviceBook.in_cache(tmp_path).why_quarantined("a") is None


def test_a_damaged_note_keeps_the_device_out(tmp_path: Path) -> None:
    with DeviceBook.in_cache(tmp_path).lease(["a"], well) as found:
        found.quarantine("it hung")
    (tmp_path / "devices" / "a.quarantine").write_text("{")
    note = DeviceBook.in_cache(tmp_path).why_quarantined("a")
    assert note is not None
    assert "cannot be read" in note.reason


def test_without_devices_there_is_none(tmp_path: Path) -> None:
    with (
        pytest.raises(PrerequisiteError, match="no device to lease"),
        DeviceBook.in_cache(tmp_path).lease([], well),
    ):
        pass


Access_to = Callable[..., DeviceFiles]


def test_the_probe_tells_what_a_device_is(access_to: Access_to, cache: Path) -> None:
    health = probe(Workshop(BareJail(), cache), access_to())
    assert health.is_well, health.reason
    assert health.facts["name"] == "Fake GPU"
    assert health.facts["l2_bytes"] == str(1 << 20)
    assert (health.facts["major"], health.reads_host_memory) == ("9", False)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("bad_memory", "memory does not hold what was copied"),
        ("no_device", "CUDA_ERROR_NO_DEVICE"),
        ("no_context", "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    ],
)
def test_the_probe_tells_what_is_wrong(
    access_to: Access_to, cache: Path, broken: str, words: str
) -> None:
    health = probe(Workshop(BareJail(), cache), access_to(broken))
    assert not health.is_well
    assert words in health.reason


def test_a_probe_that_hangs_is_ended(access_to: Access_to, cache: Path) -> None:
    health = probe(Workshop(BareJail(), cache), access_to("hang"), timeout_s=1.0)
    assert health.reason == "the probe had no answer within 1 s"
