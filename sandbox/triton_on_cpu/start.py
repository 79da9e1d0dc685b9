# SPDX-License-Identifier: Apache-2.0
"""The program itself: `python -I -S -B start.py MODULE PACKAGES ARGUMENTS...`.

The folder becomes a package of another name, so that the modules find each other while the house
stays out of sight; then MODULE's `main` gets the arguments.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path

NAME = "kernelwright_inside"
HERE = Path(__file__).resolve().parent


def load(name: str, file: Path, *, is_package: bool = False) -> types.ModuleType:
    """The module in `file` under `name`, executed once."""
    folders = [str(file.parent)] if is_package else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Hands over to the module that the command line names."""
    load(NAME, HERE / "__init__.py", is_package=True)
    sys.path += sys.argv[2].split(os.pathsep)
    importlib.import_module(f"{NAME}.{sys.argv[1]}").main(sys.argv[3:])


if __name__ == "__main__":
    main()
