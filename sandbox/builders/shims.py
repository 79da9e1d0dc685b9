# SPDX-License-Identifier: Apache-2.0
"""What a source may include, and what it finds without: headers for compilers of device code.

nvcc reads a host's headers ahead of each source; NVRTC has none, and reads `prelude.cuh` for them.
Headers of the host that a source names out of habit are empty in both builds: what device code can
use of them is in the prelude, or comes from CCCL at the price of a second of compilation. What the
toolkit has is left to the toolkit.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

PRELUDE = "kernelwright_prelude.h"
"""The name that the prelude is included under, ahead of each source."""

_TEXT = Path(__file__).with_name("prelude.cuh")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([\w.+/-]+)[>"]', re.M)
_NAMES = 256
"""At most so many headers of one source are looked at."""
_NAME_CHARACTERS = 120


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_PRELUDE = _words("""
    algorithm cassert cfloat climits cmath cstddef cstdint cstdio cstdlib cstring ctime
    assert.h float.h inttypes.h cinttypes limits limits.h math.h stddef.h stdint.h stdio.h
    stdlib.h string.h time.h sys/types.h cuda.h cuda_runtime.h cuda_runtime_api.h
    device_launch_parameters.h
""")
_FROM_CCCL = _words("""
    algorithm array bit complex concepts functional initializer_list iterator numbers numeric
    optional ratio span tuple type_traits utility variant
""")
_OF_HOST = _words("""
    any atomic bitset charconv chrono codecvt compare condition_variable coroutine deque
    exception execution filesystem format forward_list fstream future iomanip ios iosfwd
    iostream istream list locale map memory memory_resource mutex new ostream queue random
    ranges regex set shared_mutex source_location sstream stack stdexcept streambuf string
    string_view strstream system_error thread typeindex typeinfo unordered_map unordered_set
    valarray vector version cctype cerrno cfenv clocale csetjmp csignal cstdarg cuchar cwchar
    cwctype ctype.h errno.h fenv.h getopt.h malloc.h memory.h omp.h pthread.h setjmp.h
    signal.h stdarg.h stdbool.h strings.h unistd.h fcntl.h dlfcn.h sched.h mpi.h nccl.h
    Python.h curand.h nvml.h nvToolsExt.h
""")
_HOST_LIBRARIES = re.compile(
    r"(?:torch|ATen|c10|caffe2|pybind11|THC?|sys|bits|boost|Eigen|fmt|glog|gflags|gtest|gmock"
    r"|benchmark|nvtx3|absl|tensorflow|paddle|mkl|cub/device|thrust)/.+"
    r"|(?:cublas|cusparse|cusolver|cufft|cudnn|nvjpeg|helper_)\w*\.hp?p?"
    r"|cuda_?(?:GL|EGL|VDPAU|gl_|egl_|vdpau_|Profiler|profiler_|occupancy)\w*\.h"
    r"|channel_descriptor\.h"
)
"""Libraries that only a host's code calls."""
_OF_DEVICE_TOO = re.compile(r"thrust/(?:advance|distance|functional|pair|tuple|zip_function)\.h")
"""What NVRTC takes of a host's library."""
_OWN = {
    "cub/cub.cuh": "\n".join(
        f"#include <cub/{part}.cuh>"
        for part in (
            "block/block_discontinuity",
            "block/block_exchange",
            "block/block_load",
            "block/block_merge_sort",
            "block/block_radix_sort",
            "block/block_reduce",
            "block/block_scan",
            "block/block_store",
            "warp/warp_reduce",
            "warp/warp_scan",
            "warp/warp_load",
            "warp/warp_store",
            "warp/warp_merge_sort",
            "thread/thread_load",
            "thread/thread_reduce",
            "thread/thread_store",
        )
    ),
}
"""Umbrella headers that refuse NVRTC, as what device code can have of them."""


def list_included(source: str) -> Iterator[str]:
    """The headers that a source names, each once, as far as they stay below a folder."""
    names = dict.fromkeys(_INCLUDE.findall(source))
    for name in list(names)[:_NAMES]:
        parts = name.split("/")
        if len(name) <= _NAME_CHARACTERS and not any(p.startswith(".") or not p for p in parts):
            yield name


def headers(source: str, includes: Iterable[Path]) -> dict[bytes, bytes]:
    """What NVRTC is given beside the source, by name: the prelude, and what it would not find.

    Args:
        includes: The folders of the toolkit's headers, which it searches itself.
    """
    folders = tuple(includes)
    texts = dict.fromkeys(sorted(_OF_PRELUDE), "")
    texts[PRELUDE] = prelude()
    for name in list_included(source):
        if name in _OWN:
            texts[name] = _OWN[name]
        elif name in _FROM_CCCL:
            texts[name] = _from_cccl(name) if names_more_of_std(source) else ""
        elif is_of_host(name):
            texts[name] = ""
    return {
        name.encode(): f"#pragma once\n{text}\n".encode()
        for name, text in texts.items()
        if not (name in _OF_PRELUDE and any((folder / name).exists() for folder in folders))
    }


def is_of_host(name: str) -> bool:
    """Whether a header is for a host's code alone, so that device code can do without it."""
    is_library = _HOST_LIBRARIES.fullmatch(name) and not _OF_DEVICE_TOO.fullmatch(name)
    return name in _OF_HOST or bool(is_library)


def names_more_of_std(source: str) -> bool:
    """Whether a source may name something of std that is not in the prelude."""
    if re.search(r"\busing\s+namespace\s+std\b|=\s*std\s*;", source):
        return True
    return not set(re.findall(r"\bstd\s*::\s*(\w+)", source)) <= _words_of_prelude()


@functools.lru_cache(maxsize=1)
def prelude() -> str:
    """What NVRTC reads ahead of each source."""
    return _TEXT.read_text("utf-8")


@functools.lru_cache(maxsize=1)
def macros() -> frozenset[str]:
    """The macros that the prelude defines: both builds of a candidate have them."""
    return frozenset(re.findall(r"^#define (\w+)\b(?!\()", prelude(), re.M))


@functools.lru_cache(maxsize=1)
def digest() -> str:
    """What decides the headers: for the key of a kept build."""
    return hashlib.sha256(_TEXT.read_bytes() + Path(__file__).read_bytes()).hexdigest()


@functools.lru_cache(maxsize=1)
def _words_of_prelude() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", prelude()))


def _from_cccl(name: str) -> str:
    """CCCL has had some of them for few releases only; without, the prelude is what there is."""
    return (
        f"#if __has_include(<cuda/std/{name}>)\n#include <cuda/std/{name}>\n#endif\n"
        "namespace cuda { namespace std {} }\nnamespace std { using namespace ::cuda::std; }"
    )
