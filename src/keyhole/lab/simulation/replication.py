"""One replication: every learner plays the same rounds of a world, in blocks."""

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

# The results of a replication by name: for each policy at each checkpoint, some for each arm too.
Outcome = dict[str, NDArray[np.float64]]
Tick = Callable[[int], None]


class Workspace:
    """Memory and runs that a worker reuses for its next replication.

    Each worker has one of its own.
    """

    def __init__(self) -> None:
        self.memory: Memory = {}
        self.plan: Plan | None = None
        self.runs: list[Run] = []

    def runs_of(self, plan: Plan, world: World) -> list[Run]:
        """Return the runs of a plan: those of the last replication if the world is the same.

        Runs reset themselves at the start of a replication. Large ones are not reused: making them
        takes no time in comparison.

        Parameters
        ----------
        plan : Plan
            The plan of the simulation.
        world : World
            The world of the replication.
        """
        if self.plan is plan:
            return self.runs
        self.plan, self.runs = None, []  # frees what another plan or replication left
        runs = [run_of(learner, world, plan.checkpoints) for learner in plan.learners.values()]
        sizes = [
            run.posterior.core.state.matrices.size for run in runs if isinstance(run, CompiledRun)
        ]
        if sum(sizes) <= BLOCK_FLOATS and world is plan.world:
            self.plan = plan
        self.runs = runs
        return runs


def outcome_shapes(plan: Plan, *, answers: bool) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the arrays that a replication returns.

    Parameters
    ----------
    plan : Plan
        The plan of the simulation.
    answers : bool
        Whether rounds have labels, the correct arms.

    Returns
    -------
    dict of str to tuple of int
        The shape of each array by its name.
    """
    curve = (len(plan.learners), plan.checkpoints.size)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(SUMS if answers else SUMS[:3], curve)
    per_arm = (*curve, plan.world.n_arms)
    shapes |= {"pulls": per_arm, "error": per_arm}
    if answers:  # the best observer does not depend on the policy
        shapes["best_correct"] = curve[1:]
    return shapes


NO_LABELS = np.empty(0, np.int64)
# Arrays that may have NaN, and its meaning there.
UNKNOWN = {"latent": ", or NaN if unknown", "observations": ", or NaN if missing"}


def replicate(
    plan: Plan, number: int, tick: Tick | None = None, workspace: Workspace | None = None
) -> Outcome:
    """Play one replication and return its results.

    All random numbers follow from the plan's seed and the number of the replication. Every learner
    sees the same rounds and the same random numbers, so that the result of one depends neither on
    the other learners nor on the order, thread or process of the replications.

    Parameters
    ----------
    plan : Plan
        The plan of the simulation.
    number : int
        Number of the replication.
    tick : callable, optional
        Called after each block with its number of rounds. It may raise to stop the replication.
    workspace : Workspace, optional
        Workspace of the worker, which no other worker may use at the same time.

    Returns
    -------
    dict of str to numpy.ndarray
        The arrays of `outcome_shapes`.

    Raises
    ------
    InvalidValue
        If a world returns rounds that cannot be played, or the rule of a policy has changed.
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
    encoders = {
        name: learner.features.start()
        for name, learner in plan.learners.items()
        if isinstance(learner, Learner) and learner.features is not None
    }
    for start in range(0, plan.horizon, size):
        n = min(size, plan.horizon - start)
        before, rounds = rounds, checked_rounds(world, world.rounds(state, n), n)
        if before is not None and (before.labels is None) != (rounds.labels is None):
            raise InvalidValue(
                f"{type(world).__name__}.rounds must return labels always or never, "
                f"but returned them in some blocks only"
            )
        if np.isnan(rounds.observations).any():
            _check_missing(plan)
        for name, encoder in encoders.items():
            _check_columns(name, encoder, rounds, world)
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
    results = np.array([run.record.results for run in runs])
    answers = rounds is not None and rounds.labels is not None
    kept = SUMS if answers else SUMS[:3]
    outcome = {name: results[:, :, i] for i, name in enumerate(kept)}
    outcome["pulls"] = results[:, :, len(SUMS) : len(SUMS) + world.n_arms]
    outcome["error"] = results[:, :, len(SUMS) + world.n_arms :]
    if answers:  # the best observer does not depend on the policy
        outcome["best_correct"] = outcome["best_correct"][0]
    return outcome


def _check_missing(plan: Plan) -> None:
    """Raise InvalidValue if a learner does not accept missing entries."""
    for name, learner in plan.learners.items():
        if isinstance(learner, Learner) and learner.missing is None:
            raise InvalidValue(
                f"observations have missing entries, which the learner {name} does not accept: "
                "give Learner(policy, missing='predict')"
            )


def _check_columns(name: str, encoder: Any, rounds: Rounds, world: World) -> None:
    """Raise InvalidValue if observations are not what a learner's features make of records.

    Parameters
    ----------
    name : str
        The name of the learner.
    encoder : Encoder or TransformedEncoder
        That of its features.
    rounds : Rounds
        The rounds.
    world : World
        Where they come from.
    """
    if encoder.takes_rows or encoder.dim != world.dim:  # which the learner refuses
        return
    try:
        encoder.check_columns(rounds.observations)
    except InvalidValue as reason:
        raise InvalidValue(
            f"{type(world).__name__} gives observations that the features of the learner {name} "
            f"make of no record: {reason}. Simulate with a world of records of your own, whose "
            "rounds have the columns of features.start().encode_frame(frame)"
        ) from None


def checked_rounds(world: World, rounds: Rounds, n: int) -> Rounds:
    """Return rounds as kernels need them, with types, shapes and values checked.

    Compiled code does not check bounds.

    Parameters
    ----------
    world : World
        The world that returned the rounds.
    rounds : Rounds
        The rounds.
    n : int
        Number of rounds.

    Raises
    ------
    InvalidValue
        If an array has another shape or type, or numbers that cannot be used.
    """
    kind, per_arm = type(world).__name__, (n, world.n_arms)
    if not isinstance(rounds, Rounds):
        raise InvalidValue(f"{kind}.rounds({n}) must return Rounds, got {shown(rounds)}")
    allowed: dict[str, list[tuple[int, ...]]]
    allowed = {name: [per_arm] for name in ("rewards", "values", "latent")}
    allowed["observations"] = [(*per_arm, world.dim), (n, 1, world.dim)]
    plain = {}
    for name, shapes in allowed.items():
        array = _as_array(f"{kind}.rounds({n})", name, getattr(rounds, name))
        if array.shape not in shapes or array.dtype.kind not in "biuf":
            raise InvalidValue(
                f"{kind}.rounds({n}) must return {name} as numbers of shape "
                f"{' or '.join(map(str, shapes))}, got {array.dtype} of shape {array.shape}"
            )
        array = np.ascontiguousarray(array, dtype=np.float64)
        # Kernels take writable arrays only.
        plain[name] = array if array.flags.writeable else array.copy()
    for name, array in plain.items():
        # Comparisons with NaN are false.
        usable = array.min() >= -LARGEST and array.max() <= LARGEST
        if not usable and name in UNKNOWN:
            usable = bool((np.isnan(array) | (np.abs(array) <= LARGEST)).all())
        if not usable:
            raise InvalidValue(
                f"{kind}.rounds({n}) must return {name} of finite numbers up to {LARGEST:g}"
                f"{UNKNOWN.get(name, '')}, got from {array.min():g} to {array.max():g}"
            )
    return Rounds(
        **plain,
        labels=_checked_indices(world, "labels", rounds.labels, n, world.n_arms),
        sensors=_checked_indices(world, "sensors", rounds.sensors, n, len(world.sensors)),
    )


def _as_array(source: str, name: str, given: object) -> NDArray[Any]:
    """Return an array of a world as a NumPy array; user-defined worlds may return any object."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, OverflowError, RecursionError, UserWarning) as reason:
        raise InvalidValue(f"{source} must return {name} as an array: {reason}") from None
    if np.ma.is_masked(given):
        raise InvalidValue(f"{source} must return {name} without masked entries")
    return array


def _checked_indices(world: World, name: str, given: Ints | None, n: int, size: int) -> Ints | None:
    """Return n whole numbers below `size`, or None where there are none."""
    if given is None:
        return None
    array = _as_array(f"{type(world).__name__}.rounds({n})", name, given)
    whole = array.shape == (n,) and array.dtype.kind in "iu"
    if not whole or not np.isin(array, np.arange(size)).all():
        raise InvalidValue(
            f"{type(world).__name__}.rounds({n}) must return {name} as {n} whole numbers "
            f"from 0 to {size - 1}, got {array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)
