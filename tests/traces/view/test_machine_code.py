"""Machine code stands beside the source's lines that it came of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi.testclient import TestClient

from kernelwright.traces.events import EvaluationFinished
from kernelwright.traces.records import HotCode, Instruction, Profile
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app
from kernelwright.traces.view.machine_code import list_hot_lines, show_code

CODE = HotCode(
    what="Hot loop of f, 4 cycles a pass",
    instructions=(
        Instruction(text="vmovups (%rdx),%ymm0", line=2),
        Instruction(text="vaddps %ymm0,%ymm1,%ymm1", line=2),
        Instruction(text="inc %rax"),
        Instruction(text="vmulps %ymm1,%ymm2,%ymm2", line=2),
        Instruction(text="jne <script>", line=99),
    ),
    left_out=3,
)


def test_neighbours_of_one_line_stand_together() -> None:
    (shown,) = show_code(Profile(code=(CODE,)), "first\n  second  \nthird")
    assert [(g.line, g.source, len(g.texts)) for g in shown.groups] == [
        (2, "second", 2),
        (0, "", 1),
        (2, "second", 1),
        (99, "", 1),
    ]
    assert (shown.what, shown.left_out) == (CODE.what, 3)
    assert list_hot_lines((shown,)) == {2, 99}
    assert show_code(None, "first") == ()
    assert show_code(Profile(), "first") == ()


def test_how_often_instructions_execute_is_shown_where_it_was_counted() -> None:
    counts = (1000.0, 250.0, None, 0.0, 4e6)
    told = tuple(
        each.model_copy(update={"warps": warps})
        for each, warps in zip(CODE.instructions, counts, strict=True)
    )
    (shown,) = show_code(Profile(code=(CODE.model_copy(update={"instructions": told}),)), "")
    assert shown.is_counted
    assert [(g.warps, g.heat) for g in shown.groups] == [
        (("1,000", "250"), 1),
        (("",), 0),
        (("0",), 0),
        (("4,000,000",), 4),
    ]
    (without,) = show_code(Profile(code=(CODE,)), "")
    assert not without.is_counted
    assert {g.warps for g in without.groups} == {()}


def test_a_page_links_instructions_with_their_lines(sample: Any) -> None:
    with Store.open(sample.home) as store:
        with store.sheet(sample.campaign) as sheet:
            best = sheet.read_whole([sample.champion])[sample.champion]
        assert best.verdict is not None
        verdict = best.verdict.model_copy(update={"profile": Profile(code=(CODE,))})
        store.append(sample.campaign, EvaluationFinished(verdict=verdict))
        report = render_report(store, sample.campaign, charts=False)
        with store.sheet(sample.campaign) as sheet:
            outline = sheet.entries[sample.champion]
            assert outline.verdict is not None
            assert outline.verdict.profile is None
            whole = sheet.read_whole([sample.champion])[sample.champion]
            assert replace(whole, seqs=()).verdict == verdict
    with TestClient(create_app(sample.home), base_url="http://127.0.0.1:8765") as client:
        page = client.get(f"/c/{sample.campaign}/@best").text
    for text, prefix in ((page, ""), (report, f"{sample.champion[:10]}-")):
        assert "vaddps %ymm0,%ymm1,%ymm1" in text
        assert f'<a href="#{prefix}L2">2</a>' in text
        assert f'<span class="line hot" id="{prefix}L2">' in text
        assert "3 instructions more are left out" in text
        assert "jne <script>" not in text
