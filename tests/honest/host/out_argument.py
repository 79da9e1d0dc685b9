"""A library call with `out=`: allowed, and labelled by its tier (B1).

---
note = "facts of a candidate may stand here"
---
"""

import torch


def run(x, y):
    torch.softmax(x, 1, out=y)
