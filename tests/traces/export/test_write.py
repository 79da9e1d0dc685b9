"""Where an export may be written, what it refuses, and that nothing of the machine leaks."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import NotDiscriminatingError, UnknownNameError, UsageError
from kernelwright.tests.traces.export import kernels
from kernelwright.traces.export import Bundle, Case, TensorSpec, export
from kernelwright.traces.records import (
    Capability,
    Check,
    Depth,
    Enforcement,
    Isolation,
    Status,
    Verdict,
)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_source_form_holds_kernel_record_and_readme(tmp_path: Path) -> None:
    bundle = kernels.spmm()
    paths = export(bundle, "source", tmp_path / "out")
    assert [path.name for path in paths] == [
        "LICENSE-NOTE.md",
        "MANIFEST.json",
        "README.md",
        "plan.json",
        "provenance.json",
        "record.json",
        "spmm_csr.cpp",
    ]
    assert (tmp_path / "out" / "spmm_csr.cpp").read_text() == bundle.source
    record = Verdict.model_validate_json((tmp_path / "out" / "record.json").read_text())
    assert record.status is Status.VERIFIED
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "void spmm_csr(int M, int N, int K, int nnz, const int* indptr" in readme
    assert "| pubmed | torch eager | 1.82× | 1.75–1.90 | 812 µs | 40 |" in readme
    assert "| machine | Example CPU 9000 |" in readme
    assert "| date | 2026-09-21" in readme
    assert "**VERIFIED** (confirm protocol, native)" in readme


def test_a_prepared_kernel_leaves_as_source_with_both_functions(tmp_path: Path) -> None:
    bundle = kernels.spmm(is_prepared=True)
    with pytest.raises(UsageError, match="makes a plan of its pattern"):
        export(bundle, "package", tmp_path / "package")
    export(bundle, "source", tmp_path / "out")
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    prepare, entry = plan["signature"]["declaration"].splitlines()
    assert prepare == (
        'extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr, '
        "const int* indices, void* plan);"
    )
    assert entry.endswith("const float* B, float* C, const void* plan);")
    readme = (tmp_path / "out" / "README.md").read_text()
    assert prepare in readme
    assert entry in readme
    assert "made once for each pattern" in readme


def test_the_build_line_of_the_readme_works(tmp_path: Path) -> None:
    export(kernels.softmax(), "source", tmp_path / "out")
    readme = (tmp_path / "out" / "README.md").read_text()
    [line] = re.findall(r"^Build: `(.*)`$", readme, re.MULTILINE)
    subprocess.run(line.split(), cwd=tmp_path / "out", check=True)
    assert (tmp_path / "out" / "softmax.so").is_file()


@pytest.mark.parametrize("form", ["source", "package"])
def test_manifest_lists_every_file(tmp_path: Path, form: str) -> None:
    import hashlib

    paths = export(kernels.spmm(), form, tmp_path / "a" / "b")
    found = contents(tmp_path / "a" / "b")
    assert sorted(found) == [p.relative_to(tmp_path / "a" / "b").as_posix() for p in paths]
    listed = json.loads(found.pop("MANIFEST.json"))["files"]
    assert listed == {name: hashlib.sha256(text).hexdigest() for name, text in found.items()}


def test_same_bundle_gives_same_files(tmp_path: Path) -> None:
    export(kernels.spmm(), "package", tmp_path / "one")
    export(kernels.spmm(), "package", tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_an_earlier_export_is_replaced_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(kernels.softmax(), "package", out)
    export(kernels.spmm(), "source", out)
    assert "spmm_csr.cpp" in contents(out)
    assert not any("softmax" in name for name in contents(out))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_foreign_and_edited_folders_stay_as_they_are(tmp_path: Path) -> None:
    foreign, edited, file = tmp_path / "foreign", tmp_path / "edited", tmp_path / "file"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match=r"holds thesis\.tex"):
        export(kernels.spmm(), "source", foreign)
    assert contents(foreign) == {"thesis.tex": b"mine"}
    export(kernels.spmm(), "source", edited)
    (edited / "spmm_csr.cpp").write_text("// my own version")
    with pytest.raises(UsageError, match=r"spmm_csr\.cpp, which is not as an export wrote it"):
        export(kernels.spmm(), "source", edited)
    assert contents(edited)["spmm_csr.cpp"] == b"// my own version"
    file.write_text("mine")
    with pytest.raises(UsageError, match="not a folder"):
        export(kernels.spmm(), "source", file)
    (tmp_path / "link").symlink_to(foreign)
    with pytest.raises(UsageError, match="not a folder"):
        export(kernels.spmm(), "source", tmp_path / "link")
    with pytest.raises(UsageError, match="cannot be written"):
        export(kernels.spmm(), "source", file / "below")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["edited", "file", "foreign", "link"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert export(kernels.spmm(), "source", tmp_path / "out")


def test_an_unknown_form_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        export(kernels.spmm(), "packages", tmp_path / "out")
    assert "package" in caught.value.hint


def test_checks_that_differ_in_the_workload_share_a_row(tmp_path: Path) -> None:
    checks = [
        Check(name=f"correct on {place}", passed=True, figure=figure, limit=1.0, workload=place)
        for place, figure in (("M=1", 0.25), ("M=2", 0.5), ("M=3", 0.125))
    ]
    bundle = kernels.spmm()
    verdict = bundle.verdict.model_copy(
        update={"checks": (*checks, Check(name="determinism", passed=True, figure=0.0))}
    )
    export(dataclasses.replace(bundle, verdict=verdict), "source", tmp_path / "out")
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "| correct on … | 3 | 0.5 | 1 | yes |" in readme
    assert "| determinism | 1 | 0 | – | yes |" in readme
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert len(record["checks"]) == 4


def test_what_was_not_checked_is_told(tmp_path: Path) -> None:
    bundle = kernels.spmm()
    missing = "sanitizers: not run, /home/ada/lib/libasan.so is missing"
    verdict = bundle.verdict.model_copy(update={"unchecked": (missing,)})
    export(dataclasses.replace(bundle, verdict=verdict), "source", tmp_path / "out")
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "Not checked:\n\n- sanitizers: not run, &lt;path> is missing" in readme
    export(bundle, "source", tmp_path / "clean")
    assert "Not checked" not in (tmp_path / "clean" / "README.md").read_text()


def failed(status: Status, protocol: Depth = Depth.FULL) -> Bundle:
    bundle = kernels.spmm()
    verdict = kernels.verdict(bundle.source, "spmm_csr", status, protocol=protocol, checks=())
    return dataclasses.replace(bundle, verdict=verdict)


@pytest.mark.parametrize("status", [Status.SCREENED, Status.INCORRECT, Status.SUSPECT])
def test_unverified_candidates_need_to_be_asked_for(tmp_path: Path, status: Status) -> None:
    with pytest.raises(UsageError, match=f"is {status}, not VERIFIED"):
        export(failed(status), "source", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    export(failed(status), "source", tmp_path / "out", unverified=True)
    readme = (tmp_path / "out" / "README.md").read_text()
    assert f"**{status.value}**" in readme
    assert "No speed-up was recorded." in readme
    assert "VERIFIED**" not in readme
    assert ("row 3 is wrong by 0.5" in readme) == (not status.is_pass)


def test_every_file_of_an_unverified_package_says_so_and_it_still_builds(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    export(failed(Status.SCREENED), "package", tmp_path / "out", unverified=True)
    files = contents(tmp_path / "out")
    said = b"SCREENED for cpu, not VERIFIED"
    assert [n for n, text in files.items() if said not in text and not n.endswith(".npz")] == []
    tomllib.loads(files["pyproject.toml"].decode())
    [module] = [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()]
    done = run(sys.executable, "-m", module, "selftest", path=tmp_path / "out")
    assert done.returncode == 0, done.stderr


def test_no_path_of_the_machine_is_exported(tmp_path: Path) -> None:
    bundle = kernels.spmm()
    isolation = Isolation(
        mechanism="bubblewrap",
        capabilities={"net": Capability(state=Enforcement.ABSENT, how="/home/ada/bin/bwrap")},
    )
    check = Check(name="build", passed=True, detail="in /home/ada/.cache/kw/x.so: 12 GB/s")
    verdict = bundle.verdict.model_copy(update={"isolation": isolation, "checks": (check,)})
    machine = {"cpu": "Example", "home": "/home/ada/kw"}
    changed = dataclasses.replace(
        bundle, verdict=verdict, machine=machine, title="spmm of /home/ada/graphs/x.mtx"
    )
    for form in ("source", "package"):
        export(changed, form, tmp_path / form)
        texts = contents(tmp_path / form)
        # As a word: hashes are of these letters, too.
        told = re.compile(rb"/home/|\bada\b")
        assert not [name for name, text in texts.items() if told.search(text)]
        [record] = [text for name, text in texts.items() if name.endswith("record.json")]
        assert "in <path>: 12 GB/s" in json.loads(record)["checks"][0]["detail"]
    assert "not enforced: fs_write, net" in (tmp_path / "source" / "README.md").read_text()


HOSTILE = 'a """ b\\ \' " {{ 7*7 }} {% raw %} `x` | \n# heading\n</details> \\N{BEL} é'


def test_text_of_a_problem_stays_text(tmp_path: Path) -> None:
    bundle = kernels.spmm()
    inputs = tuple(dataclasses.replace(t, meaning=HOSTILE) for t in bundle.inputs)
    axes = dict.fromkeys(bundle.axes, HOSTILE)
    verdict = bundle.verdict.model_copy(update={"versions": {HOSTILE: HOSTILE, "cpu": HOSTILE}})
    changed = dataclasses.replace(
        bundle, title=HOSTILE, definition=HOSTILE, axes=axes, inputs=inputs, verdict=verdict
    )
    export(changed, "package", tmp_path / "out")
    export(changed, "source", tmp_path / "source")
    for path in (tmp_path / "out").rglob("*.py"):
        ast.parse(path.read_text(), filename=str(path))
    tomllib.loads((tmp_path / "out" / "pyproject.toml").read_text())
    assert "49" not in (tmp_path / "out" / "README.md").read_text().replace(bundle.candidate, "")


def test_names_are_made_fit_for_python_and_pip(tmp_path: Path) -> None:
    bundle = dataclasses.replace(kernels.softmax(), problem="../2D Soft-Max!")
    export(bundle, "package", tmp_path / "out")
    project = tomllib.loads((tmp_path / "out" / "pyproject.toml").read_text())
    assert project["project"]["name"] == f"kw-op-2d-soft-max-{bundle.short}"
    assert (tmp_path / "out" / f"kw_op_2d_soft_max_{bundle.short}" / "ops.py").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def spec(bundle: Bundle, **more: Any) -> tuple[TensorSpec, ...]:
    return (dataclasses.replace(bundle.inputs[0], **more), *bundle.inputs[1:])


def with_case(bundle: Bundle, **more: Any) -> Bundle:
    return dataclasses.replace(bundle, cases=(dataclasses.replace(bundle.cases[0], **more),))


Spoil = Callable[[Bundle], Bundle]
BAD: dict[str, Spoil] = {
    "does not have the hash": lambda b: dataclasses.replace(b, source=b.source + " "),
    "the verdict is about": lambda b: dataclasses.replace(
        b, verdict=kernels.verdict("other", "spmm_csr")
    ),
    "which cannot be exported": lambda b: dataclasses.replace(b, language="rust"),
    "'import' of spmm_csr cannot be the name": lambda b: dataclasses.replace(
        b, inputs=spec(b, name="import")
    ),
    "'x; y' of spmm_csr cannot be the name": lambda b: dataclasses.replace(b, entry="x; y"),
    "'out' of spmm_csr cannot be the name": lambda b: dataclasses.replace(
        b, inputs=spec(b, name="out")
    ),
    "uses the name 'B' twice": lambda b: dataclasses.replace(b, inputs=spec(b, name="B")),
    "has dtype complex64": lambda b: dataclasses.replace(b, inputs=spec(b, dtype="complex64")),
    "names 'Q', which is not an axis": lambda b: dataclasses.replace(
        b, inputs=spec(b, shape=("Q+1",))
    ),
    "build flag '-I/home/ada'": lambda b: dataclasses.replace(b, flags=("-I/home/ada",)),
    "build flag 'x.o'": lambda b: dataclasses.replace(b, flags=("x.o",)),
    "needs at least one recorded case": lambda b: dataclasses.replace(b, cases=()),
    "lacks 'values'": lambda b: with_case(b, inputs={"indptr": 0, "indices": 0, "B": 0}),
    "lacks 'C'": lambda b: with_case(b, outputs={}),
    "'indptr' is int64, not int32": lambda b: with_case(
        b, inputs={**b.cases[0].inputs, "indptr": b.cases[0].inputs["indptr"].astype(np.int64)}
    ),
    "must be float64": lambda b: with_case(b, outputs={"C": np.ones((17, 5), np.float32)}),
    "not a number ≥ 0": lambda b: with_case(b, tolerances={"C": np.array(math.nan)}),
    "do not fit 'C'": lambda b: with_case(b, tolerances={"C": np.zeros(6)}),
    "'values' has shape (3,), not": lambda b: with_case(
        b, inputs={**b.cases[0].inputs, "values": np.zeros(3, np.float32)}
    ),
    "'C' has shape (17, 4), not (17, 5)": lambda b: with_case(b, outputs={"C": np.ones((17, 4))}),
    "more than 16.0 MiB": lambda b: with_case(b, outputs={"C": np.ones((3 << 20, 1))}),
    "'indptr' has 2 dimensions, not 1": lambda b: with_case(
        b, inputs={**b.cases[0].inputs, "indptr": np.zeros((3, 3), np.int32)}
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_a_bundle_that_cannot_be_exported_says_why(tmp_path: Path, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        export(BAD[message](kernels.spmm()), "package", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_cases_that_zeros_would_pass_are_refused(tmp_path: Path) -> None:
    zeros = {"C": np.zeros((17, 5))}
    case: Case = dataclasses.replace(kernels.spmm().cases[0], outputs=zeros, tolerances=zeros)
    with pytest.raises(NotDiscriminatingError, match="writes zeros would pass"):
        export(dataclasses.replace(kernels.spmm(), cases=(case,)), "package", tmp_path / "out")
