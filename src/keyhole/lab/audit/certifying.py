"""Certificates and simulation: the burn-in of a hybrid one, and a check of any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from keyhole import checks
from keyhole.core import Policy, Seed
from keyhole.errors import InvalidValue
from keyhole.lab.simulation import endings, simulate
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import BurnIn, Certificate, certificate, runs_needed

# How many points of a curve are simulated.
CHECKPOINTS = 80


def burn_in(
    world: LinearWorld,
    policy: Policy,
    *,
    rounds: int,
    runs: int | None = None,
    delta: float = 0.05,
    confidence: float = 0.95,
    seed: Seed = 0,
    progress: Any = False,
) -> BurnIn:
    """Measure the first rounds of a policy, for a hybrid certificate.

    Parameters
    ----------
    world : LinearWorld
        A world with normal contexts, each arm's own or shared.
    policy : Policy
        `ThompsonSampling(v=...)` or `Greedy()`.
    rounds : int
        How many rounds are measured.
    runs : int, optional
        How many runs. By default as many as leave half of `delta` to the rest of the proof.
    delta : float, default 0.05
        The delta of the certificate.
    confidence : float, default 0.95
        The confidence over the simulations.
    seed : int, numpy.random.SeedSequence or None, default 0
        The seed of the runs. A check of the certificate needs another one.
    progress : bool or callable, optional
        As in `simulate`.

    Returns
    -------
    BurnIn
        The largest regret and each arm's least information of any run.

    Raises
    ------
    InvalidValue
        If no certificate covers the world or the policy.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1, shared_context=True)
    >>> first = kh.audit.burn_in(world, kh.Greedy(), rounds=100, runs=100)
    >>> first.runs, len(first.information)
    (100, 2)
    """
    if not isinstance(world, LinearWorld):
        raise InvalidValue(f"world must be a LinearWorld, got {type(world).__name__}")
    rounds = checks.integer("rounds", rounds)
    if runs is None:
        runs = runs_needed(world.n_arms, share=0.5 * delta, confidence=confidence)
    # Refused before anything is simulated, if there is no certificate of this world and policy.
    empty = np.zeros((1, world.n_arms, world.dim, world.dim))
    BurnIn.measured(world, policy, rounds=rounds, regret=[0.0], precision=empty)
    ends = endings(world, policy, horizon=rounds, replications=runs, seed=seed, progress=progress)
    return BurnIn.measured(
        world, policy, rounds=rounds, regret=ends.regret, precision=ends.precision
    )


@dataclass(frozen=True, eq=False)
class Check:
    """A certificate beside simulated runs.

    Parameters
    ----------
    certificate : Certificate
        The certificate.
    runs : int
        The number of runs.
    violations : int
        How many of them end with a regret above the certificate.
    worst : float
        The largest regret of any run at the horizon.
    mean : float
        Their mean regret.
    curves : Dataset
        The runs, as `simulate` returns them.
    """

    certificate: Certificate
    runs: int
    violations: int
    worst: float
    mean: float
    curves: xr.Dataset

    @property
    def slack(self) -> float:
        """The certificate over the worst run: how much the bound could be lowered."""
        return self.certificate.value / self.worst if self.worst > 0.0 else float("inf")

    def __str__(self) -> str:
        return (
            f"{self.violations} of {self.runs:,} runs above the certificate; worst "
            f"{self.worst:,.1f}, mean {self.mean:,.1f}, slack {self.slack:.3g} "
            "(certificate / worst)"
        )


def check_certificate(
    world: LinearWorld,
    policy: Policy,
    found: Certificate,
    *,
    runs: int,
    seed: Seed = 1,
    progress: Any = False,
) -> Check:
    """Simulate a policy, and count the runs whose regret exceeds its certificate.

    Parameters
    ----------
    world : LinearWorld
        The world of the certificate.
    policy : Policy
        Its policy.
    found : Certificate
        The certificate.
    runs : int
        How many runs.
    seed : int, numpy.random.SeedSequence or None, default 1
        Their seed, another one than that of a burn-in.
    progress : bool or callable, optional
        As in `simulate`.

    Returns
    -------
    Check
        The violations, the slack and the curves.

    Raises
    ------
    InvalidValue
        If the certificate is of another world or policy.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    >>> bound = kh.theory.certificate(world, kh.Greedy(), horizon=2_000)
    >>> check = kh.audit.check_certificate(world, kh.Greedy(), bound, runs=20)
    >>> check.violations, check.slack > 10
    (0, True)
    """
    again = certificate(
        world,
        policy,
        found.horizon,
        found.delta,
        burn_in=found.burn_in,
        confidence=found.confidence if found.burn_in is not None else 0.95,
    )
    if again.value != found.value:
        raise InvalidValue(
            f"the certificate is of another world or policy: its value is {found.value:.6g}, and "
            f"that of this world and policy {again.value:.6g}"
        )
    times = np.unique(np.geomspace(1, found.horizon, CHECKPOINTS).astype(int))
    curves = simulate(
        world,
        {"policy": policy},
        horizon=found.horizon,
        replications=runs,
        seed=seed,
        checkpoints=times.tolist(),
        progress=progress,
    )
    final = curves.regret.sel(policy="policy").isel(time=-1).values
    return Check(
        certificate=found,
        runs=len(final),
        violations=int((final > found.value).sum()),
        worst=float(final.max()),
        mean=float(final.mean()),
        curves=curves,
    )
