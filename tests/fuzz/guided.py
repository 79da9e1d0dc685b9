"""One target under atheris, which is led by coverage: `python -m … NAME -max_total_time=60`.

Used by run.py where atheris is installed. libFuzzer ends the process: 0 in time, 77 at a failure.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["kernelwright"]):
    from kernelwright.tests.fuzz.catalogue import TARGETS
    from kernelwright.tests.fuzz.target import body_of


def main() -> None:
    """Fuzzes until libFuzzer ends the process."""
    name, *options = sys.argv[1:]
    (target,) = [target for target in TARGETS if target.name == name]
    atheris.Setup([sys.argv[0], *options], body_of(target).hypothesis.fuzz_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
