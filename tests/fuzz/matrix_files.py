"""Matrix files with damage of every kind: a pattern that is one, or a MatrixError."""

from __future__ import annotations

import gzip
import io
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernelwright.errors import MatrixError
from kernelwright.kernelbench.matrices import load_pattern
from kernelwright.tests.fuzz.target import Target, attempt, edited, edits

HEAD = b"%%MatrixMarket matrix coordinate "
TEXTS = (
    HEAD + b"real general\n% a comment\n\n3 4 3\n1 1 1.5\n3 4 -2\n3 1 0.25\n",
    HEAD + b"pattern symmetric\n5 5 4\n1 1\n2 1\n5 3\n5 5\n",
    HEAD + b"integer skew-symmetric\n3 3 2\n2 1 7\n3 1 -7\n",
)
NAMES = ("indptr", "indices", "data", "shape", "format")


def check(name: str, content: bytes) -> None:
    """A whole pattern comes out, or a MatrixError with a hint."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # numpy and zipfile warn of some kinds of damage before they refuse others.
        warnings.simplefilter("ignore")
        path = Path(folder) / name
        path.write_bytes(content)
        pattern = attempt(lambda: load_pattern(path), MatrixError)
    if isinstance(pattern, MatrixError):
        assert str(path) in str(pattern)
        assert pattern.hint
        return
    assert pattern.indptr.dtype == pattern.indices.dtype == np.int32
    assert len(pattern.indptr) == pattern.rows + 1
    assert pattern.indptr[0] == 0
    assert pattern.indptr[-1] == len(pattern.indices) > 0
    assert np.all(np.diff(pattern.indptr) >= 0)
    assert 0 <= pattern.indices.min() <= pattern.indices.max() < pattern.cols
    row = np.repeat(np.arange(pattern.rows, dtype=np.int64), np.diff(pattern.indptr))
    assert np.all(np.diff(row * pattern.cols + pattern.indices) > 0)


def check_text(drawn: tuple[bytes, list[Any], str]) -> None:
    """A Matrix Market text."""
    text, changes, ending = drawn
    content = edited(text, changes)
    check(f"m.mtx{ending}", gzip.compress(content) if ending else content)


def check_gzip(drawn: tuple[bytes, list[Any]]) -> None:
    """Damage to the compressed bytes themselves."""
    text, changes = drawn
    check("m.mtx.gz", edited(gzip.compress(text, mtime=0), changes))


def _members() -> dict[str, np.ndarray]:
    return {
        "indptr": np.array([0, 1, 1, 3]),
        "indices": np.array([2, 0, 3]),
        "data": np.array([1.0, 2.0, -1.0]),
        "shape": np.array([3, 4]),
        "format": np.array(b"csr"),
    }


def _archive(
    members: dict[str, np.ndarray],
    change: Callable[[str, bytes], bytes] = lambda _, raw: raw,
    how: int = zipfile.ZIP_STORED,
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, array in members.items():
            raw = io.BytesIO()
            np.save(raw, array)
            archive.writestr(f"{name}.npy", change(name, raw.getvalue()))
    return out.getvalue()


def check_archive(drawn: tuple[list[Any], int]) -> None:
    """Damage to the archive's own bytes."""
    changes, how = drawn
    check("m.npz", edited(_archive(_members(), how=how), changes))


def check_member(drawn: tuple[str, list[Any]]) -> None:
    """A member that is not the array it should be, in an archive whose checksums are right."""
    damaged, changes = drawn
    content = _archive(
        _members(), lambda name, raw: edited(raw, changes) if name == damaged else raw
    )
    check("m.npz", content)


def check_arrays(drawn: dict[str, np.ndarray]) -> None:
    """Whole arrays of other kinds, shapes and values."""
    check("m.npz", _archive({**_members(), **drawn}))


_HOWS = st.sampled_from((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
_KINDS = st.one_of(
    arrays.integer_dtypes(),
    arrays.unsigned_integer_dtypes(),
    arrays.floating_dtypes(),
    arrays.boolean_dtypes(),
    arrays.complex_number_dtypes(),
    arrays.byte_string_dtypes(max_len=4),
    arrays.datetime64_dtypes(),
)
_ARRAYS = _KINDS.flatmap(
    lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=2, min_side=0))
)
_SMALL = st.builds(
    lambda values, kind: np.array(values, kind),
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.sampled_from(("u1", "i1", "u8", "i8", ">i4", "<u2")),
)

TARGETS = (
    Target(
        "matrix texts",
        st.tuples(st.sampled_from(TEXTS), edits(), st.sampled_from(("", "", ".gz"))),
        check_text,
        80,
    ),
    Target("matrix gzips", st.tuples(st.sampled_from(TEXTS), edits()), check_gzip, 40),
    Target("matrix archives", st.tuples(edits(), _HOWS), check_archive, 50),
    Target("matrix members", st.tuples(st.sampled_from(NAMES), edits()), check_member, 60),
    Target(
        "matrix arrays",
        st.dictionaries(st.sampled_from(NAMES), _ARRAYS | _SMALL, min_size=1, max_size=3),
        check_arrays,
        80,
    ),
)
