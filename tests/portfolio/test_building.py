"""What a portfolio hands on: its document, its source, and what stands for each kernel."""

from __future__ import annotations

import json

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.portfolio.building import Portfolio, join_representatives, learn_portfolio
from kernelwright.portfolio.times import FACTS, Seen
from kernelwright.portfolio.tree import choose
from kernelwright.tests.portfolio.planted import planted
from kernelwright.traces.records import Status, candidate_id

SPMM = registry.get("spmm_csr")
SOURCES = {name: f'// {name}\nextern "C" void spmm_csr();\n' for name in "abcd"}


def best(facts: FACTS) -> str:
    return "b" if facts["N"] <= 8 else "a"


def learned() -> Portfolio:
    table = planted(best)
    seen = [
        Seen(
            workload=workload,
            group=table.groups[row],
            facts=dict(table.facts[row]),
            candidate=name,
            source=candidate_id(SOURCES[name]),
            reference=candidate_id(SOURCES["a"]),
            status=Status.SCREENED,
            us=table.us[row, at],
            ratio=table.us[row, 0] / table.us[row, at],
        )
        for row, workload in enumerate(table.workloads)
        for at, name in enumerate(table.candidates)
    ]
    return learn_portfolio(SPMM, seen, rule="N <= 8")


def test_each_kernel_is_confirmed_where_it_is_chosen() -> None:
    found = learned()
    chosen = found.representatives()
    assert set(chosen) == set(found.names) == {"a", "b"}
    for name, workload in chosen.items():
        facts = found.table.facts[found.table.workloads.index(workload)]
        assert choose(found.tree, found.learner.values_of(facts)) == name == best(facts)
    named = {name: Workload(name=name, kind="generated") for name in found.table.workloads}
    parts = join_representatives(found, named).parts
    assert {part.workload.name for part in parts} == set(chosen.values())


def test_the_document_says_all_that_the_source_does() -> None:
    found = learned()
    document = json.loads(json.dumps(found.document(SOURCES)))
    assert document["kernels"] == {name: candidate_id(SOURCES[name]) for name in found.names}
    assert document["tree"]["feature"] == "N"
    assert document["tree"]["low"] == {"candidate": "b"}
    assert [line["name"] for line in document["ways"]] == [
        "fixed best",
        "rule",
        "learned",
        "oracle",
    ]
    assert (document["workloads"], document["patterns"]) == (160, 40)
    source = found.source(SOURCES)
    assert all(f"//   {line}\n" in source for line in document["leaves"])
    assert f"if (double(N) <= {document['tree']['at_most']!r})" in source
