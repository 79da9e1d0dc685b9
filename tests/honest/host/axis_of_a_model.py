"""A module that is made for an axis which no shape tells: maximum or mean."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, reduce):
        super().__init__()
        self.is_mean = reduce == 1

    def forward(self, indptr, indices, values, B):
        lengths = indptr.diff()
        rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        terms = values[:, None] * B[indices]
        result = B.new_zeros(len(lengths), B.shape[1])
        if self.is_mean:
            return result.index_add_(0, rows, terms) / lengths.clamp(min=1)[:, None]
        where = rows[:, None].expand(terms.shape)
        return result.scatter_reduce_(0, where, terms, "amax", include_self=False)
