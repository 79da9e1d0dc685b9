"""Tables with a known answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelwright.kernelbench import registry
from kernelwright.portfolio.declared import declare_features
from kernelwright.portfolio.learning import Learner
from kernelwright.portfolio.times import FACTS, Table

CANDIDATES = ("a", "b", "c", "d")
WIDTHS = (1, 8, 32, 128)
FEATURES = declare_features(registry.get("spmm_csr"))


def learner(**changes: int) -> Learner:
    return Learner(FEATURES, **changes)


def planted(
    best: Callable[[FACTS], str],
    *,
    matrices: int = 40,
    noise: float = 0.02,
    worse: float = 1.5,
    seed: int = 0,
) -> Table:
    """Patterns of random sizes at four widths; `best` says who is `worse` times as fast there."""
    rng = np.random.default_rng(seed)
    names, groups, facts, us = [], [], [], []
    for number in range(matrices):
        rows = int(10 ** rng.uniform(2.5, 5.5))
        nnz = int(rows * 10 ** rng.uniform(0, 2))
        for width in WIDTHS:
            known = {"M": rows, "K": rows, "nnz": nnz, "N": width}
            known = {key: float(value) for key, value in known.items()}
            names.append(f"{number}:N={width}")
            groups.append(str(number))
            facts.append(known)
            factor = np.where(np.array(CANDIDATES) == best(known), 1.0, worse)
            us.append(factor * 100 * np.exp(noise * rng.standard_normal(len(CANDIDATES))))
    return Table(
        tuple(names), tuple(groups), tuple(facts), CANDIDATES, np.array(us), np.ones(len(us))
    )
