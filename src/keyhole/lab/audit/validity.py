"""The assumptions of the theory: which of them a world meets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from keyhole.lab.worlds import LinearWorld

# A smallest eigenvalue of the sensing noise below this is 0 up to rounding.
TINY = 1e-12


@dataclass(frozen=True)
class Assumption:
    """An assumption of the theory, and whether a world meets it.

    Parameters
    ----------
    label : str
        Its label in the paper.
    says : str
        The assumption in words.
    met : bool
        Whether the world meets it.
    without : str
        The consequence if it is not met.
    """

    label: str
    says: str
    met: bool
    without: str

    def __str__(self) -> str:
        return f"{self.label}: {self.says}"


def assumptions(world: LinearWorld) -> tuple[Assumption, ...]:
    """Return the assumptions of the theory, each with whether a world meets it.

    ass:para and ass:mar are met by every world of at least two arms with normal observations: a
    finite number of parameters is bounded, and normal gaps have a bounded density.
    """
    return (
        Assumption(
            "eq:cy",
            "contexts and sensing noise are sub-Gaussian",
            world.is_subgaussian,
            "the entries of observations have no v_T, and lengths no L",
        ),
        Assumption(
            "eq:r1",
            "the noise of rewards is sub-Gaussian",
            bool(np.isfinite(world.r1)),
            "there is no R1, and no confidence ellipsoid",
        ),
        Assumption(
            "ass:subg",
            "E[x'mu - y'eta | y] = 0, as with normal contexts and normal sensing noise",
            bool(np.isfinite(world.r2)),
            "estimates tend to the regression given that the arm is chosen, and not to eta",
        ),
        Assumption(
            "eq:vt",
            "there is sensing noise in every direction",
            bool(np.linalg.eigvalsh(world.sensing_covariance).min() > TINY),
            "lambda_m is 0, and lem:eig promises nothing",
        ),
        Assumption(
            "eq:reward",
            "the contexts of arms are independent",
            not world.shared_context,
            "with one context for all arms lem:eig is false",
        ),
    )


def normal_twin(world: LinearWorld) -> LinearWorld:
    """Return the world with normal distributions of the same covariances."""
    return replace(
        world,
        context_distribution="normal",
        sensing_distribution="normal",
        reward_distribution="normal",
    )
