"""The public face: what it offers, what it says, and that the page's examples run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kernelwright as kw
from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP, CUDA
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.traces.records import (
    Depth,
    Measurement,
    Speedup,
    Status,
    Timing,
    Verdict,
    candidate_id,
)

PAGE = Path(kw.__file__).parent / "docs" / "api.md"
SOURCE = 'extern "C" void softmax(int M, int N, const float* x, float* y) { /* <b> */ }\n'


def verdict(status: Status = Status.VERIFIED) -> Verdict:
    timed = Measurement(
        workload="4096x1024",
        candidate=Timing(median_us=500.0, low_us=490.0, high_us=510.0),
        baselines={"torch eager": Timing(median_us=1000.0, low_us=990.0, high_us=1010.0)},
        speedup={"torch eager": Speedup(median=2.0, low=1.9, high=2.1)},
        best_baseline="torch eager",
    )
    return Verdict(
        candidate=candidate_id(SOURCE),
        problem="softmax",
        workload="4096x1024",
        language="cpp",
        target="cpu",
        status=status,
        protocol=Depth.CONFIRM,
        measurements=(timed,) if status.is_pass else (),
        reasons=() if status.is_pass else ("output y: error 3.2e-3 at (7, 12)",),
    )


def candidate(status: Status = Status.VERIFIED) -> kw.Candidate:
    return kw.Candidate("softmax", "cpu", "cpp", SOURCE, verdict(status))


def test_every_name_of_the_page_is_offered() -> None:
    table = PAGE.read_text("utf-8").partition("A bad kernel")[0]
    named = set(re.findall(r"`(\w+)[(`]", "".join(re.findall(r"^\| (.+?) \|", table, re.M))))
    assert named == set(kw.__all__) - {"__version__"}
    for name in kw.__all__:
        assert getattr(kw, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = kw.nonsense


def test_a_candidate_tells_what_was_credited_and_shows_itself() -> None:
    good = candidate()
    assert good.credited == 1.9
    assert repr(good).endswith(": VERIFIED, 2.00× (95 % 1.90–2.10) vs torch eager>")
    shown = good._repr_html_()
    assert "<td>torch eager</td><td>1 ms</td><td>2.00×</td><td>1.90–2.10</td>" in shown
    assert "<pre><code>extern" in shown
    assert "/* &lt;b&gt; */" in shown


def test_a_wrong_candidate_credits_nothing_and_says_why() -> None:
    bad = candidate(Status.INCORRECT)
    assert (bad.credited, bad.speedup, bad.measurement) == (None, None, None)
    assert "INCORRECT; output y: error 3.2e-3" in repr(bad)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(UsageError, match="does not say which language"):
        kw.evaluate("softmax", SOURCE)
    with pytest.raises(UsageError, match="no record to go with it"):
        kw.export(candidate(), "winner")
    with pytest.raises(UsageError, match="not open"):
        kw.Evaluator("softmax", target="cpu").evaluate(SOURCE)
    with pytest.raises(kw.KernelwrightError, match="no problem named 'softmx'"):
        kw.Evaluator("softmx", target="cpu")


@pytest.mark.slow
def test_a_kernel_for_a_device_that_is_not_here_is_screened(
    shared_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_CACHE_DIR", str(shared_cache))
    monkeypatch.chdir(tmp_path)
    source = skeleton(registry.get("softmax"), CUDA)
    with kw.Evaluator("softmax", language="cuda", target="sm_90") as softmax:
        if not softmax.is_emulated:
            pytest.skip("there is a device here")
        found = softmax.evaluate(source)
        wrong = softmax.evaluate(source.replace("/ total", "/ (1.5 * total)"))
    assert (found.status, found.credited) == (Status.SCREENED, None)
    assert wrong.status is not Status.SCREENED


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.timeout(600)
def test_the_examples_of_the_page_run_as_printed(
    shared_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_CACHE_DIR", str(shared_cache))
    monkeypatch.chdir(tmp_path)
    softmax = registry.get("softmax")
    (tmp_path / "softmax.cpp").write_text(skeleton(softmax, CPP), "utf-8")
    (tmp_path / "softmax.cu").write_text(skeleton(softmax, CUDA), "utf-8")
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    campaign = names["campaign"]
    assert isinstance(campaign, kw.Campaign)
    assert len(campaign.candidates) == 3
    assert campaign.id in (tmp_path / "softmax.html").read_text("utf-8")
    assert campaign.id in campaign._repr_html_()
    assert isinstance(names["home"], kw.Home)
    assert campaign.id in names["home"]._repr_html_()
