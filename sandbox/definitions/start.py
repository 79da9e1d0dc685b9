# SPDX-License-Identifier: Apache-2.0
"""The program itself, in a jail: `python -I -S -B start.py HOUSE PACKAGES MODULE ARGUMENTS...`.

The house's folder becomes the package that it is outside, whatever it is installed as; then
MODULE's `main` finds the arguments where a program does.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

NAME = "kernelwright"


def main() -> None:
    """Hands over to the module that the command line names."""
    house, packages, module, *arguments = sys.argv[1:]
    sys.path += packages.split(os.pathsep)
    spec = importlib.util.spec_from_file_location(
        NAME, Path(house) / "__init__.py", submodule_search_locations=[house]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{house} is no house")
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    sys.argv = [module, *arguments]
    importlib.import_module(f"{NAME}.{module}").main()


if __name__ == "__main__":
    main()
