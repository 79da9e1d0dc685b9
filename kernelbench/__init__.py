"""Holds work: problems, workloads, the generators and files they are made of, and recipes."""

from .problem import Baseline, Call, Expected, Family, Problem, Structure, Tensor, Workload
from .registry import get, names, workload_for, workload_names

__all__ = [
    "Baseline",
    "Call",
    "Expected",
    "Family",
    "Problem",
    "Structure",
    "Tensor",
    "Workload",
    "get",
    "names",
    "workload_for",
    "workload_names",
]
