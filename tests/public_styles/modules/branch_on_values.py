# A branch on what a tensor holds: refused.
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, threshold: float):
        super(Model, self).__init__()
        self.threshold = threshold

    def forward(self, x):
        s = x.abs().mean()
        if s > self.threshold:
            return x / s
        return x

rows = 8
cols = 64

def get_inputs():
    return [torch.randn(rows, cols)]

def get_init_inputs():
    return [0.5]
