"""Matrix files: round trips, and for each kind of damage an error that names it."""

from __future__ import annotations

import gzip
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import mmwrite
from scipy.sparse import csc_matrix, csr_matrix, save_npz

from kernelwright.errors import MatrixError
from kernelwright.kernelbench.matrices import MAX_NNZ, load_pattern

HEAD = "%%MatrixMarket matrix coordinate real general\n"
GOOD = HEAD + "% a comment\n\n3 4 3\n1 1 1.5\n3 4 -2\n3 1 0.25\n"


def _assert_same(path: Path, matrix: csr_matrix) -> None:
    pattern = load_pattern(path)
    matrix = matrix.tocsr()
    matrix.sort_indices()
    assert (pattern.rows, pattern.cols) == matrix.shape
    assert np.array_equal(pattern.indptr, matrix.indptr)
    assert np.array_equal(pattern.indices, matrix.indices)
    assert pattern.indptr.dtype == pattern.indices.dtype == np.int32


def test_text_and_gzip_give_the_same_pattern(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text(GOOD)
    (tmp_path / "a.mtx.gz").write_bytes(gzip.compress(GOOD.encode()))
    for name in ("a.mtx", "a.mtx.gz"):
        pattern = load_pattern(tmp_path / name)
        assert pattern.indptr.tolist() == [0, 1, 1, 3]
        assert pattern.indices.tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("head", "entries", "indptr", "indices"),
    [
        ("pattern general", "1 2\n2 1\n", [0, 1, 2], [1, 0]),
        ("pattern symmetric", "1 1\n2 1\n", [0, 2, 3], [0, 1, 0]),
        ("integer general", "1 2 7\n2 1 -7\n", [0, 1, 2], [1, 0]),
        ("real skew-symmetric", "2 1 3.5\n", [0, 1, 2], [1, 0]),
        ("real symmetric", "1 1 2\n2 2 3\n", [0, 1, 2], [0, 1]),
    ],
)
def test_fields_and_symmetries(
    tmp_path: Path, head: str, entries: str, indptr: list[int], indices: list[int]
) -> None:
    count = entries.count("\n")
    path = tmp_path / "m.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate {head}\n2 2 {count}\n{entries}")
    pattern = load_pattern(path)
    assert pattern.indptr.tolist() == indptr
    assert pattern.indices.tolist() == indices


@st.composite
def _matrices(draw: st.DrawFn) -> csr_matrix:
    rows, cols = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    cells = st.tuples(st.integers(0, rows - 1), st.integers(0, cols - 1))
    entries = sorted(draw(st.sets(cells, min_size=1, max_size=40)))
    row, column = np.array(entries).T
    return csr_matrix((np.arange(1.0, len(row) + 1), (row, column)), shape=(rows, cols))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(matrix=_matrices())
def test_round_trips(matrix: csr_matrix, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("round")
    mmwrite(folder / "m.mtx", matrix)
    _assert_same(folder / "m.mtx", matrix)
    save_npz(folder / "m.npz", matrix)
    _assert_same(folder / "m.npz", matrix)
    save_npz(folder / "c.npz", csc_matrix(matrix))
    _assert_same(folder / "c.npz", matrix)


BAD_TEXTS = {
    "empty file": ("", "empty"),
    "not a matrix": ("hello\n1 2 3\n", "not a Matrix Market file"),
    "html": ("<!DOCTYPE html>\n<html></html>\n", "not a Matrix Market file"),
    "short header": ("%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n", "line 1"),
    "vector": ("%%MatrixMarket vector coordinate real general\n1 1 1\n1 1 1\n", "'vector'"),
    "dense": ("%%MatrixMarket matrix array real general\n1 1\n1\n", "dense format"),
    "complex": ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n", "complex"),
    "hermitian": ("%%MatrixMarket matrix coordinate complex hermitian\n1 1 0\n", "complex"),
    "unknown field": ("%%MatrixMarket matrix coordinate quad general\n1 1 1\n1 1 1\n", "'quad'"),
    "unknown symmetry": ("%%MatrixMarket matrix coordinate real odd\n1 1 1\n1 1 1\n", "'odd'"),
    "no size line": (HEAD + "% only comments\n", "ends before the size line"),
    "size of two": (HEAD + "3 3\n1 1 1\n", "line 2: '3 3' is not a size line"),
    "negative size": (HEAD + "-3 3 1\n1 1 1\n", "not a size line"),
    "no entries": (HEAD + "3 3 0\n", "empty: 3 rows, 3 columns, 0 entries"),
    "no rows": (HEAD + "0 3 0\n", "empty: 0 rows"),
    "row too large": (HEAD + "3 3 2\n1 1 1\n4 1 1\n", "line 4"),
    "column too large": (HEAD + "3 3 1\n1 9 1\n", "line 3"),
    "zero index": (HEAD + "3 3 1\n0 1 1\n", "line 3"),
    "too few entries": (HEAD + "3 3 3\n1 1 1\n2 2 1\n", "line"),
    "too many entries": (HEAD + "3 3 1\n1 1 1\n2 2 1\n", "line"),
    "not a number": (HEAD + "3 3 1\n1 one 1\n", "line 3"),
    "no value": (HEAD + "3 3 1\n1 1\n", "line 3"),
    "zero byte": (HEAD + "3 3 2\n1 1 1\n2 2\0 1\n", "line 4: '2 2.* is not an entry"),
    "letters": (HEAD + "3 3 1\n1 0x1 1\n", "line 3: '1 0x1 1' is not an entry"),
    "promises": (HEAD + "9 9 90\n1 1 1\n", "too short for the 90 entries"),
    "empty rows": (HEAD + "99999999 9 1\n1 1 1\n", "nearly all of them would be empty"),
    "nan": (HEAD + "3 3 2\n1 1 1\n2 2 nan\n", r"\(2, 2\) is nan"),
    "infinity": (HEAD + "3 3 2\n1 1 1\n2 3 inf\n", r"\(2, 3\) is inf"),
    "duplicate": (HEAD + "3 3 2\n2 1 1\n2 1 1\n", r"\(2, 1\) is there more than once"),
    "symmetric rectangle": (
        "%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n",
        "but 2 x 3",
    ),
    "too many entries to hold": (HEAD + f"9 9 {MAX_NNZ + 1}\n1 1 1\n", "too large"),
    "rows over int32": (HEAD + "4000000000 3 1\n1 1 1\n", "too large: 4,000,000,000 rows"),
    "columns over int32": (HEAD + "3 4000000000 1\n1 1 1\n", "too large: 4,000,000,000 columns"),
    "both halves": (
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n1 2 1\n",
        "more than once",
    ),
}


@pytest.mark.parametrize("kind", BAD_TEXTS)
def test_a_bad_text_is_named(tmp_path: Path, kind: str) -> None:
    text, message = BAD_TEXTS[kind]
    path = tmp_path / "bad.mtx"
    path.write_text(text)
    with pytest.raises(MatrixError, match=message) as caught:
        load_pattern(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_a_truncated_gzip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.mtx.gz"
    path.write_bytes(gzip.compress(GOOD.encode() * 50)[:-20])
    with pytest.raises(MatrixError, match="not a whole gzip"):
        load_pattern(path)
    path.write_text(GOOD)
    with pytest.raises(MatrixError, match="not a whole gzip"):
        load_pattern(path)


def _saved(change: Callable[[dict[str, np.ndarray]], None]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        arrays = {
            "indptr": np.array([0, 1, 2]),
            "indices": np.array([1, 0]),
            "data": np.array([1.0, 2.0]),
            "shape": np.array([2, 2]),
            "format": np.array(b"csr"),
        }
        change(arrays)
        np.savez(path, **arrays)  # type: ignore[arg-type]

    return write


BAD_ARRAYS: dict[str, tuple[Callable[[dict[str, np.ndarray]], object], str]] = {
    "no indptr": (lambda a: a.pop("indptr"), "no array 'indptr'"),
    "coo": (lambda a: a.update(format=np.array(b"coo")), "the format 'coo'"),
    "three sides": (lambda a: a.update(shape=np.array([2, 2, 2])), "'shape'"),
    "float indices": (lambda a: a.update(indices=np.array([1.0, 0.0])), "'indices'"),
    "scalar indices": (lambda a: a.update(indices=np.array(3)), "'indices'"),
    "short indptr": (lambda a: a.update(indptr=np.array([0, 2])), "indptr has 2 elements"),
    "falling indptr": (lambda a: a.update(indptr=np.array([0, 3, 2])), "indptr falls"),
    "values missing": (lambda a: a.update(data=np.array([1.0])), "values for 2"),
    "outside": (lambda a: a.update(indices=np.array([1, 7])), "column 7 is outside"),
    "negative": (lambda a: a.update(indices=np.array([1, -1])), "column -1 is outside"),
    "nan": (lambda a: a.update(data=np.array([1.0, np.nan])), "is nan"),
    "complex": (lambda a: a.update(data=np.array([1j, 1])), "complex"),
    "empty": (
        lambda a: a.update(indptr=np.array([0, 0, 0]), indices=np.zeros(0, int), data=np.zeros(0)),
        "empty",
    ),
    "repeated": (
        lambda a: a.update(indptr=np.array([0, 2, 2]), indices=np.array([1, 1])),
        "more than once",
    ),
}


def test_unsigned_arrays_are_as_good_as_signed(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    names = ("indptr", "indices", "shape")
    for kind in ("u1", "u8", ">u4"):
        _saved(lambda a, to=kind: a.update({n: a[n].astype(to) for n in names}))(path)
        pattern = load_pattern(path)
        assert (pattern.indptr.tolist(), pattern.indices.tolist()) == ([0, 1, 2], [1, 0])


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_bad_arrays_are_named(tmp_path: Path, kind: str) -> None:
    change, message = BAD_ARRAYS[kind]
    path = tmp_path / "bad.npz"
    _saved(lambda arrays: (change(arrays), None)[1])(path)
    with pytest.raises(MatrixError, match=message) as caught:
        load_pattern(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


class _Planted:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


def test_a_pickle_in_an_archive_is_never_run(tmp_path: Path) -> None:
    planted, path = tmp_path / "planted", tmp_path / "evil.npz"
    evil = np.array([_Planted(planted)], dtype=object)
    _saved(lambda arrays: arrays.update(data=evil))(path)
    with pytest.raises(MatrixError, match="holds Python objects"):
        load_pattern(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("indptr", "indices", "data", "shape", "format"):
            archive.writestr(f"{name}.npy", pickle.dumps(_Planted(planted)))
    with pytest.raises(MatrixError):
        load_pattern(path)
    assert not planted.exists()


def test_a_file_that_is_no_archive_or_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"PK not a zip")
    with pytest.raises(MatrixError, match="not a whole"):
        load_pattern(path)
    with pytest.raises(MatrixError, match="cannot be read"):
        load_pattern(tmp_path / "absent.mtx")
    (tmp_path / "folder.mtx").mkdir()
    with pytest.raises(MatrixError, match="cannot be read"):
        load_pattern(tmp_path / "folder.mtx")
    (tmp_path / "a.csv").write_text("1,2\n")
    with pytest.raises(MatrixError, match="not the ending"):
        load_pattern(tmp_path / "a.csv")


GRAPHS = (
    Path(os.environ.get("KERNELWRIGHT_SHARED", Path(__file__).parents[3] / "shared"))
    / "data"
    / "graphs"
)


@pytest.mark.skipif(not GRAPHS.is_dir(), reason=f"the published graphs are not at {GRAPHS}")
@pytest.mark.parametrize(
    ("name", "rows", "nnz", "longest"),
    [("cora", 2708, 10_556, 168), ("citeseer", 3327, 9104, 99), ("pubmed", 19_717, 88_648, 171)],
)
def test_published_graphs(name: str, rows: int, nnz: int, longest: int) -> None:
    pattern = load_pattern(GRAPHS / f"{name}.mtx.gz")
    assert (pattern.rows, pattern.cols, pattern.nnz) == (rows, rows, nnz)
    assert np.diff(pattern.indptr).max() == longest
