# A sum over a dimension that the constructor names and that is kept.
import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Sums over the given dimension, which is kept.
    """
    def __init__(self, dim: int):
        super(Model, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=self.dim, keepdim=True)

batch_size = 4
dim1 = 20
dim2 = 31
reduce_dim = 1

def get_inputs():
    x = torch.rand(batch_size, dim1, dim2)
    return [x]

def get_init_inputs():
    return [reduce_dim]
