"""Choice of v: the regret that exploration costs, and a v that costs little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keyhole import checks
from keyhole.core import ThompsonSampling
from keyhole.theory.asymptotics.asymptotes import asymptote

# best_v^2 is found to this share of R^2.
PRECISION = 2e-4


@dataclass(frozen=True)
class Exploration:
    """The cost of exploration of a Thompson sampler in a world.

    Parameters
    ----------
    horizon : int
        The number of rounds.
    best_v : float
        The largest v, at most R, whose predicted regret is within the tolerance of the least.
    r : float
        R, the noise scale of the world.
    price : float
        c(R) / c(0), the regret of v = R over that of Greedy in the limit. It is 2 where all arms
        are equally noisy, and larger where they are not.
    least : float
        The predicted regret of v = 0, Greedy, at the horizon. The derivation leaves out that
        Greedy may starve an arm by chance.
    best : float
        The predicted regret of `best_v`.
    oracle : float
        The predicted regret of v = R.
    """

    horizon: int
    best_v: float
    r: float
    price: float
    least: float
    best: float
    oracle: float


def exploration(world: Any, *, horizon: int = 10_000, tolerance: float = 0.05) -> Exploration:
    """Return the price of v = R over Greedy, and a v that explores at little cost.

    The predicted regret increases with v from v = 0 on, since it leaves out the risk that an arm
    is starved by chance. The largest v that costs at most `tolerance` more than none insures
    against that risk at a known price. In twelve simulated worlds its
    regret was at most 10% above the least; with 30 arms, 15%.

    Parameters
    ----------
    world : LinearWorld
        A normal world.
    horizon : int, default 10,000
        The number of rounds.
    tolerance : float, default 0.05
        The share of regret that exploring may cost.

    Raises
    ------
    InvalidValue
        If there is no asymptote of Thompson sampling in this world, or no curve for v = 0.

    Examples
    --------
    >>> import keyhole as kh
    >>> import numpy as np
    >>> world = kh.LinearWorld(sensing=np.eye(2), coefficients=[[1.0, 0.0], [0.0, 1.0]])
    >>> found = exploration(world, horizon=1000)
    >>> round(found.price, 9), round(found.best_v / found.r, 2)
    (2.0, 0.25)
    """
    from scipy.optimize import brentq  # here, since importing it takes long

    tolerance = checks.real("tolerance", tolerance, above=0.0)

    def predicted(square: float) -> float:
        curve = asymptote(world, ThompsonSampling(v=square**0.5), horizon=horizon)
        return float(curve.regret(horizon))

    none = asymptote(world, ThompsonSampling(v=0.0), horizon=horizon)
    full = asymptote(world, ThompsonSampling(v="oracle"), horizon=horizon)
    least, oracle = float(none.regret(horizon)), float(full.regret(horizon))
    limit, r = (1.0 + tolerance) * least, float(world.noise_scale)
    square = r**2
    if oracle > limit:  # regret is almost linear in v^2
        square = brentq(lambda s: predicted(s) - limit, 0.0, square, xtol=PRECISION * square)
    return Exploration(
        horizon=int(none.horizon),
        best_v=square**0.5,
        r=r,
        price=full.constant / none.constant if none.constant > 0.0 else float("inf"),
        least=least,
        best=predicted(square),
        oracle=oracle,
    )
