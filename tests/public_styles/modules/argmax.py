# An index: refused.
import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Index of the greatest value over a dimension.
    """
    def __init__(self, dim: int):
        super(Model, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=self.dim)

batch_size = 8
dim1 = 16
dim2 = 31

def get_inputs():
    x = torch.rand(batch_size, dim1, dim2)
    return [x]

def get_init_inputs():
    return [1]
