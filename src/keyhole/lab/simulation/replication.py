"""One replication: a world, its rounds in blocks, and every learner playing the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.checks import LARGEST
from keyhole.core import Ints, Learner, Memory, Streams, child_seed
from keyhole.core.kernels import Block, Oracle
from keyhole.errors import InvalidValue, shown
from keyhole.lab.simulation.plan import Plan, check_world
from keyhole.lab.simulation.runs import SUMS, CompiledRun, Run, run_of
from keyhole.lab.worlds import Rounds, World

# A block's observations take two megabytes: small enough for the cache that cores share, and large
# enough that threads seldom wait for each other's Python between blocks.
BLOCK_FLOATS = 2**18

# What is kept of a replication: of each policy at each checkpoint, and there of each arm.
Outcome = dict[str, NDArray[np.float64]]
Tick = Callable[[int], None]


class Workspace:
    """What a worker's next replication finds ready: memory for its blocks, and its runs.

    Each worker has one of its own.
    """

    def __init__(self) -> None:
        self.memory: Memory = {}
        self.plan: Plan | None = None
        self.runs: list[Run] = []

    def runs_of(self, plan: Plan, world: World) -> list[Run]:
        """Return the runs of a plan; those of the last replication, if the world is the same.

        They forget as they begin. Large ones are made anew: that takes no time in comparison.
        """
        if self.plan is plan:
            return self.runs
        runs = [run_of(learner, world, plan.checkpoints) for learner in plan.learners.values()]
        sizes = [
            run.posterior.core.state.matrices.size for run in runs if isinstance(run, CompiledRun)
        ]
        if sum(sizes) <= BLOCK_FLOATS and world is plan.world:
            self.plan, self.runs = plan, runs
        return runs


def outcome_shapes(plan: Plan, *, answers: bool) -> dict[str, tuple[int, ...]]:
    """Name the arrays that a replication of a plan gives, with the shape of each.

    Parameters
    ----------
    plan : Plan
        What is simulated.
    answers : bool
        Whether rounds have right answers.

    """
    curve = (len(plan.learners), plan.checkpoints.size)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(SUMS if answers else SUMS[:3], curve)
    per_arm = (*curve, plan.world.n_arms)
    shapes |= {"pulls": per_arm, "error": per_arm}
    if answers:  # the best observer is the same, whoever plays
        shapes["best_correct"] = curve[1:]
    return shapes


NO_LABELS = np.empty(0, np.int64)
# What may be NaN, and when.
UNKNOWN = {"latent": ", or NaN where nobody knows", "observations": ", or NaN where missing"}


def replicate(
    plan: Plan, number: int, tick: Tick | None = None, workspace: Workspace | None = None
) -> Outcome:
    """Play one replication. `tick` is told of the rounds as they are done, and may raise.

    All that is random follows from the plan's seed and the replication's number. Every learner
    sees the same rounds and is handed the same numbers to draw from, so that what one does
    depends neither on which others there are, nor on where or when it is done.

    Parameters
    ----------
    plan : Plan
        What is simulated.
    number : int
        Which replication.
    tick : callable, optional
        Called with the number of rounds that were just done.
    workspace : Workspace, optional
        That of the worker, which no other uses meanwhile.

    Returns
    -------
    dict of str to numpy.ndarray
        See `outcome_shapes`.

    Raises
    ------
    InvalidValue
        If a world gives rounds that cannot be played, or the rule of a policy has changed.

    """
    plan.check_rules()
    outcome = _played(plan, number, tick, Workspace() if workspace is None else workspace)
    plan.check_rules()
    return outcome


def _played(plan: Plan, number: int, tick: Tick | None, workspace: Workspace) -> Outcome:
    source = Streams(child_seed(plan.seed, number), memory=workspace.memory)
    world = plan.world
    if not isinstance(world, World):
        world = world.draw(source)
        check_world(world, plan.world)
    runs, eta = workspace.runs_of(plan, world), np.array(world.eta, dtype=np.float64, order="C")
    seen = world.dim if world.shared_context else world.n_arms * world.dim
    size = max(16, min(4096, BLOCK_FLOATS // (seen + world.n_arms)))
    state, rounds = world.start(source), None
    for start in range(0, plan.horizon, size):
        n = min(size, plan.horizon - start)
        before, rounds = rounds, checked_rounds(world, world.rounds(state, n), n)
        if before is not None and (before.labels is None) != (rounds.labels is None):
            raise InvalidValue(
                f"{type(world).__name__}.rounds must give labels always or never, "
                f"but gave them in some of its blocks only"
            )
        if np.isnan(rounds.observations).any():
            _check_missing(plan)
        z = source["policy"].standard_normal(out=source.empty("z", (n, world.n_arms)))
        uniforms = source["coin"].random(out=source.empty("uniforms", (n, 2)))
        labels = NO_LABELS if rounds.labels is None else rounds.labels
        block = Block(rounds.observations, rounds.rewards, z, uniforms)
        oracle = Oracle(rounds.values, rounds.latent, labels, eta)
        for run in runs:
            run.sensors = rounds.sensors
            run.play(block, oracle, start)
        if tick is not None:
            tick(n)
    noted = np.array([run.record.noted for run in runs])
    answers = rounds is not None and rounds.labels is not None
    kept = SUMS if answers else SUMS[:3]
    outcome = {name: noted[:, :, i] for i, name in enumerate(kept)}
    outcome["pulls"] = noted[:, :, len(SUMS) : len(SUMS) + world.n_arms]
    outcome["error"] = noted[:, :, len(SUMS) + world.n_arms :]
    if answers:  # the best observer is the same, whoever plays
        outcome["best_correct"] = outcome["best_correct"][0]
    return outcome


def _check_missing(plan: Plan) -> None:
    """Refuse observations with missing entries where a learner cannot take them."""
    for name, learner in plan.learners.items():
        if isinstance(learner, Learner) and learner.missing is None:
            raise InvalidValue(
                f"observations have missing entries, and {name} does not say what to do about "
                "them: give Learner(policy, missing='predict')"
            )


def checked_rounds(world: World, rounds: Rounds, n: int) -> Rounds:
    """The rounds as a kernel can take them: compiled code does not look where it reads."""
    kind, per_arm = type(world).__name__, (n, world.n_arms)
    if not isinstance(rounds, Rounds):
        raise InvalidValue(f"{kind}.rounds({n}) must give Rounds, got {shown(rounds)}")
    allowed: dict[str, list[tuple[int, ...]]]
    allowed = {name: [per_arm] for name in ("rewards", "values", "latent")}
    allowed["observations"] = [(*per_arm, world.dim), (n, 1, world.dim)]
    plain = {}
    for name, shapes in allowed.items():
        array = _as_array(f"{kind}.rounds({n})", name, getattr(rounds, name))
        if array.shape not in shapes or array.dtype.kind not in "biuf":
            raise InvalidValue(
                f"{kind}.rounds({n}) must give {name} as numbers of shape "
                f"{' or '.join(map(str, shapes))}, got {array.dtype} of shape {array.shape}"
            )
        array = np.ascontiguousarray(array, dtype=np.float64)
        # Kernels take writable arrays only.
        plain[name] = array if array.flags.writeable else array.copy()
    for name, array in plain.items():
        # Of NaN both comparisons are false.
        usable = array.min() >= -LARGEST and array.max() <= LARGEST
        if not usable and name in UNKNOWN:
            usable = bool((np.isnan(array) | (np.abs(array) <= LARGEST)).all())
        if not usable:
            raise InvalidValue(
                f"{kind}.rounds({n}) must give {name} of finite numbers up to {LARGEST:g}"
                f"{UNKNOWN.get(name, '')}"
            )
    return Rounds(
        **plain,
        labels=_checked_indices(world, "labels", rounds.labels, n, world.n_arms),
        sensors=_checked_indices(world, "sensors", rounds.sensors, n, len(world.sensors)),
    )


def _as_array(source: str, name: str, given: object) -> NDArray[Any]:
    """Make an array of what a world gave, which may be anything."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, OverflowError, RecursionError, UserWarning) as reason:
        raise InvalidValue(f"{source} gave {name} that are no array: {reason}") from None
    if np.ma.is_masked(given):
        raise InvalidValue(f"{source} gave {name} with masked entries")
    return array


def _checked_indices(world: World, name: str, given: Ints | None, n: int, size: int) -> Ints | None:
    """Return n whole numbers below `size`, or None where there are none."""
    if given is None:
        return None
    array = _as_array(f"{type(world).__name__}.rounds({n})", name, given)
    whole = array.shape == (n,) and array.dtype.kind in "iu"
    if not whole or not np.isin(array, np.arange(size)).all():
        raise InvalidValue(
            f"{type(world).__name__}.rounds({n}) must give {name} as {n} whole numbers "
            f"from 0 to {size - 1}, got {array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)
