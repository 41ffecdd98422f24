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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

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
# The share of the sums that a step replaces. Where arms are near a tie, steps that replace all of
# them overshoot, and wander without end.
SHARE = 0.25
# Steps end when the last, and the last ten together, move the scores by less than this share of
# their sampling error, which is about 1 / sqrt(n) of their size.
STRIDE, MAX_STRIDES, STILL = 10, 8, 0.1
# Where they do not end, choices alternate between arms that tie. Sums are then averaged over passes
# of these lengths, each of which gives the sums before it half its own weight.
PASSES = (24, 48)
# Starts are followed on these first rounds, which are enough to tell fixed points apart.
ROUGH_ROUNDS = 20_000
# Two fixed points are different if their scores are, by this share of the scores' size.
DIFFERENT = 0.05
# Parts of the sample from which bias and error of an estimate follow.
BATCHES = 8
# Rounds for which the best observer is computed.
OBSERVED_ROUNDS = 20_000


@dataclass(frozen=True)
class SelectedRegression:
    """A fixed point of learning from own choices, as `selected_regression` finds it.

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
        How far the last ten steps, or the last pass where arms tie, have moved a coefficient. The
        errors of `floor` and `loss` contain what this movement changes.
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
    """The end of the iteration: the mean b, and the b by which late choices are made."""

    b: Floats  # (n_arms, dim)
    late: tuple[Floats, ...]  # one where the iteration converged, a pass where arms tie
    before: tuple[Floats, ...]  # the same, ten steps or a pass earlier
    moved: float


def selected_regression(
    world: Source, *, trials: int = 100_000, starts: int = 32, seed: Seed = 0
) -> tuple[SelectedRegression, ...]:
    """Find the limits of estimates that learn from a policy's own choices.

    This is the limit of `Greedy` and of `ThompsonSampling` at large times, when sampling adds
    nothing to y'b any more. The iteration follows their mean: each step adds the sums of the rounds
    in which an arm is chosen by the present b, and forgets a share of the earlier ones, until b
    stays. In a world of discrete observations two arms can tie at the fixed point, and choices
    between them then alternate: prices are averaged over late steps alone. Prices come from rounds
    that b was not fitted on.

    There may be several fixed points. All that are found from `starts` starts are returned, that
    from eta first; others may exist. A start that ends where an arm is never chosen is left out:
    its b is not defined, and `Greedy` alone would stay there.

    Parameters
    ----------
    world : World
        The world. Contexts may be shared or not.
    trials : int, default 100,000
        The number of rounds that b is fitted on, at least 16,000. As many others are drawn to
        evaluate it.
    starts : int, default 32
        The number of starts: eta, and random coefficients of the same size. A fixed point that a
        tenth of the random starts lead to is missed by 32 with probability 0.9^31 = 0.04.
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
    # Fixed points are fitted on one half of the stream and evaluated on the other.
    state = world.start(Streams(seed))
    sample, fresh = (_drawn(world, state, trials) for _ in range(2))
    eta = np.array(world.eta, dtype=np.float64)
    rough = sample.part(slice(0, ROUGH_ROUNDS))
    limits = _distinct(rough, _starts(eta, starts, seed))
    # Near a tie one sample can split a fixed point in two: both samples must keep them apart.
    for rounds in (fresh, sample):
        limits = _distinct(rounds, [limit.b for limit in limits])
    return tuple(_described(world, sample, fresh, eta, limit) for limit in limits)


def _starts(eta: Floats, n: int, seed: Seed) -> Iterator[Floats]:
    yield eta
    random = np.random.default_rng(seed_sequence(seed))
    for _ in range(n - 1):
        yield random.standard_normal(eta.shape) * np.sqrt(np.mean(eta**2))


def _distinct(sample: _Sample, starts: Iterable[Floats]) -> list[_Limit]:
    """Return the different limits from these starts, the first of them in any case."""
    limits: list[_Limit] = []
    for start in starts:
        limit = _limit(sample, start)
        is_defined = not limits or _is_defined(sample, limit)
        if is_defined and all(_distance(sample, limit.b, one.b) > DIFFERENT for one in limits):
            limits.append(limit)
    return limits


def _drawn(world: Source, state: Any, trials: int) -> _Sample:
    parts = []
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


class _Sums:
    """E[y y' 1(a = i)] and E[y r 1(a = i)], and the estimate b that solves them."""

    def __init__(self, b: Floats) -> None:
        n_arms, dim = b.shape
        self.b = b.copy()
        self.gram, self.moment = np.zeros((n_arms, dim, dim)), np.zeros((n_arms, dim))

    def step(self, sample: _Sample, share: float) -> None:
        """Average the sums with those of the choices by the present b, and solve for b.

        Parameters
        ----------
        sample : _Sample
            The rounds.
        share : float
            The weight of the new sums; the old ones keep 1 - share.
        """
        chosen = _choices(sample, self.b)
        for i, rows in enumerate(np.flatnonzero(chosen == i) for i in range(len(self.b))):
            y = sample.y[i][rows]
            gram, moment = y.T @ y, y.T @ sample.rewards[rows, i]
            self.gram[i] += share * (gram / len(chosen) - self.gram[i])
            self.moment[i] += share * (moment / len(chosen) - self.moment[i])
            if np.linalg.matrix_rank(self.gram[i], hermitian=True) == len(gram):
                self.b[i] = np.linalg.solve(self.gram[i], self.moment[i])
            # An arm that is never chosen keeps its estimate, as it would in a run.

    def path(self, sample: _Sample, shares: list[float]) -> tuple[Floats, ...]:
        """Take several steps, and return b before each of them.

        Parameters
        ----------
        sample : _Sample
            The rounds.
        shares : list of float
            The share of each step.
        """
        path = []
        for share in shares:
            path.append(self.b.copy())
            self.step(sample, share)
        return tuple(path)


def _limit(sample: _Sample, start: Floats) -> _Limit:
    """Return where the iteration from `start` ends."""
    sums, still = _Sums(start), STILL / np.sqrt(len(sample.values))
    sums.step(sample, 1.0)
    for _ in range(MAX_STRIDES):
        path = sums.path(sample, [SHARE] * STRIDE)
        # The last step is looked at too, since a cycle may have ten steps.
        if all(_distance(sample, sums.b, b) < still for b in (path[0], path[-1])):
            return _Limit(sums.b, (sums.b,), path[:1], _moved(sums.b, path[0]))
    for length in PASSES:
        before = path
        path = sums.path(sample, [1.0 / (length // 2 + k + 1) for k in range(length)])
    return _Limit(sums.b, path, before, _moved(sums.b, path[0]))


def _moved(b: Floats, before: Floats) -> float:
    return float(np.abs(b - before).max())


def _is_defined(sample: _Sample, limit: _Limit) -> bool:
    """Return whether every arm is chosen often enough to have a regression."""
    return bool((_pulls(sample, limit.late) * len(sample.values) >= limit.b.shape[1]).all())


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


def _pulls(sample: _Sample, late: tuple[Floats, ...]) -> Floats:
    """Return the share of rounds in which each arm is chosen."""
    counts = [np.bincount(_choices(sample, b), minlength=len(b)) for b in late]
    shares: Floats = np.mean(counts, axis=0) / len(sample.values)
    return shares


def _of_chosen(values: Floats, sample: _Sample, late: tuple[Floats, ...]) -> Floats:
    """Return the value of the chosen arm in each round, averaged over the late choices."""
    rounds, total = np.arange(len(values)), np.zeros(len(values))
    for b in late:
        total += values[rounds, _choices(sample, b)]
    return total / len(late)


def _described(
    world: Source, sample: _Sample, fresh: _Sample, eta: Floats, limit: _Limit
) -> SelectedRegression:
    """Evaluate a limit that was fitted on `sample` by the choices that it makes in `fresh`."""
    size = len(sample.values) // BATCHES
    slices = [slice(k * size, (k + 1) * size) for k in range(BATCHES)]
    parts = np.array(
        [_prices(fresh.part(each), _limit(sample.part(each), limit.b).late) for each in slices]
    )  # (BATCHES, 2)
    prices = _prices(fresh, limit.late)
    # The error of b adds to the floor, on average c / n from n rounds: both sizes tell c.
    whole = (BATCHES * prices - parts.mean(axis=0)) / (BATCHES - 1)
    left = np.abs(prices - _prices(fresh, limit.before))
    error = parts.std(axis=0, ddof=1) / np.sqrt(BATCHES) + left
    best, linear = _against_observer(world, fresh, limit.late)
    return SelectedRegression(
        coefficients=limit.b,
        bias=np.linalg.norm(limit.b - eta, axis=1),
        pulls=_pulls(fresh, limit.late),
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


def _prices(sample: _Sample, late: tuple[Floats, ...]) -> Floats:
    """Return the regret, and the reward below that of choices by eta, per round."""
    best = sample.values.argmax(axis=1)[:, None]
    regret = sample.values.max(axis=1) - _of_chosen(sample.values, sample, late)
    by_eta = np.take_along_axis(sample.rewards, best, axis=1)[:, 0]
    loss = by_eta - _of_chosen(sample.rewards, sample, late)
    return np.array([regret.mean(), loss.mean()])


def _against_observer(
    world: Source, sample: _Sample, late: tuple[Floats, ...]
) -> tuple[Quantity | None, Quantity | None]:
    """Return the regret per round against E[x | y]'mu: of these choices, and of those by eta."""
    expect = getattr(world, "expected_values", None)
    few = sample.part(slice(0, OBSERVED_ROUNDS))
    values = None if expect is None else expect(few.y.transpose(1, 0, 2))
    if values is None:
        return None, None
    by_eta = np.take_along_axis(values, few.values.argmax(axis=1)[:, None], axis=1)[:, 0]
    made = _of_chosen(values, few, late), by_eta
    words = ("regret per round against E[x | y]'mu", "the same of choices by eta")
    found = []
    for each, meaning in zip(made, words, strict=True):
        missed = values.max(axis=1) - each
        error = missed.std() / np.sqrt(len(missed))
        found.append(Quantity(float(missed.mean()), float(error), "Regret(T)", meaning))
    return found[0], found[1]
