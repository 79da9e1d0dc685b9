"""Threads of its own that wait between calls; they share the rows and are joined in every call."""

import os
from concurrent.futures import ThreadPoolExecutor

import torch

COUNT = len(os.sched_getaffinity(0))
pool = ThreadPoolExecutor(COUNT)


def run(M, x, y):
    step = -(-M // COUNT)
    parts = [slice(start, start + step) for start in range(0, M, step)]
    list(pool.map(lambda rows: torch.softmax(x[rows], 1, out=y[rows]), parts))
