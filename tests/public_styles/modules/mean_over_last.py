# A mean; the examples are a tuple, and the constructor's arguments a dictionary.
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
    def forward(self, x):
        return x.mean(dim=self.dim)

B, H, W = 3, 20, 30

def get_inputs():
    return (torch.randn(B, H, W),)

def get_init_inputs():
    return {"dim": -1}
