# SPDX-License-Identifier: Apache-2.0
"""What a launch gives host code back in the interpreter: a compiled kernel's figures.

Tutorials compile a kernel ahead (`warmup`), reckon with its registers and launch what they got. The
figures are those of the build for the target, which the harness hands over.
"""

from __future__ import annotations

import types
from typing import Any

NO_FACTS = {"registers": 0, "shared": 0, "warps": 4}


class Warmed:
    """A kernel that has been compiled for some arguments."""

    n_spills = 0
    n_max_threads = 1024

    def __init__(self, kernel: Any, facts: dict[str, int], given: dict[str, Any]) -> None:
        self._kernel, self._given = kernel, given
        self.n_regs = facts["registers"]
        self.name = kernel.fn.__name__
        self.metadata = types.SimpleNamespace(
            name=self.name, shared=facts["shared"], num_warps=facts["warps"], num_ctas=1
        )

    def _init_handles(self) -> None:
        return

    def __getitem__(self, grid: Any) -> Any:
        """Launches it; what the arguments lack was given as it was compiled."""

        def launch(*args: Any, **kwargs: Any) -> None:
            missing = {
                name: value
                for name, value in self._given.items()
                if name not in kwargs and name not in self._kernel.arg_names[: len(args)]
            }
            self._kernel.run(*args, grid=grid, warmup=False, **{**missing, **kwargs})

        return launch


def install(facts: dict[str, dict[str, int]]) -> None:
    """Lets interpreted kernels answer with such figures, by the kernels' names."""
    from triton.runtime.interpreter import InterpretedFunction

    plain = InterpretedFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            plain(self, *args, grid=grid, warmup=False, **kwargs)
        return Warmed(self, facts.get(self.fn.__name__, NO_FACTS), kwargs)

    InterpretedFunction.run = run
