"""A winner as a data set of flashinfer-bench: of its form, and nothing in it that was not found."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench.languages import PYTHON
from kernelwright.kernelbench.registry import get
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.test_compiled_forms import recipe_bundle
from kernelwright.tests.traces.export.test_hub import python_bundle
from kernelwright.traces.export import Bundle, WorkloadInputs, export
from kernelwright.traces.records import Status, candidate_id

MARK = "emulated, never timed on a device"


def with_workload(bundle: Bundle) -> Bundle:
    case = bundle.cases[0]
    arrays = {t.name: case.inputs[t.name] for t in bundle.inputs if t.is_index}
    axes = {"M": 17, "N": 5, "K": 9, "nnz": len(case.inputs.get("values", ()))}
    if bundle.problem == "softmax":
        axes = {"M": 6, "N": 11}
    reference = skeleton(get(bundle.problem), PYTHON)
    return replace(bundle, reference=reference, workload=WorkloadInputs("pubmed", axes, arrays))


BUNDLES = {
    "cpp": lambda: with_workload(kernels.spmm()),
    "cuda": lambda: with_workload(recipe_bundle("spmm_csr", "cuda")),
    "triton": lambda: with_workload(recipe_bundle("spmm_csr", "triton")),
    "python": lambda: with_workload(python_bundle()),
}


def read(folder: Path, kind: str) -> Any:
    [path] = (folder / kind).rglob("*.json*")
    return json.loads(path.read_text())


def safetensors(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    content = path.read_bytes()
    [size] = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    body = content[8 + size :]
    kinds = {"I32": np.int32, "I64": np.int64}
    return metadata, {
        name: np.frombuffer(body[slice(*each["data_offsets"])], kinds[each["dtype"]]).reshape(
            each["shape"]
        )
        for name, each in header.items()
    }


@pytest.mark.parametrize("language", BUNDLES)
def test_every_language_has_its_four_kinds_of_records(tmp_path: Path, language: str) -> None:
    bundle = BUNDLES[language]()
    export(bundle, "flashinfer", tmp_path / "out", unverified=True)
    definition = read(tmp_path / "out", "definitions")
    solution = read(tmp_path / "out", "solutions")
    workload = read(tmp_path / "out", "workloads")["workload"]
    known = [*definition["inputs"].values(), *definition["outputs"].values()]
    used = {axis for each in known for axis in each["shape"] or ()}
    assert used == set(definition["axes"]) == set(workload["axes"])
    assert list(definition["inputs"]) == [t.name for t in bundle.inputs]
    assert set(workload["inputs"]) == set(definition["inputs"])
    spec = solution["spec"]
    file, _, function = spec["entry_point"].partition("::")
    [source] = solution["sources"]
    assert (source["path"], spec["language"]) == (file, language)
    assert function in source["content"]
    assert spec["binding"] == ("torch" if language in ("cpp", "cuda") else None)
    assert solution["definition"] == definition["name"] == bundle.problem
    if bundle.problem == "spmm_csr":
        assert workload["axes"]["M_plus_1"] == workload["axes"]["M"] + 1
        assert definition["constraints"] == ["M_plus_1 == M+1"]
        blob = tmp_path / "out" / workload["inputs"]["indptr"]["path"]
        said, arrays = safetensors(blob)
        np.testing.assert_array_equal(arrays["indptr"], bundle.cases[0].inputs["indptr"])
        assert (MARK in said.get("caveat", "")) == bool(bundle.caveat)
    if bundle.caveat:
        texts = [p for p in (tmp_path / "out").rglob("*") if p.is_file() and "blob" not in str(p)]
        assert [p.name for p in texts if MARK not in p.read_text()] == []
        assert MARK in source["content"]


def test_the_trace_holds_what_was_measured_and_no_other_error(tmp_path: Path) -> None:
    bundle = BUNDLES["cpp"]()
    export(bundle, "flashinfer", tmp_path / "out")
    evaluation = read(tmp_path / "out", "traces")["evaluation"]
    measured = bundle.verdict.measurements[0]
    assert evaluation["status"] == "PASSED"
    assert evaluation["performance"] == {
        "latency_ms": measured.candidate.median_us / 1000,
        "reference_latency_ms": measured.baselines["torch eager"].median_us / 1000,
        "speedup_factor": 1.82,
    }
    assert evaluation["correctness"]["max_relative_error"] == "NaN"
    [check] = evaluation["correctness"]["extra"].values()
    assert check == {"worst": "0.2", "limit": "1", "passed": "yes"}
    assert evaluation["environment"]["hardware"] == "Example CPU 9000"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.SCREENED, None),
        (Status.SUSPECT, None),
        (Status.INCORRECT, "INCORRECT_NUMERICAL"),
        (Status.BUILD_FAILED, "COMPILE_ERROR"),
        (Status.CRASHED, "RUNTIME_ERROR"),
        (Status.TIMED_OUT, "TIMEOUT"),
    ],
)
def test_what_did_not_pass_has_no_times(tmp_path: Path, status: Status, said: str | None) -> None:
    bundle = BUNDLES["cpp"]()
    checks = {} if status.is_pass else {"checks": ()}
    found = kernels.verdict(bundle.source, "spmm_csr", status, **checks)
    export(replace(bundle, verdict=found), "flashinfer", tmp_path / "out", unverified=True)
    assert (tmp_path / "out" / "traces").is_dir() == bool(said)
    if said:
        evaluation = read(tmp_path / "out", "traces")["evaluation"]
        assert (evaluation["status"], evaluation["performance"]) == (said, None)
        assert bool(evaluation["correctness"]) == (said == "INCORRECT_NUMERICAL")
    else:
        assert "There is no trace" in (tmp_path / "out" / "README.md").read_text()


def test_what_was_only_emulated_has_no_trace(tmp_path: Path) -> None:
    export(BUNDLES["triton"](), "flashinfer", tmp_path / "out", unverified=True)
    assert not (tmp_path / "out" / "traces").exists()


CALLS = """
import json, sys
import numpy as np
import torch
from pathlib import Path
def load(text, name):
    Path(name + ".py").write_text(text)
    return __import__(name)
solution, definition = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
sys.path.insert(0, ".")
entry = load(solution["sources"][0]["content"], "entry").kernelwright_entry
reference = load(definition["reference"], "reference").run
cases = np.load("case.npz")
given = [torch.from_numpy(cases[name]) for name in definition["inputs"]]
wanted, tolerance = cases["wanted"], cases["tolerance"]
out = torch.full(wanted.shape, torch.nan)
entry(*given, out)
for found in (out, reference(*given)):
    assert (abs(found.numpy() - wanted) <= tolerance).all(), abs(found.numpy() - wanted).max()
"""


@pytest.mark.parametrize("language", ["python", pytest.param("triton", marks=pytest.mark.slow)])
def test_the_solution_and_the_reference_compute(tmp_path: Path, language: str) -> None:
    bundle = BUNDLES[language]()
    export(bundle, "flashinfer", tmp_path / "out", unverified=True)
    case, out = bundle.cases[0], bundle.outputs[0].name
    arrays: dict[str, Any] = {"wanted": case.outputs[out], "tolerance": case.tolerances[out]}
    np.savez(tmp_path / "case.npz", **case.inputs, **arrays)
    [solution] = (tmp_path / "out" / "solutions").rglob("*.json")
    [definition] = (tmp_path / "out" / "definitions").rglob("*.json")
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(solution), str(definition)],
        cwd=tmp_path,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", BUNDLES)
def test_flashinfer_benchs_own_models_take_it(tmp_path: Path, language: str) -> None:
    if importlib.util.find_spec("flashinfer_bench") is None:
        pytest.skip("flashinfer-bench is not installed")
    from flashinfer_bench.data import TraceSet

    bundle = BUNDLES[language]()
    export(bundle, "flashinfer", tmp_path / "out", unverified=True)
    found = TraceSet.from_path(str(tmp_path / "out"))
    assert list(found.definitions) == list(found.solutions) == list(found.workloads)
    assert bool(found.traces) == (language in ("cpp", "python"))


def test_what_has_no_place_in_it_is_refused(tmp_path: Path) -> None:
    bare = kernels.spmm()
    other = replace(with_workload(kernels.softmax()), inputs=(odd_input(),), cases=())
    whole = "class ModelNew:\n    pass\n"
    classes = replace(
        BUNDLES["python"](),
        source=whole,
        candidate=candidate_id(whole),
        verdict=kernels.verdict(whole, "softmax", language="python"),
    )
    for bundle, words in (
        (bare, "no naive code in Python"),
        (other, "tensors of uint8, which flashinfer-bench does not know"),
        (classes, "neither a launch plan"),
    ):
        with pytest.raises(UsageError, match=words) as refused:
            export(bundle, "flashinfer", tmp_path / "out")
        assert refused.value.hint
    assert not (tmp_path / "out").exists()


def odd_input() -> Any:
    return replace(kernels.softmax().inputs[0], dtype="uint8")
