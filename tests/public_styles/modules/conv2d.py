# A strided convolution with padding; the constructor has eight parameters.
import torch
import torch.nn as nn

class Model(nn.Module):
    """
    2D convolution with stride, padding and dilation.

    Args:
        in_channels (int): channels of the input
        out_channels (int): channels of the output
        kernel_size (int): side of the window
    """
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = False):
        super(Model, self).__init__()
        self.conv2d = nn.Conv2d(in_channels, out_channels, (kernel_size, kernel_size), stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)

# Test code
batch_size = 2
in_channels = 3
out_channels = 4
kernel_size = 3
width = 10
height = 12
stride = 2
padding = 1

def get_inputs():
    x = torch.rand(batch_size, in_channels, height, width)
    return [x]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]  # the rest by default
