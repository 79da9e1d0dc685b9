# A layer, GELU, and a learned scale.
import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Linear, GELU, and a learned scale.
    """
    def __init__(self, in_features, out_features, multiplier, scale_shape):
        super(Model, self).__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        x = self.gemm(x)
        x = torch.nn.functional.gelu(x)
        x = x * self.scale
        return x * self.multiplier

batch_size = 12
in_features = 24
out_features = 20
multiplier = 2.0
scale_shape = (out_features,)

def get_inputs():
    return [torch.rand(batch_size, in_features)]

def get_init_inputs():
    return [in_features, out_features, multiplier, scale_shape]
