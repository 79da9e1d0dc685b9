"""Right and slow, and has the runner claim no time at all (C4)."""

import time

import torch

import __main__

honest = __main__.FRAME


class Liar:
    size = honest.size
    unpack = staticmethod(honest.unpack)

    @staticmethod
    def pack(kind, nonce, spent, count):
        return honest.pack(kind, nonce, 0 if count else spent, count)


__main__.FRAME = Liar
time.perf_counter_ns = time.monotonic_ns = lambda: 0


def run(x, y):
    until = time.perf_counter() + 0.01
    while time.perf_counter() < until:
        torch.softmax(x, 1, out=y)
