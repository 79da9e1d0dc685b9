# SPDX-License-Identifier: Apache-2.0
"""Inference of two layers of graph convolution in plain torch, as many do it.

python benchmarks/programs/gnn.py GRAPH.mtx.gz [--often N] [--dense]
`--dense` leaves the graph out but for one product: most of the time is a network's then.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.io
import torch
from torch import Tensor

FEATURES, HIDDEN = 500, 128


def read_graph(path: str) -> Tensor:
    """The adjacency matrix with rows that add up to one, as a CSR tensor of float32."""
    graph = scipy.io.mmread(path).tocsr().astype(np.float32)
    graph.sort_indices()
    graph.data /= np.repeat(np.maximum(graph.sum(1).A1, 1e-6), np.diff(graph.indptr))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(graph.indptr, graph.indices, graph.data, graph.shape)


def main() -> None:
    """Prints the milliseconds of one inference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph")
    parser.add_argument("--often", type=int, default=40)
    parser.add_argument("--dense", action="store_true")
    given = parser.parse_args()
    graph = read_graph(given.graph)
    torch.manual_seed(0)
    x = torch.randn(graph.shape[0], FEATURES)
    first, second = torch.randn(FEATURES, HIDDEN), torch.randn(HIDDEN, HIDDEN)
    wide = torch.randn(HIDDEN, 4096)

    def infer() -> Tensor:
        if given.dense:
            hidden = torch.relu(x @ first)
            for _ in range(3):
                hidden = torch.tanh(hidden @ wide) @ wide.t()
            return graph @ hidden
        return graph @ (torch.relu(graph @ (x @ first)) @ second)

    with torch.inference_mode():
        infer()
        began = time.perf_counter()
        for _ in range(given.often):
            infer()
    print(f"{(time.perf_counter() - began) / given.often * 1e3:.4f} ms an inference")


if __name__ == "__main__":
    main()
