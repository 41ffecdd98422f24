"""`Bandit`: a policy and what it has learned, used online by the names of arms."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks, kernels, seeds
from keyhole.bandit import records, storage
from keyhole.bandit.arms import Arm, Arms
from keyhole.bandit.decision import Decision, Decisions
from keyhole.bandit.features import Effects, Features
from keyhole.bandit.learned import Learned
from keyhole.choice import choice_probabilities
from keyhole.errors import InvalidValue
from keyhole.files import Path
from keyhole.kernels import Floats, State
from keyhole.policies import Policy
from keyhole.posterior import Posterior

# A number of rewards that no arm has.
NEVER = -1.0
# As many normals cost as much to draw one way as the other.
FEW = 64


# The last decision, the state it was made in, how many rewards its arm had, and which of two rows
# is that arm's P y: if they are as many when its reward comes, P y need not be computed again.
Last: TypeAlias = tuple[Decision, State, float, int]


class Bandit:
    """Chooses among named arms from what is seen of them, and learns from the rewards.

    arms: their names (strings or whole numbers), or how many there are. dim: the length of an
    observation. seed: a whole number for a run that can be repeated. probabilities: keep what the
    probability of each decision follows from; with very many arms, False is faster, because arms
    that cannot win are then not looked at.

    intercept: each arm also learns a constant, and rewards may be about any number: they are
    counted from the mean of the first 8. standardize: features come in any units (and, with a
    constant, from any zero); each one's is settled when it was seen 32 times. Until the first of
    them, and those 8, are there, arms are picked uniformly. missing="predict": NaN (or None, or a
    masked entry) becomes the best linear prediction from what is there, by the mean and covariance
    of all observations before, pulled or not; without it NaN is an error. `posterior` is then about
    what these options make of observations and rewards: the constant first, features in settled
    units, rewards from their zero on. `effects` tells it in your own.

    One bandit is for one thread at a time.

    >>> import keyhole as kh
    >>> bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B", "C"], dim=2, seed=7)
    >>> decision = bandit.choose([0.5, -1.0])
    >>> bandit.learn(decision, reward=1.0)
    >>> sum(bandit.counts.values())
    1
    """

    def __init__(
        self,
        policy: Policy,
        *,
        arms: int | Iterable[Arm],
        dim: int,
        seed: seeds.Seed = None,
        probabilities: bool = True,
        intercept: bool = False,
        standardize: bool = False,
        missing: Literal["predict"] | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise InvalidValue(
                f"policy must be a Policy such as ThompsonSampling(), got {policy!r}"
            )
        shared = policy.parameters == "shared"
        names: Any = range(checks.whole("arms", arms)) if isinstance(arms, Integral) else arms
        self.policy = policy
        self.dim = checks.whole("dim", dim)
        self.probabilities = checks.flag("probabilities", probabilities)
        features = Features(self.dim, intercept=intercept, standardize=standardize, missing=missing)
        self._learned = Learned(Arms(names, shared=shared), features, policy.prior_precision)
        self._rule = policy.plain_rule()
        self._rng = np.random.Generator(np.random.PCG64(seeds.root(seed)))
        self._uniforms = np.empty(2)
        # Room for two P y, and which is whose.
        self._products = np.empty((2, features.width))
        self._last: Last | None = None

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms."""
        return self._learned.arms.names

    @property
    def _features(self) -> Features:
        return self._learned.features

    @property
    def posterior(self) -> Posterior:
        """What has been learned, as sums."""
        return self._learned.posterior

    @property
    def counts(self) -> dict[Arm, int]:
        """How many rewards the parameter of each arm has learned from ("shared": one for all)."""
        return self._learned.counts

    @property
    def effects(self) -> dict[Arm, Effects]:
        """What each arm's reward was learned to be made of, in the features' own units.

        >>> import keyhole as kh
        >>> bandit = kh.Bandit(kh.Greedy(), arms=["A"], dim=1, seed=1, intercept=True)
        >>> for metres in range(100):
        ...     bandit.learn(bandit.choose([metres]), reward=20.0 + 3.0 * metres)
        >>> bandit.effects["A"].estimate.round(1).tolist()
        [20.4, 3.0]
        """
        return self._learned.effects

    # -- choosing ---------------------------------------------------------------------------------

    def choose(self, y: ArrayLike, *, among: Iterable[Arm] | None = None) -> Decision:
        """Choose an arm from what is seen: y of shape (dim,) for all arms, or a row for each.

        among: the arms available this time; rows of y are then theirs, in that order.
        """
        learned = self._learned
        features = learned.features
        arms = learned.arms if among is None else learned.arms.among(among)
        owner = arms.owner
        rows = design = self._observed(y, owner.size)
        rule = self._rule
        if not features.is_plain:
            rows, design, rule = self._prepared(rows, add=True)
        z = self._normals(owner.size)
        self._rng.random(out=self._uniforms)
        law, w, state = np.empty((3, owner.size)), self._products, learned.posterior.state
        self._last = None  # its P y is about to be written over
        place, kept, n = kernels.choose(
            owner,
            design,
            z,
            self._uniforms,
            not self.probabilities,
            law,
            w,
            *rule,
            *state,
        )
        own = rows[place].copy() if len(rows) > 1 else rows[0]
        chance = (law[0], law[1], rule.epsilon, place) if self.probabilities else None
        score = float(law[2, place])
        if not features.is_plain:
            score += features.offset
        decision = Decision.made(arms.names[place], score, own, chance)
        if kept >= 0 and features.is_plain:
            self._last = (decision, state, n, kept)
        return decision

    def _normals(self, n: int) -> Floats:
        """Standard normals; if they are many, by a stream that three of our own numbers begin."""
        if n <= FEW:
            return self._rng.standard_normal(n)
        words: kernels.Bits = self._rng.bit_generator.random_raw(3)
        z = np.empty(n)
        kernels.fill_normals(kernels.stream_state(words, 0), z)
        return z

    def choose_many(self, y: ArrayLike, *, among: Iterable[Arm] | None = None) -> Decisions:
        """Choose an arm for each of n rounds from what is known now, by matrix products.

        y: (n, dim), one row for all arms of a round, or (n, n_arms, dim), a row for each arm.
        """
        arms = self._learned.arms if among is None else self._learned.arms.among(among)
        owner = arms.owner
        rounds = self._features.numbers(y)
        n, n_arms, dim = len(rounds) if rounds.ndim else 0, owner.size, self.dim
        if rounds.shape not in ((n, dim), (n, n_arms, dim)):
            raise InvalidValue(
                f"y must have shape (n, {dim}), or (n, {n_arms}, {dim}) with a row for each of the "
                f"{n_arms} arms, got {rounds.shape}"
            )
        rounds, design, rule = self._prepared(rounds, add=True)
        location, scale = self.posterior.scores(rule, owner, design)
        z = self._normals(n * n_arms).reshape(n, n_arms)
        places = np.empty(n, dtype=np.int64)
        kernels.select_rows(location, scale, z, self._rng.random((n, 2)), rule.epsilon, places)
        chosen = np.arange(n), places
        return Decisions(
            [arms.names[place] for place in places],
            location[chosen] + scale[chosen] * z[chosen] + self._features.offset,
            rounds if rounds.ndim == 2 else rounds[chosen],
            (location, scale, rule.epsilon, places) if self.probabilities else None,
        )

    def choice_probabilities(
        self, y: ArrayLike, *, among: Iterable[Arm] | None = None
    ) -> dict[Arm, float]:
        """The exact probability of each arm being chosen at y, now; nothing is drawn."""
        arms = self._learned.arms if among is None else self._learned.arms.among(among)
        owner = arms.owner
        rows = self._observed(y, owner.size)
        _, design, rule = self._prepared(rows, add=False)
        location, scale = self.posterior.scores(
            rule, owner, design[None] if len(rows) > 1 else design
        )
        chances = choice_probabilities(location, scale, epsilon=rule.epsilon)
        return dict(zip(arms.names, chances[0].tolist(), strict=True))

    # -- learning ---------------------------------------------------------------------------------

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn the reward of a decision, now or much later, in any order."""
        if not isinstance(decision, Decision):
            raise InvalidValue(f"learn takes a Decision and its reward, got {decision!r}")
        y = decision._observation
        if y.shape != (self.dim,):
            raise InvalidValue(
                f"this decision's observation has shape {y.shape}, not ({self.dim},)"
            )
        learned = self._learned
        features = learned.features
        if decision.has_gaps and features.missing is None:
            raise InvalidValue("this decision's observation has gaps, which need missing='predict'")
        if type(reward) is not float or not abs(reward) <= checks.LARGEST:
            yes_or_no = isinstance(reward, bool | np.bool_)
            reward = checks.number("reward", float(reward) if yes_or_no else reward)
        parameter = learned.arms.parameter(decision.arm)
        if not features.is_plain:
            if not features.is_settled:
                learned.add([decision.arm], y[None], np.array([reward]))
                return
            y, reward = features.design(y), reward - features.offset
        state, last = learned.posterior.state, self._last
        row, n = 0, NEVER
        if last is not None and last[0] is decision and last[1] is state:
            n, row = last[2], last[3]
        self._last = None
        kernels.learn(parameter, y, reward, self._products[row], n, *state)

    def learn_many(self, decisions: Iterable[Decision], rewards: ArrayLike) -> None:
        """Learn the rewards of many decisions: all of them, or, if one cannot be used, none."""
        if isinstance(decisions, Decisions):
            arms, y = decisions.arms, decisions.observations
        else:
            listed = list(decisions) if isinstance(decisions, Iterable) else [decisions]
            if strange := [each for each in listed if not isinstance(each, Decision)]:
                raise InvalidValue(f"learn_many takes Decisions, got {strange[0]!r}")
            if self._features.missing is None and any(each.has_gaps for each in listed):
                raise InvalidValue("an observation has gaps, which need missing='predict'")
            if shapes := {each.observation.shape for each in listed} - {(self.dim,)}:
                raise InvalidValue(f"an observation has shape {shapes.pop()}, not ({self.dim},)")
            arms = [each.arm for each in listed]
            y = np.array([each.observation for each in listed]).reshape(-1, self.dim)
        given = checks.floats("rewards", rewards)
        if given.shape != (len(arms),):
            raise InvalidValue(
                f"{len(arms)} decisions need as many rewards, got an array of shape {given.shape}"
            )
        self._learned.add(arms, y, given)

    def observe(self, y: ArrayLike) -> None:
        """Take note of observations, (n, dim) or one, that no decision is wanted for.

        Units and predictions of missing entries follow from all that was observed: with a table of
        earlier observations they are there from the first decision on.
        """
        rows = self._features.numbers(y)
        if rows.shape[-1:] != (self.dim,):
            raise InvalidValue(f"observations have {self.dim} numbers each, got {rows.shape}")
        self._learned.see(rows.reshape(-1, self.dim))

    def merge(self, other: Bandit, *, base: Bandit | None = None) -> None:
        """Add what another bandit has learned apart from this one; arms are matched by name.

        Arms that only the other has are added. If both went on from one saved bandit, give that
        as `base`: what it had already learned would otherwise count twice.
        """
        for each in (other, base):
            if each is self:
                raise InvalidValue("a bandit cannot be merged with itself")
            if not isinstance(each, Bandit | None) or other is None:
                raise InvalidValue(f"merge takes another Bandit, and one as base, got {each!r}")
            if each is not None and (each.policy, each.dim) != (self.policy, self.dim):
                raise InvalidValue(
                    "only bandits of the same policy and dim can be merged, "
                    f"got {self.policy} of {self.dim} and {each.policy} of {each.dim}"
                )
            if each is not None and each._features.options != self._features.options:
                raise InvalidValue(
                    "only bandits that treat features alike can be merged, "
                    f"got {self._features.options} and {each._features.options}"
                )
        self._learned.merge(other._learned, None if base is None else base._learned)

    # -- arms -------------------------------------------------------------------------------------

    def add_arms(self, arms: Iterable[Arm]) -> None:
        """Add arms of which nothing is known yet."""
        self._learned.add_arms(arms)

    def remove_arms(self, arms: Iterable[Arm]) -> None:
        """Remove arms, and with them what was learned of them ("shared": only the names)."""
        self._learned.remove_arms(arms)

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write all of it to one file: policy, arms, posterior, and the random stream's place.

        The file takes its place in one step: after a crash in the middle, the old one is there.
        """
        features, waiting = self._features, self._learned.waiting
        header = {
            "policy": records.policy_record(self.policy),
            "arms": list(self.arms),
            "probabilities": self.probabilities,
            "random": self._rng.bit_generator.state,
            "dim": self.dim,
            "features": features.options,
            "zero": features.zero,
            "waiting": [reward.arm for reward in waiting],
        }
        arrays = records.feature_arrays(features, waiting)
        storage.write(path, header, {**self.posterior.state._asdict(), **arrays})

    @classmethod
    def load(cls, path: Path, *, policy: Policy | None = None) -> Bandit:
        """The bandit of a file, which goes on to the bit as the saved one would have.

        policy: needed only for a policy class of your own, with the settings it was saved with.
        """
        header, arrays = storage.read(path)
        saved = records.parse(header, arrays, policy)
        bandit = cls(
            saved.policy,
            arms=saved.arms,
            dim=saved.features.dim,
            probabilities=saved.probabilities,
            **saved.features.options,
        )
        learned = bandit._learned
        learned.features, learned.waiting = saved.features, saved.waiting
        learned.posterior.state = saved.state
        bandit._rng.bit_generator.state = saved.random
        return bandit

    def __repr__(self) -> str:
        learned = int(self.posterior.count.sum()) + len(self._learned.waiting)
        size = f"{len(self.arms)} arms, dim={self.dim}, {learned} rewards learned"
        return f"Bandit({self.policy}, {size})"

    # -- inside -----------------------------------------------------------------------------------

    def _observed(self, y: ArrayLike, n_arms: int) -> Floats:
        """y as our own array of (1, dim) or (n_arms, dim), every number usable."""
        features = self._learned.features
        plain = type(y) is np.ndarray and y.dtype == np.float64 and features.missing is None
        rows = np.array(y if plain else features.numbers(y), order="C", ndmin=2)
        shape, dim = rows.shape, self.dim
        if shape != (1, dim) and shape != (n_arms, dim):
            raise InvalidValue(
                f"y must have shape ({dim},), or ({n_arms}, {dim}) with a row for each of the "
                f"{n_arms} arms, got {np.shape(y)}"
            )
        if plain and not kernels.all_usable(rows, checks.LARGEST):
            features.numbers(y)  # says which number it is, and where
        return rows

    def _prepared(self, rows: Floats, *, add: bool) -> tuple[Floats, Floats, kernels.Rule]:
        """Rows without gaps, the same as the posterior sees them, and the rule for this choice.

        Gaps are filled by what was seen before; then `add` says whether these rows count as seen.
        Before the units are settled, nothing is known of any arm, and one is picked uniformly.
        """
        features = self._features
        flat = rows.reshape(-1, self.dim)
        filled = features.filled(flat).reshape(rows.shape)
        rule = self._rule
        if features.is_settled:
            design = features.design(filled)
        else:
            design = np.zeros((*rows.shape[:-1], features.width))
            rule = kernels.Rule(epsilon=1.0)
        if add:
            self._learned.see(flat)
        return filled, design, rule
