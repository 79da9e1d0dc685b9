# SPDX-License-Identifier: Apache-2.0
"""Modes of torch that see every operation, without its compiler."""

from __future__ import annotations


def dispatching_class() -> type:
    """The class of modes that see every operation; torch's own would import its compiler, which
    takes two seconds and a folder for temporary files that a jail need not have."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatching(TorchDispatchMode):  # type: ignore[misc]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

    return Dispatching
