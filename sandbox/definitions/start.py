# SPDX-License-Identifier: Apache-2.0
"""The program itself, in a jail: `python -I -S -B start.py HOUSE PACKAGES MODULE ARGUMENTS...`.

The house's folder becomes the package that it is outside, whatever it is installed as; then
MODULE's `main` finds the arguments where a program does.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path

NAME = "kernelwright"


class Rooms:
    """Finds the house's modules by their paths: a jail may show files of a folder that cannot be
    listed, as Python's own finder does."""

    def __init__(self, house: Path) -> None:
        self._house = house

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        first, *parts = name.split(".")
        if first != NAME or not parts:
            return None
        place = self._house.joinpath(*parts)
        if (file := place / "__init__.py").exists():
            return importlib.util.spec_from_file_location(
                name, file, submodule_search_locations=[str(place)]
            )
        return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))


def main() -> None:
    """Hands over to the module that the command line names."""
    house, packages, module, *arguments = sys.argv[1:]
    sys.path += packages.split(os.pathsep)
    spec = importlib.util.spec_from_file_location(
        NAME, Path(house) / "__init__.py", submodule_search_locations=[house]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{house} is no house")
    sys.meta_path.insert(0, Rooms(Path(house)))
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    sys.argv = [module, *arguments]
    importlib.import_module(f"{NAME}.{module}").main()


if __name__ == "__main__":
    main()
