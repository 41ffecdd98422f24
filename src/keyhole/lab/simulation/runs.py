"""Runs: a learner plays blocks of rounds, compiled or round by round."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from keyhole.core import (
    AnyLearner,
    Draws,
    Floats,
    Ints,
    Learner,
    Rule,
    SensorLearner,
    Transformed,
    checked_choice,
    kernels,
)
from keyhole.core.kernels import Block, Oracle, Record
from keyhole.lab.worlds import World

# The sums of a record, in order; the last two only if rounds have labels.
SUMS = ("regret", "latent_regret", "optimal", "correct", "best_correct")
# The first 2 are sums; the others are reported as shares of the rounds (`kernels.playing` too).
REGRETS = 2


class Run:
    """A learner with its state, and the record of its results.

    Parameters
    ----------
    learner : Learner or AnyLearner
        The learner.
    world : World
        The world that it plays in.
    checkpoints : ndarray of int
        Numbers of rounds after which results are recorded.
    """

    def __init__(self, learner: AnyLearner, world: World, checkpoints: Ints) -> None:
        self.learner, self.n_arms, self.dim = learner, int(world.n_arms), int(world.dim)
        # The sensor of each round of a block, if there are several; names go to learners that take
        # them.
        self.sensors: Ints | None = None
        self._names = tuple(world.sensors) if _asks_for_sensors(learner) else ()
        results = np.empty((checkpoints.size, len(SUMS) + 2 * self.n_arms))
        self.record = Record(
            checkpoints, results, sums=np.zeros(len(SUMS)), pulls=np.zeros(self.n_arms)
        )

    def begin(self) -> None:
        """Reset state and record."""
        self.record.sums[:] = 0.0
        self.record.pulls[:] = 0.0
        self.state = self.learner.start(self.n_arms, self.dim)

    def play(self, block: Block, oracle: Oracle, start: int) -> None:
        """Play a block of rounds and update the record.

        Parameters
        ----------
        block : Block
            The rounds.
        oracle : Oracle
            Oracle values of the rounds.
        start : int
            Number of rounds before the block. With 0, state and record are reset first.
        """
        if start == 0:
            self.begin()
        chosen = np.empty(len(block.rewards), np.int64)
        for low, high, checkpoint in self._pieces(start, len(chosen)):
            self.rounds(block, chosen, low, high)
            part = slice(low, high)
            labels = oracle.labels[part] if oracle.labels.size else oracle.labels
            kernels.add_regret(
                chosen[part],
                Oracle(oracle.values[part], oracle.latent[part], labels, oracle.eta),
                self.record,
            )
            if checkpoint is not None:
                self._write_checkpoint(checkpoint, oracle.eta)

    def _pieces(self, start: int, n: int) -> Iterator[tuple[int, int, int | None]]:
        """Yield each range of rounds up to a checkpoint or the end, and the checkpoint or None."""
        checkpoints = self.record.checkpoints
        low, c = 0, int(np.searchsorted(checkpoints, start, side="right"))
        while low < n:
            is_within = c < checkpoints.size and checkpoints[c] <= start + n
            high = int(checkpoints[c]) - start if is_within else n
            yield low, high, c if is_within else None
            low, c = high, c + 1

    def _write_checkpoint(self, c: int, eta: Floats) -> None:
        """Record sums, pulls and errors at checkpoint c, as the kernel of this name does."""
        sums, results = self.record.sums, self.record.results[c]
        results[:REGRETS] = sums[:REGRETS]
        results[REGRETS : len(SUMS)] = sums[REGRETS:] / self.record.checkpoints[c]
        results[len(SUMS) : len(SUMS) + self.n_arms] = self.record.pulls
        coefficients = getattr(self.learner, "coefficients", None)
        found = np.nan if coefficients is None else coefficients(self.state)
        results[len(SUMS) + self.n_arms :] = np.linalg.norm(found - eta, axis=1)

    def rounds(self, block: Block, chosen: Ints, low: int, high: int) -> None:
        """Play some rounds one after another.

        Parameters
        ----------
        block : Block
            The rounds of the block.
        chosen : ndarray of int
            Array for the indices of the chosen arms.
        low, high : int
            First round, and the one after the last.
        """
        for t in range(low, high):
            # Copies: a learner may keep its arguments, and the memory of a block is reused.
            y = block.observations[t].copy()
            observation = y[0] if len(y) == 1 else y
            draws = Draws(block.z[t].copy(), block.uniforms[t].copy())
            which = self._which(t)
            answer = self.learner.choose(self.state, observation, draws, **which)
            arm = checked_choice(answer, self.learner, self.n_arms).arm
            chosen[t] = arm
            row = y[0 if len(y) == 1 else arm]
            self.learner.learn(self.state, arm, row, float(block.rewards[t, arm]), **which)

    def _which(self, t: int) -> dict[str, Any]:
        """Return the sensor of a round of this block, for a learner that takes it."""
        if self.sensors is None or not self._names:
            return {}
        return {"sensor": self._names[self.sensors[t]]}


class CompiledRun(Run):
    """A linear-Gaussian learner that uses observations unchanged."""

    learner: Learner

    def __init__(self, learner: Learner, world: World, checkpoints: Ints) -> None:
        super().__init__(learner.resolve(float(world.noise_scale)), world, checkpoints)
        self.state = self.learner.start(self.n_arms, self.dim)
        self.posterior = self.state.posterior
        rule, parameter_of = self.learner.policy.plain_rule(), self.state.arms.parameter_of
        self.chooser = kernels.Chooser(self.posterior.core, rule, parameter_of, keeps=False)

    def play(self, block: Block, oracle: Oracle, start: int) -> None:
        """Play a block in one compiled call.

        Parameters
        ----------
        block, oracle, start
            As in `Run.play`.
        """
        kernels.run_block(self.chooser, block, oracle, start, self.record)


class FeaturedRun(Run):
    """A linear-Gaussian learner with an intercept, units, or missing entries.

    The order of operations is that of `Bandit`: with the same random numbers, both choose the same
    arms. Rounds between two changes of units or predictions are played in one compiled call, since
    their design does not depend on the choices.
    """

    learner: Learner

    def __init__(self, learner: Learner, world: World, checkpoints: Ints) -> None:
        super().__init__(learner.resolve(float(world.noise_scale)), world, checkpoints)
        self.rule = self.learner.policy.plain_rule()

    def begin(self) -> None:
        """Reset state and record."""
        super().begin()
        self._chooser: kernels.Chooser | None = None

    def rounds(self, block: Block, chosen: Ints, low: int, high: int) -> None:
        """Play some rounds, several at a time if units and predictions stay the same.

        Parameters
        ----------
        block, chosen, low, high
            As in `Run.rounds`.
        """
        t = low
        while t < high:
            n = min(high - t, self.state.n_rounds_ahead(block.observations.shape[1]))
            if n > 0:
                self._several(block, chosen, slice(t, t + n))
            else:
                n = 1
                self._one(block, chosen, t)
            t += n

    def _one(self, block: Block, chosen: Ints, t: int) -> None:
        state, rows = self.state, block.observations[t]
        filled, design = state.prepared(rows)
        chooser = self._chooser_of(state.rule_now(self.rule))
        now = slice(t, t + 1)
        place = int(chooser.choose_rounds(design[None], block.z[now], block.uniforms[now])[0][0])
        state.see(rows)
        chosen[t] = place
        row = slice(place, place + 1) if len(rows) > 1 else slice(0, 1)
        reward = block.rewards[t, place : place + 1]
        state.add([place], filled[row], rows[row].copy(), reward, key="")

    def _several(self, block: Block, chosen: Ints, now: slice) -> None:
        state, raw = self.state, block.observations[now]
        design = state.see_rounds(raw)
        rewards = block.rewards[now] - state.observer.offset
        chooser = self._chooser_of(self.rule)
        kernels.play(
            chooser, Block(design, rewards, block.z[now], block.uniforms[now]), chosen[now]
        )
        places, each = chosen[now], np.arange(len(raw))
        rows = places if raw.shape[1] > 1 else np.zeros_like(places)
        given = block.rewards[now][each, places]
        state.observer.see_rewards(given)
        state.keep_provisional(places.tolist(), raw[each, rows], design[each, rows], given.tolist())

    def _chooser_of(self, rule: Rule) -> kernels.Chooser:
        """Return the chooser of a rule; that of the learner's own rule is kept."""
        core = self.state.posterior.core
        if rule is not self.rule or self._chooser is None or self._chooser.core is not core:
            made = kernels.Chooser(core, rule, self.state.arms.parameter_of, keeps=False)
            if rule is not self.rule:
                return made
            self._chooser = made
        return self._chooser


def _asks_for_sensors(learner: object) -> bool:
    """Return whether a learner's `choose` takes the sensor of a round."""
    return "sensor" in inspect.signature(learner.choose).parameters  # type: ignore[attr-defined]


def run_of(learner: Learner | AnyLearner, world: World, checkpoints: Ints) -> Run:
    """Return the fastest kind of run for a learner.

    Parameters
    ----------
    learner : Learner or AnyLearner
        The learner.
    world : World
        The world that it plays in.
    checkpoints : ndarray of int
        Numbers of rounds after which results are recorded.
    """
    if isinstance(learner, SensorLearner):
        learner = learner.resolve(float(world.noise_scale), world.sensors)
    if not isinstance(learner, Learner):
        return Run(learner, world, checkpoints)
    resolved = learner.resolve(float(world.noise_scale))
    # A transformer is Python, and a hybrid or a joint draw has rows that no block of rounds has.
    is_hybrid, is_joint = learner.policy.sharing == "hybrid", resolved.policy.plain_rule().joint
    if isinstance(learner.features, Transformed) or is_hybrid or is_joint:
        return Run(resolved, world, checkpoints)
    return (CompiledRun if learner.is_plain else FeaturedRun)(learner, world, checkpoints)
