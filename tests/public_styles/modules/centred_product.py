# A function in place of a module, with two sets of examples.
import torch


def _centre(x):
    return x - x.mean(-1, keepdim=True)


def centred_product(x, w, bias):
    """Rows are centred, then multiplied."""
    return torch.relu(_centre(x) @ w + bias)


def get_inputs():
    return [
        [torch.randn(12, 20), torch.randn(20, 8), torch.randn(8)],
        [torch.randn(30, 7), torch.randn(7, 64), torch.randn(64)],
    ]
