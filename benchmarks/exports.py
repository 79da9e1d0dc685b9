"""Every format in every language: written, installed or loaded, validated and run.

    python benchmarks/exports.py [--validators PYTHON] [-o docs/results/exports.md]

`--validators` is the Python of an environment with `kernels` and `flashinfer-bench`; what is not
there is told as not installed. Whatever is loaded is loaded by a new virtual environment that sees
this one's torch, and nothing of Kernelwright. Exit status 1 where a step failed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Callable, Sequence
from importlib.metadata import version as installed
from pathlib import Path
from typing import NamedTuple

import numpy as np
from export_programs import BY_C, BY_MODELNEW, BY_RUN, FLASHINFER, HUB, STAND_IN
from machine import machine
from torch.utils.cpp_extension import library_paths

from kernelwright.errors import PrerequisiteError, UsageError
from kernelwright.sandbox.builders.toolchain import find_nvcc
from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.test_compiled_forms import recipe_bundle
from kernelwright.tests.traces.export.test_cuda_package import stand_in
from kernelwright.tests.traces.export.test_flashinfer import with_workload
from kernelwright.tests.traces.export.test_hub import (
    BUILDERS_OPS,
    CALLS,
    compile_binding,
    package_of,
    python_bundle,
)
from kernelwright.traces.export import Bundle, export

LANGUAGES: dict[str, Callable[[], Bundle]] = {
    "cpp": lambda: with_workload(kernels.softmax()),
    "cuda": lambda: with_workload(recipe_bundle("softmax", "cuda")),
    "triton": lambda: with_workload(recipe_bundle("softmax", "triton")),
    "python": lambda: with_workload(python_bundle()),
}
FORMS = ("source", "package", "modelnew", "header", "aot", "kernels-hub", "flashinfer")
ARCHITECTURES = ("sm_80", "sm_90")
PROSE = (
    "A softmax over rows leaves in each format from each language: a small kernel of the tests in",
    "C++ and Python, the first recipe in CUDA and Triton. Their verdicts are the tests' own: what",
    "this page shows is the formats, and no kernel was verified for it.",
    "",
    "- *Loaded*: by a new virtual environment that sees torch, numpy and Triton of the one that",
    "  made this page, by its folder of packages, and cannot import Kernelwright.",
    "- *Validated*: by the reader of the project whose format it is, where it has one. It stands",
    "  in an environment of its own, never in ours, and is no part of this repository.",
    "- *Run*: on a recorded case with a float64 answer and tolerances, on the CPU. CUDA is built",
    "  for sm_80 and sm_90 and not run; the library that stands in for its kernel shows that",
    "  sizes, memory and the stream arrive, and nothing of the kernel.",
)
NO_GPU = "not run: there is no GPU here"
FAILED = "**failed**"


class Cell(NamedTuple):
    """What became of one format in one language."""

    loaded: str = ""
    validated: str = "there is none"
    ran: str = ""


class Bench:
    """A fresh environment, the validators', and a folder for what is exported."""

    def __init__(self, folder: Path, validators: str) -> None:
        self.folder, self.validators = folder, validators
        venv.create(folder / "venv", with_pip=True)
        self.python = str(folder / "venv" / "bin" / "python")
        asked = self.run(self.python, "-c", "import sysconfig as s; print(s.get_path('purelib'))")
        outer = Path(asked.stdout.strip()) / "outer.pth"
        outer.write_text(sysconfig.get_path("purelib") + "\n")
        if self.run(self.python, "-c", "import kernelwright", cwd=folder).returncode == 0:
            raise SystemExit("the new environment can import kernelwright: it is not fresh")
        (folder / "cache").mkdir(mode=0o700)
        try:
            self.nvcc = str(find_nvcc().path)
        except PrerequisiteError:
            self.nvcc = ""

    def run(
        self, *command: str, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """A command with a small environment."""
        places = [str(self.folder / "venv" / "bin"), str(Path(sys.executable).parent)]
        known = {"PATH": os.pathsep.join([*places, os.environ["PATH"]]), "HOME": str(self.folder)}
        known |= {"KW_KERNEL_CACHE": str(self.folder / "cache"), "OMP_NUM_THREADS": "2"}
        known |= {"FIB_CACHE_PATH": str(self.folder / "flashinfer"), "PYTHONWARNINGS": "ignore"}
        return subprocess.run(
            command, cwd=cwd, env=known | env, capture_output=True, text=True, check=False
        )

    def build_cuda(self, folder: Path, *words: str) -> str:
        """Whether nvcc makes objects of it for each architecture."""
        if not self.nvcc:
            return "not built: nvcc is not installed"
        for each in ARCHITECTURES:
            command = [self.nvcc, "-std=c++17", f"-arch={each}", *words, "-o", f"{each}.o"]
            said = tell(self.run(*command, cwd=folder), "")
            if said:
                return said
        return f"built by nvcc for {', '.join(ARCHITECTURES)}"


def tell(done: subprocess.CompletedProcess[str], yes: str) -> str:
    """`yes`, or that it failed with its last words."""
    if done.returncode == 0:
        return yes
    words = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
    return f"{FAILED}: {words[:160]}"


def store_case(bundle: Bundle, folder: Path) -> str:
    """The first recorded case as a file that needs nothing of ours to be read."""
    case, out = bundle.cases[0], bundle.outputs[0].name
    path = folder / "case.npz"
    given = {f"in_{at}": case.inputs[t.name] for at, t in enumerate(bundle.inputs)}
    np.savez(path, **given, out=case.outputs[out], tolerance=case.tolerances[out])
    return str(path)


def call_c(bench: Bench, bundle: Bundle, library: Path) -> str:
    """The recorded case through a shared object."""
    case = store_case(bundle, library.parent)
    command = (bench.python, "-c", BY_C, str(library), bundle.entry, case)
    return tell(bench.run(*command), "right on its case, called by C")


def try_source(bench: Bench, bundle: Bundle, folder: Path) -> Cell:
    if bundle.language == "cpp":
        made = folder / "made.so"
        command = ("g++", *bundle.flags, "softmax.cpp", "-o", str(made))
        return Cell(
            tell(bench.run(*command, cwd=folder), "built by g++"), ran=call_c(bench, bundle, made)
        )
    if bundle.language == "cuda":
        words = ("-include", "cmath", "-include", "cstdint", "-c", "softmax.cu")
        return Cell(bench.build_cuda(folder, *words), ran=NO_GPU)
    env = {"PYTHONPATH": str(folder), "TRITON_INTERPRET": "1"}
    loaded = tell(bench.run(bench.python, "-c", "import softmax", **env), "imported")
    if bundle.language == "triton":
        return Cell(loaded, ran="not by itself: its launches are data")
    command = (bench.python, "-c", BY_RUN, store_case(bundle, folder))
    return Cell(loaded, ran=tell(bench.run(*command, **env), "right on its case"))


def try_package(bench: Bench, bundle: Bundle, folder: Path) -> Cell:
    module = next(path.name for path in folder.iterdir() if path.name.startswith("kw_"))
    words = ("--no-deps", "--no-build-isolation", "--no-index")
    done = bench.run(bench.python, "-m", "pip", "install", *words, str(folder))
    loaded = tell(done, "installed by pip")
    command = (bench.python, "-m", module)
    if bundle.language == "cpp":
        done = bench.run(*command, "selftest", "--compile")
        return Cell(loaded, ran=tell(done, "self-test passed, torch.compile included"))
    if bundle.language == "triton":
        done = bench.run(*command, "selftest", TRITON_INTERPRET="1")
        return Cell(loaded, ran=tell(done, "self-test passed in Triton's interpreter"))
    if bench.nvcc:
        archs = ";".join(each.removeprefix("sm_") for each in ARCHITECTURES)
        done = bench.run(*command, "build", NVCC=bench.nvcc, KW_CUDA_ARCHS=archs)
        built = f", {tell(done, 'built by nvcc for ' + ', '.join(ARCHITECTURES) + ' and PTX')}"
        loaded += built
    compiler, _ = stand_in(bench.folder)
    env = {"NVCC": str(compiler), "KW_KERNEL_CACHE": str(bench.folder / "cache")}
    done = bench.run(bench.python, "-c", STAND_IN, module, store_case(bundle, folder), **env)
    return Cell(loaded, ran=tell(done, "called through a stand-in library; " + NO_GPU))


def try_modelnew(bench: Bench, bundle: Bundle, folder: Path) -> Cell:
    validated = "KernelBench: not installed"
    if bundle.language == "cuda":
        done = bench.run(bench.python, "-m", "py_compile", "softmax.py", cwd=folder)
        return Cell(tell(done, "read by Python; its kernel is aot's"), validated, NO_GPU)
    env = {"PYTHONPATH": str(folder), "TRITON_INTERPRET": "1"}
    env["TORCH_EXTENSIONS_DIR"] = str(bench.folder / "extensions")
    command = (bench.python, "-c", BY_MODELNEW, store_case(bundle, folder))
    done = bench.run(*command, **env)
    how = {"cpp": ", built by load_inline", "triton": " in Triton's interpreter"}
    return Cell(
        tell(done, "imported"),
        validated,
        tell(done, f"right on its case{how.get(bundle.language, '')}"),
    )


def try_header(bench: Bench, bundle: Bundle, folder: Path) -> Cell:
    if bundle.language == "cuda":
        (folder / "mine.cu").write_text('#include "softmax.cuh"\nint main() { return 0; }\n')
        return Cell(bench.build_cuda(folder, "-c", "mine.cu"), ran=NO_GPU)
    (folder / "mine.cpp").write_text('#include "softmax.hpp"\n')
    made = folder / "mine.so"
    done = bench.run("g++", *bundle.flags, "mine.cpp", "-o", str(made), cwd=folder)
    return Cell(tell(done, "included and built by g++"), ran=call_c(bench, bundle, made))


def try_aot(bench: Bench, bundle: Bundle, folder: Path) -> Cell:
    if bundle.language == "cpp":
        loaded = tell(bench.run("make", "-s", cwd=folder), "built by make")
        return Cell(loaded, ran=call_c(bench, bundle, folder / "libsoftmax.so"))
    if not bench.nvcc:
        return Cell("not built: nvcc is not installed", ran=NO_GPU)
    path = os.pathsep.join([str(Path(bench.nvcc).parent), os.environ["PATH"]])
    for each in ARCHITECTURES:
        done = bench.run("make", "-s", "-B", f"ARCH={each}", cwd=folder, PATH=path)
        if done.returncode:
            return Cell(tell(done, ""), ran=NO_GPU)
    loads = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).softmax_launch"
    done = bench.run(bench.python, "-c", loads, str(folder / "libsoftmax.so"))
    yes = f"built by make for {', '.join(ARCHITECTURES)} and loaded"
    return Cell(tell(done, yes), ran=NO_GPU)


def try_hub(bench: Bench, bundle: Bundle, folder: Path) -> Cell:
    validated = validate(bench, "kernels", HUB, folder)
    found, loaded, words = "", "imported", tomllib.loads((folder / "build.toml").read_text())
    if bundle.language == "cuda":
        [kernel] = words["kernel"].values()
        given = (*kernel["cuda-flags"], "-c", *kernel["src"])
        return Cell(bench.build_cuda(folder, *given), validated, NO_GPU)
    if bundle.language == "cpp":
        [kernel] = words["kernel"].values()
        flags = (*kernel["cxx-flags"], "-fPIC", "-c", *kernel["src"], "-o", "kernel.o")
        done = bench.run("g++", *flags, cwd=folder)
        library = folder / "exported.so"
        more = ["kernel.o", "-fopenmp", "-shared", *(f"-L{each}" for each in library_paths())]
        bound = compile_binding(folder, *more, "-lc10", "-ltorch_cpu", "-o", str(library))
        loaded = tell(done if done.returncode else bound, "its binding built by g++")
        name = f"{package_of(folder).name}_ops"
        found = f"torch.ops.load_library({str(library)!r})\nops = torch.ops.{name}"
    package = package_of(folder)
    (package / "_ops.py").write_text(BUILDERS_OPS.format(found=found))
    text = CALLS.format(module=package.name, operator="softmax", inputs=len(bundle.inputs))
    env = {"PYTHONPATH": str(package.parent), "TRITON_INTERPRET": "1"}
    done = bench.run(bench.python, "-c", text, store_case(bundle, folder), **env)
    how = " in Triton's interpreter" if bundle.language == "triton" else ""
    return Cell(loaded, validated, tell(done, f"right on its case{how}, torch.compile included"))


def try_flashinfer(bench: Bench, bundle: Bundle, folder: Path) -> Cell:
    validated = validate(bench, "flashinfer-bench", FLASHINFER, folder)
    if not validated.startswith("`"):
        return Cell("", validated, "not run")
    if bundle.language == "cuda":
        return Cell("read as a TraceSet", validated, NO_GPU)
    command = (bench.validators, "-c", FLASHINFER, str(folder), store_case(bundle, folder))
    done = bench.run(*command, TRITON_INTERPRET="1")
    how = " in Triton's interpreter" if bundle.language == "triton" else ""
    yes = f"right on its case, built by flashinfer-bench{how}"
    if "No registered builder can build" in done.stderr:
        return Cell("read as a TraceSet", validated, "not run: it has no builder for this here")
    return Cell("read as a TraceSet", validated, tell(done, yes))


def validate(bench: Bench, name: str, program: str, folder: Path) -> str:
    """What the project's own reader says of the export, with its version."""
    asked = f"from importlib.metadata import version; print(version({name!r}))"
    known = bench.run(bench.validators, "-c", asked)
    if known.returncode:
        return f"{name}: not installed"
    done = bench.run(bench.validators, "-c", program, str(folder))
    return tell(done, f"`{name}` {known.stdout.strip()} reads it")


TRIES: dict[str, Callable[[Bench, Bundle, Path], Cell]] = {
    "source": try_source,
    "package": try_package,
    "modelnew": try_modelnew,
    "header": try_header,
    "aot": try_aot,
    "kernels-hub": try_hub,
    "flashinfer": try_flashinfer,
}


def make_row(bench: Bench, form: str, language: str) -> str:
    """One line of the table."""
    bundle, folder = LANGUAGES[language](), bench.folder / f"{form}-{language}" / "out"
    folder.parent.mkdir()
    head = f"| `{form}` | {language} |"
    try:
        export(bundle, form, folder, unverified=True)
    except UsageError as error:
        why = str(error).replace(bundle.candidate[:12], "…").replace("candidate … ", "")
        return f"{head} no: {why} | | | |"
    cell = TRIES[form](bench, bundle, folder)
    return f"{head} yes | {cell.loaded} | {cell.validated} | {cell.ran} |"


def write_page(rows: Sequence[str], version: str, nvcc: str) -> str:
    """The page, with what was used at its head."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    made = f"Made by `make exports` on {today}: {machine()}, triton {installed('triton')}; "
    lines = [
        "# What is exported, and what became of it",
        "",
        f"{made}{version}; {nvcc}.",
        "",
        *PROSE,
        "",
        "| format | language | exported | loaded | validated | run |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validators", default=sys.executable)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/exports.md"))
    parser.add_argument("--only", default="", help="a form, to try it alone")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelwright-exports-") as name:
        bench = Bench(Path(name), asked.validators)
        compiler = bench.run("g++", "--version").stdout.splitlines()[0]
        release = find_nvcc().version if bench.nvcc else "no nvcc"
        rows = []
        for form in [asked.only] if asked.only else FORMS:
            for language in LANGUAGES:
                rows.append(make_row(bench, form, language).replace(name, "…"))
                print(rows[-1], flush=True)
    if not asked.only:
        asked.output.write_text(write_page(rows, compiler, release), encoding="utf-8")
    return 1 if any(FAILED in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
