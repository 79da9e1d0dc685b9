# SPDX-License-Identifier: Apache-2.0
"""What a source may not say: names that tell builds apart, switches that loosen floating-point.

It reads text and no language: what a preprocessor puts together from pieces it does not see. What
the switches loosen a source may write by hand, and the gates judge it; here the plain way is closed
on which the arithmetic is another one than the one that was written.
"""

from __future__ import annotations

import re

from ...sandbox.builders.cuda_source import without_comments

_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_APART = (
    r"no_sanitize|__SANITIZE_|_sanitizer\b|\bsanitizer/|__[a-z]{1,8}san_|__sanitizer|__has_feature"
    r"|\b(?:secure_)?getenv\b|\benviron\b|\bdl(?:v?sym|m?open|addr1?|info|_iterate_phdr)\b"
    r"|/proc/|\bsigaction\b|\bmincore\b"
)
_OPTIONS = (
    r"Ofast|(?<!no-)(?:fast-math|unsafe-math|associative-math|reciprocal-math|finite-math"
    r"|cx-limited-range|cx-fortran-rules|single-precision-constant)|no-signed-zeros"
    r"|fp-contract=(?!off)|excess-precision=fast"
)
"""Of GCC's and Clang's, without what stands before them (`-f`, `O3,`)."""
_LOOSE = (
    # Options are always quoted: in an attribute, a pragma, _Pragma, or a macro that makes one.
    rf'(?<=")[\w,= -]*(?:{_OPTIONS})[\w,=-]*'
    r"|\bSTDC\s+(?:FP_CONTRACT|CX_LIMITED_RANGE)\s+(?!OFF\b)\w+"
    r"|\bclang\s+fp\b[^\n]*?\b(?:reassociate|reciprocal|contract)\s*\(\s*(?!off\b)\w+\s*\)"
    r"|\bfloat_control\s*\(\s*precise\s*,\s*off\b[^)\n]*\)"
    r"|\bfp_contract\s*\(\s*on\s*\)"
)


def explain_apart(source: str) -> str:
    """Why a source cannot be judged by another build than the one that is timed; empty: it can."""
    # What a comment is, two compilers may see differently: here comments count.
    found = re.search(_APART, _join_lines(source))
    if found is None:
        return ""
    return (
        f"{_place(source, found)} names what a kernel has no use for but to treat a build with "
        f"sanitizers apart ({found[0]})"
    )


def explain_loose(source: str) -> str:
    """Where a C++ source has its arithmetic loosened, and the remedy; empty: it has not."""
    found = re.search(_LOOSE, without_comments(_join_lines(source)))
    if found is None:
        return ""
    what = " ".join(found[0].split())
    return (
        f"{_place(source, found)} loosens floating-point arithmetic ({what}): leave it out, and "
        "reorder sums by hand (several accumulators, vectors) or with #pragma omp simd reduction"
    )


def _join_lines(source: str) -> str:
    return _SPLICE.sub("", source)


def _place(source: str, found: re.Match[str]) -> str:
    """The line, in the source as it was, of what was found in the text without splices."""
    at = found.start()
    for splice in _SPLICE.finditer(source):
        at += len(splice[0]) if splice.start() <= at else 0
    return f"line {source.count(chr(10), 0, at) + 1} of the source"
