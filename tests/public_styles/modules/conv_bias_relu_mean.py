# A convolution, a bias of its own, ReLU, and the mean over space.
import torch
import torch.nn as nn

class Model(nn.Module):
    """
    A convolution, a bias of its own, ReLU, and the mean over space.
    """
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super(Model, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)
        x = x + self.bias
        x = torch.relu(x)
        x = torch.mean(x, dim=[2, 3], keepdim=True)
        return x

batch_size = 2
in_channels = 3
out_channels = 4
height, width = 9, 9
kernel_size = 3
bias_shape = (out_channels, 1, 1)

def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, bias_shape]
