"""The bundle of a first contact: nothing that was kept is lost, whatever ended the run."""

from __future__ import annotations

import tarfile
from pathlib import Path

from kernelwright.benchmarks.contact.records import Records, Scene, unpack
from kernelwright.tests.sandbox.run.device.fake_nvml import H200

SCENE = Scene("a device", "580.95.05", "sm_90", "2026-11-29", "python it", True)
ROOT = Path(__file__).parents[2]


def test_of_two_records_of_a_unit_the_later_one_counts(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for number in range(2):
        records.add("facts", "one", value=number)
    records.add("facts", "two", value=2)
    assert {u: r["value"] for u, r in records.of("facts").items()} == {"one": 1, "two": 2}
    assert records.of("tests") == {}


def test_a_line_that_was_cut_off_costs_that_line_alone(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.add("facts", "one", value=1)
    with (tmp_path / "records" / "facts.jsonl").open("a") as file:
        file.write('{"unit": "two", "val')
    records.add("facts", "three", value=3)
    assert list(Records(tmp_path).of("facts")) == ["one", "three"]


def test_no_path_of_this_machine_is_kept(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.add("facts", "one", said=f"{ROOT}/sandbox/run.py and {Path.home()}/.cache")
    assert records.of("facts")["one"]["said"] == "./sandbox/run.py and ~/.cache"


def test_nothing_that_tells_one_device_from_all_others_is_kept(tmp_path: Path) -> None:
    records = Records(tmp_path)
    uuid = H200["nvmlDeviceGetUUID"]
    records.add("facts", "one", said=f"assert '{uuid}' == ''")
    assert records.of("facts")["one"]["said"] == "assert 'GPU-…' == ''"


def test_a_bundle_is_read_as_its_folder_is(tmp_path: Path) -> None:
    records = Records(tmp_path / "made")
    records.ask(SCENE, {"problems": ["bias_gelu"]})
    records.add("facts", "one", value=1)
    (tmp_path / "made" / "facts.log").write_text("not for others")
    packed = records.pack()
    with tarfile.open(packed) as archive:
        assert sorted(archive.getnames()) == ["asked.json", "records/facts.jsonl"]
        assert {member.uname for member in archive} == {""}
    found = unpack(packed, tmp_path / "read")
    assert found.asked() == (SCENE, {"problems": ["bias_gelu"]})
    assert (
        found.of("facts") == records.of("facts") == unpack(tmp_path / "made", tmp_path).of("facts")
    )


def test_a_part_is_forgotten_alone(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.add("facts", "one")
    records.add("tests", "one")
    records.forget("facts")
    assert not records.of("facts")
    assert records.of("tests")
