# SPDX-License-Identifier: Apache-2.0
"""One step of a Mamba-2 layer's state, as a decoder takes it for each token: bound by memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS
from ..families import blemish, draw, noise, thin_columns
from ..problem import Expected, Family, Inputs
from ..state_space import SILENT, draw_decays, gate

PROBLEM = {
    "title": "State update of a state-space model, one token",
    "definition": "after[i,h,p,n] = exp(dt[i,h] A[h]) * state[i,h,p,n] + dt[i,h] * x[i,h,p] * "
    "B[i,n]; y[i,h,p] = (sum over n of C[i,n] * after[i,h,p,n] + D[h] * x[i,h,p]) * z / "
    "(1 + exp(-z)), z = z[i,h,p]",
    "source": "Mamba-2, arXiv 2405.21060 (decoding); sizes of its models, one group of B and C",
    "tags": ["dense"],
    "is_row_wise": True,
    "axes": {"M": "sequences", "H": "heads", "P": "elements of a head", "N": "states of each"},
    "inputs": {
        "state": "float32[M, H, P, N]",
        "x": "float32[M, H, P]: the token",
        "z": "float32[M, H, P]: its gate",
        "dt": "float32[M, H]: positive",
        "A": "float32[H]: negative",
        "B": "float32[M, N]",
        "C": "float32[M, N]",
        "D": "float32[H]: of the skip connection",
    },
    "outputs": {"after": "float32[M, H, P, N]: the next state", "y": "float32[M, H, P]"},
    "flops": "5 * M * H * P * N + 33 * M * H * P + 24 * M * H",  # SiLU 28; exponential 22
    "workloads": {
        "realistic": {"8x80x64x128": "Mamba-2 2.7B", "16x24x64x128": "Mamba-2 130M"},
        "tiny": {"tiny": {"M": 2, "H": 3, "P": 10, "N": 20}},
        "adversarial": {"3x5x67x33": "odd sizes", "1x257x1x511": "heads of one element"},
    },
    "families": "-constant large nonfinite",  # equal terms round alike
    "accuracy": "after: n = 16, s = |e^(dt A) state| (1 + |dt A|) + |dt x B|. y: n = N + 16, s = "
    "(sum over n of |C| times that + |D x|) |z| sigma (1 + |z| (1 - sigma)), sigma that of z; it "
    "is made of `after` before that is rounded to a narrow type. NaN and infinities of the state "
    "and NaN of x come out as the definition has them.",
}


def values(family: Family, rng: np.random.Generator, M: int, H: int, P: int, N: int) -> Inputs:
    """Steps and decays as trained models have them; LARGE is a state for large y."""
    kind = Family.NORMAL if family is Family.LARGE else family
    state = draw(kind, (M * H * P, N), rng, varies=0, max_decades=0.5)
    state *= np.float32(500 / N if family is Family.LARGE else 1)  # a half holds y
    x = draw(kind, (M * H, P), rng, varies=0, max_decades=0.5)
    b, c = (draw(kind, (M, N), rng, varies=0, max_decades=0.5) for _ in "BC")
    thin_columns(family, c, rng)
    blemish(family, state, rng)
    blemish(family, x, rng, (np.nan,))
    is_finite = family is not Family.NONFINITE
    x, *decays = draw_decays(x.reshape(M, H, P), rng, are_far=is_finite, silent=SILENT)
    return state.reshape(M, H, P, N), x, 2 * noise((M, H, P), rng), *decays, b, c, noise((H,), rng)


def oracle(state: Any, x: Any, z: Any, dt: Any, A: Any, B: Any, C: Any, D: Any) -> Any:
    """The definition in float64; magnitudes go the same way."""
    state, x, z, dt = (array.astype(np.float64) for array in (state, x, z, dt))
    power, added = dt * A, np.einsum("ih,ihp,in->ihpn", dt, x, B.astype(np.float64))
    after = np.exp(power)[..., None, None] * state
    size = np.abs(after) * (1 - power)[..., None, None] + np.abs(added)
    after += added
    y = np.einsum("ihpn,in->ihp", after, C) + D[:, None] * x
    s = np.einsum("ihpn,in->ihp", size, np.abs(C)) + np.abs(D[:, None] * x)
    many = C.shape[1] + ROUNDINGS
    return {"after": Expected(after, size, ROUNDINGS), "y": Expected(*gate(y, s, z), many)}


def by_compile(
    torch: Any, state: Any, x: Any, z: Any, dt: Any, A: Any, B: Any, C: Any, D: Any
) -> Any:
    """The definition, in float32 whatever the tensors are."""
    state, x, z, dt, b, c = (each.float() for each in (state, x, z, dt, B, C))
    kept, added = torch.exp(dt * A.float()), (dt[..., None] * x)[..., None] * b[:, None, None]
    after = state * kept[..., None, None] + added
    y = (after * c[:, None, None]).sum(-1) + D.float()[:, None] * x
    return after, y * torch.nn.functional.silu(z)
