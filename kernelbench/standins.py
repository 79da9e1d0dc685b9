# SPDX-License-Identifier: Apache-2.0
"""Patterns by name: stand-ins for well-known graphs, and a few laws at any number of rows.

Rows, non-zeros and the coefficient of variation of a graph's row lengths are those of the SNAP and
SuiteSparse collections. The drawn graphs share these and a plausible locality, not the edges:
results on them are results on "a graph like email-Enron". A law is named with its rows: `hub 2000`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Generator = dict[str, float | int | str | bool]
"""How the pattern of a workload is drawn (sparse.pattern_of)."""


class StandIn(NamedTuple):
    """Statistics of one published graph."""

    rows: int
    nnz: int
    cv: float
    """Standard deviation of the row lengths divided by their mean."""
    p_local: float = 0.2
    window: int = 0
    gamma: float = 2.2
    note: str = ""
    """What a workload that draws it says of it."""

    @property
    def generator(self) -> Generator:
        """The generator of a workload that draws it."""
        return {"law": "degree", **{k: v for k, v in self._asdict().items() if k != "note"}}


_SHOP = (0.7, 64)
_ROAD = (0.95, 1000)
_CITE = (0.4, 2000)
_BATCH = (1.0, 32)
"""Of small graphs that are computed together: every edge lies near the diagonal."""
_ASSUMED = "the variation of its rows is assumed"

STAND_INS: dict[str, StandIn] = {
    "cora": StandIn(2_708, 10_556, 1.34, 0.4, 200),
    "citeseer": StandIn(3_327, 9_104, 1.24, 0.4, 200),
    "pubmed": StandIn(19_717, 88_648, 1.65, *_CITE, note="statistics of the pubmed citation graph"),
    "email-Enron": StandIn(36_692, 367_662, 3.60, note="statistics of email-Enron: uneven rows"),
    "email-EuAll": StandIn(265_214, 420_045, 6.30, gamma=2.0),
    "soc-Epinions1": StandIn(
        75_888,
        508_837,
        3.88,
        note="uneven rows: half a million entries, coefficient of variation 3.9",
    ),
    "soc-sign-epinions": StandIn(131_828, 841_372, 5.16, gamma=2.0),
    "soc-Slashdot0811": StandIn(77_360, 905_468, 3.15),
    "soc-Slashdot0902": StandIn(82_168, 948_464, 3.20),
    "soc-sign-Slashdot081106": StandIn(77_357, 516_575, 3.55),
    "as-caida": StandIn(31_379, 106_762, 9.02, gamma=2.0, note="a few huge hubs"),
    "p2p-Gnutella31": StandIn(62_586, 147_892, 1.86),
    "wiki-Talk": StandIn(2_394_385, 5_021_410, 47.6, gamma=1.8),
    "cit-HepPh": StandIn(34_546, 421_578, 1.25, *_CITE),
    "cit-HepTh": StandIn(27_770, 352_807, 1.26, *_CITE),
    "cit-Patents": StandIn(3_774_768, 16_518_948, 1.78, *_CITE),
    "ca-GrQc": StandIn(5_242, 28_968, 1.4, 0.4, 200),
    "ca-HepTh": StandIn(9_877, 51_946, 1.2, 0.4, 200),
    "ca-HepPh": StandIn(12_008, 236_978, 1.6, 0.4, 500),
    "ca-AstroPh": StandIn(18_772, 396_100, 1.4, 0.4, 500),
    "ca-CondMat": StandIn(23_133, 186_878, 1.3, 0.4, 500),
    "amazon0302": StandIn(
        262_111, 1_234_877, 0.20, *_SHOP, note="1.2 M entries in near-regular rows"
    ),
    "amazon0312": StandIn(400_727, 3_200_440, 0.38, *_SHOP),
    "amazon0505": StandIn(410_236, 3_356_824, 0.38, *_SHOP),
    "amazon0601": StandIn(403_394, 3_387_388, 0.33, *_SHOP),
    "com-Amazon": StandIn(334_863, 1_851_744, 1.0, *_SHOP),
    "com-DBLP": StandIn(317_080, 2_099_732, 1.5, *_SHOP),
    "com-Youtube": StandIn(1_134_890, 5_975_248, 9.6, gamma=2.0),
    "web-Google": StandIn(916_428, 5_105_039, 1.18, 0.6, 200),
    "web-Stanford": StandIn(281_903, 2_312_497, 1.38, 0.6, 200),
    "web-BerkStan": StandIn(685_230, 7_600_595, 1.47, 0.6, 200),
    "web-NotreDame": StandIn(325_729, 1_497_134, 4.67, 0.6, 200, 2.0),
    "roadNet-CA": StandIn(1_971_281, 5_533_214, 0.36, *_ROAD),
    "roadNet-PA": StandIn(1_090_920, 3_083_796, 0.36, *_ROAD),
    "roadNet-TX": StandIn(1_393_383, 3_843_320, 0.36, *_ROAD),
    "PROTEINS_full": StandIn(43_471, 162_088, 0.4, *_BATCH, note=f"1,113 graphs, {_ASSUMED}"),
    "DD": StandIn(334_925, 1_686_092, 0.4, *_BATCH, note=f"1,178 graphs, {_ASSUMED}"),
    "Yeast": StandIn(1_714_644, 3_636_546, 0.4, *_BATCH, note=f"79,601 graphs, {_ASSUMED}"),
    "ppi": StandIn(56_944, 818_716, 1.5, *_CITE, note=_ASSUMED),
    "artist": StandIn(50_515, 1_638_396, 1.5, *_SHOP, note=_ASSUMED),
    "soc-BlogCatalog": StandIn(88_784, 2_093_195, 3.0, note=_ASSUMED),
}
"""By the name that `--workload` takes on every sparse problem."""


class Law(NamedTuple):
    """A kind of pattern that a problem is tried on, at any size."""

    of: Callable[[int], Generator]
    """The generator for its number."""
    note: str = ""


LAWS: dict[str, Law] = {
    "uneven": Law(lambda rows: {"law": "degree", "rows": rows, "nnz": 6 * rows, "cv": 2.0}),
    "hub": Law(
        lambda rows: {"law": "hub", "n": rows, "nnz": 4 * rows}, "one full row, 40 % empty rows"
    ),
    "pruned": Law(
        lambda rows: {"law": "degree", "rows": rows, "nnz": rows * rows // 5, "cv": 0.2},
        "a square matrix with a fifth of its entries",
    ),
    "experts": Law(
        lambda rows: {"law": "degree", "rows": rows, "nnz": 8 * rows, "cv": 0.0, "p_local": 1.0},
        "rows with 8 entries each",
    ),
    "rmat": Law(
        lambda scale: {"law": "rmat", "scale": scale, "edge_factor": 16},
        "a third of the rows empty, the top hundredth hold a third of the entries",
    ),
}
"""By the first word of a pattern's name; the second is its rows, of `rmat` their logarithm."""


def read_law(words: str) -> tuple[Generator, str]:
    """The generator and the note of a pattern by its name.

    Args:
        words: a law and its number, as `hub 2000`.

    Raises:
        ValueError: it is none.
    """
    name, _, number = words.partition(" ")
    if name not in LAWS or not number.isdigit():
        raise ValueError(
            f"the pattern '{words}' is no law with a number, such as 'hub 2000'; laws are "
            f"{', '.join(LAWS)}"
        )
    return LAWS[name].of(int(number)), LAWS[name].note
