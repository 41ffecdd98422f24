"""Retracing a log gives what the posterior predicted, round by round."""

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Rule, kernels

RULES = [
    Rule(dispersion=0.7),
    Rule(learned=True),
    Rule(optimism=0.5, radius=1.0, level=2.0),
    Rule(learned=True, diversity=0.05, patience=20.0),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("per_arm", [True, False])
@pytest.mark.parametrize("dim", [2, 45])
def test_it_equals_one_round_after_the_other(rule: Rule, per_arm: bool, dim: int) -> None:
    rng = np.random.default_rng(3)
    n, k = 60, 3
    parameter_of = np.arange(k) if per_arm else np.zeros(k, np.int64)
    y = rng.normal(size=(n, 1 if per_arm else k, dim))
    chosen, rewards = rng.integers(0, k, n), rng.normal(size=n)
    posterior = kh.Posterior(n_parameters=int(parameter_of[-1]) + 1, dim=dim)
    out = np.empty((4, n, k))
    kernels.retrace(kernels.Explorer(posterior.core, rule), parameter_of, y, chosen, rewards, out)
    again = kh.Posterior(n_parameters=posterior.n_parameters, dim=dim)
    for t in range(n):
        row = y[t] if per_arm else y[t][None]
        mean, width = again.predict(parameter_of, row)
        optimism, dispersion = again.explorations(rule)
        expected = np.array([mean[0], width[0], optimism[parameter_of], dispersion[parameter_of]])
        np.testing.assert_allclose(out[:, t], expected, rtol=1e-10, atol=1e-12)
        own = y[t, chosen[t] if not per_arm else 0]
        again.learn(int(parameter_of[chosen[t]]), own, float(rewards[t]))
    np.testing.assert_allclose(posterior.mean, again.mean, rtol=1e-10, atol=1e-12)


def test_wrong_shapes_and_indices_are_refused() -> None:
    posterior = kh.Posterior(n_parameters=2, dim=2)
    explorer = kernels.Explorer(posterior.core, Rule())
    y, rewards, out = np.zeros((3, 1, 2)), np.zeros(3), np.empty((4, 3, 2))
    with pytest.raises(IndexError, match="chosen must be from 0 to 1"):
        kernels.retrace(explorer, np.arange(2), y, np.array([0, 1, 2]), rewards, out)
    with pytest.raises(IndexError, match="parameters must be"):
        kernels.retrace(explorer, np.array([0, 5]), y, np.array([0, 1, 1]), rewards, out)
    with pytest.raises(ValueError, match="shapes of y"):
        kernels.retrace(explorer, np.arange(2), y[:2], np.array([0, 1, 1]), rewards, out)
    assert posterior.count.sum() == 0
