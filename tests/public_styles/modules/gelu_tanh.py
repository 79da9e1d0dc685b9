# An elementwise function with a word for its constructor.
import torch
from torch import nn
import torch.nn.functional as F

rows, cols = 12, 160

class Model(nn.Module):
    def __init__(self, approximate='none'):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        return F.gelu(x, approximate=self.approximate)

def get_inputs():
    return [torch.rand(rows, cols) * 8 - 4]

def get_init_inputs():
    return ['tanh']
