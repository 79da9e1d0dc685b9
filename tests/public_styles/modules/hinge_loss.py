# A loss whose targets are broadcast along the rows.
import torch
import torch.nn as nn

class Model(nn.Module):
    """Hinge loss of two classes."""
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))

batch_size = 24
dim = 16

def get_inputs():
    return [torch.rand(batch_size, dim), torch.randint(0, 2, (batch_size, 1)).float() * 2 - 1]

def get_init_inputs():
    return []
