# SPDX-License-Identifier: Apache-2.0
"""Reads Matrix Market and scipy .npz files into CSR patterns, and says what is wrong with a file.

Only the pattern is kept, since values are drawn afresh for every call; the file's own values are
still checked, because a file with NaNs or holes is not the matrix its owner believes it is.
Nothing is ever unpickled.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MatrixError
from .graphs import Pattern
from .matrix_text import check_text

MAX_NNZ = 1 << 28
"""268 M entries: 2 GiB of values and indices, and far below the int32 range of `nnz`."""
MAX_SIDE = 2**31 - 2
"""Rows and columns are int32 in the kernels, and indptr has one more element than rows."""
MAX_ROWS = 1 << 28
"""Row pointers of a GiB; an honest matrix has about as many entries as rows."""
MAX_EMPTY_ROWS = 1 << 24
"""Rows beyond 64 for each entry: a damaged header asks for more, an honest matrix does not."""
MAX_FILE_BYTES = 8 << 30
"""What is read into memory at most, after decompression."""
_ENTRY_BYTES = 4
"""An entry's line at its shortest: `1 1` and a line's end."""
NPZ_ARRAYS = ("indptr", "indices", "data", "shape", "format")
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    struct.error,
    tokenize.TokenError,
    ValueError,
    TypeError,
    LookupError,
    SyntaxError,
    ArithmeticError,
    RuntimeError,
)
"""What zipfile and numpy raise on damaged archives: encryption, unknown compressions, headers of
arrays that do not parse or ask for impossible shapes."""
_CONVERT = "convert it, e.g. scipy.io.mmwrite('out.mtx', scipy.sparse.coo_matrix(matrix))"


def file_sha256(path: str | Path) -> str:
    """The SHA-256 of a file, hex.

    Raises:
        MatrixError: if it cannot be read.
    """
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise MatrixError(
            f"{path}: cannot be read: {error.strerror or error}",
            hint="give the path of a .mtx, .mtx.gz or .npz file",
        ) from error


def load_pattern(path: str | Path) -> Pattern:
    """The CSR pattern of a .mtx, .mtx.gz or .npz file.

    Symmetric and skew-symmetric files are expanded. Columns are sorted within each row.

    Raises:
        MatrixError: naming the file, the line or entry, the value, and the remedy.
    """
    file = Path(path)
    name = file.name.lower()
    try:
        if name.endswith(".npz"):
            return _load_npz(file)
        if name.endswith((".mtx", ".mtx.gz")):
            return _load_market(file)
    except OSError as error:
        raise MatrixError(
            f"{file}: cannot be read: {error.strerror or error}", hint="check the path"
        ) from error
    except MemoryError as error:
        raise MatrixError(
            f"{file}: does not fit in this machine's memory", hint="use a smaller matrix"
        ) from error
    raise MatrixError(
        f"{file}: '{file.suffix}' is not the ending of a matrix file",
        hint="use .mtx, .mtx.gz or a .npz of scipy.sparse.save_npz",
    )


def _load_market(file: Path) -> Pattern:
    text = _read_text(file)
    header = check_text(text, str(file))
    _check_size(file, header.rows, header.cols, header.entries * (2 if header.is_mirrored else 1))
    if header.entries > len(text) // _ENTRY_BYTES:
        raise MatrixError(
            f"{file}: is too short for the {header.entries:,} entries that its header promises",
            hint="the file is cut off; get it again",
        )
    if not text.endswith(b"\n"):
        # scipy's parser reads past the end of a last line that ends in a space.
        text += b"\n"
    from scipy.io import mmread

    try:
        matrix: Any = mmread(io.BytesIO(text))
    except (ValueError, OverflowError) as error:
        raise MatrixError(
            f"{file}: line {header.line_of(str(error))}: {error}",
            hint="the file is damaged; get it again",
        ) from error
    return _to_pattern(
        file, matrix.shape, matrix.row, matrix.col, matrix.data, "entry (row, column), from 1,"
    )


def _read_text(file: Path) -> bytes:
    if file.suffix.lower() != ".gz":
        if file.stat().st_size > MAX_FILE_BYTES:
            raise _too_large(file, f"{file.stat().st_size:,} bytes")
        return file.read_bytes()
    try:
        with gzip.open(file) as stream:
            text = stream.read(MAX_FILE_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise MatrixError(
            f"{file}: not a whole gzip file: {error}",
            hint="download it again, or unpack it with gunzip and use the .mtx",
        ) from error
    if len(text) > MAX_FILE_BYTES:
        raise _too_large(file, f"over {MAX_FILE_BYTES:,} bytes unpacked")
    return text


def _too_large(file: Path, what: str) -> MatrixError:
    return MatrixError(
        f"{file}: too large: {what}",
        hint=f"at most {MAX_NNZ:,} entries, {MAX_ROWS:,} rows, {MAX_SIDE:,} columns; take a part",
    )


def _check_size(file: Path, rows: int, cols: int, entries: int) -> None:
    if rows < 1 or cols < 1 or entries < 1:
        raise MatrixError(
            f"{file}: empty: {rows} rows, {cols} columns, {entries} entries",
            hint="there is nothing to compute; use a matrix with at least one entry",
        )
    if rows > MAX_ROWS:
        raise _too_large(file, f"{rows:,} rows")
    if cols > MAX_SIDE:
        raise _too_large(file, f"{cols:,} columns")
    if entries > MAX_NNZ:
        raise _too_large(file, f"{entries:,} entries")
    if rows > MAX_EMPTY_ROWS + 64 * entries:
        raise MatrixError(
            f"{file}: {rows:,} rows for {entries:,} entries: nearly all of them would be empty",
            hint="check the header's sizes; leave empty rows out, or take a part",
        )


def _load_npz(file: Path) -> Pattern:
    arrays = _npz_arrays(file)
    kind = arrays["format"].item() if arrays["format"].ndim == 0 else ""
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise MatrixError(
            f"{file}: holds the format '{kind[:20]}'", hint="save it as CSR: matrix.tocsr()"
        )
    shape = arrays["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise MatrixError(f"{file}: 'shape' is not two integers", hint=_CONVERT)
    rows, cols = int(shape[0]), int(shape[1])
    indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    _check_size(file, rows, cols, indices.size)
    _check_compressed(file, rows if kind == "csr" else cols, indptr, indices, data)
    lengths: np.ndarray = np.diff(indptr.astype(np.int64))
    outer = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    row, column = (outer, indices) if kind == "csr" else (indices, outer)
    return _to_pattern(file, (rows, cols), row, column, data, "entry (row, column), from 0,", 0)


def _npz_arrays(file: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_FILE_BYTES:
            raise _too_large(file, f"{size:,} bytes unpacked")
        with np.load(file, allow_pickle=False) as archive_arrays:
            missing = [name for name in NPZ_ARRAYS if name not in archive_arrays.files]
            if missing:
                raise MatrixError(
                    f"{file}: no array '{missing[0]}' in it",
                    hint="write it with scipy.sparse.save_npz(path, matrix.tocsr())",
                )
            arrays = {name: archive_arrays[name] for name in NPZ_ARRAYS}
    except _DAMAGE as error:
        what = "holds Python objects" if "pickle" in str(error).lower() else "not a whole .npz file"
        raise MatrixError(
            f"{file}: {what}: {error}",
            hint="write it with scipy.sparse.save_npz; pickled arrays are never loaded",
        ) from error
    for name, array in arrays.items():
        # numpy hands out the raw bytes of a member that is not in its own format.
        if not isinstance(array, np.ndarray):
            raise MatrixError(
                f"{file}: '{name}' is not an array",
                hint="write it with scipy.sparse.save_npz; pickled arrays are never loaded",
            )
    return arrays


def _check_compressed(
    file: Path, outer: int, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray
) -> None:
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise MatrixError(
                f"{file}: '{name}' is {array.ndim}-dimensional {array.dtype}, not integers",
                hint=_CONVERT,
            )
    if data.shape != indices.shape:
        raise MatrixError(
            f"{file}: {data.shape} values for {len(indices)} column indices", hint=_CONVERT
        )
    if len(indptr) != outer + 1 or int(indptr[0]) != 0 or int(indptr[-1]) != len(indices):
        first, last = (indptr[0], indptr[-1]) if len(indptr) else ("-", "-")
        raise MatrixError(
            f"{file}: indptr has {len(indptr)} elements from {first} to {last}, expected "
            f"{outer + 1} from 0 to {len(indices)}",
            hint="the file is damaged; write it again",
        )
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        raise MatrixError(
            f"{file}: indptr falls after element {int(falls[0])}: {indptr[falls[0]]} to "
            f"{indptr[falls[0] + 1]}",
            hint="the file is damaged; write it again",
        )


def _to_pattern(
    file: Path,
    shape: tuple[int, ...],
    row: np.ndarray,
    column: np.ndarray,
    data: np.ndarray,
    place: str,
    origin: int = 1,
) -> Pattern:
    """Checks entries and sorts them into CSR."""
    rows, cols = int(shape[0]), int(shape[1])
    _check_size(file, rows, cols, len(row))
    _check_values(file, row, column, data, place, origin)
    for name, index, bound in (("row", row, rows), ("column", column, cols)):
        outside = np.flatnonzero((index < 0) | (index >= bound))
        if len(outside):
            raise MatrixError(
                f"{file}: entry {int(outside[0]) + 1}: {name} {int(index[outside[0]]) + origin} "
                f"is outside of {rows} x {cols}",
                hint="the file is damaged, or its header names the wrong size",
            )
    # Unsigned indices and a signed product would meet in float64, and lose digits there.
    row, column = row.astype(np.int64), column.astype(np.int64)
    keys = row * cols + column
    keys.sort()
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    if len(repeated):
        key = int(keys[repeated[0]])
        raise MatrixError(
            f"{file}: {place} ({key // cols + origin}, {key % cols + origin}) is there more than "
            f"once, {len(repeated)} repetitions in all",
            hint="sum them first: matrix.tocsr().sum_duplicates(), then write the file again",
        )
    lengths = np.bincount(row, minlength=rows)
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return Pattern(rows, cols, indptr.astype(np.int32), (keys % cols).astype(np.int32))


def _check_values(
    file: Path, row: np.ndarray, column: np.ndarray, data: Any, place: str, origin: int
) -> None:
    if data.dtype.kind == "c":
        raise MatrixError(
            f"{file}: holds complex numbers",
            hint="kernels are real: take the real part or the modulus and write the file again",
        )
    if data.dtype.kind not in "fiub":
        raise MatrixError(f"{file}: values are of type {data.dtype}", hint=_CONVERT)
    if data.dtype.kind != "f":
        return
    bad = np.flatnonzero(~np.isfinite(data))
    if len(bad):
        first = int(bad[0])
        raise MatrixError(
            f"{file}: {place} ({int(row[first]) + origin}, {int(column[first]) + origin}) "
            f"is {data[first]}, as are {len(bad) - 1} more",
            hint="remove or replace values that are not finite",
        )
