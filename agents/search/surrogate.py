# SPDX-License-Identifier: Apache-2.0
"""A Gaussian process over a space of knobs: what is expected of points that were not tried.

The covariance of two points is s² exp(-sum of w_j d_j) over the columns of `distances.py`: an
exponential kernel, since kernels' times jump from one value to the next. Weights, s² and a noise
are those that make the observations most likely under a prior (Rasmussen and Williams, Gaussian
Processes for Machine Learning, chapter 5).
"""

from __future__ import annotations

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
        self._seen: list[int] = []
        self._factor: list[np.ndarray] = []
        """The rows of the covariance's Cholesky factor L."""
        self._explained: list[np.ndarray] = []
        """The rows of its inverse times the covariances with what is watched."""
        self._whitened: list[float] = []
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
        self._theta, self.watched = found.x, watched
        self.forget(0)
        for point, value, error in zip(
            seen.tolist(), values.tolist(), errors.tolist(), strict=True
        ):
            self.observe(point, value, error)

    def observe(self, point: int, value: float, error: float) -> None:
        """Takes up one more observation with the weights that it has."""
        row = self._whiten(point)
        scale, noise = np.exp(self._theta[-2]), np.exp(self._theta[-1]) + JITTER + error**2
        left = float(np.sqrt(max(scale + noise - row @ row, JITTER)))
        rest = self._covariance(point, self.watched)
        if self._explained:
            rest = rest - row @ np.stack(self._explained)
        self._whitened.append((value - float(row @ np.array(self._whitened))) / left)
        self._factor.append(np.append(row, left))
        self._explained.append(rest / left)
        self._seen.append(point)

    def forget(self, kept: int) -> None:
        """Leaves the first observations, so many."""
        for rows in (self._seen, self._factor, self._explained, self._whitened):
            del rows[kept:]

    def predict(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of the values of what is watched."""
        explained = np.stack(self._explained)
        mean = np.array(self._whitened) @ explained
        variance = np.exp(self._theta[-2]) - np.einsum("ij,ij->j", explained, explained)
        return mean, np.sqrt(np.maximum(variance, 1e-9))

    def expect(self, point: int) -> float:
        """The mean of one point, watched or not."""
        return float(self._whiten(point) @ np.array(self._whitened))

    def _whiten(self, point: int) -> np.ndarray:
        """The inverse of L times the covariances of a point with what was seen."""
        count = len(self._seen)
        if not count:
            return np.zeros(0)
        factor = np.zeros((count, count))
        for number, row in enumerate(self._factor):
            factor[number, : number + 1] = row
        covariance = self._covariance(point, np.array(self._seen))
        return np.asarray(solve_triangular(factor, covariance, lower=True))

    def _covariance(self, point: int, others: np.ndarray) -> np.ndarray:
        apart = self.weights @ self._columns.compute_distances(point, others)
        return np.asarray(np.exp(self._theta[-2]) * np.exp(-apart))

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
