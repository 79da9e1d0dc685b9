# SPDX-License-Identifier: Apache-2.0
"""Published sizes of well-known graphs, for drawing offline stand-ins with the same statistics.

Rows, non-zeros and the coefficient of variation of the row lengths are those of the SNAP and
SuiteSparse collections. The drawn graphs share these and a plausible locality, not the edges:
results on them are results on "a graph like email-Enron".
"""

from __future__ import annotations

from typing import NamedTuple


class StandIn(NamedTuple):
    """Statistics of one published graph."""

    rows: int
    nnz: int
    cv: float
    """Standard deviation of the row lengths divided by their mean."""
    p_local: float = 0.2
    window: int = 0
    gamma: float = 2.2

    @property
    def generator(self) -> dict[str, float | int | str | bool]:
        """The generator of a workload that draws it."""
        return {"law": "degree", **self._asdict()}


_SHOP = (0.7, 64)
_ROAD = (0.95, 1000)
_CITE = (0.4, 2000)

STAND_INS: dict[str, StandIn] = {
    "cora": StandIn(2_708, 10_556, 1.34, 0.4, 200),
    "citeseer": StandIn(3_327, 9_104, 1.24, 0.4, 200),
    "pubmed": StandIn(19_717, 88_648, 1.65, *_CITE),
    "email-Enron": StandIn(36_692, 367_662, 3.60),
    "email-EuAll": StandIn(265_214, 420_045, 6.30, gamma=2.0),
    "soc-Epinions1": StandIn(75_888, 508_837, 3.88),
    "soc-sign-epinions": StandIn(131_828, 841_372, 5.16, gamma=2.0),
    "soc-Slashdot0811": StandIn(77_360, 905_468, 3.15),
    "soc-Slashdot0902": StandIn(82_168, 948_464, 3.20),
    "soc-sign-Slashdot081106": StandIn(77_357, 516_575, 3.55),
    "as-caida": StandIn(31_379, 106_762, 9.02, gamma=2.0),
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
    "amazon0302": StandIn(262_111, 1_234_877, 0.20, *_SHOP),
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
}
"""By the name that `--workload` takes on every sparse problem."""
