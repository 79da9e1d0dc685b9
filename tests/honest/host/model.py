"""KernelBench's form: a module that returns its output, with a helper of the name `run`."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.dim = 1

    def forward(self, x):
        return run(x - x.amax(self.dim, keepdim=True))


def run(shifted):
    terms = torch.exp(shifted)
    return terms / terms.sum(1, keepdim=True)
