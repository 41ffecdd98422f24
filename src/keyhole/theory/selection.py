"""The regression given that an arm is chosen, and its price: a regret per round that never ends.

An arm is chosen where its observation looks good. Where E[r | y] is not linear in y, the estimate
of a policy that learns from its own choices tends to

    b_i = E[y_i y_i' | a = i]^-1 E[y_i r_i | a = i],    a = argmax_k y_k'b_k,

and not to the best linear prediction eta_i = E[y_i y_i']^-1 E[y_i r_i]. Regret then grows linearly.

In a normal world b = eta is the only fixed point with E[y_i y_i' 1(a = i)] invertible. There
E[r_i | y_1, ..., y_N] = y_i'eta_i, and a is a function of the observations, so that for every b
E[y_i r_i 1(a = i)] = E[y_i y_i' 1(a = i)] eta_i: the right side of the equation is eta whatever b
is. The argument needs that conditional expectation to be linear and nothing else of the normal law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core import Seed, Streams, seed_sequence
from keyhole.errors import InvalidValue
from keyhole.theory.quantities import Quantity, Source
from keyhole.theory.ranges import Floats

Places: TypeAlias = NDArray[np.int32]

# How many rounds are drawn at a time.
BLOCK = 2_000
# Each step of the iteration replaces all sums; the later ones are averaged into them.
PLAIN_STEPS, AVERAGED_STEPS = 10, 24
# Fixed points are refined from this share of the rounds, which is enough to tell them apart.
ROUGH = 0.2
# Two fixed points are different if their scores are, by this share of the scores' size.
DIFFERENT = 0.05
# Parts of the sample from which bias and error of an estimate follow.
BATCHES = 8
# Rounds for which the best observer is computed.
OBSERVED_ROUNDS = 20_000


@dataclass(frozen=True)
class SelectedRegression:
    """A fixed point of learning from one's own choices, as `selected_regression` finds it.

    Parameters
    ----------
    coefficients : ndarray of shape (n_arms, dim)
        b, the limit of the estimates.
    bias : ndarray of shape (n_arms,)
        The length of b_i - eta_i.
    pulls : ndarray of shape (n_arms,)
        The share of rounds in which each arm is chosen.
    floor : Quantity
        The regret per round, E[max_k y_k'eta_k - y_a'eta_a].
    loss : Quantity
        The reward per round that is lost against choices by eta. It may be negative: neither
        policy is the best where E[r | y] is not linear.
    observer_floor : Quantity or None
        The regret per round against the best observer, who chooses by E[x | y]'mu. None where that
        has no formula.
    linear_floor : Quantity or None
        The same for choices by eta: the price of a linear prediction without any selection.
    moved : float
        How far the last tenth of the steps has moved a coefficient: the error of the iteration.
    """

    coefficients: Floats
    bias: Floats
    pulls: Floats
    floor: Quantity
    loss: Quantity
    observer_floor: Quantity | None
    linear_floor: Quantity | None
    moved: float


class _Sample(NamedTuple):
    """Rounds of a world, as arrays."""

    y: Floats  # (n_arms, n, dim)
    rewards: Floats  # (n, n_arms)  x'mu where it is known, which has less noise
    values: Floats  # (n, n_arms)  y'eta

    def part(self, which: slice) -> _Sample:
        return _Sample(self.y[:, which], self.rewards[which], self.values[which])


class _Limit(NamedTuple):
    """Where the iteration ends, and the choices of the steps that are averaged."""

    b: Floats
    choices: tuple[Places, ...]
    moved: float


def selected_regression(
    world: Source, *, trials: int = 100_000, starts: int = 4, seed: Seed = 0
) -> tuple[SelectedRegression, ...]:
    """Find what estimates tend to where arms are learned from their own choices.

    This is the limit of `Greedy` and of `ThompsonSampling` at large times, when sampling adds
    nothing to y'b any more. The iteration follows their mean: each step adds the sums of the rounds
    in which an arm is chosen by the present b. It is averaged, since in a world of discrete
    observations two arms can tie at the fixed point, and choices between them then alternate.

    There may be several fixed points. All that are found from `starts` starts are returned, that
    from eta first; others may exist. A start that ends where an arm is never chosen is left out:
    its b is not defined, and `Greedy` alone would stay there.

    Parameters
    ----------
    world : World
        The world. Contexts may be shared or not.
    trials : int, default 100,000
        The number of rounds that expectations are taken over, at least 16,000.
    starts : int, default 4
        The number of starts: eta, and random coefficients of the same size.
    seed : int, numpy.random.SeedSequence or None, default 0
        The seed of these rounds and starts.

    Returns
    -------
    tuple of SelectedRegression
        The fixed points.

    Raises
    ------
    InvalidValue
        If `trials` or `starts` is too small, or a round has a missing entry.

    Examples
    --------
    >>> import keyhole as kh
    >>> signs = {"context_distribution": "rademacher", "sensing_distribution": "rademacher"}
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1, **signs)
    >>> (limit,) = kh.theory.selected_regression(world, trials=40_000)
    >>> bool(limit.floor.value > 5 * limit.floor.error)
    True
    """
    trials = checks.integer("trials", trials, min_value=BATCHES * BLOCK)
    starts = checks.integer("starts", starts, min_value=1)
    sample = _drawn(world, trials, seed)
    eta = np.array(world.eta, dtype=np.float64)
    rough = sample.part(slice(0, int(ROUGH * trials)))
    limits: list[_Limit] = []
    for start in _starts(eta, starts, seed):
        first = start if start is eta else _limit(rough, start).b
        limit = _limit(sample, first)
        is_defined = start is eta or _is_defined(limit)
        if is_defined and all(_distance(sample, limit.b, one.b) > DIFFERENT for one in limits):
            limits.append(limit)
    return tuple(_described(world, sample, eta, limit) for limit in limits)


def _starts(eta: Floats, n: int, seed: Seed) -> Iterator[Floats]:
    yield eta
    random = np.random.default_rng(seed_sequence(seed))
    for _ in range(n - 1):
        yield random.standard_normal(eta.shape) * np.sqrt(np.mean(eta**2))


def _drawn(world: Source, trials: int, seed: Seed) -> _Sample:
    state, parts = world.start(Streams(seed)), []
    n_arms, dim = world.eta.shape
    for _ in range(trials // BLOCK):
        one = world.rounds(state, BLOCK)
        # Copies: a world may hand out the same memory again.
        y = np.broadcast_to(one.observations, (BLOCK, n_arms, dim)).transpose(1, 0, 2).copy()
        rewards = np.where(np.isnan(one.latent), one.rewards, one.latent)
        parts.append((y, rewards, one.values.copy()))
    y = np.concatenate([part[0] for part in parts], axis=1)
    rewards, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    if np.isnan(y).any():
        raise InvalidValue("the fixed point needs observations without missing entries")
    return _Sample(y, rewards, values)


def _limit(sample: _Sample, start: Floats, plain: int = PLAIN_STEPS) -> _Limit:
    """Return where the iteration from `start` ends."""
    b, choices, path = start.copy(), [], []
    n_arms, dim = b.shape
    gram, moment = np.zeros((n_arms, dim, dim)), np.zeros((n_arms, dim))
    for step in range(plain + AVERAGED_STEPS):
        chosen = _choices(sample, b)
        share = 1.0 if step < plain else 1.0 / (step - plain + 2)
        for i in range(n_arms):
            rows = np.flatnonzero(chosen == i)
            y = sample.y[i][rows]
            gram[i] += share * (y.T @ y / len(chosen) - gram[i])
            moment[i] += share * (y.T @ sample.rewards[rows, i] / len(chosen) - moment[i])
            if np.linalg.matrix_rank(gram[i], hermitian=True) == dim:
                b[i] = np.linalg.solve(gram[i], moment[i])
            # An arm that is never chosen keeps its estimate, as it would in a run.
        if step >= plain:
            choices.append(chosen)
        path.append(b.copy())
    tenth = max(len(path) // 10, 1)
    return _Limit(b, tuple(choices), float(np.abs(b - path[-1 - tenth]).max()))


def _is_defined(limit: _Limit) -> bool:
    """Return whether every arm is chosen often enough to have a regression."""
    chosen = np.bincount(limit.choices[-1], minlength=len(limit.b))
    return bool((chosen >= limit.b.shape[1]).all())


def _distance(sample: _Sample, b: Floats, other: Floats) -> float:
    """Return the root mean square of y'(b - other), over that of y'b."""
    off, size = (
        [rows @ each for rows, each in zip(sample.y, c, strict=True)] for c in (b - other, b)
    )
    return float(np.sqrt(np.mean(np.square(off)) / np.mean(np.square(size))))


def _choices(sample: _Sample, b: Floats) -> Places:
    """Return the arm of each round with the largest y'b."""
    scores = np.array([rows @ each for rows, each in zip(sample.y, b, strict=True)])
    chosen: Places = scores.argmax(axis=0).astype(np.int32)
    return chosen


def _of_chosen(values: Floats, choices: tuple[Places, ...]) -> Floats:
    """Return the value of the chosen arm in each round, averaged over the steps."""
    rounds = np.arange(len(values))
    found: Floats = np.mean([values[rounds, chosen] for chosen in choices], axis=0)
    return found


def _described(world: Source, sample: _Sample, eta: Floats, limit: _Limit) -> SelectedRegression:
    size = len(sample.values) // BATCHES
    batches = [sample.part(slice(k * size, (k + 1) * size)) for k in range(BATCHES)]
    parts = np.array(
        [_prices(each, _limit(each, limit.b, plain=0).choices) for each in batches]
    )  # (BATCHES, 2)
    # The error of b adds to the floor, on average c / n from n rounds: both sizes tell c.
    whole = (BATCHES * _prices(sample, limit.choices) - parts.mean(axis=0)) / (BATCHES - 1)
    error = parts.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    best, linear = _against_observer(world, sample, limit.choices)
    return SelectedRegression(
        coefficients=limit.b,
        bias=np.linalg.norm(limit.b - eta, axis=1),
        pulls=np.bincount(np.concatenate(limit.choices), minlength=len(eta))
        / (len(limit.choices) * len(sample.values)),
        floor=Quantity(
            float(whole[0]), float(error[0]), "Regret(T)", "regret per round in the limit"
        ),
        loss=Quantity(
            float(whole[1]), float(error[1]), "eq:reward", "reward per round below that by eta"
        ),
        observer_floor=best,
        linear_floor=linear,
        moved=limit.moved,
    )


def _prices(sample: _Sample, choices: tuple[Places, ...]) -> Floats:
    """Return the mean regret, and the mean reward below that of choices by eta."""
    best = sample.values.argmax(axis=1)
    regret = sample.values.max(axis=1) - _of_chosen(sample.values, choices)
    loss = _of_chosen(sample.rewards, (best,)) - _of_chosen(sample.rewards, choices)
    return np.array([regret.mean(), loss.mean()])


def _against_observer(
    world: Source, sample: _Sample, choices: tuple[Places, ...]
) -> tuple[Quantity | None, Quantity | None]:
    """Return the regret per round against E[x | y]'mu: of these choices, and of those by eta."""
    expect = getattr(world, "expected_values", None)
    n = min(OBSERVED_ROUNDS, len(sample.values))
    values = None if expect is None else expect(sample.y[:, :n].transpose(1, 0, 2))
    if values is None:
        return None, None
    made = tuple(chosen[:n] for chosen in choices), (sample.values[:n].argmax(axis=1),)
    words = ("regret per round against E[x | y]'mu", "the same of choices by eta")
    found = []
    for each, meaning in zip(made, words, strict=True):
        missed = values.max(axis=1) - _of_chosen(values, each)
        error = missed.std() / np.sqrt(n)
        found.append(Quantity(float(missed.mean()), float(error), "Regret(T)", meaning))
    return found[0], found[1]
