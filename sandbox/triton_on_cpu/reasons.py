# SPDX-License-Identifier: Apache-2.0
"""What went wrong in a candidate's code, in one sentence with the line in its file."""

from __future__ import annotations

import re
import traceback

from .load import NAME

_AT = re.compile(r"^at (\d+):(\d+):$", re.M)
_REFUSED = re.compile(r"(?:^|; )(?:ptxas\S*\s+)?(error|fatal)\s*:\s*(.+)", re.M)
_UNIT = 2000


def find_beneath(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """The exception of `kind` that `error` was raised from, itself included."""
    current: BaseException | None = error
    while current is not None and not isinstance(current, kind):
        current = current.__cause__ or current.__context__
    return current


def sentence(error: BaseException, source: str) -> str:
    """One line: where, what, and the remedy where there is one."""
    kind = type(error).__name__
    if kind == "OutOfResources":
        return _resources(error)
    if kind == "PTXASError":
        found = _REFUSED.findall(str(error)) or [("", str(error).splitlines()[0])]
        said = [words for kind, words in found if kind == "error"] or [found[0][1]]
        return _shorten(f"ptxas refused the kernel: {'; '.join(dict.fromkeys(said))}")
    if kind in ("CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure"):
        return _compilation(error, source)
    return _word_raised(error)


def _resources(error: BaseException) -> str:
    name, required, limit = (getattr(error, key, "?") for key in ("name", "required", "limit"))
    remedy = "use smaller tiles or fewer num_stages" if name == "shared memory" else "ask for less"
    return f"a kernel needs {required} of {name}, the target gives {limit}: {remedy}"


def _compilation(error: BaseException, source: str) -> str:
    """Triton counts lines from the kernel's `def`; its text says where in the file that is."""
    deepest = error
    while type(deepest.__cause__).__name__ == "CompilationError" and deepest.__cause__:
        deepest = deepest.__cause__
    text, node = getattr(deepest, "src", None), getattr(deepest, "node", None)
    message = getattr(deepest, "error_message", None) or _cause(deepest)
    where = ""
    first = source.find(text) if isinstance(text, str) else -1
    if node is not None and first >= 0:
        number = source.count("\n", 0, first) + getattr(node, "lineno", 1)
        where = f"error at line {number}:{getattr(node, 'col_offset', 0) + 1}: "
    return _shorten(f"{where}{message or _AT.sub('', str(deepest))}")


def _cause(error: BaseException) -> str:
    cause = error.__cause__
    return f"{type(cause).__name__}: {cause}" if cause is not None else ""


def line(error: BaseException) -> int:
    """The last line of the candidate's file on the way to the exception; 0: none."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == NAME]
    return (frames[-1].lineno or 0) if frames else 0


def word_with_line(error: BaseException) -> str:
    """Its words behind the line in the candidate's file that led there."""
    at = line(error)
    return f"line {at}: {error}" if at else str(error)


def with_line(error: BaseException) -> BaseException:
    """An error of the same name that says the line, where it is the candidate's."""
    if not (at := line(error)):
        return error
    named = type(type(error).__name__, (Exception,), {})
    found: BaseException = named(f"{error} (line {at})")
    return found.with_traceback(error.__traceback__)


def explain_lacking(error: BaseException, source: str) -> str:
    """The sentence for what this Triton does not have; empty where something else is wrong."""
    root = error
    while type(root).__name__ == "CompilationError" and root.__cause__:
        root = root.__cause__
    # What Triton raises for what it lacks on this platform or in this version.
    if not isinstance(root, NotImplementedError):
        return ""
    import triton

    said = sentence(error, source)
    remedy = ": use tl.make_tensor_descriptor" if "lock pointer" in str(root) else ""
    return _shorten(f"{said} (Triton {triton.__version__} is installed here){remedy}")


def _word_raised(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename == NAME:
        return _shorten(f"error at line {error.lineno}: {error.msg}")
    at = line(error)
    where = f"error at line {at}: " if at else ""
    return _shorten(f"{where}{type(error).__name__}: {error}")


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _UNIT else text[:_UNIT] + "…"
