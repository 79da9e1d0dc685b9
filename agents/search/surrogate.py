# SPDX-License-Identifier: Apache-2.0
"""A Gaussian process over a space of knobs: what is expected of points that were not tried.

The covariance of two points is s² exp(-sum of w_j d_j) over the columns of `distances.py`: an
exponential kernel, since kernels' times jump from one value to the next. Weights, s² and a noise
are those that make the observations most likely under a prior (Rasmussen and Williams, Gaussian
Processes for Machine Learning, chapter 5).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from .distances import Columns

WEIGHT, WEIGHT_SPREAD = 0.7, 1.5
"""Prior of a weight: its median, and the deviation of its logarithm."""
NOISE, NOISE_SPREAD = 1e-3, 1.5
"""The same of the variance of the noise, where the deviation of observations is 1."""
JITTER = 1e-6
STEPS = 12
"""Of the optimiser in one fit; the next begins where it ended."""


class Surrogate:
    """Learns from observations of numbered points. Values are scaled by who observes."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        count = len(columns.values)
        self._theta = np.concatenate([np.full(count, np.log(WEIGHT)), [0.0, np.log(NOISE)]])
        self._prior = self._theta.copy()
        self._spread = np.concatenate([np.full(count, WEIGHT_SPREAD), [1.0, NOISE_SPREAD]])
        self.watched: np.ndarray = np.zeros(0, np.intp)
        """The points that are predicted."""
        self._seen: np.ndarray = np.zeros(0, np.intp)
        self._factor: np.ndarray = np.zeros((0, 0))
        """L, the covariance's Cholesky factor."""
        self._explained: np.ndarray = np.zeros((0, 0))
        """Its inverse times the covariances with what is watched."""
        self._whitened: np.ndarray = np.zeros(0)
        """Its inverse times the values."""

    @property
    def weights(self) -> np.ndarray:
        """Of each column: how much it counts."""
        weights: np.ndarray = np.exp(self._theta[:-2])
        return weights

    def __len__(self) -> int:
        return len(self._seen)

    def learn(
        self, seen: np.ndarray, values: np.ndarray, errors: np.ndarray, watched: np.ndarray
    ) -> None:
        """Fits weights to observations, and forgets others.

        Args:
            seen: numbers of points.
            values: of mean 0 and deviation 1.
            errors: standard errors of the values.
            watched: what is to be predicted until it learns again.
        """
        apart = self._columns.compute_distances(seen, seen).astype(np.float64)
        bounds = [(-6.0, 3.0)] * (len(self._theta) - 2) + [(-3.0, 3.0), (-10.0, 0.0)]
        found = minimize(
            self._unlikeliness,
            self._theta,
            args=(apart, values, errors),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": STEPS},
        )
        self._theta, self.watched, self._seen = found.x, watched, seen
        covariance = self._covariances(seen, seen)
        covariance[np.diag_indices(len(seen))] += self._noise + errors**2
        self._factor = np.linalg.cholesky(covariance)
        joined = np.column_stack([self._covariances(seen, watched), values])
        solved = solve_triangular(self._factor, joined, lower=True)
        self._explained, self._whitened = solved[:, :-1], solved[:, -1]

    def observe(self, point: int, value: float, error: float) -> None:
        """Takes up one more observation with the weights that it has."""
        row, count = self._whiten(point), len(self._seen)
        left = np.sqrt(max(self._scale + self._noise + error**2 - row @ row, JITTER))
        rest = (self._covariances([point], self.watched)[0] - row @ self._explained) / left
        factor = np.zeros((count + 1, count + 1))
        factor[:count, :count], factor[count, :count], factor[count, count] = (
            self._factor,
            row,
            left,
        )
        self._factor, self._explained = factor, np.vstack([self._explained, rest])
        self._whitened = np.append(self._whitened, (value - row @ self._whitened) / left)
        self._seen = np.append(self._seen, point)

    def forget(self, kept: int) -> None:
        """Leaves the first observations, so many."""
        self._factor, self._explained = self._factor[:kept, :kept], self._explained[:kept]
        self._seen, self._whitened = self._seen[:kept], self._whitened[:kept]

    def predict(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of the values of what is watched."""
        explained = np.einsum("ij,ij->j", self._explained, self._explained)
        variance = np.maximum(self._scale - explained, 1e-9)
        return self._whitened @ self._explained, np.sqrt(variance)

    def expect(self, point: int) -> float:
        """The mean of one point, watched or not."""
        return float(self._whiten(point) @ self._whitened)

    @property
    def _scale(self) -> float:
        return float(np.exp(self._theta[-2]))

    @property
    def _noise(self) -> float:
        return float(np.exp(self._theta[-1])) + JITTER

    def _whiten(self, point: int) -> np.ndarray:
        """The inverse of L times the covariances of a point with what was seen."""
        covariance = self._covariances([point], self._seen)[0]
        return np.asarray(solve_triangular(self._factor, covariance, lower=True))

    def _covariances(self, ones: Iterable[int], others: np.ndarray) -> np.ndarray:
        apart = [self.weights @ self._columns.compute_distances(one, others) for one in ones]
        return np.asarray(self._scale * np.exp(-np.stack(apart)))

    def _unlikeliness(
        self, theta: np.ndarray, apart: np.ndarray, values: np.ndarray, errors: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Minus the logarithm of the posterior of the weights, and its gradient."""
        weights, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
        signal = scale * np.exp(-np.tensordot(weights, apart, 1))
        covariance = signal + np.diag(noise + JITTER + errors**2)
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return 1e9, np.zeros_like(theta)
        inverse = cho_solve((factor, True), np.eye(len(values)))
        alpha = inverse @ values
        beyond = (theta - self._prior) / self._spread
        cost = 0.5 * values @ alpha + np.log(np.diag(factor)).sum() + 0.5 * beyond @ beyond
        rest = inverse - np.outer(alpha, alpha)
        pull = rest * signal
        slope = np.concatenate(
            [
                -0.5 * weights * np.tensordot(apart, pull, ([1, 2], [0, 1])),
                [0.5 * pull.sum(), 0.5 * noise * np.trace(rest)],
            ]
        )
        return float(cost), slope + beyond / self._spread
