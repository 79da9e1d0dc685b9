"""The tables of the parts that time kernels, from their records."""

from __future__ import annotations

from itertools import groupby
from statistics import median
from typing import Any

from .records import Record

COUNTED = {
    "sectors of a global load": (
        "global_load_sectors_per_request",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    ),
    "sectors of a global store": (
        "global_store_sectors_per_request",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    ),
    "bank conflicts of shared loads": (
        "shared_load_bank_conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    ),
    "bank conflicts of shared stores": (
        "shared_store_bank_conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    ),
    "registers of a thread": ("registers", "launch__registers_per_thread"),
}
"""Words, our name, Nsight Compute's."""
TIME = "gpu__time_duration.sum"
NONE_EMULATED = float("inf")
NEAR = 0.05
"""Figures within this share of each other are the same."""


def recipes(found: dict[str, Record]) -> list[str]:
    """A line for each campaign and baseline."""
    import gpu_results

    lines = [
        "Times are CUDA events with a cold L2 cache. Speed-ups are medians with 95 % intervals "
        "from the confirming run; figures below 1 mean that the baseline is faster.",
        "",
        "| problem | workload | language | status | median µs | roofline share | speed-up against "
        "| candidates |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for record in (each for each in found.values() if "document" in each):
        lines += gpu_results.rows(record["document"], record["language"])
    return [*lines, ""]


def fairness(found: dict[str, Record]) -> list[str]:
    """A line for each problem: how often a kernel was credited beside its copy."""
    measured = [record for record in found.values() if "median" in record]
    lines = [
        "A kernel is confirmed beside its copy. It would be credited where the lower end of its "
        "95 % interval exceeds 1 + max(2 %, the noise of that run); none should be.",
        "",
        "| problem | workload | language | runs | credited | largest lower end | median ratio | "
        "range | median noise | median µs |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (problem, language), group in groupby(measured, lambda r: (r["problem"], r["language"])):
        runs = list(group)
        ratios = [run["median"] for run in runs]
        lines.append(
            f"| {problem} | {runs[0]['workload']} | {language} | {len(runs)} | "
            f"{sum(run['is_credited'] for run in runs)} | {max(r['low'] for r in runs):.3f} | "
            f"{median(ratios):.3f} | {min(ratios):.3f}–{max(ratios):.3f} | "
            f"{median(r['noise'] for r in runs):.3f} | {median(r['us'] for r in runs):.1f} |"
        )
    return [*lines, ""]


def emulation(found: dict[str, Record]) -> list[str]:
    """The same kernels' counts, emulated and counted by the hardware."""
    lines = [
        "Of each kernel the launch that takes the most time. Emulated counts are those of the "
        "accesses as g++ compiles them, registers those of the build.",
        "",
        "| problem | language | kernel | figure | emulated | hardware | hardware / emulated |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios: dict[str, list[float]] = {}
    for record in found.values():
        if not record.get("emulated") or not record["found"].get("launches"):
            continue
        line = record["found"]
        longest = max(line["launches"], key=lambda launch: launch["figures"].get(TIME, 0))
        for words, (ours, theirs) in COUNTED.items():
            told, counted = line["emulated"].get(ours), longest["figures"].get(theirs)
            if told is None or counted is None:
                continue
            ratio = _ratio(told, counted)
            ratios.setdefault(words, []).append(ratio)
            lines.append(
                f"| {line['problem']} | {line['language']} | {_kernel(line)} | {words} | "
                f"{told:.4g} | {counted:.4g} | {_say_ratio(ratio)} |"
            )
    summary = [
        "| figure | kernels | within 5 % | some where none was emulated | median of the others |",
        "|---|---|---|---|---|",
    ]
    for words, known in ratios.items():
        near = sum(abs(ratio - 1) <= NEAR for ratio in known)
        others = [ratio for ratio in known if ratio != NONE_EMULATED]
        middle = f"{median(others):.2f}" if others else ""
        apart = len(known) - len(others)
        summary.append(f"| {words} | {len(known)} | {near} | {apart} | {middle} |")
    return [*(summary if ratios else []), "", *lines, ""]


def model(found: dict[str, Record]) -> list[str]:
    """How the model's times stand to the measured ones, by problem and language."""
    import model as benchmark

    lines = [
        "*Static*: from the machine code and one trip count for all loops. *Emulated*: with the "
        "counts of an emulation on the CPU. Rank: Spearman's correlation with the measured times. "
        "Bias: the median of modelled / measured. Nine of ten are within this factor. Pick: how "
        "much slower than the fastest measured one is the kernel that the model calls fastest.",
        "",
        "| problem | language | model | kernels | rank | bias | nine of ten within | pick |",
        "|---|---|---|---|---|---|---|---|",
    ]
    known = [r["found"] for r in found.values() if r.get("emulated")]
    for _, group in groupby(known, lambda line: (line["problem"], line["language"])):
        same = list(group)
        lines += [benchmark.row(same, name) for name in ("static_us", "emulated_us")]
    timed = [r["found"] for r in found.values() if "found" in r and not r.get("emulated")]
    kernels = [
        f"| {line['problem']} | {line['language']} | {_kernel(line)} | {line['status']} | "
        f"{_us(line.get('us'))} | {_us(line.get('static_us'))} |"
        for line in timed
    ]
    head = ["", "| problem | language | kernel | status | median µs | static µs |"]
    return [*lines, *head, "|---|---|---|---|---|---|", *kernels, ""]


def _ratio(told: float, counted: float) -> float:
    """Both none is the same."""
    if told == counted:
        return 1.0
    return counted / told if told else NONE_EMULATED


def _say_ratio(ratio: float) -> str:
    return "none emulated" if ratio == NONE_EMULATED else f"{ratio:.2f}"


def _kernel(line: dict[str, Any]) -> str:
    knobs = " ".join(f"{name}={value}" for name, value in line["knobs"].items())
    return f"{line['family']} {knobs}"


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
