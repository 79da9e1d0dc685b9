# SPDX-License-Identifier: Apache-2.0
"""`python -m kernelwright`: the same as the command `kernelwright`."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
