# SPDX-License-Identifier: Apache-2.0
"""Runs inside the user's program: once torch is there, it calls a package's `apply()`.

Python imports a module of this name as it starts. The environment's own one, if it has one, is run
first. The program itself is not changed; one that is started without `site` does not get here.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Finds torch as everybody does, and has `apply()` called behind its import."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            importlib.import_module(os.environ["KW_APPLY_MODULE"]).apply()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _run_own() -> None:
    """The `sitecustomize` that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_run_own()
if os.environ.get("KW_APPLY_MODULE"):
    sys.meta_path.insert(0, _AfterTorch())
